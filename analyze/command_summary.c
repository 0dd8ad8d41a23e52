/* analyze without a command: the summary of one or more folders, in the formats that are asked for. */
#include "analyze/command.h"

#include "analyze/formats.h"
#include "common/cli.h"
#include "common/files.h"

#include <stdlib.h>
#include <string.h>

const char command_version[] = "0.1.0 (ceiling-scout)";

enum { MOST_FOLDERS = 1024 };

typedef struct settings {
    const char *output, *formats;
    int64_t top;
    bool group;
    cli_positionals folders;
} settings;

#define AT(field) offsetof(settings, field)

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write files there"},
    {.name = "format", .argument = "LIST", .kind = CLI_TEXT, .offset = AT(formats), .help = "which formats"},
    {.name = "top",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(top),
     .min = 0,
     .max = 1000000,
     .help = "rows that the text shows"},
    {.name = "group",
     .kind = CLI_FLAG,
     .offset = AT(group),
     .help = "devices and regimes that differ: one after another"},
};

static status_code write_all(const settings *s, const summary *m, status *st) {
    const char *list = s->formats ? s->formats : s->output ? "text,json" : "text";
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        const format *f = formats_find(at, n);
        char path[4096];
        if (!f) return status_set(st, STATUS_USAGE, "--format: '%.*s' is none", (int)n, at);
        if (s->output) snprintf(path, sizeof path, "%s/%s", s->output, f->file);
        if (!formats_put(f, m, s->output ? path : NULL, st)) return st->code;
        at += n + (at[n] == ',');
    }
    return m->incomplete ? STATUS_INCOMPLETE : STATUS_OK;
}

static status_code summarize(const settings *s, status *st) {
    study data;
    summary m;
    const study_options with = {.folders = s->folders.items,
                                .folder_count = s->folders.count,
                                .thresholds = verdict_defaults,
                                .group = s->group};
    if (s->output && !files_make_folders(s->output, st)) return st->code;
    if (!study_open(&data, &with, st)) return st->code;
    status_code code = summary_make(&data, (size_t)s->top, &m, st) ? write_all(s, &m, st) : st->code;
    for (size_t k = 0; k < data.skipped_count; k++) status_print(stderr, "analyze", "skipped: ", data.skipped[k].why);
    study_close(&data);
    return code;
}

status_code command_summary(int argc, char **argv, status *st) {
    static const char *folders[MOST_FOLDERS];
    settings s = {.top = 20, .folders.items = folders};
    const cli_spec spec = {
        .program = "analyze",
        .version = command_version,
        .usage = "DIR... [-o DIR] [--format LIST] [--top N] [--group]",
        .about = "Reads the reports of scout_batch and says what is worth doing.",
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "DIR",
        .least = 1,
        .most = MOST_FOLDERS,
        .positionals = AT(folders),
    };
    switch (cli_parse(&spec, argc, argv, &s, st)) {
    case CLI_RUN: return summarize(&s, st);
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
