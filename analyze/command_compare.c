/* analyze compare: two runs beside each other. */
#include "analyze/command.h"

#include "analyze/compare/comparison_formats.h"
#include "analyze/study/study.h"
#include "analyze/write/formats.h"
#include "common/files.h"
#include "common/version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    const char *output;
    bool file;                 /* that output is, of the one format */
    uint32_t formats, fail_on; /* a bit for each of comparison_formats, and of fail_names */
    int64_t top;
    double alarms, least;
    comparison_fail fail;
    verdict_thresholds thresholds;
    cli_positionals runs;
} settings;

#define AT(field) offsetof(settings, field)

static const char about[] =
    "Compares the operations and fusions that two runs have in common: two nights, two drivers, two devices, before\n"
    "and after a kernel. The regimes must be equal. BEFORE and AFTER are folders of a model, or of reports.\n"
    "\n"
    "A change that all operations share (a clock, a temperature, a driver) is reported once, as the machine's, and\n"
    "taken out of each. What is left makes an operation SLOWER, FASTER, SAME or AMBIGUOUS. Chance alone makes it "
    "SLOWER\n"
    "or FASTER in one comparison of 2,000 (--alarms). The best of each run is compared, which is what deployment runs.";

static const char after_help[] =
    "examples:\n"
    "  analyze compare out/bert-monday out/bert-tuesday\n"
    "  analyze compare before after --fail-on slower -o out/nightly\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but files were left out, or an operation or a fusion has a figure in one of the runs only\n"
    "  2  wrong usage\n"
    "  3  a run cannot be read, or the regimes differ, or no operation is in both\n"
    "  4  memory, disk or another condition of this machine\n"
    "  5  a condition of --fail-on is met\n";

static const char *const fail_names[] = {"slower", "verdict", NULL};

static const cli_option options[] = {
    {.name = "fail-on",
     .argument = "LIST",
     .kind = CLI_LIST,
     .offset = AT(fail_on),
     .choices = fail_names,
     .help = "exit with 5 where an operation, a fusion or the machine is SLOWER, or a verdict got worse"},
    {.name = "output",
     .letter = 'o',
     .argument = "PATH",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write comparison.txt, comparison.json, … into this folder instead of printing; all formats unless "
             "--format is given. What ends as a format's file does is a file of it: -o page.html"},
    {.name = "format",
     .argument = "LIST",
     .kind = CLI_LIST,
     .offset = AT(formats),
     .choices = &comparison_formats[0].name,
     .choice_size = sizeof(comparison_format),
     .help = "without -o only one, to standard output (text)"},
    {.name = "top",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(top),
     .min = 0,
     .max = 1000000,
     .help = "number of operations and of fusions listed in text and md (20); 0: all"},
    {.name = "alarms",
     .argument = "X",
     .kind = CLI_REAL,
     .offset = AT(alarms),
     .min = 0,
     .max = 1,
     .help = "rate of false alarms: comparisons without a change that call something SLOWER or FASTER (0.0005)"},
    {.name = "least",
     .argument = "X",
     .kind = CLI_REAL,
     .offset = AT(least),
     .min = 0,
     .max = 1,
     .help = "least change, as a fraction of the time, that counts (0.01)"},
    THRESHOLDS_OPTIONS(settings, thresholds),
};

static bool settle(settings *s, status *st) {
    if (!thresholds_check(&s->thresholds, st)) return false;
    s->fail = (comparison_fail){.slower = s->fail_on & 1, .verdict = s->fail_on & 2};
    if (!(s->alarms > 0 && s->alarms < 1)) return status_fail(st, STATUS_USAGE, "--alarms: must lie between 0 and 1");
    return formats_settle(&comparison_formats[0].name, sizeof(comparison_format), s->output, &s->formats, &s->file, st);
}

static bool write_file(const settings *s, const comparison_format *f, const comparison *c,
                       const comparison_shown *shown, status *st) {
    char *path = s->file ? strdup(s->output) : NULL;
    if (!path && (s->file || asprintf(&path, "%s/%s", s->output, f->file) < 0))
        return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    const bool good = comparison_formats_put(f, c, shown, path, st);
    free(path);
    return good;
}

static bool write_all(const settings *s, const comparison *c, status *st) {
    const comparison_shown shown = {.top = (size_t)s->top, .fail = s->fail};
    if (s->output && !s->file && !files_make_folders(s->output, st)) return false;
    for (int k = 0; comparison_formats[k].name; k++) {
        const comparison_format *f = &comparison_formats[k];
        if (!(s->formats & (uint32_t)1 << k)) continue;
        if (!(s->output ? write_file(s, f, c, &shown, st) : comparison_formats_put(f, c, &shown, NULL, st)))
            return false;
    }
    return true;
}

static const char *plural(size_t n) { return n == 1 ? "" : "s"; }

/* The worst that happened: what --fail-on names, then what is missing. */
static status_code outcome(const settings *s, const comparison *c, status *st) {
    const comparison_tally operations = comparison_tally_of(&c->operations, s->fail),
                           fusions = comparison_tally_of(&c->fusions, s->fail);
    const size_t machines = comparison_failed_machines(c, s->fail);
    const size_t missing = c->skipped_count + (c->operations.measured == 0) + operations.missing + fusions.missing;
    char more[40] = "";
    if (fusions.failed > 0) snprintf(more, sizeof more, ", %zu fusion%s", fusions.failed, plural(fusions.failed));
    if (machines + operations.failed + fusions.failed > 0)
        return status_set(st, STATUS_REGRESSION, "--fail-on: %s%zu operation%s%s",
                          machines > 0 ? "the machine, and " : "", operations.failed, plural(operations.failed), more);
    return missing ? STATUS_INCOMPLETE : STATUS_OK;
}

static status_code compare(const settings *s, const study *before, const study *after, status *st) {
    comparison c;
    const comparison_options with = {.drift = {.alarms = s->alarms, .margin = s->least},
                                     .margin = s->thresholds.margin};
    if (!comparison_make(&c, before, after, &with, st)) return st->code;
    const status_code code = write_all(s, &c, st) ? outcome(s, &c, st) : st->code;
    if (s->output || s->formats != 1) left_out_tell(c.skipped, c.skipped_count); /* the text tells them itself */
    comparison_close(&c);
    return code;
}

static status_code read_and_compare(const settings *s, status *st) {
    study before, after;
    study_options with = {.folders = s->runs.items,
                          .folder_count = 1,
                          .thresholds = s->thresholds,
                          .told = left_out_tell,
                          .layers = true};
    if (!study_open(&before, &with, st)) return st->code;
    with.folders = s->runs.items + 1;
    const bool both = study_open(&after, &with, st);
    const status_code code = both ? compare(s, &before, &after, st) : st->code;
    if (both) study_close(&after);
    study_close(&before);
    return code;
}

status_code command_compare(int argc, char **argv, status *st) {
    const char *runs[2] = {NULL};
    settings s = {.top = 20, .alarms = 0.0005, .least = 0.01, .thresholds = verdict_defaults, .runs.items = runs};
    const cli_spec spec = {
        .program = "analyze compare",
        .version = version_text,
        .usage = "BEFORE AFTER [--fail-on LIST] [-o PATH] [--format LIST] [--top N]\n"
                 "                       [--alarms X] [--least X] [thresholds]",
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
    case CLI_RUN: return settle(&s, st) ? read_and_compare(&s, st) : st->code;
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
