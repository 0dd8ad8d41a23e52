/* Layer and RMS norms of long rows (long_rows.cuh), with or without a residual whose sum is kept: each row is read
 * once. A variance is taken about the mean of each warp's part, and the parts are put together exactly, so that one
 * synchronisation is enough and nothing cancels. */
#include "kernels/rows/long_rows.cuh"

using namespace long_rows;

namespace {

struct long_job {
    const void *x, *residual, *scale, *bias;
    void *y, *sum;
    int chunks;           /* of a row */
    float epsilon, share; /* share: of one column in the mean */
};

template <class H> constexpr bool centred = H::FORM == NORM_FORM_CENTRED;

/* Values that warp w has. */
template <class H> __device__ float counted(const long_job &job, int w) {
    if constexpr (H::WHOLE) return (float)(H::V * 32 * H::N);
    int count = 0;
#pragma unroll
    for (int v = 0; v < H::V; v++) count += min(max(job.chunks - v * H::T - w * 32, 0), 32);
    return (float)(count * H::N);
}

template <class H> __device__ float total_of(const float (&x)[H::V][H::N]) {
    float lines[H::N];
#pragma unroll
    for (int k = 0; k < H::N; k++) lines[k] = x[0][k];
#pragma unroll
    for (int v = 1; v < H::V; v++)
#pragma unroll
        for (int k = 0; k < H::N; k++) lines[k] += x[v][k];
    return pairs_sum<H::N>(lines);
}

/* Takes a centre from this thread's values, and gives their squares. Behind the row's end there are zeros, which count
 * nothing. */
template <class H> __device__ float squares_of(const long_job &job, float (&x)[H::V][H::N], float centre) {
    float lines[H::N] = {};
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        if (centred<H> && !there<H>(job.chunks, v)) continue;
#pragma unroll
        for (int k = 0; k < H::N; k++) {
            if (centred<H>) x[v][k] -= centre;
            lines[k] += x[v][k] * x[v][k];
        }
    }
    return pairs_sum<H::N>(lines);
}

/* What a row's values, of which the mean of their warp's part is taken, are multiplied with, and what is added then.
 * Warps' squares are brought to the mean of the first warp, from which that of all is no further than the values are
 * spread, and then to that of all. */
template <class H> __device__ float2 statistics(const long_job &job, float2 (&room)[H::WARPS], float (&x)[H::V][H::N]) {
    if constexpr (!centred<H>) {
        const float2 part = swap_parts<H>(room, make_float2(0, lanes_total(squares_of<H>(job, x, 0))));
        return make_float2(rsqrtf(lanes_total<H::WARPS>(part.y) * job.share + job.epsilon), 0);
    } else {
        const float own = counted<H>(job, (int)threadIdx.x >> 5), sum = lanes_total(total_of<H>(x));
        const float middle = own > 0 ? __fdividef(sum, own) : 0;
        const float squares = lanes_total(squares_of<H>(job, x, middle));
        const float2 part = swap_parts<H>(room, make_float2(sum, squares));
        const float count = counted<H>(job, (int)threadIdx.x & (H::WARPS - 1));
        const float pivot = room[0].x * __fdividef(1.0f, counted<H>(job, 0)), apart = part.x - count * pivot;
        const float far = lanes_total<H::WARPS>(apart) * job.share;
        const float total = lanes_total<H::WARPS>(part.y + (count > 0 ? __fdividef(apart * apart, count) : 0));
        const float factor = rsqrtf(fmaxf(total * job.share - far * far, 0) + job.epsilon);
        return make_float2(factor, (middle - pivot - far) * factor);
    }
}

/* What stands for a scale that is missing. */
template <int TYPE> __device__ const uint4 ones = {};
template <> __device__ const uint4 ones<ROW_FP32> = {0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000};
template <> __device__ const uint4 ones<ROW_FP16> = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
template <> __device__ const uint4 ones<ROW_BF16> = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
__device__ const uint4 zeros = {};

/* Chunk v of this thread of a vector, or what stands for it where there is none: without a branch for either. */
template <class H> __device__ uint4 side(const void *vector, const uint4 &without, int v) {
    const uint4 *const from = vector ? (const uint4 *)vector + threadIdx.x : &without;
    return __ldg(from + (vector ? v * H::T : 0));
}

template <class H> __device__ void take_scale(const long_job &job, uint4 (&scale)[H::V]) {
#pragma unroll
    for (int v = 0; v < H::V; v++)
        if (there<H>(job.chunks, v)) scale[v] = side<H>(job.scale, ones<H::TYPE>, v);
}

template <class H>
__device__ void write(const long_job &job, int64_t row, const float (&x)[H::V][H::N], float2 made,
                      const typename H::chunk (&scale)[H::V]) {
    constexpr int N = H::N;
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        float y[N], s[N], b[N] = {};
        if (!there<H>(job.chunks, v)) continue;
        unpack<H::TYPE, N>(scale[v], s);
        if constexpr (centred<H>) unpack<H::TYPE, N>(side<H>(job.bias, zeros, v), b);
#pragma unroll
        for (int k = 0; k < N; k++) y[k] = (x[v][k] * made.x + made.y) * s[k] + b[k];
        leave<H>(job.y, row, job.chunks, v, y);
    }
}

/* The scale is asked for together with the row where there are registers for it. Else it is found near. */
template <class H> constexpr bool early = H::EXTRA || !centred<H> || (H::V == 2 && H::WHOLE);

template <class H> __global__ void __launch_bounds__(H::T, held<H> / H::T) norm_long_kernel(const long_job job) {
    __shared__ float2 room[H::WARPS];
    constexpr int N = H::N;
    const int64_t row = blockIdx.x;
    typename H::chunk own[H::V], other[H::V], scale[H::V];
    float x[H::V][N];
    bring_row<H>(job.x, row, job.chunks, 0, own);
    if constexpr (H::EXTRA) bring_row<H>(job.residual, row, job.chunks, 0, other);
    if constexpr (early<H>) take_scale<H>(job, scale);
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        unpack<H::TYPE, N>(own[v], x[v]);
        if constexpr (H::EXTRA) {
            float r[N];
            unpack<H::TYPE, N>(other[v], r);
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] += r[k];
            if (job.sum && there<H>(job.chunks, v)) leave<H>(job.sum, row, job.chunks, v, x[v]);
        }
    }
    const float2 made = statistics<H>(job, room, x);
    if constexpr (!early<H>) take_scale<H>(job, scale);
    write<H>(job, row, x, made, scale);
}

using kernel_fn = void (*)(const long_job);

template <int TYPE, int V, bool RESIDUAL, int FORM> kernel_fn by_threads(int known, bool whole, bool once) {
#define OF(threads, whole, once) norm_long_kernel<how<TYPE, V, threads, whole, RESIDUAL, once, FORM>>
    static const kernel_fn of[known_count][2][2] = LONG_ROWS_KERNELS(OF);
#undef OF
    return of[known][whole][once];
}
template <int TYPE, bool RESIDUAL, int FORM> kernel_fn by_loads(const norm_rows_shape *s, const row_config &c) {
    const int known = known_of(c.threads), loads = loads_of(s->type, s->cols, c.threads);
    const bool whole = s->cols == (int64_t)loads * c.threads * wide_of<TYPE>, once = c.streaming != 0;
    return loads == 2 ? by_threads<TYPE, 2, RESIDUAL, FORM>(known, whole, once)
                      : by_threads<TYPE, 4, RESIDUAL, FORM>(known, whole, once);
}
template <int TYPE, bool RESIDUAL> kernel_fn by_form(const norm_rows_shape *s, const row_config &c) {
    return s->form == NORM_FORM_CENTRED ? by_loads<TYPE, RESIDUAL, NORM_FORM_CENTRED>(s, c)
                                        : by_loads<TYPE, RESIDUAL, NORM_FORM_RMS>(s, c);
}
template <int TYPE> kernel_fn by_residual(const norm_rows_shape *s, const row_config &c) {
    return s->has_residual ? by_form<TYPE, true>(s, c) : by_form<TYPE, false>(s, c);
}
kernel_fn kernel_of(const norm_rows_shape *s, const row_config &c) {
    if (s->type == ROW_FP32) return by_residual<ROW_FP32>(s, c);
    if (s->type == ROW_FP16) return by_residual<ROW_FP16>(s, c);
    return by_residual<ROW_BF16>(s, c);
}
} // namespace

extern "C" int norm_long_fits(const norm_rows_shape *s, const row_config *config) {
    if (s->rows < 1 || s->rows > most_rows || s->activation != NORM_ACTIVATION_NONE) return 0;
    if (s->form != NORM_FORM_CENTRED && s->form != NORM_FORM_RMS) return 0;
    if (s->sides > 0 && s->type_side != s->type) return 0;
    return loads_of(s->type, s->cols, config->threads) > 0;
}

extern "C" int norm_long_prepare(const norm_rows_shape *shape, const row_config *config, norm_rows_plan *plan) {
    if (!norm_long_fits(shape, config)) return cudaErrorInvalidValue;
    *plan = {};
    plan->shape = *shape, plan->config = *config;
    plan_launch(shape->rows, *config, (const void *)kernel_of(shape, *config), &plan->launch);
    return cudaSuccess;
}

extern "C" int norm_long_launch(const norm_rows_plan *plan, const norm_tensors *t, void *stream) {
    const norm_rows_shape *s = &plan->shape;
    const bool centred = s->form == NORM_FORM_CENTRED;
    if (t->input_bias || (t->bias && !centred) || (t->sum && !s->has_residual)) return cudaErrorInvalidValue;
    if (!t->residual != !s->has_residual || s->sides != !!t->scale + !!t->bias) return cudaErrorInvalidValue;
    long_job job = {t->x, t->residual, t->scale, t->bias, t->y, t->sum, 0, s->epsilon, 1.0f / (float)s->cols};
    job.chunks = (int)(s->cols / (s->type == ROW_FP32 ? 4 : 8));
    return rows::launch(&plan->launch, &job, stream);
}
