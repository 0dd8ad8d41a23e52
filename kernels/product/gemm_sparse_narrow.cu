/* Rounding sums to 16 bits. Two neighbours at a time where they begin on whole words: one write then fills one. */
#include "kernels/product/gemm_sparse_pack.h"

#include "kernels/product/gemm_device.cuh"

#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int64_t ROWS_EACH = 8, MOST_DOWN = 65535;

template <typename T> struct alignas(4) pair { T first, second; };

template <typename T> __device__ __forceinline__ T rounded(float sum, const T *bias, int64_t at) {
    return gemm::from_float<T>(bias ? sum + gemm::to_float(bias[at]) : sum);
}

template <typename T>
__global__ void narrow_one(const float *sums, int64_t rows, int64_t cols, const T *bias, T *to, int64_t ld) {
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= cols) return;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) to[r * ld + at] = rounded(sums[r * cols + at], bias, at);
}

template <typename T>
__global__ void narrow_two(const float *sums, int64_t rows, int64_t cols, const T *bias, T *to, int64_t ld) {
    const int64_t at = 2 * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    if (at >= cols) return;
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) {
        const float2 both = *(const float2 *)(sums + r * cols + at);
        *(pair<T> *)(to + r * ld + at) = {rounded(both.x, bias, at), rounded(both.y, bias, at + 1)};
    }
}

template <typename T>
int narrow(const float *sums, int64_t rows, int64_t cols, const void *bias, void *to, int64_t ld, cudaStream_t stream) {
    const bool two = cols % 2 == 0 && ld % 2 == 0 && (uintptr_t)sums % 8 == 0 && (uintptr_t)to % 4 == 0;
    const int64_t each = two ? 2 * THREADS : THREADS, across = (cols + each - 1) / each;
    const int64_t wanted = (rows + ROWS_EACH - 1) / ROWS_EACH;
    if (rows < 1 || cols < 1 || across > INT32_MAX) return cudaErrorInvalidValue;
    const dim3 grid((unsigned)across, (unsigned)(wanted < MOST_DOWN ? wanted : MOST_DOWN));
    if (two)
        narrow_two<T><<<grid, THREADS, 0, stream>>>(sums, rows, cols, (const T *)bias, (T *)to, ld);
    else
        narrow_one<T><<<grid, THREADS, 0, stream>>>(sums, rows, cols, (const T *)bias, (T *)to, ld);
    return cudaGetLastError();
}

} // namespace

extern "C" int gemm_sparse_narrow(const float *sums, int64_t rows, int64_t cols, const void *bias, int brain, void *to,
                                  int64_t ld, void *stream) {
    return brain ? narrow<__nv_bfloat16>(sums, rows, cols, bias, to, ld, (cudaStream_t)stream)
                 : narrow<__half>(sums, rows, cols, bias, to, ld, (cudaStream_t)stream);
}
