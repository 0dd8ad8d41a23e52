/* The references along lines, by definition: the sum or product of all that comes before, one element after the other; the best of
 * what was not taken yet, as often as something is kept, or each element behind all that are better. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"
#include "kernels/reference/whole_integers.cuh"

namespace {

__device__ int64_t base_of(const reduce_lines &l, int64_t line, int64_t length) {
    return line / l.inner * length * l.inner + line % l.inner;
}

__device__ double in_range(uint32_t type, double x) {
    const double largest = type == DTYPE_FP16   ? 0x1.ffep15
                           : type == DTYPE_BF16 ? 0x1.ffp127
                           : type == DTYPE_FP32 ? 0x1.ffffffp127
                                                : __longlong_as_double(0x7fefffffffffffffll);
    return fabs(x) >= largest ? copysign(__longlong_as_double(0x7ff0000000000000ll), x) : x;
}

__global__ void __launch_bounds__(whole_each_threads)
    running(const whole_along_problem p, double *__restrict__ want, float *__restrict__ spread) {
    const reduce_lines &l = p.lines;
    for (int64_t line = whole_each_first(); line < l.outer * l.inner; line += whole_each_step()) {
        const int64_t base = base_of(l, line, l.length);
        const double smallest = p.type == DTYPE_FP16 ? 0x1p-14 : p.type == DTYPE_FP64 ? 0x1p-1000 : 0x1p-100;
        double sum = l.products ? 1 : 0, squares = 0;
        int64_t whole = l.products ? 1 : 0;
        for (int64_t k = 0; k < l.length; k++) {
            const int64_t at = base + (l.backward ? l.length - 1 - k : k) * l.inner;
            const double before = sum, squares_before = squares, x = values_at(p.x, p.type, at);
            const int64_t whole_before = whole;
            sum = l.products ? sum * x : sum + x, squares += x * x;
            if (p.wholes) {
                const int64_t one = whole_integer_at(p.x, p.type, at);
                whole = l.products ? whole_mul(whole, one) : whole_add(whole, one);
            }
            want[at] = p.wholes ? whole_wrapped(p.type, l.exclusive ? whole_before : whole)
                                : in_range(p.type, l.exclusive ? before : sum);
            const double terms = sqrt(l.exclusive ? squares_before : squares) + 0x1p-14;
            spread[at] = p.wholes ? 0 : (float)(l.products ? smallest : terms);
        }
    }
}

struct found {
    double value;
    int64_t at; /* -1: nothing */
};

__device__ bool better(const reduce_lines &l, const found &a, const found &b) {
    if (a.at < 0 || b.at < 0) return b.at < 0 && a.at >= 0;
    if (a.value != b.value) return l.largest ? a.value > b.value : a.value < b.value;
    return a.at < b.at;
}

/* A block for each line. */
__global__ void __launch_bounds__(whole_each_threads)
    search(const whole_along_problem p, double *__restrict__ want, float *__restrict__ spread) {
    __shared__ found shared[whole_each_threads];
    const reduce_lines &l = p.lines;
    for (int64_t line = blockIdx.x; line < l.outer * l.inner; line += gridDim.x) {
        const int64_t base = base_of(l, line, l.length), to = base_of(l, line, l.kept);
        found last = {0, -1};
        for (int64_t k = 0; k < l.kept; k++) {
            found best = {0, -1};
            for (int64_t i = threadIdx.x; i < l.length; i += whole_each_threads) {
                const found one = {values_at(p.x, p.type, base + i * l.inner), i};
                const bool taken = last.at >= 0 && !better(l, last, one);
                if (!taken && better(l, one, best)) best = one;
            }
            shared[threadIdx.x] = best;
            for (int half = whole_each_threads / 2; half > 0; half /= 2) {
                __syncthreads();
                if ((int)threadIdx.x < half && better(l, shared[threadIdx.x + half], shared[threadIdx.x]))
                    shared[threadIdx.x] = shared[threadIdx.x + half];
            }
            __syncthreads();
            last = shared[0];
            __syncthreads();
            if (threadIdx.x > 0) continue;
            want[to + k * l.inner] = p.places ? (double)last.at : last.value;
            spread[to + k * l.inner] = 0;
        }
    }
}

/* Where much of a line is kept, an element a thread: as many as are better than it stand before it. */
__global__ void __launch_bounds__(whole_each_threads)
    ranking(const whole_along_problem p, double *__restrict__ want, float *__restrict__ spread) {
    const reduce_lines &l = p.lines;
    const int64_t all = l.outer * l.inner * l.length;
    for (int64_t k = whole_each_first(); k < all; k += whole_each_step()) {
        const int64_t line = k / l.length, i = k % l.length, base = base_of(l, line, l.length);
        const found one = {values_at(p.x, p.type, base + i * l.inner), i};
        int64_t before = 0;
        for (int64_t j = 0; j < l.length && before < l.kept; j++) {
            const found other = {values_at(p.x, p.type, base + j * l.inner), j};
            before += better(l, other, one);
        }
        if (before >= l.kept) continue;
        const int64_t to = base_of(l, line, l.kept) + before * l.inner;
        want[to] = p.places ? (double)i : one.value;
        spread[to] = 0;
    }
}

} // namespace

cudaError_t whole_along(const whole_along_problem *p, double *want, float *spread, cudaStream_t stream) {
    enum { MUCH = 1024 };
    const int64_t lines = p->lines.outer * p->lines.inner;
    if (p->lines.searches && p->lines.kept > MUCH)
        ranking<<<whole_each_blocks(lines * p->lines.length), whole_each_threads, 0, stream>>>(*p, want, spread);
    else if (p->lines.searches)
        search<<<(unsigned)(lines < 1 << 20 ? lines : 1 << 20), whole_each_threads, 0, stream>>>(*p, want, spread);
    else
        running<<<whole_each_blocks(lines), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
