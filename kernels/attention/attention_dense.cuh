/* One query of its own keys, all of which it sees, in rows that lie side by side: what decoding is as long as no head
 * shares its keys. A launch takes ten microseconds. Masks, lengths, windows and rows that end within a load would add
 * one or two: dependent parameter loads and branches before the first load. Here a warp's loads are one piece of
 * memory, addressed from seven words. */
#pragma once

#include "kernels/attention/attention_vector.cuh"

namespace attention {

/* What comes first is what the first loads wait for. */
struct dense_job {
    const void *k, *v;
    int64_t k_step[2], v_step[2]; /* elements from sequence to sequence, and from head to head */
    int steps, splits;            /* of a warp; blocks that share keys */
    uint2 *turns;
    const void *q;
    int64_t q_step[2];
    float scale; /* of scores, for powers of 2 */
    unsigned long long *words;
    void *out;
    int64_t out_step[2];
};
__device__ __forceinline__ int64_t dense_at(const int64_t (&step)[2]) {
    return blockIdx.z * step[0] + blockIdx.y * step[1];
}

template <int U> __device__ __forceinline__ void fetch_dense(const uint4 *from, uint4 (&to)[U]) {
#pragma unroll
    for (int u = 0; u < U; u++) to[u] = load_once(from + u * 32);
}

/* One warp's share of the block's keys; every step of the block is `warps` times as many as a warp has at a time. */
template <typename T, int DIM, int U>
__device__ __forceinline__ void walk_dense(const dense_job &job, vector_row &r, decode_turn &mine) {
    const int warps = blockDim.x >> 5, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, hop = warps * U * 32;
    const int64_t from = ((int64_t)blockIdx.x * job.steps * warps + warp) * (U * 32) + lane; /* pieces of 16 bytes */
    const uint4 *k = (const uint4 *)((const T *)job.k + dense_at(job.k_step)) + from;
    const uint4 *v = (const uint4 *)((const T *)job.v + dense_at(job.v_step)) + from;
    uint4 keys[U], values[U];
    fetch_dense<U>(k, keys);
    fetch_dense<U>(v, values);
    mine = take_turn(job.turns + (int64_t)blockIdx.z * gridDim.y + blockIdx.y, job.splits);
    const uint4 *const q = (const uint4 *)((const T *)job.q + dense_at(job.q_step)) + lane % lanes_of<DIM>;
    spread_out<T>(*q, r.q);
#pragma unroll
    for (int e = 0; e < 8; e++) r.q[e] *= job.scale, r.o[e] = 0;
    r.seen.most = -INFINITY, r.seen.total = 0;
    for (int left = job.steps; left > 0; left--) {
        const float score = multiply<T, DIM, U>(r, keys);
        k += hop, v += hop;
        if (left > 1) fetch_dense<U>(k, keys);
        add<T, DIM, U>(r, weigh_score<DIM, U>(r, score), values);
        if (left > 1) fetch_dense<U>(v, values);
    }
}

/* The block's partial result goes to the output, or to the merging block. */
template <typename T, int DIM>
__device__ __forceinline__ void hand_over_dense(const dense_job &job, const decode_turn &turn, int d, part found) {
    const int64_t unit = (int64_t)blockIdx.z * gridDim.y + blockIdx.y;
    unsigned long long *const words = job.words + unit * job.splits * (DIM + 1);
    part all[1] = {found};
    if (job.splits > 1) {
        all[0] = whole(found);
        if (!merges_by(turn, job.splits)) {
            put(words + blockIdx.x * (DIM + 1) + d, all[0].sum, launch_of(turn));
            if (d == 0) put(words + blockIdx.x * (DIM + 1) + DIM, all[0].seen.x, launch_of(turn));
            return;
        }
        const decode_words from[1] = {{words + d, words + DIM}};
        of_blocks<1, 8>(job.splits, DIM + 1, launch_of(turn), from, all);
        if (d == 0) job.turns[unit].y = launch_of(turn); /* the data handed over proves that all have read it */
    }
    T *const out = (T *)job.out + dense_at(job.out_step);
    out[d] = gemm::from_float<T>(all[0].sum * inverse(all[0].seen.y));
}

template <typename T, int DIM, int U>
__global__ void __launch_bounds__(MAX_WARPS * 32) dense_kernel(const dense_job job) {
    extern __shared__ __align__(16) char shared[];
    __shared__ float2 stats[MAX_WARPS][ROWS];
    __shared__ decode_turn turn;
    float *const sums = (float *)shared;
    vector_row rows[1];
    decode_turn mine;
    walk_dense<T, DIM, U>(job, rows[0], mine);
    leave_vectors<DIM, 1, U>(sums + (threadIdx.x >> 5) * DIM, stats[threadIdx.x >> 5], rows);
    if (threadIdx.x == 0) turn = mine;
    __syncthreads();
    for (int d = threadIdx.x; d < DIM; d += blockDim.x)
        hand_over_dense<T, DIM>(job, turn, d, of_warps(&stats[0][0], sums + d, DIM, blockDim.x >> 5));
}

} // namespace attention
