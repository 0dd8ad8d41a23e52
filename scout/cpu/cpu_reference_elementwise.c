/* The reference of what is computed element by element: every operator in fp64 from the C library's functions, and on
 * integers in 64 bits, wrapped to the type. */
#include "scout/cpu/cpu_reference.h"

#include "common/checked.h"
#include "scout/cpu/cpu_number.h"
#include "scout/cpu/cpu_whole.h"
#include "scout/elementwise.h"

#include <math.h>

/* Beside |want|, what an element is made of: nothing else; the operands, which may cancel; the first operand, whose
 * halves may cancel (gelu of a negative number); a number near 1 (a logarithm near 0, an exponential minus 1). */
typedef enum spread_of { OF_NOTHING, OF_OPERANDS, OF_FIRST, OF_ONE } spread_of;

typedef double floats_fn(const double *x, int n, const elementwise_numbers *p);
typedef int64_t wholes_fn(const int64_t *x, int n, const elementwise_numbers *p);

#define FLOATS(name, expression)                                                                                       \
    static double f_##name(const double *x, int n, const elementwise_numbers *p) {                                     \
        (void)n, (void)p, (void)x;                                                                                     \
        return expression;                                                                                             \
    }
#define WHOLES(name, expression)                                                                                       \
    static int64_t i_##name(const int64_t *x, int n, const elementwise_numbers *p) {                                   \
        (void)n, (void)p, (void)x;                                                                                     \
        return expression;                                                                                             \
    }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x) { return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)); }
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }
static double least(const double *x, int n) {
    double y = x[0];
    for (int k = 1; k < n; k++) y = fmin(y, x[k]);
    return y;
}
static double most(const double *x, int n) {
    double y = x[0];
    for (int k = 1; k < n; k++) y = fmax(y, x[k]);
    return y;
}
static double total(const double *x, int n) {
    double y = 0;
    for (int k = 0; k < n; k++) y += x[k];
    return y;
}
static double power(const double *x, int n, const elementwise_numbers *p) { return pow(x[0], n > 1 ? x[1] : p->alpha); }

FLOATS(abs, fabs(x[0]))
FLOATS(neg, -x[0])
FLOATS(relu, fmax(x[0], 0))
FLOATS(sign, (x[0] > 0) - (x[0] < 0))
FLOATS(clip, fmin(fmax(x[0], p->alpha), p->beta))
FLOATS(ceil, ceil(x[0]))
FLOATS(floor, floor(x[0]))
FLOATS(round, rint(x[0]))
FLOATS(sqrt, sqrt(x[0]))
FLOATS(reciprocal, 1 / x[0])
FLOATS(exp, exp(x[0]))
FLOATS(log, log(x[0]))
FLOATS(sin, sin(x[0]))
FLOATS(cos, cos(x[0]))
FLOATS(tanh, tanh(x[0]))
FLOATS(erf, erf(x[0]))
FLOATS(sigmoid, sigmoid(x[0]))
FLOATS(silu, x[0] * sigmoid(x[0]))
FLOATS(swish, x[0] * sigmoid(p->alpha * x[0]))
FLOATS(gelu, gelu(x[0]))
FLOATS(gelu_tanh, gelu_tanh(x[0]))
FLOATS(mish, x[0] * tanh(softplus(x[0])))
FLOATS(softplus, softplus(x[0]))
FLOATS(softsign, x[0] / (1 + fabs(x[0])))
FLOATS(elu, x[0] > 0 ? x[0] : p->alpha * expm1(x[0]))
FLOATS(celu, x[0] > 0 ? x[0] : p->alpha * expm1(x[0] / p->alpha))
FLOATS(selu, p->beta *(x[0] > 0 ? x[0] : p->alpha * expm1(x[0])))
FLOATS(leakyrelu, x[0] > 0 ? x[0] : p->alpha * x[0])
FLOATS(thresholdedrelu, x[0] > p->alpha ? x[0] : 0)
FLOATS(hardsigmoid, fmin(fmax(p->alpha *x[0] + p->beta, 0), 1))
FLOATS(hardswish, x[0] * fmin(fmax(x[0] / 6 + 0.5, 0), 1))
FLOATS(isnan, isnan(x[0]) ? 1 : 0)
FLOATS(isinf, isinf(x[0]) && (x[0] < 0 ? p->alpha : p->beta) != 0 ? 1 : 0)
FLOATS(not, x[0] == 0)
FLOATS(add, x[0] + x[1])
FLOATS(sub, x[0] - x[1])
FLOATS(mul, x[0] * x[1])
FLOATS(div, x[0] / x[1])
FLOATS(pow, power(x, n, p))
FLOATS(prelu, x[0] > 0 ? x[0] : x[0] * x[1])
FLOATS(min, least(x, n))
FLOATS(max, most(x, n))
FLOATS(sum, total(x, n))
FLOATS(mean, total(x, n) / n)
FLOATS(equal, x[0] == x[1])
FLOATS(less, x[0] < x[1])
FLOATS(lessorequal, x[0] <= x[1])
FLOATS(greater, x[0] > x[1])
FLOATS(greaterorequal, x[0] >= x[1])
FLOATS(and, x[0] != 0 && x[1] != 0)
FLOATS(or, x[0] != 0 || x[1] != 0)
FLOATS(xor, (x[0] != 0) != (x[1] != 0))
FLOATS(swiglu, x[0] * sigmoid(x[0]) * x[1])
FLOATS(biasgelu, gelu(x[0] + x[1]))
FLOATS(fastgelu, gelu_tanh(x[0] + x[1]))
FLOATS(biasadd, x[0] + x[1] + x[2])
FLOATS(where, x[0] != 0 ? x[1] : x[2])

static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static int64_t whole_least(const int64_t *x, int n) {
    int64_t y = x[0];
    for (int k = 1; k < n; k++) y = x[k] < y ? x[k] : y;
    return y;
}
static int64_t whole_most(const int64_t *x, int n) {
    int64_t y = x[0];
    for (int k = 1; k < n; k++) y = x[k] > y ? x[k] : y;
    return y;
}

WHOLES(abs, x[0] < 0 ? wrap_sub(0, x[0]) : x[0])
WHOLES(neg, wrap_sub(0, x[0]))
WHOLES(relu, x[0] > 0 ? x[0] : 0)
WHOLES(sign, (x[0] > 0) - (x[0] < 0))
WHOLES(clip, x[0]<checked_from_double(p->alpha) ? checked_from_double(p->alpha) : x[0]> checked_from_double(p->beta)
                 ? checked_from_double(p->beta)
                 : x[0])
WHOLES(add, wrap_add(x[0], x[1]))
WHOLES(sub, wrap_sub(x[0], x[1]))
WHOLES(mul, wrap_mul(x[0], x[1]))
WHOLES(div, x[1] == 0 ? 0 : checked_div(x[0], x[1])) /* by 0: undefined in ONNX; 0 here */
WHOLES(min, whole_least(x, n))
WHOLES(max, whole_most(x, n))
WHOLES(equal, x[0] == x[1])
WHOLES(less, x[0] < x[1])
WHOLES(lessorequal, x[0] <= x[1])
WHOLES(greater, x[0] > x[1])
WHOLES(greaterorequal, x[0] >= x[1])
WHOLES(where, x[0] != 0 ? x[1] : x[2])

typedef struct row {
    floats_fn *floats;
    wholes_fn *wholes; /* NULL: not of integers */
    spread_of spread;
} row;

#define FLOAT_ROW(name, spread) [ELEMENTWISE_##name] = {f_##name, NULL, spread}
#define BOTH_ROW(name, spread)  [ELEMENTWISE_##name] = {f_##name, i_##name, spread}
static const row rows[ELEMENTWISE_COUNT] = {
    BOTH_ROW(abs, OF_NOTHING),
    BOTH_ROW(neg, OF_NOTHING),
    BOTH_ROW(relu, OF_NOTHING),
    BOTH_ROW(sign, OF_NOTHING),
    BOTH_ROW(clip, OF_NOTHING),
    FLOAT_ROW(ceil, OF_NOTHING),
    FLOAT_ROW(floor, OF_NOTHING),
    FLOAT_ROW(round, OF_NOTHING),
    FLOAT_ROW(sqrt, OF_NOTHING),
    FLOAT_ROW(reciprocal, OF_NOTHING),
    FLOAT_ROW(exp, OF_NOTHING),
    FLOAT_ROW(log, OF_ONE),
    FLOAT_ROW(sin, OF_ONE),
    FLOAT_ROW(cos, OF_ONE),
    FLOAT_ROW(tanh, OF_NOTHING),
    FLOAT_ROW(erf, OF_NOTHING),
    FLOAT_ROW(sigmoid, OF_NOTHING),
    FLOAT_ROW(silu, OF_NOTHING),
    [ELEMENTWISE_quickgelu] = {f_swish, NULL, OF_NOTHING},
    FLOAT_ROW(swish, OF_NOTHING),
    FLOAT_ROW(gelu, OF_FIRST),
    FLOAT_ROW(gelu_tanh, OF_FIRST),
    FLOAT_ROW(mish, OF_FIRST),
    FLOAT_ROW(softplus, OF_ONE),
    FLOAT_ROW(softsign, OF_NOTHING),
    FLOAT_ROW(elu, OF_ONE),
    FLOAT_ROW(celu, OF_ONE),
    FLOAT_ROW(selu, OF_ONE),
    FLOAT_ROW(leakyrelu, OF_NOTHING),
    FLOAT_ROW(thresholdedrelu, OF_NOTHING),
    FLOAT_ROW(hardsigmoid, OF_ONE),
    FLOAT_ROW(hardswish, OF_FIRST),
    FLOAT_ROW(isnan, OF_NOTHING),
    FLOAT_ROW(isinf, OF_NOTHING),
    FLOAT_ROW(not, OF_NOTHING),
    BOTH_ROW(add, OF_OPERANDS),
    BOTH_ROW(sub, OF_OPERANDS),
    BOTH_ROW(mul, OF_NOTHING),
    BOTH_ROW(div, OF_NOTHING),
    FLOAT_ROW(pow, OF_NOTHING),
    FLOAT_ROW(prelu, OF_NOTHING),
    BOTH_ROW(min, OF_NOTHING),
    BOTH_ROW(max, OF_NOTHING),
    FLOAT_ROW(sum, OF_OPERANDS),
    FLOAT_ROW(mean, OF_OPERANDS),
    BOTH_ROW(equal, OF_NOTHING),
    BOTH_ROW(less, OF_NOTHING),
    BOTH_ROW(lessorequal, OF_NOTHING),
    BOTH_ROW(greater, OF_NOTHING),
    BOTH_ROW(greaterorequal, OF_NOTHING),
    FLOAT_ROW(and, OF_NOTHING),
    FLOAT_ROW(or, OF_NOTHING),
    FLOAT_ROW(xor, OF_NOTHING),
    FLOAT_ROW(swiglu, OF_NOTHING),
    FLOAT_ROW(biasgelu, OF_OPERANDS),
    FLOAT_ROW(fastgelu, OF_OPERANDS),
    FLOAT_ROW(biasadd, OF_OPERANDS),
    BOTH_ROW(where, OF_NOTHING),
};

/* --- what the whole output should be --- */

typedef struct state {
    elementwise_walk walk;
    elementwise_numbers numbers;
    const row *is;
    uint32_t type; /* of the output */
    bool wholes;   /* computed in integers */
    double smallest, largest;
} state;

/* What an output can tell: below the smallest normal number it is coarse, beyond the largest it is infinite. */
static void set_range(state *s) {
    static const struct {
        uint32_t type;
        double smallest, largest;
    } ranges[] = {
        {SCOUT_FP32, 0x1p-126, 0x1.ffffffp127}, {SCOUT_BF16, 0x1p-126, 0x1.ffp127}, {SCOUT_FP16, 0x1p-14, 0x1.ffep15}};
    s->smallest = 0, s->largest = INFINITY;
    for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; k++)
        if (ranges[k].type == s->type) s->smallest = ranges[k].smallest, s->largest = ranges[k].largest;
}

static scout_answer open(const scout_op *op, void **out, scout_why *why) {
    const elementwise_id id = elementwise_id_of(op);
    if (id == ELEMENTWISE_COUNT || !rows[id].floats)
        return scout_say(why, SCOUT_NO, "feature", "the reference does not know this operator");
    state *s = calloc(1, sizeof *s);
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    s->walk = elementwise_walk_of(op);
    s->numbers = elementwise_numbers_of(op);
    s->is = &rows[id];
    s->type = op->output;
    s->wholes = op->input != SCOUT_BOOL && cpu_number_whole(op->input);
    set_range(s);
    *out = s;
    if (!s->wholes || s->is->wholes) return SCOUT_OK;
    free(s);
    *out = NULL;
    return scout_say(why, SCOUT_NO, "type", "the reference does not know this operator on integers");
}

static int64_t grain(const void *context, const scout_op *op, uint32_t output) {
    (void)context, (void)op, (void)output;
    return 1;
}

enum { RUN = 256 };
static size_t scratch(const void *context, const scout_op *op) {
    (void)context, (void)op;
    return (size_t)RUN * ELEMENTWISE_MAX_INPUTS;
}

static double spread_of_terms(const state *s, const double *x, int n) {
    double squares = 0;
    switch (s->is->spread) {
    case OF_NOTHING: break;
    case OF_OPERANDS:
        for (int k = 0; k < n; k++) squares += x[k] * x[k];
        break;
    case OF_FIRST: squares = x[0] * x[0]; break;
    case OF_ONE: squares = 1; break;
    }
    return sqrt(squares) + s->smallest;
}

/* As the type keeps it: modulo its range. */
static double wrapped(uint32_t type, int64_t value) {
    switch (type) {
    case SCOUT_INT32: return (double)(int32_t)(uint32_t)(uint64_t)value;
    case SCOUT_INT8: return (double)(int8_t)(uint8_t)(uint64_t)value;
    case SCOUT_UINT8: return (double)(uint8_t)(uint64_t)value;
    default: return (double)value;
    }
}

static double right(const state *s, const double *x, int n) {
    int64_t whole[ELEMENTWISE_MAX_INPUTS];
    if (!s->wholes) {
        const double want = s->is->floats(x, n, &s->numbers);
        return fabs(want) >= s->largest ? copysign(INFINITY, want) : want;
    }
    for (int k = 0; k < n; k++) whole[k] = (int64_t)x[k];
    return wrapped(s->type, s->is->wholes(whole, n, &s->numbers));
}

static scout_answer compute(const void *context, const scout_op *op, void *const *tensors, uint32_t output,
                            int64_t from, int64_t count, double *want, double *spread, double *room) {
    const state *s = context;
    const elementwise_walk *w = &s->walk;
    (void)output;
    for (int64_t at = 0; at < count;) {
        int64_t offsets[ELEMENTWISE_MAX_INPUTS], run = elementwise_walk_to(w, from + at, offsets);
        if (run > count - at) run = count - at;
        if (run > RUN) run = RUN;
        for (int k = 0; k < w->inputs; k++)
            cpu_number_load(op->tensors[w->source[k]].type, tensors[w->source[k]], offsets[k], w->strides[k][0], run,
                            room + (size_t)k * RUN);
        for (int64_t i = 0; i < run; i++, at++) {
            double x[ELEMENTWISE_MAX_INPUTS] = {0};
            for (int k = 0; k < w->inputs; k++) x[k] = room[k * RUN + i];
            want[at] = right(s, x, w->inputs);
            spread[at] = spread_of_terms(s, x, w->inputs);
        }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {
    .kind = SCOUT_ELEMENTWISE, .open = open, .grain = grain, .compute = compute, .scratch = scratch};

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    (void)device, (void)seed;
    return cpu_whole_begin(&whole, op, tensors, check, why);
}

const scout_reference cpu_reference_elementwise = {
    .size = sizeof(scout_reference),
    .kind = SCOUT_ELEMENTWISE,
    .begin = begin,
    .compare = cpu_whole_compare,
    .end = cpu_whole_end,
    .compare_at = cpu_whole_compare_at,
};
