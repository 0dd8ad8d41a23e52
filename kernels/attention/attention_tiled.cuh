/* What a block of attention_tiled does with one tile of keys: copies into shared memory, products by mma.sync, and sums
 * that follow the largest score so far, all in registers. Rows in shared memory have DIM elements; their pieces of 16
 * bytes are swizzled by the row, so that the eight rows that ldmatrix reads together are in different banks. */
#pragma once

#include "kernels/attention/attention_device.cuh"

namespace attention {

struct tiled_job {
    attention_shape s;
    attention_tensors t;
    int64_t tiles, group; /* of queries, for each head; heads that share keys and values */
};

/* Where a block works: queries from `query` on, keys [begin, stop), of which all queries see [inner, outer). */
struct tiled_place {
    int64_t b, head, query, begin, stop, inner, outer;
};

/* The rows of the block mask that the first and the last query of a tile are in. A tile has 128 queries at most and a
 * block 64 at least, so there is no row between. */
struct tiled_blocks {
    const uint32_t *first, *last;
};

/* A warp computes MT times 16 queries; a tile has WARPS * MT * 16 queries and KEYS_ keys. */
template <typename T_, int DIM_, int WARPS_, int MT_, int KEYS_> struct tiled_form {
    typedef T_ T;
    static constexpr int DIM = DIM_, WARPS = WARPS_, MT = MT_, KEYS = KEYS_;
    static constexpr int ROWS = WARPS * MT * 16, THREADS = WARPS * 32;
    static constexpr int pitch = DIM * 2, tile = KEYS * pitch; /* bytes of a row, of a tile of keys or of values */
    static constexpr int bytes = ROWS * pitch + 4 * tile;      /* of queries, and of two tiles of both */
};

/* What a warp has of its queries; of each 16, a lane has rows g and g + 8, and of a row every fourth pair. */
template <typename F> struct tiled_state {
    float o[F::MT][F::DIM / 8][4];
    float most[F::MT][2], total[F::MT][2];
};

/* Bytes from the beginning of a tile to piece `piece` of row `row`. */
template <typename F> static __device__ __forceinline__ uint32_t place(int row, int piece) {
    return (uint32_t)(row * F::pitch + ((piece ^ (row & 7)) << 4));
}

/* `rows` rows of `dim` elements into a tile of ROWS rows; zeros behind both. */
template <typename F, int ROWS>
static __device__ __forceinline__ void copy_rows(uint32_t to, const typename F::T *from, int64_t step, int64_t rows,
                                                 int64_t dim) {
    typedef typename F::T T;
    constexpr int pieces = F::DIM / 8, rows_at_once = F::THREADS / pieces;
    static_assert(rows_at_once % 8 == 0 && ROWS % rows_at_once == 0, "a thread's pieces lie below each other");
    const int row = threadIdx.x / pieces, piece = threadIdx.x % pieces;
    const T *const mine = from + row * step + piece * 8;
    const int64_t left = piece * 8 < dim ? rows - row : 0;
    to += place<F>(row, piece);
#pragma unroll
    for (int i = 0; i < ROWS / rows_at_once; i++) {
        const bool valid = i * rows_at_once < left;
        gemm::copy16(to + i * rows_at_once * F::pitch, valid ? mine + i * rows_at_once * step : from, valid);
    }
}

/* x[m][n] of queries 16 m … and keys 8 n … of the warp. */
template <typename F>
static __device__ __forceinline__ void multiply_keys(uint32_t q, uint32_t k, float (&x)[F::MT][F::KEYS / 8][4]) {
    const int lane = threadIdx.x & 31, row = lane & 7, odd = lane >> 3 & 1, upper = lane >> 4;
#pragma unroll
    for (int d = 0; d < F::DIM / 16; d++) {
        uint32_t a[F::MT][4];
#pragma unroll
        for (int m = 0; m < F::MT; m++) gemm::load_matrices(a[m], q + place<F>(m * 16 + odd * 8 + row, d * 2 + upper));
#pragma unroll
        for (int n = 0; n < F::KEYS / 16; n++) {
            uint32_t b[4];
            gemm::load_matrices(b, k + place<F>(n * 16 + upper * 8 + row, d * 2 + odd));
#pragma unroll
            for (int m = 0; m < F::MT; m++) {
                gemm::mma16816<typename F::T>(x[m][n * 2], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
                gemm::mma16816<typename F::T>(x[m][n * 2 + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
            }
        }
    }
}

template <typename F>
static __device__ __forceinline__ void add_values(uint32_t v, const float (&p)[F::MT][F::KEYS / 8][4],
                                                  float (&o)[F::MT][F::DIM / 8][4]) {
    typedef typename F::T T;
    const int lane = threadIdx.x & 31, row = lane & 7, odd = lane >> 3 & 1, upper = lane >> 4;
#pragma unroll
    for (int k = 0; k < F::KEYS / 16; k++) {
        uint32_t a[F::MT][4];
#pragma unroll
        for (int m = 0; m < F::MT; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float *const pair = &p[m][k * 2 + (i >> 1)][(i & 1) * 2];
                a[m][i] = pack<T>(pair[0], pair[1]);
            }
#pragma unroll
        for (int n = 0; n < F::DIM / 16; n++) {
            uint32_t b[4];
            gemm::load_matrices_transposed(b, v + place<F>(k * 16 + odd * 8 + row, n * 2 + upper));
#pragma unroll
            for (int m = 0; m < F::MT; m++) {
                gemm::mma16816<T>(o[m][n * 2], a[m][0], a[m][1], a[m][2], a[m][3], b[0], b[1]);
                gemm::mma16816<T>(o[m][n * 2 + 1], a[m][0], a[m][1], a[m][2], a[m][3], b[2], b[3]);
            }
        }
    }
}

/* Scores in natural units where there is a cap or a mask. `row`: this lane's first query of the warp's. */
template <typename F>
static __device__ __forceinline__ void adjust(const tiled_job &job, const tiled_place &at, int64_t row, int64_t key,
                                              float (&x)[F::MT][F::KEYS / 8][4]) {
    typedef typename F::T T;
    const attention_shape &s = job.s;
#pragma unroll
    for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t query = row + m * 16 + i * 8;
            const T *mask = nullptr;
            if (job.t.mask && query < s.queries)
                mask = (const T *)job.t.mask + at.b * s.mask[0] + at.head * s.mask[1] + query * s.mask[2];
#pragma unroll
            for (int n = 0; n < F::KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &one = x[m][n][i * 2 + e];
                    one = capped(s, one);
                    if (mask && key + n * 8 + e < at.stop) one += gemm::to_float(mask[(key + n * 8 + e) * s.mask[3]]);
                }
        }
}

/* Minus infinity where a query does not see a key. */
template <typename F>
static __device__ __forceinline__ void hide(const tiled_job &job, const tiled_place &at, int64_t row, int64_t key,
                                            float (&x)[F::MT][F::KEYS / 8][4]) {
#pragma unroll
    for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t query = row + m * 16 + i * 8;
            const int first = (int)max(first_key(job.s, query) - key, (int64_t)0);
            const int end = (int)max(min(end_key(job.s, query, at.stop) - key, (int64_t)F::KEYS), (int64_t)-1);
#pragma unroll
            for (int n = 0; n < F::KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (n * 8 + e < first || n * 8 + e >= end) x[m][n][i * 2 + e] = -INFINITY;
        }
}

static __device__ __forceinline__ const uint32_t *blocks_of(const tiled_job &job, int64_t query) {
    const int inside = (int)(query < job.s.queries ? query : job.s.queries - 1);
    return job.t.blocks + inside / job.s.block * job.s.block_words;
}

/* The first tile from `key` on of which any query sees a block; at.stop or more: there is none. */
template <typename F>
static __device__ __forceinline__ int64_t next_tile(const tiled_job &job, const tiled_place &at,
                                                    const tiled_blocks &rows, int64_t key) {
    const int block = job.s.block;
    while (key < at.stop) {
        const int col = (int)key / block;
        const uint32_t any = (rows.first[col >> 5] | rows.last[col >> 5]) >> (col & 31);
        if (any) {
            const int64_t found = (int64_t)(col + __ffs((int)any) - 1) * block / F::KEYS * F::KEYS;
            return found > key ? found : key;
        }
        key = (int64_t)((col >> 5) + 1) * 32 * block;
    }
    return key;
}

/* Whether all queries see all blocks of a tile of keys; those behind the last key do not matter. */
template <typename F>
static __device__ __forceinline__ bool sees_tile(const tiled_job &job, const tiled_place &at, const tiled_blocks &rows,
                                                 int64_t key) {
    const int first = (int)key / job.s.block, last = (int)(min(key + F::KEYS, at.stop) - 1) / job.s.block;
    return block_seen(rows.first, first) && block_seen(rows.first, last) && block_seen(rows.last, first) &&
           block_seen(rows.last, last);
}

/* Minus infinity in blocks that a query does not see. `key`: the first of the tile; no block is smaller than 64. */
template <typename F>
static __device__ __forceinline__ void hide_blocks(const tiled_job &job, int64_t row, int64_t key,
                                                   float (&x)[F::MT][F::KEYS / 8][4]) {
    const int last = (int)(job.s.keys - 1) / job.s.block;
#pragma unroll
    for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t *const mine = blocks_of(job, row + m * 16 + i * 8);
#pragma unroll
            for (int part = 0; part < F::KEYS / 64; part++) {
                const bool seen = block_seen(mine, min((int)(key + part * 64) / job.s.block, last));
#pragma unroll
                for (int n = part * 8; n < part * 8 + 8; n++)
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        if (!seen) x[m][n][i * 2 + e] = -INFINITY;
            }
        }
}

/* Scores become exponentials, of base 2 and `unit` for each score; sums so far follow the largest score. */
template <typename F>
static __device__ __forceinline__ void soften(float unit, float (&x)[F::MT][F::KEYS / 8][4], tiled_state<F> &state) {
#pragma unroll
    for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float now = state.most[m][i], sum = 0;
#pragma unroll
            for (int n = 0; n < F::KEYS / 8; n++) now = fmaxf(now, fmaxf(x[m][n][i * 2], x[m][n][i * 2 + 1]));
            now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
            now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
            const float base = base_of(now) * unit, change = power(fmaf(state.most[m][i], unit, -base));
            state.most[m][i] = now;
#pragma unroll
            for (int n = 0; n < F::KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &one = x[m][n][i * 2 + e];
                    one = power(fmaf(one, unit, -base));
                    sum += one;
                }
            state.total[m][i] = state.total[m][i] * change + sum;
#pragma unroll
            for (int n = 0; n < F::DIM / 8; n++) state.o[m][n][i * 2] *= change, state.o[m][n][i * 2 + 1] *= change;
        }
}

/* `row` as in adjust; two elements at once, which lie on four bytes. */
template <typename F>
static __device__ __forceinline__ void store(const tiled_job &job, const tiled_place &at, int64_t row,
                                             const tiled_state<F> &state) {
    typedef typename F::T T;
    const attention_shape &s = job.s;
    T *const out = (T *)job.t.out + at.b * s.out[0] + at.head * s.out[1];
#pragma unroll
    for (int m = 0; m < F::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t query = row + m * 16 + i * 8;
            float total = state.total[m][i];
            total += __shfl_xor_sync(0xffffffffu, total, 1);
            total += __shfl_xor_sync(0xffffffffu, total, 2);
            const float part = inverse(total);
#pragma unroll
            for (int n = 0; n < F::DIM / 8; n++) {
                const int d = n * 8 + (threadIdx.x & 3) * 2;
                if (query < s.queries && d < s.v_dim)
                    *(uint32_t *)(out + query * s.out[2] + d) =
                        pack<T>(state.o[m][n][i * 2] * part, state.o[m][n][i * 2 + 1] * part);
            }
        }
}

} // namespace attention
