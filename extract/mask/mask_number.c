/* Operators that compute: what stands at one place of the output, from the elements that broadcasting puts there. */
#include "extract/mask/mask_eval.h"

#include "common/checked.h"
#include "extract/read/read.h"

#include <math.h>
#include <string.h>

static const tensor *input(const node *n, int i) { return i < n->in_count ? n->in[i] : NULL; }

/* Input i of n at the place that broadcasts to element `index` of t. */
static bool operand(mask_eval *e, const node *n, int i, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, i);
    if (mask_eval_rank(in) < 0 || in->info->rank > t->info->rank) return false;
    return mask_eval_at(e, in, mask_eval_broadcast(in, t, index), depth, out);
}

static double of_add(double a, double b) { return a + b; }
static double of_sub(double a, double b) { return a - b; }
static double of_mul(double a, double b) { return a * b; }
static double of_div(double a, double b) { return a / b; }
static double of_pow(double a, double b) { return pow(a, b); }
static double of_max(double a, double b) { return a > b ? a : b; }
static double of_min(double a, double b) { return a < b ? a : b; }
static double of_equal(double a, double b) { return a == b; }
static double of_less(double a, double b) { return a < b; }
static double of_less_equal(double a, double b) { return a <= b; }
static double of_greater(double a, double b) { return a > b; }
static double of_greater_equal(double a, double b) { return a >= b; }
static double of_and(double a, double b) { return a != 0 && b != 0; }
static double of_or(double a, double b) { return a != 0 || b != 0; }
static double of_xor(double a, double b) { return (a != 0) != (b != 0); }
static double of_mod(double a, double b) { return b == 0 ? 0 : a - floor(a / b) * b; }

typedef double binary_fn(double, double);

/* clang-format off */
static const struct { const char *name; binary_fn *fn; } binaries[] = {
    {"Add", of_add}, {"And", of_and}, {"Div", of_div}, {"Equal", of_equal}, {"Greater", of_greater},
    {"GreaterOrEqual", of_greater_equal}, {"Less", of_less}, {"LessOrEqual", of_less_equal}, {"Max", of_max},
    {"Min", of_min}, {"Mod", of_mod}, {"Mul", of_mul}, {"Or", of_or}, {"Pow", of_pow}, {"Sub", of_sub},
    {"Sum", of_add}, {"Xor", of_xor},
};
/* clang-format on */

static binary_fn *binary_find(const char *name) {
    for (size_t k = 0; k < sizeof binaries / sizeof *binaries; k++) {
        if (strcmp(binaries[k].name, name) == 0) return binaries[k].fn;
    }
    return NULL;
}

static bool number_binary(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    binary_fn *fn = binary_find(n->op_type);
    mask_number x;
    if (!fn || n->in_count < 1 || !operand(e, n, 0, t, index, depth, out)) return false;
    for (int i = 1; i < n->in_count; i++) {
        if (!operand(e, n, i, t, index, depth, &x)) return false;
        out->x = fn(out->x, x.x);
        out->depends = out->depends || x.depends;
    }
    bool whole = dtype_get(t->info->type)->cls == DTYPE_CLASS_INT;
    if (whole && fn == of_div) out->x = trunc(out->x);
    return true;
}

/* A side that cannot be evaluated is taken like an input that hides nothing: what the other side says is still seen. */
static bool number_logic(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    bool conjunction = strcmp(n->op_type, "And") == 0;
    mask_number a, b;
    bool has_a = operand(e, n, 0, t, index, depth, &a), has_b = operand(e, n, 1, t, index, depth, &b);
    if (!has_a && !has_b) return false;
    if (!has_a) a = (mask_number){.x = conjunction, .depends = true};
    if (!has_b) b = (mask_number){.x = conjunction, .depends = true};
    out->x = conjunction ? of_and(a.x, b.x) : of_or(a.x, b.x);
    out->depends = a.depends || b.depends;
    return true;
}

static double one_abs(double a) { return fabs(a); }
static double one_ceil(double a) { return ceil(a); }
static double one_exp(double a) { return exp(a); }
static double one_floor(double a) { return floor(a); }
static double one_is_inf(double a) { return isinf(a) != 0; }
static double one_is_nan(double a) { return isnan(a) != 0; }
static double one_log(double a) { return log(a); }
static double one_neg(double a) { return -a; }
static double one_not(double a) { return a == 0; }
static double one_reciprocal(double a) { return 1 / a; }
static double one_relu(double a) { return a > 0 ? a : 0; }
static double one_round(double a) { return nearbyint(a); }
static double one_sign(double a) { return (a > 0) - (a < 0); }
static double one_sqrt(double a) { return sqrt(a); }

/* clang-format off */
static const struct { const char *name; double (*fn)(double); } unaries[] = {
    {"Abs", one_abs}, {"Ceil", one_ceil}, {"Exp", one_exp}, {"Floor", one_floor}, {"IsInf", one_is_inf},
    {"IsNaN", one_is_nan}, {"Log", one_log}, {"Neg", one_neg}, {"Not", one_not}, {"Reciprocal", one_reciprocal},
    {"Relu", one_relu}, {"Round", one_round}, {"Sign", one_sign}, {"Sqrt", one_sqrt},
};
/* clang-format on */

static bool number_unary(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    (void)t;
    if (!mask_eval_at(e, input(n, 0), index, depth, out)) return false;
    for (size_t k = 0; k < sizeof unaries / sizeof *unaries; k++) {
        if (strcmp(unaries[k].name, n->op_type) != 0) continue;
        out->x = unaries[k].fn(out->x);
        return true;
    }
    return false;
}

static bool number_cast(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    if (!mask_eval_at(e, input(n, 0), index, depth, out)) return false;
    if (t->info->type == DTYPE_BOOL)
        out->x = out->x != 0;
    else if (dtype_get(t->info->type)->cls == DTYPE_CLASS_INT)
        out->x = trunc(out->x);
    return true;
}

/* Only the branch that is taken is looked at. */
static bool number_where(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    mask_number taken;
    if (!operand(e, n, 0, t, index, depth, &taken)) return false;
    if (!operand(e, n, taken.x != 0 ? 1 : 2, t, index, depth, out)) return false;
    out->depends = out->depends || taken.depends;
    return true;
}

static bool number_clip(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    mask_number low = {.x = graph_attr_float(n, "min", -INFINITY)}, high = {.x = graph_attr_float(n, "max", INFINITY)};
    (void)t;
    if (!mask_eval_at(e, input(n, 0), index, depth, out)) return false;
    if (input(n, 1) && !mask_eval_at(e, n->in[1], 0, depth, &low)) return false;
    if (input(n, 2) && !mask_eval_at(e, n->in[2], 0, depth, &high)) return false;
    out->x = of_min(of_max(out->x, low.x), high.x);
    out->depends = out->depends || low.depends || high.depends;
    return true;
}

static bool number_range(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    mask_number start, step;
    (void)t;
    if (!mask_eval_at(e, input(n, 0), 0, depth, &start) || !mask_eval_at(e, input(n, 2), 0, depth, &step)) return false;
    out->x = start.x + (double)index * step.x;
    out->depends = start.depends || step.depends;
    return true;
}

/* The sum of what stands before (or, reversed, behind) along an axis. */
static bool number_cumsum(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    int64_t pos[MASK_EVAL_MAX_RANK], count;
    const int64_t *axes = mask_eval_ints(e, input(n, 1), &count);
    if (!axes || count != 1 || mask_eval_rank(in) != t->info->rank) return false;
    int64_t axis = axes[0] < 0 ? axes[0] + t->info->rank : axes[0];
    if (axis < 0 || axis >= t->info->rank) return false;
    mask_eval_split(t, index, pos);
    bool exclusive = graph_attr_int(n, "exclusive", 0) != 0, reverse = graph_attr_int(n, "reverse", 0) != 0;
    int64_t own = pos[axis], first = reverse ? own + exclusive : 0;
    int64_t end = reverse ? in->info->dims[axis] : own + !exclusive;
    *out = (mask_number){.x = 0};
    for (int64_t k = first; k < end; k++) {
        mask_number one;
        pos[axis] = k;
        if (!mask_eval_at(e, in, mask_eval_index(in, pos), depth, &one)) return false;
        out->x += one.x;
        out->depends = out->depends || one.depends;
    }
    return true;
}

static bool number_of_shape(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const attr *given = graph_attr(n, "value", ATTR_TENSOR);
    (void)t, (void)index, (void)depth;
    *out = (mask_number){0};
    if (!given || !given->t) return true;
    const value *v = given->t->info && given->t->info->val ? given->t->info->val : read_values(e->m, given->t, 1);
    if (!v || v->n < 1) return false;
    out->x = value_at(v, 0);
    return true;
}

static bool number_eye(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    int64_t pos[MASK_EVAL_MAX_RANK];
    (void)e, (void)depth;
    if (t->info->rank != 2) return false;
    mask_eval_split(t, index, pos);
    *out = (mask_number){.x = pos[1] - pos[0] == graph_attr_int(n, "k", 0)};
    return true;
}

/* clang-format off */
static const mask_eval_row numbers[] = { /* sorted by name */
    {"Abs", number_unary}, {"Add", number_binary}, {"And", number_logic}, {"Cast", number_cast}, {"CastLike", number_cast},
    {"Ceil", number_unary}, {"Clip", number_clip}, {"ConstantOfShape", number_of_shape}, {"CumSum", number_cumsum}, {"Div", number_binary},
    {"Equal", number_binary}, {"Exp", number_unary}, {"EyeLike", number_eye}, {"Floor", number_unary}, {"Greater", number_binary},
    {"GreaterOrEqual", number_binary}, {"IsInf", number_unary}, {"IsNaN", number_unary}, {"Less", number_binary},
    {"LessOrEqual", number_binary}, {"Log", number_unary}, {"Max", number_binary}, {"Min", number_binary}, {"Mod", number_binary},
    {"Mul", number_binary}, {"Neg", number_unary}, {"Not", number_unary}, {"Or", number_logic}, {"Pow", number_binary},
    {"Range", number_range}, {"Reciprocal", number_unary}, {"Relu", number_unary}, {"Round", number_unary}, {"Sign", number_unary},
    {"Sqrt", number_unary}, {"Sub", number_binary}, {"Sum", number_binary}, {"Where", number_where}, {"Xor", number_binary},
};
/* clang-format on */

mask_eval_fn *mask_number_find(const char *op_type) {
    const mask_eval_row *row = graph_row(numbers, sizeof numbers / sizeof *numbers, sizeof *numbers, op_type);
    return row ? row->fn : NULL;
}
