/* analyze compare: two runs beside each other. */
#include "analyze/command.h"

#include "analyze/compare/comparison_formats.h"
#include "common/cli.h"
#include "common/files.h"

#include <math.h>
#include <string.h>

typedef struct settings {
    const char *output, *formats;
    int64_t top;
    double alarms, least; /* in percent */
    comparison_fail fail;
    cli_positionals runs;
} settings;

#define AT(field) offsetof(settings, field)

static const char about[] =
    "Compares the operations that two runs have in common: two nights, two drivers, two devices, before and after a\n"
    "kernel. The regimes must be equal. BEFORE and AFTER are folders of a model, or of reports.\n"
    "\n"
    "What all operations share (a clock, a temperature, a driver) is told once, as the machine, and taken from each.\n"
    "What is left makes an operation SLOWER or FASTER where chance would do it in one comparison of 2,000 (--alarms),\n"
    "SAME, or AMBIGUOUS. What counts is the best of each run, which is what deployment runs.";

static const char after_help[] =
    "examples:\n"
    "  analyze compare out/bert-monday out/bert-tuesday\n"
    "  analyze compare before after --fail-on slower --format text,junit -o out/nightly\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but files were skipped, or an operation has a figure in one of the runs only\n"
    "  2  wrong usage\n"
    "  3  a run cannot be read, or regimes differ, or nothing is in both\n"
    "  4  memory, disk or another condition of this machine\n"
    "  5  what --fail-on names happened\n";

static bool take_fail(void *destination, const char *argument, status *st) {
    settings *s = destination;
    for (const char *at = argument; *at;) {
        const size_t n = strcspn(at, ",");
        if (n == 6 && memcmp(at, "slower", n) == 0) {
            s->fail.slower = true;
        } else if (n == 7 && memcmp(at, "verdict", n) == 0) {
            s->fail.verdict = true;
        } else {
            status_set(st, STATUS_USAGE, "--fail-on: '%.*s' is none of slower, verdict", (int)(n < 100 ? n : 100), at);
            return false;
        }
        at += n + (at[n] == ',');
    }
    return true;
}

static const cli_option options[] = {
    {.name = "fail-on",
     .argument = "LIST",
     .kind = CLI_CALL,
     .call = take_fail,
     .help = "exit with 5 where it happened: slower (an operation or the machine is SLOWER), verdict (one got worse)"},
    {.name = "format",
     .argument = "LIST",
     .kind = CLI_TEXT,
     .offset = AT(formats),
     .help = "text, md, json, junit, csv; commas between (text)"},
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write DIR/comparison.txt, .md, .json, .xml, .csv instead of to standard output"},
    {.name = "top",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(top),
     .min = 0,
     .max = 1000000,
     .help = "operations that text and md show; 0: all (20)"},
    {.name = "alarms",
     .argument = "PERCENT",
     .kind = CLI_REAL,
     .offset = AT(alarms),
     .min = 0,
     .max = 50,
     .help = "of comparisons without a change, those in which something is called SLOWER or FASTER (0.05)"},
    {.name = "least",
     .argument = "PERCENT",
     .kind = CLI_REAL,
     .offset = AT(least),
     .min = 0,
     .max = 100,
     .help = "a change of less is none (1)"},
};

/* Before anything is read: a misspelt format costs no minute. */
static bool check_formats(const settings *s, status *st) {
    for (const char *at = s->formats; *at;) {
        const size_t n = strcspn(at, ",");
        if (!comparison_formats_find(at, n)) {
            status_set(st, STATUS_USAGE, "--format: '%.*s' is none of text, md, json, junit, csv",
                       (int)(n < 100 ? n : 100), at);
            return false;
        }
        at += n + (at[n] == ',');
    }
    return true;
}

static bool write_all(const settings *s, const comparison *c, status *st) {
    const comparison_shown shown = {.top = (size_t)s->top, .fail = s->fail};
    char path[4096];
    if (s->output && !files_make_folders(s->output, st)) return false;
    for (const char *at = s->formats; *at;) {
        const size_t n = strcspn(at, ",");
        const comparison_format *f = comparison_formats_find(at, n);
        if (s->output && (size_t)snprintf(path, sizeof path, "%s/%s", s->output, f->file) >= sizeof path) {
            status_set(st, STATUS_USAGE, "-o: the folder's name is too long");
            return false;
        }
        if (!comparison_formats_put(f, c, &shown, s->output ? path : NULL, st)) return false;
        at += n + (at[n] == ',');
    }
    return true;
}

/* The worst that happened: what --fail-on names, then what is missing. */
static status_code outcome(const settings *s, const comparison *c, status *st) {
    size_t failed = 0, missing = c->measured == 0;
    for (size_t k = 0; k < c->row_count; k++) {
        failed += comparison_fails(&c->rows[k], s->fail);
        missing += c->rows[k].measured && !isfinite(c->rows[k].best.net);
    }
    const bool machine = comparison_fails_machine(c, s->fail);
    if (machine || failed > 0)
        return status_set(st, STATUS_REGRESSION, "--fail-on: %s%s%zu operation%s",
                          machine ? "the machine as a whole" : "", machine ? ", and " : "", failed,
                          failed == 1 ? "" : "s");
    return missing ? STATUS_INCOMPLETE : STATUS_OK;
}

static void say_skipped(const study *s) {
    for (size_t k = 0; k < s->skipped_count; k++) status_print(stderr, "analyze", "skipped: ", s->skipped[k].why);
}

static status_code compare(const settings *s, study *before, study *after, status *st) {
    comparison c;
    const comparison_options with = {.drift = {.alarms = s->alarms / 100, .margin = s->least / 100},
                                     .margin = before->options.thresholds.margin};
    say_skipped(before);
    say_skipped(after);
    if (!comparison_make(&c, before, after, &with, st)) return st->code;
    status_code code = write_all(s, &c, st) ? outcome(s, &c, st) : st->code;
    if (code == STATUS_OK && before->skipped_count + after->skipped_count > 0) code = STATUS_INCOMPLETE;
    comparison_close(&c);
    return code;
}

static status_code read_and_compare(const settings *s, status *st) {
    study before, after;
    study_options with = {.folders = s->runs.items, .folder_count = 1, .thresholds = verdict_defaults};
    if (!check_formats(s, st)) return st->code;
    if (!study_open(&before, &with, st)) return st->code;
    with.folders = s->runs.items + 1;
    status_code code = st->code;
    if (study_open(&after, &with, st)) {
        code = compare(s, &before, &after, st);
        study_close(&after);
    } else {
        code = st->code;
    }
    study_close(&before);
    return code;
}

status_code command_compare(int argc, char **argv, status *st) {
    const char *runs[2] = {NULL};
    settings s = {.formats = "text", .top = 20, .alarms = 0.05, .least = 1, .runs.items = runs};
    const cli_spec spec = {
        .program = "analyze compare",
        .version = command_version,
        .usage = "BEFORE AFTER [--fail-on LIST] [--format LIST] [-o DIR] [--top N] [...]",
        .about = about,
        .after = after_help,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "RUN",
        .least = 2,
        .most = 2,
        .positionals = AT(runs),
    };
    switch (cli_parse(&spec, argc, argv, &s, st)) {
    case CLI_RUN: return read_and_compare(&s, st);
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
