/* Reductions in fp64 and of bool, the logarithm of a sum of exponentials, and the last of equal places. A thread goes
 * along an output's elements where many outputs lie beside each other; else a block shares them. The exponentials are of
 * the distance to the greatest so far, so that none is too large. */
#include "kernels/pass/reduce_plain.h"

#include "kernels/pass/pass.cuh"

namespace {

constexpr int threads = 256, many = 4096; /* outputs, enough for a thread each */

struct job {
    int what, type, last, lanes; /* lanes: threads of an output */
    int64_t outputs, count;
    const void *x;
    void *y;
    pass::radix kept, reduced;
    int64_t kept_strides[PASS_RANK], reduced_strides[PASS_RANK];
};

/* C: float, or double for what a float does not hold. */
template <class C> __device__ __forceinline__ C load(int type, const void *x, int64_t at) {
    switch (type) {
    case PASS_FP32: return (C)((const float *)x)[at];
    case PASS_FP64: return (C)((const double *)x)[at];
    case PASS_FP16: return (C)__half2float(((const __half *)x)[at]);
    case PASS_BF16: return (C)__uint_as_float((unsigned)((const unsigned short *)x)[at] << 16);
    case PASS_INT32: return (C)((const int *)x)[at];
    case PASS_INT8: return (C)((const int8_t *)x)[at];
    default: return (C)((const uint8_t *)x)[at]; /* uint8, bool */
    }
}

template <class C> __device__ __forceinline__ void store(int type, void *y, int64_t at, C x) {
    switch (type) {
    case PASS_FP32: ((float *)y)[at] = (float)x; break;
    case PASS_FP64: ((double *)y)[at] = (double)x; break;
    case PASS_FP16: ((__half *)y)[at] = __float2half_rn((float)x); break;
    case PASS_BF16: ((__nv_bfloat16 *)y)[at] = __float2bfloat16_rn((float)x); break;
    default: ((uint8_t *)y)[at] = x != 0; break; /* bool */
    }
}

/* more: of exponentials their sum; value is the greatest number then. place -1: nothing yet. */
template <class C> struct found {
    C value, more;
    long long place;
};

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }

template <class C> __device__ found<C> of_one(int what, C x, int64_t place) {
    const C value = what == REDUCE_PASS_l1                                          ? (x < 0 ? -x : x)
                    : what == REDUCE_PASS_l2 || what == REDUCE_PASS_sumsquare ? x * x
                                                                                    : x;
    return {value, (C)1, place};
}

template <class C> __device__ void join(const job &p, found<C> &into, const found<C> &x) {
    if (x.place < 0) return;
    if (into.place < 0) {
        into = x;
        return;
    }
    const bool greater = x.value > into.value, less = x.value < into.value;
    switch (p.what) {
    case REDUCE_PASS_prod: into.value *= x.value; break;
    case REDUCE_PASS_max: into.value = greater ? x.value : into.value; break;
    case REDUCE_PASS_min: into.value = less ? x.value : into.value; break;
    case REDUCE_PASS_argmax:
    case REDUCE_PASS_argmin:
        if (greater || less) {
            if (greater == (p.what == REDUCE_PASS_argmax)) into = x;
        } else if ((x.place > into.place) == (p.last != 0)) {
            into = x;
        }
        break;
    case REDUCE_PASS_logsumexp: {
        const C most = greater ? x.value : into.value;
        into.more = into.more * exponential(into.value - most) + x.more * exponential(x.value - most);
        into.value = most;
        break;
    }
    default: into.value += x.value; break;
    }
}

template <class C> __device__ C finished(const job &p, const found<C> &f) {
    switch (p.what) {
    case REDUCE_PASS_mean: return f.value / (C)p.count;
    case REDUCE_PASS_l2: return sqrt(f.value);
    case REDUCE_PASS_logsum: return log(f.value);
    case REDUCE_PASS_logsumexp: return f.value + log(f.more);
    default: return f.value;
    }
}

__device__ __forceinline__ int64_t place_of(const pass::radix &r, const int64_t *strides, int64_t at) {
    int64_t to = 0;
    for (int d = 0; d < r.rank; d++) to += pass::radix_next(r, d, at) * strides[d];
    return to;
}

template <class C> __global__ void __launch_bounds__(threads) plain(const job p) {
    __shared__ found<C> shared[threads];
    const int lane = (int)threadIdx.x % p.lanes, each = threads / p.lanes;
    for (int64_t first = (int64_t)blockIdx.x * each; first < p.outputs; first += (int64_t)gridDim.x * each) {
        const int64_t output = first + threadIdx.x / p.lanes;
        found<C> all = {0, 0, -1};
        if (output < p.outputs) {
            const int64_t base = place_of(p.kept, p.kept_strides, output);
            for (int64_t k = lane; k < p.count; k += p.lanes)
                join(p, all, of_one(p.what, load<C>(p.type, p.x, base + place_of(p.reduced, p.reduced_strides, k)), k));
        }
        if (p.lanes > 1) {
            shared[threadIdx.x] = all;
            for (int half = p.lanes / 2; half > 0; half /= 2) {
                __syncthreads();
                if (lane < half) join(p, shared[threadIdx.x], shared[threadIdx.x + half]);
            }
            all = shared[threadIdx.x];
            __syncthreads();
        }
        if (lane > 0 || output >= p.outputs) continue;
        if (p.what == REDUCE_PASS_argmax || p.what == REDUCE_PASS_argmin)
            ((long long *)p.y)[output] = all.place;
        else
            store(p.type, p.y, output, finished(p, all));
    }
}

bool is_place(int what) { return what == REDUCE_PASS_argmax || what == REDUCE_PASS_argmin; }

} // namespace

int reduce_plain_takes(const reduce_pass *r) {
    const bool real = r->type == PASS_FP32 || r->type == PASS_FP16 || r->type == PASS_BF16 || r->type == PASS_FP64;
    const bool whole = r->type == PASS_INT32 || r->type == PASS_INT8 || r->type == PASS_UINT8;
    const bool places = is_place(r->what) && r->last;
    if (r->type == PASS_BOOL) return r->what == REDUCE_PASS_max || r->what == REDUCE_PASS_min || places;
    if (whole) return places;
    return real && (r->type == PASS_FP64 || r->what == REDUCE_PASS_logsumexp || places);
}

int reduce_plain_launch(const reduce_pass *r, const void *x, void *y, void *stream) {
    job j = {};
    j.what = r->what, j.type = r->type, j.last = r->last;
    j.outputs = r->kept.count, j.count = r->reduced.count, j.x = x, j.y = y;
    j.lanes = r->kept.strides[0] == 1 && j.outputs >= many ? 1 : threads;
    j.kept = pass::radix_of(r->kept.rank, r->kept.dims), j.reduced = pass::radix_of(r->reduced.rank, r->reduced.dims);
    for (int d = 0; d < PASS_RANK; d++)
        j.kept_strides[d] = r->kept.strides[d], j.reduced_strides[d] = r->reduced.strides[d];
    const int64_t each = threads / j.lanes;
    const bool wide = r->type == PASS_FP64 || r->type == PASS_INT32;
    void *args[] = {&j};
    return cudaLaunchKernel(wide ? (const void *)plain<double> : (const void *)plain<float>,
                            dim3(pass::blocks_of(r->config, (j.outputs + each - 1) / each)), dim3(threads), args, 0,
                            (cudaStream_t)stream);
}
