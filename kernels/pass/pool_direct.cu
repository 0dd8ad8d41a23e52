/* Pools as a direct loop over the window. Both layouts are one: an item of the output (an element, or some channels of
 * a place) has an outer index (a plane of nchw, an image of nhwc), a place, and an inner index (channels of nhwc),
 * which runs fastest, as it lies. Small windows are one thread's, unrolled so that their loads are under way together;
 * large ones are shared by some lanes. */
#include "kernels/pass/pool_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

static constexpr int pool_threads = 256;

/* Division by a number that is the same for all threads, of numbers below 2^31. */
typedef struct pool_divisor {
    uint32_t by, factor, shift;
} pool_divisor;

/* An operation as the kernels take it. */
typedef struct pool_job {
    pool_axis axes[POOL_AXES];
    pool_divisor inner, width, height, depth; /* of the output */
    uint32_t items;                           /* of this launch */
    int64_t in_outer, out_outer, step;        /* elements between planes or images, and between places */
    int average, padded, lanes, adjacent;     /* adjacent: the lanes of a window are neighbours */
    pool_quant quant;
} pool_job;

static pool_divisor pool_divisor_of(uint32_t by) {
    uint32_t shift = 0;
    while (((uint64_t)1 << shift) < by) shift++;
    const uint64_t factor = (((uint64_t)1 << 32) * (((uint64_t)1 << shift) - by)) / by + 1;
    const pool_divisor d = {by, (uint32_t)factor, shift};
    return d;
}

__device__ inline uint32_t pool_divide(const pool_divisor &d, uint32_t x, uint32_t *rest) {
    const uint32_t q = (__umulhi(x, d.factor) + x) >> d.shift;
    *rest = x - q * d.by;
    return q;
}

__device__ inline float pool_widen(float x) { return x; }
__device__ inline float pool_widen(__half x) { return __half2float(x); }
__device__ inline float pool_widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float pool_widen(int8_t x) { return (float)x; }
__device__ inline float pool_widen(uint8_t x) { return (float)x; }
__device__ inline void pool_narrow(float *to, float x) { *to = x; }
__device__ inline void pool_narrow(__half *to, float x) { *to = __float2half_rn(x); }
__device__ inline void pool_narrow(__nv_bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }
__device__ inline void pool_narrow(int8_t *to, float x) { *to = (int8_t)(int)x; }
__device__ inline void pool_narrow(uint8_t *to, float x) { *to = (uint8_t)(int)x; }

template <typename T, int many> struct alignas(sizeof(T) * many) pool_pack { T values[many]; };

template <typename T, int many> struct pool_sum {
    float values[many];

    __device__ inline void clear(int average) {
#pragma unroll
        for (int k = 0; k < many; k++) values[k] = average ? 0.0f : -INFINITY;
    }
    __device__ inline void add(float x, int k, int average) {
        values[k] = average ? values[k] + x : fmaxf(values[k], x);
    }
    /* The zero point is subtracted from bytes first, so that sums stay small enough to be exact. */
    __device__ inline void add(const T *from, const pool_job &j) {
        const pool_pack<T, many> p = *(const pool_pack<T, many> *)from;
        const float zero = sizeof(T) == 1 ? (float)j.quant.zero : 0.0f;
#pragma unroll
        for (int k = 0; k < many; k++) {
            const float x = pool_widen(p.values[k]);
            add(sizeof(T) == 1 ? x - zero : x, k, j.average);
        }
    }
    __device__ inline void write(T *to, float divisor, const pool_job &j) const {
        pool_pack<T, many> p;
#pragma unroll
        for (int k = 0; k < many; k++) {
            float y = j.average ? values[k] / divisor : values[k];
            if (sizeof(T) == 1 && j.quant.is)
                y = rintf(fminf(fmaxf(j.quant.factor * y, j.quant.least), j.quant.most)) + (float)j.quant.zero;
            pool_narrow(&p.values[k], y);
        }
        *(pool_pack<T, many> *)to = p;
    }
};

/* The taps of a window that lie inside of the input, and how many an average divides by. */
typedef struct pool_span {
    int from, taps, count;
} pool_span;

__device__ inline pool_span pool_span_of(const pool_axis &a, int place, int padded) {
    const int start = place * a.stride - a.begin;
    const int first = start >= 0 ? 0 : a.dilation == 1 ? -start : (-start + a.dilation - 1) / a.dilation;
    pool_span s = {start + first * a.dilation, 0, 0};
    if (s.from < a.in && first < a.kernel) {
        const int fit = a.dilation == 1 ? a.in - s.from : (a.in - 1 - s.from) / a.dilation + 1;
        s.taps = min(fit, a.kernel - first);
    }
    s.count = s.taps;
    if (padded) {
        const int room = a.in + a.begin + a.end - place * a.stride;
        s.count = min((room + a.dilation - 1) / a.dilation, a.kernel);
    }
    return s;
}

typedef struct pool_place {
    int64_t in, out; /* offsets of the item's first place */
    int at[POOL_AXES];
    float divisor;
    pool_span spans[POOL_AXES];
} pool_place;

template <int many> __device__ inline pool_place pool_place_of(const pool_job &j, uint32_t item) {
    pool_place p;
    uint32_t inner, x, y, z;
    const uint32_t pixel = pool_divide(j.inner, item, &inner);
    const uint32_t row = pool_divide(j.width, pixel, &x), slice = pool_divide(j.height, row, &y);
    const uint32_t outer = pool_divide(j.depth, slice, &z);
    const uint32_t inside = pixel - outer * (j.depth.by * j.height.by * j.width.by);
    p.at[0] = (int)z, p.at[1] = (int)y, p.at[2] = (int)x;
    p.in = (int64_t)outer * j.in_outer + (int64_t)inner * many;
    p.out = (int64_t)outer * j.out_outer + (int64_t)inside * j.step + (int64_t)inner * many;
    p.divisor = 1;
#pragma unroll
    for (int k = 0; k < POOL_AXES; k++) {
        p.spans[k] = pool_span_of(j.axes[k], p.at[k], j.padded);
        p.divisor *= (float)p.spans[k].count;
    }
    return p;
}

__device__ inline int64_t pool_offset(const pool_job &j, int z, int y, int x) {
    return (((int64_t)z * j.axes[1].in + y) * j.axes[2].in + x) * j.step;
}

/* height and width 0: any window. Else a flat one of that size without dilation. */
template <typename T, int many, int height, int width>
__global__ void __launch_bounds__(pool_threads) pool_single(pool_job j, const T *__restrict__ in, T *__restrict__ out) {
    const uint32_t item = blockIdx.x * (uint32_t)pool_threads + threadIdx.x;
    pool_sum<T, many> sum;
    if (item >= j.items) return;
    const pool_place p = pool_place_of<many>(j, item);
    sum.clear(j.average);
    in += p.in;
    if (height > 0) {
        const int y = p.at[1] * j.axes[1].stride - j.axes[1].begin, x = p.at[2] * j.axes[2].stride - j.axes[2].begin;
#pragma unroll
        for (int k = 0; k < height; k++)
#pragma unroll
            for (int i = 0; i < width; i++)
                if ((uint32_t)(y + k) < (uint32_t)j.axes[1].in && (uint32_t)(x + i) < (uint32_t)j.axes[2].in)
                    sum.add(in + pool_offset(j, p.spans[0].from, y + k, x + i), j);
    } else {
        for (int d = 0; d < p.spans[0].taps; d++)
            for (int k = 0; k < p.spans[1].taps; k++) {
                const int z = p.spans[0].from + d * j.axes[0].dilation, y = p.spans[1].from + k * j.axes[1].dilation;
                const T *at = in + pool_offset(j, z, y, p.spans[2].from);
                for (int i = 0; i < p.spans[2].taps; i++, at += j.step * j.axes[2].dilation) sum.add(at, j);
            }
    }
    sum.write(out + p.out, p.divisor, j);
}

/* Every `lanes`-th tap from `lane` on. Whole rows behind each other are one long row. */
template <typename T, int many>
__device__ inline void pool_share(const pool_job &j, const pool_place &p, const T *in, int lane,
                                  pool_sum<T, many> *sum) {
    const pool_span d = p.spans[0], h = p.spans[1], w = p.spans[2];
    const bool rows = w.taps == j.axes[2].in && j.axes[1].dilation == 1 && (j.axes[2].dilation == 1 || w.taps == 1);
    const bool slices = rows && h.taps == j.axes[1].in && j.axes[0].dilation == 1;
    const int outer = slices ? 1 : d.taps, middle = rows ? 1 : h.taps;
    const int64_t inner = (int64_t)w.taps * (rows ? h.taps : 1) * (slices ? d.taps : 1);
    const int64_t step = j.step * (rows ? 1 : j.axes[2].dilation);
    int64_t i = lane; /* within a row: what goes beyond it belongs to the next ones */
    for (int a = 0; a < outer; a++)
        for (int b = 0; b < middle; b++) {
            const T *const row =
                in + pool_offset(j, d.from + a * j.axes[0].dilation, h.from + b * j.axes[1].dilation, w.from);
#pragma unroll 4
            for (; i < inner; i += j.lanes) sum->add(row + i * step, j);
            i -= inner;
        }
}

template <typename T, int many>
__global__ void __launch_bounds__(pool_threads) pool_shared(pool_job j, const T *__restrict__ in, T *__restrict__ out) {
    __shared__ float parts[many][pool_threads]; /* by lane, then by window */
    const int windows = pool_threads / j.lanes, t = (int)threadIdx.x;
    const int lane = j.adjacent ? t % j.lanes : t / windows, window = j.adjacent ? t / j.lanes : t % windows;
    const uint32_t item = blockIdx.x * (uint32_t)windows + (uint32_t)window;
    const bool there = item < j.items;
    pool_place p = {};
    pool_sum<T, many> sum;
    sum.clear(j.average);
    if (there) {
        p = pool_place_of<many>(j, item);
        pool_share<T, many>(j, p, in + p.in, lane, &sum);
    }
#pragma unroll
    for (int k = 0; k < many; k++) parts[k][lane * windows + window] = sum.values[k];
    __syncthreads();
    if (!there || lane != 0) return;
#pragma unroll
    for (int k = 0; k < many; k++)
        for (int l = 1; l < j.lanes; l++) sum.add(parts[k][l * windows + window], k, j.average);
    sum.write(out + p.out, p.divisor, j);
}

/* --- on the host --- */

typedef int pool_launch_fn(const pool_shape *, const pool_job *, const void *, void *, cudaStream_t);

static bool pool_flat(const pool_shape *s, int size) {
    const pool_axis *const a = s->axes;
    return a[0].kernel == 1 && a[1].kernel == size && a[2].kernel == size && a[1].dilation == 1 && a[2].dilation == 1;
}

template <typename T, int many>
static int pool_launch(const pool_shape *s, const pool_job *j, const void *in, void *out, cudaStream_t stream) {
    const T *const from = (const T *)in;
    T *const to = (T *)out;
    const uint32_t windows = (uint32_t)(pool_threads / j->lanes), blocks = (j->items + windows - 1) / windows;
    if (j->lanes > 1)
        pool_shared<T, many><<<blocks, pool_threads, 0, stream>>>(*j, from, to);
    else if (pool_flat(s, 2))
        pool_single<T, many, 2, 2><<<blocks, pool_threads, 0, stream>>>(*j, from, to);
    else if (pool_flat(s, 3))
        pool_single<T, many, 3, 3><<<blocks, pool_threads, 0, stream>>>(*j, from, to);
    else
        pool_single<T, many, 0, 0><<<blocks, pool_threads, 0, stream>>>(*j, from, to);
    return cudaGetLastError();
}

typedef struct pool_type {
    int type, bytes;
    pool_launch_fn *plain, *vector;
} pool_type;

static const pool_type *pool_type_of(int type) {
    static const pool_type types[] = {
        {POOL_FP32, 4, pool_launch<float, 1>, pool_launch<float, 4>},
        {POOL_FP16, 2, pool_launch<__half, 1>, pool_launch<__half, 8>},
        {POOL_BF16, 2, pool_launch<__nv_bfloat16, 1>, pool_launch<__nv_bfloat16, 8>},
        {POOL_INT8, 1, pool_launch<int8_t, 1>, pool_launch<int8_t, 16>},
        {POOL_UINT8, 1, pool_launch<uint8_t, 1>, pool_launch<uint8_t, 16>},
    };
    for (const pool_type &t : types)
        if (t.type == type) return &t;
    return NULL;
}

static int64_t pool_places(const pool_shape *s, bool out) {
    int64_t places = 1;
    for (const pool_axis &a : s->axes) places *= out ? a.out : a.in;
    return places;
}

static constexpr int64_t pool_most_items = 0x7fffffff;

extern "C" int pool_direct_fits(const pool_shape *s, const pool_config *c) {
    const pool_type *const type = pool_type_of(s->type);
    if (s->quant.is && (!s->average || !type || type->bytes != 1)) return 0;
    if (!type || (c->lanes != 1 && c->lanes != 8 && c->lanes != POOL_MOST_LANES) || s->n < 1 || s->channels < 1)
        return 0;
    if (c->vector && (!s->last || s->channels % (16 / type->bytes) != 0)) return 0;
    double in = 1, out = 1;
    for (const pool_axis &a : s->axes) {
        const int numbers[] = {a.in, a.out, a.kernel, a.stride, a.dilation, a.begin, a.end};
        for (const int x : numbers)
            if (x < 0 || x > POOL_LARGEST) return 0;
        in *= a.in, out *= a.out;
    }
    if (s->last) out *= (double)s->channels;
    return in <= (double)pool_most_items && out <= (double)pool_most_items && in >= 1 && out >= 1;
}

/* As many planes or images at once as there are numbers for. */
extern "C" int pool_direct_launch(const pool_shape *s, const pool_config *c, const void *in, void *out, void *stream) {
    if (!pool_direct_fits(s, c)) return cudaErrorInvalidValue;
    const pool_type *const type = pool_type_of(s->type);
    const int64_t many = c->vector ? 16 / type->bytes : 1, outers = s->last ? s->n : s->n * s->channels;
    const int64_t inner = s->last ? s->channels / many : 1, items = inner * pool_places(s, true);
    const int64_t at_once = pool_most_items / items;
    pool_job j = {};
    for (int k = 0; k < POOL_AXES; k++) j.axes[k] = s->axes[k];
    j.inner = pool_divisor_of((uint32_t)inner);
    j.depth = pool_divisor_of((uint32_t)s->axes[0].out);
    j.height = pool_divisor_of((uint32_t)s->axes[1].out);
    j.width = pool_divisor_of((uint32_t)s->axes[2].out);
    j.step = s->last ? s->channels : 1;
    j.in_outer = pool_places(s, false) * j.step, j.out_outer = pool_places(s, true) * j.step;
    j.quant = s->quant;
    j.average = s->average, j.padded = s->padded, j.lanes = c->lanes, j.adjacent = !s->last;
    for (int64_t k = 0; k < outers; k += at_once) {
        const int64_t now = outers - k < at_once ? outers - k : at_once;
        j.items = (uint32_t)(now * items);
        const int error =
            (c->vector ? type->vector : type->plain)(s, &j, (const char *)in + k * j.in_outer * type->bytes,
                                                     (char *)out + k * j.out_outer * type->bytes, (cudaStream_t)stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
