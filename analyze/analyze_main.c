/* analyze: from the first word to a command to an exit code, and nothing else. */
#include "analyze/command.h"

#include "common/cli.h"
#include "common/files.h"

#include <string.h>
#include <unistd.h>

static const struct {
    const char *name; /* the first word; NULL: there is none of these */
    status_code (*run)(int argc, char **argv, status *st);
} commands[] = {
    {NULL, command_summary},      {"compare", command_compare}, {"dispatch", command_dispatch},
    {"explain", command_explain}, {"export", command_export},   {"history", command_history},
};

static status_code run(int argc, char **argv, status *st) {
    for (size_t k = 1; argc > 1 && k < sizeof commands / sizeof commands[0]; k++)
        if (strcmp(argv[1], commands[k].name) == 0) return commands[k].run(argc - 1, argv + 1, st);
    for (size_t k = 1; argc > 1 && k < sizeof commands / sizeof commands[0]; k++)
        if (access(argv[1], F_OK) != 0 && cli_near(argv[1], commands[k].name))
            return status_set(st, STATUS_USAGE, "%s: there is no such folder, and no such command; did you mean %s?",
                              argv[1], commands[k].name);
    return commands[0].run(argc, argv, st);
}

int main(int argc, char **argv) {
    status st = {0};
    files_hold_standard();
    files_clean_on_signals();
    st.code = run(argc, argv, &st);
    files_finish_output(&st, "whole; give it room, or say -o");
    if (st.code > STATUS_INCOMPLETE || (st.code != STATUS_OK && st.text[0]))
        status_print(stderr, "analyze", NULL, st.text);
    return (int)st.code;
}
