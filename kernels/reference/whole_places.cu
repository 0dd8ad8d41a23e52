/* The references of moves whose places data tell. A scatter's updates come together at each element by atomic
 * operations in fp64: of what is written the last one is found first, in the memory of the right values. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

enum { WRITE, ADD, MUL, MAX, MIN };

__device__ int64_t index_at(const whole_scatter_problem &p, int64_t i) {
    return p.index_type == DTYPE_INT64 ? (int64_t)((const long long *)p.indices)[i] : ((const int32_t *)p.indices)[i];
}

/* Where an update goes. */
__device__ int64_t place_of(const whole_scatter_problem &p, int64_t at) {
    int64_t place = 0;
    if (p.parts > 0) {
        for (int k = 0; k < p.parts; k++) place = place * p.lengths[k] + index_at(p, at / p.cols * p.parts + k);
        return place * p.cols + at % p.cols;
    }
    int64_t rest = at;
    for (int d = p.rank - 1; d >= 0; d--) {
        place += (d == p.axis ? index_at(p, at) : rest % p.dims[d]) * p.strides[d];
        rest /= p.dims[d];
    }
    return place;
}

__global__ void __launch_bounds__(whole_each_threads)
    begin(const whole_scatter_problem p, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < p.count; k += whole_each_step()) {
        const double x = values_at(p.x, p.type, k);
        want[k] = p.how == WRITE ? __longlong_as_double(-1) : x;
        spread[k] = (float)(x * x); /* squares, until all updates are in */
    }
}

__global__ void __launch_bounds__(whole_each_threads)
    update(const whole_scatter_problem p, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t at = whole_each_first(); at < p.updated; at += whole_each_step()) {
        const int64_t to = place_of(p, at);
        const double u = values_at(p.updates, p.type, at);
        if (p.how == WRITE) {
            atomicMax((long long *)want + to, (long long)at);
        } else if (p.how == ADD) {
            atomicAdd(&want[to], u);
            atomicAdd(&spread[to], (float)(u * u));
        } else {
            unsigned long long *const word = (unsigned long long *)want + to, none = 0;
            unsigned long long seen = atomicAdd(word, none), before;
            do {
                const double y = __longlong_as_double((long long)seen);
                const double next = p.how == MUL ? y * u : p.how == MAX ? fmax(y, u) : fmin(y, u);
                before = seen;
                seen = atomicCAS(word, before, (unsigned long long)__double_as_longlong(next));
            } while (seen != before);
        }
    }
}

__global__ void __launch_bounds__(whole_each_threads)
    end(const whole_scatter_problem p, double *__restrict__ want, float *__restrict__ spread) {
    for (int64_t k = whole_each_first(); k < p.count; k += whole_each_step()) {
        const long long last = __double_as_longlong(want[k]);
        if (p.how == WRITE) want[k] = last < 0 ? values_at(p.x, p.type, k) : values_at(p.updates, p.type, last);
        spread[k] = (p.how == ADD ? sqrtf(spread[k]) : fabsf((float)want[k])) + (float)values_least(p.type);
    }
}

/* One block: each thread looks at a part, and begins where those before it end. */
constexpr int parts = 1024;

__global__ void __launch_bounds__(parts) nonzero(const whole_nonzero_problem p, double *want, float *spread) {
    __shared__ int64_t found[parts];
    const int64_t each = (p.count + parts - 1) / parts, first = threadIdx.x * each;
    const int64_t end = first + each < p.count ? first + each : p.count;
    int64_t own = 0, column = 0, all = 0;
    for (int64_t k = first; k < end; k++) own += values_at(p.x, p.type, k) != 0;
    found[threadIdx.x] = own;
    __syncthreads();
    for (int t = 0; t < parts; t++) {
        if (t < (int)threadIdx.x) column += found[t];
        all += found[t];
    }
    for (int64_t k = first; k < end; k++) {
        for (int d = 0; d < p.rank; d++) {
            spread[d * p.count + k] = 0;
            if (k >= all) want[d * p.count + k] = 0;
        }
        if (values_at(p.x, p.type, k) == 0) continue;
        int64_t rest = k;
        for (int d = p.rank - 1; d >= 0; d--) {
            want[d * p.count + column] = (double)(rest % p.dims[d]);
            rest /= p.dims[d];
        }
        column++;
    }
}

} // namespace

cudaError_t whole_scatter(const whole_scatter_problem *p, double *want, float *spread, cudaStream_t stream) {
    begin<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    update<<<whole_each_blocks(p->updated), whole_each_threads, 0, stream>>>(*p, want, spread);
    end<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}

cudaError_t whole_nonzero(const whole_nonzero_problem *p, double *want, float *spread, cudaStream_t stream) {
    nonzero<<<1, parts, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
