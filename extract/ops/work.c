/* Owns the list of works: every node lowered to one, joined works on top of them, and which of them count. */
#include "extract/ops/work.h"

#include "common/checked.h"
#include "extract/graph/operators.h"
#include "extract/ops/cost.h"

#include <stdlib.h>
#include <string.h>

static bool work_is_ready(const worklist *list, const tensor *t) {
    if (!t || cost_known(t)) return true;
    return t->producer && list->of_node[t->producer->id] && list->of_node[t->producer->id]->folded;
}

/* Is it computed when the model is loaded, with the dimensions that are bound? */
static bool work_is_folded(const worklist *list, const node *n) {
    if (!n->def || graph_has_body(n) || n->unresolved || n->unknown || graph_is_random(n)) return false;
    bool outputs_known = n->out_count > 0;
    for (int k = 0; k < n->out_count && outputs_known; k++) outputs_known = !n->out[k] || cost_known(n->out[k]);
    if (outputs_known) return true;
    for (int k = 0; k < n->in_count; k++) {
        if (!work_is_ready(list, n->in[k])) return false;
    }
    return n->in_count > 0;
}

static void work_append(worklist *list, work *w) {
    arena_grow(list->arena, (void **)&list->items, &list->cap, list->count, sizeof *list->items);
    list->items[list->count++] = w;
}

static work *work_new(worklist *list, node *anchor) {
    work *w = arena_zalloc(list->arena, sizeof *w);
    w->model = list->model;
    w->arena = list->arena;
    w->node = anchor;
    w->precision = list->precision;
    w->times = anchor->home ? anchor->home->times : 1;
    return w;
}

static void work_lower(worklist *list, node *n) {
    work *w = work_new(list, n);
    w->nodes = &w->node;
    w->node_count = 1;
    if (!n->def || n->misfit) { /* a misfit's attributes are not to be trusted */
        w->rec.kind = OP_UNKNOWN;
        w->rec.what = graph_operator(w->arena, n);
    } else if (work_is_folded(list, n)) {
        w->rec.kind = OP_MOVE;
        w->rec.what = "folded";
        w->free = w->folded = true;
    } else {
        n->def->lower(w);
        work_add_attrs(w);
        work_add_constants(w);
        work_add_operands(w);
    }
    list->of_node[n->id] = w;
    work_append(list, w);
}

void work_list(worklist *list, model *m, dtype precision) {
    *list = (worklist){.model = m, .arena = m->arena, .precision = precision};
    list->of_node = arena_array(m->arena, work *, m->node_count);
    for (int64_t k = 0; k < m->node_count; k++) work_lower(list, m->nodes[k]);
}

work *work_of(const worklist *list, const node *n) { return n ? list->of_node[n->id] : NULL; }

const work *work_weights(const work *w) {
    for (const work *at = w; at;) {
        if (at->more_count > 0 || !at->weight) return at;
        const work *next = NULL;
        for (int k = 0; k < at->part_count && !next; k++) {
            if (at->parts[k]->weight == w->weight) next = at->parts[k];
        }
        at = next;
    }
    return w;
}

work *work_top(work *w) {
    while (w && w->owner) w = w->owner;
    return w;
}

static int by_node_id(const void *a, const void *b) {
    const int64_t x = (*(node *const *)a)->id, y = (*(node *const *)b)->id;
    return (x > y) - (x < y);
}

static int by_anchor_id(const void *a, const void *b) {
    const int64_t x = (*(work *const *)a)->node->id, y = (*(work *const *)b)->node->id;
    return (x > y) - (x < y);
}

static void work_take(worklist *list, work *joined, node *n) {
    work *top = work_top(work_of(list, n));
    if (!top || top->mark == list->mark) return;
    top->mark = list->mark;
    joined->parts[joined->part_count++] = top;
    joined->node_count += top->node_count;
}

work *work_join(worklist *list, node *anchor, node *const *nodes, int node_count) {
    for (int k = 0; k < node_count; k++) {
        if (nodes[k]->home != anchor->home) return NULL;
    }
    list->mark++;
    work *joined = work_new(list, anchor);
    joined->parts = arena_array(list->arena, work *, (int64_t)node_count + 1);
    work_take(list, joined, anchor);
    for (int k = 0; k < node_count; k++) work_take(list, joined, nodes[k]);
    joined->nodes = arena_array(list->arena, node *, joined->node_count);
    int at = 0;
    for (int k = 0; k < joined->part_count; k++) {
        work *part = joined->parts[k];
        part->owner = joined;
        memcpy(joined->nodes + at, part->nodes, (size_t)part->node_count * sizeof *part->nodes);
        at += part->node_count;
    }
    qsort(joined->nodes, (size_t)joined->node_count, sizeof *joined->nodes, by_node_id);
    qsort(joined->parts, (size_t)joined->part_count, sizeof *joined->parts, by_anchor_id);
    work_append(list, joined);
    return joined;
}
