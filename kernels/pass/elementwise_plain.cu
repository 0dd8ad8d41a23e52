/* Element by element, in every type's own arithmetic: fp64, integers of 16 bits, those without a sign, and of all
 * integers remainders, powers and bits. A thread computes one element after the other, each found by its place; neighbours
 * read neighbours. */
#include "kernels/pass/elementwise_plain.h"

#include "kernels/pass/elementwise_functions.cuh"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512;

struct job {
    int what, inputs, truth;
    int64_t count;
    double alpha, beta;
    int64_t low, high;
    const void *in[ELEMENTWISE_PASS_INPUTS];
    void *out;
    pass::radix places;
    int64_t strides[ELEMENTWISE_PASS_INPUTS][PASS_RANK];
};

typedef long long whole;
typedef unsigned long long natural;

#define OPERATOR(name, expression)                                                                                     \
    case ELEMENTWISE_PASS_##name: return (expression);

/* --- of two: least and most, of any number, one after the other --- */

__device__ double join(int what, double x, double y) { return what == ELEMENTWISE_PASS_min ? fmin(x, y) : fmax(x, y); }
template <class C> __device__ C join(int what, C x, C y) {
    return (what == ELEMENTWISE_PASS_min ? y < x : y > x) ? y : x;
}

template <class C> __device__ __forceinline__ C compared(int what, C x, C y) {
    switch (what) {
        OPERATOR(equal, x == y)
        OPERATOR(less, x < y)
        OPERATOR(lessorequal, x <= y)
        OPERATOR(greater, x > y)
        OPERATOR(greaterorequal, x >= y)
    default: return 0;
    }
}

__device__ double modulo(double x, double y, bool signed_as_x) {
    const double r = fmod(x, y);
    return !signed_as_x && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

__device__ double apply(const job &p, double x, double y) {
    switch (p.what) {
        OPERATOR(abs, fabs(x))
        OPERATOR(neg, -x)
        OPERATOR(relu, fmax(x, 0.0))
        OPERATOR(sign, (x > 0) - (x < 0))
        OPERATOR(clip, fmin(fmax(x, p.alpha), p.beta))
        OPERATOR(add, x + y)
        OPERATOR(sub, x - y)
        OPERATOR(mul, x *y)
        OPERATOR(div, x / y)
        OPERATOR(mod, modulo(x, y, p.alpha != 0))
        OPERATOR(min, fmin(x, y))
        OPERATOR(max, fmax(x, y))
    default: return compared(p.what, x, y);
    }
}

/* In 64 bits; a store keeps what the type has. */
__device__ whole apply(const job &p, whole x, whole y) {
    switch (p.what) {
        OPERATOR(abs, x < 0 ? operators::minus(0ll, x) : x)
        OPERATOR(neg, operators::minus(0ll, x))
        OPERATOR(relu, x > 0 ? x : 0)
        OPERATOR(sign, (x > 0) - (x < 0))
        OPERATOR(clip, x < p.low ? p.low : x > p.high ? p.high : x)
        OPERATOR(add, operators::plus(x, y))
        OPERATOR(sub, operators::minus(x, y))
        OPERATOR(mul, operators::times(x, y))
        OPERATOR(div, operators::quotient(x, y))
        OPERATOR(mod, operators::remainder_of(x, y, p.low != 0))
        OPERATOR(pow, operators::whole_power(x, p.inputs > 1 ? y : p.low))
        OPERATOR(bitwisenot, ~x)
        OPERATOR(bitwiseand, x &y)
        OPERATOR(bitwiseor, x | y)
        OPERATOR(bitwisexor, x ^ y)
        OPERATOR(bitshift, operators::shifted(x, y, p.low != 0))
        OPERATOR(min, y < x ? y : x)
        OPERATOR(max, y > x ? y : x)
    default: return compared(p.what, x, y);
    }
}

__device__ natural apply(const job &p, natural x, natural y) {
    switch (p.what) {
        OPERATOR(add, x + y)
        OPERATOR(sub, x - y)
        OPERATOR(mul, x *y)
        OPERATOR(div, y == 0 ? 0 : x / y)
        OPERATOR(mod, y == 0 ? 0 : x % y)
        OPERATOR(bitwisenot, ~x)
        OPERATOR(bitwiseand, x &y)
        OPERATOR(bitwiseor, x | y)
        OPERATOR(bitwisexor, x ^ y)
        OPERATOR(bitshift, p.low != 0 ? x >> (y & 63) : x << (y & 63))
        OPERATOR(min, y < x ? y : x)
        OPERATOR(max, y > x ? y : x)
    default: return compared(p.what, x, y);
    }
}
#undef OPERATOR

/* T: as an element is stored; C: what it is computed in. */
template <class T, class C> __global__ void __launch_bounds__(most_threads) plain(const job p) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int taken = p.inputs < 2 ? p.inputs : 2;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.count; at += step) {
        int64_t rest = at, from[ELEMENTWISE_PASS_INPUTS] = {0};
        for (int d = 0; d < p.places.rank; d++) {
            const int64_t place = pass::radix_next(p.places, d, rest);
#pragma unroll
            for (int k = 0; k < ELEMENTWISE_PASS_INPUTS; k++) from[k] += place * p.strides[k][d];
        }
        const C x = (C)((const T *)p.in[0])[from[0]];
        C y = taken < 2 ? x : (C)((const T *)p.in[1])[from[1]];
        y = p.inputs == 1 && (p.what == ELEMENTWISE_PASS_min || p.what == ELEMENTWISE_PASS_max) ? x : apply(p, x, y);
        for (int k = 2; k < p.inputs; k++) y = join(p.what, y, (C)((const T *)p.in[k])[from[k]]);
        if (p.truth)
            ((uint8_t *)p.out)[at] = y != 0;
        else
            ((T *)p.out)[at] = (T)y;
    }
}

const struct {
    int type;
    const void *kernel;
} kernels[] = {
    {PASS_FP64, (const void *)plain<double, double>},     {PASS_INT8, (const void *)plain<int8_t, whole>},
    {PASS_UINT8, (const void *)plain<uint8_t, whole>},    {PASS_INT16, (const void *)plain<int16_t, whole>},
    {PASS_UINT16, (const void *)plain<uint16_t, whole>},  {PASS_INT32, (const void *)plain<int32_t, whole>},
    {PASS_UINT32, (const void *)plain<uint32_t, whole>},  {PASS_INT64, (const void *)plain<whole, whole>},
    {PASS_UINT64, (const void *)plain<natural, natural>},
};

/* NULL: none. */
const void *kernel_of(int type) {
    for (const auto &k : kernels)
        if (k.type == type) return k.kernel;
    return NULL;
}

bool is_new(int type) {
    return type == PASS_FP64 || type == PASS_INT16 || type == PASS_UINT16 || type == PASS_UINT32 || type == PASS_UINT64;
}

bool is_rare(int what) {
    static const int rare[] = {ELEMENTWISE_PASS_mod,       ELEMENTWISE_PASS_pow,        ELEMENTWISE_PASS_bitwisenot,
                               ELEMENTWISE_PASS_bitwiseand, ELEMENTWISE_PASS_bitwiseor, ELEMENTWISE_PASS_bitwisexor,
                               ELEMENTWISE_PASS_bitshift};
    for (int r : rare)
        if (r == what) return true;
    return false;
}

} // namespace

/* `where` moves its operands, whatever their type: it is not among these. */
int elementwise_plain_alone(const elementwise_pass *s) {
    return s->what != ELEMENTWISE_PASS_where && (is_new(s->type) || (is_rare(s->what) && kernel_of(s->type)));
}

int elementwise_plain_takes(const elementwise_pass *s) {
    const bool many = s->what == ELEMENTWISE_PASS_min || s->what == ELEMENTWISE_PASS_max;
    if (!elementwise_plain_alone(s) || s->quant.is || !kernel_of(s->type)) return 0;
    return s->inputs >= 1 && (s->inputs <= 2 || (many && s->inputs <= ELEMENTWISE_PASS_INPUTS));
}

int elementwise_plain_launch(const elementwise_pass *s, const void *const *in, void *out, void *stream) {
    const int threads = pass::threads_of(s->config, 256);
    job j = {};
    j.what = s->what, j.inputs = s->inputs, j.truth = s->truth, j.count = s->count, j.out = out;
    j.alpha = s->alpha, j.beta = s->beta, j.low = s->low, j.high = s->high;
    j.places = pass::radix_of(s->rank, s->dims);
    for (int k = 0; k < s->inputs; k++) {
        j.in[k] = in[k];
        for (int d = 0; d < s->rank; d++) j.strides[k][d] = s->strides[k][d];
    }
    void *args[] = {&j};
    return cudaLaunchKernel(kernel_of(s->type), dim3(pass::blocks_of(s->config, (s->count + threads - 1) / threads)),
                            dim3((unsigned)threads), args, 0, (cudaStream_t)stream);
}
