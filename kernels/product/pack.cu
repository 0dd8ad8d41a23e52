/* Weights laid out anew, once, when a plan is made: transposed, or widened from a few bits to floats. */
#include "kernels/harness/kernels.h"
#include "kernels/harness/values.cuh"

namespace {

constexpr int tile = 32, rows_at_once = 8;

template <typename T>
__global__ void pack_transpose(T *to, const T *from, int64_t rows, int64_t cols, int64_t ld_from, int64_t ld_to,
                               int64_t stride_from, int64_t stride_to, int64_t tiles_across) {
    __shared__ T held[tile][tile + 1];
    const int64_t row = blockIdx.x / tiles_across * tile, col = blockIdx.x % tiles_across * tile;
    from += blockIdx.y * stride_from;
    to += blockIdx.y * stride_to;
    for (int k = threadIdx.y; k < tile; k += rows_at_once)
        if (row + k < rows && col + threadIdx.x < cols)
            held[k][threadIdx.x] = from[(row + k) * ld_from + col + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < tile; k += rows_at_once)
        if (col + k < cols && row + threadIdx.x < rows)
            to[(col + k) * ld_to + row + threadIdx.x] = held[threadIdx.x][k];
}

template <typename T> __global__ void pack_widen(T *to, const kernels_blocks w) {
    const int64_t rows = w.columns_first ? w.n : w.k, cols = w.columns_first ? w.k : w.n;
    const int64_t total = w.matrices * rows * cols, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t item = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; item < total; item += step) {
        const int64_t all = item / cols, col = item % cols, at = all * w.ld + col; /* rows of all matrices */
        const int64_t matrix = all / rows, row = all % rows, column = matrix * w.n + (w.columns_first ? row : col);
        const int64_t block = column * (w.k / w.block) + (w.columns_first ? col : row) / w.block;
        const double zero = w.zeros ? values_at(w.zeros, w.type, block) : 0;
        const double scale = w.scales ? values_at(w.scales, w.type_scales, block) : 1;
        to[at] = (T)(float)(scale * (values_at(w.numbers, w.type, at) - zero));
    }
}

template <typename T>
cudaError_t pack_launch(void *to, const void *from, int64_t rows, int64_t cols, int64_t ld_from, int64_t ld_to,
                        int64_t stride_from, int64_t stride_to, int64_t matrices, cudaStream_t stream) {
    const int64_t down = (rows + tile - 1) / tile, across = (cols + tile - 1) / tile;
    if (down * across > 0x7fffffff || matrices > 65535) return cudaErrorInvalidValue;
    pack_transpose<T><<<dim3((unsigned)(down * across), (unsigned)matrices), dim3(tile, rows_at_once), 0, stream>>>(
        (T *)to, (const T *)from, rows, cols, ld_from, ld_to, stride_from, stride_to, across);
    return cudaGetLastError();
}

} // namespace

cudaError_t kernels_transpose(void *to, const void *from, int element, int64_t rows, int64_t cols, int64_t ld_from,
                              int64_t ld_to, int64_t stride_from, int64_t stride_to, int64_t matrices,
                              cudaStream_t stream) {
    static const struct {
        int element;
        decltype(&pack_launch<uint8_t>) launch;
    } launches[] = {
        {1, pack_launch<uint8_t>}, {2, pack_launch<uint16_t>}, {4, pack_launch<uint32_t>}, {8, pack_launch<uint64_t>}};
    for (const auto &l : launches)
        if (l.element == element)
            return l.launch(to, from, rows, cols, ld_from, ld_to, stride_from, stride_to, matrices, stream);
    return cudaErrorInvalidValue;
}

cudaError_t kernels_widen(void *to, uint32_t type, const kernels_blocks *weight, cudaStream_t stream) {
    const unsigned blocks = 4096, threads = 256;
    if (weight->block < 1 || weight->k % weight->block) return cudaErrorInvalidValue;
    if (type == DTYPE_FP16)
        pack_widen<<<blocks, threads, 0, stream>>>((__half *)to, *weight);
    else if (type == DTYPE_BF16)
        pack_widen<<<blocks, threads, 0, stream>>>((__nv_bfloat16 *)to, *weight);
    else if (type == DTYPE_FP32)
        pack_widen<<<blocks, threads, 0, stream>>>((float *)to, *weight);
    else
        return cudaErrorInvalidValue;
    return cudaGetLastError();
}
