/* Owns what is computed element by element. How each input is broadcast is part of the record, since adding a vector to
 * every row is other work than adding two tensors. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* tensor: as the output; scalar: one element; vector: its last dimension; else the dimensions themselves, from the
 * first on that is not 1. All of them are told, as what is merged has to be the same work. */
static const char *input_kind(const work *w, const tensor *t, const tensor *out) {
    if (!cost_shaped(t)) return "unknown";
    if (info_same_shape(t->info, out->info)) return "tensor";
    const int64_t count = info_count(t->info), last = cost_dim(t, -1);
    if (count == 1) return "scalar";
    if (count == last && last == cost_dim(out, -1)) return cost_rank(out) == 1 ? "tensor" : "vector";
    const char *text = "";
    for (int k = 0; k < cost_rank(t); k++)
        if (*text || t->info->dims[k] != 1)
            text = arena_printf(w->arena, "%s%s%" PRId64, text, *text ? "x" : "", t->info->dims[k]);
    return text;
}

/* Inputs that are parameters rather than data: scales, zero points, bounds. */
static bool is_side_input(const work *w, int slot) {
    const char *op_type = w->node->op_type;
    if (strncmp(op_type, "QLinear", 7) != 0) return strcmp(op_type, "Clip") == 0 && slot > 0;
    return slot % 3 != 0 || slot == 6;
}

/* Operators whose inputs may change places: theirs are listed largest first, so that a + b and b + a are one operation.
 */
static bool is_commutative(const node *n) {
    static const char *const names[] = {"Add", "And", "BitwiseAnd", "BitwiseOr",  "BitwiseXor", "Equal", "Max", "Mean",
                                        "Min", "Mul", "Or",         "QLinearAdd", "QLinearMul", "Sum",   "Xor"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strcmp(names[k], n->op_type) == 0) return true;
    }
    return false;
}

static int size_rank(const char *kind) {
    static const char *const order[] = {"tensor", "vector", "scalar", "same"};
    for (int k = 0; k < 4; k++) {
        if (strcmp(order[k], kind) == 0) return k == 0 ? 0 : k + 1;
    }
    return 1; /* broadcast along some other dimension */
}

typedef struct operand {
    const char *kind;
    tensor *t;
} operand;

static void sort_operands(operand *operands, int n) {
    for (int k = 1; k < n; k++) {
        for (int i = k; i > 0 && size_rank(operands[i].kind) < size_rank(operands[i - 1].kind); i--) {
            const operand swap = operands[i];
            operands[i] = operands[i - 1];
            operands[i - 1] = swap;
        }
    }
}

/* x * x reads x once: it is other work than x * y. */
static bool is_repeated(const node *n, int slot) {
    for (int k = 0; k < slot && k < 8; k++) {
        if (n->in[k] == n->in[slot]) return true;
    }
    return false;
}

static void set_inputs(work *w, const tensor *out) {
    enum { MOST_NAMED = 8 }; /* a sum of hundreds says how many instead */
    operand operands[MOST_NAMED];
    char text[512];
    size_t used = 0;
    int count = 0;
    for (int k = 0; k < w->node->in_count; k++) {
        const tensor *t = cost_in(w, k);
        if (!t || is_side_input(w, k) || ++count > MOST_NAMED) continue;
        operands[count - 1] = (operand){is_repeated(w->node, k) ? "same" : input_kind(w, t, out), w->node->in[k]};
    }
    const int named = count < MOST_NAMED ? count : MOST_NAMED;
    if (is_commutative(w->node)) sort_operands(operands, named);
    for (int k = 0; k < named; k++) {
        const bool same = strcmp(operands[k].kind, "same") == 0;
        if (!same) work_tell(w, "operand", operands[k].t);
        if (same && (k == 0 || operands[k].t != operands[k - 1].t))
            work_tell_unknown(w, "operand that stands there again");
    }
    if (count == 0 || (count == 1 && strcmp(operands[0].kind, "tensor") == 0)) return;
    for (int k = 0; k < named; k++) {
        const int n = snprintf(text + used, sizeof text - used, "%s%s", k ? "," : "", operands[k].kind);
        used += (size_t)n < sizeof text - used ? (size_t)n : sizeof text - used - 1;
    }
    oprec_set_text(&w->rec, "inputs",
                   count > named ? arena_printf(w->arena, "%s,%d more", text, count - named)
                                 : arena_strndup(w->arena, text, used));
}

/* x * sigmoid(alpha * x) by all its names. */
static void name_gate(work *w, double alpha) {
    const bool quick = (float)alpha == 1.702F, plain = alpha == 1;
    w->rec.what = plain ? "silu" : quick ? "quickgelu" : "swish";
    if (!plain && !quick) oprec_set_real(&w->rec, "alpha", cost_real(alpha));
}

/* What else a node's name leaves open. Returns the operations per element. */
static double set_form(work *w) {
    const node *n = w->node;
    if (strcmp(n->op_type, "Swish") == 0) name_gate(w, graph_attr_float(n, "alpha", 1));
    if (strcmp(n->op_type, "QuickGelu") == 0) name_gate(w, graph_attr_float(n, "alpha", 1.702));
    const bool tanh_form = strcmp(n->op_type, "Gelu") == 0
                               ? strcmp(graph_attr_string(n, "approximate", "none"), "tanh") == 0
                               : strcmp(n->op_type, "FastGelu") == 0 && !cost_in(w, 1);
    if (!tanh_form) return n->def->cost;
    w->rec.what = "gelu_tanh";
    return 16;
}

static void set_number(work *w, const char *name, const tensor *t) {
    const value *known = cost_values(w, t);
    if (known && known->n == 1) oprec_set_real(&w->rec, name, cost_real(value_at(known, 0)));
}

/* The bounds of a Clip, attributes up to opset 10 and inputs since, and the exponent of a Pow: numbers that decide what
 * kernel does it. */
static void set_numbers(work *w) {
    const node *n = w->node;
    if (strcmp(n->op_type, "Pow") == 0) set_number(w, "exponent", cost_in(w, 1));
    if (strcmp(n->op_type, "Clip") != 0) return;
    const attr *low = graph_attr(n, "min", ATTR_FLOAT), *high = graph_attr(n, "max", ATTR_FLOAT);
    if (low && isfinite(low->f) && (float)low->f > -FLT_MAX) oprec_set_real(&w->rec, "min", cost_real(low->f));
    if (high && isfinite(high->f) && (float)high->f < FLT_MAX) oprec_set_real(&w->rec, "max", cost_real(high->f));
    set_number(w, "min", cost_in(w, 1));
    set_number(w, "max", cost_in(w, 2));
    for (int k = 1; k <= 2; k++)
        if (cost_in(w, k) && !oprec_field(&w->rec, k == 1 ? "min" : "max"))
            work_tell_unknown(w, k == 1 ? "min" : "max");
}

void lower_elementwise(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, strcmp(n->op_type, "Where") == 0 ? 1 : 0), *out = cost_out(w, 0);
    w->rec.kind = OP_ELEMENTWISE;
    w->rec.what = cost_what(w);
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    if (!cost_shaped(out)) return;
    set_inputs(w, out);
    set_numbers(w);
    if (oprec_field(&w->rec, "exponent")) w->operand_count = 1; /* a known one is no operand */
    work_tell_made(w, "y", n->out[0]);
    w->rec.flops = checked_from_double((double)info_count(out->info) * set_form(w));
}

/* Of what it is like only the shape matters, and maybe the type: nothing is read. */
void lower_random(work *w) {
    const tensor *out = cost_out(w, 0);
    w->rec.kind = OP_ELEMENTWISE;
    w->rec.what = cost_what(w);
    cost_set_types(w, out, out);
    cost_set_shape(w, out);
    if (!cost_shaped(out)) return;
    work_tell_made(w, "y", w->node->out[0]);
    w->rec.bytes_written = cost_bytes(w, out);
    w->rec.flops = checked_from_double((double)info_count(out->info) * w->node->def->cost);
}
