/* Boxes of which those that overlap a better one are given up: a block for each image's class looks for its best box,
 * keeps it, and gives up what it overlaps, until nothing is left. Scores of what is given up or kept become the least
 * there is, in the workspace. A second kernel puts what the blocks kept one behind the other. */
#include "kernels/pass/suppress_kernels.h"

#include "kernels/pass/pass.cuh"

#include <math_constants.h>

namespace {

constexpr int threads = 512, warps = threads / 32;

struct job {
    suppress_pass s;
    const float *boxes, *scores;
    long long *y;
    float *left; /* scores of what is left, [lists][boxes] */
    int *counts, *kept;
};

struct box {
    float x0, y0, x1, y1, area;
};

/* Intrinsics keep the compiler from making one rounding of two. */
__device__ box box_of(const float *at, int centred) {
    box b;
    if (centred) {
        const float w = __fdiv_rn(at[2], 2.0f), h = __fdiv_rn(at[3], 2.0f);
        b.x0 = __fsub_rn(at[0], w), b.x1 = __fadd_rn(at[0], w);
        b.y0 = __fsub_rn(at[1], h), b.y1 = __fadd_rn(at[1], h);
    } else {
        b.x0 = at[1] < at[3] ? at[1] : at[3], b.x1 = at[1] < at[3] ? at[3] : at[1];
        b.y0 = at[0] < at[2] ? at[0] : at[2], b.y1 = at[0] < at[2] ? at[2] : at[0];
    }
    b.area = __fmul_rn(__fsub_rn(b.x1, b.x0), __fsub_rn(b.y1, b.y0));
    return b;
}

__device__ bool overlaps(const box &a, const box &b, float most) {
    const float x0 = a.x0 > b.x0 ? a.x0 : b.x0, x1 = a.x1 < b.x1 ? a.x1 : b.x1;
    const float y0 = a.y0 > b.y0 ? a.y0 : b.y0, y1 = a.y1 < b.y1 ? a.y1 : b.y1;
    const float w = __fsub_rn(x1, x0), h = __fsub_rn(y1, y0), shared = __fmul_rn(w, h);
    const float covered = __fsub_rn(__fadd_rn(a.area, b.area), shared);
    return w > 0 && h > 0 && a.area > 0 && b.area > 0 && covered > 0 && __fdiv_rn(shared, covered) > most;
}

/* The better of two: the higher score, and of equal ones the first. */
struct best {
    float score;
    int at; /* -1: none */
};

__device__ __forceinline__ best better(best a, best b) {
    if (b.at < 0) return a;
    if (a.at < 0 || b.score > a.score || (b.score == a.score && b.at < a.at)) return b;
    return a;
}

__device__ best best_of_warp(best mine) {
    for (int step = 16; step > 0; step /= 2)
        mine = better(mine, {__shfl_xor_sync(0xffffffffu, mine.score, step), __shfl_xor_sync(0xffffffffu, mine.at, step)});
    return mine;
}

/* Of the block, known to all its threads; `found`: one for each warp. */
__device__ best best_of_block(best mine, best *found) {
    mine = best_of_warp(mine);
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = mine;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    const best none = {0, -1};
    const best all = best_of_warp(lane < warps ? found[lane] : none);
    __syncthreads();
    return all;
}

/* Each thread has boxes of its own, whose scores no other thread reads or writes: it gives up what the last chosen one
 * overlaps while it looks for the next. */
__global__ void __launch_bounds__(threads) choose(const job p) {
    __shared__ best found[warps];
    const int64_t list = blockIdx.x, image = list / p.s.classes;
    const float *const boxes = p.boxes + image * p.s.boxes * 4, *const scores = p.scores + list * p.s.boxes;
    float *const left = p.left + list * p.s.boxes;
    const int count = (int)p.s.boxes;
    best next = {0, -1};
    for (int k = threadIdx.x; k < count; k += threads) {
        const float score = scores[k];
        const bool counts = score > p.s.threshold;
        left[k] = counts ? score : -CUDART_INF_F;
        if (counts) next = better(next, {score, k});
    }
    next = best_of_block(next, found);
    int64_t taken = 0;
    while (next.at >= 0) {
        const int chosen = next.at;
        if (threadIdx.x == 0) p.kept[list * p.s.most + taken] = chosen;
        if (++taken == p.s.most) break;
        const box its = box_of(boxes + 4 * (int64_t)chosen, p.s.centred);
        next = {0, -1};
        for (int k = threadIdx.x; k < count; k += threads) {
            const float score = left[k];
            if (score == -CUDART_INF_F) continue;
            if (k == chosen || overlaps(its, box_of(boxes + 4 * (int64_t)k, p.s.centred), p.s.overlap))
                left[k] = -CUDART_INF_F;
            else
                next = better(next, {score, k});
        }
        next = best_of_block(next, found);
    }
    if (threadIdx.x == 0) p.counts[list] = (int)taken;
}

/* Each block counts what lies before its list, and all that is kept, behind which zeros stand. */
__global__ void __launch_bounds__(threads) put(const job p) {
    __shared__ unsigned long long before, all;
    const int64_t list = blockIdx.x, lists = gridDim.x;
    if (threadIdx.x == 0) before = all = 0;
    __syncthreads();
    unsigned long long mine = 0, every = 0;
    for (int64_t k = threadIdx.x; k < lists; k += threads) {
        every += (unsigned long long)p.counts[k];
        if (k < list) mine += (unsigned long long)p.counts[k];
    }
    atomicAdd(&before, mine);
    atomicAdd(&all, every);
    __syncthreads();
    for (int k = threadIdx.x; k < p.counts[list]; k += threads) {
        long long *const row = p.y + 3 * ((int64_t)before + k);
        row[0] = list / p.s.classes, row[1] = list % p.s.classes, row[2] = p.kept[list * p.s.most + k];
    }
    const int64_t end = 3 * lists * p.s.most;
    for (int64_t k = 3 * (int64_t)all + list * threads + threadIdx.x; k < end; k += lists * threads) p.y[k] = 0;
}

size_t left_bytes(const suppress_pass *s) {
    return (sizeof(float) * (size_t)(s->images * s->classes * s->boxes) + 15) / 16 * 16;
}

} // namespace

int suppress_pass_fits(const suppress_pass *s) {
    return s->images > 0 && s->classes > 0 && s->boxes > 0 && s->most > 0 && s->most <= s->boxes &&
           s->boxes <= INT32_MAX - threads && s->images <= INT32_MAX / s->classes;
}

size_t suppress_pass_workspace(const suppress_pass *s) {
    return left_bytes(s) + sizeof(int) * (size_t)(s->images * s->classes * (1 + s->most));
}

int suppress_pass_launch(const suppress_pass *s, const void *boxes, const void *scores, void *y, void *workspace,
                         void *stream) {
    if (!suppress_pass_fits(s)) return cudaErrorInvalidValue;
    const int64_t lists = s->images * s->classes;
    job j = {};
    j.s = *s, j.boxes = (const float *)boxes, j.scores = (const float *)scores, j.y = (long long *)y;
    j.left = (float *)workspace;
    j.counts = (int *)((char *)workspace + left_bytes(s));
    j.kept = j.counts + lists;
    choose<<<(unsigned)lists, threads, 0, (cudaStream_t)stream>>>(j);
    put<<<(unsigned)lists, threads, 0, (cudaStream_t)stream>>>(j);
    return cudaGetLastError();
}
