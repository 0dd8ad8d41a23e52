/* The weight-streaming product for at most 16 rows: the bulk of decode steps of language models. The weight is read
 * once, at the speed of a plain read.
 *
 * - The outputs (columns of C) are divided evenly over clusters of 1, 2 or 4 blocks, whose blocks divide k; the 8 warps
 *   of a block divide its part of k again, so every multiprocessor has the same bytes to read at every moment.
 * - Each warp copies what it will itself multiply into a ring in shared memory of its own (cp.async, 16 bytes a lane):
 *   no barrier of the block stands between a copy and its use, and the ring runs on across tiles.
 * - The weight is the 16-row operand of mma.m16n8k16, the rows of A are its 8 columns: one mma for m <= 8, two to 16.
 *   Which k stands in which slot of the fragment is free as long as both operands agree: 16 consecutive bytes of a row
 *   are the slots of one lane in two products.
 * - A warp needs no more of A than its own part of k, which comes with the weight of the same k, and stays for further
 *   tiles where there is room. Blocks begin at different k, so as not to ask for the same line of A at once.
 * - Partial sums meet in shared memory per tile, and across a cluster's blocks once at the end. No second launch, no
 *   counters, the same order of additions every time.
 *
 * Forms of the weight: rows [n,k], columns [k,n] (fragments by ldmatrix.trans); packed: columns turned into rows.
 *
 * Tried on an H200 (us a launch in graphs, weights cold, 4096 x 4096 fp16 as rows, of which a plain read takes 8.9):
 * - A staged whole behind one barrier: 10.5 for m = 1, 13.1 for m = 16. Expected without the barrier: about 1 less.
 *   With each warp's own copies of A it was 9.95 and 11.95.
 * - Leaving parts out of that: the products were worth 0.3 (m = 16: 0.8), A's copies 0.1 (1.8), the sums over the warps
 *   0.1. So whole lines of 128 bytes in every copy, addresses once for a tile, A's fragments for two strips. Expected:
 *   11.2 for m = 16. It was 9.6 and 10.1.
 * - Without the hint that brings 128 bytes into L2: 0.7 more. Two or three blocks on a multiprocessor: 0.5 more.
 * - The weight in the order of the fragments: no faster than rows as they lie; dropped.
 * - Clusters that divide k: about 1 more; they pay where there are too few outputs to fill a tile on each block.
 * - Columns: tiles narrower than a block's outputs read lines twice (11008 x 4096: 55 instead of 24): hence wide tiles.
 */
#pragma once

#include "kernels/product/gemm_device.cuh"

namespace gemm_stream {

enum form { ROWS, COLUMNS };
enum { WARPS = 8, THREADS = 32 * WARPS };

/* What differs between the forms, on host and device alike. SIZE is 1, 2 or 3. */
template <int FORM, int SIZE> struct geometry {
    static constexpr int tile = (FORM == COLUMNS ? 32 : 16) * SIZE; /* outputs */
    static constexpr int step = FORM == COLUMNS ? 32 : 64;          /* of k, that a warp multiplies between two waits */
    static constexpr int bytes = tile * step * 2;                   /* of weight in a step */
    static constexpr int strips = tile / 16;
};
__host__ __device__ constexpr int tile_of(int form, int size) { return (form == COLUMNS ? 32 : 16) * size; }
__host__ __device__ constexpr int step_of(int form) { return form == COLUMNS ? 32 : 64; }
__host__ __device__ constexpr int unit_of(int form) {
    return form == COLUMNS ? 16 : 1;
} /* outputs that stay together */

/* Clusters 0 … more - 1 have units + 1 units of outputs, the others `units`; [0] is what holds for those, [1] for
 * these: all divisions are done by the host, a launch is too short for them. */
struct stream_job {
    const void *a, *w;
    void *c;
    int m, n, k, steps, split, units, more, exchange_tiles;
    int a_places; /* steps whose part of A a warp holds: all of its steps, or as many as the ring has */
    int keep;     /* all: A is read for the first tile only */
    int tiles[2], height[2];
    int64_t lda, ldw, ldc;
};

/* The outputs of one cluster, cut into tiles of equal height. */
struct cut {
    int first, last, height, tiles;
};
template <int FORM> __device__ __forceinline__ cut cut_of(const stream_job &job, int cluster) {
    const int less = cluster >= job.more;
    cut c;
    c.first = (cluster * job.units + (less ? job.more : cluster)) * unit_of(FORM);
    c.last = min(job.n, c.first + (job.units + !less) * unit_of(FORM));
    c.height = job.height[less];
    c.tiles = job.tiles[less];
    return c;
}

/* Where 16-byte piece `c` of row `r` stands in a step of ROWS, the weight's as well as A's: 128 bytes a row; the eight
 * lanes that are served together are in different banks, both when a row is written and when fragments are read. */
__device__ __forceinline__ int place_row(int r, int c) { return r * 128 + ((c ^ (r & 1) << 2) << 4); }

/* The same in a step of COLUMNS, where row k has PIECES pieces: for the rows that one ldmatrix reads together. */
template <int PIECES> __device__ __forceinline__ int place_column(int k, int c) {
    return k * PIECES * 16 + ((c ^ ((k >> 3) & 3) ^ (PIECES == 8 ? (k & 1) << 2 : 0)) << 4);
}

/* The weight of one tile, as one lane copies it: whole lines of 128 bytes, four rows at once (ROWS). */
template <typename T, int FORM, int SIZE> struct source {
    using geo = geometry<FORM, SIZE>;
    const T *from;
    int64_t stride; /* ROWS: elements between a lane's rows */
    int count;      /* rows or columns that are there */

    __device__ __forceinline__ void open(const stream_job &job, const cut &mine, int tile, int lane) {
        const int base = mine.first + tile * mine.height;
        count = min(mine.height, mine.last - base);
        if (FORM == ROWS) {
            from = (const T *)job.w + (int64_t)(base + (lane >> 3)) * job.ldw + (lane & 7) * 8;
            stride = 4 * job.ldw;
        } else {
            from = (const T *)job.w + base;
        }
    }
    __device__ __forceinline__ void fetch(const stream_job &job, int step, uint32_t to, int lane) const {
        const int k0 = step * geo::step;
        if (FORM == ROWS) {
            const int rows = k0 + (lane & 7) * 8 < job.k ? count - (lane >> 3) : 0;
            const T *p = from + k0;
            to += place_row(lane >> 3, lane & 7);
#pragma unroll
            for (int i = 0; i < geo::tile / 4; i++, p += stride) gemm::copy16(to + i * 512, p, i * 4 < rows);
        } else {
            constexpr int PIECES = geo::tile / 8;
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                const int k = (i * 32 + lane) / PIECES, c = (i * 32 + lane) % PIECES;
                gemm::copy16(to + place_column<PIECES>(k, c), from + (int64_t)(k0 + k) * job.ldw + c * 8,
                             c * 8 < count && k0 + k < job.k);
            }
        }
    }
};

/* A's part of a step: rows of 128 bytes (ROWS) or 64 (COLUMNS). */
template <typename T, int MT, int FORM>
__device__ __forceinline__ void fetch_a(const stream_job &job, int step, uint32_t to, int lane) {
    constexpr int SHIFT = FORM == ROWS ? 3 : 2;
    const int r = lane >> SHIFT, c = lane & ((1 << SHIFT) - 1), k = step * step_of(FORM) + c * 8;
#pragma unroll
    for (int i = 0; i < MT * 8 >> (5 - SHIFT); i++) {
        const int row = (i << (5 - SHIFT)) + r;
        if (row < job.m)
            gemm::copy16(to + (FORM == ROWS ? place_row(row, c) : row * 64 + c * 16),
                         (const T *)job.a + row * job.lda + k, k < job.k);
    }
}

/* One step of one warp: sums[strip][half of m]. */
template <typename T, int MT, int FORM, int SIZE>
__device__ __forceinline__ void multiply(float (&sums)[geometry<FORM, SIZE>::strips][MT][4], int m, uint32_t ring,
                                         uint32_t a, int lane) {
    constexpr int STRIPS = geometry<FORM, SIZE>::strips;
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int p = 0; p < step_of(FORM) / 32; p++) {
        uint4 x[MT];
#pragma unroll
        for (int h = 0; h < MT; h++) {
            x[h] = make_uint4(0, 0, 0, 0);
            if (g + 8 * h < m)
                x[h] =
                    gemm::load_shared16(a + (FORM == ROWS ? place_row(g, p * 4 + t) + h * 1024 : lane * 16 + h * 512));
        }
        if (FORM == COLUMNS) {
            const int quarter = lane >> 3, s = lane & 7;
#pragma unroll
            for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
                for (int q = 0; q < 2; q++) {
                    const int row = 8 * (s >> 1) + (s & 1) + 2 * (quarter >> 1) + 4 * q;
                    uint32_t w[4];
                    gemm::load_matrices_transposed(w, ring + place_column<STRIPS * 2>(row, strip * 2 + (quarter & 1)));
#pragma unroll
                    for (int h = 0; h < MT; h++)
                        gemm::mma16816<T>(sums[strip][h], w[0], w[1], w[2], w[3], q ? x[h].z : x[h].x,
                                          q ? x[h].w : x[h].y);
                }
        } else {
#pragma unroll
            for (int strip = 0; strip < STRIPS; strip++) {
                const uint32_t at = ring + place_row(g, p * 4 + t) + strip * 2048;
                const uint4 r = gemm::load_shared16(at), s = gemm::load_shared16(at + 1024);
#pragma unroll
                for (int h = 0; h < MT; h++) {
                    gemm::mma16816<T>(sums[strip][h], r.x, s.x, r.y, s.y, x[h].x, x[h].y);
                    gemm::mma16816<T>(sums[strip][h], r.z, s.z, r.w, s.w, x[h].z, x[h].w);
                }
            }
        }
    }
}

/* Sums over the warps of one tile, from `partial`; `emit(m, n, value)` gets each. */
template <int TILE, int MT, typename EMIT>
__device__ __forceinline__ void gather(const float *partial, int rows, EMIT emit) {
    for (int i = threadIdx.x; i < TILE * rows; i += THREADS) {
        const int m = i / TILE, n = i % TILE;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) sum += partial[(w * 8 * MT + m) * (TILE + 4) + n];
        emit(m, n, sum);
    }
}

#ifdef GEMM_HAS_CLUSTERS
/* What the blocks of a cluster have sent each other becomes output. */
template <typename T, int TILE, int MT>
__device__ __forceinline__ void finish(const stream_job &job, const cut &mine, const float *exchange, int rank) {
    gemm::cluster_arrive();
    gemm::cluster_wait();
    for (int tile = rank; tile < mine.tiles; tile += job.split) {
        const int base = mine.first + tile * mine.height, count = min(mine.height, mine.last - base);
        const float *from = exchange + tile / job.split * job.split * TILE * 8 * MT;
        for (int i = threadIdx.x; i < TILE * job.m; i += THREADS) {
            const int m = i / TILE, n = i % TILE;
            float sum = 0;
            for (int r = 0; r < job.split; r++) sum += from[r * TILE * 8 * MT + i];
            if (n < count) ((T *)job.c)[m * job.ldc + base + n] = gemm::from_float<T>(sum);
        }
    }
}
#endif

/* One warp's sums of a tile, where gather finds them. */
template <int TILE, int MT>
__device__ __forceinline__ void lay_down(float *partial, const float (&sums)[TILE / 16][MT][4], int warp, int lane) {
#pragma unroll
    for (int strip = 0; strip < TILE / 16; strip++)
#pragma unroll
        for (int h = 0; h < MT; h++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                partial[(warp * 8 * MT + h * 8 + (lane & 3) * 2 + (e & 1)) * (TILE + 4) + strip * 16 + (lane >> 2) +
                        (e >> 1) * 8] = sums[strip][h][e];
}

/* A block's sums of a tile: to the output, or to the block of the cluster that adds this tile up. */
template <typename T, int TILE, int MT>
__device__ __forceinline__ void pass_on(const stream_job &job, const cut &mine, int tile, [[maybe_unused]] int rank,
                                        const float *partial, [[maybe_unused]] float *exchange) {
    if (job.split == 1) {
        const int base = mine.first + tile * mine.height, count = min(mine.height, mine.last - base);
        gather<TILE, MT>(partial, job.m, [&](int m, int n, float sum) {
            if (n < count) ((T *)job.c)[m * job.ldc + base + n] = gemm::from_float<T>(sum);
        });
    } else {
#ifdef GEMM_HAS_CLUSTERS
        if (tile == 0) gemm::cluster_wait(); /* the others have begun: their memory is there */
        const int owner = tile % (unsigned)job.split;
        const uint32_t there = gemm::shared_address(exchange + (tile - owner + rank) * TILE * 8 * MT);
        gather<TILE, MT>(partial, job.m, [&](int m, int n, float sum) {
            gemm::store_remote(there + (uint32_t)(m * TILE + n) * 4, (uint32_t)owner, sum);
        });
#endif
    }
}

template <typename T, int MT, int FORM, int SIZE, int DEPTH>
__global__ void __launch_bounds__(THREADS, 1) stream_kernel(const __grid_constant__ stream_job job) {
    using geo = geometry<FORM, SIZE>;
    constexpr int TILE = geo::tile, PARTIAL = WARPS * 8 * MT * (TILE + 4);
    extern __shared__ __align__(128) unsigned char memory[];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int cluster = job.split == 1 ? blockIdx.x : blockIdx.x / (unsigned)job.split;
    const int rank = job.split == 1 ? 0 : blockIdx.x % (unsigned)job.split;
    const cut mine = cut_of<FORM>(job, cluster);
    /* this block's steps, then this warp's: every eighth from the warp's number on, beginning anywhere */
    const int from = (job.split == 1 ? 0 : job.steps * rank / job.split) + warp;
    const int to = job.split == 1 ? job.steps : job.steps * (rank + 1) / job.split;
    const int steps = (to - from + WARPS - 1) / WARPS;
    const int turn = steps > 0 ? from + cluster % (unsigned)steps * WARPS : 0;

    const uint32_t a_bytes = geo::step * 2 * job.m;
    const uint32_t ring = gemm::shared_address(memory) + warp * DEPTH * geo::bytes;
    const uint32_t held = gemm::shared_address(memory) + WARPS * DEPTH * geo::bytes + warp * job.a_places * a_bytes;
    float *partial = (float *)(memory + WARPS * (DEPTH * geo::bytes + job.a_places * a_bytes));
    [[maybe_unused]] float *exchange = partial + PARTIAL;

    source<T, FORM, SIZE> weight;
    int next_tile = steps > 0 ? 0 : mine.tiles, next_step = 0, next = turn;
    auto issue = [&](int slot) {
        if (next_tile < mine.tiles) {
            if (next_step == 0) weight.open(job, mine, next_tile, lane);
            if (next_tile == 0 || !job.keep)
                fetch_a<T, MT, FORM>(job, next, held + (job.keep ? next_step : slot) * a_bytes, lane);
            weight.fetch(job, next, ring + slot * geo::bytes, lane);
            next = next + WARPS < to ? next + WARPS : from;
            if (++next_step == steps) next_step = 0, next_tile++;
        }
        gemm::copy_commit();
    };
#ifdef GEMM_HAS_CLUSTERS
    if (job.split > 1) gemm::cluster_arrive_relaxed();
#endif
#pragma unroll
    for (int slot = 0; slot < DEPTH; slot++) issue(slot);

    int slot = 0;
    for (int tile = 0; tile < mine.tiles; tile++) {
        float sums[geo::strips][MT][4] = {};
        for (int step = 0; step < steps; step++) {
            gemm::copy_wait<DEPTH - 1>();
            __syncwarp(); /* lanes read what others copied */
            multiply<T, MT, FORM, SIZE>(sums, job.m, ring + slot * geo::bytes,
                                        held + (job.keep ? step : slot) * a_bytes, lane);
            __syncwarp();
            issue(slot);
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        if (tile > 0) __syncthreads();
        lay_down<TILE, MT>(partial, sums, warp, lane);
        __syncthreads();
        pass_on<T, TILE, MT>(job, mine, tile, rank, partial, exchange);
    }
#ifdef GEMM_HAS_CLUSTERS
    if (job.split > 1) finish<T, TILE, MT>(job, mine, exchange, rank);
#endif
}

} // namespace gemm_stream
