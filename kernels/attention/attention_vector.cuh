/* How a warp of attention_decode walks over its keys without tensor cores, where so few rows share them that those
 * would multiply mostly zeros. Keys and values come straight into registers, 16 bytes a lane: DIM / 8 lanes have a key.
 * While the values of some keys are added up, the next keys are on their way already, and while those are multiplied,
 * their values; more warps, and not more of each, keep the memory busy. */
#pragma once

#include "kernels/attention/attention_decode.cuh"

namespace attention {

enum { VECTOR_ROWS = 4 }; /* more rows go to tensor cores */

template <int DIM> constexpr int lanes_of = DIM / 8;       /* that have a key */
template <int DIM> constexpr int keys_of = 32 / (DIM / 8); /* that a warp loads at once */

template <typename T> __device__ __forceinline__ void spread_out(const uint4 &from, float (&x)[8]) {
    const T *values = (const T *)&from;
#pragma unroll
    for (int k = 0; k < 8; k++) x[k] = gemm::to_float(values[k]);
}

/* Where a lane's keys (or values) lie. */
template <typename T> struct vector_source {
    const T *data;     /* the lane's elements of key 0 */
    int64_t step;      /* from key to key */
    bool there, whole; /* the lane has elements; all lanes have */
};

/* It is not read again: it stays out of L1. */
__device__ __forceinline__ uint4 load_once(const void *from) {
    uint4 x;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from));
    return x;
}

/* U loads: this lane's elements of keys (or values) `from`, from + keys_of, …, zeros behind the last one. `all`: the
 * warp's are all there. */
template <typename T, int DIM, int U>
__device__ __forceinline__ void fetch(const vector_source<T> &s, int from, int stop, bool all, uint4 (&to)[U]) {
    const T *const first = s.data + from * s.step;
    const int64_t hop = keys_of<DIM> * s.step;
    if (all && s.whole) {
#pragma unroll
        for (int u = 0; u < U; u++) to[u] = load_once(first + u * hop);
        return;
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        to[u] = make_uint4(0, 0, 0, 0);
        if (from + u * keys_of<DIM> < stop && s.there) to[u] = load_once(first + u * hop);
    }
}

/* Adds up each of U values over the lanes of a key, and leaves value `share_of` to each lane: halves are exchanged, so
 * that it takes about as many shuffles as values. */
template <int DIM, int U> __device__ __forceinline__ float fold(float (&s)[U]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int far = lanes_of<DIM> / 2, width = U; far >= 1; far /= 2, width = width > 1 ? width / 2 : 1) {
        const bool up = lane & far;
        if (width == 1) s[0] += __shfl_xor_sync(0xffffffffu, s[0], far);
#pragma unroll
        for (int k = 0; k < width / 2; k++) {
            const float keep = up ? s[k + width / 2] : s[k], give = up ? s[k] : s[k + width / 2];
            s[k] = keep + __shfl_xor_sync(0xffffffffu, give, far);
        }
    }
    return s[0];
}
template <int DIM, int U> __device__ __forceinline__ int share_of() {
    return ((int)threadIdx.x & (lanes_of<DIM> - 1)) / (lanes_of<DIM> / U);
}

/* What a lane has of one row: its elements of the query and of the sum, and the row's largest score. `total` counts the
 * keys that are this lane's share. */
struct vector_row {
    decode_row seen;
    float q[8], o[8];
};

template <typename T, int DIM>
__device__ __forceinline__ void open_row(const decode_job &job, const decode_place &at, int row, vector_row &r) {
    const int column = ((int)threadIdx.x & (lanes_of<DIM> - 1)) * 8;
    uint4 q = make_uint4(0, 0, 0, 0);
    r.seen = row_of<T>(job, at, row);
    r.seen.end = min(r.seen.end, at.stop); /* the last load may reach into the keys of the next block */
    if (row < at.rows && column < job.s.dim)
        q = *(const uint4 *)((const T *)job.t.q + at.b * job.s.q[0] + head_of(job, at, row) * job.s.q[1] +
                             query_of(job, at, row) * job.s.q[2] + column);
    spread_out<T>(q, r.q);
#pragma unroll
    for (int k = 0; k < 8; k++) r.o[k] = 0;
}

/* Dot products of the lane's share of U keys with the query; 0 where there is no such key. */
template <typename T, int DIM, int U>
__device__ __forceinline__ float multiply(const vector_row &r, const uint4 (&k)[U]) {
    float dots[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        float x[8];
        spread_out<T>(k[u], x);
        float even = r.q[0] * x[0], odd = r.q[1] * x[1]; /* two sums: neither waits for the other */
#pragma unroll
        for (int e = 2; e < 8; e += 2) even += r.q[e] * x[e], odd += r.q[e + 1] * x[e + 1];
        dots[u] = even + odd;
    }
    return fold<DIM, U>(dots);
}

/* The score of the lane's share of the keys, for powers of 2, becomes what its values count; the sum so far is brought
 * to the same base. */
template <int DIM, int U> __device__ __forceinline__ float weigh_score(vector_row &r, float score) {
    float now = fmaxf(r.seen.most, score);
#pragma unroll
    for (int far = 16; far >= lanes_of<DIM> / U; far /= 2) now = fmaxf(now, __shfl_xor_sync(0xffffffffu, now, far));
    const float base = base_of(now), change = power(r.seen.most - base), weight = power(score - base);
    r.seen.most = now;
    r.seen.total = r.seen.total * change + weight;
#pragma unroll
    for (int e = 0; e < 8; e++) r.o[e] *= change;
    return weight;
}

/* The same of a product with the query, where the key may not be seen. */
template <typename T, int DIM, int U>
__device__ __forceinline__ float weigh(const attention_shape &s, vector_row &r, float dot, int first_of_load) {
    float score = capped(s, dot);
    const int key = first_of_load + share_of<DIM, U>() * keys_of<DIM>;
    const bool seen = key >= r.seen.first && key < r.seen.end;
    if (r.seen.mask && seen) score += gemm::to_float(((const T *)r.seen.mask)[key * s.mask[3]]);
    return weigh_score<DIM, U>(r, seen ? score * log2e : -INFINITY);
}

template <typename T, int DIM, int U>
__device__ __forceinline__ void add(vector_row &r, float weight, const uint4 (&v)[U]) {
    const int group = (int)threadIdx.x & 31 & ~(lanes_of<DIM> - 1);
#pragma unroll
    for (int u = 0; u < U; u++) {
        const float w = __shfl_sync(0xffffffffu, weight, group + u * (lanes_of<DIM> / U));
        float x[8];
        spread_out<T>(v[u], x);
#pragma unroll
        for (int e = 0; e < 8; e++) r.o[e] += w * x[e];
    }
}

/* One warp's share of the block's keys, for R rows. */
template <typename T, int DIM, int R, int U>
__device__ __forceinline__ void walk_vectors(const decode_job &job, const decode_place &at, vector_row (&rows)[R],
                                             decode_turn &mine) {
    constexpr int each = U * keys_of<DIM>; /* keys at a time */
    const attention_shape &s = job.s;
    const int warps = blockDim.x >> 5, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int column = (lane & (lanes_of<DIM> - 1)) * 8, step = each * warps;
    const vector_source<T> k = {(const T *)job.t.k + at.b * job.k[0] + at.kv * job.k[1] + column, job.k[2],
                                column < job.dim, job.dim == DIM};
    const vector_source<T> v = {(const T *)job.t.v + at.b * job.v[0] + at.kv * job.v[1] + column, job.v[2],
                                column < job.v_dim, job.v_dim == DIM};
    uint4 keys[U], values[U];
    int begin = at.begin + warp * each, from = begin + lane / lanes_of<DIM>;
    fetch<T, DIM, U>(k, from, at.stop, begin + each <= at.stop, keys);
    fetch<T, DIM, U>(v, from, at.stop, begin + each <= at.stop, values);
    mine = take_turn(turn_of(job), job.splits);
#pragma unroll
    for (int r = 0; r < R; r++) open_row<T, DIM>(job, at, r, rows[r]);
    for (; begin < at.stop; begin += step, from += step) {
        const bool more = begin + step < at.stop, all = begin + step + each <= at.stop;
        float weights[R];
#pragma unroll
        for (int r = 0; r < R; r++) weights[r] = multiply<T, DIM, U>(rows[r], keys);
        if (more) fetch<T, DIM, U>(k, from + step, at.stop, all, keys);
#pragma unroll
        for (int r = 0; r < R; r++) weights[r] = weigh<T, DIM, U>(s, rows[r], weights[r], from);
#pragma unroll
        for (int r = 0; r < R; r++) add<T, DIM, U>(rows[r], weights[r], values);
        if (more) fetch<T, DIM, U>(v, from + step, at.stop, all, values);
    }
}

/* The warp's sums into shared memory as [R][DIM], the largest score and the total of each row into stats. */
template <int DIM, int R, int U>
__device__ __forceinline__ void leave_vectors(float *sums, float2 *stats, vector_row (&rows)[R]) {
    const int lane = threadIdx.x & 31, mine = lane & (lanes_of<DIM> - 1);
#pragma unroll
    for (int r = 0; r < R; r++) {
        vector_row &row = rows[r];
        float total = lane % (lanes_of<DIM> / U) == 0 ? row.seen.total : 0; /* the others have the same */
#pragma unroll
        for (int far = 16; far >= 1; far /= 2) total += __shfl_xor_sync(0xffffffffu, total, far);
#pragma unroll
        for (int far = 16; far >= lanes_of<DIM>; far /= 2)
#pragma unroll
            for (int e = 0; e < 8; e++) row.o[e] += __shfl_xor_sync(0xffffffffu, row.o[e], far);
        if (lane == 0) stats[r] = make_float2(row.seen.most, total);
        if (lane != mine) continue;
        float4 *const to = (float4 *)(sums + r * DIM + mine * 8);
        to[0] = make_float4(row.o[0], row.o[1], row.o[2], row.o[3]);
        to[1] = make_float4(row.o[4], row.o[5], row.o[6], row.o[7]);
    }
}

} // namespace attention
