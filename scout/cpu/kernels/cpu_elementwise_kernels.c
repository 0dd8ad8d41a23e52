/* One line an operator; every one is compiled for each width that the processor may have. */
#include "scout/cpu/kernels/cpu_elementwise_kernels.h"

#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_math.h"

#include <math.h>

#define WIDTHS(name)                                                                                                   \
    FAST static void name##_any(const cpu_elementwise_call *c) { name##_body(c); }                                     \
    FAST WIDE_AVX2 static void name##_avx2(const cpu_elementwise_call *c) { name##_body(c); }                          \
    FAST WIDE_AVX512 static void name##_avx512(const cpu_elementwise_call *c) { name##_body(c); }

/* Of x, y and z, as many as the operator has: the others are the first one again, and not read. */
#define LOOP(name, type, number, expression)                                                                           \
    FAST_BODY void name##_body(const cpu_elementwise_call *c) {                                                        \
        const type *const a = c->in[0], *const b = c->in[1], *const d = c->in[2];                                      \
        __typeof__(type) *restrict const out = c->out;                                                                 \
        const number alpha = (number)c->alpha, beta = (number)c->beta;                                                 \
        const int64_t low = c->low, high = c->high, n = c->count;                                                      \
        (void)alpha, (void)beta, (void)low, (void)high, (void)b, (void)d;                                              \
        for (int64_t k = 0; k < n; k++) out[k] = (type)(expression);                                                   \
    }                                                                                                                  \
    WIDTHS(name)
#define FLOATS(name, expression)   LOOP(f_##name, float, float, expression)
#define WHOLES(name, expression)   LOOP(i_##name, int64_t, float, expression)
#define NATURALS(name, expression) LOOP(u_##name, uint64_t, float, expression)
#define DOUBLES(name, expression)  LOOP(d_##name, double, double, expression)
#define X                          a[k]
#define Y                          b[k]
#define Z                          d[k]

/* Any number of operands: one after the other onto the output, which stays in the first cache. */
#define MANY(name, type, expression, end)                                                                              \
    FAST_BODY void name##_body(const cpu_elementwise_call *c) {                                                        \
        const type *const first = c->in[0];                                                                            \
        __typeof__(type) *restrict const out = c->out;                                                                 \
        const int64_t n = c->count; /* the output may alias, as far as compilers know */                               \
        const float share = 1.0F / (float)c->operands;                                                                 \
        (void)share;                                                                                                   \
        for (int64_t k = 0; k < n; k++) out[k] = first[k];                                                             \
        for (int o = 1; o < c->operands; o++) {                                                                        \
            const type *const a = c->in[o];                                                                            \
            for (int64_t k = 0; k < n; k++) out[k] = (expression);                                                     \
        }                                                                                                              \
        for (int64_t k = 0; k < n; k++) out[k] = (end);                                                                \
    }                                                                                                                  \
    WIDTHS(name)

FAST_BODY float gelu(float x) { return 0.5F * x * (1 + cpu_math_erf(x * 0.70710678F)); }
FAST_BODY float gelu_tanh(float x) { return x * cpu_math_sigmoid(2 * 0.79788456F * (x + 0.044715F * x * x * x)); }
FAST_BODY float minus_one(float x) { return cpu_math_exp_minus_one(cpu_math_min(0, x)); }
/* tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2) */
FAST_BODY float mish(float x) {
    const float e = cpu_math_exp(cpu_math_min(x, 20)), n = e * (e + 2);
    return x * (n / (n + 2));
}
FAST_BODY float near_even(float x) { /* from 2^23 on all are whole */
    const float size = cpu_math_abs(x), whole = (size + 0x1p23F) - 0x1p23F;
    const float near = cpu_math_float(cpu_math_bits(whole) | (cpu_math_bits(x) & 0x80000000u));
    return size < 0x1p23F ? near : x;
}
FAST_BODY float below(float x) { return near_even(x) - (near_even(x) > x ? 1.0F : 0.0F); }
/* A negative number has whole powers only. */
FAST_BODY float power(float x, float y) {
    const float of = cpu_math_abs(x), size = of == 1 ? 1 : cpu_math_exp(y * cpu_math_log(of));
    const bool whole = near_even(y) == y, odd = whole && near_even(y * 0.5F) != y * 0.5F;
    const float is = cpu_math_bits(x) >> 31 != 0 && odd ? -size : size;
    return y == 0 || x == 1 ? 1 : x < 0 && of < __builtin_inff() && !whole ? __builtin_nanf("") : is;
}
/* With the sign of x (fmod), or with that of y. */
FAST_BODY float remainder_of(float x, float y, float signed_as_x) {
    const float r = fmodf(x, y);
    return signed_as_x == 0 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
FAST_BODY double wide_remainder_of(double x, double y, double signed_as_x) {
    const double r = fmod(x, y);
    return signed_as_x == 0 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

FLOATS(abs, cpu_math_abs(X))
FLOATS(neg, -X)
FLOATS(relu, X > 0 ? X : 0)
FLOATS(relu6, cpu_math_min(cpu_math_max(X, 0), 6))
FLOATS(squared_relu, cpu_math_max(X, 0) * cpu_math_max(X, 0))
FLOATS(sign, (X > 0 ? 1.0F : 0.0F) - (X < 0 ? 1.0F : 0.0F))
FLOATS(clip, cpu_math_min(cpu_math_max(X, alpha), beta))
FLOATS(ceil, -below(-X))
FLOATS(floor, below(X))
FLOATS(round, near_even(X))
FLOATS(sqrt, __builtin_sqrtf(X))
FLOATS(reciprocal, 1 / X)
FLOATS(exp, cpu_math_exp(X))
FLOATS(log, cpu_math_log(X))
FLOATS(sin, cpu_math_sine(X, 0))
FLOATS(cos, cpu_math_sine(X, 1))
FLOATS(tanh, cpu_math_tanh(X))
FLOATS(erf, cpu_math_erf(X))
FLOATS(sigmoid, cpu_math_sigmoid(X))
FLOATS(silu, X *cpu_math_sigmoid(X))
FLOATS(quickgelu, X *cpu_math_sigmoid(alpha *X))
FLOATS(swish, X *cpu_math_sigmoid(alpha *X))
FLOATS(gelu, gelu(X))
FLOATS(gelu_tanh, gelu_tanh(X))
FLOATS(mish, mish(X))
FLOATS(softplus, cpu_math_max(X, 0) + cpu_math_log_plus_one(cpu_math_exp(-cpu_math_abs(X))))
FLOATS(softsign, X / (1 + cpu_math_abs(X)))
FLOATS(elu, X > 0 ? X : alpha * minus_one(X))
FLOATS(celu, X > 0 ? X : alpha * minus_one(X / alpha))
FLOATS(selu, beta *(X > 0 ? X : alpha * minus_one(X)))
FLOATS(leakyrelu, X > 0 ? X : alpha * X)
FLOATS(thresholdedrelu, X > alpha ? X : 0)
FLOATS(hardsigmoid, cpu_math_min(cpu_math_max(alpha *X + beta, 0), 1))
FLOATS(hardswish, X *cpu_math_min(cpu_math_max(X *(1.0F / 6) + 0.5F, 0), 1))
FLOATS(tan, tanf(X))
FLOATS(acos, acosf(X))
FLOATS(asin, asinf(X))
FLOATS(atan, atanf(X))
FLOATS(sinh, sinhf(X))
FLOATS(cosh, coshf(X))
FLOATS(acosh, acoshf(cpu_math_max(X, 1)))
FLOATS(asinh, asinhf(X))
FLOATS(atanh, atanhf(X))
FLOATS(shrink, X<-alpha ? X + beta : X> alpha ? X - beta : 0)
FLOATS(isnan, X != X ? 1.0F : 0.0F)
FLOATS(isinf, (X == -__builtin_inff() ? alpha : 0) + (X == __builtin_inff() ? beta : 0))
FLOATS(not, X == 0 ? 1.0F : 0.0F)
FLOATS(add, X + Y)
FLOATS(sub, X - Y)
FLOATS(mul, X *Y)
FLOATS(div, X / Y)
FLOATS(mod, remainder_of(X, Y, alpha))
FLOATS(prelu, X > 0 ? X : X * Y)
MANY(f_min, float, cpu_math_min(out[k], a[k]), out[k])
MANY(f_max, float, cpu_math_max(out[k], a[k]), out[k])
MANY(f_sum, float, out[k] + a[k], out[k])
MANY(f_mean, float, out[k] + a[k], out[k] * share)
FLOATS(equal, X == Y ? 1.0F : 0.0F)
FLOATS(less, X < Y ? 1.0F : 0.0F)
FLOATS(lessorequal, X <= Y ? 1.0F : 0.0F)
FLOATS(greater, X > Y ? 1.0F : 0.0F)
FLOATS(greaterorequal, X >= Y ? 1.0F : 0.0F)
FLOATS(and, X *Y)
FLOATS(or, X + Y)
FLOATS(xor, X != Y ? 1.0F : 0.0F)
FLOATS(swiglu, X *cpu_math_sigmoid(X) * Y)
FLOATS(geglu, gelu(X) * Y)
FLOATS(geglu_tanh, gelu_tanh(X) * Y)
FLOATS(quick_geglu, X *cpu_math_sigmoid(alpha *X) * Y)
FLOATS(reglu, cpu_math_max(X, 0) * Y)
FLOATS(biasgelu, gelu(X + Y))
FLOATS(fastgelu, gelu_tanh(X + Y))
FLOATS(biasadd, X + Y + Z)
FLOATS(where, X != 0 ? Y : Z)

/* Powers that are no special functions come first. */
FAST_BODY void f_pow_body(const cpu_elementwise_call *c) {
    const float *const a = c->in[0], *const b = c->in[1];
    float *restrict const out = c->out;
    const float e = (float)c->alpha;
    const int64_t n = c->count;
    if (c->operands == 2)
        for (int64_t k = 0; k < n; k++) out[k] = power(a[k], b[k]);
    else if (e == 2)
        for (int64_t k = 0; k < n; k++) out[k] = a[k] * a[k];
    else if (e == 3)
        for (int64_t k = 0; k < n; k++) out[k] = a[k] * a[k] * a[k];
    else if (e == 0.5F)
        for (int64_t k = 0; k < n; k++) out[k] = __builtin_sqrtf(a[k]);
    else if (e == -1)
        for (int64_t k = 0; k < n; k++) out[k] = 1 / a[k];
    else if (e == 0)
        for (int64_t k = 0; k < n; k++) out[k] = 1;
    else
        for (int64_t k = 0; k < n; k++) out[k] = power(a[k], e);
}
WIDTHS(f_pow)

FAST_BODY int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
FAST_BODY int64_t wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
FAST_BODY int64_t quotient(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? wrap_sub(0, a) : a / b; }
/* By 0 it is 0, as a quotient is. */
FAST_BODY int64_t whole_remainder(int64_t a, int64_t b, int64_t signed_as_a) {
    const int64_t r = b == 0 || b == -1 ? 0 : a % b;
    return signed_as_a == 0 && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/* A power below 0 is cut to whole numbers: only that of 1 and -1 is not 0. */
FAST_BODY int64_t whole_power(int64_t x, int64_t e) {
    uint64_t y = 1, of = (uint64_t)x;
    if (e < 0) return x == 1 || (x == -1 && e % 2 == 0) ? 1 : x == -1 ? -1 : 0;
    for (; e > 0; e >>= 1, of *= of)
        if (e & 1) y *= of;
    return (int64_t)y;
}
FAST_BODY int64_t shifted(int64_t x, int64_t by, int64_t right) {
    return right ? x >> (by & 63) : (int64_t)((uint64_t)x << (by & 63));
}

WHOLES(abs, X < 0 ? wrap_sub(0, X) : X)
WHOLES(neg, wrap_sub(0, X))
WHOLES(relu, X > 0 ? X : 0)
WHOLES(sign, (X > 0) - (X < 0))
WHOLES(clip, X<low ? low : X> high ? high : X)
WHOLES(add, (uint64_t)X + (uint64_t)Y)
WHOLES(sub, wrap_sub(X, Y))
WHOLES(mul, wrap_mul(X, Y))
WHOLES(div, quotient(X, Y))
MANY(i_min, int64_t, a[k] < out[k] ? a[k] : out[k], out[k])
MANY(i_max, int64_t, a[k] > out[k] ? a[k] : out[k], out[k])
WHOLES(equal, X == Y)
WHOLES(less, X < Y)
WHOLES(lessorequal, X <= Y)
WHOLES(greater, X > Y)
WHOLES(greaterorequal, X >= Y)
WHOLES(where, X != 0 ? Y : Z)
WHOLES(mod, whole_remainder(X, Y, low))
WHOLES(pow, whole_power(X, c->operands == 2 ? Y : low))
WHOLES(bitwisenot, ~X)
WHOLES(bitwiseand, X &Y)
WHOLES(bitwiseor, X | Y)
WHOLES(bitwisexor, X ^ Y)
WHOLES(bitshift, shifted(X, Y, low))

/* Where a sign makes a difference. */
NATURALS(div, Y == 0 ? 0 : X / Y)
NATURALS(mod, Y == 0 ? 0 : X % Y)
MANY(u_min, uint64_t, a[k] < out[k] ? a[k] : out[k], out[k])
MANY(u_max, uint64_t, a[k] > out[k] ? a[k] : out[k], out[k])
NATURALS(less, X < Y)
NATURALS(lessorequal, X <= Y)
NATURALS(greater, X > Y)
NATURALS(greaterorequal, X >= Y)
NATURALS(bitshift, low != 0 ? X >> (Y & 63) : X << (Y & 63))

DOUBLES(abs, X < 0 ? -X : X)
DOUBLES(neg, -X)
DOUBLES(relu, X > 0 ? X : 0)
DOUBLES(sign, (X > 0 ? 1.0 : 0.0) - (X < 0 ? 1.0 : 0.0))
DOUBLES(clip, X<alpha ? alpha : X> beta ? beta : X)
DOUBLES(add, X + Y)
DOUBLES(sub, X - Y)
DOUBLES(mul, X *Y)
DOUBLES(div, X / Y)
DOUBLES(mod, wide_remainder_of(X, Y, alpha))
MANY(d_min, double, a[k] < out[k] ? a[k] : out[k], out[k])
MANY(d_max, double, a[k] > out[k] ? a[k] : out[k], out[k])
DOUBLES(equal, X == Y ? 1.0 : 0.0)
DOUBLES(less, X < Y ? 1.0 : 0.0)
DOUBLES(lessorequal, X <= Y ? 1.0 : 0.0)
DOUBLES(greater, X > Y ? 1.0 : 0.0)
DOUBLES(greaterorequal, X >= Y ? 1.0 : 0.0)
DOUBLES(where, X != 0 ? Y : Z)

/* Between the steps of a chain: from what one step computes in to what the next one does, and what integers are kept
 * in. A cast of numbers beyond 63 bits is undefined. */
#define CHANGE(name, type, to, expression)                                                                             \
    FAST_BODY void name##_body(const cpu_elementwise_call *c) {                                                        \
        const type *const a = c->in[0];                                                                                \
        __typeof__(to) *restrict const out = c->out;                                                                   \
        const int64_t n = c->count;                                                                                    \
        for (int64_t k = 0; k < n; k++) out[k] = (to)(expression);                                                     \
    }                                                                                                                  \
    WIDTHS(name)

FAST_BODY int64_t cut(float x) { return x > -0x1p63F && x < 0x1p63F ? (int64_t)x : 0; }

CHANGE(change_copy, float, float, X)
CHANGE(change_wholes, float, int64_t, cut(X))
CHANGE(change_floats, int64_t, float, X)
CHANGE(change_truth, float, float, X != 0 ? 1.0F : 0.0F)
CHANGE(change_whole_truth, int64_t, int64_t, X != 0)
CHANGE(change_int32, int64_t, int64_t, (int32_t)(uint32_t)(uint64_t)X)
CHANGE(change_int8, int64_t, int64_t, (int8_t)(uint8_t)(uint64_t)X)
CHANGE(change_uint8, int64_t, int64_t, (uint8_t)(uint64_t)X)
CHANGE(change_scale, float, float, X *(float)c->alpha)

typedef struct row {
    cpu_elementwise_kernel *any, *avx2, *avx512;
} row;

#define FLOAT_ROW(name, least, most, types, truth, specials, grows, positive)                                          \
    [ELEMENTWISE_##name] = {f_##name##_any, f_##name##_avx2, f_##name##_avx512},
#define WHOLE_ROW(name)   [ELEMENTWISE_##name] = {i_##name##_any, i_##name##_avx2, i_##name##_avx512}
#define NATURAL_ROW(name) [ELEMENTWISE_##name] = {u_##name##_any, u_##name##_avx2, u_##name##_avx512}
#define DOUBLE_ROW(name)  [ELEMENTWISE_##name] = {d_##name##_any, d_##name##_avx2, d_##name##_avx512}
static const row floats[ELEMENTWISE_COUNT] = {ELEMENTWISE_NUMBER_OPERATORS(FLOAT_ROW)};
static const row wholes[ELEMENTWISE_COUNT] = {
    WHOLE_ROW(abs),        WHOLE_ROW(neg),         WHOLE_ROW(relu),       WHOLE_ROW(sign),
    WHOLE_ROW(clip),       WHOLE_ROW(add),         WHOLE_ROW(sub),        WHOLE_ROW(mul),
    WHOLE_ROW(div),        WHOLE_ROW(min),         WHOLE_ROW(max),        WHOLE_ROW(equal),
    WHOLE_ROW(less),       WHOLE_ROW(lessorequal), WHOLE_ROW(greater),    WHOLE_ROW(greaterorequal),
    WHOLE_ROW(where),      WHOLE_ROW(mod),         WHOLE_ROW(pow),        WHOLE_ROW(bitwisenot),
    WHOLE_ROW(bitwiseand), WHOLE_ROW(bitwiseor),   WHOLE_ROW(bitwisexor), WHOLE_ROW(bitshift),
};
static const row naturals[ELEMENTWISE_COUNT] = {
    WHOLE_ROW(add),        WHOLE_ROW(sub),           WHOLE_ROW(mul),        NATURAL_ROW(div),
    NATURAL_ROW(mod),      NATURAL_ROW(min),         NATURAL_ROW(max),      WHOLE_ROW(equal),
    NATURAL_ROW(less),     NATURAL_ROW(lessorequal), NATURAL_ROW(greater),  NATURAL_ROW(greaterorequal),
    WHOLE_ROW(where),      WHOLE_ROW(bitwisenot),    WHOLE_ROW(bitwiseand), WHOLE_ROW(bitwiseor),
    WHOLE_ROW(bitwisexor), NATURAL_ROW(bitshift),
};
static const row doubles[ELEMENTWISE_COUNT] = {
    DOUBLE_ROW(abs),
    DOUBLE_ROW(neg),
    DOUBLE_ROW(relu),
    DOUBLE_ROW(sign),
    DOUBLE_ROW(clip),
    DOUBLE_ROW(add),
    DOUBLE_ROW(sub),
    DOUBLE_ROW(mul),
    DOUBLE_ROW(div),
    DOUBLE_ROW(mod),
    DOUBLE_ROW(min),
    DOUBLE_ROW(max),
    DOUBLE_ROW(equal),
    DOUBLE_ROW(less),
    DOUBLE_ROW(lessorequal),
    DOUBLE_ROW(greater),
    DOUBLE_ROW(greaterorequal),
    DOUBLE_ROW(where),
};

#define CHANGE_ROW(of, name)                                                                                           \
    [CPU_ELEMENTWISE_##of] = {change_##name##_any, change_##name##_avx2, change_##name##_avx512}
static const row changes[] = {
    CHANGE_ROW(COPY, copy),      CHANGE_ROW(TO_WHOLES, wholes),        CHANGE_ROW(TO_FLOATS, floats),
    CHANGE_ROW(TRUTH, truth),    CHANGE_ROW(WHOLE_TRUTH, whole_truth), CHANGE_ROW(KEEP_INT32, int32),
    CHANGE_ROW(KEEP_INT8, int8), CHANGE_ROW(KEEP_UINT8, uint8),        CHANGE_ROW(SCALE, scale),
};

static cpu_elementwise_kernel *widest(const row *r) {
    const cpu_info *c = cpu_info_get();
    return c->avx512 ? r->avx512 : c->avx2 ? r->avx2 : r->any;
}

cpu_elementwise_kernel *cpu_elementwise_kernel_of(elementwise_id id, int in) {
    const row *const rows = in == ELEMENTWISE_FLOAT     ? floats
                            : in == ELEMENTWISE_WHOLE   ? wholes
                            : in == ELEMENTWISE_NATURAL ? naturals
                                                        : doubles;
    return id < ELEMENTWISE_COUNT ? widest(&rows[id]) : NULL;
}

cpu_elementwise_kernel *cpu_elementwise_change_of(cpu_elementwise_change change) { return widest(&changes[change]); }
