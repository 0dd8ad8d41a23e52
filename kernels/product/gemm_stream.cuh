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
 * Rows of 8 bits become floats in registers, exactly. For fp16 a byte is the lowest bits of 1024 + q, of which 1024 and
 * the zero point are taken off together; one with a sign has its highest bit turned first, which adds 128. A number of
 * bf16 has room for seven: these are the lowest bits of 2 + q / 64, and one product-and-sum with the eighth takes the 2
 * off. So scales are 64 times as large there, and the four numbers of a word, of which one instruction takes two that
 * stand two apart, meet A's in the same order. Scales multiply sums in fp32: those of a whole row once at the end,
 * those of blocks a block's sums. Scales of blocks, and zero points, come with the weight of the same k, from a table
 * that has the outputs next to each other.
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
 * Bytes with a scale for each output (11008 x 4096, m = 1; a read takes 11.4, the library on fp16 24.0):
 * - Expected: 12.0. It was 14.6 as fp16 and 15.8 as bf16 by way of fp32 (2^23 + q). The scale was turned into a float
 *   before the products, so that these waited for it behind all copies. Turned at the end: 12.4. Without fp32: 14.0.
 * - 16 warps instead of 8: 13.0 and 14.6. Tiles with places for half as many outputs more, all empty (4096 x
 *   11008): 0.7 more as fp16, 4 more as bf16, which is bound by its arithmetic.
 */
#pragma once

#include "kernels/product/gemm_device.cuh"

namespace gemm_stream {

/* BYTES: rows of 8 bits with a scale each; SCALES: in blocks of their own scales; ZEROS: and zero points. FINE: several
 * blocks in a step. */
enum form { ROWS, COLUMNS, BYTES, SCALES, ZEROS, FINE_SCALES, FINE_ZEROS };
enum { WARPS = 8, THREADS = 32 * WARPS };

/* What differs between the forms, on host and device alike. `size` is 1, 2 or 3. */
__host__ __device__ constexpr int element_of(int form) { return form >= BYTES ? 1 : 2; }
__host__ __device__ constexpr bool has_zeros(int form) { return form == ZEROS || form == FINE_ZEROS; }
__host__ __device__ constexpr int sides_of(int form) {
    return form <= BYTES ? 0 : has_zeros(form) ? 2 : 1;
} /* tables */
__host__ __device__ constexpr int most_blocks(int form) { return form >= FINE_SCALES ? 4 : 1; } /* in a step */
__host__ __device__ constexpr int tile_of(int form, int size) {
    return (form == COLUMNS ? 32 : 16) * size;
} /* outputs */
/* Of k, that a warp multiplies between two waits. */
__host__ __device__ constexpr int step_of(int form) { return form == COLUMNS ? 32 : 128 / element_of(form); }
/* Outputs that stay together. */
__host__ __device__ constexpr int unit_of(int form) { return form == COLUMNS ? 16 : 1; }
/* Of a step: of its weight, and with what stands in the tables for it (two outputs are copied at once). */
__host__ __device__ constexpr int weight_bytes(int form, int size) {
    return tile_of(form, size) * step_of(form) * element_of(form);
}
__host__ __device__ constexpr int step_bytes(int form, int size) {
    return weight_bytes(form, size) +
           (sides_of(form) * most_blocks(form) * (tile_of(form, size) + 2) * 2 + 15) / 16 * 16;
}

/* Clusters 0 … more - 1 have units + 1 units of outputs, the others `units`; [0] is what holds for those, [1] for
 * these: all divisions are done by the host, a launch is too short for them. */
struct stream_job {
    const void *a, *w, *side; /* side: BYTES: scales [n]; else a table [scales, zeros][blocks][pitch], of A's type */
    void *c;
    int m, n, k, steps, split, units, more, exchange_tiles;
    int a_places; /* steps whose part of A a warp holds: all of its steps, or as many as the ring has */
    int keep;     /* all: A is read for the first tile only */
    int tiles[2], height[2];
    int64_t lda, ldw, ldc;
    uint32_t flip, factor;                       /* of bytes: what `widened` turns them with */
    int sign;                                    /* whether bytes have one */
    int blocks, pitch, block_shift, block_steps; /* a block is 32 << block_shift numbers (FINE), or so many steps */
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

/* Where 16-byte piece `c` of row `r` stands in a step of rows, the weight's and A's: the lanes that are served together
 * are in different banks, both when a row is written and when fragments are read. Bytes are read by eight. */
template <int FORM> __device__ __forceinline__ int place_row(int r, int c) {
    return r * 128 + ((c ^ (FORM == ROWS ? (r & 1) << 2 : (r & 3) << 1)) << 4);
}
template <int FORM> __device__ __forceinline__ int place_a(int r, int c) {
    return r * step_of(FORM) * 2 + ((c ^ (FORM == COLUMNS ? 0 : (r & 1) << 2)) << 4);
}

/* The same in a step of COLUMNS, where row k has PIECES pieces: for the rows that one ldmatrix reads together. */
template <int PIECES> __device__ __forceinline__ int place_column(int k, int c) {
    return k * PIECES * 16 + ((c ^ ((k >> 3) & 3) ^ (PIECES == 8 ? (k & 1) << 2 : 0)) << 4);
}

/* The weight of one tile, as one lane copies it: whole lines of 128 bytes, four rows at once. */
template <typename T, int FORM, int SIZE> struct source {
    static constexpr int TILE = tile_of(FORM, SIZE), ELEMENT = element_of(FORM);
    const char *from;
    const T *side;  /* of the tables, which have an even number of outputs: two of this lane's */
    int64_t stride; /* bytes between a lane's rows */
    int count;      /* rows or columns that are there */
    bool beside;    /* whether there are such two */

    __device__ __forceinline__ void open(const stream_job &job, const cut &mine, int tile, int lane) {
        const int base = mine.first + tile * mine.height, even = (base & ~1) + lane * 2;
        count = min(mine.height, mine.last - base);
        from = (const char *)job.w;
        if (FORM == COLUMNS) {
            from += base * 2;
        } else {
            from += (int64_t)(base + (lane >> 3)) * job.ldw * ELEMENT + (lane & 7) * 16;
            stride = 4 * job.ldw * ELEMENT;
        }
        if (sides_of(FORM)) side = (const T *)job.side + even, beside = even < job.pitch;
    }
    __device__ __forceinline__ void fetch_sides(const stream_job &job, int step, uint32_t to, int lane) const {
        constexpr int MOST = most_blocks(FORM);
        const int block = MOST > 1 ? step << (2 - job.block_shift) : step / (unsigned)job.block_steps;
#pragma unroll
        for (int i = 0; i < sides_of(FORM) * MOST; i++) {
            const int table = i / MOST, at = i % MOST;
            if (lane <= TILE / 2 && (MOST == 1 || at < MOST >> job.block_shift))
                gemm::copy4(to + i * (TILE + 2) * 2 + lane * 4,
                            side + (int64_t)(table * job.blocks + block + at) * job.pitch,
                            beside && block + at < job.blocks);
        }
    }
    __device__ __forceinline__ void fetch(const stream_job &job, int step, uint32_t to, int lane) const {
        const int k0 = step * step_of(FORM);
        if (FORM == COLUMNS) {
            constexpr int PIECES = TILE / 8;
#pragma unroll
            for (int i = 0; i < PIECES; i++) {
                const int k = (i * 32 + lane) / PIECES, c = (i * 32 + lane) % PIECES;
                gemm::copy16(to + place_column<PIECES>(k, c), from + ((int64_t)(k0 + k) * job.ldw + c * 8) * 2,
                             c * 8 < count && k0 + k < job.k);
            }
        } else {
            const int rows = k0 + (lane & 7) * (16 / ELEMENT) < job.k ? count - (lane >> 3) : 0;
            const char *p = from + (int64_t)k0 * ELEMENT;
            if (sides_of(FORM)) fetch_sides(job, step, to + weight_bytes(FORM, SIZE), lane);
            to += place_row<FORM>(lane >> 3, lane & 7);
#pragma unroll
            for (int i = 0; i < TILE / 4; i++, p += stride) gemm::copy16(to + i * 512, p, i * 4 < rows);
        }
    }
};

/* A's part of a step. */
template <typename T, int MT, int FORM>
__device__ __forceinline__ void fetch_a(const stream_job &job, int step, uint32_t to, int lane) {
    constexpr int PIECES = step_of(FORM) / 8, ROWS_AT_ONCE = 32 / PIECES;
    const int r = lane / PIECES, c = lane % PIECES, k = step * step_of(FORM) + c * 8;
#pragma unroll
    for (int i = 0; i < MT * 8 / ROWS_AT_ONCE; i++) {
        const int row = i * ROWS_AT_ONCE + r;
        if (row < job.m) gemm::copy16(to + place_a<FORM>(row, c), (const T *)job.a + row * job.lda + k, k < job.k);
    }
}

/* Four bytes to four numbers of A's type, less the zero point, UNIT times too small; `order`: A's four beside them. */
template <typename T> struct widened;
template <> struct widened<__half> { /* flip: the highest bit of each byte, or nothing */
    static constexpr float UNIT = 1;
    __half2 less;
    __device__ __forceinline__ void set(const stream_job &job, float zero) {
        less = __float2half2_rn(job.sign ? -1152.0f - zero : -1024.0f - zero);
    }
    template <bool ZEROED>
    __device__ __forceinline__ void get(uint32_t (&to)[2], const stream_job &job, uint32_t w) const {
        w ^= job.flip;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t bits = __byte_perm(w, 0x64646464u, i ? 0x4342 : 0x4140);
            const __half2 x = __hadd2(*(const __half2 *)&bits, less);
            to[i] = *(const uint32_t *)&x;
        }
    }
    static __device__ __forceinline__ void order(uint32_t (&to)[2], uint32_t a, uint32_t b) { to[0] = a, to[1] = b; }
};
template <> struct widened<__nv_bfloat16> { /* flip, factor: what makes of the highest bit what is to be taken off */
    static constexpr float UNIT = 64;
    __nv_bfloat162 less;
    __device__ __forceinline__ void set(const stream_job &, float zero) {
        less = __float2bfloat162_rn(zero * -0.015625f);
    }
    template <bool ZEROED>
    __device__ __forceinline__ void get(uint32_t (&to)[2], const stream_job &job, uint32_t w) const {
#pragma unroll
        for (int i = 0; i < 2; i++, w >>= 8) {
            const uint32_t low = (w & 0x007f007fu) | 0x40004000u, high = (w & 0x00800080u) ^ job.flip;
            __nv_bfloat162 x = __hfma2(*(const __nv_bfloat162 *)&high, *(const __nv_bfloat162 *)&job.factor,
                                       *(const __nv_bfloat162 *)&low);
            if (ZEROED) x = __hadd2(x, less);
            to[i] = *(const uint32_t *)&x;
        }
    }
    static __device__ __forceinline__ void order(uint32_t (&to)[2], uint32_t a, uint32_t b) {
        to[0] = __byte_perm(a, b, 0x5410), to[1] = __byte_perm(a, b, 0x7632);
    }
};

/* One step of one warp, of bytes; `odd`: the tile's first output stands second in the tables' first two. A lane has
 * eight bytes of each row for 32 numbers, so that these have products of their own, for whose sums a scale holds: each
 * such 32 (FINE), or the whole step. Where that was decided at run time, blocks of 128 took 14.7 us as fp16 and 17.2 as
 * bf16, a scale for each output 12.4 and 14.0 (11008 x 4096, m = 1). */
template <typename T, int MT, int FORM, int SIZE>
__device__ __forceinline__ void multiply_bytes(float (&sums)[tile_of(FORM, SIZE) / 16][MT][4], const stream_job &job,
                                               uint32_t ring, uint32_t a, int odd, int lane) {
    constexpr int TILE = tile_of(FORM, SIZE), STRIPS = TILE / 16, PITCH = (TILE + 2) * 2;
    constexpr int UNITS = most_blocks(FORM) > 1 ? 1 : 4;
    const int g = lane >> 2, t = lane & 3;
    const uint32_t side = ring + weight_bytes(FORM, SIZE) + (odd + g) * 2;
    [[maybe_unused]] float part[STRIPS][MT][4];
    widened<T> zero[STRIPS * 2];
    if (!has_zeros(FORM))
#pragma unroll
        for (int i = 0; i < STRIPS * 2; i++) zero[i].set(job, 0);
#pragma unroll
    for (int u = 0; u < 4; u++) {
        [[maybe_unused]] const uint32_t row = side + (UNITS == 1 ? u >> job.block_shift : 0) * PITCH;
        if (sides_of(FORM) && u % UNITS == 0) {
#pragma unroll
            for (int i = 0; i < STRIPS * MT * 4; i++) part[i / (MT * 4)][i / 4 % MT][i % 4] = 0;
            if (has_zeros(FORM))
#pragma unroll
                for (int i = 0; i < STRIPS * 2; i++)
                    zero[i].set(job, gemm::to_float(gemm::load_shared2<T>(row + most_blocks(FORM) * PITCH + i * 16)));
        }
        uint32_t x[MT][2][2];
#pragma unroll
        for (int h = 0; h < MT; h++) {
            uint4 from = make_uint4(0, 0, 0, 0);
            if (g + 8 * h < job.m) from = gemm::load_shared16(a + place_a<FORM>(g, u * 4 + t) + h * 2048);
            widened<T>::order(x[h][0], from.x, from.y), widened<T>::order(x[h][1], from.z, from.w);
        }
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++) {
            const uint32_t at = ring + place_row<FORM>(g, u * 2 + (t >> 1)) + (t & 1) * 8 + strip * 2048;
            const uint2 r = gemm::load_shared8(at), s = gemm::load_shared8(at + 1024);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t v[2], w[2];
                zero[strip * 2].template get<has_zeros(FORM)>(v, job, half ? r.y : r.x);
                zero[strip * 2 + 1].template get<has_zeros(FORM)>(w, job, half ? s.y : s.x);
#pragma unroll
                for (int h = 0; h < MT; h++)
                    gemm::mma16816<T>(sides_of(FORM) ? part[strip][h] : sums[strip][h], v[0], w[0], v[1], w[1],
                                      x[h][half][0], x[h][half][1]);
            }
        }
        if (sides_of(FORM) && u % UNITS == UNITS - 1) {
#pragma unroll
            for (int i = 0; i < STRIPS * 2; i++) {
                const float scale = widened<T>::UNIT * gemm::to_float(gemm::load_shared2<T>(row + i * 16));
#pragma unroll
                for (int h = 0; h < MT; h++)
#pragma unroll
                    for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) sums[i / 2][h][e] += part[i / 2][h][e] * scale;
            }
        }
    }
}

/* One step of one warp: sums[strip][half of m]. */
template <typename T, int MT, int FORM, int SIZE>
__device__ __forceinline__ void multiply(float (&sums)[tile_of(FORM, SIZE) / 16][MT][4], int m, uint32_t ring,
                                         uint32_t a, int lane) {
    constexpr int STRIPS = tile_of(FORM, SIZE) / 16;
    const int g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int p = 0; p < step_of(FORM) / 32; p++) {
        uint4 x[MT];
#pragma unroll
        for (int h = 0; h < MT; h++) {
            x[h] = make_uint4(0, 0, 0, 0);
            if (g + 8 * h < m) x[h] = gemm::load_shared16(a + place_a<FORM>(g, p * 4 + t) + h * step_of(FORM) * 16);
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
                const uint32_t at = ring + place_row<FORM>(g, p * 4 + t) + strip * 2048;
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

/* Sums over the warps of one tile, from `partial`; `emit(m, n, value)` gets each. A thread has one n. */
template <int TILE, int MT, typename EMIT>
__device__ __forceinline__ void gather(const float *partial, int rows, EMIT emit) {
    const int n = threadIdx.x % TILE;
    for (int m = threadIdx.x / TILE; m < rows; m += THREADS / TILE) {
        if (THREADS % TILE && threadIdx.x >= THREADS / TILE * TILE) break;
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

/* A block's sums of a tile, times the scale of this thread's output: to C, or to the block of the cluster that adds
 * this tile up. */
template <typename T, int TILE, int MT>
__device__ __forceinline__ void pass_on(const stream_job &job, const cut &mine, int tile, [[maybe_unused]] int rank,
                                        const float *partial, [[maybe_unused]] float *exchange, float scale) {
    if (job.split == 1) {
        const int base = mine.first + tile * mine.height, count = min(mine.height, mine.last - base);
        gather<TILE, MT>(partial, job.m, [&](int m, int n, float sum) {
            if (n < count) ((T *)job.c)[m * job.ldc + base + n] = gemm::from_float<T>(sum * scale);
        });
    } else {
#ifdef GEMM_HAS_CLUSTERS
        if (tile == 0) gemm::cluster_wait(); /* the others have begun: their memory is there */
        const int owner = tile % (unsigned)job.split;
        const uint32_t there = gemm::shared_address(exchange + (tile - owner + rank) * TILE * 8 * MT);
        gather<TILE, MT>(partial, job.m, [&](int m, int n, float sum) {
            gemm::store_remote(there + (uint32_t)(m * TILE + n) * 4, (uint32_t)owner, sum * scale);
        });
#endif
    }
}

template <typename T, int MT, int FORM, int SIZE, int DEPTH>
__global__ void __launch_bounds__(THREADS, 1) stream_kernel(const __grid_constant__ stream_job job) {
    constexpr int TILE = tile_of(FORM, SIZE), BYTES_AT_ONCE = step_bytes(FORM, SIZE);
    constexpr int PARTIAL = WARPS * 8 * MT * (TILE + 4);
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

    const uint32_t a_bytes = step_of(FORM) * 2 * job.m;
    const uint32_t ring = gemm::shared_address(memory) + warp * DEPTH * BYTES_AT_ONCE;
    const uint32_t held = gemm::shared_address(memory) + WARPS * DEPTH * BYTES_AT_ONCE + warp * job.a_places * a_bytes;
    float *partial = (float *)(memory + WARPS * (DEPTH * BYTES_AT_ONCE + job.a_places * a_bytes));
    [[maybe_unused]] float *exchange = partial + PARTIAL;

    source<T, FORM, SIZE> weight;
    int next_tile = steps > 0 ? 0 : mine.tiles, next_step = 0, next = turn;
    auto issue = [&](int slot) {
        if (next_tile < mine.tiles) {
            if (next_step == 0) weight.open(job, mine, next_tile, lane);
            if (next_tile == 0 || !job.keep)
                fetch_a<T, MT, FORM>(job, next, held + (job.keep ? next_step : slot) * a_bytes, lane);
            weight.fetch(job, next, ring + slot * BYTES_AT_ONCE, lane);
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
        float sums[TILE / 16][MT][4] = {};
        T scale = gemm::from_float<T>(1); /* a float only when it is there: nothing waits for it before */
        const int base = mine.first + tile * mine.height, mine_too = base + (int)threadIdx.x % TILE;
        if (FORM == BYTES && mine_too < job.n) scale = ((const T *)job.side)[mine_too];
        for (int step = 0; step < steps; step++) {
            gemm::copy_wait<DEPTH - 1>();
            __syncwarp(); /* lanes read what others copied */
            const uint32_t w = ring + slot * BYTES_AT_ONCE, a = held + (job.keep ? step : slot) * a_bytes;
            if constexpr (element_of(FORM) == 1)
                multiply_bytes<T, MT, FORM, SIZE>(sums, job, w, a, base & 1, lane);
            else
                multiply<T, MT, FORM, SIZE>(sums, job.m, w, a, lane);
            __syncwarp();
            issue(slot);
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        if (tile > 0) __syncthreads();
        lay_down<TILE, MT>(partial, sums, warp, lane);
        __syncthreads();
        pass_on<T, TILE, MT>(job, mine, tile, rank, partial, exchange,
                             FORM == BYTES ? widened<T>::UNIT * gemm::to_float(scale) : 1.0f);
    }
#ifdef GEMM_HAS_CLUSTERS
    if (job.split > 1) finish<T, TILE, MT>(job, mine, exchange, rank);
#endif
}

} // namespace gemm_stream
