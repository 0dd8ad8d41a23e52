/* The reference of boxes that are kept, by definition: the best one that overlaps none of those before. A block has a
 * list, and its rows of `want` hold what it keeps until a thread brings all together. Roundings are those that
 * scout/op/suppress.h has. */
#include "kernels/reference/whole_suppress.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

struct side {
    float low, high;
};

/* Sides along x (0) and y (1). */
__device__ side side_of(const float *box, int along, int centred) {
    if (centred) {
        const float half = box[2 + along] * 0.5f;
        return {__fsub_rn(box[along], half), __fadd_rn(box[along], half)};
    }
    const float a = box[1 - along], b = box[3 - along];
    return {fminf(a, b), fmaxf(a, b)};
}

__device__ bool overlaps(const whole_suppress_problem &p, const float *a, const float *b) {
    const side x = side_of(a, 0, p.centred), y = side_of(a, 1, p.centred);
    const side u = side_of(b, 0, p.centred), v = side_of(b, 1, p.centred);
    const float own = __fmul_rn(__fsub_rn(x.high, x.low), __fsub_rn(y.high, y.low));
    const float its = __fmul_rn(__fsub_rn(u.high, u.low), __fsub_rn(v.high, v.low));
    const float w = __fsub_rn(fminf(x.high, u.high), fmaxf(x.low, u.low));
    const float h = __fsub_rn(fminf(y.high, v.high), fmaxf(y.low, v.low));
    if (!(w > 0) || !(h > 0) || !(own > 0) || !(its > 0)) return false;
    const float shared = __fmul_rn(w, h), covered = __fsub_rn(__fadd_rn(own, its), shared);
    return covered > 0 && __fdiv_rn(shared, covered) > p.overlap;
}

/* The better of two boxes by their scores, of equal ones the first; -1: none. */
__device__ int64_t better(const float *scores, int64_t a, int64_t b) {
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return scores[b] > scores[a] || (scores[b] == scores[a] && b < a) ? b : a;
}

/* Of the block's threads, known to all of them. */
__device__ int64_t best_of_block(const float *scores, int64_t mine) {
    __shared__ int64_t best[whole_each_threads];
    best[threadIdx.x] = mine;
    __syncthreads();
    for (int half = whole_each_threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) best[threadIdx.x] = better(scores, best[threadIdx.x], best[threadIdx.x + half]);
        __syncthreads();
    }
    mine = best[0];
    __syncthreads();
    return mine;
}

/* Each thread has boxes of its own, whose flags no other thread reads or writes. */
__global__ void __launch_bounds__(whole_each_threads) choose(const whole_suppress_problem p, double *want) {
    const int64_t list = blockIdx.x;
    const float *const boxes = p.boxes + list / p.classes * p.count * 4, *const scores = p.scores + list * p.count;
    unsigned char *const gone = p.gone + list * p.count;
    double *const rows = want + 3 * list * p.most;
    int64_t kept = 0;
    for (int64_t k = threadIdx.x; k < p.count; k += whole_each_threads) gone[k] = !(scores[k] > p.threshold);
    for (; kept < p.most; kept++) {
        int64_t mine = -1;
        for (int64_t k = threadIdx.x; k < p.count; k += whole_each_threads)
            if (!gone[k]) mine = better(scores, mine, k);
        const int64_t best = best_of_block(scores, mine);
        if (best < 0) break;
        if (threadIdx.x == 0)
            rows[3 * kept] = (double)(list / p.classes), rows[3 * kept + 1] = (double)(list % p.classes),
                      rows[3 * kept + 2] = (double)best;
        for (int64_t k = threadIdx.x; k < p.count; k += whole_each_threads)
            if (!gone[k] && (k == best || overlaps(p, boxes + 4 * k, boxes + 4 * best))) gone[k] = 1;
    }
    if (threadIdx.x == 0 && kept < p.most) rows[3 * kept] = -1; /* the list ends here */
}

__global__ void gather(const whole_suppress_problem p, double *want, float *spread) {
    const int64_t lists = p.images * p.classes;
    double *to = want, *const end = want + 3 * lists * p.most;
    for (int64_t list = 0; list < lists; list++) {
        const double *from = want + 3 * list * p.most;
        for (int64_t k = 0; k < p.most && from[0] >= 0; k++, to += 3, from += 3)
            to[0] = from[0], to[1] = from[1], to[2] = from[2];
    }
    for (; to < end; to++) *to = 0;
    for (int64_t k = 0; k < 3 * lists * p.most; k++) spread[k] = 0;
}

} // namespace

cudaError_t whole_suppress(const whole_suppress_problem *p, double *want, float *spread, cudaStream_t stream) {
    choose<<<(unsigned)(p->images * p->classes), whole_each_threads, 0, stream>>>(*p, want);
    gather<<<1, 1, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
