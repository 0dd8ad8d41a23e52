/* A matrix product with one thread for each output: every type and layout. It checks a build, and is read first. */
#include "kernels/product/gemm_device.cuh"
#include "kernels/product/gemm_kernels.h"

#include <cuda_runtime.h>

namespace {

struct naive_job {
    gemm_shape s;
    const void *a, *b;
    const __half *scales;
    void *c;
};

template <typename T> __device__ float element(const void *p, int64_t i) { return gemm::to_float(((const T *)p)[i]); }

/* Two's complement nibbles, the low one first. */
struct int4_pair;
template <> __device__ float element<int4_pair>(const void *p, int64_t i) {
    const int nibble = ((const uint8_t *)p)[i >> 1] >> ((i & 1) * 4) & 15;
    return (float)(nibble >= 8 ? nibble - 16 : nibble);
}

/* blockIdx.x over blocks of columns, y over rows, z over the batch; y and z stride, so that no size is too large. */
template <typename A, typename B, typename C> __global__ void naive_kernel(const naive_job job) {
    const gemm_shape &s = job.s;
    const int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    const int64_t step_a = s.trans_a ? s.lda : 1, step_b = s.trans_b ? 1 : s.ldb;
    if (n >= s.n) return;
    for (int64_t z = blockIdx.z; z < s.batch; z += gridDim.z)
        for (int64_t m = blockIdx.y; m < s.m; m += gridDim.y) {
            const int64_t at_a = z * s.stride_a + m * (s.trans_a ? 1 : s.lda);
            const int64_t at_b = z * s.stride_b + n * (s.trans_b ? s.ldb : 1);
            float sum = 0;
            for (int64_t k = 0; k < s.k; k++) {
                float w = element<B>(job.b, at_b + k * step_b);
                if (job.scales) w *= gemm::to_float(job.scales[n * (s.k / s.block_size) + k / s.block_size]);
                sum = fmaf(element<A>(job.a, at_a + k * step_a), w, sum);
            }
            ((C *)job.c)[z * s.stride_c + m * s.ldc + n] = gemm::from_float<C>(sum);
        }
}

/* Integers add exactly. */
template <> __global__ void naive_kernel<int8_t, int8_t, int32_t>(const naive_job job) {
    const gemm_shape &s = job.s;
    const int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    const int64_t step_a = s.trans_a ? s.lda : 1, step_b = s.trans_b ? 1 : s.ldb;
    if (n >= s.n) return;
    for (int64_t z = blockIdx.z; z < s.batch; z += gridDim.z)
        for (int64_t m = blockIdx.y; m < s.m; m += gridDim.y) {
            const int8_t *a = (const int8_t *)job.a + z * s.stride_a + m * (s.trans_a ? 1 : s.lda);
            const int8_t *b = (const int8_t *)job.b + z * s.stride_b + n * (s.trans_b ? s.ldb : 1);
            int32_t sum = 0;
            for (int64_t k = 0; k < s.k; k++) sum += (int32_t)a[k * step_a] * b[k * step_b];
            ((int32_t *)job.c)[z * s.stride_c + m * s.ldc + n] = sum;
        }
}

const struct {
    int a, b, c;
    void (*kernel)(const naive_job);
} kernels[] = {
    {GEMM_FP32, GEMM_FP32, GEMM_FP32, naive_kernel<float, float, float>},
    {GEMM_FP16, GEMM_FP16, GEMM_FP16, naive_kernel<__half, __half, __half>},
    {GEMM_BF16, GEMM_BF16, GEMM_BF16, naive_kernel<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>},
    {GEMM_FP8E4M3, GEMM_FP8E4M3, GEMM_BF16, naive_kernel<__nv_fp8_e4m3, __nv_fp8_e4m3, __nv_bfloat16>},
    {GEMM_INT8, GEMM_INT8, GEMM_INT32, naive_kernel<int8_t, int8_t, int32_t>},
    {GEMM_FP16, GEMM_INT4, GEMM_FP16, naive_kernel<__half, int4_pair, __half>},
};
} // namespace

extern "C" int gemm_naive_launch(const gemm_shape *shape, const void *a, const void *b, const void *scales, void *c,
                                 void *stream) {
    const gemm_shape *s = shape;
    const bool packed = s->type_b == GEMM_INT4;
    if (s->m < 1 || s->n < 1 || s->k < 1 || s->batch < 1 || s->n > (int64_t)128 * INT32_MAX)
        return cudaErrorInvalidValue;
    if (packed && (!scales || !s->trans_b || s->block_size < 1 || s->k % s->block_size || s->k % 2))
        return cudaErrorInvalidValue;
    for (const auto &k : kernels) {
        if (k.a != s->type_a || k.b != s->type_b || k.c != s->type_c) continue;
        const naive_job job = {*s, a, b, packed ? (const __half *)scales : nullptr, c};
        const dim3 grid((unsigned)((s->n + 127) / 128), (unsigned)(s->m < 65535 ? s->m : 65535),
                        (unsigned)(s->batch < 65535 ? s->batch : 65535));
        k.kernel<<<grid, 128, 0, (cudaStream_t)stream>>>(job);
        return cudaGetLastError();
    }
    return cudaErrorInvalidValue;
}

extern "C" const char *gemm_kernel_error(int error) { return cudaGetErrorString((cudaError_t)error); }
