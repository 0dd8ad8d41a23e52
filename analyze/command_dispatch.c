/* analyze dispatch: from reports to the table that deployment loads: dispatch.json, and the same as a C header. */
#include "analyze/command.h"

#include "analyze/study/study.h"
#include "analyze/table/table.h"
#include "common/files.h"
#include "common/json.h"
#include "common/version.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_FOLDERS = 1024, MOST_TABLES = 256, PREFIX_ROOM = 33 };

typedef struct settings {
    const char *output, *header, *prefix, *since, *sign;
    const char *tables[MOST_TABLES];
    int table_count;
    verdict_thresholds thresholds;
    cli_positionals folders;
} settings;

static bool add_table(void *destination, const char *argument, status *st) {
    settings *s = destination;
    if (s->table_count < MOST_TABLES && *argument) {
        s->tables[s->table_count++] = argument;
        return true;
    }
    return status_fail(st, STATUS_USAGE, *argument ? "--merge: at most %d tables" : "--merge needs a file",
                       MOST_TABLES);
}

static bool set_prefix(void *destination, const char *argument, status *st) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz", all[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const size_t n = strlen(argument);
    ((settings *)destination)->prefix = argument;
    if (n > 0 && n < PREFIX_ROOM && strspn(argument, letters) > 0 && strspn(argument, all) == n &&
        strncmp(argument, "scout_dispatch", 14) != 0)
        return true;
    return status_fail(
        st, STATUS_USAGE,
        "--prefix: a small letter, then small letters, digits and _, at most %d; the library has scout_dispatch",
        PREFIX_ROOM - 1);
}

#define AT(field) offsetof(settings, field)

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .argument = "TABLE.json",
     .kind = CLI_FILE,
     .offset = AT(output),
     .help = "write the table to this file (required)"},
    {.name = "header",
     .argument = "FILE.h",
     .kind = CLI_FILE,
     .offset = AT(header),
     .help = "also write it as a self-contained header of C11 and C++17"},
    {.name = "prefix",
     .argument = "NAME",
     .kind = CLI_CALL,
     .call = set_prefix,
     .help = "prefix of every name in the header (dispatch)"},
    {.name = "merge",
     .argument = "OTHER.json",
     .kind = CLI_CALL,
     .call = add_table,
     .help = "add the entries of another table of this device class; repeatable"},
    {.name = "since",
     .argument = "OLD.json",
     .kind = CLI_FILE,
     .offset = AT(since),
     .help = "say what runs otherwise than by this table, which may be the one that is written"},
    {.name = "sign",
     .argument = "KEY",
     .kind = CLI_FILE,
     .offset = AT(sign),
     .help = "sign the table with this Ed25519 key of OpenSSH, into TABLE.json.sig (ssh-keygen)"},
    THRESHOLDS_OPTION(settings, thresholds, margin, "margin",
                      "least fraction of the default's time that a replacement must save (0.02)"),
};

static const char about[] =
    "Writes the table that deployment loads with libscout_dispatch: the implementation to run for each "
    "measured\noperation. Only a proven winner replaces the library's default. DIR is a model's folder or a folder of "
    "reports.\nOf an operation in several tables the better proven entry is kept; entries that disagree are reported.";

static const char after[] =
    "examples:\n"
    "  analyze dispatch out/bert -o out/bert/dispatch.json --header out/bert/dispatch.h\n"
    "  analyze dispatch out/bert -o all.json --merge out/llama/dispatch.json   two models, one table\n"
    "  analyze dispatch out/*@* -o all.json --since all.json                   all models, and what has changed\n"
    "  analyze dispatch out/bert -o bert.json --sign ~/.ssh/id_ed25519         for deployments that demand a "
    "signature\n"
    "\n"
    "exit codes:\n"
    "  0  done\n"
    "  1  done, but reports were left out, or an operation has no valid baseline\n"
    "  2  wrong usage\n"
    "  3  there are no reports, or the reports or tables differ in device class, regime or method\n"
    "  4  memory, disk or another condition of this machine\n";

/* What becomes of a run, for the line at its end. */
typedef struct outcome {
    size_t choices[3], ranges, unmeasured, unfit;
} outcome;

static json_t *new_root(const study_group *g, status *st) {
    json_builder b = {NULL};
    json_t *device = table_entry_device(g, st);
    if (!device) return NULL;
    json_t *root = json_new_object(&b), *models = json_new_array(&b);
    json_put_text(&b, root, "schema", "ceiling-scout/dispatch/1");
    for (size_t k = 0; k < g->models; k++) json_push_text(&b, models, g->names[k]);
    json_put(&b, root, "device", device);
    json_put_text(&b, root, "regime", g->regime);
    json_put_int(&b, root, "method", g->method);
    json_put(&b, root, "models", models);
    json_put(&b, root, "entries", json_new_array(&b));
    return json_finish(&b, root, st);
}

/* What cannot stand in a table is told, and all else goes on. */
static bool add_reports(const study_group *g, table_merge *m, outcome *o, status *st) {
    for (size_t k = 0; k < g->count; k++) {
        const study_report *r = &g->reports[k];
        if (!table_entry_measured(r)) {
            o->unmeasured++;
            continue;
        }
        status why = {0};
        json_t *entry = table_entry_make(r, json_object_get(m->root, "device"), &why);
        if (!entry && why.code != STATUS_INPUT) {
            *st = why;
            return false;
        }
        if (!entry) {
            if (o->unfit++ < LEFT_OUT_NAMED) status_print(stderr, "analyze", "left out: ", why.text);
        } else if (!table_merge_entry(m, entry, r->path, st)) {
            return false;
        }
    }
    return true;
}

static void count_choices(const json_t *entries, outcome *o) {
    static const char *const names[] = {"default", "tuned", "custom"};
    for (size_t k = 0; k < json_array_size(entries); k++) {
        const char *choice = json_string_value(json_object_get(json_array_get(entries, k), "choice"));
        for (int n = 0; n < 3; n++) o->choices[n] += choice && strcmp(choice, names[n]) == 0;
    }
}

static bool add_all(const settings *s, const study_group *g, json_t *root, outcome *o, status *st) {
    table_merge m;
    status end = {0};
    bool good = table_merge_begin(&m, root, s->folders.items[0], stderr, st) && add_reports(g, &m, o, st);
    for (int k = 0; good && k < s->table_count; k++) good = table_merge_file(&m, s->tables[k], st);
    if (!table_merge_end(&m, &end) && good) {
        *st = end;
        good = false;
    }
    if (!good || !table_ranges_add(json_object_get(root, "entries"), &o->ranges, st)) return false;
    count_choices(json_object_get(root, "entries"), o);
    return true;
}

/* The bytes of the table, and how deployment reads them: what the library refuses is not written. Both are the
 * caller's. */
static char *checked(const json_t *root, size_t *size, dispatch_table **t, status *st) {
    char why[512];
    char *text = json_text(root, size, st);
    if (text && (*t = dispatch_table_read(text, *size, why, sizeof why))) return text;
    if (text) status_set(st, STATUS_INPUT, "no table can be made of the reports: %s", why);
    free(text);
    return NULL;
}

static const char *beside_of(const settings *s, char *path, size_t room) {
    return snprintf(path, room, "%s.sig", s->output) < (int)room ? path : NULL;
}

/* Of what is signed, what the signature is of is in this program's memory alone. */
static bool begin_signature(const settings *s, const files_out *table, const char *text, size_t size, files_out *out,
                            status *st) {
    char path[4096];
    table_signature made;
    if (table->direct || !beside_of(s, path, sizeof path))
        return status_fail(st, STATUS_USAGE, "--sign: -o names no file that a signature could lie beside");
    if (!table_sign(text, size, s->sign, &made, st) || !files_begin(out, path, st)) return false;
    files_append(out, made.text, made.size);
    return true;
}

/* All files are ready before the first is in its place. The signature comes first: without it nothing is replaced. */
static bool save(const settings *s, const study_group *g, const json_t *root, status *st) {
    files_out table, signature, header, *ready[3];
    dispatch_table *t = NULL;
    size_t size = 0;
    int count = 0, done = 0;
    char *text = checked(root, &size, &t, st);
    bool good = text && files_begin(&table, s->output, st);
    const bool begun = good;
    if (good && s->sign && (good = begin_signature(s, &table, text, size, &signature, st))) ready[count++] = &signature;
    if (begun) ready[count++] = &table;
    if (good) files_append(&table, text, size);
    if (good && s->header && (good = files_begin(&header, s->header, st))) {
        table_header_write(&header, t, s->prefix, g->model ? g->model : "");
        ready[count++] = &header;
    }
    while (good && done < count) good = files_commit(ready[done++], st);
    while (done < count) files_abort(ready[done++]);
    dispatch_table_free(t);
    free(text);
    return good;
}

static void show(const settings *s, const study_group *g, const outcome *o) {
    char line[256];
    snprintf(line, sizeof line, "%zu operations of %.80s on %.80s", o->choices[0] + o->choices[1] + o->choices[2],
             g->model ? g->model : "", g->device ? g->device : "");
    status_print(stdout, s->output, NULL, line);
    printf("  %zu by a tuned library, %zu by another kernel, %zu by the default; %zu proven ranges\n", o->choices[1],
           o->choices[2], o->choices[0], o->ranges);
    if (o->unmeasured > 0)
        printf("  %zu have no measured baseline and no entry: parts of others, operations without work, failures\n",
               o->unmeasured);
}

/* A signature that is left behind is of the table before. */
static void tell_signature(const settings *s) {
    char path[4096];
    if (!s->sign && beside_of(s, path, sizeof path) && access(path, F_OK) == 0)
        status_print(stdout, path, NULL, "signs the table that was here before; --sign KEY makes a new one");
}

/* A merged table's measurements cannot be repeated here. */
static bool refuse_overwriting(const study *data, const char *path, status *st) {
    if (!path || !study_is_report(&data->groups[0], path)) return true;
    return status_fail(st, STATUS_USAGE, "%s is one of the reports; name another file for the table", path);
}

static status_code tabulate(const settings *s, const study *data, status *st) {
    outcome o = {.unfit = 0};
    if (data->group_count != 1 || data->groups[0].count == 0)
        return status_set(st, STATUS_INPUT, "%s: holds no report of an operation; run scout_batch first",
                          s->folders.items[0]);
    const study_group *g = &data->groups[0];
    if (!refuse_overwriting(data, s->output, st) || !refuse_overwriting(data, s->header, st)) return st->code;
    json_t *root = new_root(g, st);
    json_t *before = root && s->since ? table_merge_read(root, s->folders.items[0], s->since, st) : NULL;
    bool good = root && (before || !s->since) && add_all(s, g, root, &o, st) && save(s, g, root, st);
    left_out_more(o.unfit > LEFT_OUT_NAMED ? o.unfit - LEFT_OUT_NAMED : 0, "report");
    if (good) show(s, g, &o);
    if (good) tell_signature(s);
    good = good && (!before || table_changes_tell(root, before, s->since, stdout, st));
    json_decref(before);
    json_decref(root);
    if (!good) return st->code;
    return data->skipped_count > 0 || o.unfit > 0 || g->without_baseline > 0 ? STATUS_INCOMPLETE : STATUS_OK;
}

static status_code make_table(const settings *s, status *st) {
    study data;
    const study_options with = {.folders = s->folders.items,
                                .folder_count = s->folders.count,
                                .thresholds = s->thresholds,
                                .told = left_out_tell,
                                .instead = "make a table of each, from its own folder"};
    if (!s->output) return status_set(st, STATUS_USAGE, "no output is named; give -o TABLE.json");
    if (s->header && files_same(s->header, s->output))
        return status_set(st, STATUS_USAGE, "--header and -o name the same file");
    if (!study_open(&data, &with, st)) return st->code;
    const status_code code = tabulate(s, &data, st);
    left_out_tell(data.skipped, data.skipped_count);
    study_close(&data);
    return code;
}

status_code command_dispatch(int argc, char **argv, status *st) {
    static const char *folders[MOST_FOLDERS];
    settings s = {.prefix = "dispatch", .thresholds = verdict_defaults, .folders.items = folders};
    const cli_spec spec = {
        .program = "analyze dispatch",
        .version = version_text,
        .usage = "DIR... -o TABLE.json [--header FILE.h] [--merge OTHER.json]... [--since OLD.json] [--sign KEY]",
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
    case CLI_RUN: return make_table(&s, st);
    case CLI_DONE: return STATUS_OK;
    case CLI_WRONG: break;
    }
    return st->code;
}
