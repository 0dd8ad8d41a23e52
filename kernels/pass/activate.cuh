/* The functions of activate.h: in fp64 for references, which see the function at run time, and in fp32 for kernels that
 * are made for one. */
#pragma once

#include "kernels/pass/activate.h"

__device__ inline double activate_exactly(int function, double alpha, double beta, double x) {
    switch (function) {
    case ACTIVATE_RELU: return x < 0 ? alpha * x : x;
    case ACTIVATE_CLIP: return fmin(fmax(x, alpha), beta);
    case ACTIVATE_HARDSIGMOID: return fmin(fmax(alpha * x + beta, 0.0), 1.0);
    case ACTIVATE_HARDSWISH: return x * fmin(fmax(x / 6 + 0.5, 0.0), 1.0);
    case ACTIVATE_SIGMOID: return 1 / (1 + exp(-x));
    case ACTIVATE_TANH: return tanh(x);
    case ACTIVATE_SILU: return x / (1 + exp(-alpha * x));
    case ACTIVATE_GELU: return x * normcdf(x);
    case ACTIVATE_GELU_TANH: return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default: return x;
    }
}

template <int function> __device__ inline float activate(float x, float alpha, float beta) {
    if (function == ACTIVATE_RELU) return x < 0 ? alpha * x : x;
    if (function == ACTIVATE_CLIP) return fminf(fmaxf(x, alpha), beta);
    if (function == ACTIVATE_HARDSIGMOID) return fminf(fmaxf(alpha * x + beta, 0.0f), 1.0f);
    if (function == ACTIVATE_HARDSWISH) return x * fminf(fmaxf(x * (1.0f / 6) + 0.5f, 0.0f), 1.0f);
    if (function == ACTIVATE_SIGMOID) return 1.0f / (1.0f + expf(-x));
    if (function == ACTIVATE_TANH) return tanhf(x);
    if (function == ACTIVATE_SILU) return x / (1.0f + expf(-alpha * x));
    if (function == ACTIVATE_GELU) return 0.5f * x * erfcf(-0.70710678f * x);
    if (function == ACTIVATE_GELU_TANH) {
        /* (1 + tanh y) / 2 = sigmoid(2 y): one exponential, and no difference of numbers near 1 */
        const float y = 1.5957691216f * (x + 0.044715f * x * x * x);
        return x / (1.0f + expf(-y));
    }
    return x;
}
