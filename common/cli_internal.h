/* What parsing and help share: the rows of a table with those that are always there, and the choices of one. */
#ifndef COMMON_CLI_INTERNAL_H
#define COMMON_CLI_INTERNAL_H

#include "common/cli.h"

enum { CLI_CHOICES_ROOM = 256 };

const cli_option *cli_row(const cli_spec *spec, int k);
int cli_row_count(const cli_spec *spec);

const char *cli_choice(const cli_option *o, int k);                        /* NULL behind the last one */
const char *cli_choice_text(const cli_option *o, char *text, size_t room); /* "fp16, fp32", cut to the room */

/* One option a line, tabs between: --name, -letter, the argument's name, its choices. */
void cli_help_list(const cli_spec *spec, FILE *out);

#endif
