/* Owns which operations of two runs are the same: those of one id and key, then those of a key that each run
 * has only once, whatever they are called. */
#include "analyze/compare/comparison.h"

#include <string.h>

typedef struct holder {
    const study_report *report;
    size_t times;
} holder;

/* Keys of those reports that have no partner yet. */
static map keys_of(comparison *c, const study_group *g, const bool *taken) {
    map keys;
    map_init(&keys, &c->arena);
    for (size_t k = 0; k < g->count; k++) {
        if (taken[k]) continue;
        void **place = map_put(&keys, g->reports[k].key);
        if (!*place) *place = arena_zalloc(&c->arena, sizeof(holder));
        holder *h = *place;
        h->report = &g->reports[k];
        h->times++;
    }
    return keys;
}

static void pair(comparison *c, const study_report *b, const study_report *a, bool *before, bool *after) {
    before[b - c->before->reports] = true;
    after[a - c->after->reports] = true;
    c->rows[c->row_count++] = (comparison_row){.before = b, .after = a};
}

static void match_ids(comparison *c, bool *before, bool *after) {
    map ids;
    map_init(&ids, &c->arena);
    for (size_t k = 0; k < c->after->count; k++) *map_put(&ids, c->after->reports[k].operation) = &c->after->reports[k];
    for (size_t k = 0; k < c->before->count; k++) {
        const study_report *b = &c->before->reports[k], *a = map_get(&ids, b->operation);
        if (a && !after[a - c->after->reports] && strcmp(a->key, b->key) == 0) pair(c, b, a, before, after);
    }
}

static void match_keys(comparison *c, bool *before, bool *after) {
    const map ours = keys_of(c, c->before, before), theirs = keys_of(c, c->after, after);
    for (size_t k = 0; k < c->before->count; k++) {
        const study_report *b = &c->before->reports[k];
        if (before[k]) continue;
        const holder *mine = map_get(&ours, b->key), *other = map_get(&theirs, b->key);
        if (mine->times == 1 && other && other->times == 1) pair(c, b, other->report, before, after);
    }
}

static const study_report **rest(comparison *c, const study_group *g, const bool *taken, size_t *count) {
    const study_report **list = arena_array(&c->arena, const study_report *, g->count + 1);
    for (size_t k = 0; k < g->count; k++)
        if (!taken[k]) list[(*count)++] = &g->reports[k];
    return list;
}

void comparison_match(comparison *c) {
    bool *before = arena_array(&c->arena, bool, c->before->count + 1);
    bool *after = arena_array(&c->arena, bool, c->after->count + 1);
    c->rows = arena_array(&c->arena, comparison_row, c->before->count + 1);
    match_ids(c, before, after);
    match_keys(c, before, after);
    c->gone = rest(c, c->before, before, &c->gone_count);
    c->fresh = rest(c, c->after, after, &c->fresh_count);
}
