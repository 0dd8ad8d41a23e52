/* Scalar functions by operator name. Integers are computed as int64 and wrapped to their type, floating numbers as
 * double and rounded to theirs, which for the basic operations is exactly what a runtime computes. */

#include "common/checked.h"
#include "extract/infer/value_index.h"

#include <math.h>
#include <string.h>

static int64_t int_abs(int64_t x) { return x < 0 ? checked_sub(0, x) : x; }
static int64_t int_neg(int64_t x) { return checked_sub(0, x); }
static int64_t int_sign(int64_t x) { return (x > 0) - (x < 0); }
static int64_t int_not(int64_t x) { return x == 0; }
static int64_t int_invert(int64_t x) { return ~x; }
static int64_t int_relu(int64_t x) { return x > 0 ? x : 0; }
static int64_t int_same(int64_t x) { return x; }

/* p: the operator's parameters, by the table below */
static double real_abs(double x, const double *p) { return (void)p, fabs(x); }
static double real_neg(double x, const double *p) { return (void)p, -x; }
static double real_sign(double x, const double *p) { return (void)p, (double)((x > 0) - (x < 0)); }
static double real_ceil(double x, const double *p) { return (void)p, ceil(x); }
static double real_floor(double x, const double *p) { return (void)p, floor(x); }
static double real_round(double x, const double *p) { return (void)p, rint(x); } /* the default mode is ties to even */
static double real_sqrt(double x, const double *p) { return (void)p, sqrt(x); }
static double real_reciprocal(double x, const double *p) { return (void)p, 1 / x; }
static double real_exp(double x, const double *p) { return (void)p, exp(x); }
static double real_log(double x, const double *p) { return (void)p, log(x); }
static double real_erf(double x, const double *p) { return (void)p, erf(x); }
static double real_sin(double x, const double *p) { return (void)p, sin(x); }
static double real_cos(double x, const double *p) { return (void)p, cos(x); }
static double real_tan(double x, const double *p) { return (void)p, tan(x); }
static double real_atan(double x, const double *p) { return (void)p, atan(x); }
static double real_tanh(double x, const double *p) { return (void)p, tanh(x); }
static double real_sigmoid(double x, const double *p) { return (void)p, 1 / (1 + exp(-x)); }
static double real_relu(double x, const double *p) { return (void)p, x > 0 ? x : x == x ? 0 : x; }
static double real_softplus(double x, const double *p) { return (void)p, log1p(exp(x)); }
static double real_softsign(double x, const double *p) { return (void)p, x / (1 + fabs(x)); }
static double real_leaky(double x, const double *p) { return x < 0 ? p[0] * x : x; }
static double real_elu(double x, const double *p) { return x < 0 ? p[0] * expm1(x) : x; }
static double real_threshold(double x, const double *p) { return x > p[0] ? x : 0; }
static double real_hard_sigmoid(double x, const double *p) { return fmax(0, fmin(1, p[0] * x + p[1])); }
static double real_hard_swish(double x, const double *p) { return (void)p, x * fmax(0, fmin(1, x / 6 + 0.5)); }
static double real_swish(double x, const double *p) { return x / (1 + exp(-p[0] * x)); }

typedef struct unary_row {
    const char *name;
    int64_t (*integer)(int64_t); /* NULL: not defined on integers */
    double (*real)(double, const double *);
    struct {
        const char *attr;
        double otherwise;
    } params[2];
} unary_row;

static const unary_row unary_rows[] = {
    {"Abs", int_abs, real_abs, {{0}}},
    {"Neg", int_neg, real_neg, {{0}}},
    {"Sign", int_sign, real_sign, {{0}}},
    {"Not", int_not, NULL, {{0}}},
    {"BitwiseNot", int_invert, NULL, {{0}}},
    {"Ceil", int_same, real_ceil, {{0}}},
    {"Floor", int_same, real_floor, {{0}}},
    {"Round", int_same, real_round, {{0}}},
    {"Sqrt", NULL, real_sqrt, {{0}}},
    {"Reciprocal", NULL, real_reciprocal, {{0}}},
    {"Exp", NULL, real_exp, {{0}}},
    {"Log", NULL, real_log, {{0}}},
    {"Erf", NULL, real_erf, {{0}}},
    {"Sin", NULL, real_sin, {{0}}},
    {"Cos", NULL, real_cos, {{0}}},
    {"Tan", NULL, real_tan, {{0}}},
    {"Atan", NULL, real_atan, {{0}}},
    {"Tanh", NULL, real_tanh, {{0}}},
    {"Sigmoid", NULL, real_sigmoid, {{0}}},
    {"Relu", int_relu, real_relu, {{0}}},
    {"Softplus", NULL, real_softplus, {{0}}},
    {"Softsign", NULL, real_softsign, {{0}}},
    {"LeakyRelu", NULL, real_leaky, {{"alpha", 0.01}}},
    {"Elu", NULL, real_elu, {{"alpha", 1}}},
    {"ThresholdedRelu", NULL, real_threshold, {{"alpha", 1}}},
    {"HardSigmoid", NULL, real_hard_sigmoid, {{"alpha", 0.2}, {"beta", 0.5}}},
    {"HardSwish", NULL, real_hard_swish, {{0}}},
    {"Swish", NULL, real_swish, {{"alpha", 1}}},
};

static bool int_add(int64_t a, int64_t b, int64_t *r) { return *r = (int64_t)((uint64_t)a + (uint64_t)b), true; }
static bool int_sub(int64_t a, int64_t b, int64_t *r) { return *r = (int64_t)((uint64_t)a - (uint64_t)b), true; }
static bool int_mul(int64_t a, int64_t b, int64_t *r) { return *r = (int64_t)((uint64_t)a * (uint64_t)b), true; }
static bool int_div(int64_t a, int64_t b, int64_t *r) { return b != 0 && (*r = checked_div(a, b), true); }
static bool int_rem(int64_t a, int64_t b, int64_t *r) { return b != 0 && (*r = checked_rem(a, b), true); }
static bool int_mod(int64_t a, int64_t b, int64_t *r) { /* the sign of the divisor, as in Python */
    if (!int_rem(a, b, r)) return false;
    if (*r != 0 && (*r < 0) != (b < 0)) *r += b;
    return true;
}
static bool int_pow(int64_t a, int64_t b, int64_t *r) {
    *r = b < 0 ? (a == 1) - (a == -1 && b % 2 != 0) + (a == -1 && b % 2 == 0) : 1;
    if (b < 0) return a != 0;
    for (int64_t base = a; b > 0; b >>= 1) {
        if (b & 1) int_mul(*r, base, r);
        int_mul(base, base, &base);
    }
    return true;
}
static bool int_min(int64_t a, int64_t b, int64_t *r) { return *r = a < b ? a : b, true; }
static bool int_max(int64_t a, int64_t b, int64_t *r) { return *r = a > b ? a : b, true; }
static bool int_and(int64_t a, int64_t b, int64_t *r) { return *r = a & b, true; }
static bool int_or(int64_t a, int64_t b, int64_t *r) { return *r = a | b, true; }
static bool int_xor(int64_t a, int64_t b, int64_t *r) { return *r = a ^ b, true; }
static bool int_left(int64_t a, int64_t b, int64_t *r) {
    return *r = b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b), true;
}
static bool int_right(int64_t a, int64_t b, int64_t *r) {
    return *r = a >> (b < 0 || b > 63 ? 63 : b), true; /* the sign fills */
}

static double real_add(double a, double b) { return a + b; }
static double real_sub(double a, double b) { return a - b; }
static double real_mul(double a, double b) { return a * b; }
static double real_div(double a, double b) { return a / b; }
static double real_mod(double a, double b) {
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static double real_min(double a, double b) { return a != a || a < b ? a : b; }
static double real_max(double a, double b) { return a != a || a > b ? a : b; }

typedef struct binary_row {
    const char *name;
    bool (*integer)(int64_t, int64_t, int64_t *);
    double (*real)(double, double);
} binary_row;

static const binary_row binary_rows[] = {
    {"Add", int_add, real_add},    {"Sub", int_sub, real_sub},    {"Mul", int_mul, real_mul},
    {"Div", int_div, real_div},    {"Pow", int_pow, pow},         {"Mod", int_mod, real_mod},
    {"FMod", int_rem, fmod},       {"Min", int_min, real_min},    {"Max", int_max, real_max},
    {"Sum", int_add, real_add},    {"And", int_and, NULL},        {"Or", int_or, NULL},
    {"Xor", int_xor, NULL},        {"BitwiseAnd", int_and, NULL}, {"BitwiseOr", int_or, NULL},
    {"BitwiseXor", int_xor, NULL}, {"ShiftLeft", int_left, NULL}, {"ShiftRight", int_right, NULL},
};

typedef struct compare_row {
    const char *name;
    bool less, equal, greater; /* the outcomes for which it holds */
} compare_row;

static const compare_row compare_rows[] = {
    {"Equal", false, true, false},      {"Less", true, false, false},          {"Greater", false, false, true},
    {"LessOrEqual", true, true, false}, {"GreaterOrEqual", false, true, true},
};

/* 64-bit unsigned numbers above the signed range would be taken for negative ones. */
static bool in_signed_range(const value *v, dtype type) {
    if (type != DTYPE_UINT64 || !v->i) return true;
    for (int64_t k = 0; k < v->n; k++)
        if (v->i[k] < 0) return false;
    return true;
}

const value *value_elementwise_unary(const infer *c, const char *name, const value *v, dtype type) {
    const unary_row *row = NULL;
    for (size_t r = 0; r < sizeof unary_rows / sizeof *unary_rows && !row; r++)
        if (!strcmp(unary_rows[r].name, name)) row = &unary_rows[r];
    if (!row || !value_number_tracked(type) || !in_signed_range(v, type)) return NULL;
    if (v->i ? !row->integer : !row->real) return NULL;
    double p[2] = {0, 0};
    for (int k = 0; k < 2 && row->params[k].attr; k++)
        p[k] = infer_attr_float(c, row->params[k].attr, row->params[k].otherwise);
    int64_t *i;
    double *f;
    value *r = value_index_new(c->arena, type, v->n, &i, &f);
    if ((i != NULL) != (v->i != NULL)) return NULL;
    for (int64_t k = 0; k < v->n; k++) {
        if (i)
            i[k] = value_number_wrap(type, row->integer(v->i[k]));
        else
            f[k] = value_number_round(type, row->real(v->f[k], p));
    }
    return r;
}

static const binary_row *binary_find(const char *name) {
    for (size_t r = 0; r < sizeof binary_rows / sizeof *binary_rows; r++)
        if (!strcmp(binary_rows[r].name, name)) return &binary_rows[r];
    return NULL;
}

const value *value_elementwise_binary(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                      dtype type, int rank, const int64_t *dims) {
    const binary_row *row = binary_find(name);
    if (!row || !value_number_tracked(type) || !in_signed_range(x->v, x->type) || !in_signed_range(y->v, y->type))
        return NULL;
    bool integers = x->v->i && y->v->i;
    if (integers ? !row->integer : !row->real) return NULL;
    int64_t *i, n = value_index_count(rank, dims);
    double *f;
    value *r = value_index_new(a, type, n, &i, &f);
    arena_mark scratch = arena_save(a);
    const int64_t *from_x = value_index_broadcast(a, rank, dims, x->rank, x->dims);
    const int64_t *from_y = value_index_broadcast(a, rank, dims, y->rank, y->dims);
    bool defined = true;
    for (int64_t k = 0; k < n && defined; k++) {
        int64_t whole = 0;
        double real = 0;
        if (integers)
            defined = row->integer(x->v->i[from_x[k]], y->v->i[from_y[k]], &whole);
        else /* a mixed pair (a power with a floating exponent) is computed in floating point */
            real = row->real(value_at(x->v, from_x[k]), value_at(y->v, from_y[k]));
        if (i)
            i[k] = value_number_wrap(type, integers ? whole : checked_from_double(real));
        else
            f[k] = value_number_round(type, integers ? (double)whole : real);
    }
    arena_rewind(a, scratch);
    return defined ? r : NULL;
}

const value *value_elementwise_compare(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                       int rank, const int64_t *dims) {
    const compare_row *row = NULL;
    for (size_t r = 0; r < sizeof compare_rows / sizeof *compare_rows && !row; r++)
        if (!strcmp(compare_rows[r].name, name)) row = &compare_rows[r];
    if (!row || !in_signed_range(x->v, x->type) || !in_signed_range(y->v, y->type)) return NULL;
    int64_t *i, n = value_index_count(rank, dims);
    double *f;
    value *r = value_index_new(a, DTYPE_BOOL, n, &i, &f);
    arena_mark scratch = arena_save(a);
    const int64_t *from_x = value_index_broadcast(a, rank, dims, x->rank, x->dims);
    const int64_t *from_y = value_index_broadcast(a, rank, dims, y->rank, y->dims);
    for (int64_t k = 0; k < n; k++) {
        bool less, equal, greater;
        if (x->v->i && y->v->i) {
            int64_t p = x->v->i[from_x[k]], q = y->v->i[from_y[k]];
            less = p<q, equal = p == q, greater = p> q;
        } else {
            double p = value_at(x->v, from_x[k]), q = value_at(y->v, from_y[k]);
            less = p<q, equal = p == q, greater = p> q;
        }
        i[k] = (less && row->less) || (equal && row->equal) || (greater && row->greater);
    }
    arena_rewind(a, scratch);
    return r;
}

const value *value_elementwise_clip(arena *a, const value *v, dtype type, const value *low, const value *high) {
    if (!value_number_tracked(type) || !in_signed_range(v, type)) return NULL;
    int64_t *i;
    double *f;
    value *r = value_index_new(a, type, v->n, &i, &f);
    if ((i != NULL) != (v->i != NULL)) return NULL;
    for (int64_t k = 0; k < v->n; k++) {
        if (i) {
            i[k] = v->i[k];
            if (low && low->i && i[k] < low->i[0]) i[k] = low->i[0];
            if (high && high->i && i[k] > high->i[0]) i[k] = high->i[0];
        } else {
            f[k] = v->f[k];
            if (low && f[k] < value_at(low, 0)) f[k] = value_number_round(type, value_at(low, 0));
            if (high && f[k] > value_at(high, 0)) f[k] = value_number_round(type, value_at(high, 0));
        }
    }
    return r;
}

bool value_elementwise_step(const char *name, bool integer, int64_t *i, double *f, int64_t xi, double xf) {
    const binary_row *row = binary_find(name);
    if (!row || (integer ? !row->integer : !row->real)) return false;
    if (integer) return row->integer(*i, xi, i);
    *f = row->real(*f, xf);
    return true;
}
