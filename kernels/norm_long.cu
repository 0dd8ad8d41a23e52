/* Layer and RMS norms of long rows (long_rows.cuh), with or without a residual whose sum is kept: each row is read
 * once. A variance is taken about the mean of each warp's part, and the parts are put together exactly, so that one
 * meeting of the threads is enough and nothing cancels. */
#include "kernels/long_rows.cuh"

using namespace long_rows;

namespace {

struct long_job {
    const void *x, *residual, *scale, *bias;
    void *y, *sum;
    int chunks;           /* of a row */
    float epsilon, share; /* share: of one column in the mean */
};

struct shared_parts { /* of the block's warps: the sum, and the squares of the distances from its mean */
    float2 parts[16];
};

/* Values that warp w has. */
template <class H> __device__ float counted(const long_job &job, int w) {
    int count = 0;
#pragma unroll
    for (int v = 0; v < H::V; v++) count += min(max(job.chunks - v * H::T - w * 32, 0), 32);
    return (float)(count * H::N);
}

template <class H> __device__ float total_of(const float (&x)[H::V][H::N]) {
    float lines[H::N] = {};
#pragma unroll
    for (int v = 0; v < H::V; v++)
#pragma unroll
        for (int k = 0; k < H::N; k++) lines[k] += x[v][k];
    return pairs_sum<H::N>(lines);
}

/* The squares of the distances from a centre. Behind the row's end there are zeros, which count nothing. */
template <class H> __device__ float squares_of(const long_job &job, const float (&x)[H::V][H::N], float centre) {
    float lines[H::N] = {};
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        if (H::FORM == NORM_FORM_CENTRED && place<H>(v) >= job.chunks) continue;
#pragma unroll
        for (int k = 0; k < H::N; k++) lines[k] += (x[v][k] - centre) * (x[v][k] - centre);
    }
    return pairs_sum<H::N>(lines);
}

/* The mean (0 where the form is not centred) and what values are multiplied with. Every thread has all warps' parts,
 * which is sooner done than passing them round. */
template <class H>
__device__ float2 statistics(const long_job &job, shared_parts &shared, const float (&x)[H::V][H::N]) {
    constexpr bool CENTRED = H::FORM == NORM_FORM_CENTRED;
    const int warp = (int)threadIdx.x >> 5;
    const float own = CENTRED ? counted<H>(job, warp) : 0;
    const float sum = CENTRED ? warp_sum(total_of<H>(x)) : 0;
    const float squares = warp_sum(squares_of<H>(job, x, own > 0 ? sum / own : 0));
    float mean = 0, total = 0;
    if ((threadIdx.x & 31) == 0) shared.parts[warp] = make_float2(sum, squares);
    __syncthreads();
#pragma unroll
    for (int w = 0; w < H::WARPS; w++) mean += shared.parts[w].x, total += shared.parts[w].y;
    mean *= job.share;
#pragma unroll
    for (int w = 0; CENTRED && w < H::WARPS; w++) {
        const float count = counted<H>(job, w), apart = shared.parts[w].x - count * mean;
        if (count > 0) total += __fdividef(apart * apart, count);
    }
    return make_float2(mean, rsqrtf(total * job.share + job.epsilon));
}

/* A chunk of a vector; `without`: what stands for it where there is none. */
template <class H> __device__ typename H::chunk side(const long_job &job, const void *vector, float without, int v) {
    float x[H::N];
#pragma unroll
    for (int k = 0; k < H::N; k++) x[k] = without;
    if (!vector || place<H>(v) >= job.chunks) return pack<H::TYPE, H::N>(x);
    return __ldg((const typename H::chunk *)vector + place<H>(v));
}

template <class H>
__device__ void write(const long_job &job, int64_t row, const float (&x)[H::V][H::N], float2 about,
                      const typename H::chunk (&scale)[H::V]) {
    constexpr int N = H::N;
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        float y[N], s[N], b[N] = {};
        if (place<H>(v) >= job.chunks) continue;
        unpack<H::TYPE, N>(scale[v], s);
        if constexpr (H::FORM == NORM_FORM_CENTRED) unpack<H::TYPE, N>(side<H>(job, job.bias, 0, v), b);
#pragma unroll
        for (int k = 0; k < N; k++) y[k] = (x[v][k] - about.x) * about.y * s[k] + b[k];
        leave<H>(job.y, row, job.chunks, v, y);
    }
}

/* A row that is centred has much to keep without any residual too: its scale is asked for late, and found near. */
template <class H> constexpr bool early = H::RESIDUAL || H::FORM != NORM_FORM_CENTRED;

template <class H>
__global__ void __launch_bounds__(H::T, (H::RESIDUAL ? 768 : 1024) / H::T) norm_long_kernel(const long_job job) {
    __shared__ shared_parts shared;
    constexpr int N = H::N;
    const int64_t row = blockIdx.x;
    typename H::chunk own[H::V], other[H::V], scale[H::V];
    float x[H::V][N];
    bring_row<H>(job.x, row, job.chunks, own);
    if constexpr (H::RESIDUAL) bring_row<H>(job.residual, row, job.chunks, other);
#pragma unroll
    for (int v = 0; early<H> && v < H::V; v++) scale[v] = side<H>(job, job.scale, 1, v);
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        unpack<H::TYPE, N>(own[v], x[v]);
        if constexpr (H::RESIDUAL) {
            float r[N];
            unpack<H::TYPE, N>(other[v], r);
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] += r[k];
            if (job.sum && place<H>(v) < job.chunks) leave<H>(job.sum, row, job.chunks, v, x[v]);
        }
    }
    const float2 about = statistics<H>(job, shared, x);
#pragma unroll
    for (int v = 0; !early<H> && v < H::V; v++) scale[v] = side<H>(job, job.scale, 1, v);
    write<H>(job, row, x, about, scale);
}

using kernel_fn = void (*)(const long_job);

template <int TYPE, bool RESIDUAL, int FORM> kernel_fn by_threads(int known, int loads) {
    static const kernel_fn of[][2] = {
        {norm_long_kernel<how<TYPE, 2, 64, RESIDUAL, FORM>>, norm_long_kernel<how<TYPE, 4, 64, RESIDUAL, FORM>>},
        {norm_long_kernel<how<TYPE, 2, 128, RESIDUAL, FORM>>, norm_long_kernel<how<TYPE, 4, 128, RESIDUAL, FORM>>},
        {norm_long_kernel<how<TYPE, 2, 256, RESIDUAL, FORM>>, norm_long_kernel<how<TYPE, 4, 256, RESIDUAL, FORM>>},
        {norm_long_kernel<how<TYPE, 2, 512, RESIDUAL, FORM>>, norm_long_kernel<how<TYPE, 4, 512, RESIDUAL, FORM>>}};
    static_assert(sizeof of / sizeof of[0] == known_count, "kernels for each");
    return of[known][loads == 4];
}
template <int TYPE, bool RESIDUAL> kernel_fn by_form(int form, int known, int loads) {
    return form == NORM_FORM_CENTRED ? by_threads<TYPE, RESIDUAL, NORM_FORM_CENTRED>(known, loads)
                                     : by_threads<TYPE, RESIDUAL, NORM_FORM_RMS>(known, loads);
}
template <int TYPE> kernel_fn by_residual(const norm_rows_shape *s, int known, int loads) {
    return s->has_residual ? by_form<TYPE, true>(s->form, known, loads) : by_form<TYPE, false>(s->form, known, loads);
}
kernel_fn kernel_of(const norm_rows_shape *s, int threads) {
    const int known = known_of(threads), loads = loads_of(s->type, s->cols, threads);
    if (s->type == ROW_FP32) return by_residual<ROW_FP32>(s, known, loads);
    if (s->type == ROW_FP16) return by_residual<ROW_FP16>(s, known, loads);
    return by_residual<ROW_BF16>(s, known, loads);
}
} // namespace

extern "C" int norm_long_fits(const norm_rows_shape *s, int threads) {
    if (s->rows < 1 || s->rows > most_rows || s->activation != NORM_ACTIVATION_NONE) return 0;
    if (s->form != NORM_FORM_CENTRED && s->form != NORM_FORM_RMS) return 0;
    if (s->sides > 0 && s->type_side != s->type) return 0;
    return loads_of(s->type, s->cols, threads) > 0;
}

extern "C" int norm_long_prepare(const norm_rows_shape *shape, int threads, norm_rows_plan *plan) {
    if (!norm_long_fits(shape, threads)) return cudaErrorInvalidValue;
    *plan = {};
    plan->shape = *shape, plan->config.threads = threads, plan->config.streaming = 1;
    plan_launch(shape->rows, threads, (const void *)kernel_of(shape, threads), &plan->launch);
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
