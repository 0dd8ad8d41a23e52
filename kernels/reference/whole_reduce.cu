/* Reductions: fp64 for floats, 64-bit integers that wrap around for integers. What an output is and what it may be off
 * by are those of the CPU's reference (scout/cpu/reference/cpu_reference_reduce.c). */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_integers.cuh"
#include "kernels/reference/whole_lanes.cuh"

namespace {

/* The same names for both sorts of numbers. */
__device__ double add(double a, double b) { return a + b; }
__device__ double mul(double a, double b) { return a * b; }
__device__ double size(double a) { return fabs(a); }
__device__ int64_t add(int64_t a, int64_t b) { return whole_add(a, b); }
__device__ int64_t mul(int64_t a, int64_t b) { return whole_mul(a, b); }
__device__ int64_t size(int64_t a) { return a < 0 ? whole_sub(0, a) : a; }
__device__ void load(const whole_reduce_problem &w, int64_t at, double *x) { *x = values_at(w.x, w.type, at); }
__device__ void load(const whole_reduce_problem &w, int64_t at, int64_t *x) { *x = whole_integer_at(w.x, w.type, at); }

/* All that any of the reductions needs of some elements of a row. */
template <typename number> struct sums {
    number sum, absolute, squares, product, least, most;
    double exponentials;
    int64_t least_at, most_at; /* in the row; the first of equal ones */
    int64_t count;
};

template <typename number> __device__ sums<number> nothing() { return {0, 0, 0, 1, 0, 0, 0, 0, 0, 0}; }

template <typename number> __device__ sums<number> of_one(number x, int64_t at) {
    return {x, size(x), mul(x, x), x, x, x, exp((double)x), at, at, 1};
}

/* Of equal ones the first, or the last. */
template <typename number> __device__ void take(sums<number> *to, const sums<number> &more, bool last) {
    if (more.count == 0) return;
    const bool first = to->count == 0;
    if (first || more.least < to->least || (more.least == to->least && (more.least_at > to->least_at) == last))
        to->least = more.least, to->least_at = more.least_at;
    if (first || more.most > to->most || (more.most == to->most && (more.most_at > to->most_at) == last))
        to->most = more.most, to->most_at = more.most_at;
    to->exponentials += more.exponentials;
    to->sum = add(to->sum, more.sum);
    to->absolute = add(to->absolute, more.absolute);
    to->squares = add(to->squares, more.squares);
    to->product = mul(to->product, more.product);
    to->count += more.count;
}

/* In the order of scout/op/reduce.h: sum, mean, max, min, prod, l1, l2, sumsquare, logsum, argmax, argmin, logsumexp. */
__device__ double pick(const whole_reduce_problem &w, const sums<double> &s) {
    const double all[REDUCE_COUNT] = {s.sum,
                                      s.sum / (double)s.count,
                                      s.most,
                                      s.least,
                                      s.product,
                                      s.absolute,
                                      sqrt(s.squares),
                                      s.squares,
                                      log(s.sum),
                                      (double)s.most_at,
                                      (double)s.least_at,
                                      log(s.exponentials)};
    const double largest = w.output == DTYPE_FP16   ? 0x1.ffep15
                           : w.output == DTYPE_BF16 ? 0x1.ffp127
                           : w.output == DTYPE_FP32 ? 0x1.ffffffp127
                                                    : __longlong_as_double(0x7ff0000000000000ll);
    const double want = all[w.id];
    return fabs(want) >= largest ? copysign(__longlong_as_double(0x7ff0000000000000ll), want) : want;
}

/* A root and a logarithm are of no integers. */
__device__ double pick(const whole_reduce_problem &w, const sums<int64_t> &s) {
    const int64_t all[REDUCE_COUNT] = {s.sum, s.sum / s.count, s.most, s.least,   s.product, s.absolute,
                                       0,     s.squares,       0,      s.most_at, s.least_at, 0};
    return whole_wrapped(w.output, all[w.id]);
}

/* A sum may cancel: its terms count. A mean of them likewise; a logarithm may be near 0. Below the smallest normal
 * number of its type an output is coarse; products go through it in another order in every implementation. */
__device__ double spread_of(const whole_reduce_problem &w, const sums<double> &s) {
    const double smallest = w.output == DTYPE_FP16 ? 0x1p-14 : w.id == REDUCE_prod ? 0x1p-100 : 0x1p-126;
    if (w.id == REDUCE_sum) return sqrt(s.squares) + smallest;
    if (w.id == REDUCE_mean) return sqrt(s.squares) / (double)s.count + smallest;
    return w.id == REDUCE_logsum || w.id == REDUCE_logsumexp ? 1 : smallest;
}
__device__ double spread_of(const whole_reduce_problem &, const sums<int64_t> &) { return 0; }

__device__ int64_t offset_of(const reduce_side &side, int64_t at) {
    int64_t offset = 0;
    for (int d = 0; d < side.rank; d++) {
        offset += at % side.dims[d] * side.strides[d];
        at /= side.dims[d];
    }
    return offset;
}

template <typename number> __global__ void reduce_rows(whole_reduce_problem w, int lanes, double *want, float *spread) {
    __shared__ sums<number> shared[whole_threads];
    const int64_t rows = w.p.kept.count, each = whole_threads / lanes;
    const int at = (int)threadIdx.x, group = at / lanes, lane = at % lanes;
    for (int64_t first = blockIdx.x * each; first < rows; first += gridDim.x * each) {
        const int64_t row = first + group, count = row < rows ? w.p.reduced.count : 0;
        const int64_t base = offset_of(w.p.kept, row);
        sums<number> mine = nothing<number>();
        for (int64_t k = lane; k < count; k += lanes) {
            number x;
            load(w, base + offset_of(w.p.reduced, k), &x);
            take(&mine, of_one(x, k), w.p.last != 0);
        }
        shared[at] = mine; /* only its own lanes read it, and they have met since the last row */
        for (int half = lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (lane < half) take(&shared[at], shared[at + half], w.p.last != 0);
        }
        if (lane == 0 && row < rows) {
            want[row] = pick(w, shared[at]);
            spread[row] = (float)spread_of(w, shared[at]);
        }
        __syncthreads();
    }
}

} // namespace

cudaError_t whole_reduce(const whole_reduce_problem *w, double *want, float *spread, cudaStream_t stream) {
    const int lanes = whole_lanes(w->p.reduced.count);
    const unsigned blocks = whole_blocks(w->p.kept.count, lanes);
    if (w->wholes)
        reduce_rows<int64_t><<<blocks, whole_threads, 0, stream>>>(*w, lanes, want, spread);
    else
        reduce_rows<double><<<blocks, whole_threads, 0, stream>>>(*w, lanes, want, spread);
    return cudaGetLastError();
}
