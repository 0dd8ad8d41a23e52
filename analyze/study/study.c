/* Owns a study: opening it step by step, giving it back, and finding what is in it. */
#include "analyze/study/study_internal.h"

#include "analyze/study/study.h"
#include "common/files.h"
#include "common/json.h"
#include "common/plain.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Beside the files themselves, which are read one at a time by each thread. 100,000 reports take a twentieth of it. */
static const size_t most_bytes = (size_t)4 << 30;

static void refuse_empty(study *s) {
    const char *folder = s->options.folders[0];
    const size_t others = (size_t)s->options.folder_count - 1;
    const char *more = others ? arena_printf(&s->arena, " and %zu other%s", others, others > 1 ? "s" : "") : "";
    if (s->skipped_count > 0)
        guard_fail(
            &s->guard, STATUS_INPUT,
            "%s%s: no report can be read, %zu file%s left out; measure again: ceiling-scout measure OPS.json -o %s",
            folder, more, s->skipped_count, s->skipped_count == 1 ? " was" : "s were", folder);
    guard_fail(&s->guard, STATUS_INPUT, "%s%s: holds no report; measure first: ceiling-scout measure OPS.json -o %s",
               folder, more, folder);
}

/* What was read lives outside of the arena, which keeps only what stays. */
static void make(study *s, study_file **files) {
    size_t count = 0;
    *files = study_load(s, &count);
    if (count == 0) refuse_empty(s);
    study_make_groups(s, *files, count);
    for (size_t k = 0; k < s->group_count; k++) study_judge(s, &s->groups[k]);
}

static bool make_guarded(study *s, study_file **files) {
    if (!guard_enter(&s->guard)) return false;
    make(s, files);
    return true;
}

bool study_open(study *s, const study_options *options, status *st) {
    study_file *files = NULL;
    *s = (study){.options = *options};
    guard_init(&s->guard);
    arena_init(&s->arena, &s->guard, most_bytes);
    map_init(&s->texts, &s->arena);
    const bool good = make_guarded(s, &files);
    free(files);
    if (good) return true;
    *st = s->guard.st;
    if (options->told) options->told(s->skipped, s->skipped_count);
    study_close(s);
    return false;
}

void study_close(study *s) {
    arena_free(&s->arena);
    *s = (study){.group_count = 0};
}

json_t *study_detail(const study_report *r, status *st) {
    const json_limits limits = {.bytes = STUDY_BYTES};
    json_t *root = json_read(r->path, &limits, st);
    if (!root || json_check_schema(root, "report", 1, r->path, st)) return root;
    json_decref(root);
    return NULL;
}

const char *study_why(const char *text, const char *path) {
    const size_t n = strlen(path);
    return strncmp(text, path, n) == 0 && text[n] == ':' ? text + n + 2 : text;
}

json_t *study_beside_report(const char *path, const char *kind, status *st) {
    const json_limits limits = {.bytes = STUDY_BYTES};
    const size_t folder = (size_t)(files_base(path) - path), room = folder + strlen(kind) + sizeof "../.json";
    char *place = malloc(room);
    json_t *found = NULL;
    if (!place) {
        status_set(st, STATUS_ENVIRONMENT, "%s.json: out of memory; free some and run again", kind);
        return NULL;
    }
    memcpy(place, path, folder);
    static const char *const places[] = {"../", ""};
    for (size_t k = 0; !found && k < sizeof places / sizeof places[0]; k++) {
        status bad = {0};
        snprintf(place + folder, room - folder, "%s%s.json", places[k], kind);
        if (files_is_link(place))
            status_set(&bad, STATUS_INPUT, "%s: is a link; put the file itself there", place);
        else if (access(place, F_OK) == 0)
            found = json_read(place, &limits, &bad);
        if (found && !json_check_schema(found, kind, 1, place, &bad)) {
            json_decref(found);
            found = NULL;
        }
        if (bad.code != STATUS_OK) status_set(st, bad.code, "%s.json: %s", kind, study_why(bad.text, place));
    }
    free(place);
    return found;
}

double study_moment(const char *text) {
    struct tm at = {0};
    const char *const end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &at) : NULL;
    char *rest = NULL;
    const double part = end && *end == '.' && isdigit((unsigned char)end[1]) ? strtod(end, &rest) : 0;
    const char *const zone = rest ? rest : end;
    return zone && plain_same(zone, "Z") && part < 1 ? (double)timegm(&at) + part : NAN;
}

bool study_has_baseline(const study_report *r) { return plain_same(r->status, "OK") && r->baseline_us > 0; }

static const study_report *find_in(const study_report *rows, size_t count, const char *name, size_t n, bool whole,
                                   int *found) {
    const study_report *it = NULL;
    for (size_t k = 0; k < count; k++) {
        if (strncmp(rows[k].operation, name, n) != 0 || (whole && rows[k].operation[n])) continue;
        it = &rows[k];
        ++*found;
    }
    return it;
}

bool study_is_report(const study_group *g, const char *path) {
    for (size_t k = 0; k < g->count + g->fusion_count; k++) {
        const study_report *r = k < g->count ? &g->reports[k] : &g->fusions[k - g->count];
        if (strcmp(files_base(r->path), files_base(path)) == 0 && files_same(r->path, path)) return true;
    }
    return false;
}

const study_report *study_find(const study_group *g, const char *operation) {
    const size_t n = strlen(operation);
    for (int whole = 1; whole >= 0; whole--) {
        int found = 0;
        const study_report *r = find_in(g->reports, g->count, operation, n, whole, &found);
        const study_report *fusion = find_in(g->fusions, g->fusion_count, operation, n, whole, &found);
        if (found == 1) return r ? r : fusion;
    }
    return NULL;
}

static bool has_layer(const study_report *r, const char *layer, bool whole) {
    for (size_t k = 0; k < r->layer_count; k++)
        if (whole ? strcmp(r->layers[k], layer) == 0 : strstr(r->layers[k], layer) != NULL) return true;
    return false;
}

size_t study_find_layer(const study_group *g, const char *layer, const study_report **first) {
    size_t found = 0;
    for (int whole = 1; whole >= 0 && found == 0 && *layer; whole--) {
        for (size_t k = 0; k < g->count; k++) {
            if (g->reports[k].count == 0 || !has_layer(&g->reports[k], layer, whole)) continue;
            if (found++ == 0) *first = &g->reports[k];
        }
    }
    return found;
}

const char *study_layers(const study_report *r, char text[STUDY_LAYERS]) {
    text[0] = 0;
    if (r->layer_count == 0) return text;
    snprintf(text, STUDY_LAYERS, "%s%.*s", r->layers_among ? "among " : "", PLAIN_NAME, r->layers[0]);
    plain_end(text);
    const size_t n = strlen(text);
    if (r->layer_count > 1) snprintf(text + n, STUDY_LAYERS - n, " and %zu more", r->layer_count - 1);
    return text;
}

const char *study_shape(const study_report *r, char *text, size_t room) {
    size_t used = 0;
    if (room > 0) text[0] = 0;
    for (int k = 0; k < r->rank && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, k > 0 ? "x" : "", r->shape[k]);
    return text;
}

void left_out_more(size_t more, const char *what) {
    char text[64];
    if (more == 0) return;
    snprintf(text, sizeof text, "%zu more %s%s", more, what, more == 1 ? "" : "s");
    status_print(stderr, "analyze", "left out: ", text);
}

void left_out_tell(const study_skipped *files, size_t count) {
    char text[1024];
    for (size_t k = 0; k < count && k < LEFT_OUT_NAMED; k++) {
        snprintf(text, sizeof text, "%s: %s", files[k].path, files[k].why);
        status_print(stderr, "analyze", "left out: ", text);
    }
    left_out_more(count > LEFT_OUT_NAMED ? count - LEFT_OUT_NAMED : 0, "file");
}

static bool check(const char *high, double x, const char *medium, double y, status *st) {
    if (x >= y) return true;
    return status_fail(st, STATUS_USAGE, "--%s %g is below --%s %g: no operation could be MEDIUM", high, x, medium, y);
}

bool thresholds_check(const verdict_thresholds *t, status *st) {
    return check("high-proven", t->high_proven, "medium-proven", t->medium_proven, st) &&
           check("high-potential", t->high_potential, "medium-potential", t->medium_potential, st);
}
