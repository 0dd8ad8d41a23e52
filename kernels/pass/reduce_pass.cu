/* Reductions. Along rows, where what is reduced lies together: a warp or a block adds up an output. Across rows, where
 * outputs lie together: a thread adds up some neighbouring outputs, eight rows of threads share what is reduced. Where
 * that makes too few blocks, each output is cut into parts, which a second kernel puts together. Of many outputs that
 * are made of a few elements each, a thread makes its own. What models seldom have is reduce_plain's. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/reduce_plain.h"

namespace {

enum { sums, absolutes, squares, products, most, least, first_most, first_least, fold_count };

constexpr int in_flight = 4, column_threads = 32, column_rows = 8, few_blocks = 528;
constexpr int many_rows = 2048;                         /* enough for a warp each */
constexpr int many_outputs = 32768;                     /* enough for a thread each, */
constexpr int few_across = column_rows, few_along = 16; /* of as many elements as threads would share badly */

template <class C> struct found {
    C value;
    long long place;
};

struct job {
    int what, type, size, parts, warps; /* warps: a warp for an output, not a block */
    int64_t outputs, count, units;      /* units: pieces of what is reduced */
    const void *x;
    void *y, *rest;
    pass::radix kept, reduced;
    int64_t kept_strides[PASS_RANK], reduced_strides[PASS_RANK];
};

/* --- folding --- */

template <class C> __device__ __forceinline__ C lowest();
template <> __device__ __forceinline__ float lowest<float>() { return -INFINITY; }
template <> __device__ __forceinline__ long long lowest<long long>() { return INT64_MIN; }
template <class C> __device__ __forceinline__ C highest();
template <> __device__ __forceinline__ float highest<float>() { return INFINITY; }
template <> __device__ __forceinline__ long long highest<long long>() { return INT64_MAX; }

template <class C, int F> __device__ __forceinline__ found<C> nothing() {
    if (F == most || F == first_most) return {lowest<C>(), INT64_MAX};
    if (F == least || F == first_least) return {highest<C>(), INT64_MAX};
    return {F == products ? (C)1 : (C)0, 0};
}

__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float times(float a, float b) { return a * b; }
__device__ __forceinline__ float size_of(float a) { return fabsf(a); }
__device__ __forceinline__ long long plus(long long a, long long b) { return (long long)((uint64_t)a + (uint64_t)b); }
__device__ __forceinline__ long long times(long long a, long long b) { return (long long)((uint64_t)a * (uint64_t)b); }
__device__ __forceinline__ long long size_of(long long a) { return a < 0 ? (long long)(0 - (uint64_t)a) : a; }

template <class C, int F> __device__ __forceinline__ void join(found<C> &into, const found<C> &x) {
    if (F == products) {
        into.value = times(into.value, x.value);
    } else if (F == most) {
        into.value = x.value > into.value ? x.value : into.value;
    } else if (F == least) {
        into.value = x.value < into.value ? x.value : into.value;
    } else if (F == first_most || F == first_least) {
        const bool better = F == first_most ? x.value > into.value : x.value < into.value;
        if (better || (x.value == into.value && x.place < into.place)) into = x;
    } else {
        into.value = plus(into.value, x.value);
    }
}

template <class C, int F> __device__ __forceinline__ void take(found<C> &into, C x, int64_t place) {
    const found<C> one = {F == absolutes ? size_of(x) : F == squares ? times(x, x) : x, place};
    join<C, F>(into, one);
}

template <class C, int F> __device__ __forceinline__ found<C> join_warp(found<C> x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        found<C> other;
        other.value = __shfl_xor_sync(0xffffffffu, x.value, step);
        other.place = F >= first_most ? __shfl_xor_sync(0xffffffffu, x.place, step) : 0;
        join<C, F>(x, other);
    }
    return x;
}

/* --- values --- */

template <int SIZE, int VEC>
__device__ __forceinline__ void to_values(int type, const pass::bits<SIZE, VEC> &x, float *to) {
    pass::widen(type, x, to);
}
template <int SIZE, int VEC>
__device__ __forceinline__ void to_values(int type, const pass::bits<SIZE, VEC> &x, long long *to) {
#pragma unroll
    for (int i = 0; i < VEC; i++)
        to[i] = SIZE == 8           ? (long long)x.at[i]
                : SIZE == 4         ? (long long)(int)x.at[i]
                : type == PASS_INT8 ? (long long)(int8_t)x.at[i]
                                    : (long long)x.at[i];
}

__device__ __forceinline__ float finished(int what, float x, int64_t count) {
    return what == REDUCE_PASS_mean     ? x / (float)count
           : what == REDUCE_PASS_l2     ? sqrtf(x)
           : what == REDUCE_PASS_logsum ? logf(x)
                                        : x;
}
__device__ __forceinline__ long long finished(int what, long long x, int64_t count) {
    return what == REDUCE_PASS_mean ? x / count : x;
}

__device__ __forceinline__ void put(const job &p, int64_t at, float x) {
    if (p.type == PASS_FP32)
        ((float *)p.y)[at] = x;
    else if (p.type == PASS_FP16)
        ((__half *)p.y)[at] = __float2half_rn(x);
    else
        ((__nv_bfloat16 *)p.y)[at] = __float2bfloat16_rn(x);
}
__device__ __forceinline__ void put(const job &p, int64_t at, long long x) {
    if (p.size == 8)
        ((long long *)p.y)[at] = x;
    else if (p.size == 4)
        ((int *)p.y)[at] = (int)x;
    else
        ((uint8_t *)p.y)[at] = (uint8_t)x;
}

template <class C, int F> __device__ __forceinline__ void finish(const job &p, int64_t at, const found<C> &x) {
    if (F >= first_most)
        ((long long *)p.y)[at] = x.place;
    else
        put(p, at, finished(p.what, x.value, p.count));
}

template <class C, int F>
__device__ __forceinline__ void leave(const job &p, int64_t output, int part, const found<C> &x) {
    if (p.parts > 1)
        ((found<C> *)p.rest)[output * p.parts + part] = x;
    else
        finish<C, F>(p, output, x);
}

__device__ __forceinline__ int64_t place_of(const pass::radix &r, const int64_t *strides, int64_t at) {
    int64_t to = 0;
    for (int d = 0; d < r.rank; d++) to += pass::radix_next(r, d, at) * strides[d];
    return to;
}

/* --- along rows --- */

template <class C, int F, int SIZE, int VEC>
__device__ __forceinline__ found<C> scan(const job &p, int64_t base, int64_t from, int64_t to, int step) {
    found<C> all = nothing<C, F>();
    for (int64_t u = from; u < to; u += (int64_t)in_flight * step) {
        pass::bits<SIZE, VEC> raw[in_flight];
#pragma unroll
        for (int i = 0; i < in_flight; i++) {
            const int64_t v = u + (int64_t)i * step;
            if (v < to) raw[i] = pass::load<SIZE, VEC>(p.x, base + place_of(p.reduced, p.reduced_strides, v * VEC));
        }
#pragma unroll
        for (int i = 0; i < in_flight; i++) {
            const int64_t v = u + (int64_t)i * step;
            C values[VEC];
            if (v >= to) break;
            to_values(p.type, raw[i], values);
#pragma unroll
            for (int k = 0; k < VEC; k++) take<C, F>(all, values[k], v * VEC + k);
        }
    }
    return all;
}

/* 16 bytes; of 1-byte elements only 4, which become 64 bits each. */
template <int SIZE, int WIDE> struct piece {
    enum { elements = !WIDE ? 1 : SIZE == 1 ? 4 : 16 / SIZE };
};

template <class C, int F, int WIDE>
__device__ __forceinline__ found<C> scan_any(const job &p, int64_t base, int64_t from, int64_t to, int step) {
    if constexpr (sizeof(C) == 4) {
        if (p.size == 2) return scan<C, F, 2, piece<2, WIDE>::elements>(p, base, from, to, step);
    } else {
        if (p.size == 1) return scan<C, F, 1, piece<1, WIDE>::elements>(p, base, from, to, step);
        if (p.size == 8) return scan<C, F, 8, piece<8, WIDE>::elements>(p, base, from, to, step);
    }
    return scan<C, F, 4, piece<4, WIDE>::elements>(p, base, from, to, step);
}

template <class C, int F, int WIDE> __global__ void __launch_bounds__(512) rows(const job p) {
    __shared__ found<C> shared[16];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    if (p.warps) {
        for (int64_t k = blockIdx.x * (int64_t)warps + warp; k < p.outputs; k += (int64_t)gridDim.x * warps) {
            const int64_t base = place_of(p.kept, p.kept_strides, k);
            const found<C> all = join_warp<C, F>(scan_any<C, F, WIDE>(p, base, lane, p.units, 32));
            if (lane == 0) finish<C, F>(p, k, all);
        }
        return;
    }
    const int64_t chunk = (p.units + p.parts - 1) / p.parts;
    for (int64_t n = blockIdx.x; n < p.outputs * p.parts; n += gridDim.x) {
        const int64_t k = n / p.parts, part = n - k * p.parts, from = part * chunk;
        const int64_t to = from + chunk < p.units ? from + chunk : p.units;
        const int64_t base = place_of(p.kept, p.kept_strides, k);
        found<C> all = join_warp<C, F>(scan_any<C, F, WIDE>(p, base, from + threadIdx.x, to, blockDim.x));
        if (lane == 0) shared[warp] = all;
        __syncthreads();
        if (warp == 0) {
            all = lane < warps ? shared[lane] : nothing<C, F>();
            all = join_warp<C, F>(all);
            if (lane == 0) leave<C, F>(p, k, (int)part, all);
        }
        __syncthreads();
    }
}

/* --- across rows --- */

/* VEC neighbouring outputs from `first` on, of every STEP-th element. */
template <class C, int F, int SIZE, int VEC, int STEP>
__device__ __forceinline__ void add(const job &p, int64_t first, int64_t from, int64_t to, found<C> *all) {
    const int64_t base = place_of(p.kept, p.kept_strides, first);
    for (int64_t u = from; u < to; u += in_flight * STEP) {
        pass::bits<SIZE, VEC> raw[in_flight];
#pragma unroll
        for (int i = 0; i < in_flight; i++) {
            const int64_t v = u + i * STEP;
            if (v < to) raw[i] = pass::load<SIZE, VEC>(p.x, base + place_of(p.reduced, p.reduced_strides, v));
        }
#pragma unroll
        for (int i = 0; i < in_flight; i++) {
            const int64_t v = u + i * STEP;
            C values[VEC];
            if (v >= to) break;
            to_values(p.type, raw[i], values);
#pragma unroll
            for (int k = 0; k < VEC; k++) take<C, F>(all[k], values[k], v);
        }
    }
}

template <class C, int F, int VEC, int STEP>
__device__ __forceinline__ void add_any(const job &p, int64_t first, int64_t from, int64_t to, found<C> *all) {
    if constexpr (sizeof(C) == 4) {
        if (p.size == 2) add<C, F, 2, VEC, STEP>(p, first, from, to, all);
    } else {
        if (p.size == 1) add<C, F, 1, VEC, STEP>(p, first, from, to, all);
        if (p.size == 8) add<C, F, 8, VEC, STEP>(p, first, from, to, all);
    }
    if (p.size == 4) add<C, F, 4, VEC, STEP>(p, first, from, to, all);
}

template <class C, int F, int WIDE> __global__ void __launch_bounds__(256) columns(const job p) {
    constexpr int vec = WIDE ? 4 : 1;
    __shared__ found<C> shared[column_rows][column_threads * vec];
    const int column = threadIdx.x % column_threads, row = threadIdx.x / column_threads;
    const int64_t strips = (p.outputs + column_threads * vec - 1) / (column_threads * vec);
    const int64_t chunk = (p.units + p.parts - 1) / p.parts;
    for (int64_t n = blockIdx.x; n < strips * p.parts; n += gridDim.x) {
        const int64_t part = n / strips, first = (n - part * strips) * column_threads * vec + column * vec;
        const int64_t from = part * chunk, to = from + chunk < p.units ? from + chunk : p.units;
        found<C> all[vec];
#pragma unroll
        for (int k = 0; k < vec; k++) all[k] = nothing<C, F>();
        if (first < p.outputs) add_any<C, F, vec, column_rows>(p, first, from + row, to, all);
#pragma unroll
        for (int k = 0; k < vec; k++) shared[row][column * vec + k] = all[k];
        __syncthreads();
        for (int k = threadIdx.x; k < column_threads * vec; k += blockDim.x) {
            const int64_t output = (n - part * strips) * column_threads * vec + k;
            found<C> sum = shared[0][k];
            for (int r = 1; r < column_rows; r++) join<C, F>(sum, shared[r][k]);
            if (output < p.outputs) leave<C, F>(p, output, (int)part, sum);
        }
        __syncthreads();
    }
}

/* --- a thread for each output, or for a few neighbours --- */

/* Floats are written at once. */
template <class C, int F, int VEC>
__device__ __forceinline__ void finish_all(const job &p, int64_t at, const found<C> *all) {
    if constexpr (VEC > 1 && F < first_most && sizeof(C) == 4) {
        float x[VEC];
#pragma unroll
        for (int i = 0; i < VEC; i++) x[i] = finished(p.what, all[i].value, p.count);
        if (p.size == 2) {
            pass::bits<2, VEC> y;
            pass::narrow(p.type, x, y);
            pass::store<2, VEC>(p.y, at, y);
        } else {
            pass::bits<4, VEC> y;
            pass::narrow(p.type, x, y);
            pass::store<4, VEC>(p.y, at, y);
        }
    } else {
#pragma unroll
        for (int i = 0; i < VEC; i++) finish<C, F>(p, at + i, all[i]);
    }
}

template <class C, int F, int WIDE> __global__ void __launch_bounds__(512) few(const job p) {
    constexpr int vec = WIDE ? 4 : 1;
    const int64_t step = (int64_t)gridDim.x * blockDim.x * vec;
    for (int64_t k = (blockIdx.x * (int64_t)blockDim.x + threadIdx.x) * vec; k < p.outputs; k += step) {
        found<C> all[vec];
#pragma unroll
        for (int i = 0; i < vec; i++) all[i] = nothing<C, F>();
        add_any<C, F, vec, 1>(p, k, 0, p.count, all);
        finish_all<C, F, vec>(p, k, all);
    }
}

/* A warp for each output puts its parts together. */
template <class C, int F, int> __global__ void __launch_bounds__(256) together(const job p) {
    const int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
    for (int64_t k = blockIdx.x * (int64_t)warps + (threadIdx.x >> 5); k < p.outputs; k += (int64_t)gridDim.x * warps) {
        found<C> all = nothing<C, F>();
        for (int i = lane; i < p.parts; i += 32) join<C, F>(all, ((const found<C> *)p.rest)[k * p.parts + i]);
        all = join_warp<C, F>(all);
        if (lane == 0) finish<C, F>(p, k, all);
    }
}

/* --- which of them --- */

#define FOLDS(kernel, type, wide)                                                                                      \
    {                                                                                                                  \
        (const void *)kernel<type, sums, wide>, (const void *)kernel<type, absolutes, wide>,                           \
            (const void *)kernel<type, squares, wide>, (const void *)kernel<type, products, wide>,                     \
            (const void *)kernel<type, most, wide>, (const void *)kernel<type, least, wide>,                           \
            (const void *)kernel<type, first_most, wide>, (const void *)kernel<type, first_least, wide>                \
    }
/* [integers][wide][fold] */
const void *const row_kernels[2][2][fold_count] = {{FOLDS(rows, float, 0), FOLDS(rows, float, 1)},
                                                   {FOLDS(rows, long long, 0), FOLDS(rows, long long, 1)}};
const void *const column_kernels[2][2][fold_count] = {{FOLDS(columns, float, 0), FOLDS(columns, float, 1)},
                                                      {FOLDS(columns, long long, 0), FOLDS(columns, long long, 1)}};
const void *const few_kernels[2][2][fold_count] = {{FOLDS(few, float, 0), FOLDS(few, float, 1)},
                                                   {FOLDS(few, long long, 0), FOLDS(few, long long, 1)}};
const void *const together_kernels[2][fold_count] = {FOLDS(together, float, 0), FOLDS(together, long long, 0)};

const int folds[REDUCE_PASS_COUNT] = {sums,    sums,    most, least,      products,    absolutes,
                                      squares, squares, sums, first_most, first_least, sums};

int is_whole(int type) { return type != PASS_FP32 && type != PASS_FP16 && type != PASS_BF16; }
int along(const reduce_pass *r) { return r->reduced.strides[0] == 1 && r->reduced.count > 1; }

int divides(const reduce_pass_side *s, int first, int by) {
    for (int d = first; d < s->rank; d++)
        if (s->strides[d] % by != 0) return 0;
    return 1;
}

/* Elements of a piece: as many as 16 bytes of a row, or 4 bytes or outputs, where all of them begin at such a place. */
int vec_of(const reduce_pass *r, const void *x) {
    const int size = pass::size_of(r->type), vec = along(r) && size > 1 ? 16 / size : 4;
    const reduce_pass_side *in = along(r) ? &r->reduced : &r->kept, *out = along(r) ? &r->kept : &r->reduced;
    const int dense = in->strides[0] == 1 && in->dims[0] % vec == 0 && divides(in, 1, vec) &&
                      (out->count == 1 || divides(out, 0, vec));
    return dense && pass::aligned(x, vec * size) ? vec : 1;
}

/* Into how many parts an output is cut: so many that there are enough blocks, each with enough to do. By the narrowest
 * pieces, so that it does not depend on where tensors lie. */
int parts_of(const reduce_pass *r) {
    const int64_t blocks = along(r) ? r->kept.count : (r->kept.count + 127) / 128;
    const int64_t room = r->reduced.count / (along(r) ? 8192 : 64);
    int64_t parts = blocks < few_blocks / 2 ? (few_blocks + blocks - 1) / blocks : 1;
    if (parts > room) parts = room;
    return parts < 1 ? 1 : (int)parts;
}

bool is_few(const reduce_pass *r) {
    return r->reduced.count <= (along(r) ? few_along : few_across) && r->kept.count >= many_outputs;
}

/* Types and operators of the kernels here. */
bool is_usual(const reduce_pass *r) {
    static const int types[] = {PASS_FP32, PASS_FP16, PASS_BF16, PASS_INT64, PASS_INT32, PASS_INT8, PASS_UINT8};
    if (r->what == REDUCE_PASS_logsumexp || r->last) return false;
    for (int type : types)
        if (type == r->type) return true;
    return false;
}

} // namespace

int reduce_pass_fits(const reduce_pass *r) {
    const int threads = r->config.threads, size = pass::size_of(r->type);
    if (r->what < 0 || r->what >= REDUCE_PASS_COUNT || size == 0) return 0;
    if (!reduce_plain_takes(r) && !is_usual(r)) return 0;
    if (r->type != PASS_FP64 && is_whole(r->type) && (r->what == REDUCE_PASS_l2 || r->what == REDUCE_PASS_logsum))
        return 0;
    if (r->kept.rank < 1 || r->kept.rank > PASS_RANK || r->reduced.rank < 1 || r->reduced.rank > PASS_RANK) return 0;
    return r->kept.count > 0 && r->reduced.count > 0 && threads >= 0 && threads <= 512 && threads % 32 == 0 &&
           r->config.resident >= 0;
}

size_t reduce_pass_workspace(const reduce_pass *r) {
    if (reduce_plain_takes(r)) return 0;
    const int parts = parts_of(r);
    return parts > 1 ? (size_t)r->kept.count * (size_t)parts * sizeof(found<long long>) : 0;
}

const char *reduce_pass_mode(const reduce_pass *r) {
    const int cut = parts_of(r) > 1;
    if (reduce_plain_takes(r)) return "plain";
    if (is_few(r)) return "few";
    return along(r) ? cut ? "cut rows" : "rows" : cut ? "cut columns" : "columns";
}

int reduce_pass_launch(const reduce_pass *r, const void *x, void *y, void *workspace, void *stream) {
    if (!reduce_pass_fits(r)) return cudaErrorInvalidValue;
    if (reduce_plain_takes(r)) return reduce_plain_launch(r, x, y, stream);
    const int vec = vec_of(r, x), whole = is_whole(r->type), fold = folds[r->what], row = along(r);
    const bool each = is_few(r);
    const int threads = row || each ? pass::threads_of(r->config, 256) : column_threads * column_rows;
    job j = {};
    j.what = r->what, j.type = r->type, j.size = pass::size_of(r->type), j.parts = parts_of(r);
    j.outputs = r->kept.count, j.count = r->reduced.count, j.units = row ? j.count / vec : j.count;
    j.warps = row && j.parts == 1 && j.units <= (j.outputs >= many_rows ? 1024 : 256);
    j.x = x, j.y = y, j.rest = workspace;
    j.kept = pass::radix_of(r->kept.rank, r->kept.dims), j.reduced = pass::radix_of(r->reduced.rank, r->reduced.dims);
    for (int d = 0; d < PASS_RANK; d++)
        j.kept_strides[d] = r->kept.strides[d], j.reduced_strides[d] = r->reduced.strides[d];
    const int64_t strip = (int64_t)column_threads * vec, warps = threads / 32;
    const int64_t some = row || !pass::aligned(y, 16) ? 1 : vec;
    const int64_t tiles = each      ? (j.outputs / some + threads - 1) / threads
                          : !row    ? (j.outputs + strip - 1) / strip * j.parts
                          : j.warps ? (j.outputs + warps - 1) / warps
                                    : j.outputs * j.parts;
    void *args[] = {&j};
    const void *kernel = each  ? few_kernels[whole][some > 1][fold]
                         : row ? row_kernels[whole][vec > 1][fold]
                               : column_kernels[whole][vec > 1][fold];
    int error = cudaLaunchKernel(kernel, dim3(pass::blocks_of(r->config, tiles)), dim3((unsigned)threads), args, 0,
                                 (cudaStream_t)stream);
    if (!error && j.parts > 1)
        error = cudaLaunchKernel(together_kernels[whole][fold], dim3(pass::blocks_of({}, (j.outputs + 7) / 8)),
                                 dim3(256), args, 0, (cudaStream_t)stream);
    return error;
}
