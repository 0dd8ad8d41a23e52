/* Following data: the questions that patterns ask of tensors and nodes. Every answer looks at a bounded neighbourhood,
 * so that matching stays linear in the size of the graph. */
#include "extract/match/match_flow.h"

#include "extract/read/read.h"

#include <string.h>

static bool flow_has(const flow_set *s, const node *n) {
    for (int i = 0; i < s->count; i++) {
        if (s->nodes[i] == n) return true;
    }
    return false;
}

void flow_add(flow_set *s, node *n) {
    if (!n || flow_has(s, n)) return;
    if (s->count == FLOW_MAX_NODES) {
        s->full = true;
        return;
    }
    s->nodes[s->count++] = n;
}

/* Shape and Size read no numbers. */
static bool asks_shape(const node *n) { return graph_is(n, "Shape") || graph_is(n, "Size"); }

bool flow_closed(const flow_set *s, const tensor *t) {
    if (t->is_graph_output || t->user_count > FLOW_MAX_USERS) return false;
    for (int i = 0; i < t->user_count; i++) {
        if (!asks_shape(t->users[i]) && !flow_has(s, t->users[i])) return false;
    }
    return true;
}

/* The same for all outputs of all nodes of the set, but those of `last`: what a pattern keeps inside is used nowhere
 * else. */
static bool flow_sealed(const flow_set *s, const node *last) {
    for (int i = 0; i < s->count; i++) {
        const node *n = s->nodes[i];
        if (n == last) continue;
        for (int k = 0; k < n->out_count; k++) {
            if (n->out[k] && !flow_closed(s, n->out[k])) return false;
        }
    }
    return true;
}

int flow_users(const tensor *t, node **users, int max) {
    if (!t || t->is_graph_output || t->user_count > FLOW_MAX_USERS) return -1;
    int count = 0;
    for (int i = 0; i < t->user_count; i++) {
        node *u = t->users[i];
        if (asks_shape(u)) continue;
        bool seen = false;
        for (int k = 0; k < count; k++) seen = seen || users[k] == u;
        if (seen) continue;
        if (count == max) return -1;
        users[count++] = u;
    }
    return count;
}

node *flow_user(const tensor *t) {
    node *users[1];
    return flow_users(t, users, 1) == 1 ? users[0] : NULL;
}

bool flow_is(const node *n, const char *op_type) { return graph_is(n, op_type) || graph_is_ms(n, op_type); }

/* The classes that a Cast goes between; false where n is no Cast. */
static bool cast_types(const node *n, const dtype_info **from, const dtype_info **to) {
    const tensor *in = flow_in(n, 0), *out = flow_out(n, 0);
    if (!in || !out || !(graph_is(n, "Cast") || graph_is(n, "CastLike"))) return false;
    *from = dtype_get(in->info->type);
    *to = dtype_get(out->info->type);
    return true;
}

/* A Cast to an integer or a boolean takes part of a number away. */
static bool is_plain_cast(const node *n) {
    const dtype_info *from, *to;
    if (!cast_types(n, &from, &to)) return false;
    if (from == to || from->cls != to->cls || to->cls == DTYPE_CLASS_FLOAT) return from->cls == to->cls;
    return n->out[0]->info->type != DTYPE_BOOL && from->bits <= to->bits && (to->is_signed || !from->is_signed);
}

/* Nor does one from integers to floating numbers, but what it gives is another kind of number. */
static bool keeps_value(const node *n) {
    const dtype_info *from, *to;
    return cast_types(n, &from, &to) && to->cls == DTYPE_CLASS_FLOAT && from->cls == DTYPE_CLASS_INT;
}

/* A Dropout with a mask output or in training mode is more than a renaming, but the numbers still go straight through.
 */
bool flow_renames(const node *n) { return graph_is(n, "Identity") || graph_is(n, "Dropout") || is_plain_cast(n); }

bool flow_reshapes(const node *n) {
    return graph_is(n, "Reshape") || graph_is(n, "Squeeze") || graph_is(n, "Unsqueeze") || graph_is(n, "Flatten");
}

tensor *flow_in(const node *n, int i) { return n && i < n->in_count ? n->in[i] : NULL; }

tensor *flow_out(const node *n, int i) { return n && i < n->out_count ? n->out[i] : NULL; }

tensor *flow_origin(tensor *t) {
    for (int step = 0; t && t->producer && step < 16 && flow_renames(t->producer); step++) {
        if (!flow_in(t->producer, 0) || t->producer_slot != 0) break;
        t = t->producer->in[0];
    }
    return t;
}

node *flow_producer(tensor *t) {
    t = flow_origin(t);
    return t ? t->producer : NULL;
}

int flow_rank(const tensor *t) { return t && info_shaped(t->info) ? t->info->rank : -1; }

int64_t flow_dim(const tensor *t, int k) {
    int rank = flow_rank(t);
    if (k < 0) k += rank;
    return rank < 0 || k < 0 || k >= rank ? -1 : t->info->dims[k];
}

int64_t flow_count(const tensor *t) { return flow_rank(t) < 0 ? 0 : info_count(t->info); }

bool flow_same_shape(const tensor *a, const tensor *b) {
    return a && b && flow_rank(a) >= 0 && flow_rank(b) >= 0 && info_same_shape(a->info, b->info);
}

bool flow_constant(const tensor *t) { return t->is_constant || t->source == TENSOR_INITIALIZER; }

bool flow_is_scalar(const tensor *t) { return flow_rank(t) >= 0 && info_count(t->info) == 1; }

/* Values of a tensor that inference knows or that a constant of up to `max` elements holds. */
static const value *known(match *m, const tensor *t, int64_t max) {
    if (!t || t->info->form != INFO_TENSOR) return NULL;
    if (t->info->val) return t->info->val;
    if (!t->blob || flow_count(t) > max) return NULL;
    return read_values(m->model, t, max);
}

static bool find_scalar(match *m, const tensor *t, double *x) {
    for (int step = 0; step < 8; step++) {
        const value *v = known(m, t, 1);
        if (v && v->n == 1) {
            *x = value_at(v, 0);
            return true;
        }
        /* a constant that an exporter passes on by Identity or a Cast has no value of its own */
        const node *n = t->producer;
        bool same = n && (flow_renames(n) || keeps_value(n) || flow_reshapes(n) || graph_is(n, "Expand"));
        if (!same || t->producer_slot != 0 || !flow_is_scalar(flow_in(n, 0))) return false;
        t = n->in[0];
    }
    return false;
}

bool flow_scalar(match *m, const tensor *t, double *x) {
    if (!flow_is_scalar(t)) return false;
    size_t slot = ((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 40 & (FLOW_SCALARS - 1);
    flow_scalar_slot *s = &m->scalars[slot];
    if (s->t != t) *s = (flow_scalar_slot){.t = t, .known = find_scalar(m, t, &s->x), .x = s->x};
    *x = s->x;
    return s->known;
}

tensor *flow_operand(const node *n, int *slot) {
    if (!n || n->in_count != 2 || !n->in[0] || !n->in[1]) return NULL;
    bool first = flow_is_scalar(n->in[0]), second = flow_is_scalar(n->in[1]);
    if (first == second) return NULL;
    *slot = first ? 1 : 0;
    return n->in[*slot];
}

const int64_t *flow_ints(match *m, const tensor *t, int64_t *n) {
    const value *v = known(m, t, INFO_MAX_VALUES);
    if (!v || !v->i) return NULL;
    *n = v->n;
    return v->i;
}

bool flow_perm(const node *n, int *rank, int64_t *perm) {
    if (!graph_is(n, "Transpose")) return false;
    *rank = flow_rank(flow_in(n, 0));
    if (*rank < 1 || *rank > INFO_MAX_RANK) return false;
    const attr *a = graph_attr(n, "perm", ATTR_INTS);
    for (int k = 0; k < *rank; k++) {
        perm[k] = a && a->kind == ATTR_INTS && a->n == *rank ? a->ints[k] : *rank - 1 - k;
        if (perm[k] < 0) perm[k] += *rank;
        if (perm[k] < 0 || perm[k] >= *rank) return false;
    }
    return true;
}

bool flow_swaps_last(const node *n) {
    int rank;
    int64_t perm[INFO_MAX_RANK];
    if (!flow_perm(n, &rank, perm) || rank < 2) return false;
    for (int k = 0; k < rank - 2; k++) {
        if (perm[k] != k) return false;
    }
    return perm[rank - 1] == rank - 2;
}

bool flow_free(const match *m, const node *n) {
    work *w = work_of(m->list, n);
    return w && !w->owner;
}

work *flow_join(match *m, flow_set *s, node *anchor) {
    if (s->full || s->count < 2 || !flow_sealed(s, anchor)) return NULL;
    for (int i = 0; i < s->count; i++) {
        work *top = work_of(m->list, s->nodes[i]);
        if (!top) return NULL;
        top = work_top(top);
        /* a part of another pattern may come along only with all of that pattern */
        for (int k = 0; k < top->node_count; k++) {
            if (!flow_has(s, top->nodes[k])) return NULL;
        }
    }
    const work *plain = work_of(m->list, anchor);
    work *joined = work_join(m->list, anchor, s->nodes, s->count);
    if (joined && joined->rec.kind == OP_UNKNOWN) joined->rec = plain->rec;
    return joined;
}
