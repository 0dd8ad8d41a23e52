/* Owns what of a report goes into the history: its figures, and the circumstances that they were taken in. */
#include "analyze/history/history_add.h"

#include "common/files.h"
#include "common/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- a device ---- */

/* "name=…;units=…;driver=580;cublaslt=13.1" without the driver and the libraries: these are what a history is to tell
 * apart, so they make no device of their own. */
static const char *device_of(history *h, const char *instance, const json_t *libraries) {
    const char *told = "";
    for (const char *at = instance; *at;) {
        const size_t n = strcspn(at, ";");
        const char *const member = arena_strndup(h->a, at, n), *const end = strchr(member, '=');
        const size_t name = end ? (size_t)(end - member) : n;
        bool stays = strncmp(member, "driver=", 7) != 0;
        size_t k;
        const json_t *library;
        json_array_foreach(libraries, k, library) {
            const char *const is = json_get_text(library, "name");
            stays = stays && !(strlen(is) == name && strncmp(member, is, name) == 0);
        }
        if (stays) told = arena_printf(h->a, "%s%s%s", told, *told ? ";" : "", member);
        at += n + (at[n] == ';');
    }
    return told;
}

static const char *libraries_of(history *h, const json_t *libraries) {
    const char *told = "";
    size_t k;
    const json_t *library;
    json_array_foreach(libraries, k, library) told = arena_printf(
        h->a, "%s%s%s %s", told, *told ? ", " : "", json_get_text(library, "name"), json_get_text(library, "version"));
    return told;
}

static const json_t *of_class(const json_t *run, const char *device_class) {
    const json_t *one, *all = json_object_get(run, "devices");
    size_t k;
    json_array_foreach(all, k, one) if (strcmp(json_get_text(one, "class"), device_class) == 0) return one;
    return NULL;
}

/* ---- ceilings ---- */

static void put_ceilings(history *h, const history_place *place, const json_t *ceilings) {
    static const char *const rates[][2] = {{"read_tbps", "read TB/s"},
                                           {"copy_tbps", "copy TB/s"},
                                           {"write_tbps", "write TB/s"},
                                           {"launch_us", "launch us"}};
    const json_t *peak;
    size_t k;
    for (k = 0; k < sizeof rates / sizeof rates[0]; k++)
        history_put_ceiling(h, place, rates[k][1], json_get_positive(ceilings, rates[k][0]));
    json_array_foreach(json_object_get(ceilings, "peaks"), k, peak)
        history_put_ceiling(h, place, arena_printf(h->a, "%.32s TFLOP/s", json_get_text(peak, "precision")),
                            json_get_positive(peak, "tflops"));
}

/* ---- a model ---- */

/* A file's content as a hash, "" where there is none. */
static const char *hash_of(history *h, const char *path) {
    status st = {0};
    size_t n;
    char *const text = access(path, R_OK) == 0 ? files_read(path, (size_t)1 << 30, &n, &st) : NULL;
    if (!text) return "";
    const XXH64_hash_t is = XXH3_64bits(text, n);
    free(text);
    return arena_printf(h->a, "%016llx", (unsigned long long)is);
}

static bool has_figure(const study_report *r) {
    return r->count > 0 && r->key && strcmp(r->key, history_machine) != 0 && r->best_us > 0 && study_has_baseline(r) &&
           study_moment(r->taken) > 0;
}

static const char *joined(history *h, const char *a, const char *b) {
    const bool both = a && *a && b && *b;
    return arena_printf(h->a, "%.200s%s%.400s", a ? a : "", both ? " " : "", b ? b : "");
}

/* The circumstances of all of a group's figures, from the first of them and from run.json. */
static bool circumstances(history *h, const study_group *g, json_t **detail, json_t **run, history_place *place,
                          history_setting *setting) {
    status left_out = {0};
    const study_report *first = NULL;
    for (size_t k = 0; k < g->count && !first; k++)
        if (has_figure(&g->reports[k])) first = &g->reports[k];
    if (!first) return false;
    *detail = study_detail(first, &left_out);
    *run = study_beside_report(first->path, "run", &left_out);
    const json_t *libraries = json_object_get(*detail, "libraries");
    const char *const instance = g->device_instance ? g->device_instance : g->device_class;
    *place = (history_place){device_of(h, instance, libraries), g->device, g->regime, g->method};
    *setting = (history_setting){g->driver ? g->driver : "", libraries_of(h, libraries),
                                 joined(h, json_get_text(*run, "program"),
                                        json_get_text(json_object_get(*detail, "search"), "candidates_hash"))};
    return true;
}

static void add_group(history *h, const summary_group *s, const char *folder) {
    const study_group *g = s->group;
    json_t *detail = NULL, *run = NULL;
    history_place place;
    history_setting setting;
    bool any = false;
    if (circumstances(h, g, &detail, &run, &place, &setting)) {
        for (size_t k = 0; k < g->count; k++) {
            const study_report *r = &g->reports[k];
            if (!has_figure(r)) continue;
            const history_figure f = {.place = &place,
                                      .setting = &setting,
                                      .model = g->model,
                                      .folder = folder,
                                      .key = r->key,
                                      .op = r->op,
                                      .operation = r->operation,
                                      .best = joined(h, r->best, r->best_variant),
                                      .count = r->count,
                                      .taken = study_moment(r->taken),
                                      .us = r->best_us,
                                      .ci = r->best_ci,
                                      .default_us = r->baseline_us,
                                      .ceiling_us = r->physical_us > 0 ? r->physical_us : r->ceiling_us,
                                      .clock = r->clock_mhz};
            const bool fresh = history_put(h, &f);
            any = any || fresh;
        }
    }
    if (any) {
        const json_t *const device = of_class(run, g->device_class);
        history_put_run(h, &(history_run){.place = &place,
                                          .setting = &setting,
                                          .model = g->model,
                                          .folder = folder,
                                          .operations = hash_of(h, arena_printf(h->a, "%s/ops.json", folder)),
                                          .count = (int64_t)s->all.measured,
                                          .us = s->all.measured_us,
                                          .ci = verdict_sum_ci(&s->all.now),
                                          .proven_us = s->all.proven_us,
                                          .potential_us = s->all.potential_us,
                                          .ceiling_us = s->all.measured_ceiling_us,
                                          .clock = json_get_number(json_object_get(run, "clock_mhz"), "median")});
        put_ceilings(h, &place, json_object_get(device, "ceilings"));
    }
    json_decref(detail);
    json_decref(run);
}

void history_add(history *h, const summary *m) {
    for (size_t k = 0; k < m->group_count; k++)
        add_group(h, &m->groups[k], m->study->options.folders[m->groups[k].group->folder]);
}

/* ---- repetitions ---- */

static bool read_one(const char *path, double *us, double *ceiling_us) {
    status st = {0};
    json_t *report = access(path, R_OK) == 0 && !files_is_link(path) ? json_read(path, NULL, &st) : NULL;
    const double physical = json_get_positive(report, "physical_time_us");
    *us = json_get_positive(report, "best_time_us");
    *ceiling_us = physical > 0 ? physical : json_get_positive(report, "ceiling_time_us");
    json_decref(report);
    return *us > 0;
}

void history_repeat_from(void *context, const history_suspect *s, history_repeated *to) {
    static const char *const ends[] = {"", "-before"};
    const history_again *from = context;
    if (strchr(s->operation, '/') || strchr(s->model, '/')) return; /* no name leads out of the folder */
    for (int k = 0; k < 2 * SCREEN_REPEATS; k++) {
        double us, ceiling_us;
        const bool before = k % 2;
        const char *const path = arena_printf(from->h->a, "%s/%s/%s/%d%s/reports/%s.json", from->folder, s->model,
                                              s->operation, k / 2, ends[before], s->operation);
        if (!read_one(path, &us, &ceiling_us)) continue;
        if (before) {
            to->before[to->before_count].us = us;
            to->before[to->before_count++].ceiling_us = ceiling_us;
        } else {
            to->now[to->now_count].us = us;
            to->now[to->now_count++].ceiling_us = ceiling_us;
        }
    }
}
