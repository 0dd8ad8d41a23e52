/* Activations spelled out, alone (GELU, SiLU, …) and gating another tensor (SwiGLU, GeGLU). What a formula is, its
 * values at a few points tell (match_eval.c), not the order in which an exporter wrote it. */
#include "extract/match/match_patterns.h"

#include "common/checked.h"
#include "extract/match/match_eval.h"
#include "extract/ops/cost.h"

#include <math.h>
#include <string.h>

enum { GATE_MAX_UP = 8, GATE_MAX_DOWN = 6 };

/* Far enough out that the clipped forms show both their ends, and that erf, tanh and logistic forms of GELU differ. */
static const double gate_lanes[EVAL_LANES] = {-3.6, -1.3, -0.4, 0.7, 2.1, 7.4};

static double gate_logistic(double x) { return 1 / (1 + exp(-x)); }
static double gate_gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752)); }
static double gate_gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
static double gate_quick_gelu(double x) { return x * gate_logistic(1.702 * x); }
static double gate_silu(double x) { return x * gate_logistic(x); }
static double gate_hard_sigmoid(double x) { return fmin(fmax(x + 3, 0), 6) / 6; }
static double gate_hard_swish(double x) { return x * gate_hard_sigmoid(x); }
static double gate_softplus(double x) { return log1p(exp(x)); }
static double gate_mish(double x) { return x * tanh(gate_softplus(x)); }
static double gate_relu6(double x) { return fmin(fmax(x, 0), 6); }
static double gate_squared_relu(double x) { return x > 0 ? x * x : 0; }

/* The cost per element is that of the operator with the same meaning. */
static const struct gate_form {
    const char *what;
    double (*of)(double);
    int64_t cost;
} gate_forms[] = {
    {"gelu", gate_gelu, 12},
    {"gelu_tanh", gate_gelu_tanh, 16},
    {"quickgelu", gate_quick_gelu, 11},
    {"silu", gate_silu, 11},
    {"hardswish", gate_hard_swish, 5},
    {"hardsigmoid", gate_hard_sigmoid, 3},
    {"mish", gate_mish, 20},
    {"softplus", gate_softplus, 12},
    {"relu6", gate_relu6, 2},
    {"squared_relu", gate_squared_relu, 2},
};
enum { GATE_FORMS = sizeof gate_forms / sizeof *gate_forms };

/* What an activation, spelled out or one operator, becomes when its result gates another tensor. */
static const struct {
    const char *what, *gated;
    int64_t cost;
} gated_forms[] = {
    {"gelu", "geglu", 13}, {"gelu_tanh", "geglu_tanh", 17}, {"quickgelu", "quick_geglu", 12}, {"silu", "swiglu", 12},
    {"relu", "reglu", 2},
};

/* Tensors above the anchor that the formula may be one of. */
static int find_sources(node *anchor, tensor **found) {
    int count = 0, next = 0;
    for (int i = 0; i < anchor->in_count && count < GATE_MAX_UP; i++) {
        if (anchor->in[i] && !flow_constant(anchor->in[i])) found[count++] = anchor->in[i];
    }
    for (; next < count; next++) {
        const node *n = found[next]->producer;
        if (!n || !eval_follows(n, false)) continue;
        for (int i = 0; i < n->in_count && count < GATE_MAX_UP; i++) {
            tensor *t = n->in[i];
            bool seen = !t || flow_constant(t) || flow_is_scalar(t);
            for (int k = 0; k < count && !seen; k++) seen = found[k] == t;
            if (!seen) found[count++] = t;
        }
    }
    return count;
}

/* The two forms of GELU differ by 4e-4 at most, constants stored in half precision by less than half of that. */
static const double gate_tolerance = 1e-4;

static const double *form_values(match *m, int form) {
    if (!m->gate_values) {
        m->gate_values = arena_array(m->arena, double, GATE_FORMS *EVAL_LANES);
        for (int k = 0; k < GATE_FORMS * EVAL_LANES; k++)
            m->gate_values[k] = gate_forms[k / EVAL_LANES].of(gate_lanes[k % EVAL_LANES]);
    }
    return m->gate_values + form * EVAL_LANES;
}

typedef struct gate_found {
    const struct gate_form *form;
    tensor *x;
    int down; /* which result below the anchor it is */
} gate_found;

/* The last result that is a form of x, if it lies further down than what was found before. Each result is computed from
 * the one above it. */
static void find_form(match *m, tensor *x, tensor *const *results, int downs, gate_found *best) {
    eval_cone c = {.m = m, .x = x, .lanes = gate_lanes};
    for (int d = 0; d < downs; d++) {
        double got[EVAL_LANES];
        c.steps = EVAL_MAX_STEPS;
        if (!eval_lanes(&c, results[d], 0, got)) return;
        c.also = results[d];
        memcpy(c.also_lanes, got, sizeof got);
        if (d <= best->down || !flow_same_shape(x, results[d])) continue;
        for (int f = 0; f < GATE_FORMS; f++) {
            if (!eval_near(got, form_values(m, f), gate_tolerance)) continue;
            *best = (gate_found){.form = &gate_forms[f], .x = x, .down = d};
            break;
        }
    }
}

static void fill_gate(work *w, const char *what, int64_t cost, tensor *x, tensor *y) {
    memset(&w->rec, 0, sizeof w->rec);
    w->rec.kind = OP_ELEMENTWISE;
    w->rec.what = what;
    cost_set_types(w, x, y);
    cost_set_shape(w, y);
    cost_boundary(w);
    w->rec.flops = checked_mul(flow_count(y), cost);
}

/* One operator with a Cast beside it is no formula. */
static bool is_formula(const flow_set *s) {
    int count = 0;
    for (int k = 0; k < s->count; k++) count += !flow_renames(s->nodes[k]);
    return count > 1;
}

/* Every formula brings in a second operand (x once more, a constant, a bound), at the anchor or below it. Long chains
 * of plain functions are told apart by this alone. */
static bool has_operands(const node *n) { return n->in_count > 1 || graph_is(n, "Clip"); }

/* The longest formula that ends below the anchor and has a name; of two as long, the one that begins nearer to it. */
bool match_gate_activation(match *m, node *anchor) {
    tensor *sources[GATE_MAX_UP], *results[GATE_MAX_DOWN];
    int downs = 0;
    bool operands = has_operands(anchor);
    if (!flow_free(m, anchor) || !flow_out(anchor, 0)) return false;
    for (tensor *y = flow_out(anchor, 0); y && downs < GATE_MAX_DOWN;) {
        results[downs++] = y;
        node *n = flow_user(y);
        y = n && eval_follows(n, false) ? flow_out(n, 0) : NULL;
        operands = operands || (y && has_operands(n));
    }
    if (!operands) return false;
    int ups = find_sources(anchor, sources);
    gate_found best = {.down = -1};
    for (int k = 0; k < ups; k++) find_form(m, sources[k], results, downs, &best);
    if (!best.form) return false;
    flow_set set = {.count = 0};
    double lanes[EVAL_LANES];
    eval_cone c = {.m = m, .x = best.x, .lanes = gate_lanes, .steps = EVAL_MAX_STEPS, .set = &set};
    if (!eval_lanes(&c, results[best.down], 0, lanes) || !is_formula(&set)) return false;
    work *w = flow_join(m, &set, results[best.down]->producer);
    if (!w) return false;
    fill_gate(w, best.form->what, best.form->cost, best.x, results[best.down]);
    work_tell(w, "operand", best.x);
    work_tell_made(w, "y", results[best.down]);
    return true;
}

/* If t is an activation's result: its name when gated, its cost per element, its nodes added to the set. */
static const char *gated_name(match *m, tensor *t, flow_set *set, int64_t *cost, tensor **of) {
    work *w = t && t->producer ? work_of(m->list, t->producer) : NULL;
    if (!w) return NULL;
    w = work_top(w);
    *of = work_told(w, "operand");
    if (w->rec.kind != OP_ELEMENTWISE || !w->rec.what || w->node != t->producer) return NULL;
    for (size_t f = 0; f < sizeof gated_forms / sizeof *gated_forms; f++) {
        if (strcmp(gated_forms[f].what, w->rec.what) != 0) continue;
        for (int k = 0; k < w->node_count; k++) flow_add(set, w->nodes[k]);
        *cost = gated_forms[f].cost;
        return gated_forms[f].gated;
    }
    return NULL;
}

bool match_gate_product(match *m, node *product) {
    if (product->in_count != 2 || !flow_free(m, product)) return false;
    for (int slot = 0; slot < 2; slot++) {
        tensor *gate = product->in[slot], *other = product->in[1 - slot];
        flow_set set = {.count = 0};
        int64_t cost;
        tensor *gated = NULL; /* what the activation is of */
        if (!gate || !other || gate == other || !flow_same_shape(gate, other) || flow_constant(other)) continue;
        const char *name = gated_name(m, gate, &set, &cost, &gated);
        if (!name) continue;
        flow_add(&set, product);
        work *w = flow_join(m, &set, product);
        if (!w) continue;
        fill_gate(w, name, cost, other, product->out[0]);
        work_tell(w, "operand", gated);
        work_tell(w, "operand", other);
        work_tell_made(w, "y", product->out[0]);
        oprec_set_text(&w->rec, "inputs", "tensor,tensor");
        return true;
    }
    return false;
}
