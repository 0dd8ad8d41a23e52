/* Quantised models. Between a DequantizeLinear and a QuantizeLinear stands what a quantised kernel does in one: the
 * record is that of the operator, in the types that are stored. A DequantizeLinear that feeds several such operators
 * goes with the first; each of them reads the quantised tensor. One that feeds anything else stays a work of its own.
 */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <math.h>
#include <string.h>

static bool is_dequantize(const node *n) { return flow_is(n, "DequantizeLinear"); }
static bool is_quantize(const node *n) { return flow_is(n, "QuantizeLinear"); }

/* Operators for which quantised kernels exist. WHOLE: only where the result is quantised again. MOVES: and as what it
 * was before, so that bytes are moved; no kernel moves and quantises in one. */
typedef enum qdq_form { ANY, WHOLE, MOVES } qdq_form;
static const struct {
    const char *op_type;
    qdq_form form;
} qdq_operators[] = {
    {"Conv", ANY},          {"ConvTranspose", ANY},
    {"Gemm", ANY},          {"MatMul", ANY},
    {"Einsum", ANY},        {"Add", WHOLE},
    {"Mul", WHOLE},         {"MaxPool", WHOLE},
    {"AveragePool", WHOLE}, {"GlobalAveragePool", WHOLE},
    {"Flatten", MOVES},     {"Reshape", MOVES},
    {"Squeeze", MOVES},     {"Unsqueeze", MOVES},
    {"Transpose", MOVES},   {"Concat", MOVES},
    {"Relu", WHOLE},
};

/* What a quantised kernel applies to its result in passing. */
static bool is_activation(const node *n) {
    if (!graph_is(n, "Clip")) return graph_is(n, "Relu");
    return (!flow_in(n, 1) || flow_constant(n->in[1])) && (!flow_in(n, 2) || flow_constant(n->in[2]));
}

/* The QuantizeLinear that n's result goes to, behind an activation perhaps; NULL where it goes elsewhere. */
static node *quantize_after(const node *n, node **activation) {
    node *after = flow_user(flow_out(n, 0));
    *activation = NULL;
    if (is_quantize(after)) return after;
    if (!after || !is_activation(after) || flow_in(after, 0) != flow_out(n, 0)) return NULL;
    node *last = flow_user(flow_out(after, 0));
    if (!is_quantize(last) || flow_in(last, 0) != flow_out(after, 0)) return NULL;
    *activation = after;
    return last;
}

/* Both have one scale and one zero point, which are the same, and one type: another one holds other numbers. */
static bool same_steps(match *m, const node *dequantize, const node *quantize) {
    const tensor *stored = flow_in(dequantize, 0), *made = flow_out(quantize, 0);
    if (!stored || !made || stored->info->type != made->info->type) return false;
    for (int slot = 1; slot <= 2; slot++) {
        double from = 0, to = 0;
        if (flow_in(dequantize, slot) && !flow_scalar(m, flow_in(dequantize, slot), &from)) return false;
        if (flow_in(quantize, slot) && !flow_scalar(m, flow_in(quantize, slot), &to)) return false;
        if (from != to) return false;
    }
    return true;
}

/* Of what n moves; a shape or axes beside it are no bytes. */
static bool moves_bytes(match *m, const node *n, const node *quantize) {
    const int count = graph_is(n, "Concat") ? n->in_count : 1;
    for (int i = 0; i < count; i++) {
        const node *const from = flow_in(n, i) ? n->in[i]->producer : NULL;
        if (!from || !is_dequantize(from) || !same_steps(m, from, quantize)) return false;
    }
    return true;
}

/* Would n be joined? That its activations are dequantised is the caller's to know. */
static bool takes(match *m, const node *n) {
    for (size_t k = 0; k < sizeof qdq_operators / sizeof *qdq_operators; k++) {
        if (!graph_is(n, qdq_operators[k].op_type)) continue;
        node *activation, *const after = quantize_after(n, &activation);
        if (qdq_operators[k].form == MOVES) return after && !activation && moves_bytes(m, n, after);
        return qdq_operators[k].form == ANY || after;
    }
    return false;
}

static bool feeds_only_takers(match *m, const tensor *t) {
    node *users[8];
    int count = flow_users(t, users, 8);
    for (int k = 0; k < count; k++) {
        if (!takes(m, users[k])) return false;
    }
    return count > 0;
}

/* The activations of n: all inputs that are no constants. False where one of them is not dequantised. */
static bool activations_dequantised(const node *n) {
    int found = 0;
    for (int i = 0; i < n->in_count; i++) {
        const tensor *t = n->in[i];
        if (!t || flow_constant(t) || flow_is_scalar(t)) continue;
        if (!is_dequantize(t->producer)) return false;
        found++;
    }
    return found > 0;
}

/* Each operand once, in the type that is stored; a constant with its scales. */
static int64_t read_bytes(const work *w, const node *n) {
    int64_t bytes = 0;
    for (int i = 0; i < n->in_count; i++) {
        tensor *t = n->in[i];
        cost_weight stored;
        if (!t || (i > 0 && t == n->in[0])) continue;
        if (is_dequantize(t->producer) && !t->is_constant)
            bytes = checked_add(bytes, cost_bytes(w, flow_in(t->producer, 0)));
        else
            bytes = checked_add(bytes, cost_trace(w, t, &stored) ? stored.bytes : cost_bytes(w, t));
    }
    return bytes;
}

static bool is_bound(match *m, const node *clip, int slot, const char *name, double *bound) {
    const attr *given = graph_attr(clip, name, ATTR_FLOAT);
    if (flow_in(clip, slot)) return flow_scalar(m, clip->in[slot], bound);
    if (given) *bound = given->f;
    return true;
}

/* The activation's name and, where that does not say them, its bounds. False where they are not known. */
static bool name_activation(match *m, const node *n, oprec *rec) {
    double low = 0, high = INFINITY;
    if (graph_is(n, "Clip")) {
        low = -INFINITY;
        if (!is_bound(m, n, 1, "min", &low) || !is_bound(m, n, 2, "max", &high)) return false;
    }
    bool plain = low == 0 && (high == 6 || isinf(high));
    oprec_set_text(rec, "activation", !plain ? "clip" : isinf(high) ? "relu" : "relu6");
    if (!plain && isfinite(low)) oprec_set_real(rec, "activation_min", low);
    if (!plain && isfinite(high)) oprec_set_real(rec, "activation_max", high);
    return true;
}

/* The nodes that n is joined with: what dequantises for it alone, what follows it up to `last`. The first of its
 * activations as it is stored, NULL where there is none. */
static const tensor *gather(match *m, node *n, node *activation, node *last, flow_set *set) {
    const tensor *first = NULL;
    flow_add(set, n);
    flow_add(set, activation);
    flow_add(set, last);
    for (int i = 0; i < n->in_count; i++) {
        node *d = n->in[i] ? n->in[i]->producer : NULL;
        if (!d || !is_dequantize(d) || !flow_in(d, 0)) continue;
        if (!first && !flow_constant(n->in[i])) first = d->in[0];
        bool folded = flow_constant(n->in[i]) || !flow_free(m, d);
        if (!folded && feeds_only_takers(m, n->in[i])) flow_add(set, d);
    }
    return first;
}

bool match_qdq_compute(match *m, node *n) {
    if (!takes(m, n) || !flow_free(m, n) || !activations_dequantised(n)) return false;
    flow_set set = {.count = 0};
    node *activation, *after = quantize_after(n, &activation), *last = after ? after : n;
    const work *plain = work_of(m->list, n);
    oprec rec = plain->rec;
    if (activation && (!flow_free(m, activation) || !name_activation(m, activation, &rec))) return false;
    const tensor *first = gather(m, n, activation, last, &set);
    const bool move = rec.kind == OP_MOVE && !plain->free;
    if (!first || (set.count > 1 && last != n && !flow_free(m, last))) return false;
    work *w = set.count > 1 ? work_join(m->list, n, set.nodes, set.count) : work_of(m->list, n);
    if (!w) return false;
    w->weight = plain->weight;
    work_take_operands(w, plain);
    w->free = plain->free;
    w->moves_stored = move;
    w->rec = rec;
    w->rec.type = w->rec.out_type = DTYPE_NONE;
    cost_set_types(w, first, flow_out(last, 0));
    if (!move) oprec_set_text(&w->rec, "quant", "qdq");
    if (w->free) return true;
    if (activation && rec.kind == OP_ELEMENTWISE)
        w->rec.flops = checked_add(w->rec.flops, work_of(m->list, activation)->rec.flops);
    w->rec.bytes_read = read_bytes(w, n);
    w->rec.bytes_written = cost_bytes(w, flow_out(last, 0));
    return true;
}

/* One factor for all, or one for each column; as many for rows are something else. */
static bool along_columns(const work *w, const tensor *factor) {
    const int64_t count = cost_shaped(factor) ? info_count(factor->info) : 0;
    return count == 1 || (w->rec.rank == 3 && count == w->rec.shape[1] && cost_dim(factor, -1) == count);
}

/* Product of bytes, Cast, Mul by the product of both scales. The DynamicQuantizeLinear before it, which may feed other
 * products too, stays an operation of its own. */
bool match_qdq_integer(match *m, node *n) {
    if (!flow_free(m, n)) return false;
    flow_set set = {.count = 0};
    node *cast = flow_user(flow_out(n, 0)), *scale = graph_is(cast, "Cast") ? flow_user(flow_out(cast, 0)) : NULL;
    if (!cast || !scale || !graph_is(scale, "Mul") || scale->in_count != 2) return false;
    flow_add(&set, n);
    flow_add(&set, cast);
    flow_add(&set, scale);
    tensor *factor = scale->in[0] == cast->out[0] ? scale->in[1] : scale->in[0];
    if (!factor || factor == cast->out[0]) return false;
    if (graph_is(factor->producer, "Mul") && flow_closed(&set, factor)) flow_add(&set, factor->producer);
    const work *plain = work_of(m->list, n);
    work *w = flow_join(m, &set, scale);
    if (!w) return false;
    w->rec = plain->rec;
    w->weight = plain->weight;
    work_take_operands(w, plain);
    if (w->rec.kind == OP_GEMM) work_tell(w, "scales", along_columns(w, factor) ? factor : NULL);
    w->rec.out_type = cost_type(w, flow_out(scale, 0));
    if (cost_shaped(factor) && info_count(factor->info) > 1) oprec_set_text(&w->rec, "weight_scales", "channel");
    oprec_set_text(&w->rec, "quant", "dynamic");
    cost_boundary(w);
    return true;
}
