/* analyze without a command: the summary of one or more folders, in the formats that are asked for. */
#include "analyze/command.h"

#include "analyze/study/study.h"
#include "analyze/write/formats.h"
#include "common/files.h"
#include "common/version.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_FOLDERS = 1024 };

typedef struct settings {
    const char *output;
    bool file;        /* that output is, of the one format */
    uint32_t formats; /* a bit for each of formats_all */
    int64_t top;
    bool group, each;
    verdict_thresholds thresholds;
    cli_positionals folders;
} settings;

#define AT(field) offsetof(settings, field)

static const char about[] =
    "Reads the reports of scout_batch and decides what is worth doing: which operations are optimal, which time is\n"
    "proven to be recoverable, which gain is only potential, and what to do first. DIR is a model's folder (with\n"
    "reports/ in it) or a folder of reports. Several folders are taken as one model. Reports are never changed.\n"
    "\n"
    "Commands, in place of DIR (each has its own --help; a folder of such a name is given as ./NAME):\n"
    "  analyze compare BEFORE AFTER    what got slower or faster between two runs\n"
    "  analyze dispatch DIR            the table that deployment loads\n"
    "  analyze explain DIR ID          all that is known of one operation, and the reason for its verdict\n"
    "  analyze history DB DIR...       keep the nights, and find what got slower";

static const char after[] =
    "examples:\n"
    "  analyze out/bert                              the summary\n"
    "  analyze out/bert -o out/bert                  all formats, into the model's folder\n"
    "  analyze out/bert --format json | jq .         one format, to standard output\n"
    "  analyze out/* --group                         each device and regime separately\n"
    "  analyze out/* --each --format html -o all.html   one page of all models, beside each other\n"
    "  analyze out/bert --high-proven 0.02           HIGH from 2 % of the model's time on\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but files were left out, an operation has no valid baseline, or a candidate failed\n"
    "  2  wrong usage\n"
    "  3  there are no reports, or they cannot be compared with each other\n"
    "  4  memory, disk or another condition of this machine\n";

/* ---- options ---- */

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "PATH",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write summary.txt, summary.json, … into this folder instead of printing; all formats unless --format is "
             "given. What ends as a format's file does is a file of it: -o page.html"},
    {.name = "format",
     .argument = "LIST",
     .kind = CLI_LIST,
     .offset = AT(formats),
     .choices = &formats_all[0].name,
     .choice_size = sizeof(format),
     .help = "without -o only one, to standard output (text)"},
    {.name = "top",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(top),
     .min = 0,
     .max = 1000000,
     .help = "number of operations and of fusions listed in text (20); 0: all"},
    {.name = "group",
     .kind = CLI_FLAG,
     .offset = AT(group),
     .help = "summarise each device class, regime and version of the method separately instead of refusing a mix"},
    {.name = "each",
     .kind = CLI_FLAG,
     .offset = AT(each),
     .help = "take each DIR as a model of its own: a page, a table or a file for all of them, beside each other"},
    THRESHOLDS_OPTIONS(settings, thresholds),
};

static bool settle(settings *s, status *st) {
    if (!thresholds_check(&s->thresholds, st)) return false;
    return formats_settle(&formats_all[0].name, sizeof(format), s->output, &s->formats, &s->file, st);
}

/* ---- work ---- */

static bool write_file(const settings *s, const format *f, const summary *m, status *st) {
    char *path = s->file ? strdup(s->output) : NULL;
    if (!path && (s->file || asprintf(&path, "%s/%s", s->output, f->file) < 0))
        return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    const bool linked = files_is_link(path);
    if (linked)
        status_set(st, STATUS_ENVIRONMENT, "%s: is a link, and nothing is written through links; move it away", path);
    const bool good = !linked && formats_put(f, m, path, st);
    free(path);
    return good;
}

static status_code write_all(const settings *s, const summary *m, status *st) {
    if (s->output && !s->file && !files_make_folders(s->output, st)) return st->code;
    for (int k = 0; formats_all[k].name; k++) {
        const format *f = &formats_all[k];
        if (!(s->formats & (uint32_t)1 << k)) continue;
        if (!(s->output ? write_file(s, f, m, st) : formats_put(f, m, NULL, st))) return st->code;
    }
    return m->incomplete ? STATUS_INCOMPLETE : STATUS_OK;
}

static status_code summarize(const settings *s, status *st) {
    study data;
    summary m;
    const study_options with = {.folders = s->folders.items,
                                .folder_count = s->folders.count,
                                .thresholds = s->thresholds,
                                .told = left_out_tell,
                                .layers = true,
                                .group = s->group,
                                .each = s->each,
                                .instead = "give --group to summarise each separately"};
    if (!study_open(&data, &with, st)) return st->code;
    const status_code code = summary_make(&data, (size_t)s->top, &m, st) ? write_all(s, &m, st) : st->code;
    if (s->output || s->formats != 1) left_out_tell(data.skipped, data.skipped_count); /* the text tells them itself */
    study_close(&data);
    return code;
}

status_code command_summary(int argc, char **argv, status *st) {
    static const char *folders[MOST_FOLDERS];
    settings s = {.top = 20, .thresholds = verdict_defaults, .folders.items = folders};
    const cli_spec spec = {
        .program = "analyze",
        .version = version_text,
        .usage = "DIR... [-o PATH] [--format LIST] [--top N] [--group] [--each] [thresholds]\n"
                 "       analyze compare|dispatch|explain|history ...",
        .about = about,
        .after = after,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "DIR",
        .least = 1,
        .most = MOST_FOLDERS,
        .positionals = AT(folders),
    };
    switch (cli_parse(&spec, argc, argv, &s, st)) {
    case CLI_RUN: return settle(&s, st) ? summarize(&s, st) : st->code;
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
