/* Owns the sorting of reports into groups that may be compared, and what happens to two reports of one operation. */
#include "analyze/study/study_internal.h"

#include "common/checked.h"
#include "common/files.h"
#include "common/plain.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More than anything compares. Each costs a look at every report. */
enum { MOST_GROUPS = 256 };

/* ---- names ---- */

/* A model's folder is called as the model is; one of reports by what it lies in. */
static const char *model_of(study *s, const char *folder) {
    char path[PATH_MAX];
    if (!realpath(folder, path)) snprintf(path, sizeof path, "%s", folder);
    const char *name = files_base(path);
    if (strcmp(name, "reports") == 0 && name > path + 1) {
        path[name - path - 1] = 0;
        name = files_base(path);
    }
    return plain_utf8(&s->arena, map_intern(&s->texts, name, strlen(name)));
}

static void add_model(study *s, study_group *g, const char *model) {
    enum { MOST_SAID = 3 };
    if (!g->names) g->names = arena_array(&s->arena, const char *, s->options.folder_count);
    g->names[g->models++] = model;
    if (!g->model)
        g->model = model;
    else if (g->models <= MOST_SAID)
        g->model = arena_printf(&s->arena, "%s + %s", g->model, model);
    else
        g->model = arena_printf(&s->arena, "%zu models", g->models);
}

/* ---- groups ---- */

static const char *difference(const study_group *g, const study_file *f) {
    if (g->device_class != f->device_class) return "device class";
    if (g->regime != f->regime) return "regime";
    return g->method != f->method ? "version of the method" : NULL;
}

static study_group *group_of(study *s, const study_file *f) {
    const study_group *g = NULL; /* of the same model */
    for (size_t k = 0; k < s->group_count; k++) {
        if (s->options.each && s->groups[k].folder != f->folder) continue;
        if (!difference(&s->groups[k], f)) return &s->groups[k];
        if (!g) g = &s->groups[k];
    }
    if (g && !s->options.group)
        guard_fail(&s->guard, STATUS_INPUT,
                   "%s: its %s (%s, %s, method %d) differs from that of the first report (%s, %s, method %d); their "
                   "figures cannot be compared: %s",
                   f->report.path, difference(g, f), f->model, f->regime, (int)f->method, g->device, g->regime,
                   (int)g->method, s->options.instead ? s->options.instead : "keep each in its own folder");
    if (s->group_count == MOST_GROUPS)
        guard_fail(&s->guard, STATUS_INPUT,
                   "%s: is of one more than %d models, device classes, regimes and versions of the method; name fewer "
                   "folders",
                   f->report.path, MOST_GROUPS);
    study_group *groups = arena_array(&s->arena, study_group, s->group_count + 1);
    if (s->group_count) memcpy(groups, s->groups, s->group_count * sizeof *groups);
    s->groups = groups;
    study_group *made = &s->groups[s->group_count++];
    *made = (study_group){.folder = f->folder,
                          .device = f->model,
                          .device_class = f->device_class,
                          .device_instance = f->device_instance,
                          .driver = f->driver,
                          .regime = f->regime,
                          .method = f->method,
                          .units = f->units};
    return made;
}

/* ---- two reports of one operation ---- */

static void join_layers(study *s, study_report *to, const study_report *one, const study_report *other) {
    const size_t count = one->layer_count + other->layer_count;
    const char **all = arena_array(&s->arena, const char *, count + 1);
    if (one->layer_count) memcpy(all, one->layers, one->layer_count * sizeof *all);
    if (other->layer_count) memcpy(all + one->layer_count, other->layers, other->layer_count * sizeof *all);
    to->layers_among = one->layers_among || other->layers_among;
    to->layers = count ? all : NULL;
    to->layer_count = count;
}

/* Two models do it: as often as both together. What was measured stands as the first folder says it that could. */
static void merge(study *s, study_report *to, const study_report *from) {
    const study_report first = *to;
    if (!study_has_baseline(to) && study_has_baseline(from)) *to = *from;
    to->count = checked_add(first.count, from->count);
    to->selected = checked_add(first.selected, from->selected);
    join_layers(s, to, &first, from);
}

typedef struct place {
    study_report *report;
    int folder;
} place;

static void put(study *s, study_group *g, map *places, const study_file *f) {
    const study_report *r = &f->report;
    void **at = map_put(places, r->operation);
    place *there = *at;
    if (!there) {
        study_report *to = r->fusion ? &g->fusions[g->fusion_count++] : &g->reports[g->count++];
        *to = *r;
        there = arena_alloc(&s->arena, sizeof *there);
        *there = (place){to, f->folder};
        *at = there;
    } else if (there->folder == f->folder) {
        study_skip(s, r->path,
                   arena_printf(&s->arena, "is of the same operation as %s", files_base(there->report->path)));
    } else if (!r->fusion != !there->report->fusion || there->report->key != r->key) {
        study_skip(s, r->path,
                   arena_printf(&s->arena, "is of another operation than %s, of the same name", there->report->path));
    } else {
        merge(s, there->report, r);
        there->folder = f->folder;
    }
}

static void fill(study *s, study_group *g, size_t which, const study_file *files, const size_t *of, size_t count) {
    size_t reports = 0, fusions = 0;
    int folder = -1; /* those of one folder stand together */
    map places;
    map_init(&places, &s->arena);
    for (size_t k = 0; k < count; k++) {
        if (of[k] != which) continue;
        reports += !files[k].report.fusion;
        fusions += files[k].report.fusion;
        if (files[k].folder != folder) {
            add_model(s, g, model_of(s, s->options.folders[files[k].folder]));
            study_join_course(&g->course, &s->beside[files[k].folder]);
            g->memory = g->models == 1 ? s->beside[files[k].folder].memory : (study_memory){.at = NULL};
            g->whole = g->models == 1 ? s->beside[files[k].folder].whole : (study_whole){.known = false};
        }
        folder = files[k].folder;
        if (g->device_instance != files[k].device_instance) g->device_instance = NULL;
        if (g->driver != files[k].driver) g->driver = NULL;
    }
    g->reports = arena_array(&s->arena, study_report, reports + 1);
    g->fusions = arena_array(&s->arena, study_report, fusions + 1);
    for (size_t k = 0; k < count; k++)
        if (of[k] == which) put(s, g, &places, &files[k]);
}

/* A run that reached nothing is a part of what it would have been compared with. */
static void join_without_reports(study *s, int folder) {
    study_beside *const b = &s->beside[folder];
    if (s->options.each) {
        study_skip(s, s->options.folders[folder], "has no report: nothing of it is told");
        return;
    }
    for (size_t k = 0; k < s->group_count; k++) {
        study_group *g = &s->groups[k];
        if (!plain_same(g->device_class, b->device_class) || !plain_same(g->regime, b->regime) ||
            g->method != b->method)
            continue;
        add_model(s, g, model_of(s, s->options.folders[folder]));
        study_join_course(&g->course, b);
        g->memory = (study_memory){.at = NULL};
        g->whole = (study_whole){.known = false};
        return;
    }
}

void study_make_groups(study *s, const study_file *files, size_t count) {
    size_t *of = arena_array(&s->arena, size_t, count + 1);
    for (size_t k = 0; k < count; k++) of[k] = (size_t)(group_of(s, &files[k]) - s->groups);
    for (size_t k = 0; k < s->group_count; k++) fill(s, &s->groups[k], k, files, of, count);
    for (int k = 0; k < s->options.folder_count; k++)
        if (!s->beside[k].joined) join_without_reports(s, k);
}
