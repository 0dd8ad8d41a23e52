/* What is computed element by element: every operator in fp64, and on integers in 64 bits, wrapped to the type. What an
 * element is and what it may be off by are those of the CPU's reference (scout/cpu/cpu_reference_elementwise.c). */
#include "kernels/whole_elementwise.h"

#include "kernels/values.cuh"
#include "kernels/whole_integers.cuh"
#include "kernels/whole_lanes.cuh"

namespace {

/* Beside |want|, what an element is made of: nothing else; the operands, which may cancel; the first operand, whose
 * halves may cancel; a number near 1. */
enum spread_of { OF_NOTHING, OF_OPERANDS, OF_FIRST, OF_ONE };

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

/* Operands x[0] to x[n - 1], parameters p.alpha and p.beta. */
#define FLOATS(X)                                                                                                      \
    X(abs, OF_NOTHING, fabs(x[0]))                                                                                     \
    X(neg, OF_NOTHING, -x[0])                                                                                          \
    X(relu, OF_NOTHING, fmax(x[0], 0.0))                                                                               \
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
    X(isnan, OF_NOTHING, x[0] != x[0])                                                                                 \
    X(isinf, OF_NOTHING, fabs(x[0]) == infinity() && (x[0] < 0 ? p.alpha : p.beta) != 0)                               \
    X(not, OF_NOTHING, x[0] == 0)                                                                                      \
    X(add, OF_OPERANDS, x[0] + x[1])                                                                                   \
    X(sub, OF_OPERANDS, x[0] - x[1])                                                                                   \
    X(mul, OF_NOTHING, x[0] * x[1])                                                                                    \
    X(div, OF_NOTHING, x[0] / x[1])                                                                                    \
    X(pow, OF_NOTHING, pow(x[0], n > 1 ? x[1] : p.alpha))                                                              \
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
    X(biasgelu, OF_OPERANDS, gelu(x[0] + x[1]))                                                                        \
    X(fastgelu, OF_OPERANDS, gelu_tanh(x[0] + x[1]))                                                                   \
    X(biasadd, OF_OPERANDS, x[0] + x[1] + x[2])                                                                        \
    X(where, OF_NOTHING, x[0] != 0 ? x[1] : x[2])

#define WHOLES(X)                                                                                                      \
    X(abs, x[0] < 0 ? whole_sub(0, x[0]) : x[0])                                                                       \
    X(neg, whole_sub(0, x[0]))                                                                                         \
    X(relu, x[0] > 0 ? x[0] : 0)                                                                                       \
    X(sign, (x[0] > 0) - (x[0] < 0))                                                                                   \
    X(clip, x[0]<w.low ? w.low : x[0]> w.high ? w.high : x[0])                                                         \
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
    X(where, x[0] != 0 ? x[1] : x[2])

#define FLOATS_ONE(name, spread, expression) +1
static_assert(FLOATS(FLOATS_ONE) == ELEMENTWISE_COUNT, "every operator has its line");

#define FLOATS_RETURN(name, spread, expression)                                                                        \
    if (id == ELEMENTWISE_##name) return expression;
__device__ double floats_of(elementwise_id id, const double *x, int n, const elementwise_numbers &p) {
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
    if (w.id == ELEMENTWISE_##name) return expression;
__device__ int64_t wholes_of(const whole_elementwise_problem &w, const int64_t *x, int n) {
    WHOLES(WHOLES_RETURN)
    return 0;
}

/* What an output can tell: below the smallest normal number it is coarse, beyond the largest it is infinite. */
struct range {
    double smallest, largest;
};
__device__ range range_of(uint32_t type) {
    if (type == SCOUT_FP32) return {0x1p-126, 0x1.ffffffp127};
    if (type == SCOUT_BF16) return {0x1p-126, 0x1.ffp127};
    if (type == SCOUT_FP16) return {0x1p-14, 0x1.ffep15};
    return {0, infinity()};
}

__device__ double spread_of_terms(const whole_elementwise_problem &w, const double *x) {
    const spread_of of = spread_by(w.id);
    double squares = of == OF_ONE ? 1 : of == OF_FIRST ? x[0] * x[0] : 0;
    for (int k = 0; of == OF_OPERANDS && k < w.walk.inputs; k++) squares += x[k] * x[k];
    return sqrt(squares) + range_of(w.output).smallest;
}

__device__ double right(const whole_elementwise_problem &w, const double *x, const int64_t *wholes) {
    if (w.wholes) return whole_wrapped(w.output, wholes_of(w, wholes, w.walk.inputs));
    const double want = floats_of(w.id, x, w.walk.inputs, w.numbers);
    return fabs(want) >= range_of(w.output).largest ? copysign(infinity(), want) : want;
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
        want[at] = right(w, x, wholes);
        spread[at] = (float)spread_of_terms(w, x);
    }
}

} // namespace

cudaError_t whole_elementwise(const whole_elementwise_problem *w, double *want, float *spread, cudaStream_t stream) {
    elementwise_elements<<<whole_blocks(w->walk.count, 1), whole_threads, 0, stream>>>(*w, want, spread);
    return cudaGetLastError();
}
