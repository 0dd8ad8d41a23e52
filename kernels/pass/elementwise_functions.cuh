/* Elementwise functions in fp32, and integers that wrap around, as own kernels compute them. No header is included:
 * what is compiled at run time (scout/cuda/nvrtc/chain_source.c) has this file and no other. */
#ifndef KERNELS_PASS_ELEMENTWISE_FUNCTIONS_CUH
#define KERNELS_PASS_ELEMENTWISE_FUNCTIONS_CUH

namespace operators {

/* Fast exponentials are off by some units in the last place that grow with |x|: no more than their users allow. */
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float swish(float x, float by) { return __fdividef(x, 1.0f + __expf(-by * x)); }

/* 1 - erf(z) = t * p(t) * e^(-z*z) with t = 1 / (1 + 0.3275911 z): within 1.5e-7, which the factor x makes small. */
__device__ __forceinline__ float gelu(float x) {
    const float z = fabsf(x) * 0.70710678f, t = __fdividef(1.0f, fmaf(0.3275911f, z, 1.0f));
    float p = fmaf(1.061405429f, t, -1.453152027f);
    p = fmaf(p, t, 1.421413741f);
    p = fmaf(p, t, -0.284496736f);
    p = fmaf(p, t, 0.254829592f);
    const float rest = 0.5f * p * t * __expf(-z * z);
    return x * (x > 0 ? 1.0f - rest : rest);
}

__device__ __forceinline__ float gelu_tanh(float x) { return swish(x, 1.59576912f * fmaf(0.044715f * x, x, 1.0f)); }
__device__ __forceinline__ float minus_one(float x) { return __expf(fminf(x, 0.0f)) - 1.0f; }

/* tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2) */
__device__ __forceinline__ float mish(float x) {
    const float e = __expf(fminf(x, 20.0f)), n = e * (e + 2.0f);
    return x * __fdividef(n, n + 2.0f);
}

__device__ __forceinline__ float softplus(float x) { return fmaxf(x, 0.0f) + __logf(1.0f + __expf(-fabsf(x))); }

__device__ __forceinline__ float shrink(float x, float from, float by) {
    return x < -from ? x + by : x > from ? x - by : 0.0f;
}

/* With the sign of x (fmod), or with that of y. Long and seldom used: not inlined, like the three behind it. */
static __device__ __noinline__ float modulo(float x, float y, float signed_as_x) {
    const float r = fmodf(x, y);
    return signed_as_x == 0 && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* Below 1 it is 0. */
static __device__ __noinline__ float arcosh(float x) { return acoshf(fmaxf(x, 1.0f)); }
static __device__ __noinline__ float tangent(float x) { return tanf(x); }
static __device__ __noinline__ float hyperbolic_sine(float x) { return sinhf(x); }

/* Integers wrap around; what is computed in int and stored in a byte does so at its store. */
__device__ __forceinline__ int plus(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ __forceinline__ int minus(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ __forceinline__ int times(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ __forceinline__ long long plus(long long a, long long b) {
    return (long long)((unsigned long long)a + (unsigned long long)b);
}
__device__ __forceinline__ long long minus(long long a, long long b) {
    return (long long)((unsigned long long)a - (unsigned long long)b);
}
__device__ __forceinline__ long long times(long long a, long long b) {
    return (long long)((unsigned long long)a * (unsigned long long)b);
}

/* By 0 it is 0, as ONNX leaves it open. */
template <class C> __device__ __forceinline__ C quotient(C a, C b) {
    return b == 0 ? (C)0 : b == -1 ? minus((C)0, a) : a / b;
}

/* By 0 it is 0, too. */
template <class C> __device__ __forceinline__ C remainder_of(C a, C b, bool signed_as_a) {
    const C r = b == 0 || b == -1 ? (C)0 : a % b;
    return !signed_as_a && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* A power below 0 is cut to whole numbers: only that of 1 and -1 is not 0. */
static __device__ __noinline__ long long whole_power(long long x, long long e) {
    unsigned long long y = 1, of = (unsigned long long)x;
    if (e < 0) return x == 1 || (x == -1 && e % 2 == 0) ? 1 : x == -1 ? -1 : 0;
    for (; e > 0; e >>= 1, of *= of)
        if (e & 1) y *= of;
    return (long long)y;
}

/* In 64 bits, by the lowest six of the second. */
__device__ __forceinline__ long long shifted(long long x, long long by, bool right) {
    return right ? x >> (by & 63) : (long long)((unsigned long long)x << (by & 63));
}

} // namespace operators

#endif
