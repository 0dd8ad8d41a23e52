/* Owns which operations, and which fusions, of two runs are the same: those of one id and key, then those of a key that
 * each run has only once, whatever they are called. */
#include "analyze/compare/comparison.h"

#include "common/files.h"

#include <string.h>

typedef struct holder {
    const study_report *report;
    size_t times;
} holder;

/* The reports of one run, and which of them have a partner. */
typedef struct side {
    const study_report *reports;
    size_t count;
    bool *taken;
} side;

static side side_of(comparison *c, const study_report *reports, size_t count) {
    return (side){reports, count, arena_array(&c->arena, bool, count + 1)};
}

/* Keys of those reports that have no partner yet. */
static map keys_of(comparison *c, const side *of) {
    map keys;
    map_init(&keys, &c->arena);
    for (size_t k = 0; k < of->count; k++) {
        if (of->taken[k]) continue;
        void **place = map_put(&keys, of->reports[k].key);
        if (!*place) *place = arena_zalloc(&c->arena, sizeof(holder));
        holder *h = *place;
        h->report = &of->reports[k];
        h->times++;
    }
    return keys;
}

static void pair(comparison_list *to, const side *before, const study_report *b, const side *after,
                 const study_report *a) {
    before->taken[b - before->reports] = true;
    after->taken[a - after->reports] = true;
    to->rows[to->row_count++] = (comparison_row){.before = b, .after = a};
}

static void match_ids(comparison *c, comparison_list *to, const side *before, const side *after) {
    map ids;
    map_init(&ids, &c->arena);
    for (size_t k = 0; k < after->count; k++) *map_put(&ids, after->reports[k].operation) = (void *)&after->reports[k];
    for (size_t k = 0; k < before->count; k++) {
        const study_report *b = &before->reports[k], *a = map_get(&ids, b->operation);
        if (a && !after->taken[a - after->reports] && strcmp(a->key, b->key) == 0) pair(to, before, b, after, a);
    }
}

static void match_keys(comparison *c, comparison_list *to, const side *before, const side *after) {
    const map ours = keys_of(c, before), theirs = keys_of(c, after);
    for (size_t k = 0; k < before->count; k++) {
        const study_report *b = &before->reports[k];
        if (before->taken[k]) continue;
        const holder *mine = map_get(&ours, b->key), *other = map_get(&theirs, b->key);
        if (mine->times == 1 && other && other->times == 1) pair(to, before, b, after, other->report);
    }
}

/* Names of files that one of the runs has and that could not be read: what the other run has under such a name is not
 * gone.
 */
static map left_out_of(comparison *c, const study *s) {
    map names;
    map_init(&names, &c->arena);
    for (size_t k = 0; k < s->skipped_count; k++)
        *map_put(&names, files_base(s->skipped[k].path)) = (void *)&s->skipped[k];
    return names;
}

/* Those without a partner, which the other run has not. */
static const study_report **rest(comparison *c, const side *of, const study *other, size_t *count) {
    const study_report **list = arena_array(&c->arena, const study_report *, of->count + 1);
    const map left_out = left_out_of(c, other);
    for (size_t k = 0; k < of->count; k++)
        if (!of->taken[k] && !map_get(&left_out, files_base(of->reports[k].path))) list[(*count)++] = &of->reports[k];
    return list;
}

static void match(comparison *c, comparison_list *to, const side *before, const side *after) {
    to->rows = arena_array(&c->arena, comparison_row, before->count + 1);
    match_ids(c, to, before, after);
    match_keys(c, to, before, after);
    to->gone = rest(c, before, c->studies[1], &to->gone_count);
    to->fresh = rest(c, after, c->studies[0], &to->fresh_count);
}

void comparison_match(comparison *c) {
    const study_group *b = c->before, *a = c->after;
    const side before = side_of(c, b->reports, b->count), after = side_of(c, a->reports, a->count);
    match(c, &c->operations, &before, &after);
    const side fused_before = side_of(c, b->fusions, b->fusion_count), fused = side_of(c, a->fusions, a->fusion_count);
    match(c, &c->fusions, &fused_before, &fused);
}
