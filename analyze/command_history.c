/* analyze history: the nights. Reports are kept as a night, suspects are settled by their repetitions, and all of it is
 * told in any format. A damaged history is set aside and begun anew from what can
 * still be read of it, and from the reports. */
#include "analyze/command.h"

#include "analyze/history/history_add.h"
#include "analyze/history/index.h"
#include "analyze/study/study.h"
#include "analyze/write/formats.h"
#include "common/files.h"
#include "common/version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FOLDERS = 1024 };

typedef struct settings {
    const char *output, *again, *only;
    bool file; /* that output is, of the one format */
    uint32_t formats;
    int64_t keep;
    cli_positionals files; /* the history, then folders */
} settings;

#define AT(field) offsetof(settings, field)

static const char about[] =
    "Keeps what was measured night for night in DB (SQLite), and finds what got slower. The reports of each DIR are "
    "taken\n"
    "as a night, if a figure in them is new. A figure is divided by its ceiling and held against 42 nights before. "
    "What\n"
    "is out by three standard deviations is suspect. Repetitions of it (--again) confirm that or do not.\n"
    "Without a DIR the history is told as it is.";

static const char after_help[] =
    "examples:\n"
    "  analyze history out/zoo/history.db                      the last night, and the models over all of them\n"
    "  analyze history out/zoo/history.db --only gemm_4096     every night of these operations\n"
    "  analyze history history.db out/bert out/llama -o nights add a night, and write all formats\n"
    "  analyze history history.db --format csv -o history.csv  all figures, for other programs\n"
    "  analyze history history.db --keep 30                    keep the last 30 nights\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, and something got slower in the last night, or files were left out\n"
    "  2  wrong usage\n"
    "  3  a folder has no reports or is not there, or the history is damaged and no DIR is given\n"
    "  4  memory, disk or another condition of this machine\n";

static const cli_option options[] = {
    {.name = "again",
     .argument = "DIR",
     .kind = CLI_FILE,
     .offset = AT(again),
     .help = "settle the suspects by their repetitions: DIR/<model>/<operation>/<0 to 7>[-before] as scout_batch -o "
             "writes them; -before: by the program of the night before"},
    {.name = "only",
     .argument = "TEXT",
     .kind = CLI_TEXT,
     .offset = AT(only),
     .help = "in text and csv, only operations with this in their id, model, key or device; in text night for night"},
    {.name = "keep",
     .argument = "N",
     .kind = CLI_INT,
     .offset = AT(keep),
     .min = 1,
     .max = HISTORY_NIGHTS,
     .help = "keep the last N nights (1100), and give the room of the others back"},
    {.name = "output",
     .letter = 'o',
     .argument = "PATH",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write index.html, index.json, … into this folder instead of printing; all formats unless --format is "
             "given. What ends as a format's file does is a file of it: -o history.csv"},
    {.name = "format",
     .argument = "LIST",
     .kind = CLI_LIST,
     .offset = AT(formats),
     .choices = &history_formats[0].name,
     .choice_size = sizeof(history_format),
     .help = "without -o only one, to standard output (text)"},
};

typedef struct run {
    const settings *s;
    history h;
    arena a;
    study study;
    const summary *m; /* NULL: no night is added */
    bool salvage;     /* the damaged one lies beside it */
    status *st;
    status_code code;
} run;

/* ---- writing ---- */

static bool write_file(run *r, const history_format *f, const history_shown *shown) {
    const char *const path = r->s->file ? r->s->output : arena_printf(&r->a, "%s/%s", r->s->output, f->file);
    if (!files_is_link(path)) return history_formats_put(f, shown, path, r->st);
    return status_fail(r->st, STATUS_ENVIRONMENT, "%s: is a link, and nothing is written through links; move it away",
                       path);
}

static const char *folder_of(run *r) {
    const char *const to = r->s->output;
    if (!to || !r->s->file) return to;
    const size_t n = (size_t)(files_base(to) - to);
    return n ? arena_strndup(&r->a, to, n) : ".";
}

static void write_all(run *r) {
    history_index index;
    index_make(&r->h, &index);
    const history_shown shown = {.h = &r->h, .index = &index, .only = r->s->only, .folder = folder_of(r)};
    bool good = !r->s->output || r->s->file || files_make_folders(r->s->output, r->st);
    for (int k = 0; history_formats[k].name && good; k++) {
        const history_format *f = &history_formats[k];
        if (!(r->s->formats & (uint32_t)1 << k)) continue;
        good = r->s->output ? write_file(r, f, &shown) : history_formats_put(f, &shown, NULL, r->st);
    }
    if (!good)
        r->code = r->st->code;
    else if (index.of_last[HISTORY_SLOWER] + index.machines_slower > 0)
        r->code = status_set(r->st, STATUS_INCOMPLETE, "%s", index_sum(&shown));
    else if (r->m && r->m->study->skipped_count > 0)
        r->code = STATUS_INCOMPLETE;
}

/* ---- a night ---- */

static void work(void *context) {
    run *r = context;
    r->h = (history){.a = &r->a, .path = r->s->files.items[0]};
    history_open(&r->h, r->m ? HISTORY_CREATE : r->s->again || r->s->keep > 0 ? HISTORY_WRITE : HISTORY_READ);
    if (r->salvage) history_salvage(&r->h, arena_printf(&r->a, "%s.damaged", r->h.path));
    if (r->m) {
        history_begin(&r->h);
        history_add(&r->h, r->m);
        history_end(&r->h);
    }
    if (r->s->again || r->s->keep > 0) {
        history_begin(&r->h);
        if (r->s->again) history_settle(&r->h, history_repeat_from, &(history_again){&r->h, r->s->again});
        if (r->s->keep > 0) history_keep(&r->h, r->s->keep);
        history_commit(&r->h);
    }
    write_all(r);
}

static status_code run_once(run *r, bool *damaged) {
    const bool good = arena_within(&r->a, work, r, r->st);
    *damaged = !good && r->h.damaged;
    history_close(&r->h);
    return good ? r->code : r->st->code;
}

static status_code run_all(run *r) {
    bool damaged;
    status_code code = run_once(r, &damaged);
    if (!damaged || !r->m) return code;
    status_print(stderr, "analyze", "warning: ", r->st->text);
    *r->st = (status){.code = STATUS_OK};
    if (!history_set_aside(r->s->files.items[0], r->st)) return r->st->code;
    r->salvage = true;
    return run_once(r, &damaged);
}

static status_code with_reports(run *r) {
    summary m;
    const study_options with = {.folders = r->s->files.items + 1,
                                .folder_count = r->s->files.count - 1,
                                .thresholds = verdict_defaults,
                                .told = left_out_tell,
                                .group = true,
                                .each = true};
    if (!study_open(&r->study, &with, r->st)) return r->st->code;
    r->m = &m;
    const status_code code = summary_make(&r->study, 0, &m, r->st) ? run_all(r) : r->st->code;
    left_out_tell(r->study.skipped, r->study.skipped_count);
    study_close(&r->study);
    return code;
}

status_code command_history(int argc, char **argv, status *st) {
    static const char *files[MOST_FOLDERS + 1];
    settings s = {.files.items = files};
    const cli_spec spec = {
        .program = "analyze history",
        .version = version_text,
        .usage = "DB [DIR]... [--again DIR] [--only TEXT] [--keep N] [-o PATH] [--format LIST]",
        .about = about,
        .after = after_help,
        .options = options,
        .option_count = (int)(sizeof options / sizeof options[0]),
        .positional = "DB or DIR",
        .least = 1,
        .most = MOST_FOLDERS + 1,
        .positionals = AT(files),
    };
    if (cli_parse(&spec, argc, argv, &s, st) != CLI_RUN) return st->code;
    if (!formats_settle(&history_formats[0].name, sizeof(history_format), s.output, &s.formats, &s.file, st))
        return st->code;
    if (s.again && access(s.again, R_OK | X_OK) != 0)
        return status_set(st, STATUS_INPUT, "--again %s: cannot be read: %s", s.again, strerror(errno));
    run r = {.s = &s, .st = st};
    return s.files.count > 1 ? with_reports(&r) : run_all(&r);
}
