/* The epilogue of sums: bias, residual and activation. Memory bound: 16 bytes a thread and step where rows allow it, no
 * shared memory. */
#include "kernels/product/tail.h"

#include "kernels/pass/activate.cuh"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int threads = 256;
static_assert((int)TAIL_FP16 == PASS_FP16 && (int)TAIL_BF16 == PASS_BF16, "both are numbered as in ONNX");

__device__ int64_t channel_of(const tail &t, int64_t at) {
    if (t.elements <= 0x7fffffff) return (uint32_t)at / (uint32_t)t.step % (uint32_t)t.channels;
    return at / t.step % t.channels;
}

template <int SIZE, int VEC>
__device__ void add(const tail &t, const pass::bits<SIZE, VEC> &more, float factor, float *x) {
    float y[VEC];
    pass::widen(t.type, more, y);
#pragma unroll
    for (int i = 0; i < VEC; i++) x[i] += factor * y[i];
}

template <int function, int SIZE, int VEC>
__global__ void __launch_bounds__(threads)
    tail_kernel(tail t, void *data, const void *__restrict__ bias, const void *__restrict__ residual) {
    const int64_t pieces = t.elements / VEC, step = (int64_t)gridDim.x * threads;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < pieces; k += step) {
        const int64_t at = k * VEC;
        pass::bits<SIZE, VEC> piece = pass::load<SIZE, VEC>(data, at);
        float x[VEC];
        pass::widen(t.type, piece, x);
        if (bias) {
            const int64_t channel = channel_of(t, at);
            if (t.step == 1)
                add<SIZE, VEC>(t, pass::load<SIZE, VEC>(bias, channel), t.factor, x);
            else
                add<SIZE, VEC>(t, pass::splat<SIZE, VEC>(bias, channel), t.factor, x);
        }
        if (residual) add<SIZE, VEC>(t, pass::load<SIZE, VEC>(residual, at), 1, x);
#pragma unroll
        for (int i = 0; i < VEC; i++) x[i] = activate<function>(x[i], t.alpha, t.beta);
        pass::narrow(t.type, x, piece);
        pass::store<SIZE, VEC>(data, at, piece);
    }
}

typedef void tail_fn(tail, void *, const void *, const void *);

template <int SIZE, int VEC> tail_fn *kernel_of(int function) {
    static tail_fn *const kernels[] = {
        tail_kernel<ACTIVATE_PLAIN, SIZE, VEC>,     tail_kernel<ACTIVATE_RELU, SIZE, VEC>,
        tail_kernel<ACTIVATE_CLIP, SIZE, VEC>,      tail_kernel<ACTIVATE_HARDSIGMOID, SIZE, VEC>,
        tail_kernel<ACTIVATE_HARDSWISH, SIZE, VEC>, tail_kernel<ACTIVATE_SIGMOID, SIZE, VEC>,
        tail_kernel<ACTIVATE_TANH, SIZE, VEC>,      tail_kernel<ACTIVATE_SILU, SIZE, VEC>,
        tail_kernel<ACTIVATE_GELU, SIZE, VEC>,      tail_kernel<ACTIVATE_GELU_TANH, SIZE, VEC>,
    };
    static_assert(sizeof kernels / sizeof kernels[0] == ACTIVATE_COUNT, "a kernel for each function");
    return kernels[function];
}

/* Pieces must not cross from one channel, or one line of them, to the next. */
bool whole_pieces(const tail *t, int vec, const void *data, const void *bias, const void *residual) {
    const bool lines = t->step == 1 ? t->channels % vec == 0 : t->step % vec == 0;
    const uintptr_t bases = (uintptr_t)data | (uintptr_t)residual | (t->step == 1 ? (uintptr_t)bias : 0);
    return t->elements % vec == 0 && (lines || !bias) && bases % 16 == 0;
}

} // namespace

extern "C" int tail_launch(const tail *t, void *data, const void *bias, const void *residual, void *stream) {
    const bool half = t->type == TAIL_FP16 || t->type == TAIL_BF16;
    if (t->function < 0 || t->function >= ACTIVATE_COUNT || t->step < 1 || t->channels < 1 ||
        (!half && t->type != TAIL_FP32))
        return cudaErrorInvalidValue;
    if (t->elements < 1) return cudaSuccess;
    const int vec = whole_pieces(t, half ? 8 : 4, data, bias, residual) ? half ? 8 : 4 : 1;
    tail_fn *const kernel = half      ? vec > 1 ? kernel_of<2, 8>(t->function) : kernel_of<2, 1>(t->function)
                                 : vec > 1 ? kernel_of<4, 4>(t->function)
                                      : kernel_of<4, 1>(t->function);
    const int64_t blocks = (t->elements / vec + threads - 1) / threads, most = 16384;
    kernel<<<(unsigned)(blocks < most ? blocks : most), threads, 0, (cudaStream_t)stream>>>(*t, data, bias, residual);
    return cudaGetLastError();
}
