/* analyze: from the first word to a command to an exit code, and nothing else. */
#include "analyze/command.h"

#include "common/cli.h"
#include "common/files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name; /* the first word; NULL: there is none of these */
    status_code (*run)(int argc, char **argv, status *st);
} commands[] = {
    {NULL, command_summary},
    {"compare", command_compare},
    {"dispatch", command_dispatch},
    {"explain", command_explain},
};

/* Started with one of them closed, the next file that is opened would take its place, and be printed into. */
static void hold_standard_files(void) {
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
    if (fd >= 0) close(fd);
}

static status_code run(int argc, char **argv, status *st) {
    for (size_t k = 1; argc > 1 && k < sizeof commands / sizeof commands[0]; k++)
        if (strcmp(argv[1], commands[k].name) == 0) return commands[k].run(argc - 1, argv + 1, st);
    for (size_t k = 1; argc > 1 && k < sizeof commands / sizeof commands[0]; k++)
        if (access(argv[1], F_OK) != 0 && cli_near(argv[1], commands[k].name))
            return status_set(st, STATUS_USAGE, "%s: there is no such folder, and no such command; did you mean %s?",
                              argv[1], commands[k].name);
    return commands[0].run(argc, argv, st);
}

/* What could not be printed whole is a failure too, but not a worse one than what happened before. */
static void finish_output(status *st) {
    const bool good = fflush(stdout) == 0 && !ferror(stdout);
    if (!good && st->code <= STATUS_INCOMPLETE)
        status_set(st, STATUS_ENVIRONMENT, "standard output cannot be written whole; give it room, or say -o");
}

int main(int argc, char **argv) {
    status st = {0};
    hold_standard_files();
    files_clean_on_signals();
    st.code = run(argc, argv, &st);
    finish_output(&st);
    if (st.code > STATUS_INCOMPLETE || (st.code != STATUS_OK && st.text[0]))
        status_print(stderr, "analyze", NULL, st.text);
    return (int)st.code;
}
