/* Owns a study: its folders, its groups, and everything that lives as long as it does. */
#include "analyze/study_internal.h"

#include "common/files.h"
#include "common/json.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct files {
    study_file *items;
    size_t count, cap;
} files;

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static void skip(study *s, const char *path, const char *why) {
    size_t cap = s->skipped_count & (s->skipped_count - 1) ? s->skipped_count + 1 : s->skipped_count;
    if (cap == s->skipped_count) {
        study_skipped *more = arena_array(&s->arena, study_skipped, 2 * s->skipped_count + 1);
        if (s->skipped_count) memcpy(more, s->skipped, s->skipped_count * sizeof *more);
        s->skipped = more;
    }
    s->skipped[s->skipped_count++] = (study_skipped){path, why};
}

static int is_report_name(const struct dirent *e) {
    const size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".json") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void read_folder(study *s, files *all, const char *folder, size_t which, bool fusions) {
    struct dirent **names = NULL;
    const int count = scandir(folder, &names, is_report_name, by_name);
    if (count < 0) guard_fail(&s->guard, STATUS_INPUT, "%s: cannot be read: %s", folder, strerror(errno));
    for (int k = 0; k < count; k++) {
        const char *path = arena_printf(&s->arena, "%s/%s", folder, names[k]->d_name);
        free(names[k]);
        arena_grow(&s->arena, (void **)&all->items, &all->cap, all->count, sizeof *all->items);
        study_file *f = &all->items[all->count];
        *f = (study_file){.folder = which};
        const char *why = study_read(s, path, f);
        f->report.fusion = fusions;
        if (why)
            skip(s, path, why);
        else
            all->count++;
    }
    free(names);
}

static void read_all(study *s, files *all) {
    for (int k = 0; k < s->options.folder_count; k++) {
        const char *folder = s->options.folders[k];
        const char *reports = arena_printf(&s->arena, "%s/reports", folder);
        const char *fusions = arena_printf(&s->arena, "%s/fusions", folder);
        if (!is_folder(folder)) guard_fail(&s->guard, STATUS_INPUT, "%s: is no folder", folder);
        read_folder(s, all, is_folder(reports) ? reports : folder, (size_t)k, false);
        if (is_folder(fusions)) read_folder(s, all, fusions, (size_t)k, true);
    }
    if (all->count == 0)
        guard_fail(&s->guard, STATUS_INPUT, "%s: holds no report; measure first: scout_batch OPS.json -o %s",
                   s->options.folders[0], s->options.folders[0]);
}

static bool fits(const study_group *g, const study_file *f) {
    return strcmp(g->device_class, f->device_class) == 0 && strcmp(g->regime, f->regime) == 0 && g->method == f->method;
}

static study_group *group_of(study *s, const study_file *f) {
    for (size_t k = 0; k < s->group_count; k++)
        if (fits(&s->groups[k], f)) return &s->groups[k];
    if (s->group_count > 0 && !s->options.group)
        guard_fail(&s->guard, STATUS_INPUT, "%s: is of another device or regime than the others; say --group",
                   f->report.path);
    study_group *g = &s->groups[s->group_count++];
    *g = (study_group){.device = f->model,
                       .device_class = f->device_class,
                       .device_instance = f->device_instance,
                       .driver = f->driver,
                       .regime = f->regime,
                       .method = f->method,
                       .units = f->units,
                       .model = files_base(s->options.folders[f->folder])};
    return g;
}

static void make_groups(study *s, const files *all) {
    s->groups = arena_array(&s->arena, study_group, all->count);
    for (size_t k = 0; k < all->count; k++) {
        study_group *g = group_of(s, &all->items[k]);
        if (!g->reports) {
            g->reports = arena_array(&s->arena, study_report, all->count);
            g->fusions = arena_array(&s->arena, study_report, all->count);
        }
        if (all->items[k].report.fusion)
            g->fusions[g->fusion_count++] = all->items[k].report;
        else
            g->reports[g->count++] = all->items[k].report;
    }
}

static void open_study(study *s) {
    files all = {0};
    read_all(s, &all);
    make_groups(s, &all);
    for (size_t k = 0; k < s->group_count; k++) study_judge(s, &s->groups[k]);
}

bool study_open(study *s, const study_options *options, status *st) {
    *s = (study){.options = *options};
    guard_init(&s->guard);
    arena_init(&s->arena, &s->guard, (size_t)4 << 30);
    map_init(&s->texts, &s->arena);
    if (guard_enter(&s->guard)) {
        open_study(s);
        return true;
    }
    *st = s->guard.st;
    study_close(s);
    return false;
}

void study_close(study *s) {
    arena_free(&s->arena);
    *s = (study){.group_count = 0};
}

json_t *study_detail(const study_report *r, status *st) {
    const json_limits limits = {.bytes = (size_t)64 << 20};
    return json_read(r->path, &limits, st);
}

json_t *study_run(const study_report *r) {
    char *path = strdup(r->path), *slash = path ? strrchr(path, '/') : NULL;
    json_t *run = NULL;
    if (slash) {
        *slash = 0;
        status st = {0};
        const char *base = files_base(path);
        const bool inside = strcmp(base, "reports") == 0 || strcmp(base, "fusions") == 0;
        char *name = NULL;
        if (asprintf(&name, "%s%s/run.json", path, inside ? "/.." : "") > 0) run = json_read(name, NULL, &st);
        free(name);
        if (run && !json_check_schema(run, "run", 1, r->path, &st)) {
            json_decref(run);
            run = NULL;
        }
    }
    free(path);
    return run;
}

const study_report *study_find(const study_group *g, const char *operation) {
    const study_report *found = NULL;
    const size_t n = strlen(operation);
    for (size_t k = 0; k < g->count; k++) {
        const char *id = g->reports[k].operation;
        if (strcmp(id, operation) == 0) return &g->reports[k];
        if (strncmp(id, operation, n) != 0) continue;
        if (found) return NULL;
        found = &g->reports[k];
    }
    return found;
}

const char *study_shape(const study_report *r, char *text, size_t room) {
    size_t used = 0;
    if (room > 0) text[0] = 0;
    for (int k = 0; k < r->rank && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, k > 0 ? "x" : "", r->shape[k]);
    return text;
}
