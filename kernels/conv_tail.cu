/* Bias, residual and activation of a convolution whose library has no kernel that does them at once. Memory bound: one
 * thread per element and step, no shared memory. */
#include "kernels/conv_tail.h"

#include <cuda_runtime.h>

template <int function> __device__ inline float conv_tail_apply(float x, float alpha, float beta) {
    if (function == CONV_TAIL_RELU) return x < 0 ? alpha * x : x;
    if (function == CONV_TAIL_CLIP) return fminf(fmaxf(x, alpha), beta);
    if (function == CONV_TAIL_HARDSIGMOID) return fminf(fmaxf(alpha * x + beta, 0.0f), 1.0f);
    if (function == CONV_TAIL_HARDSWISH) return x * fminf(fmaxf(x * (1.0f / 6) + 0.5f, 0.0f), 1.0f);
    if (function == CONV_TAIL_SIGMOID) return 1.0f / (1.0f + expf(-x));
    if (function == CONV_TAIL_TANH) return tanhf(x);
    if (function == CONV_TAIL_SILU) return x / (1.0f + expf(-x));
    return x;
}

template <int function>
__global__ void __launch_bounds__(256)
    conv_tail_kernel(conv_tail t, float *__restrict__ data, const float *__restrict__ bias,
                     const float *__restrict__ residual) {
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < t.elements; k += threads) {
        float x = data[k];
        if (bias)
            x += t.elements <= 0x7fffffff ? bias[(uint32_t)k / (uint32_t)t.step % (uint32_t)t.channels]
                                          : bias[k / t.step % t.channels];
        if (residual) x += residual[k];
        data[k] = conv_tail_apply<function>(x, t.alpha, t.beta);
    }
}

typedef void conv_tail_fn(conv_tail, float *, const float *, const float *);

extern "C" int conv_tail_launch(const conv_tail *tail, float *data, const float *bias, const float *residual,
                                void *stream) {
    static conv_tail_fn *const kernels[] = {
        conv_tail_kernel<CONV_TAIL_PLAIN>,     conv_tail_kernel<CONV_TAIL_RELU>,
        conv_tail_kernel<CONV_TAIL_CLIP>,      conv_tail_kernel<CONV_TAIL_HARDSIGMOID>,
        conv_tail_kernel<CONV_TAIL_HARDSWISH>, conv_tail_kernel<CONV_TAIL_SIGMOID>,
        conv_tail_kernel<CONV_TAIL_TANH>,      conv_tail_kernel<CONV_TAIL_SILU>,
    };
    const int64_t blocks = (tail->elements + 255) / 256, most = 8192;
    if (tail->function < 0 || tail->function > CONV_TAIL_SILU || tail->step < 1 || tail->channels < 1)
        return cudaErrorInvalidValue;
    if (tail->elements < 1) return cudaSuccess;
    kernels[tail->function]<<<(unsigned)(blocks < most ? blocks : most), 256, 0, (cudaStream_t)stream>>>(
        *tail, data, bias, residual);
    return cudaGetLastError();
}
