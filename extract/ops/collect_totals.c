/* Owns the sums over a catalog: totals that follow control flow, parameters, and what could not be resolved. */
#include "extract/ops/collect.h"

#include "common/checked.h"
#include "common/map.h"
#include "extract/ops/cost.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- totals ---- */

static void totals_add(catalog_totals *to, const catalog_totals *x) {
    to->macs = checked_add(to->macs, x->macs);
    to->flops = checked_add(to->flops, x->flops);
    to->bytes_read = checked_add(to->bytes_read, x->bytes_read);
    to->bytes_written = checked_add(to->bytes_written, x->bytes_written);
}

static void totals_add_times(catalog_totals *to, const oprec *r, int64_t times) {
    totals_add(to, &(catalog_totals){checked_mul(times, r->macs), checked_mul(times, r->flops),
                                     checked_mul(times, r->bytes_read), checked_mul(times, r->bytes_written)});
}

static bool totals_more(const catalog_totals *a, const catalog_totals *b) {
    if (a->flops != b->flops) return a->flops > b->flops;
    return checked_add(a->bytes_read, a->bytes_written) > checked_add(b->bytes_read, b->bytes_written);
}

/* Of the bodies of each If that may run, the ones that are not the costliest. Bodies add to the graph they stand in,
 * and come after their parents, so going backwards meets them complete. */
static bool *cheaper_bodies(const worklist *list, catalog_totals *own) {
    const model *m = list->model;
    bool *cheaper = arena_array(list->arena, bool, m->graph_count);
    int *best = arena_array(list->arena, int, m->node_count); /* by If node: its costliest body so far, plus 1 */
    int *open = arena_array(list->arena, int, m->node_count); /* by If node: bodies still to come */
    for (int k = 1; k < m->graph_count; k++) open[m->graphs[k]->owner->id]++;
    for (int k = m->graph_count - 1; k > 0; k--) {
        const graph *g = m->graphs[k];
        const int64_t owner = g->owner->id;
        const int before = best[owner] - 1;
        catalog_totals *parent = &own[g->parent->place];
        if (!graph_is(g->owner, "If")) {
            totals_add(parent, &own[k]);
            continue;
        }
        const bool runs = g->times != 0, more = before < 0 || !totals_more(&own[before], &own[k]);
        if (runs && before >= 0) cheaper[more ? before : k] = true;
        if (runs && more) best[owner] = k + 1;
        if (--open[owner] == 0 && best[owner]) totals_add(parent, &own[best[owner] - 1]);
    }
    return cheaper;
}

/* A run takes one of them, and so do its times: the other one counts 0, with all that stands in it. */
void collect_branches(worklist *list) {
    const model *m = list->model;
    catalog_totals *own = arena_array(list->arena, catalog_totals, m->graph_count);
    int count = 0;
    for (size_t k = 0; k < list->count; k++) {
        const work *w = list->items[k];
        if (!w->owner) totals_add_times(&own[w->node->home->place], &w->rec, checked_from_double(w->times));
    }
    const bool *cheaper = cheaper_bodies(list, own);
    for (int k = 1; k < m->graph_count; k++) {
        graph *const g = m->graphs[k];
        count += cheaper[k];
        if (cheaper[k] || (g->parent && g->parent->times == 0)) g->times = 0;
    }
    if (count == 0) return;
    for (size_t k = 0; k < list->count; k++) list->items[k]->times = list->items[k]->node->home->times;
    int open = 0;
    for (int64_t k = 0; k < m->node_count; k++) {
        const node *n = m->nodes[k];
        const graph *in = n->home;
        while (in->parent && !cheaper[in->place]) in = in->parent;
        open += cheaper[in->place] && (n->unknown || n->unresolved);
    }
    graph_warn(
        list->model,
        "%d condition%s not known: of each If the costlier branch is what runs%s; where an input is the condition, "
        "give --dim INPUT=0 or 1",
        count, count == 1 ? " is" : "s are",
        open ? arena_printf(list->arena, ", by what is known of it: %d node%s of the others without a cost", open,
                            open == 1 ? " is" : "s are")
             : "");
}

void collect_totals(catalog *c) {
    for (size_t e = 0; e < c->entry_count; e++)
        if (!c->entries[e]->part) totals_add_times(&c->totals, c->entries[e]->rec, c->entries[e]->count);
}

/* ---- parameters ---- */

/* Numbers stored in a weight that is not floating: of a packed one, those it unpacks to. */
static int64_t stored_parameters(const work *w, const tensor *t) {
    const oprec *r = &w->rec;
    const int bits = dtype_get(r->weight_type)->bits;
    const bool packed = bits > 0 && bits < 8 && dtype_get(t->info->type)->bits == 8;
    const bool stack = cost_rank(cost_in(w, 1)) == 4;                       /* as many matrices as the weight has */
    if (packed && !stack && r->kind == OP_GEMM && r->rank == 3 && !r->what) /* the last block of a row may be padded */
        return checked_mul(r->shape[1], r->shape[2]);
    return checked_mul(info_count(t->info), packed ? 8 / bits : 1);
}

/* Weights of their own right beside the main one; scales are floating, zero points are no parameters. */
static bool is_weight(const work_weight *more) {
    static const char *const roles[] = {"fc2", "fc3", "recurrence"};
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        if (strcmp(roles[k], more->role) == 0) return dtype_get(more->t->info->type)->cls == DTYPE_CLASS_INT;
    }
    return false;
}

typedef struct parameter_count {
    const tensor *weight;
    int64_t size;
} parameter_count;

/* Equal weights together, the largest size first. */
static int by_weight(const void *a, const void *b) {
    const parameter_count *x = a, *y = b;
    if (x->weight != y->weight) return (uintptr_t)x->weight < (uintptr_t)y->weight ? -1 : 1;
    return (x->size < y->size) - (x->size > y->size);
}

static int64_t quantized_parameters(const worklist *list) {
    const arena_mark scratch = arena_save(list->arena);
    size_t most = 0, count = 0;
    for (size_t k = 0; k < list->count; k++) most += 1 + (size_t)list->items[k]->more_count;
    parameter_count *found = arena_array(list->arena, parameter_count, most);
    for (size_t k = 0; k < list->count; k++) {
        const work *w = list->items[k];
        if (!w->weight || dtype_get(w->weight->info->type)->cls != DTYPE_CLASS_INT) continue;
        found[count++] = (parameter_count){w->weight, stored_parameters(w, w->weight)};
        for (int i = 0; i < w->more_count; i++) {
            if (is_weight(&w->more[i]))
                found[count++] = (parameter_count){w->more[i].t, stored_parameters(w, w->more[i].t)};
        }
    }
    qsort(found, count, sizeof *found, by_weight);
    int64_t sum = 0;
    for (size_t k = 0; k < count; k++) {
        if (k == 0 || found[k].weight != found[k - 1].weight) sum = checked_add(sum, found[k].size);
    }
    arena_rewind(list->arena, scratch);
    return sum;
}

/* Every floating constant that something uses, and every quantised weight, once each. */
void collect_parameters(catalog *c, const worklist *list) {
    const model *m = c->model;
    for (int64_t k = 0; k < m->tensor_count; k++) {
        const tensor *t = m->tensors[k];
        const bool stored = t->source == TENSOR_INITIALIZER || (t->blob && t->info->rank > 0);
        const bool used = t->user_count > 0 || t->is_graph_output;
        if (stored && used && dtype_get(t->info->type)->cls == DTYPE_CLASS_FLOAT)
            c->parameters = checked_add(c->parameters, info_count(t->info));
    }
    c->parameters = checked_add(c->parameters, quantized_parameters(list));
}

/* ---- coverage ---- */

static void count_unknown(catalog *c, map *types, const node *n) {
    const char *name = graph_operator(c->arena, n);
    void **place = map_put(types, name);
    if (!*place) {
        arena_grow(c->arena, (void **)&c->unknown, &c->unknown_cap, c->unknown_count, sizeof *c->unknown);
        c->unknown[c->unknown_count++] = (catalog_unknown){.op_type = name};
        *place = (void *)(intptr_t)c->unknown_count;
    }
    c->unknown[(intptr_t)*place - 1].count++;
}

/* In a branch known not to run shapes need not fit; an operator that is not known is told of all the same. */
static bool is_open(const node *n) {
    const bool runs = n->home->times != 0 || !n->home->times_known;
    return n->unknown || (n->unresolved && runs);
}

void collect_coverage(catalog *c) {
    const model *m = c->model;
    map types;
    map_init(&types, c->arena);
    int64_t open = 0;
    for (int64_t k = 0; k < m->node_count; k++) open += is_open(m->nodes[k]);
    c->unresolved = arena_array(c->arena, node *, open);
    c->nodes = m->node_count;
    c->resolved = m->node_count - open;
    int64_t at = 0;
    for (int64_t k = 0; k < m->node_count; k++) {
        node *n = m->nodes[k];
        if (is_open(n)) c->unresolved[at++] = n;
        if (n->unknown || !n->def) count_unknown(c, &types, n);
    }
}
