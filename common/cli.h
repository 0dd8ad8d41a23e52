/* Command lines from a table: one row per option says how it is written, what it does and what --help prints about it.
 * --help and --version are always there, and --list-options, which says the table to scripts (manuals, completions).
 *
 *     static const cli_option options[] = {{.name = "output", .letter = 'o', .argument = "FILE", .help = "write …",
 *                                           .kind = CLI_TEXT, .offset = offsetof(settings, output)}, …};
 *     switch (cli_parse(&spec, argc, argv, &settings, &st)) { case CLI_RUN: …; case CLI_DONE: return 0; case CLI_WRONG:
 * … }
 */
#pragma once

#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_kind {
    CLI_FLAG,    /* bool, set to true */
    CLI_TEXT,    /* const char *, borrowed from argv; never empty */
    CLI_FILE,    /* as CLI_TEXT, and not "-", which elsewhere means standard output and would name a file here */
    CLI_INT,     /* int64_t within [min, max] */
    CLI_REAL,    /* double within [min, max] */
    CLI_SECONDS, /* likewise, in seconds; 90s, 2m and 1.5h are 90, 120 and 5400 */
    CLI_CHOICE,  /* const char *, one of `choices` (the table's own copy) */
    CLI_LIST,    /* uint32_t, of `choices` (at most 32) those that are named, commas between: a bit for each, the first
                  * one is 1; said again it adds to them. --help names the choices itself */
    CLI_BINDING, /* cli_bindings: NAME=NUMBER, as often as wanted, the number within [min, max] */
    CLI_CALL     /* calls `call` (with "" where the option takes no argument), which may set st and say false */
} cli_kind;

typedef struct cli_binding {
    const char *name; /* borrowed from argv, which is cut at the = */
    int64_t number;
} cli_binding;

typedef struct cli_bindings {
    cli_binding *items; /* owned: cli_bindings_free */
    int count;
} cli_bindings;

typedef bool cli_call_fn(void *destination, const char *argument, status *st);

typedef struct cli_option {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    const char *argument; /* its name in --help; NULL: the option takes none (flags and calls without argument) */
    const char *help;     /* NULL: not for people, --help says nothing of it */
    cli_kind kind;
    size_t offset; /* into the destination */
    int64_t min, max;
    const char *const *choices; /* ends with NULL */
    size_t choice_size; /* of a row of the table whose first members they are, from one to the next; 0: a plain list */
    cli_call_fn *call;
} cli_option;

typedef struct cli_positionals {
    const char **items; /* room for spec->most of them */
    int count;
} cli_positionals;

typedef struct cli_spec {
    const char *program;
    const char *version;
    const char *usage; /* what follows the program's name in the usage line */
    const char *about; /* one or more lines under it */
    const char *after; /* examples, exit codes; may be NULL */
    const cli_option *options;
    int option_count;
    const char *positional; /* what a positional argument is called in messages: "MODEL.onnx" */
    int least, most;        /* how many */
    size_t positionals;     /* offset of a cli_positionals in the destination */
} cli_spec;

typedef enum cli_result {
    CLI_RUN,
    CLI_DONE, /* --help, --version or --list-options was printed */
    CLI_WRONG /* st says why: STATUS_USAGE, or STATUS_ENVIRONMENT where stdout failed or memory ran out */
} cli_result;

cli_result cli_parse(const cli_spec *spec, int argc, char **argv, void *destination, status *st);
void cli_help(const cli_spec *spec, FILE *out);
void cli_bindings_free(cli_bindings *b);
bool cli_near(const char *typed, const char *meant); /* a slip of the finger apart, or the beginning of it */
