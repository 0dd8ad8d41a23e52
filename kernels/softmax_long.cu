/* Softmax of long rows (long_rows.cuh), with nothing added before: each row is read once. Every warp takes its
 * exponentials against its own largest value, so that one meeting of the threads is enough: what the others' largest
 * makes of them is one factor. */
#include "kernels/long_rows.cuh"

using namespace long_rows;

namespace {

struct long_job {
    const void *x;
    void *y;
    int chunks; /* of a row */
    float scale;
};

struct shared_parts { /* of the block's warps: the largest value, and the sum of the exponentials */
    float2 parts[16];
};

/* For 16-bit values x is a multiple of log2(e): that is one multiplication less for each exponential, and its rounding
 * does not show there. */
template <class H> constexpr bool halves = H::TYPE != ROW_FP32;

template <class H> __device__ float exponential(float x) {
    if constexpr (!halves<H>) return expf(x);
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

template <class H>
__device__ void gather(const long_job &job, const typename H::chunk (&own)[H::V], float (&x)[H::V][H::N]) {
    const float scale = job.scale * (halves<H> ? 1.4426950408889634f : 1.0f);
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        unpack<H::TYPE, H::N>(own[v], x[v]);
#pragma unroll
        for (int k = 0; k < H::N; k++) x[v][k] *= scale;
        if (place<H>(v) < job.chunks) continue;
#pragma unroll
        for (int k = 0; k < H::N; k++) x[v][k] = -INFINITY;
    }
}

/* The largest value of this warp's part and the sum of its exponentials against `base` (0 where the part is empty, so
 * that nothing becomes not-a-number), which take x's place. */
template <class H> __device__ float2 warp_part(float (&x)[H::V][H::N], float *base) {
    constexpr int N = H::N;
    float lines[N];
#pragma unroll
    for (int k = 0; k < N; k++) lines[k] = x[0][k];
#pragma unroll
    for (int v = 1; v < H::V; v++)
#pragma unroll
        for (int k = 0; k < N; k++) lines[k] = fmaxf(lines[k], x[v][k]);
    const float most = warp_most(pairs_most<N>(lines));
    *base = most == -INFINITY ? 0 : most;
#pragma unroll
    for (int k = 0; k < N; k++) lines[k] = 0;
#pragma unroll
    for (int v = 0; v < H::V; v++)
#pragma unroll
        for (int k = 0; k < N; k++) x[v][k] = exponential<H>(x[v][k] - *base), lines[k] += x[v][k];
    return make_float2(most, warp_sum(pairs_sum<N>(lines)));
}

/* What this warp's exponentials are multiplied with. Every thread has all warps' parts, which is sooner done than
 * passing them round. */
template <class H> __device__ float factor_of(shared_parts &shared, float2 part, float base) {
    float most = -INFINITY, sum = 0;
    if ((threadIdx.x & 31) == 0) shared.parts[threadIdx.x >> 5] = part;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < H::WARPS; w++) most = fmaxf(most, shared.parts[w].x);
#pragma unroll
    for (int w = 0; w < H::WARPS; w++) { /* an empty part has no difference to take */
        const float2 one = shared.parts[w];
        sum += one.y == 0 ? 0 : one.y * exponential<H>(one.x - most);
    }
    return exponential<H>(fminf(base - most, 0)) / sum; /* a base above the largest is that of an empty part */
}

template <class H> __global__ void __launch_bounds__(H::T, 1024 / H::T) softmax_long_kernel(const long_job job) {
    __shared__ shared_parts shared;
    const int64_t row = blockIdx.x;
    typename H::chunk own[H::V];
    float x[H::V][H::N], base;
    bring_row<H>(job.x, row, job.chunks, own);
    gather<H>(job, own, x);
    const float2 part = warp_part<H>(x, &base);
    const float factor = factor_of<H>(shared, part, base);
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        if (place<H>(v) >= job.chunks) continue;
#pragma unroll
        for (int k = 0; k < H::N; k++) x[v][k] *= factor;
        leave<H>(job.y, row, job.chunks, v, x[v]);
    }
}

using kernel_fn = void (*)(const long_job);

template <int TYPE> kernel_fn by_threads(int known, int loads) {
    static const kernel_fn of[][2] = {{softmax_long_kernel<how<TYPE, 2, 64>>, softmax_long_kernel<how<TYPE, 4, 64>>},
                                      {softmax_long_kernel<how<TYPE, 2, 128>>, softmax_long_kernel<how<TYPE, 4, 128>>},
                                      {softmax_long_kernel<how<TYPE, 2, 256>>, softmax_long_kernel<how<TYPE, 4, 256>>},
                                      {softmax_long_kernel<how<TYPE, 2, 512>>, softmax_long_kernel<how<TYPE, 4, 512>>}};
    static_assert(sizeof of / sizeof of[0] == known_count, "kernels for each");
    return of[known][loads == 4];
}
kernel_fn kernel_of(const softmax_rows_shape *s, int threads) {
    const int known = known_of(threads), loads = loads_of(s->type, s->cols, threads);
    if (s->type == ROW_FP32) return by_threads<ROW_FP32>(known, loads);
    if (s->type == ROW_FP16) return by_threads<ROW_FP16>(known, loads);
    return by_threads<ROW_BF16>(known, loads);
}
} // namespace

/* The fewest threads first: they have four loads each under way. */
extern "C" int row_threads_long(int type, int64_t cols, int choice) {
    for (int threads : threads_known)
        if (loads_of(type, cols, threads) > 0 && choice-- == 0) return threads;
    return 0;
}

extern "C" int softmax_long_fits(const softmax_rows_shape *s, int threads) {
    if (s->rows < 1 || s->rows > most_rows || s->bias_rows != 0 || s->logarithm) return 0;
    return loads_of(s->type, s->cols, threads) > 0;
}

extern "C" int softmax_long_prepare(const softmax_rows_shape *shape, int threads, softmax_rows_plan *plan) {
    if (!softmax_long_fits(shape, threads)) return cudaErrorInvalidValue;
    *plan = {};
    plan->shape = *shape, plan->config.threads = threads, plan->config.streaming = 1;
    plan_launch(shape->rows, threads, (const void *)kernel_of(shape, threads), &plan->launch);
    return cudaSuccess;
}

extern "C" int softmax_long_launch(const softmax_rows_plan *plan, const void *x, void *y, void *stream) {
    const softmax_rows_shape *s = &plan->shape;
    long_job job = {x, y, (int)(s->cols / (s->type == ROW_FP32 ? 4 : 8)), s->scale};
    return rows::launch(&plan->launch, &job, stream);
}
