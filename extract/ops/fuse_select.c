/* Choosing among candidates that overlap: the set that saves most bytes while no operation is joined twice. A
 * recognised operation and its parts are different operations: joining the parts and joining the whole to its
 * neighbours add up. Overlapping candidates form groups; small groups are searched to the end, large ones greedily with
 * improvement. */
#include "extract/ops/fuse_internal.h"

#include "common/checked.h"

#include <stdlib.h>

enum {
    SELECT_EXACT = 20, /* candidates of a group that are still searched to the end */
    SELECT_ROUNDS = 3  /* of improvement in a larger group */
};

typedef struct select_group {
    fuse_candidate **items; /* most saving first */
    int count;
    const uint32_t *conflicts; /* by item: the items it overlaps with, as bits; only for exact search */
} select_group;

typedef struct select_state {
    fuse *f;
    size_t *parent;            /* union-find over candidates */
    size_t *first_of;          /* by node id: 1 + a candidate that covers it */
    fuse_candidate **taken_by; /* by node id: the selected candidate that covers it */
} select_state;

static size_t root_of(size_t *parent, size_t k) {
    while (parent[k] != k) k = parent[k] = parent[parent[k]];
    return k;
}

/* Numbers the operations that occur in candidates, from 0. */
static size_t number_operations(fuse *f) {
    size_t count = 0;
    for (size_t k = 0; k < f->count; k++)
        for (int o = 0; o < f->found[k].op_count; o++) f->found[k].ops[o]->mark = -1;
    for (size_t k = 0; k < f->count; k++)
        for (int o = 0; o < f->found[k].op_count; o++)
            if (f->found[k].ops[o]->mark < 0) f->found[k].ops[o]->mark = (int64_t)count++;
    return count;
}

static void join_groups(select_state *s) {
    for (size_t k = 0; k < s->f->count; k++) {
        const fuse_candidate *c = &s->f->found[k];
        for (int o = 0; o < c->op_count; o++) {
            size_t *seen = &s->first_of[c->ops[o]->mark];
            if (*seen)
                s->parent[root_of(s->parent, k)] = root_of(s->parent, *seen - 1);
            else
                *seen = k + 1;
        }
    }
}

static int by_saving(const void *a, const void *b) {
    const fuse_candidate *x = *(fuse_candidate *const *)a, *y = *(fuse_candidate *const *)b;
    if (x->saved != y->saved) return x->saved < y->saved ? 1 : -1;
    if (x->op_count != y->op_count) return x->op_count - y->op_count;
    return x < y ? -1 : x > y;
}

static void cover(select_state *s, const fuse_candidate *c, fuse_candidate *by) {
    for (int o = 0; o < c->op_count; o++) s->taken_by[c->ops[o]->mark] = by;
}

/* The selected candidates that overlap with c, each once, up to `max` of them; returns how many there are. */
static int rivals(const select_state *s, const fuse_candidate *c, fuse_candidate **found, int max) {
    int count = 0;
    for (int o = 0; o < c->op_count; o++) {
        fuse_candidate *by = s->taken_by[c->ops[o]->mark];
        int k = 0;
        while (by && k < count && found[k] != by) k++;
        if (!by || k < count) continue;
        if (count == max) return count + 1;
        found[count++] = by;
    }
    return count;
}

/* Most saving first; then whatever saves more than all that it would push out takes their place. */
static void select_greedily(select_state *s, const select_group *g) {
    fuse_candidate *against[FUSE_MAX_OPS];
    for (int round = 0; round < SELECT_ROUNDS; round++)
        for (int k = 0; k < g->count; k++) {
            fuse_candidate *c = g->items[k];
            if (c->selected) continue;
            int count = rivals(s, c, against, FUSE_MAX_OPS);
            if (count > FUSE_MAX_OPS) continue;
            int64_t lost = 0;
            for (int r = 0; r < count; r++) lost = checked_add(lost, against[r]->saved);
            if (c->saved <= lost) continue;
            for (int r = 0; r < count; r++) {
                against[r]->selected = false;
                cover(s, against[r], NULL);
            }
            c->selected = true;
            cover(s, c, c);
        }
}

/* Branch and bound over the bit sets of a small group; items stand in order of saving. */
typedef struct select_search {
    const select_group *g;
    int64_t best;
    uint32_t best_set;
} select_search;

static void search(select_search *x, int k, uint32_t set, uint32_t barred, int64_t saved) {
    if (saved > x->best) {
        x->best = saved;
        x->best_set = set;
    }
    int64_t rest = saved;
    for (int j = k; j < x->g->count; j++)
        if (!(barred >> j & 1)) rest = checked_add(rest, x->g->items[j]->saved);
    if (rest <= x->best) return;
    while (k < x->g->count && (barred >> k & 1)) k++;
    if (k == x->g->count) return;
    search(x, k + 1, set | 1u << k, barred | x->g->conflicts[k], checked_add(saved, x->g->items[k]->saved));
    search(x, k + 1, set, barred | 1u << k, saved);
}

static void select_exactly(select_state *s, select_group *g) {
    uint32_t conflicts[SELECT_EXACT] = {0};
    for (int k = 0; k < g->count; k++) {
        fuse_candidate *one;
        cover(s, g->items[k], g->items[k]);
        for (int j = 0; j < g->count; j++)
            if (j != k && rivals(s, g->items[j], &one, 1)) conflicts[k] |= 1u << j;
        cover(s, g->items[k], NULL);
    }
    g->conflicts = conflicts;
    select_search x = {.g = g};
    search(&x, 0, 0, 0, 0);
    for (int k = 0; k < g->count; k++) g->items[k]->selected = x.best_set >> k & 1;
    g->conflicts = NULL;
}

void fuse_select(fuse *f) {
    if (!f->count) return;
    const size_t operations = number_operations(f);
    select_state s = {.f = f,
                      .parent = arena_array(f->arena, size_t, f->count),
                      .first_of = arena_array(f->arena, size_t, operations),
                      .taken_by = arena_array(f->arena, fuse_candidate *, operations)};
    for (size_t k = 0; k < f->count; k++) s.parent[k] = k;
    join_groups(&s);
    size_t *start = arena_array(f->arena, size_t, f->count + 1);
    fuse_candidate **sorted = arena_array(f->arena, fuse_candidate *, f->count);
    for (size_t k = 0; k < f->count; k++) start[root_of(s.parent, k) + 1]++;
    for (size_t k = 0; k < f->count; k++) start[k + 1] += start[k];
    size_t *fill = arena_array(f->arena, size_t, f->count);
    for (size_t k = 0; k < f->count; k++) {
        size_t root = root_of(s.parent, k);
        sorted[start[root] + fill[root]++] = &f->found[k];
    }
    for (size_t k = 0; k < f->count; k++) {
        select_group g = {.items = sorted + start[k], .count = (int)(start[k + 1] - start[k])};
        if (!g.count) continue;
        qsort(g.items, (size_t)g.count, sizeof(fuse_candidate *), by_saving);
        if (g.count <= SELECT_EXACT)
            select_exactly(&s, &g);
        else
            select_greedily(&s, &g);
    }
}
