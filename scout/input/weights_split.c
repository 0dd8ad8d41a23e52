/* Entries of ops.json stand for products that are equal but for their weights' values. What these values are good for
 * may differ, and then each kind of them becomes an entry of its own. */
#include "scout/input/weights.h"

#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SAMPLES = 64, SAMPLE_BYTES = 4096 };
static const double worth_looking = 0.3; /* zeros among samples: below it neither 2:4 nor 70 % is near */
static const uint64_t most_bytes = (uint64_t)4 << 30;

typedef struct group {
    const weights_place *first;
    sparsity_facts facts;
    int64_t count;
    int item; /* in the new list */
} group;

/* --- one weight --- */

static const char *text(const json_t *o, const char *name, arena *a) {
    const char *s = json_get_text_or_null(o, name);
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

static bool two_dims(const json_t *o, int64_t *rows, int64_t *cols) {
    const json_t *dims = json_object_get(o, "dims");
    if (json_array_size(dims) != 2) return false;
    *rows = json_integer_value(json_array_get(dims, 0)), *cols = json_integer_value(json_array_get(dims, 1));
    return *rows > 0 && *cols > 0 && *rows < INT32_MAX && *cols < INT32_MAX;
}

/* Few zeros in pieces from all over it: nothing of it needs to be read. */
static bool plainly_dense(const weights_place *at, dtype type, int64_t element) {
    char piece[SAMPLE_BYTES];
    const uint64_t bytes = (uint64_t)at->length;
    double zeros = 0;
    int looked = 0;
    scout_why why;
    for (uint64_t k = 0; k < SAMPLES; k++) {
        const uint64_t size = bytes < sizeof piece ? bytes : sizeof piece;
        const uint64_t from = (bytes - size) / SAMPLES * k / (uint64_t)element * (uint64_t)element;
        if (!weights_file_part(at, from, piece, size, &why)) return true;
        zeros += sparsity_zeros(piece, type, (size_t)size / (size_t)element);
        looked++;
    }
    return zeros / looked < worth_looking;
}

/* False: it cannot be reached, or no more is needed than that it is dense. What numbers below a threshold are
 * depends on all of them, and so does then what the weight is known by. */
static bool look(const weights_place *at, dtype type, int64_t rows, int64_t cols, double threshold,
                 sparsity_facts *facts) {
    const int64_t element = dtype_bytes(type, 1);
    scout_why why;
    if (!sparsity_knows(type) || (uint64_t)at->length > most_bytes || at->length != rows * cols * element) return false;
    if (!(threshold > 0) && plainly_dense(at, type, element)) return false;
    void *bytes = malloc((size_t)at->length);
    const bool good = bytes && weights_file_read(at, bytes, (uint64_t)at->length, &why) &&
                      sparsity_analyse(bytes, type, rows, cols, facts);
    if (good && threshold > 0) facts->hash = XXH3_64bits(bytes, (size_t)at->length);
    free(bytes);
    if (good && facts->nonzeros == 0) return false; /* not trained: it tells nothing of what it will hold */
    return good && (threshold > 0 || strcmp(facts->pattern, "DENSE") != 0);
}

/* --- one entry --- */

static bool alike(const sparsity_facts *a, const sparsity_facts *b) {
    return strcmp(a->pattern, b->pattern) == 0 && a->block == b->block && fabs(a->zeros - b->zeros) < 0.005;
}

/* The weights of an entry by what they are good for; groups[0] are the dense ones and what cannot be reached. of: the
 * group of each. */
static int group_weights(const operation *o, const char *model, double threshold, arena *a, group *groups, int *of) {
    const json_t *list = json_object_get(o->source, "weights");
    const dtype type = o->rec.weight_type != DTYPE_NONE ? o->rec.weight_type : o->rec.type;
    int count = 1;
    groups[0] = (group){.facts = {.pattern = "DENSE"}};
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        weights_place *at = arena_array(a, weights_place, 1);
        sparsity_facts facts;
        int64_t rows, cols;
        *at = (weights_place){model, text(one, "file", a), text(one, "name", a), json_get_int(one, "offset", -1),
                              json_get_int(one, "length", -1)};
        const char *said = json_get_text_or_null(one, "dtype");
        const bool fits = at->file && at->name && said && dtype_from_name(said) == type && two_dims(one, &rows, &cols);
        int g = 0;
        if (fits && look(at, type, rows, cols, threshold, &facts)) {
            const bool dense = strcmp(facts.pattern, "DENSE") == 0;
            if (dense && !groups[0].first) groups[0].first = at, groups[0].facts.hash = facts.hash;
            for (g = dense ? 0 : 1; !dense && g < count && !alike(&groups[g].facts, &facts); g++) {
            }
            if (g == count) groups[count++] = (group){.first = at, .facts = facts};
        }
        groups[g].count++;
        of[k] = g;
    }
    return count;
}

static const char *id_of(const operation *o, const group *g, int number_of, arena *a) {
    const char *const base = o->id;
    if (g->facts.block) return arena_printf(a, "%s_block%d_%d", base, g->facts.block, number_of);
    if (strcmp(g->facts.pattern, "STRUCTURED_24") == 0) return arena_printf(a, "%s_24_%d", base, number_of);
    return arena_printf(a, "%s_zeros%.0f_%d", base, floor(100 * g->facts.zeros), number_of);
}

static void add_groups(const operation *o, group *groups, int count, int64_t factor, operation_list *to, arena *a) {
    for (int g = 0; g < count; g++) {
        operation *one = &to->items[to->count];
        if (groups[g].count == 0) continue;
        *one = *o;
        one->count = factor * groups[g].count;
        one->weight = groups[g].first;
        one->zeros_hash = groups[g].facts.hash;
        groups[g].item = to->count++;
        if (g == 0) continue;
        one->id = one->name = id_of(o, &groups[g], g, a);
        one->sparsity = groups[g].facts.zeros;
        one->pattern = groups[g].facts.pattern;
    }
}

static bool can_split(const operation *o) {
    const size_t n = json_array_size(json_object_get(o->source, "weights"));
    return o->rec.kind == OP_GEMM && o->sparsity == 0 && !o->skip_code && n > 0 && o->count > 0 &&
           o->count % (int64_t)n == 0;
}

typedef struct moved { /* where an entry went */
    int item;          /* that it became as a whole; -1: it was split */
    int *items;        /* by occurrence */
    size_t count;
} moved;

static void follow(operation_flow *f, const moved *to) {
    for (int k = 0; f && k < f->occurrence_count; k++) {
        operation_occurrence *at = &f->occurrences[k];
        const moved *m = &to[at->operation];
        at->operation = m->item >= 0 ? m->item : m->items[(size_t)at->place % m->count];
    }
}

void weights_split(operation_list *list, const char *model, double threshold, arena *a) {
    size_t most = (size_t)list->count;
    for (int k = 0; k < list->count; k++) most += json_array_size(json_object_get(list->items[k].source, "weights"));
    operation_list to = *list;
    moved *ways = arena_array(a, moved, list->count);
    to.items = arena_array(a, operation, most + 1);
    to.count = 0;
    for (int k = 0; model && k < list->count; k++) {
        const operation *o = &list->items[k];
        const size_t n = json_array_size(json_object_get(o->source, "weights"));
        if (!can_split(o)) {
            ways[k].item = to.count;
            to.items[to.count++] = *o;
            continue;
        }
        group *groups = arena_array(a, group, n + 1);
        ways[k] = (moved){-1, arena_array(a, int, n), n};
        const int count = group_weights(o, model, threshold, a, groups, ways[k].items);
        add_groups(o, groups, count, o->count / (int64_t)n, &to, a);
        for (size_t at = 0; at < n; at++) ways[k].items[at] = groups[ways[k].items[at]].item;
    }
    if (!model) return;
    follow(to.flow, ways);
    *list = to;
}

bool weights_wanted(const operation_list *list) {
    for (int k = 0; k < list->count; k++) {
        const json_t *weights = json_object_get(list->items[k].source, "weights");
        if (!can_split(&list->items[k])) continue;
        for (size_t n = 0; n < json_array_size(weights); n++)
            if (json_get_text_or_null(json_array_get(weights, n), "file")) return true;
    }
    return false;
}

void weights_ask(operation_list *list, double threshold) {
    for (int k = 0; k < list->count; k++) {
        operation *o = &list->items[k];
        if (o->rec.kind == OP_GEMM && (o->sparsity > 0 || o->weight)) o->threshold = threshold;
    }
}
