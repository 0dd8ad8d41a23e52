/* Group norm written as an instance norm over reshaped groups, with its weight and bias per channel applied afterwards.
 */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

/* The other input of n is one number per channel of y: [C, 1, …] behind the batch. */
static tensor *per_channel(const node *n, const char *op_type, const tensor *y) {
    if (!graph_is(n, op_type) || n->in_count != 2 || !flow_same_shape(y, flow_out(n, 0))) return NULL;
    tensor *other = n->in[0] == y ? n->in[1] : n->in[0];
    int64_t channels = flow_dim(y, 1);
    bool vector = flow_count(other) == channels && flow_dim(other, 1 - flow_rank(y)) == channels;
    return other != y && vector ? other : NULL;
}

static bool is_all(const work *w, const tensor *t, double x) {
    const value *known = cost_values(w, t);
    bool all = known != NULL;
    for (int64_t k = 0; known && k < known->n; k++) all = all && value_at(known, k) == x;
    return all;
}

static void fill_group(work *w, tensor *x, tensor *y, int64_t groups, tensor *weight, tensor *bias) {
    int64_t rows = checked_mul(flow_dim(x, 0), groups);
    cost_weight found;
    memset(&w->rec, 0, sizeof w->rec);
    cost_set_rows(w, OP_NORM, "group", rows, rows > 0 ? flow_count(x) / rows : 0, opcost_per_element(OP_NORM, "group"));
    oprec_set_int(&w->rec, "channels", flow_dim(x, 1));
    if (bias) oprec_set_int(&w->rec, "bias", 1);
    if (weight && cost_trace(w, weight, &found)) {
        w->weight = found.root;
        w->rec.weight_type = found.type;
    }
    cost_set_types(w, x, y);
    cost_boundary(w);
    work_tell(w, "x", x);
    work_tell_made(w, "y", y);
    if (weight) work_tell(w, "scale", weight);
    if (bias) work_tell(w, "bias", bias);
}

bool match_norm_group(match *m, node *instance) {
    const tensor *grouped = flow_in(instance, 0);
    node *before = grouped ? grouped->producer : NULL, *after = flow_user(flow_out(instance, 0));
    if (!flow_free(m, instance) || !graph_is(before, "Reshape") || !graph_is(after, "Reshape")) return false;
    tensor *x = flow_in(before, 0), *y = flow_out(after, 0);
    int64_t groups = flow_dim(grouped, 1);
    if (flow_rank(x) < 3 || groups < 1 || !flow_same_shape(x, y) || flow_dim(grouped, 0) != flow_dim(x, 0) ||
        flow_dim(x, 1) % groups)
        return false;
    flow_set set = {.count = 0};
    flow_add(&set, before);
    flow_add(&set, instance);
    flow_add(&set, after);
    node *last = after, *n = flow_user(y);
    tensor *weight = per_channel(n, "Mul", y), *bias = NULL;
    if (weight) {
        last = n;
        flow_add(&set, n);
        n = flow_user(flow_out(n, 0));
    }
    if ((bias = per_channel(n, "Add", last->out[0]))) {
        last = n;
        flow_add(&set, n);
    }
    work *w = flow_join(m, &set, last);
    if (!w) return false;
    fill_group(w, x, last->out[0], groups, weight, bias);
    const double epsilon = cost_real(graph_attr_float(instance, "epsilon", 1e-5));
    if (epsilon != 1e-5) work_tell_number(w, "epsilon", epsilon);
    if (!is_all(w, flow_in(instance, 1), 1) || !is_all(w, flow_in(instance, 2), 0))
        work_tell_unknown(w, "scale and bias of the groups"); /* before those of channels */
    return true;
}
