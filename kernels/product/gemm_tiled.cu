/* Plain tiled matrix products: the least that a good build should reach, for every layout and alignment. fp32
 * multiplies in FFMA, fp16 and bf16 on the tensor cores (gemm_tile.cuh). */
#include "kernels/product/gemm_kernels.h"
#include "kernels/product/gemm_tile.cuh"

#include <cuda_runtime.h>

namespace {

struct tiled_job {
    gemm_shape s;
    const void *a, *b;
    void *c;
};

/* blockIdx: x over columns, y over rows (striding: no size is too large), z over the batch. */
template <typename T, bool TA, bool TB>
__global__ void __launch_bounds__(gemm::TILE_THREADS, 2) tiled_kernel(const tiled_job job) {
    const gemm_shape &s = job.s;
    for (int64_t z = blockIdx.z; z < s.batch; z += gridDim.z) {
        const T *from_a = (const T *)job.a + z * s.stride_a, *from_b = (const T *)job.b + z * s.stride_b;
        for (int64_t m0 = (int64_t)blockIdx.y * gemm::TILE_M; m0 < s.m; m0 += (int64_t)gridDim.y * gemm::TILE_M) {
            gemm::matrix_loader<T, !TA> a = {from_a, s.lda, TA ? s.k : s.m, TA ? s.m : s.k,
                                             ((uintptr_t)from_a | (uint64_t)s.lda * 2) % 16 == 0};
            gemm::matrix_loader<T, TB> b = {from_b, s.ldb, TB ? s.n : s.k, TB ? s.k : s.n,
                                            ((uintptr_t)from_b | (uint64_t)s.ldb * 2) % 16 == 0};
            gemm::tile_product<T, !TA, TB>(a, b, (T *)job.c + z * s.stride_c, s.ldc, s.m, s.n, s.k, m0,
                                           (int64_t)blockIdx.x * gemm::TILE_N);
        }
    }
}

enum { SIDE = 64, DEEP = 16, EACH = 4 }; /* fp32: 64 x 64 outputs a block, 4 x 4 a thread */

__device__ __forceinline__ void slice_of(float (&to)[DEEP][SIDE + 4], const float *from, int64_t first, int64_t count,
                                         int64_t k0, int64_t k, int64_t pitch, bool along_k) {
    for (int i = threadIdx.x; i < SIDE * DEEP; i += gemm::TILE_THREADS) {
        const int d = along_k ? i % DEEP : i / SIDE, r = along_k ? i / DEEP : i % SIDE;
        const bool there = first + r < count && k0 + d < k;
        to[d][r] = there ? from[along_k ? (first + r) * pitch + k0 + d : (k0 + d) * pitch + first + r] : 0.0f;
    }
}

__global__ void __launch_bounds__(gemm::TILE_THREADS) tiled_fp32_kernel(const tiled_job job) {
    __shared__ __align__(16) float slice_a[DEEP][SIDE + 4], slice_b[DEEP][SIDE + 4];
    const gemm_shape &s = job.s;
    const int64_t n0 = (int64_t)blockIdx.x * SIDE;
    const int row = threadIdx.x / 16 * EACH, column = threadIdx.x % 16 * EACH;
    for (int64_t z = blockIdx.z; z < s.batch; z += gridDim.z)
        for (int64_t m0 = (int64_t)blockIdx.y * SIDE; m0 < s.m; m0 += (int64_t)gridDim.y * SIDE) {
            float sums[EACH][EACH] = {};
            for (int64_t k0 = 0; k0 < s.k; k0 += DEEP) {
                slice_of(slice_a, (const float *)job.a + z * s.stride_a, m0, s.m, k0, s.k, s.lda, !s.trans_a);
                slice_of(slice_b, (const float *)job.b + z * s.stride_b, n0, s.n, k0, s.k, s.ldb, s.trans_b);
                __syncthreads();
#pragma unroll
                for (int d = 0; d < DEEP; d++) {
                    const float4 x = *(const float4 *)&slice_a[d][row], y = *(const float4 *)&slice_b[d][column];
                    const float xs[EACH] = {x.x, x.y, x.z, x.w}, ys[EACH] = {y.x, y.y, y.z, y.w};
#pragma unroll
                    for (int i = 0; i < EACH; i++)
#pragma unroll
                        for (int j = 0; j < EACH; j++) sums[i][j] = fmaf(xs[i], ys[j], sums[i][j]);
                }
                __syncthreads();
            }
            float *c = (float *)job.c + z * s.stride_c;
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    if (m0 + row + i < s.m && n0 + column + j < s.n)
                        c[(m0 + row + i) * s.ldc + n0 + column + j] = sums[i][j];
        }
}

using kernel_fn = void (*)(const tiled_job);
template <typename T> kernel_fn by_layout(const gemm_shape *s) {
    return s->trans_a ? (s->trans_b ? tiled_kernel<T, true, true> : tiled_kernel<T, true, false>)
                      : (s->trans_b ? tiled_kernel<T, false, true> : tiled_kernel<T, false, false>);
}
kernel_fn kernel_of(const gemm_shape *s) {
    if (s->type_a != s->type_b || s->type_a != s->type_c) return nullptr;
    return s->type_a == GEMM_FP32   ? tiled_fp32_kernel
           : s->type_a == GEMM_FP16 ? by_layout<__half>(s)
           : s->type_a == GEMM_BF16 ? by_layout<__nv_bfloat16>(s)
                                    : nullptr;
}
} // namespace

extern "C" int gemm_tiled_launch(const gemm_shape *shape, const void *a, const void *b, void *c, void *stream) {
    const gemm_shape *s = shape;
    const kernel_fn kernel = kernel_of(s);
    const int64_t side = s->type_a == GEMM_FP32 ? (int64_t)SIDE : (int64_t)gemm::TILE_M;
    const int64_t across = (s->n + side - 1) / side, down = (s->m + side - 1) / side;
    if (!kernel || s->m < 1 || s->n < 1 || s->k < 1 || s->batch < 1 || across > INT32_MAX) return cudaErrorInvalidValue;
    const tiled_job job = {*s, a, b, c};
    const dim3 grid((unsigned)across, (unsigned)(down < 65535 ? down : 65535),
                    (unsigned)(s->batch < 65535 ? s->batch : 65535));
    kernel<<<grid, gemm::TILE_THREADS, 0, (cudaStream_t)stream>>>(job);
    return cudaGetLastError();
}
