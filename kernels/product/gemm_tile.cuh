/* One tile of C by mma.sync out of shared memory: what gemm_tiled and the many-row side of gemm_int4 share. A block of
 * 256 threads computes 128 x 128 outputs in slices of 32 along k; the next slice is on its way in registers while the
 * current one is multiplied. How a slice of B comes from memory is the caller's (LOADER). */
#pragma once

#include "kernels/product/gemm_device.cuh"

namespace gemm {

enum { TILE_M = 128, TILE_N = 128, TILE_K = 32, TILE_THREADS = 256 };

/* A slice lies as [128][32] where memory is contiguous along k, else as [32][128]; rows are padded by 16 bytes, which
 * puts the eight rows that ldmatrix reads together into different banks. */
template <bool ALONG_K> struct slice {
    static constexpr int rows = ALONG_K ? 128 : TILE_K, columns = ALONG_K ? TILE_K : 128, pitch = columns + 8;
};

/* 16-bit elements of a matrix in memory: two pieces of 8 for each thread. */
template <typename T, bool ALONG_K> struct matrix_loader {
    const T *from;
    int64_t pitch, outer, inner; /* elements between rows; rows and columns that are there */
    bool aligned;                /* every piece of 8 begins on 16 bytes */
    uint4 held[2];

    __device__ __forceinline__ void load(int64_t first, int64_t k0) {
        using S = slice<ALONG_K>;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int piece = i * TILE_THREADS + threadIdx.x;
            const int64_t r = (ALONG_K ? first : k0) + piece / (S::columns / 8);
            const int64_t c = (ALONG_K ? k0 : first) + piece % (S::columns / 8) * 8;
            held[i] = make_uint4(0, 0, 0, 0);
            if (r >= outer || c >= inner) continue;
            if (aligned && c + 8 <= inner) {
                held[i] = *(const uint4 *)(from + r * pitch + c);
            } else {
                uint32_t word[4] = {};
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (c + e < inner)
                        word[e / 2] |= (uint32_t)((const uint16_t *)from)[r * pitch + c + e] << (e & 1) * 16;
                held[i] = make_uint4(word[0], word[1], word[2], word[3]);
            }
        }
    }
    __device__ __forceinline__ void store(T *to) const {
        using S = slice<ALONG_K>;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int piece = i * TILE_THREADS + threadIdx.x;
            *(uint4 *)(to + piece / (S::columns / 8) * S::pitch + piece % (S::columns / 8) * 8) = held[i];
        }
    }
};

/* Fragments of 16 rows (columns of B: 16) and 16 k, as mma.m16n8k16 takes them: A's order, and B's for two columns
 * of 8. */
template <typename T, bool ALONG_K>
__device__ __forceinline__ void fragment_a(uint32_t (&r)[4], const T *s, int first, int k) {
    const int lane = threadIdx.x & 31, matrix = lane >> 3, row = lane & 7, hi = matrix & 1, deep = matrix >> 1;
    if (ALONG_K)
        load_matrices(r, shared_address(s + (first + hi * 8 + row) * slice<true>::pitch + k + deep * 8));
    else
        load_matrices_transposed(r, shared_address(s + (k + deep * 8 + row) * slice<false>::pitch + first + hi * 8));
}
template <typename T, bool ALONG_K>
__device__ __forceinline__ void fragment_b(uint32_t (&r)[4], const T *s, int first, int k) {
    const int lane = threadIdx.x & 31, matrix = lane >> 3, row = lane & 7, deep = matrix & 1, hi = matrix >> 1;
    if (ALONG_K)
        load_matrices(r, shared_address(s + (first + hi * 8 + row) * slice<true>::pitch + k + deep * 8));
    else
        load_matrices_transposed(r, shared_address(s + (k + deep * 8 + row) * slice<false>::pitch + first + hi * 8));
}

/* Rows m0 … and columns n0 … of one product; ALONG_A, ALONG_B: contiguous along k in memory. */
template <typename T, bool ALONG_A, bool ALONG_B, typename LOADER>
__device__ __forceinline__ void tile_product(matrix_loader<T, ALONG_A> &a, LOADER &b, T *c, int64_t ldc, int64_t m,
                                             int64_t n, int64_t k, int64_t m0, int64_t n0) {
    __shared__ __align__(16) T slice_a[2][slice<ALONG_A>::rows * slice<ALONG_A>::pitch];
    __shared__ __align__(16) T slice_b[2][slice<ALONG_B>::rows * slice<ALONG_B>::pitch];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int row = warp / 4 * 64, column = warp % 4 * 32; /* of this warp's 64 x 32 outputs */
    float sums[4][4][4] = {};
    a.load(m0, 0), b.load(n0, 0);
    a.store(slice_a[0]), b.store(slice_b[0]);
    __syncthreads();
    int now = 0;
    for (int64_t k0 = 0; k0 < k; k0 += TILE_K, now ^= 1) {
        const bool more = k0 + TILE_K < k;
        if (more) a.load(m0, k0 + TILE_K), b.load(n0, k0 + TILE_K);
#pragma unroll
        for (int step = 0; step < TILE_K; step += 16) {
            uint32_t fa[4][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) fragment_a<T, ALONG_A>(fa[i], slice_a[now], row + i * 16, step);
#pragma unroll
            for (int j = 0; j < 2; j++) fragment_b<T, ALONG_B>(fb[j], slice_b[now], column + j * 16, step);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    mma16816<T>(sums[i][j], fa[i][0], fa[i][1], fa[i][2], fa[i][3], fb[j / 2][j % 2 * 2],
                                fb[j / 2][j % 2 * 2 + 1]);
        }
        if (more) a.store(slice_a[now ^ 1]), b.store(slice_b[now ^ 1]);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int64_t r = m0 + row + i * 16 + (lane >> 2) + (e >> 1) * 8;
                const int64_t at = n0 + column + j * 8 + (lane & 3) * 2 + (e & 1);
                if (r < m && at < n) c[r * ldc + at] = from_float<T>(sums[i][j][e]);
            }
}

} // namespace gemm
