/* Softmax of long rows (long_rows.cuh), with or without a bias added before: each row is read once. Every warp takes
 * its exponentials against its own largest value, so that one meeting of the threads is enough: what the others'
 * largest makes of them is one factor. */
#include "kernels/rows/long_rows.cuh"
#include "kernels/rows/softmax_bias.cuh"

using namespace long_rows;

namespace {

struct long_job {
    const void *x, *bias;
    void *y;
    int chunks; /* of a row */
    float scale;
    softmax_bias::turns turns;
};

/* For 16-bit values everything is a multiple of log2(e): that is one multiplication less for each exponential, and its
 * rounding does not show there. */
template <class H> constexpr float unit = H::HALF ? 1.4426950408889634f : 1.0f;

template <class H> __device__ float exponential(float x) {
    if constexpr (!H::HALF) return expf(x);
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Behind the row's end there is minus infinity. */
template <int TYPE>
constexpr unsigned nothing = TYPE == ROW_FP32   ? 0xff800000u
                             : TYPE == ROW_FP16 ? 0xfc00fc00u
                                                : 0xff80ff80u;

/* Of two words, value by value. */
template <int TYPE> __device__ unsigned larger(unsigned a, unsigned b) {
    if constexpr (TYPE == ROW_FP32) return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
    if constexpr (TYPE == ROW_FP16) {
        const __half2 most = __hmax2(*(const __half2 *)&a, *(const __half2 *)&b);
        return *(const unsigned *)&most;
    }
    const __nv_bfloat162 most = __hmax2(*(const __nv_bfloat162 *)&a, *(const __nv_bfloat162 *)&b);
    return *(const unsigned *)&most;
}

/* The largest of this thread's values, found before they are unpacked. */
template <class H> __device__ float raw_most(const typename H::chunk (&own)[H::V]) {
    unsigned most = own[0].x;
#pragma unroll
    for (int v = 0; v < H::V; v++)
        most = larger<H::TYPE>(larger<H::TYPE>(most, larger<H::TYPE>(own[v].x, own[v].y)),
                               larger<H::TYPE>(own[v].z, own[v].w));
    if constexpr (!H::HALF) return __uint_as_float(most);
    const float2 both = up_two<H::TYPE>(most);
    return fmaxf(both.x, both.y);
}

/* Integers are ordered as the floats are whose bits they get here, and back. A warp finds their largest at once. */
__device__ int ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
__device__ float warp_most(float x) {
    return __int_as_float(ordered(__reduce_max_sync(0xffffffffu, ordered(__float_as_int(x)))));
}

/* Of scale * x + bias, where x is and stays: the largest of the warp, in units. */
template <class H>
__device__ float gather(const long_job &job, const typename H::chunk (&own)[H::V],
                        const typename H::chunk (&bias)[H::V], float (&x)[H::V][H::N]) {
    const float scale = job.scale * unit<H>;
#pragma unroll
    for (int v = 0; v < H::V; v++) unpack<H::TYPE, H::N>(own[v], x[v]);
    if constexpr (H::EXTRA) {
        float lines[H::N];
#pragma unroll
        for (int v = 0; v < H::V; v++) {
            float b[H::N];
            unpack<H::TYPE, H::N>(bias[v], b);
#pragma unroll
            for (int k = 0; k < H::N; k++) {
                x[v][k] = x[v][k] * scale + b[k] * unit<H>;
                lines[k] = v == 0 ? x[v][k] : fmaxf(lines[k], x[v][k]);
            }
        }
        return warp_most(pairs_most<H::N>(lines));
    } else {
        return warp_most(raw_most<H>(own)) * scale;
    }
}

/* The exponentials against `base`, and their sum in the warp. */
template <class H> __device__ float raise(const long_job &job, float base, float (&x)[H::V][H::N]) {
    const float scale = H::EXTRA ? 1.0f : job.scale * unit<H>;
    float lines[H::N] = {};
#pragma unroll
    for (int v = 0; v < H::V; v++)
#pragma unroll
        for (int k = 0; k < H::N; k++) {
            x[v][k] = exponential<H>(fmaf(x[v][k], scale, -base));
            lines[k] += x[v][k];
        }
    return lanes_total(pairs_sum<H::N>(lines));
}

/* What this warp's exponentials are multiplied with. */
template <class H> __device__ float factor_of(float2 (&room)[H::WARPS], float most, float sum, float base) {
    const float2 part = swap_parts<H>(room, make_float2(most, sum));
    const float top = warp_most(part.x);
    /* an empty part has no difference to take */
    const float all = lanes_total<H::WARPS>(part.y == 0 ? 0 : part.y * exponential<H>(part.x - top));
    return exponential<H>(fminf(base - top, 0)) / all; /* a base above the largest is that of an empty part */
}

template <class H> __global__ void __launch_bounds__(H::T, held<H> / H::T) softmax_long_kernel(const long_job job) {
    __shared__ float2 room[H::WARPS];
    const int64_t row = blockIdx.x;
    typename H::chunk own[H::V], bias[H::V];
    float x[H::V][H::N];
    bring_row<H>(job.x, row, job.chunks, nothing<H::TYPE>, own);
    if constexpr (H::EXTRA) bring_row<H, true>(job.bias, softmax_bias::row_of(job.turns, row), job.chunks, 0, bias);
    const float most = gather<H>(job, own, bias, x), base = most == -INFINITY ? 0 : most;
    const float sum = raise<H>(job, base, x), factor = factor_of<H>(room, most, sum, base);
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        if (!there<H>(job.chunks, v)) continue;
#pragma unroll
        for (int k = 0; k < H::N; k++) x[v][k] *= factor;
        leave<H>(job.y, row, job.chunks, v, x[v]);
    }
}

using kernel_fn = void (*)(const long_job);

template <int TYPE, int V, bool BIAS> kernel_fn by_threads(int known, bool whole, bool once) {
#define OF(threads, whole, once) softmax_long_kernel<how<TYPE, V, threads, whole, BIAS, once>>
    static const kernel_fn of[known_count][2][2] = LONG_ROWS_KERNELS(OF);
#undef OF
    return of[known][whole][once];
}
template <int TYPE, bool BIAS> kernel_fn by_loads(const softmax_rows_shape *s, const row_config &c) {
    const int known = known_of(c.threads), loads = loads_of(s->type, s->cols, c.threads);
    const bool whole = s->cols == (int64_t)loads * c.threads * wide_of<TYPE>, once = c.streaming != 0;
    return loads == 2 ? by_threads<TYPE, 2, BIAS>(known, whole, once) : by_threads<TYPE, 4, BIAS>(known, whole, once);
}
template <int TYPE> kernel_fn by_bias(const softmax_rows_shape *s, const row_config &c) {
    return s->bias_rows > 0 ? by_loads<TYPE, true>(s, c) : by_loads<TYPE, false>(s, c);
}
kernel_fn kernel_of(const softmax_rows_shape *s, const row_config &c) {
    if (s->type == ROW_FP32) return by_bias<ROW_FP32>(s, c);
    if (s->type == ROW_FP16) return by_bias<ROW_FP16>(s, c);
    return by_bias<ROW_BF16>(s, c);
}
} // namespace

/* The most threads first: of two loads each a block is done soonest, and as many bytes are under way in all. */
extern "C" int row_threads_long(int type, int64_t cols, int choice) {
    for (int k = known_count - 1; k >= 0; k--)
        if (loads_of(type, cols, threads_known[k]) > 0 && choice-- == 0) return threads_known[k];
    return 0;
}

/* By a scale above zero the largest value stays the largest. */
extern "C" int softmax_long_fits(const softmax_rows_shape *s, const row_config *config) {
    if (s->rows < 1 || s->rows > most_rows || s->logarithm || !(s->scale > 0) || !softmax_bias::possible(s)) return 0;
    return loads_of(s->type, s->cols, config->threads) > 0;
}

extern "C" int softmax_long_prepare(const softmax_rows_shape *shape, const row_config *config,
                                    softmax_rows_plan *plan) {
    if (!softmax_long_fits(shape, config)) return cudaErrorInvalidValue;
    *plan = {};
    plan->shape = *shape, plan->config = *config;
    plan_launch(shape->rows, *config, (const void *)kernel_of(shape, *config), &plan->launch);
    return cudaSuccess;
}

extern "C" int softmax_long_launch(const softmax_rows_plan *plan, const void *x, const void *bias, void *y,
                                   void *stream) {
    const softmax_rows_shape *s = &plan->shape;
    if (!bias != (s->bias_rows == 0)) return cudaErrorInvalidValue;
    long_job job = {x, bias, y, (int)(s->cols / (s->type == ROW_FP32 ? 4 : 8)), s->scale, softmax_bias::turns_of(s)};
    return rows::launch(&plan->launch, &job, stream);
}
