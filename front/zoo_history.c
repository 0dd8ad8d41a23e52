/* Owns what makes a zoo's run a night: what is measured in it is measured anew, once for all models, by ceilings of the
 * same night; the history keeps it; and what is suspect then is measured again, the program of the night before taking
 * turns with this one. */
#include "front/zoo.h"

#include "common/files.h"
#include "common/json.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REPEATS = 8, MOST_SUSPECTS = 2000, MOST_PROGRAM = 1 << 30, NIGHT_S = 12 * 3600, REPEAT_S = 600 };

/* ---- folders of its own ---- */

static int remove_one(const char *path, const struct stat *is, int kind, struct FTW *at) {
    (void)is;
    (void)kind;
    (void)at;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* All of it; links are removed and not followed. */
static void remove_tree(zoo *z, const char *path) {
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        guard_fail(z->a->guard, STATUS_ENVIRONMENT, "%s: cannot be removed: %s", path, strerror(errno));
}

static void need(zoo *z, bool good, const status *st) {
    if (!good) guard_fail(z->a->guard, st->code, "%s", st->text);
}

/* ---- what a night is called ---- */

static bool is_recent(const char *path) {
    struct stat is;
    return stat(path, &is) == 0 && difftime(time(NULL), is.st_mtime) <= NIGHT_S;
}

static void measure_as_of(zoo *z, const char *night, const char *cache) {
    status st = {0};
    z->night = night;
    z->cache = cache;
    need(z, files_make_folders(cache, &st), &st);
    for (int k = 0; k < z->item_count; k++) {
        z->items[k].with.night = night;
        z->items[k].with.cache = cache;
    }
}

/* A night that was interrupted goes on under its name, so that what it measured is not measured again. After half a
 * day it is another night. That of parts has a name of its own, however long they take. */
void zoo_history_begin(zoo *z, const char *folder) {
    const char *const mark = arena_printf(z->a, "%s/night", folder), *const cache =
                                                                         arena_printf(z->a, "%s/cache", folder);
    status st = {0};
    size_t n = 0;
    if (z->named) measure_as_of(z, z->named, arena_printf(z->a, "%s/nights/%s/cache", folder, z->named));
    if (z->named || !z->again) return;
    char *const begun = is_recent(mark) ? files_read(mark, 100, &n, &st) : NULL;
    z->resumed = begun != NULL;
    const char *night = begun ? arena_strndup(z->a, begun, strcspn(begun, "\n")) : NULL;
    if (!begun) {
        char text[64];
        const time_t now = time(NULL);
        struct tm at;
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &at));
        night = arena_printf(z->a, "%s %d", text, (int)getpid());
        remove_tree(z, cache);
        need(z, files_write(mark, night, strlen(night), &st), &st);
    }
    free(begun);
    measure_as_of(z, night, cache);
}

static void end_night(zoo *z, const char *folder) {
    remove_tree(z, arena_printf(z->a, "%s/again", folder));
    if (z->named) remove_tree(z, arena_printf(z->a, "%s/nights/%s", folder, z->named));
    if (z->named || !z->again) return;
    remove_tree(z, z->cache);
    files_remove(arena_printf(z->a, "%s/night", folder));
}

/* ---- the program of the night before ---- */

static const char *const parts[][2] = {{"scout_batch", "scout_batch"},
                                       {"scout_cuda.so", "scout_cuda.so"},
                                       {"../lib/ceiling-scout/scout_cuda.so", "scout_cuda.so"}};
enum { PARTS = sizeof parts / sizeof parts[0] };

static bool same_file(const char *a, const char *b) {
    status st = {0};
    size_t n = 0, m = 0;
    char *const one = files_read(a, MOST_PROGRAM, &n, &st), *const other = files_read(b, MOST_PROGRAM, &m, &st);
    const bool same = one && other && n == m && memcmp(one, other, n) == 0;
    free(one);
    free(other);
    return same;
}

static const char *part_of(zoo *z, const char *program, int k) {
    return arena_printf(z->a, "%.*s%s", (int)(files_base(program) - program), program, parts[k][0]);
}

/* What is kept from the night before, where it is another program than this one; else NULL. */
static const char *program_before(zoo *z, const char *kept, const char *program) {
    const char *const before = arena_printf(z->a, "%s/scout_batch", kept);
    if (access(before, X_OK) != 0 || files_is_link(before)) return NULL;
    for (int k = 0; k < PARTS; k++) {
        const char *const now = part_of(z, program, k);
        if (access(now, R_OK) == 0 && !same_file(now, arena_printf(z->a, "%s/%s", kept, parts[k][1]))) return before;
    }
    return NULL;
}

static void keep_program(zoo *z, const char *kept, const char *program) {
    status st = {0};
    remove_tree(z, kept);
    need(z, files_make_folders(kept, &st), &st);
    for (int k = 0; k < PARTS; k++) {
        size_t n;
        const char *const from = part_of(z, program, k), *const to = arena_printf(z->a, "%s/%s", kept, parts[k][1]);
        char *const bytes = access(from, R_OK) == 0 ? files_read(from, MOST_PROGRAM, &n, &st) : NULL;
        const bool good = !bytes || (files_write(to, bytes, n, &st) && chmod(to, 0755) == 0);
        free(bytes);
        if (!good) guard_fail(z->a->guard, STATUS_ENVIRONMENT, "%s: cannot be kept: %s", to, strerror(errno));
    }
}

/* ---- the history ---- */

/* NULL: it is kept; else why it is not. */
static const char *keep_history(zoo *z, const char *folder, const zoo_step *step, const char *again) {
    static const char *const formats = "json,html,junit,metrics";
    const char *const log = arena_printf(z->a, "%s/logs/history.log", folder);
    const char **words = arena_array(z->a, const char *, z->item_count + 12);
    char program[PATH_MAX];
    status st = {0};
    int n = 0;
    need(z, start_find_program("analyze", program, &st), &st);
    const char *const first[] = {program, "history", arena_printf(z->a, "%s/history.db", folder), "--format", formats,
                                 "-o",    folder};
    for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) words[n++] = first[k];
    if (again) {
        words[n++] = "--again";
        words[n++] = again;
    }
    for (int k = 0; k < z->item_count && !again; k++)
        if (access(arena_printf(z->a, "%s/summary.json", z->items[k].folder), F_OK) == 0)
            words[n++] = z->items[k].folder;
    zoo_step one = *step;
    one.words = words;
    one.log = log;
    const int code = zoo_step_run(z, &one);
    return code > STATUS_INCOMPLETE && !*step->stop ? zoo_step_why(z, log) : NULL;
}

/* ---- measuring again ---- */

static const zoo_item *item_of(const zoo *z, const char *folder) {
    for (int k = 0; k < z->item_count; k++)
        if (strcmp(z->items[k].folder, folder) == 0) return &z->items[k];
    return NULL;
}

/* One repetition: the operation alone, by ceilings that are there. What it cannot do is missing afterwards. */
static void repeat(zoo *z, const zoo_item *item, const char *program, const char *operation, const char *to,
                   const zoo_step *step) {
    const char *words[20];
    int n = 0;
    const char *const first[] = {program,       arena_printf(z->a, "%s/ops.json", item->folder),
                                 "--only",      operation,
                                 "--no-cache",  "--no-fusions",
                                 "--no-replay", "--quiet",
                                 "-o",          to};
    for (size_t k = 0; k < sizeof first / sizeof first[0]; k++) words[n++] = first[k];
    const char *const gpu = zoo_gpus_of(z, item), *const device = gpu ? zoo_gpus_device(item) : item->with.device;
    if (device) words[n++] = arena_printf(z->a, "--device=%s", device);
    if (item->with.regime) words[n++] = arena_printf(z->a, "--regime=%s", item->with.regime);
    if (item->with.budget > 0) words[n++] = arena_printf(z->a, "--budget=%.17g", item->with.budget);
    if (z->cache) words[n++] = arena_printf(z->a, "--cache-dir=%s", z->cache);
    words[n] = NULL;
    zoo_step one = *step;
    one.words = words;
    one.gpu = gpu;
    one.most_s = REPEAT_S;
    (void)zoo_step_run(z, &one);
}

static void repeat_all(zoo *z, const json_t *suspects, const char *again, const char *program, const char *before,
                       const zoo_step *step, void (*now)(void *context, const char *text)) {
    const json_t *one;
    size_t k;
    json_array_foreach(suspects, k, one) {
        const char *const operation = json_get_text(one, "operation"), *const model = json_get_text(one, "model");
        const zoo_item *const item = item_of(z, json_get_text(one, "folder"));
        if (!item || k >= MOST_SUSPECTS || strchr(operation, '/') || strchr(model, '/')) continue;
        const arena_mark mark = arena_save(z->a);
        now(step->context, arena_printf(z->a, "%s again, %d times, %zu of %zu", zoo_digest_plain(z, operation),
                                        (int)REPEATS, k + 1, json_array_size(suspects)));
        for (int turn = 0; turn < REPEATS && !*step->stop; turn++) {
            repeat(z, item, program, operation, arena_printf(z->a, "%s/%s/%s/%d", again, model, operation, turn), step);
            if (before && !*step->stop)
                repeat(z, item, before, operation,
                       arena_printf(z->a, "%s/%s/%s/%d-before", again, model, operation, turn), step);
        }
        now(step->context, NULL);
        arena_rewind(z->a, mark);
    }
}

static bool any_result(const zoo *z) {
    for (int k = 0; k < z->item_count; k++)
        if (access(arena_printf(z->a, "%s/summary.json", z->items[k].folder), F_OK) == 0) return true;
    return false;
}

zoo_kept zoo_history_end(zoo *z, const char *folder, const zoo_step *step, void (*now)(void *context, const char *text),
                         bool measured) {
    const char *const again = arena_printf(z->a, "%s/again", folder),
                      *const kept = arena_printf(z->a, "%s/program", folder),
                      *const path = arena_printf(z->a, "%s/index.json", folder);
    char program[PATH_MAX];
    status st = {0};
    zoo_kept told = {.text = ""};
    if (!any_result(z)) {
        if (z->named) end_night(z, folder);
        return told;
    }
    need(z, start_find_program("scout_batch", program, &st), &st);
    told.why = keep_history(z, folder, step, NULL);
    json_t *index = told.why || *step->stop ? NULL : json_read(path, NULL, &st);
    const bool suspect = json_array_size(json_object_get(index, "suspects")) > 0;
    if (suspect) { /* of this night, or of one that was interrupted */
        zoo_step repeating = *step;
        repeating.log = arena_printf(z->a, "%s/logs/again.log", folder);
        remove_tree(z, again);
        need(z, files_make_folders(again, &st), &st);
        repeat_all(z, json_object_get(index, "suspects"), again, program, program_before(z, kept, program), &repeating,
                   now);
        json_decref(index);
        /* Stopped in the middle they stay suspect, and the next run measures them again. */
        told.why = *step->stop ? NULL : keep_history(z, folder, step, again);
        index = told.why || *step->stop ? NULL : json_read(path, NULL, &st);
    }
    if (!index && !*step->stop && !told.why) told.why = arena_printf(z->a, "%s", st.text);
    if (!index) return told;
    const json_t *const last = json_object_get(index, "last_night");
    told.text = zoo_digest_plain(z, json_get_text(last, "text"));
    told.slower = (measured || z->resumed || suspect) &&
                  json_get_int(last, "slower", 0) + json_get_int(last, "machines_slower", 0) > 0;
    json_decref(index);
    if (z->night && (program_before(z, kept, program) || access(kept, F_OK) != 0)) keep_program(z, kept, program);
    end_night(z, folder);
    return told;
}
