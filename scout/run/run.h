/* What scout_batch does, in the supervisor's process: measure a list of operations, or a device's ceilings, or say what
 * there is. Prints on standard output what a person asked for, and on standard error what goes on. */
#pragma once

#include "scout/run/options.h"

/* `stop` turns non-zero when a person wants the run to end: what is finished is kept. The exit code; st says why it is
 * not 0 where a line is due. */
status_code run_operations(const options *o, const volatile int *stop, status *st);
/* --run-once and --counters: one operation of a file, whose report is in the folder. */
status_code run_profile(const options *o, const volatile int *stop, status *st);
/* --replay: the model of a folder that was measured, as a whole. */
status_code run_replay_folder(const options *o, const volatile int *stop, status *st);
status_code run_ceilings(const options *o, const volatile int *stop, status *st);
status_code run_list_devices(const options *o, status *st);
status_code run_list_candidates(const options *o, status *st);
status_code run_cache_info(const options *o, status *st);
/* Prints a line for each thing that measuring depends on; not 0 where it cannot be done here. */
status_code run_doctor(const options *o, status *st);
