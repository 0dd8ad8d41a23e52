/* Packing of sparse weights: one thread block walks along k for each column (of blocks, or of numbers), once to count
 * and once to write, so that what is written has one order and needs no room besides. */
#include "kernels/product/gemm_sparse_pack.h"

#include <cuda_runtime.h>

namespace {

enum { THREADS = 256, SCANNED = 1024 };

template <typename E> struct weight {
    const E *from;
    int64_t n, k, ld;
    int stored_nk;

    __device__ __forceinline__ E at(int64_t row, int64_t deep) const {
        if (row >= n || deep >= k) return 0;
        return stored_nk ? from[row * ld + deep] : from[deep * ld + row];
    }
};

/* A zero of either sign is none. */
__device__ __forceinline__ bool is_number(uint16_t x) { return (x & 0x7fffu) != 0; }
__device__ __forceinline__ bool is_number(uint32_t x) { return (x & 0x7fffffffu) != 0; }

/* Element `i` of a block in the order in which it lies in memory: its row and its depth. */
struct spot {
    int row, deep;
    __device__ __forceinline__ spot(int i, int side, int stored_nk) {
        row = stored_nk ? i / side : i % side;
        deep = stored_nk ? i % side : i / side;
    }
};

template <typename E>
__device__ __forceinline__ bool block_is_kept(const weight<E> &w, int side, int64_t column, int64_t place) {
    bool any = false;
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const spot s(i, side, w.stored_nk);
        any |= is_number(w.at(column * side + s.row, place * side + s.deep));
    }
    return __syncthreads_or(any) != 0;
}

/* Copies a block, or zeros where `place` is -1, to rows that are `pitch` apart. */
template <typename E>
__device__ __forceinline__ void copy_block(const weight<E> &w, int side, int64_t column, int64_t place, E *to,
                                           int64_t pitch) {
    for (int i = threadIdx.x; i < side * side; i += THREADS) {
        const spot s(i, side, w.stored_nk);
        to[s.row * pitch + s.deep] = place < 0 ? (E)0 : w.at(column * side + s.row, place * side + s.deep);
    }
}

template <typename E> __global__ void count_blocks(const weight<E> w, int side, int64_t places, int32_t *begin) {
    const int64_t column = blockIdx.x;
    int32_t count = 0;
    for (int64_t place = 0; place < places; place++) count += block_is_kept(w, side, column, place);
    if (threadIdx.x == 0) begin[column + 1] = count;
}

template <typename E> __global__ void count_numbers(const weight<E> w, int32_t *begin) {
    const int64_t row = blockIdx.x;
    int32_t count = 0;
    for (int64_t k0 = 0; k0 < w.k; k0 += THREADS) count += __syncthreads_count(is_number(w.at(row, k0 + threadIdx.x)));
    if (threadIdx.x == 0) begin[row + 1] = count;
}

/* Counts become sums of all before; one thread block, as there are few. */
__global__ void sum_up(int64_t count, int32_t *begin) {
    __shared__ int32_t sums[SCANNED];
    int32_t before = 0;
    if (threadIdx.x == 0) begin[0] = 0;
    for (int64_t at = 0; at < count; at += SCANNED) {
        const int64_t mine = at + threadIdx.x;
        sums[threadIdx.x] = mine < count ? begin[mine + 1] : 0;
        __syncthreads();
        for (int step = 1; step < SCANNED; step *= 2) {
            const int32_t left = (int)threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
            __syncthreads();
            sums[threadIdx.x] += left;
            __syncthreads();
        }
        if (mine < count) begin[mine + 1] = before + sums[threadIdx.x];
        before += sums[SCANNED - 1];
        __syncthreads();
    }
}

template <typename E>
__global__ void write_blocks(const weight<E> w, int side, int64_t places, int64_t room, const int32_t *begin,
                             int32_t *where, E *values) {
    const int64_t column = blockIdx.x;
    int64_t at = begin[column];
    for (int64_t place = 0; place < places && at < room; place++) {
        if (!block_is_kept(w, side, column, place)) continue;
        if (threadIdx.x == 0) where[at] = (int32_t)place;
        copy_block(w, side, column, place, values + at * side * side, side);
        at++;
    }
}

template <typename E>
__global__ void write_numbers(const weight<E> w, int64_t room, const int32_t *begin, int32_t *where, E *values) {
    __shared__ int found[THREADS / 32];
    const int64_t row = blockIdx.x;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int64_t at = begin[row];
    for (int64_t k0 = 0; k0 < w.k; k0 += THREADS) {
        const E x = w.at(row, k0 + threadIdx.x);
        const unsigned kept = __ballot_sync(0xffffffffu, is_number(x));
        if (lane == 0) found[warp] = __popc(kept);
        __syncthreads();
        int before = __popc(kept & ((1u << lane) - 1)), all = 0;
        for (int k = 0; k < THREADS / 32; k++) {
            if (k < warp) before += found[k];
            all += found[k];
        }
        if (is_number(x) && at + before < room) {
            where[at + before] = (int32_t)(k0 + threadIdx.x);
            values[at + before] = x;
        }
        at += all;
        __syncthreads();
    }
}

template <typename E> __global__ void most_blocks(const weight<E> w, int side, int64_t places, int32_t *longest) {
    int32_t count = 0;
    for (int64_t place = 0; place < places; place++) count += block_is_kept(w, side, blockIdx.x, place);
    if (threadIdx.x == 0) atomicMax(longest, count);
}

template <typename E>
__global__ void write_rows(const weight<E> w, int side, int64_t places, int64_t width, int32_t *where, E *values) {
    const int64_t column = blockIdx.x, pitch = width * side;
    E *const to = values + column * side * pitch;
    int64_t at = 0;
    for (int64_t place = 0; place < places && at < width; place++) {
        if (!block_is_kept(w, side, column, place)) continue;
        if (threadIdx.x == 0) where[column * width + at] = (int32_t)place;
        copy_block(w, side, column, place, to + at * side, pitch);
        at++;
    }
    for (; at < width; at++) {
        if (threadIdx.x == 0) where[column * width + at] = -1;
        copy_block(w, side, column, -1, to + at * side, pitch);
    }
}

template <typename E> weight<E> weight_of(const gemm_sparse_weight *w) {
    return {(const E *)w->from, w->n, w->k, w->ld, w->stored_nk};
}

bool possible(const gemm_sparse_weight *w, int64_t columns) {
    return w->from && w->n > 0 && w->k > 0 && w->k < INT32_MAX && columns < INT32_MAX &&
           (w->element == 2 || w->element == 4);
}

template <typename E>
void blocks_of(const gemm_sparse_weight *w, int side, int64_t room, int32_t *begin, int32_t *place, void *values,
               cudaStream_t stream) {
    const int64_t columns = (w->n + side - 1) / side, places = (w->k + side - 1) / side;
    count_blocks<E><<<(unsigned)columns, THREADS, 0, stream>>>(weight_of<E>(w), side, places, begin);
    sum_up<<<1, SCANNED, 0, stream>>>(columns, begin);
    write_blocks<E>
        <<<(unsigned)columns, THREADS, 0, stream>>>(weight_of<E>(w), side, places, room, begin, place, (E *)values);
}

template <typename E>
void numbers_of(const gemm_sparse_weight *w, int64_t room, int32_t *begin, int32_t *place, void *values,
                cudaStream_t stream) {
    count_numbers<E><<<(unsigned)w->n, THREADS, 0, stream>>>(weight_of<E>(w), begin);
    sum_up<<<1, SCANNED, 0, stream>>>(w->n, begin);
    write_numbers<E><<<(unsigned)w->n, THREADS, 0, stream>>>(weight_of<E>(w), room, begin, place, (E *)values);
}

} // namespace

extern "C" int gemm_sparse_pack_blocks(const gemm_sparse_weight *w, int side, int64_t room, int32_t *begin,
                                       int32_t *place, void *values, void *stream) {
    if (side < 1 || !possible(w, (w->n + side - 1) / side)) return cudaErrorInvalidValue;
    const auto of = w->element == 2 ? blocks_of<uint16_t> : blocks_of<uint32_t>;
    of(w, side, room, begin, place, values, (cudaStream_t)stream);
    return cudaGetLastError();
}

extern "C" int gemm_sparse_pack_numbers(const gemm_sparse_weight *w, int64_t room, int32_t *begin, int32_t *place,
                                        void *values, void *stream) {
    if (!possible(w, w->n)) return cudaErrorInvalidValue;
    const auto of = w->element == 2 ? numbers_of<uint16_t> : numbers_of<uint32_t>;
    of(w, room, begin, place, values, (cudaStream_t)stream);
    return cudaGetLastError();
}

extern "C" int gemm_sparse_pack_longest(const gemm_sparse_weight *w, int side, int32_t *longest, void *stream) {
    if (side < 1 || !possible(w, (w->n + side - 1) / side)) return cudaErrorInvalidValue;
    const unsigned columns = (unsigned)((w->n + side - 1) / side);
    const int64_t places = (w->k + side - 1) / side;
    const cudaError_t error = cudaMemsetAsync(longest, 0, sizeof *longest, (cudaStream_t)stream);
    if (error != cudaSuccess) return error;
    if (w->element == 2)
        most_blocks<<<columns, THREADS, 0, (cudaStream_t)stream>>>(weight_of<uint16_t>(w), side, places, longest);
    else
        most_blocks<<<columns, THREADS, 0, (cudaStream_t)stream>>>(weight_of<uint32_t>(w), side, places, longest);
    return cudaGetLastError();
}

extern "C" int gemm_sparse_pack_rows(const gemm_sparse_weight *w, int side, int64_t width, int32_t *place, void *values,
                                     void *stream) {
    if (side < 1 || width < 0 || !possible(w, (w->n + side - 1) / side)) return cudaErrorInvalidValue;
    const unsigned columns = (unsigned)((w->n + side - 1) / side);
    const int64_t places = (w->k + side - 1) / side;
    if (w->element == 2)
        write_rows<<<columns, THREADS, 0, (cudaStream_t)stream>>>(weight_of<uint16_t>(w), side, places, width, place,
                                                                  (uint16_t *)values);
    else
        write_rows<<<columns, THREADS, 0, (cudaStream_t)stream>>>(weight_of<uint32_t>(w), side, places, width, place,
                                                                  (uint32_t *)values);
    return cudaGetLastError();
}
