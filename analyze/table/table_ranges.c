/* Owns what a proven range is: two neighbours, measured and each proven by itself, which differ in one size alone, that
 * chose the very same thing, and of which the larger is at most twice the smaller. What lies between was not measured:
 * that the choice is the best one there too is likely because it is at both ends, and nothing more is claimed. So it is
 * only found on request, and only at sizes that are as well aligned as both ends. */
#include "analyze/table/table.h"

#include "common/json.h"
#include "dispatch/scout_dispatch_key.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 3, LARGEST_STEP = 16 };

typedef struct size_place {
    const char *member;
    int which;
} size_place;

/* The sizes that requests change: rows, batches, sequences. All of `all` must be that size; those of `maybe` that are
 * it go with them. */
static const struct {
    const char *kind;
    size_place all[PLACES], maybe[PLACES];
} sizes[] = {
    {"gemm", {{"shape", 0}}, {{NULL, 0}}},
    {"gemm", {{"batch", 0}}, {{NULL, 0}}},
    {"attention", {{"shape", 0}}, {{"mask_shape", 0}}},
    {"attention", {{"shape", 2}, {"kv_len", 0}}, {{"mask_shape", 2}, {"mask_shape", 3}}},
    {"attention", {{"kv_len", 0}}, {{"mask_shape", 3}}},
    {"norm", {{"shape", 0}}, {{NULL, 0}}},
    {"softmax", {{"shape", 0}}, {{NULL, 0}}},
    {"embedding", {{"shape", 0}}, {{NULL, 0}}},
    {"rotary", {{"shape", 0}}, {{NULL, 0}}},
    {"rotary", {{"shape", 2}}, {{NULL, 0}}},
    {"conv", {{"shape", 0}, {"input", 0}}, {{NULL, 0}}},
    {"pool", {{"shape", 0}, {"input", 0}}, {{NULL, 0}}},
    {"recurrent", {{"shape", 0}}, {{NULL, 0}}},
    {"recurrent", {{"shape", 1}}, {{NULL, 0}}},
};

/* One entry, seen as a point along one of its sizes. */
typedef struct point {
    json_t *entry; /* borrowed */
    const char *text;
    scout_dispatch_key key;
    uint32_t mask;
    int64_t size;
} point;

static bool is_kind(const scout_dispatch_key *key, const char *kind) {
    const size_t n = strlen(kind);
    return strncmp(key->form, kind, n) == 0 && (key->form[n] == ';' || key->form[n] == 0);
}

/* Whether an entry has that size, and where in its key. */
static bool place_size(point *p, size_t which) {
    p->mask = 0;
    p->size = 0;
    if (!is_kind(&p->key, sizes[which].kind)) return false;
    for (int k = 0; k < PLACES && sizes[which].all[k].member; k++) {
        const int place = scout_dispatch_key_place(&p->key, sizes[which].all[k].member, sizes[which].all[k].which);
        if (place < 0 || (k > 0 && p->key.numbers[place] != p->size)) return false;
        p->size = p->key.numbers[place];
        p->mask |= 1U << place;
    }
    for (int k = 0; k < PLACES && sizes[which].maybe[k].member; k++) {
        const int place = scout_dispatch_key_place(&p->key, sizes[which].maybe[k].member, sizes[which].maybe[k].which);
        if (place >= 0 && p->key.numbers[place] == p->size) p->mask |= 1U << place;
    }
    return p->size > 0;
}

static int line_order(const point *a, const point *b) {
    const int order = strcmp(a->key.form, b->key.form);
    if (order != 0) return order;
    if (a->mask != b->mask) return a->mask < b->mask ? -1 : 1;
    for (uint32_t k = 0; k < a->key.count; k++)
        if (!(a->mask >> k & 1) && a->key.numbers[k] != b->key.numbers[k])
            return a->key.numbers[k] < b->key.numbers[k] ? -1 : 1;
    return 0;
}

static int by_line(const void *a, const void *b) {
    const point *p = *(point *const *)a, *q = *(point *const *)b;
    const int order = line_order(p, q);
    return order != 0 ? order : (p->size > q->size) - (p->size < q->size);
}

static bool same_member(const json_t *a, const json_t *b, const char *name) {
    const json_t *x = json_object_get(a, name), *y = json_object_get(b, name);
    return x == y || (x && y && json_equal(x, y));
}

static bool same_packing(const json_t *a, const json_t *b) {
    const json_t *x = json_object_get(a, "packing"), *y = json_object_get(b, "packing");
    return !x == !y && (!x || same_member(x, y, "how"));
}

/* The variant of a library's algorithm is its rank for that shape, and its configuration tells the waves of that shape:
 * the algorithm's bytes say what it is. */
static bool decided_alike(const json_t *a, const json_t *b) {
    const char *choice = json_string_value(json_object_get(a, "choice"));
    if (!choice || strcmp(choice, "default") == 0 || !same_member(a, b, "choice") || !same_packing(a, b) ||
        !same_member(a, b, "implementation") || !same_member(a, b, "library") || !same_member(a, b, "plugin") ||
        !same_member(a, b, "algo"))
        return false;
    return json_object_get(a, "algo") || (same_member(a, b, "variant") && same_member(a, b, "config"));
}

static int64_t common_step(int64_t a, int64_t b) {
    int64_t step = 1;
    while (step < LARGEST_STEP && a % (2 * step) == 0 && b % (2 * step) == 0) step *= 2;
    return step;
}

static void add_range(json_builder *b, const point *low, const point *high) {
    json_t *range = json_new_object(b), *places = json_new_array(b);
    for (uint32_t k = 0; k < low->key.count; k++)
        if (low->mask >> k & 1) json_push_int(b, places, k);
    json_put(b, range, "places", places);
    json_put_int(b, range, "from", low->size);
    json_put_int(b, range, "to", high->size);
    json_put_int(b, range, "step", common_step(low->size, high->size));
    json_put_text(b, range, "upper", high->text);
    json_push(b, json_object_get(low->entry, "ranges"), range);
}

/* All points of one size, in lines along it. */
static size_t add_along(json_builder *b, point **line, size_t count) {
    size_t found = 0;
    qsort(line, count, sizeof *line, by_line);
    for (size_t k = 1; k < count; k++) {
        const point *low = line[k - 1], *high = line[k];
        /* twice as large, at most: sizes are positive, so that nothing overflows */
        if (line_order(low, high) != 0 || high->size - low->size > low->size || !decided_alike(low->entry, high->entry))
            continue;
        add_range(b, low, high);
        found++;
    }
    return found;
}

bool table_ranges_add(json_t *entries, size_t *count, status *st) {
    const size_t n = json_array_size(entries);
    point *points = calloc(n + 1, sizeof *points), **line = calloc(n + 1, sizeof(point *));
    json_builder b = {NULL};
    bool good = points && line;
    *count = 0;
    for (size_t k = 0; good && k < n; k++) {
        point *p = &points[k];
        p->entry = json_array_get(entries, k);
        p->text = json_string_value(json_object_get(p->entry, "key"));
        good = p->text && scout_dispatch_key_parse(&p->key, p->text, strlen(p->text));
        json_put(&b, p->entry, "ranges", json_new_array(&b));
    }
    for (size_t which = 0; good && which < sizeof sizes / sizeof sizes[0]; which++) {
        size_t used = 0;
        for (size_t k = 0; k < n; k++)
            if (place_size(&points[k], which)) line[used++] = &points[k];
        *count += add_along(&b, line, used);
    }
    free(line);
    free(points);
    if (!good || b.why) status_set(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    return good && !b.why;
}
