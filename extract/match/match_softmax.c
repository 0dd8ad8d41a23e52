/* Softmax written out: exponentials over their sum, with or without the row's maximum taken off before. Joined first,
 * so that an attention finds a softmax whichever way it is spelled. */
#include "extract/match/match_softmax.h"

#include "common/opcost.h"
#include "extract/match/match_patterns.h"
#include "extract/ops/cost.h"

#include <string.h>

/* n leaves one number of each row of x. */
static bool reduces_rows(const node *n, const char *op_type, const tensor *x) {
    const tensor *out = flow_out(n, 0);
    int rank = flow_rank(x);
    if (!graph_is(n, op_type) || flow_in(n, 0) != x || rank < 1 || flow_rank(out) != rank || flow_dim(out, -1) != 1)
        return false;
    for (int k = 0; k < rank - 1; k++) {
        if (flow_dim(out, k) != flow_dim(x, k)) return false;
    }
    return flow_dim(x, -1) > 1;
}

/* The exponentials that n divides by something; that is *divisor. */
static tensor *divided(node *n, tensor **divisor, flow_set *set) {
    if (n->in_count != 2 || !n->in[0] || !n->in[1]) return NULL;
    int slot = graph_is(n, "Mul") && graph_is(n->in[1]->producer, "Exp") ? 1 : 0;
    tensor *over = n->in[1 - slot];
    if (!graph_is(n->in[slot]->producer, "Exp")) return NULL;
    if (graph_is(n, "Mul")) {
        if (!graph_is(over->producer, "Reciprocal") || !flow_in(over->producer, 0)) return NULL;
        flow_add(set, over->producer);
        over = over->producer->in[0];
    } else if (!graph_is(n, "Div")) {
        return NULL;
    }
    *divisor = over;
    return n->in[slot];
}

static tensor *written_out(node *last, flow_set *set) {
    tensor *sum, *powers = divided(last, &sum, set);
    if (!powers || !reduces_rows(sum->producer, "ReduceSum", powers)) return NULL;
    tensor *x = flow_in(powers->producer, 0);
    flow_add(set, sum->producer);
    flow_add(set, powers->producer);
    flow_add(set, last);
    node *shift = x ? x->producer : NULL;
    if (!shift || !graph_is(shift, "Sub") || shift->in_count != 2 || !shift->in[0] || !shift->in[1]) return x;
    node *most = shift->in[1]->producer;
    if (!reduces_rows(most, "ReduceMax", shift->in[0])) return x;
    flow_add(set, shift);
    flow_add(set, most);
    return shift->in[0];
}

tensor *softmax_input(node *last, flow_set *set) {
    if (!graph_is(last, "Softmax")) return written_out(last, set);
    int rank = flow_rank(flow_out(last, 0));
    int64_t axis = graph_attr_int(last, "axis", last->opset < 13 ? 1 : -1);
    if (rank < 1 || (axis != -1 && axis != rank - 1)) return NULL;
    flow_add(set, last);
    return flow_in(last, 0);
}

bool match_softmax(match *m, node *last) {
    flow_set set = {.count = 0};
    const tensor *x = flow_free(m, last) ? written_out(last, &set) : NULL;
    if (!x) return false;
    work *w = flow_join(m, &set, last);
    if (!w) return false;
    memset(&w->rec, 0, sizeof w->rec);
    int64_t cols = flow_dim(x, -1);
    cost_set_rows(w, OP_SOFTMAX, NULL, flow_count(x) / cols, cols, opcost_per_element(OP_SOFTMAX, NULL));
    cost_set_types(w, x, flow_out(last, 0));
    cost_boundary(w);
    return true;
}
