/* The choice among overlapping fusions: small groups are solved exactly (checked against trying everything), large ones
 * never join an operation twice and never fall below what taking the most saving first gives. */
#include "extract/ops/fuse_internal.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

enum { NODES = 64, MAX_CANDIDATES = 120 };

static uint64_t seed = 20240817;

static unsigned below(unsigned n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

typedef struct field {
    node nodes[NODES];
    node *node_list[NODES];
    work works[NODES];
    model model;
    catalog catalog;
} field;

static void lay_out(field *x, arena *a) {
    memset(x, 0, sizeof *x);
    for (int k = 0; k < NODES; k++) {
        x->nodes[k].id = k;
        x->node_list[k] = &x->nodes[k];
        x->works[k].nodes = &x->node_list[k];
        x->works[k].node_count = 1;
        x->works[k].times = 1;
    }
    x->model.node_count = NODES;
    x->catalog.model = &x->model;
    x->catalog.arena = a;
}

/* `count` random candidates of two or three operations among the first `span` ones. */
static void scatter(fuse *f, field *x, int count, unsigned span) {
    for (int k = 0; k < count; k++) {
        fuse_candidate c = {.pattern = "test", .saved = 1 + (int64_t)below(100)};
        int want = 2 + (int)below(2);
        while (c.op_count < want) {
            work *w = &x->works[below(span)];
            bool there = false;
            for (int o = 0; o < c.op_count; o++) there |= c.ops[o] == w;
            if (!there) c.ops[c.op_count++] = w;
        }
        fuse_add(f, &c);
    }
}

static uint64_t mask_of(const fuse_candidate *c) {
    uint64_t set = 0;
    for (int o = 0; o < c->op_count; o++) set |= (uint64_t)1 << c->ops[o]->node->id;
    return set;
}

static int64_t best_by_trying(const fuse *f, size_t k, uint64_t taken) {
    if (k == f->count) return 0;
    int64_t without = best_by_trying(f, k + 1, taken);
    uint64_t set = mask_of(&f->found[k]);
    if (set & taken) return without;
    int64_t with = f->found[k].saved + best_by_trying(f, k + 1, taken | set);
    return with > without ? with : without;
}

static int64_t chosen(const fuse *f, bool *overlap) {
    uint64_t taken = 0;
    int64_t saved = 0;
    for (size_t k = 0; k < f->count; k++) {
        if (!f->found[k].selected) continue;
        *overlap |= (taken & mask_of(&f->found[k])) != 0;
        taken |= mask_of(&f->found[k]);
        saved += f->found[k].saved;
    }
    return saved;
}

/* Ties as fuse_select breaks them: fewer operations first, then the one found first. */
static int by_saving(const void *a, const void *b) {
    const fuse_candidate *x = *(fuse_candidate *const *)a, *y = *(fuse_candidate *const *)b;
    if (x->saved != y->saved) return x->saved < y->saved ? 1 : -1;
    if (x->op_count != y->op_count) return x->op_count - y->op_count;
    return x < y ? -1 : x > y;
}

static int64_t greedy(const fuse *f) {
    fuse_candidate *sorted[MAX_CANDIDATES];
    for (size_t k = 0; k < f->count; k++) sorted[k] = &f->found[k];
    qsort(sorted, f->count, sizeof(fuse_candidate *), by_saving);
    uint64_t taken = 0;
    int64_t saved = 0;
    for (size_t k = 0; k < f->count; k++) {
        if (taken & mask_of(sorted[k])) continue;
        taken |= mask_of(sorted[k]);
        saved += sorted[k]->saved;
    }
    return saved;
}

static void one_round(int count, unsigned span, bool exact) {
    guard g;
    arena a;
    static field x;
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    lay_out(&x, &a);
    for (int k = 0; k < NODES; k++) x.works[k].node = &x.nodes[k];
    if (guard_enter(&g)) {
        fuse f = {.catalog = &x.catalog, .arena = &a};
        scatter(&f, &x, count, span);
        fuse_select(&f);
        bool overlap = false;
        int64_t saved = chosen(&f, &overlap);
        UNIT_CHECK(!overlap);
        if (exact)
            UNIT_INT(saved, best_by_trying(&f, 0, 0));
        else
            UNIT_CHECK(saved >= greedy(&f));
    } else {
        UNIT_CHECK(!"no guard");
    }
    arena_free(&a);
}

static void small_groups_are_solved(void) {
    for (int round = 0; round < 300; round++) one_round(1 + (int)below(16), 4 + below(20), true);
}

static void large_groups_do_not_overlap(void) {
    for (int round = 0; round < 100; round++) one_round(MAX_CANDIDATES, NODES, false);
}

int main(void) {
    UNIT_RUN(small_groups_are_solved);
    UNIT_RUN(large_groups_do_not_overlap);
    return unit_end();
}
