/* Owns the way from folders to reports as they were read: which files there are, and reading them with as many threads
 * as there are processors. The result does not depend on which thread read which file. */
#include "analyze/study/study_internal.h"

#include "common/files.h"
#include "common/plain.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_THREADS = 16, FILES_PER_THREAD = 64 };

typedef struct load {
    study *s;
    study_file *files;
    size_t count, cap;
    DIR *folder; /* that is being read */
    study_held held;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of the study: its arena, its texts */
    status st;            /* why it failed */
} load;

/* Through the guard that the study's arena has at the moment. */
#define fail(l, ...) guard_fail((l)->s->arena.guard, __VA_ARGS__)

/* ---- which files ---- */

void study_skip(study *s, const char *path, const char *why) {
    const size_t n = s->skipped_count;
    if ((n & (n - 1)) == 0) { /* full: 0, 1, 2, 4, … */
        study_skipped *more = arena_array(&s->arena, study_skipped, n ? 2 * n : 1);
        if (n) memcpy(more, s->skipped, n * sizeof *more);
        s->skipped = more;
    }
    s->skipped[s->skipped_count++] = (study_skipped){path, plain_utf8(&s->arena, why)};
}

static bool is_report_name(const char *name) {
    const size_t n = strlen(name);
    return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void add_file(load *l, const char *path, const study_file *as) {
    if (files_is_link(path)) { /* nothing is read that lies elsewhere */
        study_skip(l->s, path, "is a link; put the file itself there");
        return;
    }
    if (l->count == l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 256;
        study_file *more = realloc(l->files, cap * sizeof *more);
        if (!more) fail(l, STATUS_ENVIRONMENT, "out of memory; free some and run again");
        l->files = more;
        l->cap = cap;
    }
    study_file *f = &l->files[l->count++];
    *f = *as;
    f->report.path = path;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const study_file *)a)->report.path, ((const study_file *)b)->report.path);
}

static void list_folder(load *l, const char *folder, const study_file *as) {
    const size_t first = l->count;
    l->folder = opendir(folder);
    if (!l->folder)
        fail(l, errno == ENOMEM || errno == EMFILE ? STATUS_ENVIRONMENT : STATUS_INPUT, "%s: cannot be read: %s",
             folder, strerror(errno));
    for (const struct dirent *e = readdir(l->folder); e; e = readdir(l->folder))
        if (is_report_name(e->d_name)) add_file(l, arena_printf(&l->s->arena, "%s/%s", folder, e->d_name), as);
    closedir(l->folder);
    l->folder = NULL;
    if (l->count > first) qsort(l->files + first, l->count - first, sizeof *l->files, by_path);
}

/* A folder inside of the one that was named; one that is a link would lead elsewhere. */
static bool has_folder(load *l, const char *path) {
    if (!is_folder(path)) return false;
    if (!files_is_link(path)) return true;
    study_skip(l->s, path, "is a link; name the folder that it leads to instead");
    return false;
}

/* A folder that counts twice would double the model's time. */
static void refuse_twice(load *l, int k, const char *reports, struct stat *seen) {
    const char *const *folders = l->s->options.folders;
    if (stat(reports, &seen[k]) != 0) return;
    for (int j = 0; j < k; j++)
        if (seen[j].st_ino == seen[k].st_ino && seen[j].st_dev == seen[k].st_dev)
            fail(l, STATUS_USAGE, "%s: is the same folder as %s; name it once", folders[k], folders[j]);
}

static void list_all(load *l) {
    study *s = l->s;
    struct stat *seen = arena_array(&s->arena, struct stat, s->options.folder_count);
    s->beside = arena_array(&s->arena, study_beside, s->options.folder_count);
    for (int k = 0; k < s->options.folder_count; k++) {
        const char *folder = s->options.folders[k];
        const char *reports = arena_printf(&s->arena, "%s/reports", folder);
        const char *fusions = arena_printf(&s->arena, "%s/fusions", folder);
        const study_file as = {.folder = k};
        if (!is_folder(folder))
            fail(l, STATUS_INPUT, "%s: is not a folder; give a model's folder, or a folder of reports", folder);
        if (!has_folder(l, reports)) reports = folder;
        refuse_twice(l, k, reports, seen);
        list_folder(l, reports, &as);
        if (has_folder(l, fusions)) list_folder(l, fusions, &as);
        map_init(&s->beside[k].unreadable, &s->arena);
        study_look_beside(s, folder, reports, &l->held, &s->beside[k]);
    }
}

/* ---- reading them ---- */

static void keep(load *l, study_scanner *scanner, study_file *f) {
    study *s = l->s;
    if (scanner->no_memory) fail(l, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    if (f->is == STUDY_REPORT)
        study_scan_texts(&s->texts, f);
    else
        f->why = map_intern(&s->texts, scanner->why, strlen(scanner->why));
}

/* A jump must not leave the thread: while it holds the lock, the arena fails through the thread's own guard. */
static void keep_guarded(load *l, study_scanner *scanner, study_file *f) {
    guard own;
    guard_init(&own);
    pthread_mutex_lock(&l->lock);
    guard *const outer = l->s->arena.guard;
    l->s->arena.guard = &own;
    if (guard_enter(&own)) {
        keep(l, scanner, f);
    } else {
        if (!atomic_load(&l->failed)) l->st = own.st;
        atomic_store(&l->failed, true);
    }
    l->s->arena.guard = outer;
    pthread_mutex_unlock(&l->lock);
}

static void read_one(load *l, study_scanner *scanner, study_file *f) {
    const char *path = f->report.path;
    status st = {0};
    size_t n = 0;
    char *bytes = files_read(path, STUDY_BYTES, &n, &st);
    if (bytes) {
        study_scan(scanner, bytes, n, f);
    } else {
        snprintf(scanner->why, sizeof scanner->why, "%.*s", STUDY_WHY - 1, study_why(st.text, path));
        f->is = STUDY_SKIPPED;
    }
    keep_guarded(l, scanner, f);
    free(bytes);
}

static void *read_some(void *of) {
    load *l = of;
    study_scanner scanner = {.rows = NULL};
    for (size_t k = atomic_fetch_add(&l->next, 1); k < l->count && !atomic_load(&l->failed);
         k = atomic_fetch_add(&l->next, 1))
        read_one(l, &scanner, &l->files[k]);
    study_scan_free(&scanner);
    return NULL;
}

static int thread_count(size_t count) {
    cpu_set_t set;
    int threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    return (size_t)threads < count / FILES_PER_THREAD ? threads : (int)(count / FILES_PER_THREAD);
}

/* This thread reads too; where no other can be had, alone. */
static void read_all(load *l) {
    pthread_t threads[MOST_THREADS];
    int started = 0;
    const int wanted = thread_count(l->count) - 1;
    while (started < wanted && pthread_create(&threads[started], NULL, read_some, l) == 0) started++;
    read_some(l);
    for (int k = 0; k < started; k++) pthread_join(threads[k], NULL);
}

/* A report is called as its operation. */
static void skip_report(study *s, const study_file *f) {
    const char *const name = files_base(f->report.path);
    map *const unreadable = &s->beside[f->folder].unreadable;
    *map_put(unreadable, map_intern(&s->texts, name, strlen(name) - strlen(".json"))) = s;
    study_skip(s, f->report.path, f->why);
}

static void load_all(load *l) {
    list_all(l);
    pthread_mutex_init(&l->lock, NULL);
    read_all(l);
    pthread_mutex_destroy(&l->lock);
    if (atomic_load(&l->failed)) fail(l, l->st.code, "%s", l->st.text);
    size_t kept = 0;
    for (size_t k = 0; k < l->count; k++) {
        study_file *f = &l->files[k];
        if (f->is == STUDY_REPORT) {
            study_name_layers(l->s, &l->s->beside[f->folder], f->weight, &f->report);
            l->files[kept++] = *f;
        }
        if (f->is == STUDY_SKIPPED) skip_report(l->s, f);
    }
    l->count = kept;
    study_count_absent(l->s, l->files, l->count);
}

/* What is in `l` lives in the caller's frame, which no jump leaves. */
static bool load_guarded(load *l, guard *own) {
    if (!guard_enter(own)) return false;
    load_all(l);
    return true;
}

study_file *study_load(study *s, size_t *count) {
    load l = {.s = s};
    guard *const outer = s->arena.guard;
    guard own;
    guard_init(&own);
    s->arena.guard = &own;
    const bool good = load_guarded(&l, &own);
    s->arena.guard = outer;
    *count = l.count;
    if (good) return l.files;
    if (l.folder) closedir(l.folder);
    study_let_go(&l.held);
    free(l.files);
    guard_fail(outer, own.st.code, "%s", own.st.text);
}
