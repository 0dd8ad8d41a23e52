/* Evaluates a small arithmetic part of the graph lane by lane. Depth and steps are bounded, so a graph that doubles
 * back on itself is given up, not followed to the end. */
#include "extract/match/match_eval.h"

#include <math.h>
#include <string.h>

static double of_add(double a, double b) { return a + b; }
static double of_sub(double a, double b) { return a - b; }
static double of_mul(double a, double b) { return a * b; }
static double of_div(double a, double b) { return a / b; }
static double of_pow(double a, double b) { return pow(a, b); }
static double of_max(double a, double b) { return a > b ? a : b; }
static double of_min(double a, double b) { return a < b ? a : b; }
static double one_abs(double a) { return fabs(a); }
static double one_cos(double a) { return cos(a); }
static double one_erf(double a) { return erf(a); }
static double one_exp(double a) { return exp(a); }
static double one_log(double a) { return log(a); }
static double one_neg(double a) { return -a; }
static double one_reciprocal(double a) { return 1 / a; }
static double one_relu(double a) { return a > 0 ? a : 0; }
static double one_same(double a) { return a; }
static double one_sigmoid(double a) { return 1 / (1 + exp(-a)); }
static double one_softplus(double a) { return a > 30 ? a : log1p(exp(a)); }
static double one_sqrt(double a) { return sqrt(a); }
static double one_tanh(double a) { return tanh(a); }

typedef enum eval_kind { EVAL_ONE, EVAL_TWO, EVAL_CLIP, EVAL_HARD_SIGMOID, EVAL_MEAN, EVAL_SUM, EVAL_L2 } eval_kind;

typedef struct eval_op {
    const char *name;
    eval_kind kind;
    double (*one)(double); /* from EVAL_MEAN on: of each element before */
    double (*two)(double, double);
} eval_op;

static double one_square(double a) { return a * a; }

/* clang-format off */
static const eval_op eval_ops[] = { /* sorted by name */
    {"Abs", EVAL_ONE, one_abs, NULL},
    {"Add", EVAL_TWO, NULL, of_add},
    {"Cast", EVAL_ONE, one_same, NULL},
    {"CastLike", EVAL_ONE, one_same, NULL},
    {"Clip", EVAL_CLIP, NULL, NULL},
    {"Cos", EVAL_ONE, one_cos, NULL},
    {"Div", EVAL_TWO, NULL, of_div},
    {"Dropout", EVAL_ONE, one_same, NULL},
    {"Erf", EVAL_ONE, one_erf, NULL},
    {"Exp", EVAL_ONE, one_exp, NULL},
    {"Expand", EVAL_ONE, one_same, NULL},
    {"HardSigmoid", EVAL_HARD_SIGMOID, NULL, NULL},
    {"Identity", EVAL_ONE, one_same, NULL},
    {"Log", EVAL_ONE, one_log, NULL},
    {"Max", EVAL_TWO, NULL, of_max},
    {"Min", EVAL_TWO, NULL, of_min},
    {"Mul", EVAL_TWO, NULL, of_mul},
    {"Neg", EVAL_ONE, one_neg, NULL},
    {"Pow", EVAL_TWO, NULL, of_pow},
    {"Reciprocal", EVAL_ONE, one_reciprocal, NULL},
    {"ReduceL2", EVAL_L2, one_square, NULL},
    {"ReduceMean", EVAL_MEAN, one_same, NULL},
    {"ReduceSum", EVAL_SUM, one_same, NULL},
    {"ReduceSumSquare", EVAL_SUM, one_square, NULL},
    {"Relu", EVAL_ONE, one_relu, NULL},
    {"Sigmoid", EVAL_ONE, one_sigmoid, NULL},
    {"Softplus", EVAL_ONE, one_softplus, NULL},
    {"Sqrt", EVAL_ONE, one_sqrt, NULL},
    {"Sub", EVAL_TWO, NULL, of_sub},
    {"Sum", EVAL_TWO, NULL, of_add},
    {"Tanh", EVAL_ONE, one_tanh, NULL},
};
/* clang-format on */

/* A Cast that takes part of a number away is no formula's. */
static bool is_exact(const node *n) { return flow_renames(n) || !(graph_is(n, "Cast") || graph_is(n, "CastLike")); }

static const eval_op *eval_find(const node *n) {
    if (n->domain[0] || n->in_count > EVAL_MAX_INPUTS) return NULL;
    const eval_op *op = graph_row(eval_ops, sizeof eval_ops / sizeof *eval_ops, sizeof *eval_ops, n->op_type);
    return op && is_exact(n) ? op : NULL;
}

bool eval_follows(const node *n, bool rows) {
    const eval_op *op = n ? eval_find(n) : NULL;
    return op && (rows || op->kind < EVAL_MEAN);
}

bool eval_near(const double *a, const double *b, double tolerance) {
    for (int k = 0; k < EVAL_LANES; k++) {
        if (!(fabs(a[k] - b[k]) <= tolerance * (1 + fabs(b[k])))) return false;
    }
    return true;
}

/* Dimensions that n reduces, where what it gives lines up with what it reduced: they are kept with size 1, or nothing
 * but one number is left. */
static bool reduced_axes(const node *n, uint32_t *axes) {
    const tensor *in = flow_in(n, 0), *out = flow_out(n, 0);
    int rank = flow_rank(in);
    *axes = 0;
    if (rank < 1 || rank > INFO_MAX_RANK || (flow_rank(out) != rank && flow_count(out) != 1)) return false;
    for (int k = 1; k <= rank; k++) {
        int64_t left = flow_rank(out) == rank ? flow_dim(out, -k) : 1;
        if (flow_dim(in, -k) == left) continue;
        if (left != 1) return false;
        *axes |= 1u << (k - 1);
    }
    return true;
}

/* Every row of one norm has the same length and lies along the same dimensions. */
static bool eval_reduce(eval_cone *c, const node *n, const eval_op *op, double *out) {
    int64_t before = flow_count(flow_in(n, 0)), after = flow_count(flow_out(n, 0));
    if (!c->rows || before < 1 || after < 1 || before % after) return false;
    int64_t cols = before / after;
    uint32_t axes;
    if (!reduced_axes(n, &axes) || (c->cols != 0 && (c->cols != cols || c->axes != axes))) return false;
    c->cols = cols;
    c->axes = axes;
    double sum = 0;
    for (int k = 0; k < EVAL_LANES; k++) sum += op->one(out[k]);
    double all = op->kind == EVAL_MEAN ? sum / EVAL_LANES : sum / EVAL_LANES * (double)cols;
    if (op->kind == EVAL_L2) all = sqrt(all);
    for (int k = 0; k < EVAL_LANES; k++) out[k] = all;
    return true;
}

static bool eval_clip(eval_cone *c, const node *n, double *out) {
    double low = graph_attr_float(n, "min", -INFINITY), high = graph_attr_float(n, "max", INFINITY);
    if (flow_in(n, 1) && !flow_scalar(c->m, n->in[1], &low)) return false;
    if (flow_in(n, 2) && !flow_scalar(c->m, n->in[2], &high)) return false;
    for (int k = 0; k < EVAL_LANES; k++) out[k] = of_min(of_max(out[k], low), high);
    return true;
}

static bool eval_node(eval_cone *c, node *n, int depth, double *out) {
    const eval_op *op = eval_find(n);
    double other[EVAL_LANES];
    if (!op || n->in_count < 1 || !eval_lanes(c, n->in[0], depth + 1, out)) return false;
    if (c->set) flow_add(c->set, n);
    switch (op->kind) {
    case EVAL_ONE:
        for (int k = 0; k < EVAL_LANES; k++) out[k] = op->one(out[k]);
        return true;
    case EVAL_TWO:
        for (int i = 1; i < n->in_count; i++) {
            if (!eval_lanes(c, n->in[i], depth + 1, other)) return false;
            for (int k = 0; k < EVAL_LANES; k++) out[k] = op->two(out[k], other[k]);
        }
        return true;
    case EVAL_CLIP: return eval_clip(c, n, out);
    case EVAL_HARD_SIGMOID:
        for (int k = 0; k < EVAL_LANES; k++) {
            out[k] =
                of_min(of_max(graph_attr_float(n, "alpha", 0.2) * out[k] + graph_attr_float(n, "beta", 0.5), 0), 1);
        }
        return true;
    case EVAL_MEAN:
    case EVAL_SUM:
    case EVAL_L2: return eval_reduce(c, n, op, out);
    }
    return false;
}

bool eval_lanes(eval_cone *c, tensor *t, int depth, double *out) {
    double x;
    if (!t || depth > EVAL_MAX_DEPTH || --c->steps < 0) return false;
    if (t == c->x) {
        memcpy(out, c->lanes, EVAL_LANES * sizeof *out);
        return true;
    }
    if (t == c->also) {
        memcpy(out, c->also_lanes, EVAL_LANES * sizeof *out);
        return true;
    }
    if (flow_scalar(c->m, t, &x)) {
        for (int k = 0; k < EVAL_LANES; k++) out[k] = x;
        return true;
    }
    return t->producer && t->producer_slot == 0 && eval_node(c, t->producer, depth, out);
}
