/* How blocks of attention_decode that share the keys of a head merge. All but one hand over a partial result; the last
 * one to begin waits for these and merges, since the others are running already. Data carry the number of their launch,
 * so that no barrier, no second kernel and no clearing is needed: data and their flag arrive together. */
#pragma once

#include "kernels/attention/attention_device.cuh"

namespace attention {

enum { MAX_WARPS = 16, ROWS = 16 }; /* of a block, at most */

/* Which of the blocks that share keys this is, by when it began, and how many launches there were before. */
struct decode_turn {
    unsigned before, place;
};

/* By a block's first thread. The result is not used before it is needed, so that no thread waits for it. `turn`: of
 * these blocks, how many have begun, and which launch it is. */
__device__ __forceinline__ decode_turn take_turn(uint2 *turn, int splits) {
    decode_turn mine = {0, 0};
    if (splits == 1 || threadIdx.x > 0) return mine;
    mine.before = *(volatile unsigned *)&turn->y;
    mine.place = atomicInc(&turn->x, (unsigned)splits - 1); /* 0 again behind the last */
    return mine;
}
__device__ __forceinline__ bool merges_by(const decode_turn &turn, int splits) {
    return splits > 1 && turn.place == (unsigned)splits - 1;
}
/* No launch has number 0, the value of memory not written yet. */
__device__ __forceinline__ unsigned launch_of(const decode_turn &turn) {
    return turn.before == UINT32_MAX ? 1 : turn.before + 1;
}

/* A partial output: a sum of values, and its scale. */
struct part {
    float2 seen; /* the largest score, and the total */
    float sum;
};

/* N parts more. */
template <int N> __device__ __forceinline__ void combine(part &all, const part (&parts)[N]) {
    float most = all.seen.x;
#pragma unroll
    for (int k = 0; k < N; k++) most = fmaxf(most, parts[k].seen.x);
    const float base = base_of(most), change = power(all.seen.x - base);
    all.seen.x = most, all.seen.y *= change, all.sum *= change;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float weight = power(parts[k].seen.x - base);
        all.seen.y += parts[k].seen.y * weight, all.sum += parts[k].sum * weight;
    }
}
__device__ __forceinline__ part nothing() { return {make_float2(-INFINITY, 0), 0}; }

/* The same with a total of 1: a mean, and what it counts. */
__device__ __forceinline__ part whole(const part &p) {
    return {make_float2(p.seen.x + __log2f(p.seen.y), 1), p.sum * inverse(p.seen.y)};
}

/* The partial results of a block's warps: sums `pitch` floats from warp to warp. */
__device__ __forceinline__ part of_warps(const float2 *stats, const float *sums, int pitch, int warps) {
    constexpr int N = 8;
    part all = nothing();
    for (int first = 0; first < warps; first += N) {
        part found[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            found[k] = nothing();
            if (first + k < warps) found[k] = {stats[(first + k) * ROWS], sums[(first + k) * pitch]};
        }
        combine(all, found);
    }
    return all;
}

/* A number with the launch that it is of: 64 bits that are never seen half written. */
__device__ __forceinline__ void put(unsigned long long *to, float x, unsigned launch) {
    const unsigned long long word = (unsigned long long)launch << 32 | __float_as_uint(x);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
__device__ __forceinline__ bool get(const unsigned long long *from, unsigned launch, float &x) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    x = __uint_as_float((unsigned)word);
    return (unsigned)(word >> 32) == launch;
}

/* Where split 0 hands over an output, and what it counts; NULL: there is no such output. */
struct decode_words {
    const unsigned long long *sum, *most;
};

/* Merges what all blocks have of A outputs of this thread, `own` from this block, always in the same order. N parts of
 * each are on their way at a time, and looked at again until they are of this launch. `step`: words from split to
 * split. */
template <int A, int N>
__device__ __forceinline__ void of_blocks(int splits, int64_t step, unsigned launch, const decode_words (&from)[A],
                                          part (&own)[A]) {
    part all[A], found[A][N];
#pragma unroll
    for (int a = 0; a < A; a++) all[a] = nothing();
    for (int first = 0; first < splits; first += N) {
        bool there;
        do {
            there = true;
#pragma unroll
            for (int a = 0; a < A; a++)
#pragma unroll
                for (int k = 0; k < N; k++) {
                    const int split = first + k;
                    const bool mine = split == (int)blockIdx.x;
                    found[a][k] = mine ? own[a] : nothing();
                    found[a][k].seen.y = 1; /* and counts nothing where no key was seen */
                    if (mine || split >= splits || !from[a].sum) continue;
                    there = get(from[a].sum + split * step, launch, found[a][k].sum) && there;
                    there = get(from[a].most + split * step, launch, found[a][k].seen.x) && there;
                }
        } while (!there);
#pragma unroll
        for (int a = 0; a < A; a++) combine(all[a], found[a]);
    }
#pragma unroll
    for (int a = 0; a < A; a++) own[a] = all[a];
}

} // namespace attention
