/* Every elementwise operator in fp64 from the C library's functions, and on integers in 64 bits that wrap around. */
#include "scout/cpu/reference/cpu_reference_operators.h"

#include "common/checked.h"

#include <math.h>

/* Beside |want|, what an element is made of: nothing else; the operands, which may cancel; the first operand, whose
 * halves may cancel (gelu of a negative number), or it times the second; a number near 1 (a logarithm near 0, an
 * exponential minus 1). */
typedef enum spread_of { OF_NOTHING, OF_OPERANDS, OF_FIRST, OF_PRODUCT, OF_ONE } spread_of;

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
/* With the sign of the first (fmod), or with that of the second. */
static double remainder_of(const double *x, const elementwise_numbers *p) {
    const double r = fmod(x[0], x[1]);
    return p->alpha != 0 || r == 0 || signbit(r) == signbit(x[1]) ? r : r + x[1];
}
static double shrunk(double x, const elementwise_numbers *p) {
    return fabs(x) > p->alpha ? x - copysign(p->beta, x) : 0;
}
static double power(const double *x, int n, const elementwise_numbers *p) { return pow(x[0], n > 1 ? x[1] : p->alpha); }

FLOATS(abs, fabs(x[0]))
FLOATS(neg, -x[0])
FLOATS(relu, fmax(x[0], 0))
FLOATS(relu6, fmin(fmax(x[0], 0), 6))
FLOATS(squared_relu, fmax(x[0], 0) * fmax(x[0], 0))
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
FLOATS(tan, tan(x[0]))
FLOATS(acos, acos(x[0]))
FLOATS(asin, asin(x[0]))
FLOATS(atan, atan(x[0]))
FLOATS(sinh, sinh(x[0]))
FLOATS(cosh, cosh(x[0]))
FLOATS(acosh, x[0] > 1 ? acosh(x[0]) : 0) /* below 1: undefined; 0 here */
FLOATS(asinh, asinh(x[0]))
FLOATS(atanh, atanh(x[0]))
FLOATS(shrink, shrunk(x[0], p))
FLOATS(isnan, isnan(x[0]) ? 1 : 0)
FLOATS(isinf, isinf(x[0]) && (x[0] < 0 ? p->alpha : p->beta) != 0 ? 1 : 0)
FLOATS(not, x[0] == 0)
FLOATS(add, x[0] + x[1])
FLOATS(sub, x[0] - x[1])
FLOATS(mul, x[0] * x[1])
FLOATS(div, x[0] / x[1])
FLOATS(pow, power(x, n, p))
FLOATS(mod, remainder_of(x, p))
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
FLOATS(geglu, gelu(x[0]) * x[1])
FLOATS(geglu_tanh, gelu_tanh(x[0]) * x[1])
FLOATS(quick_geglu, x[0] * sigmoid(p->alpha * x[0]) * x[1])
FLOATS(reglu, fmax(x[0], 0) * x[1])
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

/* By 0: undefined; 0 here. */
static int64_t whole_mod(const int64_t *x, const elementwise_numbers *p) {
    if (x[1] == 0 || x[1] == -1) return 0;
    const int64_t r = x[0] % x[1];
    return p->alpha != 0 || r == 0 || (r ^ x[1]) >= 0 ? r : r + x[1];
}
/* From the highest bit of the exponent on. A power below 0 is cut to whole numbers. */
static int64_t whole_power(int64_t x, int64_t e) {
    uint64_t y = 1;
    if (e < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (e & 1) : 0;
    for (int bit = 62; bit >= 0; bit--) y = y * y * (e >> bit & 1 ? (uint64_t)x : 1);
    return (int64_t)y;
}
static int64_t exponent(const int64_t *x, int n, const elementwise_numbers *p) {
    return n > 1 ? x[1] : checked_from_double(p->alpha);
}
/* In 64 bits, by the lowest six of the second. */
static int64_t shifted(const int64_t *x, const elementwise_numbers *p) {
    const int by = (int)(x[1] & 63);
    return p->alpha != 0 ? x[0] >> by : (int64_t)((uint64_t)x[0] << by);
}
WHOLES(mod, whole_mod(x, p))
WHOLES(pow, whole_power(x[0], exponent(x, n, p)))
WHOLES(bitwisenot, -1 - x[0])
WHOLES(bitwiseand, x[0] & x[1])
WHOLES(bitwiseor, x[0] | x[1])
WHOLES(bitwisexor, x[0] ^ x[1])
WHOLES(bitshift, shifted(x, p))

typedef struct row { /* of an operator */
    floats_fn *floats;
    wholes_fn *wholes; /* NULL: not of integers */
    spread_of spread;
} row;

#define FLOAT_ROW(name, spread) [ELEMENTWISE_##name] = {f_##name, NULL, spread}
#define BOTH_ROW(name, spread)  [ELEMENTWISE_##name] = {f_##name, i_##name, spread}
#define WHOLE_ROW(name)         [ELEMENTWISE_##name] = {NULL, i_##name, OF_NOTHING}
static const row rows[ELEMENTWISE_COUNT] = {
    BOTH_ROW(abs, OF_NOTHING),
    BOTH_ROW(neg, OF_NOTHING),
    BOTH_ROW(relu, OF_NOTHING),
    FLOAT_ROW(relu6, OF_NOTHING),
    FLOAT_ROW(squared_relu, OF_NOTHING),
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
    FLOAT_ROW(tan, OF_ONE),
    FLOAT_ROW(acos, OF_ONE),
    FLOAT_ROW(asin, OF_ONE),
    FLOAT_ROW(atan, OF_ONE),
    FLOAT_ROW(sinh, OF_ONE),
    FLOAT_ROW(cosh, OF_NOTHING),
    FLOAT_ROW(acosh, OF_ONE),
    FLOAT_ROW(asinh, OF_ONE),
    FLOAT_ROW(atanh, OF_ONE),
    FLOAT_ROW(shrink, OF_FIRST),
    FLOAT_ROW(isnan, OF_NOTHING),
    FLOAT_ROW(isinf, OF_NOTHING),
    FLOAT_ROW(not, OF_NOTHING),
    BOTH_ROW(add, OF_OPERANDS),
    BOTH_ROW(sub, OF_OPERANDS),
    BOTH_ROW(mul, OF_NOTHING),
    BOTH_ROW(div, OF_NOTHING),
    BOTH_ROW(pow, OF_NOTHING),
    BOTH_ROW(mod, OF_NOTHING),
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
    FLOAT_ROW(geglu, OF_PRODUCT),
    FLOAT_ROW(geglu_tanh, OF_PRODUCT),
    FLOAT_ROW(quick_geglu, OF_NOTHING),
    FLOAT_ROW(reglu, OF_NOTHING),
    FLOAT_ROW(biasgelu, OF_OPERANDS),
    FLOAT_ROW(fastgelu, OF_OPERANDS),
    FLOAT_ROW(biasadd, OF_OPERANDS),
    BOTH_ROW(where, OF_NOTHING),
    WHOLE_ROW(bitwisenot),
    WHOLE_ROW(bitwiseand),
    WHOLE_ROW(bitwiseor),
    WHOLE_ROW(bitwisexor),
    WHOLE_ROW(bitshift),
};

/* --- one operator --- */

double cpu_reference_operators_floats(elementwise_id id, const double *x, int n, const elementwise_numbers *p) {
    return rows[id].floats(x, n, p);
}

int64_t cpu_reference_operators_wholes(elementwise_id id, const int64_t *x, int n, const elementwise_numbers *p) {
    return rows[id].wholes(x, n, p);
}

bool cpu_reference_operators_has(elementwise_id id, bool wholes) {
    return id < ELEMENTWISE_COUNT && (wholes ? rows[id].wholes != NULL : rows[id].floats != NULL);
}

double cpu_reference_operators_spread(elementwise_id id, const double *x, int n) {
    double squares = 0;
    switch (rows[id].spread) {
    case OF_NOTHING: break;
    case OF_OPERANDS:
        for (int k = 0; k < n; k++) squares += x[k] * x[k];
        break;
    case OF_FIRST: squares = x[0] * x[0]; break;
    case OF_PRODUCT: squares = x[0] * x[1] * (x[0] * x[1]); break;
    case OF_ONE: squares = 1; break;
    }
    return sqrt(squares);
}
