/* How a warp of attention_decode walks over its keys: copies that pass by the registers, products, and sums that follow
 * the largest score so far. A warp takes 16 keys at a time; every lane reads from shared memory what it copied there
 * itself, so that warps need no barriers until they merge. The order of a row's elements within a product is free, and
 * chosen so that every piece of 16 bytes is a whole operand. */
#pragma once

#include "kernels/attention/attention_exchange.cuh"

namespace attention {

enum { KEYS = 16 };

/* What comes first is what the first loads wait for. */
struct decode_job {
    attention_tensors t;
    int low, high;           /* the keys that any query sees where all sequences are whole */
    int each, more;          /* steps of a block, and how many blocks have one more; of those keys */
    int group, queries;      /* of s: divisions of 64 bits would take as long as the copies */
    int rows, tiles, splits; /* rows of a block, blocks for all rows that share keys, and for their keys */
    int dim, v_dim;          /* of s, and the strides of keys and values, beside what else comes first */
    int64_t k[3], v[3];
    attention_shape s;
    unsigned long long *words; /* of each block, for each of its rows: v_dim means, and what they count */
    uint2 *turns;              /* for the blocks of the same rows: how many have begun, and which launch it is */
};

__device__ __forceinline__ uint2 *turn_of(const decode_job &job) {
    return job.turns + (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
}

/* One of the 16 rows, as a lane sees it. */
struct decode_row {
    int first, end; /* the keys that it sees; none where there is no such row */
    const void *mask;
    float most, total;
};

/* Where a block works. */
struct decode_place {
    int b, kv;
    int row, rows;   /* its first row of all that share these keys, and how many there are */
    int begin, stop; /* keys */
};

__device__ __forceinline__ int head_of(const decode_job &job, const decode_place &at, int row) {
    return at.kv * job.group + (job.queries == 1 ? at.row + row : (at.row + row) / job.queries);
}
__device__ __forceinline__ int query_of(const decode_job &job, const decode_place &at, int row) {
    return job.queries == 1 ? 0 : (at.row + row) % job.queries;
}

/* This block's rows, and its share of the keys that any query sees, in whole steps. Divisions are left out where they
 * can be: nothing is loaded before them. */
__device__ __forceinline__ decode_place place_of(const decode_job &job) {
    const int unit = blockIdx.y, split = blockIdx.x, tile = job.tiles == 1 ? 0 : unit % job.tiles;
    const int left = job.group * job.queries - tile * job.rows;
    int low = job.low, high = job.high, each = job.each, more = job.more;
    decode_place at;
    at.b = blockIdx.z, at.kv = job.tiles == 1 ? unit : unit / job.tiles;
    at.row = tile * job.rows, at.rows = left < job.rows ? left : job.rows;
    if (job.t.lengths) {
        high = min(high, (int)sequence_end(job.s, job.t.lengths, at.b));
        const int steps = high > low ? (high - low + KEYS - 1) / KEYS : 0;
        each = steps / job.splits, more = steps % job.splits;
    }
    at.begin = low + (split * each + min(split, more)) * KEYS;
    at.stop = min(at.begin + (each + (split < more)) * KEYS, high);
    return at;
}

/* The warp's ring of copies: in each step 16 keys, then their values, in pieces of 16 bytes, one for each lane. Lane
 * 4 g + t has elements 32 j + 8 t of keys g and g + 8, and elements 64 h + 8 g of the values 2 t, 2 t + 1 and 8 more.
 */
template <typename T, int DIM> struct ring {
    static constexpr int pieces = DIM / 16, bytes = 2 * pieces * 512; /* of keys, and as many of values */
    const T *k, *v;                                                   /* of the first step, at this lane's elements */
    int64_t step_k, step_v;                                           /* from row to row */
    int keys;                                                         /* of the block */
    int dim, v_dim, lane;
    uint32_t at; /* this lane's place in shared memory */

    __device__ __forceinline__ void load(int slot, int step) const {
        const int g = lane >> 2, t = lane & 3;
        const int from = step * KEYS, left = keys - from;
        const uint32_t to = at + slot * bytes;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int j = 0; j < DIM / 32; j++) {
                const bool valid = n * 8 + g < left && 32 * j + 8 * t < dim;
                const T *source = valid ? k + (from + n * 8) * step_k + 32 * j : k;
                gemm::copy16(to + (n * (DIM / 32) + j) * 512, source, valid);
            }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int h = 0; h < DIM / 64; h++) {
                const int row = (i & 1) + (i >> 1) * 8;
                const bool valid = 2 * t + row < left && 64 * h + 8 * g < v_dim;
                const T *source = valid ? v + (from + row) * step_v + 64 * h : v;
                gemm::copy16(to + (pieces + i * (DIM / 64) + h) * 512, source, valid);
            }
    }
};

template <typename T, int DIM>
__device__ __forceinline__ ring<T, DIM> ring_of(const decode_job &job, const decode_place &at, uint32_t shared) {
    const attention_shape &s = job.s;
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    ring<T, DIM> r;
    const T *k = (const T *)job.t.k + at.b * s.k[0] + at.kv * s.k[1];
    const T *v = (const T *)job.t.v + at.b * s.v[0] + at.kv * s.v[1];
    r.step_k = s.k[2], r.step_v = s.v[2], r.keys = at.stop - at.begin;
    r.k = k + (at.begin + g) * r.step_k + 8 * t, r.v = v + (at.begin + 2 * t) * r.step_v + 8 * g;
    if (at.begin + g >= at.stop || 8 * t >= s.dim) r.k = k;
    if (at.begin + 2 * t >= at.stop || 8 * g >= s.v_dim) r.v = v;
    r.dim = (int)s.dim, r.v_dim = (int)s.v_dim, r.lane = lane;
    r.at = shared + lane * 16;
    return r;
}

/* Elements 32 j + 8 t … of rows g and g + 8 of Q; zeros where there is no such row or element. */
template <typename T, int DIM>
__device__ __forceinline__ void load_queries(const decode_job &job, const decode_place &at, uint4 (&q)[2][DIM / 32]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = i * 8 + g;
        const T *from = (const T *)job.t.q + at.b * job.s.q[0] + head_of(job, at, row) * job.s.q[1] +
                        query_of(job, at, row) * job.s.q[2] + 8 * t;
#pragma unroll
        for (int j = 0; j < DIM / 32; j++) {
            const bool valid = row < at.rows && 32 * j + 8 * t < job.s.dim;
            q[i][j] = valid ? *(const uint4 *)(from + 32 * j) : make_uint4(0, 0, 0, 0);
        }
    }
}

template <typename T>
__device__ __forceinline__ decode_row row_of(const decode_job &job, const decode_place &at, int row) {
    const attention_shape &s = job.s;
    const int head = head_of(job, at, row), query = query_of(job, at, row);
    decode_row r = {0, 0, nullptr, -INFINITY, 0};
    if (row >= at.rows) return r;
    r.first = (int)first_key(s, query);
    r.end = (int)end_key(s, query, sequence_end(s, job.t.lengths, at.b));
    if (job.t.mask) r.mask = (const T *)job.t.mask + at.b * s.mask[0] + head * s.mask[1] + query * s.mask[2];
    return r;
}

/* Scores of row g (c[n][0], c[n][1]) and row g + 8 with keys 8 n + 2 t and the next. */
template <typename T, int DIM>
__device__ __forceinline__ void multiply_keys(uint32_t from, const uint4 (&q)[2][DIM / 32], float (&c)[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int j = 0; j < DIM / 32; j++) {
            const uint4 k = gemm::load_shared16(from + (n * (DIM / 32) + j) * 512);
            gemm::mma16816<T>(c[n], q[0][j].x, q[1][j].x, q[0][j].y, q[1][j].y, k.x, k.y);
            gemm::mma16816<T>(c[n], q[0][j].z, q[1][j].z, q[0][j].w, q[1][j].w, k.z, k.w);
        }
}

/* Scores become exponentials; what the sums so far have to be multiplied with comes back. */
template <typename T>
__device__ __forceinline__ float soften(const attention_shape &s, decode_row &r, int key, float *x0, float *x1) {
    float *const x[4] = {x0, x0 + 1, x1, x1 + 1};
    float now = r.most;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const int at = key + (e & 1) + (e >> 1) * 8;
        const bool seen = at >= r.first && at < r.end;
        float score = capped(s, *x[e]);
        if (r.mask && seen) score += gemm::to_float(((const T *)r.mask)[at * s.mask[3]]);
        *x[e] = seen ? score * log2e : -INFINITY;
        now = fmaxf(now, *x[e]);
    }
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 1));
    now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, 2));
    const float base = base_of(now), change = power(r.most - base);
    r.most = now, r.total *= change;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        *x[e] = power(*x[e] - base);
        r.total += *x[e];
    }
    return change;
}

__device__ __forceinline__ uint32_t word(const uint4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* o[8 h + e] gets elements 64 h + 16 t + e (of [0] and [2]) and 8 more (of [1] and [3]) of rows g and g + 8. */
template <typename T, int DIM>
__device__ __forceinline__ void add_values(uint32_t from, const float (&p)[2][4], float (&o)[DIM / 8][4]) {
    const uint32_t a0 = pack<T>(p[0][0], p[0][1]), a1 = pack<T>(p[0][2], p[0][3]);
    const uint32_t a2 = pack<T>(p[1][0], p[1][1]), a3 = pack<T>(p[1][2], p[1][3]);
#pragma unroll
    for (int h = 0; h < DIM / 64; h++) {
        uint4 v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = gemm::load_shared16(from + (i * (DIM / 64) + h) * 512);
#pragma unroll
        for (int e = 0; e < 8; e++) {
            const int pick = e & 1 ? 0x7632 : 0x5410; /* the upper or the lower halves of both */
            const uint32_t b0 = __byte_perm(word(v[0], e / 2), word(v[1], e / 2), pick);
            const uint32_t b1 = __byte_perm(word(v[2], e / 2), word(v[3], e / 2), pick);
            gemm::mma16816<T>(o[h * 8 + e], a0, a1, a2, a3, b0, b1);
        }
    }
}

/* One warp's steps: the warp's share of the block's keys. Everything that can wait is computed after the first copies
 * are on their way. */
template <typename T, int DIM, int DEPTH>
__device__ __forceinline__ void walk(const decode_job &job, const decode_place &at, const ring<T, DIM> &keys,
                                     decode_row (&rows)[2], float (&o)[DIM / 8][4], decode_turn &mine) {
    const int warps = blockDim.x >> 5, warp = threadIdx.x >> 5, t = threadIdx.x & 3;
    const int steps = at.stop > at.begin ? (at.stop - at.begin + KEYS - 1) / KEYS : 0;
    uint4 q[2][DIM / 32];
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        if (warp + d * warps < steps) keys.load(d, warp + d * warps);
        gemm::copy_commit();
    }
    mine = take_turn(turn_of(job), job.splits);
    load_queries<T, DIM>(job, at, q);
    rows[0] = row_of<T>(job, at, (threadIdx.x & 31) >> 2), rows[1] = row_of<T>(job, at, ((threadIdx.x & 31) >> 2) + 8);
    int slot = 0;
    for (int step = warp; step < steps; step += warps) {
        const uint32_t from = keys.at + slot * ring<T, DIM>::bytes;
        const int key = at.begin + step * KEYS + 2 * t;
        float c[2][4] = {};
        gemm::copy_wait<DEPTH - 1>();
        multiply_keys<T, DIM>(from, q, c);
        const float low = soften<T>(job.s, rows[0], key, &c[0][0], &c[1][0]);
        const float high = soften<T>(job.s, rows[1], key, &c[0][2], &c[1][2]);
#pragma unroll
        for (int n = 0; n < DIM / 8; n++) o[n][0] *= low, o[n][1] *= low, o[n][2] *= high, o[n][3] *= high;
        add_values<T, DIM>(from + ring<T, DIM>::pieces * 512, c, o);
        if (step + DEPTH * warps < steps) keys.load(slot, step + DEPTH * warps);
        gemm::copy_commit();
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
    }
    gemm::copy_wait<0>();
}

/* The warp's sums into shared memory as [16][DIM], the largest score and the total of each row into stats. */
template <int DIM>
__device__ __forceinline__ void leave(float *sums, float2 *stats, const decode_row (&rows)[2],
                                      const float (&o)[DIM / 8][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float *const line = sums + (i * 8 + g) * DIM + 16 * t;
        float total = rows[i].total;
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        if (t == 0) stats[i * 8 + g] = make_float2(rows[i].most, total);
#pragma unroll
        for (int h = 0; h < DIM / 64; h++)
#pragma unroll
            for (int n = 0; n < 16; n += 4) {
                const int e = n & 7, side = i * 2 + (n >> 3);
                *(float4 *)(line + 64 * h + n) = make_float4(o[h * 8 + e][side], o[h * 8 + e + 1][side],
                                                             o[h * 8 + e + 2][side], o[h * 8 + e + 3][side]);
            }
    }
}

} // namespace attention
