/* Owns what a run reads and writes in its folder: reports that are kept, reports that are written, and those of
 * operations that are no longer there. */
#include "scout/run/run_internal.h"

#include "common/files.h"
#include "scout/measure/figures.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPORT_BYTES = 64 << 20 };

report_input run_input(const run *r, const run_item *i, double model_us) {
    const run_device *d = i->device < r->device_count ? &r->devices[i->device] : NULL;
    return (report_input){.operation = i->operation,
                          .fusion = run_fusion_about(r, i),
                          .key = i->key,
                          .device = d ? d->about : NULL,
                          .regime = &r->options->regime,
                          .search = &r->search,
                          .measurement = i->measurement,
                          .status = i->status,
                          .code = i->code,
                          .text = i->text,
                          .ceilings = d ? d->ceilings : NULL,
                          .sweep = r->options->op && r->options->k_sweep,
                          .model_us = model_us,
                          .model_ci = r->model_ci};
}

static char *report_path(const run *r, const run_item *i) {
    const options *o = r->options;
    const char *id = i->operation->id;
    const size_t room = strlen(o->output) + strlen(id) + 20;
    char *path = malloc(room);
    if (path && o->output_is_file) snprintf(path, room, "%s", o->output);
    if (path && !o->output_is_file)
        snprintf(path, room, "%s/%s/%s.json", o->output, i->fusion ? "fusions" : "reports", id);
    return path;
}

/* Something else in a report's place, such as a pipe without a reader, would be waited for, and a link leads out of
 * the folder. Nothing of it is opened. */
static bool is_file(const char *path) {
    struct stat about;
    return lstat(path, &about) != 0 || S_ISREG(about.st_mode);
}

bool run_files_refuse_link(const char *path, status *st) {
    if (!files_is_link(path)) return false;
    status_set(st, STATUS_ENVIRONMENT, "%s: is a link, and nothing is written through links; move it away", path);
    return true;
}

static bool are_files(const run *r, status *st) {
    for (int k = 0; k < r->item_count; k++) {
        char *path = report_path(r, &r->items[k]);
        const bool good = path && is_file(path);
        if (!path) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
        if (path && !good && !run_files_refuse_link(path, st))
            status_set(st, STATUS_ENVIRONMENT, "%s: is not a file; move it away", path);
        free(path);
        if (!good) return false;
    }
    return true;
}

static bool join(char *path, size_t room, const options *o, const char *name, status *st) {
    if (snprintf(path, room, "%s/%s", o->output, name) < (int)room) return true;
    return status_fail(st, STATUS_USAGE, "--output: the folder's name is too long");
}

static bool make_folder(const options *o, const char *name, status *st) {
    char path[4096];
    if (!join(path, sizeof path, o, name, st) || run_files_refuse_link(path, st) || !files_make_folders(path, st))
        return false;
    if (access(path, W_OK | X_OK) == 0) return true;
    return status_fail(st, STATUS_ENVIRONMENT, "%s: cannot be written: %s", path, strerror(errno));
}

/* A slip of the hand must not replace the operations by what is said about them. */
bool run_files_prepare(run *r, status *st) {
    const options *o = r->options;
    if (!o->output) return true;
    if (!o->output_is_file) {
        char story[4096];
        if (!make_folder(o, "reports", st) || (r->fusions.count > 0 && !make_folder(o, "fusions", st))) return false;
        if (!join(story, sizeof story, o, "run.json", st) || run_files_refuse_link(story, st)) return false;
        return run_lock_folder(&r->wait, o->output, &r->lock, st) && are_files(r, st);
    }
    char *folder = strdup(o->output);
    if (!folder) return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    folder[files_base(o->output) - o->output] = 0;
    bool good = access(folder[0] ? folder : ".", W_OK | X_OK) == 0;
    if (!good) {
        status_set(st, STATUS_ENVIRONMENT, "%s: cannot be written there: %s", o->output, strerror(errno));
        (void)files_lacks_folder(o->output, st);
    } else if (o->ops_path && files_same(o->output, o->ops_path)) {
        status_set(st, STATUS_USAGE, "%s holds the operations; name another file for the report", o->output);
        good = false;
    }
    free(folder);
    return good;
}

static int device_named(const run *r, const char *name) {
    for (int k = 0; name && k < r->device_count; k++)
        if (strcmp(r->devices[k].about->name, name) == 0) return k;
    return 0;
}

/* With --resume, what was asked for; and always, what --only leaves alone: it is a part of the model's time. */
void run_files_resume(run *r) {
    const json_limits limits = {.bytes = REPORT_BYTES};
    if (!r->options->output || r->options->output_is_file) return;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (i->fusion && i->source == RUN_LEFT) continue; /* it is in no sum */
        if (i->source != RUN_LEFT && !(i->source == RUN_PENDING && r->options->resume)) continue;
        char *path = report_path(r, i);
        const report_input in = run_input(r, i, -1);
        status st = {0};
        json_t *report = path && access(path, F_OK) == 0 ? json_read(path, &limits, &st) : NULL;
        free(path);
        if (st.code != STATUS_OK) run_warn(r, "%s; it is measured again", st.text);
        if (!report) continue;
        const bool fits = r->options->replay ? report_is_like(report, &in) : report_is_of(report, &in);
        if (fits && report_may_serve(report, false)) {
            json_decref(i->measurement);
            i->measurement = report;
            i->device = device_named(r, json_string_value(json_object_get(json_object_get(report, "device"), "name")));
            if (i->source == RUN_PENDING) {
                i->source = RUN_KEPT;
                figures_aim(i->measurement, r->options->target_ci);
            }
        } else {
            json_decref(report);
        }
    }
}

/* The same bytes are not written again: a second run of a whole model takes no time for its disk. What this run has
 * measured is new. */
static bool is_there(const run_item *i, const char *path, const json_t *report) {
    const json_limits limits = {.bytes = REPORT_BYTES};
    status st = {0};
    if (i->source == RUN_MEASURED || access(path, F_OK) != 0) return false;
    json_t *old = json_read(path, &limits, &st);
    const bool same = old && json_equal(old, report);
    json_decref(old);
    return same;
}

static bool is_written(const run *r, const run_item *i) {
    return r->options->output && i->source != RUN_LEFT && i->source != RUN_PENDING;
}

static void note_failure(run *r, const status *st) {
    if (r->failure.code == STATUS_OK)
        status_set(&r->failure, STATUS_ENVIRONMENT, "%s",
                   st->text[0] ? st->text : "out of memory; free some and run again");
}

/* What was said of the model as a whole is of other figures. */
static void forget_whole(run *r, const run_item *i) {
    if (i->source == RUN_MEASURED && r->options->ops_path) run_replay_forget(r);
}

/* The report and its path, both the caller's; false: it is on the disk already, or `failure` says why there is none. */
static bool make_report(run *r, const run_item *i, double model_us, char **path, json_t **report) {
    const report_input in = run_input(r, i, model_us);
    json_builder b = {0};
    status st = {0};
    *path = report_path(r, i);
    *report = json_finish(&b, report_build(&in, &b), &st);
    if (!*path || !*report) note_failure(r, &st);
    if (*path && *report && !is_there(i, *path, *report)) {
        forget_whole(r, i);
        return true;
    }
    free(*path);
    json_decref(*report);
    return false;
}

bool run_files_report(run *r, const run_item *i, double model_us) {
    char *path = NULL;
    json_t *report = NULL;
    status st = {0};
    if (!is_written(r, i) || !make_report(r, i, model_us, &path, &report)) return r->failure.code == STATUS_OK;
    const bool good = json_save(path, report, &st);
    if (!good) note_failure(r, &st);
    free(path);
    json_decref(report);
    return good;
}

/* Of one folder. */
static bool save_reports(run *r, const run_item *items, int items_count, double model_us) {
    char **paths = calloc((size_t)items_count + 1, sizeof *paths);
    json_t **reports = calloc((size_t)items_count + 1, sizeof *reports);
    status st = {0};
    int count = 0;
    for (int k = 0; paths && reports && k < items_count && r->failure.code == STATUS_OK; k++)
        if (is_written(r, &items[k])) count += make_report(r, &items[k], model_us, &paths[count], &reports[count]);
    const bool good = paths && reports && json_save_all((const char *const *)paths, reports, count, &st);
    if (!good) note_failure(r, &st);
    for (int k = 0; k < count; k++) {
        free(paths[k]);
        json_decref(reports[k]);
    }
    free(paths);
    free(reports);
    return good;
}

bool run_files_reports(run *r, double model_us) {
    const bool good = save_reports(r, r->items, r->list.count, model_us);
    return save_reports(r, r->items + r->list.count, r->fusions.count, model_us) && good;
}

/* ---- what is no longer of this list ---- */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool is_listed(char *const *ids, int count, const char *name, size_t length) {
    char id[256];
    if (length >= sizeof id) return false;
    memcpy(id, name, length);
    id[length] = 0;
    const char *key = id;
    return bsearch(&key, ids, (size_t)count, sizeof *ids, by_text) != NULL;
}

static bool is_report(const char *path) {
    const json_limits limits = {.bytes = REPORT_BYTES};
    status st = {0};
    json_t *root = json_read(path, &limits, &st);
    const bool good = root && json_check_schema(root, "report", 1, path, &st);
    json_decref(root);
    return good;
}

/* ".<name>.json.<pid>-<n>.part" of a writer that is no more. */
static bool is_orphan(const char *name) {
    const char *end = strstr(name, ".part");
    if (name[0] != '.' || !end || end[5] || !strstr(name, ".json.")) return false;
    const char *pid = end;
    while (pid > name && pid[-1] != '.') pid--;
    const long number = isdigit((unsigned char)*pid) ? strtol(pid, NULL, 10) : 0;
    return number > 0 && kill((pid_t)number, 0) != 0 && errno == ESRCH;
}

/* ids NULL: only what dead writers left. */
static void clean_entry(const char *folder, const char *name, char *const *ids, int count) {
    char path[4096];
    const size_t n = strlen(name);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return;
    if (is_orphan(name))
        unlink(path);
    else if (ids && name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0 &&
             !is_listed(ids, count, name, n - 5) && is_file(path) && is_report(path))
        unlink(path);
}

static void clean_folder(const char *folder, char *const *ids, int count) {
    DIR *entries = opendir(folder);
    if (!entries) return;
    for (const struct dirent *e = readdir(entries); e; e = readdir(entries)) clean_entry(folder, e->d_name, ids, count);
    closedir(entries);
}

static void clean_listed(const char *folder, const run_item *items, int count) {
    char **ids = calloc((size_t)count + 1, sizeof *ids);
    if (!ids) return;
    for (int k = 0; k < count; k++) ids[k] = (char *)(uintptr_t)items[k].operation->id;
    qsort(ids, (size_t)count, sizeof *ids, by_text);
    clean_folder(folder, ids, count);
    free(ids);
}

void run_files_clean(const run *r) {
    const options *o = r->options;
    char folder[4096];
    if (!o->output || o->output_is_file) return;
    if (snprintf(folder, sizeof folder, "%s/reports", o->output) >= (int)sizeof folder) return;
    clean_folder(o->output, NULL, 0);
    if (!o->ops_path) { /* one operation by --op stands beside what is there */
        clean_folder(folder, NULL, 0);
        return;
    }
    clean_listed(folder, r->items, r->list.count);
    if (!o->no_fusions && !o->compare && snprintf(folder, sizeof folder, "%s/fusions", o->output) < (int)sizeof folder)
        clean_listed(folder, r->items + r->list.count, r->fusions.count);
}
