/* The commands of analyze, each in a file of its own: analyze/command_<name>.c. A command reads its own options
 * (argv[0] is its name), does what it is for, and says its exit code; st: why, where it is more than 1, and a hint
 * where it is 1. Only main prints that and exits. */
#pragma once

#include "common/status.h"

status_code command_summary(int argc, char **argv, status *st);
status_code command_compare(int argc, char **argv, status *st);
status_code command_dispatch(int argc, char **argv, status *st);
status_code command_explain(int argc, char **argv, status *st);
status_code command_export(int argc, char **argv, status *st);
status_code command_history(int argc, char **argv, status *st);
