/* The operators of elementwise_pass over values in registers: a branch that all threads take alike, and behind it a
 * line for each operator. */
#pragma once

#include "kernels/pass/elementwise_functions.cuh"
#include "kernels/pass/pass_kernels.h"

#include <stdint.h>

namespace operators {

struct numbers {
    float alpha, beta;
    int64_t low, high;
};

/* Long and seldom used: not inlined. */
static __device__ __noinline__ float power(float x, float y) { return powf(x, y); }
static __device__ __noinline__ float sine(float x) { return sinf(x); }
static __device__ __noinline__ float cosine(float x) { return cosf(x); }

#define OPERATOR(name, expression)                                                                                     \
    case ELEMENTWISE_PASS_##name:                                                                                      \
        _Pragma("unroll") for (int i = 0; i < E; i++) X = (expression);                                                \
        break;
#define X x[0][i]
#define Y x[1][i]
#define Z x[2][i]

/* Powers that are products or roots come first. */
template <int E> __device__ __forceinline__ void known_power(float e, float (&x)[1][E]) {
    if (e == 2.0f) {
#pragma unroll
        for (int i = 0; i < E; i++) X = X * X;
    } else if (e == 3.0f) {
#pragma unroll
        for (int i = 0; i < E; i++) X = X * X * X;
    } else if (e == 0.5f) {
#pragma unroll
        for (int i = 0; i < E; i++) X = sqrtf(X);
    } else {
#pragma unroll
        for (int i = 0; i < E; i++) X = power(X, e);
    }
}

template <int E> __device__ __forceinline__ void apply(int what, const numbers &n, float (&x)[1][E]) {
    const float alpha = n.alpha, beta = n.beta;
    switch (what) {
        OPERATOR(abs, fabsf(X))
        OPERATOR(neg, -X)
        OPERATOR(relu, fmaxf(X, 0.0f))
        OPERATOR(relu6, fminf(fmaxf(X, 0.0f), 6.0f))
        OPERATOR(squared_relu, fmaxf(X, 0.0f) * fmaxf(X, 0.0f))
        OPERATOR(sign, (X > 0 ? 1.0f : 0.0f) - (X < 0 ? 1.0f : 0.0f))
        OPERATOR(clip, fminf(fmaxf(X, alpha), beta))
        OPERATOR(ceil, ceilf(X))
        OPERATOR(floor, floorf(X))
        OPERATOR(round, rintf(X))
        OPERATOR(sqrt, sqrtf(X))
        OPERATOR(reciprocal, 1.0f / X)
        OPERATOR(exp, expf(X))
        OPERATOR(log, logf(X))
        OPERATOR(sin, sine(X))
        OPERATOR(cos, cosine(X))
        OPERATOR(tanh, tanhf(X))
        OPERATOR(erf, erff(X))
        OPERATOR(sigmoid, sigmoid(X))
        OPERATOR(silu, swish(X, 1.0f))
        OPERATOR(quickgelu, swish(X, alpha))
        OPERATOR(swish, swish(X, alpha))
        OPERATOR(gelu, gelu(X))
        OPERATOR(gelu_tanh, gelu_tanh(X))
        OPERATOR(mish, mish(X))
        OPERATOR(softplus, softplus(X))
        OPERATOR(softsign, X / (1.0f + fabsf(X)))
        OPERATOR(elu, X > 0 ? X : alpha * minus_one(X))
        OPERATOR(celu, X > 0 ? X : alpha * (__expf(X / alpha) - 1.0f))
        OPERATOR(selu, beta * (X > 0 ? X : alpha * minus_one(X)))
        OPERATOR(leakyrelu, X > 0 ? X : alpha * X)
        OPERATOR(thresholdedrelu, X > alpha ? X : 0.0f)
        OPERATOR(hardsigmoid, fminf(fmaxf(fmaf(alpha, X, beta), 0.0f), 1.0f))
        OPERATOR(hardswish, X * fminf(fmaxf(fmaf(X, 1.0f / 6, 0.5f), 0.0f), 1.0f))
        OPERATOR(tan, tangent(X))
        OPERATOR(acos, acosf(X))
        OPERATOR(asin, asinf(X))
        OPERATOR(atan, atanf(X))
        OPERATOR(sinh, hyperbolic_sine(X))
        OPERATOR(cosh, coshf(X))
        OPERATOR(acosh, arcosh(X))
        OPERATOR(asinh, asinhf(X))
        OPERATOR(atanh, atanhf(X))
        OPERATOR(shrink, shrink(X, alpha, beta))
        OPERATOR(isnan, X != X ? 1.0f : 0.0f)
        OPERATOR(isinf, fabsf(X) != INFINITY ? 0.0f : (X < 0 ? alpha : beta) != 0 ? 1.0f : 0.0f)
    case ELEMENTWISE_PASS_pow: known_power(alpha, x); break;
    default: break;
    }
}

template <int E> __device__ __forceinline__ void apply(int what, const numbers &n, float (&x)[2][E]) {
    const float alpha = n.alpha;
    switch (what) {
        OPERATOR(add, X + Y)
        OPERATOR(sub, X - Y)
        OPERATOR(mul, X * Y)
        OPERATOR(div, X / Y)
        OPERATOR(pow, power(X, Y))
        OPERATOR(mod, modulo(X, Y, alpha))
        OPERATOR(prelu, X > 0 ? X : X * Y)
        OPERATOR(min, fminf(X, Y))
        OPERATOR(max, fmaxf(X, Y))
        OPERATOR(sum, X + Y)
        OPERATOR(mean, (X + Y) * 0.5f)
        OPERATOR(equal, X == Y ? 1.0f : 0.0f)
        OPERATOR(less, X < Y ? 1.0f : 0.0f)
        OPERATOR(lessorequal, X <= Y ? 1.0f : 0.0f)
        OPERATOR(greater, X > Y ? 1.0f : 0.0f)
        OPERATOR(greaterorequal, X >= Y ? 1.0f : 0.0f)
        OPERATOR(swiglu, swish(X, 1.0f) * Y)
        OPERATOR(geglu, gelu(X) * Y)
        OPERATOR(geglu_tanh, gelu_tanh(X) * Y)
        OPERATOR(quick_geglu, swish(X, alpha) * Y)
        OPERATOR(reglu, fmaxf(X, 0.0f) * Y)
        OPERATOR(biasgelu, gelu(X + Y))
        OPERATOR(fastgelu, gelu_tanh(X + Y))
    default: break;
    }
}

/* Only the sum of three. */
template <int E> __device__ __forceinline__ void apply(int, const numbers &, float (&x)[3][E]) {
#pragma unroll
    for (int i = 0; i < E; i++) X = X + Y + Z;
}

template <class C> __device__ __forceinline__ C clipped(C x, const numbers &n) {
    return (C)((int64_t)x < n.low ? n.low : (int64_t)x > n.high ? n.high : (int64_t)x);
}

template <class C, int E> __device__ __forceinline__ void apply(int what, const numbers &n, C (&x)[1][E]) {
    switch (what) {
        OPERATOR(abs, X < 0 ? minus((C)0, X) : X)
        OPERATOR(neg, minus((C)0, X))
        OPERATOR(relu, X > 0 ? X : (C)0)
        OPERATOR(sign, (C)((X > 0) - (X < 0)))
        OPERATOR(clip, clipped(X, n))
        OPERATOR(not, (C)(X == 0))
    default: break;
    }
}

template <class C, int E> __device__ __forceinline__ void apply(int what, const numbers &, C (&x)[2][E]) {
    switch (what) {
        OPERATOR(add, plus(X, Y))
        OPERATOR(sub, minus(X, Y))
        OPERATOR(mul, times(X, Y))
        OPERATOR(div, quotient(X, Y))
        OPERATOR(min, Y < X ? Y : X)
        OPERATOR(max, Y > X ? Y : X)
        OPERATOR(equal, (C)(X == Y))
        OPERATOR(less, (C)(X < Y))
        OPERATOR(lessorequal, (C)(X <= Y))
        OPERATOR(greater, (C)(X > Y))
        OPERATOR(greaterorequal, (C)(X >= Y))
        OPERATOR(and, (C)(X != 0 && Y != 0))
        OPERATOR(or, (C)(X != 0 || Y != 0))
        OPERATOR(xor, (C)((X != 0) != (Y != 0)))
    default: break;
    }
}

#undef OPERATOR
#undef X
#undef Y
#undef Z

/* One more operand onto what came before: sums of floats, least and most of all. */
template <class C, int E> __device__ __forceinline__ void join(int what, const C (&x)[E], C (&y)[E]) {
    if (what == ELEMENTWISE_PASS_min) {
#pragma unroll
        for (int i = 0; i < E; i++) y[i] = x[i] < y[i] ? x[i] : y[i];
    } else if (what == ELEMENTWISE_PASS_max) {
#pragma unroll
        for (int i = 0; i < E; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
    } else {
#pragma unroll
        for (int i = 0; i < E; i++) y[i] += x[i];
    }
}

template <class C, int E> __device__ __forceinline__ void share(C count, C (&y)[E]) {
#pragma unroll
    for (int i = 0; i < E; i++) y[i] = y[i] / count;
}

} // namespace operators
