/* A matrix product with one thread for each output: every type and layout. It checks a build, and is read first. */
#include "kernels/harness/values.cuh"
#include "kernels/product/gemm_device.cuh"
#include "kernels/product/gemm_kernels.h"

#include <cuda_runtime.h>

namespace {

struct naive_job {
    gemm_shape s;
    const void *a, *b, *scales, *zeros; /* scales, zeros: of a weight of few bits; zeros NULL: none */
    void *c;
};

template <typename T> __device__ float element(const void *p, int64_t i) { return gemm::to_float(((const T *)p)[i]); }

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
            for (int64_t k = 0; k < s.k; k++)
                sum = fmaf(element<A>(job.a, at_a + k * step_a), element<B>(job.b, at_b + k * step_b), sum);
            ((C *)job.c)[z * s.stride_c + m * s.ldc + n] = gemm::from_float<C>(sum);
        }
}

/* A weight of 4 or 8 bits, in blocks along k. */
template <typename T> __global__ void naive_blocks(const naive_job job) {
    const gemm_shape &s = job.s;
    const int64_t n = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    const int64_t step_a = s.trans_a ? s.lda : 1, step_b = s.trans_b ? 1 : s.ldb, blocks = s.k / s.block_size;
    if (n >= s.n) return;
    for (int64_t z = blockIdx.z; z < s.batch; z += gridDim.z)
        for (int64_t m = blockIdx.y; m < s.m; m += gridDim.y) {
            const int64_t at_a = z * s.stride_a + m * (s.trans_a ? 1 : s.lda);
            const int64_t at_b = z * s.stride_b + n * (s.trans_b ? s.ldb : 1);
            float sum = 0;
            for (int64_t k = 0; k < s.k; k++) {
                const int64_t block = (z * s.n + n) * blocks + k / s.block_size;
                const double zero = job.zeros ? values_at(job.zeros, (uint32_t)s.type_b, block) : 0;
                const float w = (float)(values_at(job.b, (uint32_t)s.type_b, at_b + k * step_b) - zero);
                sum = fmaf(element<T>(job.a, at_a + k * step_a), w * element<T>(job.scales, block), sum);
            }
            ((T *)job.c)[z * s.stride_c + m * s.ldc + n] = gemm::from_float<T>(sum);
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
};

/* Of few bits beside floats, by the input's type. */
const struct {
    int type;
    void (*kernel)(const naive_job);
} of_blocks[] = {
    {GEMM_FP32, naive_blocks<float>}, {GEMM_FP16, naive_blocks<__half>}, {GEMM_BF16, naive_blocks<__nv_bfloat16>}};

bool is_few_bits(int type) {
    return type == GEMM_INT4 || type == GEMM_UINT4 || type == GEMM_INT8 || type == GEMM_UINT8;
}

void (*kernel_of(const gemm_shape *s))(const naive_job) {
    for (const auto &k : kernels)
        if (k.a == s->type_a && k.b == s->type_b && k.c == s->type_c) return k.kernel;
    for (const auto &k : of_blocks)
        if (k.type == s->type_a && k.type == s->type_c && is_few_bits(s->type_b)) return k.kernel;
    return nullptr;
}
} // namespace

extern "C" int gemm_naive_launch(const gemm_shape *shape, const void *a, const void *b, const void *scales,
                                 const void *zeros, void *c, void *stream) {
    const gemm_shape *s = shape;
    const auto kernel = kernel_of(s);
    const bool blocks = is_few_bits(s->type_b) && s->type_a != s->type_b;
    if (!kernel || s->m < 1 || s->n < 1 || s->k < 1 || s->batch < 1 || s->n > (int64_t)128 * INT32_MAX)
        return cudaErrorInvalidValue;
    if (blocks && (!scales || s->block_size < 1 || s->k % s->block_size)) return cudaErrorInvalidValue;
    const naive_job job = {*s, a, b, scales, zeros, c};
    const dim3 grid((unsigned)((s->n + 127) / 128), (unsigned)(s->m < 65535 ? s->m : 65535),
                    (unsigned)(s->batch < 65535 ? s->batch : 65535));
    kernel<<<grid, 128, 0, (cudaStream_t)stream>>>(job);
    return cudaGetLastError();
}

extern "C" const char *gemm_kernel_error(int error) { return cudaGetErrorString((cudaError_t)error); }
