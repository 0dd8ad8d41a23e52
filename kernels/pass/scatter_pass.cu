/* Scatters: the input is copied; then each update goes to its place. What is written goes there after a kernel in which
 * the updates of one place agree on the last of them; what is combined goes there by atomic operations. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/place_kernels.h"

namespace {

constexpr int most_threads = 512;

struct job {
    scatter_pass s;
    const void *indices, *updates;
    void *y;
    int *last;          /* of each place the last row of updates, or the last update; -1: none */
    pass::radix places; /* of an update: column and row, or as they lie */
};

__device__ __forceinline__ int64_t index_at(const job &p, int64_t at) {
    return p.s.index_type == PASS_INT64 ? (int64_t)((const long long *)p.indices)[at]
                                        : (int64_t)((const int *)p.indices)[at];
}

__device__ __forceinline__ bool lies_in(int64_t index, int64_t length) { return (uint64_t)index < (uint64_t)length; }

/* Where a row goes, in rows; -1: nowhere. */
__device__ int64_t place_of_row(const job &p, int64_t row) {
    int64_t place = 0;
    for (int k = 0; k < p.s.parts; k++) {
        const int64_t index = index_at(p, row * p.s.parts + k);
        if (!lies_in(index, p.s.lengths[k])) return -1;
        place = place * p.s.lengths[k] + index;
    }
    return place;
}

/* Where an update with an index of its own goes, in elements; -1: nowhere. */
__device__ int64_t place_of_each(const job &p, int64_t at) {
    const int64_t index = index_at(p, at);
    if (!lies_in(index, p.s.length)) return -1;
    int64_t rest = at, to = index * p.s.strides[p.s.axis];
    for (int d = 0; d < p.s.rank; d++) {
        const int64_t place = pass::radix_next(p.places, d, rest);
        if (d != p.s.axis) to += place * p.s.strides[d];
    }
    return to;
}

/* Where update `at` goes, in elements, and whose place it shares: `slot`, of `mine`. false: nowhere. */
__device__ __forceinline__ bool find(const job &p, int64_t at, int64_t *to, int64_t *slot, int64_t *mine) {
    if (p.s.parts == 0) {
        *to = *slot = place_of_each(p, at), *mine = at;
        return *to >= 0;
    }
    int64_t row = at;
    const int64_t col = pass::radix_next(p.places, 0, row);
    *slot = place_of_row(p, row), *mine = row;
    *to = *slot * p.s.cols + col;
    return *slot >= 0;
}

__global__ void __launch_bounds__(most_threads) agree(const job p, int64_t count) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const int64_t slot = p.s.parts == 0 ? place_of_each(p, at) : place_of_row(p, at);
        if (slot >= 0) atomicMax(p.last + slot, (int)at);
    }
}

template <int SIZE> __global__ void __launch_bounds__(most_threads) write(const job p) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.s.updates; at += step) {
        int64_t to, slot, mine;
        if (find(p, at, &to, &slot, &mine) && p.last[slot] == (int)mine)
            ((word *)p.y)[to] = ((const word *)p.updates)[at];
    }
}

/* --- combining --- */

struct of_fp32 {
    typedef unsigned word;
    typedef float value;
    static __device__ float widen(word x) { return __uint_as_float(x); }
    static __device__ word narrow(float x) { return __float_as_uint(x); }
};
struct of_fp64 {
    typedef unsigned long long word;
    typedef double value;
    static __device__ double widen(word x) { return __longlong_as_double((long long)x); }
    static __device__ word narrow(double x) { return (word)__double_as_longlong(x); }
};
struct of_fp16 {
    typedef unsigned short word;
    typedef float value;
    static __device__ float widen(word x) { return __half2float(__ushort_as_half(x)); }
    static __device__ word narrow(float x) { return __half_as_ushort(__float2half_rn(x)); }
};
struct of_bf16 {
    typedef unsigned short word;
    typedef float value;
    static __device__ float widen(word x) { return __uint_as_float((unsigned)x << 16); }
    static __device__ word narrow(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
};

template <class V> __device__ __forceinline__ V combined(int how, V y, V u) {
    return how == SCATTER_ADD ? y + u : how == SCATTER_MUL ? y * u : how == SCATTER_MAX ? (y > u ? y : u) : y < u ? y : u;
}

template <class T> __global__ void __launch_bounds__(most_threads) combine(const job p) {
    typedef typename T::word word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.s.updates; at += step) {
        int64_t to, slot, mine;
        if (!find(p, at, &to, &slot, &mine)) continue;
        word *const y = (word *)p.y + to;
        const typename T::value u = T::widen(((const word *)p.updates)[at]);
        word seen = *(volatile word *)y;
        for (;;) {
            const word next = T::narrow(combined(p.s.combine, T::widen(seen), u));
            if (next == seen) break; /* nothing changes */
            const word before = atomicCAS(y, seen, next);
            if (before == seen) break;
            seen = before;
        }
    }
}

/* Sums have an instruction of their own. */
template <> __global__ void __launch_bounds__(most_threads) combine<float>(const job p) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.s.updates; at += step) {
        int64_t to, slot, mine;
        if (find(p, at, &to, &slot, &mine)) atomicAdd((float *)p.y + to, ((const float *)p.updates)[at]);
    }
}

const void *combine_of(int type, int how) {
    switch (type) {
    case PASS_FP32: return how == SCATTER_ADD ? (const void *)combine<float> : (const void *)combine<of_fp32>;
    case PASS_FP64: return (const void *)combine<of_fp64>;
    case PASS_FP16: return (const void *)combine<of_fp16>;
    case PASS_BF16: return (const void *)combine<of_bf16>;
    default: return NULL;
    }
}

const void *write_of(int size) {
    switch (size) {
    case 1: return (const void *)write<1>;
    case 2: return (const void *)write<2>;
    case 4: return (const void *)write<4>;
    case 8: return (const void *)write<8>;
    default: return NULL;
    }
}

int64_t rows_of(const scatter_pass *s) { return s->parts == 0 ? s->updates : s->updates / s->cols; }
int64_t slots_of(const scatter_pass *s) { return s->parts == 0 ? s->elements : s->elements / s->cols; }

int launch(const void *kernel, const pass_config &c, int64_t count, void *args[], cudaStream_t stream) {
    const int threads = pass::threads_of(c, 256);
    return cudaLaunchKernel(kernel, dim3(pass::blocks_of(c, (count + threads - 1) / threads)), dim3((unsigned)threads),
                            args, 0, stream);
}

} // namespace

int scatter_pass_fits(const scatter_pass *s) {
    const pass_config &c = s->config;
    if (pass::size_of(s->type) == 0 || s->elements < 1 || s->updates < 1) return 0;
    if (s->combine < 0 || s->combine >= SCATTER_COMBINES) return 0;
    if (s->combine != SCATTER_WRITE && !combine_of(s->type, s->combine)) return 0;
    if (s->index_type != PASS_INT32 && s->index_type != PASS_INT64) return 0;
    if (s->parts < 0 || s->parts > PASS_RANK) return 0;
    if (s->parts > 0 && (s->cols < 1 || s->updates % s->cols != 0 || s->elements % s->cols != 0)) return 0;
    if (s->parts == 0 && (s->rank < 1 || s->rank > PASS_RANK || s->axis < 0 || s->axis >= s->rank)) return 0;
    if (rows_of(s) > 0x7fffffff) return 0; /* as an int holds the last of them */
    return c.threads >= 0 && c.threads <= most_threads && c.threads % 32 == 0 && c.resident >= 0;
}

size_t scatter_pass_workspace(const scatter_pass *s) {
    return s->combine == SCATTER_WRITE ? (size_t)slots_of(s) * sizeof(int) : 0;
}

int scatter_pass_launch(const scatter_pass *s, const void *x, const void *indices, const void *updates, void *y,
                        void *workspace, void *stream) {
    if (!scatter_pass_fits(s)) return cudaErrorInvalidValue;
    const int size = pass::size_of(s->type);
    cudaStream_t const on = (cudaStream_t)stream;
    const int64_t rows[] = {s->cols, rows_of(s)};
    job j = {};
    j.s = *s, j.indices = indices, j.updates = updates, j.y = y, j.last = (int *)workspace;
    j.places = s->parts > 0 ? pass::radix_of(2, rows) : pass::radix_of(s->rank, s->dims);
    int64_t count = rows_of(s);
    void *args[] = {&j, &count};
    int error = cudaMemcpyAsync(y, x, (size_t)s->elements * (size_t)size, cudaMemcpyDeviceToDevice, on);
    if (error || s->combine != SCATTER_WRITE)
        return error ? error : launch(combine_of(s->type, s->combine), s->config, s->updates, args, on);
    error = cudaMemsetAsync(workspace, 0xff, scatter_pass_workspace(s), on);
    if (!error) error = launch((const void *)agree, s->config, count, args, on);
    return error ? error : launch(write_of(size), s->config, s->updates, args, on);
}
