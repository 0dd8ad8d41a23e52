/* What is computed element by element: every operator in fp64, and on integers in 64 bits, wrapped to the type; alone,
 * or one after the other in a chain. What an element is and what it may be off by are those of the CPU's reference
 * (scout/cpu/reference/cpu_reference_elementwise.c). */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_integers.cuh"
#include "kernels/reference/whole_lanes.cuh"

namespace {

/* Beside |want|, what an element is made of: nothing else; the operands, which may cancel; the first operand, whose
 * halves may cancel, or it times the second; a number near 1. */
enum spread_of { OF_NOTHING, OF_OPERANDS, OF_FIRST, OF_PRODUCT, OF_ONE };

__device__ double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
__device__ double sigmoid(double x) { return 1 / (1 + exp(-x)); }
__device__ double gelu(double x) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }
__device__ double gelu_tanh(double x) { return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)); }
__device__ double softplus(double x) { return fmax(x, 0.0) + log1p(exp(-fabs(x))); }
__device__ double total(const double *x, int n) {
    double y = 0;
    for (int k = 0; k < n; k++) y += x[k];
    return y;
}
__device__ double least(const double *x, int n) {
    double y = x[0];
    for (int k = 1; k < n; k++) y = fmin(y, x[k]);
    return y;
}
__device__ double most(const double *x, int n) {
    double y = x[0];
    for (int k = 1; k < n; k++) y = fmax(y, x[k]);
    return y;
}
__device__ int64_t whole_least(const int64_t *x, int n) {
    int64_t y = x[0];
    for (int k = 1; k < n; k++) y = x[k] < y ? x[k] : y;
    return y;
}
__device__ int64_t whole_most(const int64_t *x, int n) {
    int64_t y = x[0];
    for (int k = 1; k < n; k++) y = x[k] > y ? x[k] : y;
    return y;
}
/* By 0: undefined in ONNX; 0 here. The least number by -1 stays within 64 bits. */
__device__ int64_t whole_div(int64_t a, int64_t b) {
    if (b == -1) return a == INT64_MIN ? INT64_MAX : -a;
    return b == 0 ? 0 : a / b;
}

/* With the sign of the first (fmod), or with that of the second. */
__device__ double modulo(const double *x, double signed_as_first) {
    const double r = fmod(x[0], x[1]);
    return signed_as_first != 0 || r == 0 || signbit(r) == signbit(x[1]) ? r : r + x[1];
}
__device__ int64_t whole_mod(const int64_t *x, int64_t signed_as_first) {
    if (x[1] == 0 || x[1] == -1) return 0; /* by 0: undefined in ONNX */
    const int64_t r = x[0] % x[1];
    return signed_as_first != 0 || r == 0 || (r ^ x[1]) >= 0 ? r : r + x[1];
}
/* From the highest bit of the exponent on. A power below 0 is cut to whole numbers. */
__device__ int64_t whole_power(int64_t x, int64_t e) {
    int64_t y = 1;
    if (e < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (e & 1) : 0;
    for (int bit = 62; bit >= 0; bit--) y = whole_mul(whole_mul(y, y), e >> bit & 1 ? x : 1);
    return y;
}
/* In 64 bits, by the lowest six of the second. */
__device__ int64_t whole_shift(const int64_t *x, int64_t right) {
    const int by = (int)(x[1] & 63);
    return right ? x[0] >> by : (int64_t)((uint64_t)x[0] << by);
}

/* Operands x[0] to x[n - 1], parameters p.alpha and p.beta. */
#define FLOATS(X)                                                                                                      \
    X(abs, OF_NOTHING, fabs(x[0]))                                                                                     \
    X(neg, OF_NOTHING, -x[0])                                                                                          \
    X(relu, OF_NOTHING, fmax(x[0], 0.0))                                                                               \
    X(relu6, OF_NOTHING, fmin(fmax(x[0], 0.0), 6.0))                                                                   \
    X(squared_relu, OF_NOTHING, fmax(x[0], 0.0) * fmax(x[0], 0.0))                                                     \
    X(sign, OF_NOTHING, (x[0] > 0) - (x[0] < 0))                                                                       \
    X(clip, OF_NOTHING, fmin(fmax(x[0], p.alpha), p.beta))                                                             \
    X(ceil, OF_NOTHING, ceil(x[0]))                                                                                    \
    X(floor, OF_NOTHING, floor(x[0]))                                                                                  \
    X(round, OF_NOTHING, rint(x[0]))                                                                                   \
    X(sqrt, OF_NOTHING, sqrt(x[0]))                                                                                    \
    X(reciprocal, OF_NOTHING, 1 / x[0])                                                                                \
    X(exp, OF_NOTHING, exp(x[0]))                                                                                      \
    X(log, OF_ONE, log(x[0]))                                                                                          \
    X(sin, OF_ONE, sin(x[0]))                                                                                          \
    X(cos, OF_ONE, cos(x[0]))                                                                                          \
    X(tanh, OF_NOTHING, tanh(x[0]))                                                                                    \
    X(erf, OF_NOTHING, erf(x[0]))                                                                                      \
    X(sigmoid, OF_NOTHING, sigmoid(x[0]))                                                                              \
    X(silu, OF_NOTHING, x[0] * sigmoid(x[0]))                                                                          \
    X(quickgelu, OF_NOTHING, x[0] * sigmoid(p.alpha * x[0]))                                                           \
    X(swish, OF_NOTHING, x[0] * sigmoid(p.alpha * x[0]))                                                               \
    X(gelu, OF_FIRST, gelu(x[0]))                                                                                      \
    X(gelu_tanh, OF_FIRST, gelu_tanh(x[0]))                                                                            \
    X(mish, OF_FIRST, x[0] * tanh(softplus(x[0])))                                                                     \
    X(softplus, OF_ONE, softplus(x[0]))                                                                                \
    X(softsign, OF_NOTHING, x[0] / (1 + fabs(x[0])))                                                                   \
    X(elu, OF_ONE, x[0] > 0 ? x[0] : p.alpha * expm1(x[0]))                                                            \
    X(celu, OF_ONE, x[0] > 0 ? x[0] : p.alpha * expm1(x[0] / p.alpha))                                                 \
    X(selu, OF_ONE, p.beta *(x[0] > 0 ? x[0] : p.alpha * expm1(x[0])))                                                 \
    X(leakyrelu, OF_NOTHING, x[0] > 0 ? x[0] : p.alpha * x[0])                                                         \
    X(thresholdedrelu, OF_NOTHING, x[0] > p.alpha ? x[0] : 0)                                                          \
    X(hardsigmoid, OF_ONE, fmin(fmax(p.alpha *x[0] + p.beta, 0.0), 1.0))                                               \
    X(hardswish, OF_FIRST, x[0] * fmin(fmax(x[0] / 6 + 0.5, 0.0), 1.0))                                                \
    X(tan, OF_ONE, tan(x[0]))                                                                                          \
    X(acos, OF_ONE, acos(x[0]))                                                                                        \
    X(asin, OF_ONE, asin(x[0]))                                                                                        \
    X(atan, OF_ONE, atan(x[0]))                                                                                        \
    X(sinh, OF_ONE, sinh(x[0]))                                                                                        \
    X(cosh, OF_NOTHING, cosh(x[0]))                                                                                    \
    X(acosh, OF_ONE, x[0] > 1 ? acosh(x[0]) : 0)                                                                       \
    X(asinh, OF_ONE, asinh(x[0]))                                                                                      \
    X(atanh, OF_ONE, atanh(x[0]))                                                                                      \
    X(shrink, OF_FIRST, fabs(x[0]) > p.alpha ? x[0] - copysign(p.beta, x[0]) : 0)                                      \
    X(isnan, OF_NOTHING, x[0] != x[0])                                                                                 \
    X(isinf, OF_NOTHING, fabs(x[0]) == infinity() && (x[0] < 0 ? p.alpha : p.beta) != 0)                               \
    X(not, OF_NOTHING, x[0] == 0)                                                                                      \
    X(add, OF_OPERANDS, x[0] + x[1])                                                                                   \
    X(sub, OF_OPERANDS, x[0] - x[1])                                                                                   \
    X(mul, OF_NOTHING, x[0] * x[1])                                                                                    \
    X(div, OF_NOTHING, x[0] / x[1])                                                                                    \
    X(pow, OF_NOTHING, pow(x[0], n > 1 ? x[1] : p.alpha))                                                              \
    X(mod, OF_NOTHING, modulo(x, p.alpha))                                                                             \
    X(prelu, OF_NOTHING, x[0] > 0 ? x[0] : x[0] * x[1])                                                                \
    X(min, OF_NOTHING, least(x, n))                                                                                    \
    X(max, OF_NOTHING, most(x, n))                                                                                     \
    X(sum, OF_OPERANDS, total(x, n))                                                                                   \
    X(mean, OF_OPERANDS, total(x, n) / n)                                                                              \
    X(equal, OF_NOTHING, x[0] == x[1])                                                                                 \
    X(less, OF_NOTHING, x[0] < x[1])                                                                                   \
    X(lessorequal, OF_NOTHING, x[0] <= x[1])                                                                           \
    X(greater, OF_NOTHING, x[0] > x[1])                                                                                \
    X(greaterorequal, OF_NOTHING, x[0] >= x[1])                                                                        \
    X(and, OF_NOTHING, x[0] != 0 && x[1] != 0)                                                                         \
    X(or, OF_NOTHING, x[0] != 0 || x[1] != 0)                                                                          \
    X(xor, OF_NOTHING, (x[0] != 0) != (x[1] != 0))                                                                     \
    X(swiglu, OF_NOTHING, x[0] * sigmoid(x[0]) * x[1])                                                                 \
    X(geglu, OF_PRODUCT, gelu(x[0]) * x[1])                                                                            \
    X(geglu_tanh, OF_PRODUCT, gelu_tanh(x[0]) * x[1])                                                                  \
    X(quick_geglu, OF_NOTHING, x[0] * sigmoid(p.alpha * x[0]) * x[1])                                                  \
    X(reglu, OF_NOTHING, fmax(x[0], 0.0) * x[1])                                                                       \
    X(biasgelu, OF_OPERANDS, gelu(x[0] + x[1]))                                                                        \
    X(fastgelu, OF_OPERANDS, gelu_tanh(x[0] + x[1]))                                                                   \
    X(biasadd, OF_OPERANDS, x[0] + x[1] + x[2])                                                                        \
    X(where, OF_NOTHING, x[0] != 0 ? x[1] : x[2])

#define WHOLES(X)                                                                                                      \
    X(abs, x[0] < 0 ? whole_sub(0, x[0]) : x[0])                                                                       \
    X(neg, whole_sub(0, x[0]))                                                                                         \
    X(relu, x[0] > 0 ? x[0] : 0)                                                                                       \
    X(sign, (x[0] > 0) - (x[0] < 0))                                                                                   \
    X(clip, x[0]<low ? low : x[0]> high ? high : x[0])                                                                 \
    X(add, whole_add(x[0], x[1]))                                                                                      \
    X(sub, whole_sub(x[0], x[1]))                                                                                      \
    X(mul, whole_mul(x[0], x[1]))                                                                                      \
    X(div, whole_div(x[0], x[1]))                                                                                      \
    X(min, whole_least(x, n))                                                                                          \
    X(max, whole_most(x, n))                                                                                           \
    X(equal, x[0] == x[1])                                                                                             \
    X(less, x[0] < x[1])                                                                                               \
    X(lessorequal, x[0] <= x[1])                                                                                       \
    X(greater, x[0] > x[1])                                                                                            \
    X(greaterorequal, x[0] >= x[1])                                                                                    \
    X(where, x[0] != 0 ? x[1] : x[2])                                                                                  \
    X(mod, whole_mod(x, low))                                                                                          \
    X(pow, whole_power(x[0], n > 1 ? x[1] : low))                                                                      \
    BITS(X)

/* Of integers alone. */
#define BITS(X)                                                                                                        \
    X(bitwisenot, -1 - x[0])                                                                                           \
    X(bitwiseand, x[0] & x[1])                                                                                         \
    X(bitwiseor, x[0] | x[1])                                                                                          \
    X(bitwisexor, x[0] ^ x[1])                                                                                         \
    X(bitshift, whole_shift(x, low))

#define BITS_ONE(name, expression) +1
#define FLOATS_ONE(name, spread, expression) +1
static_assert(FLOATS(FLOATS_ONE) BITS(BITS_ONE) == ELEMENTWISE_COUNT, "every operator has its line");

#define FLOATS_RETURN(name, spread, expression)                                                                        \
    if (id == ELEMENTWISE_##name) return expression;
__device__ __noinline__ double floats_of(elementwise_id id, const double *x, int n, const elementwise_numbers &p) {
    FLOATS(FLOATS_RETURN)
    return __longlong_as_double(0x7ff8000000000000ll);
}

#define FLOATS_SPREAD(name, spread, expression)                                                                        \
    if (id == ELEMENTWISE_##name) return spread;
__device__ spread_of spread_by(elementwise_id id) {
    FLOATS(FLOATS_SPREAD)
    return OF_NOTHING;
}

#define WHOLES_RETURN(name, expression)                                                                                \
    if (id == ELEMENTWISE_##name) return expression;
__device__ __noinline__ int64_t wholes_of(elementwise_id id, const int64_t *x, int n, int64_t low, int64_t high) {
    WHOLES(WHOLES_RETURN)
    return 0;
}

/* What an output can tell: below the smallest normal number it is coarse, beyond the largest it is infinite. */
struct range {
    double smallest, largest;
};
__device__ range range_of(uint32_t type) {
    if (type == DTYPE_FP32) return {0x1p-126, 0x1.ffffffp127};
    if (type == DTYPE_BF16) return {0x1p-126, 0x1.ffp127};
    if (type == DTYPE_FP16) return {0x1p-14, 0x1.ffep15};
    return {0, infinity()};
}

__device__ double spread_of_terms(elementwise_id id, const double *x, int n) {
    const spread_of of = spread_by(id);
    double squares = of == OF_ONE ? 1 : of == OF_FIRST ? x[0] * x[0] : 0;
    if (of == OF_PRODUCT) squares = x[0] * x[1] * (x[0] * x[1]);
    for (int k = 0; of == OF_OPERANDS && k < n; k++) squares += x[k] * x[k];
    return sqrt(squares);
}

__device__ double right(const whole_elementwise_problem &w, const double *x, const int64_t *wholes) {
    if (w.wholes) return whole_wrapped(w.output, wholes_of(w.id, wholes, w.walk.inputs, w.low, w.high));
    const double want = floats_of(w.id, x, w.walk.inputs, w.numbers);
    return fabs(want) >= range_of(w.output).largest ? copysign(infinity(), want) : want;
}

/* As scout/op/requantize.h has it: x is changed. */
__device__ double quantised(const whole_elementwise_problem &w, double *x, float *spread) {
    const whole_elementwise_quant &q = w.quant;
    for (int k = 0; k < w.walk.inputs; k++) x[k] -= q.zero_in;
    const double sum = floats_of(w.id, x, w.walk.inputs, w.numbers);
    const double want = fmin(q.most, fmax(q.least, q.factor * sum)) + q.zero_out;
    *spread = (float)((0.5 + 0x1p-9) * 0x1p10 - fabs(want));
    return want;
}

__device__ int64_t offset_of(const elementwise_walk &walk, int operand, int64_t at) {
    int64_t offset = 0;
    for (int d = 0; d < walk.rank; d++) {
        offset += at % walk.dims[d] * walk.strides[operand][d];
        at /= walk.dims[d];
    }
    return offset;
}

__global__ void elementwise_elements(whole_elementwise_problem w, double *want, float *spread) {
    const int64_t step = (int64_t)gridDim.x * whole_threads;
    for (int64_t at = blockIdx.x * (int64_t)whole_threads + threadIdx.x; at < w.walk.count; at += step) {
        double x[ELEMENTWISE_MAX_INPUTS] = {0};
        int64_t wholes[ELEMENTWISE_MAX_INPUTS] = {0};
        for (int k = 0; k < w.walk.inputs; k++) {
            const int64_t from = offset_of(w.walk, k, at);
            if (w.wholes) wholes[k] = whole_integer_at(w.data[k], w.types[k], from);
            x[k] = w.wholes ? (double)wholes[k] : values_at(w.data[k], w.types[k], from);
        }
        if (w.quant.is) {
            want[at] = quantised(w, x, &spread[at]);
            continue;
        }
        want[at] = right(w, x, wholes);
        spread[at] = (float)(spread_of_terms(w.id, x, w.walk.inputs) + range_of(w.output).smallest);
    }
}

/* --- chains --- */

/* Both ways to hold it: of integers `real` is the nearest double, of truth both are 0 or 1, of floats `whole` is 0. */
struct value {
    double real;
    int64_t whole;
};

__device__ value of_whole(int64_t x) { return {(double)x, x}; }
__device__ value of_real(double x) { return {x, 0}; }
__device__ value cut(double x) { return of_whole(fabs(x) < 0x1p63 ? (int64_t)x : 0); }

__device__ int64_t kept(uint32_t type, int64_t x) {
    if (type == DTYPE_INT32) return (int32_t)(uint32_t)(uint64_t)x;
    if (type == DTYPE_INT8) return (int8_t)(uint8_t)(uint64_t)x;
    if (type == DTYPE_UINT8) return (uint8_t)(uint64_t)x;
    return x;
}

__device__ value cast(const elementwise_step &s, value x) {
    if (s.result == DTYPE_BOOL) return of_whole(whole_is(s.type) ? x.whole != 0 : x.real != 0);
    if (!whole_is(s.result)) return of_real(x.real);
    return of_whole(kept(s.result, whole_is(s.type) ? x.whole : cut(x.real).whole));
}

/* A bound of integers that no double holds is none. */
__device__ int64_t bound(double x) { return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x; }

/* Of a step whose value `v` may have changed. */
__device__ __noinline__ value evaluate(const elementwise_step &s, const value *operands, value v) {
    double reals[ELEMENTWISE_MAX_INPUTS];
    int64_t wholes[ELEMENTWISE_MAX_INPUTS];
    for (int k = 0; k < s.inputs; k++) {
        const value x = s.from[k] < 0 ? v : operands[k];
        reals[k] = x.real, wholes[k] = x.whole;
        if (s.id == ELEMENTWISE_COUNT) return cast(s, x);
    }
    if (whole_is(s.type)) {
        const int64_t y = wholes_of(s.id, wholes, s.inputs, bound(s.numbers.alpha), bound(s.numbers.beta));
        return of_whole(s.result == DTYPE_BOOL ? y != 0 : kept(s.result, y));
    }
    const double y = floats_of(s.id, reals, s.inputs, s.numbers);
    return s.result == DTYPE_BOOL ? of_whole(y != 0) : of_real(y);
}

/* What an error before the step becomes behind it: the larger distance of both ends, and of 0 where it lies between. */
__device__ double carried(const elementwise_step &s, const value *operands, value v, double error, value y) {
    const int64_t steps = error < 0x1p62 ? (int64_t)ceil(error) : 0;
    const value above = {v.real + error, whole_add(v.whole, steps)},
                below = {v.real - error, whole_sub(v.whole, steps)};
    double most =
        fmax(fabs(evaluate(s, operands, above).real - y.real), fabs(evaluate(s, operands, below).real - y.real));
    if (below.real < 0 && above.real > 0) most = fmax(most, fabs(evaluate(s, operands, of_real(0)).real - y.real));
    return isnan(most) ? infinity() : most;
}

__device__ double rounded(const elementwise_step &s, double tolerance, const value *operands, value v, value y) {
    double reals[ELEMENTWISE_MAX_INPUTS], spread = range_of(s.result).smallest;
    if (tolerance == 0) return 0;
    for (int k = 0; k < s.inputs; k++) reals[k] = s.from[k] < 0 ? v.real : operands[k].real;
    if (s.id != ELEMENTWISE_COUNT) spread += spread_of_terms(s.id, reals, s.inputs);
    return tolerance * (fabs(y.real) + spread);
}

__device__ value operand_at(const whole_chain_problem &p, int operand, int64_t at) {
    const uint32_t type = p.chain.operand[operand].type;
    const int64_t from = offset_of(p.walk, operand, at);
    if (whole_is(type)) return of_whole(whole_integer_at(p.data[operand], type, from));
    return type == DTYPE_BOOL ? cut(values_at(p.data[operand], type, from))
                              : of_real(values_at(p.data[operand], type, from));
}

__device__ value chain_at(const whole_chain_problem &p, int64_t at, double *error) {
    value v = {0, 0};
    *error = 0;
    for (int k = 0; k < p.chain.count; k++) {
        const elementwise_step &s = p.chain.steps[k];
        value operands[ELEMENTWISE_MAX_INPUTS];
        for (int i = 0; i < s.inputs; i++)
            if (s.from[i] >= 0) operands[i] = operand_at(p, s.from[i], at);
        const value y = evaluate(s, operands, v);
        *error =
            (*error > 0 ? carried(s, operands, v, *error, y) : 0) + rounded(s, p.step_tolerance[k], operands, v, y);
        v = y;
    }
    return v;
}

__global__ void chain_elements(const __grid_constant__ whole_chain_problem p, double *want, float *spread) {
    const range output = range_of(p.output);
    const int64_t step = (int64_t)gridDim.x * whole_threads;
    for (int64_t at = blockIdx.x * (int64_t)whole_threads + threadIdx.x; at < p.walk.count; at += step) {
        double error;
        const double y = chain_at(p, at, &error).real;
        if (output.smallest == 0) error += 0.25; /* whole numbers that are less than 1 apart are equal */
        const bool beyond = !(fabs(y) < output.largest);
        want[at] = beyond && !isnan(y) ? copysign(infinity(), y) : y;
        spread[at] = p.tolerance == 0 || beyond ? 0 : (float)fmin(error / p.tolerance - fabs(y), 1e38);
    }
}

} // namespace

cudaError_t whole_elementwise(const whole_elementwise_problem *w, double *want, float *spread, cudaStream_t stream) {
    elementwise_elements<<<whole_blocks(w->walk.count, 1), whole_threads, 0, stream>>>(*w, want, spread);
    return cudaGetLastError();
}

cudaError_t whole_chain(const whole_chain_problem *p, double *want, float *spread, cudaStream_t stream) {
    static_assert(sizeof(whole_chain_problem) <= 4000, "a kernel's parameters");
    chain_elements<<<whole_blocks(p->walk.count, 1), whole_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
