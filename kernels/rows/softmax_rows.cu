/* Softmax, and its logarithm, of rows that fit into the registers of their threads (rows.cuh): each is read once. Every
 * warp takes its exponentials against its own largest value, so that one meeting of the threads is enough: what the
 * others' largest makes of them is one factor. */
#include "kernels/rows/rows.cuh"
#include "kernels/rows/softmax_bias.cuh"

using namespace rows;

namespace {

struct softmax_job {
    const void *x, *bias;
    void *y;
    int64_t count; /* rows */
    float scale;
    softmax_bias::turns turns;
    int cols, logarithm, streaming;
};

struct shared_parts { /* of the block's warps; two sets in turn, so that no warp overwrites what is still read */
    float most[2][32], sums[2][32];
};

/* A fast exponential is off by some units of fp32, which 16-bit outputs do not show. */
template <int TYPE> __device__ float exponential(float x) { return TYPE == ROW_FP32 ? expf(x) : __expf(x); }

/* scale * x + bias, and minus infinity behind the row's end. */
template <int TYPE, int N, int V, bool BIAS>
__device__ void gather(const softmax_job &job, const raw<TYPE, N> *own, const raw<TYPE, N> *bias, float (&x)[V][N]) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        unpack<TYPE, N>(own[v], x[v]);
        if constexpr (BIAS) {
            float b[N];
            unpack<TYPE, N>(bias[v], b);
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] = x[v][k] * job.scale + b[k];
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] *= job.scale;
        }
        if (column<N>(v) < job.cols) continue;
#pragma unroll
        for (int k = 0; k < N; k++) x[v][k] = -INFINITY;
    }
}

/* The largest value of this warp's part (0 where there is none, so that nothing becomes not-a-number) and the sum of
 * its exponentials, which take x's place unless its logarithm is wanted. */
template <int TYPE, int N, int V>
__device__ void warp_part(bool logarithm, float (&x)[V][N], float *most, float *base, float *sum) {
    float lines[N];
#pragma unroll
    for (int k = 0; k < N; k++) lines[k] = x[0][k];
#pragma unroll
    for (int v = 1; v < V; v++)
#pragma unroll
        for (int k = 0; k < N; k++) lines[k] = fmaxf(lines[k], x[v][k]);
    *most = lanes_most(pairs_most<N>(lines));
    *base = *most == -INFINITY ? 0 : *most;
#pragma unroll
    for (int k = 0; k < N; k++) lines[k] = 0;
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float e = exponential<TYPE>(x[v][k] - *base);
            lines[k] += e;
            if (!logarithm) x[v][k] = e;
        }
    *sum = lanes_sum(pairs_sum<N>(lines));
}

/* The same of the whole row. Every thread of it comes here. */
__device__ void whole_row(shared_parts &shared, int turn, float *most, float *sum) {
    if (blockDim.x <= 32) return;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) shared.most[turn][warp] = *most, shared.sums[turn][warp] = *sum;
    __syncthreads();
    const bool there = lane < blockDim.x >> 5;
    const float largest = there ? shared.most[turn][lane] : -INFINITY;
    const float part = there ? shared.sums[turn][lane] : 0;
    *most = lanes_most(largest);
    *sum = lanes_sum(part > 0 ? part * expf(largest - *most) : 0);
}

/* (x - from) * factor - less */
template <int TYPE, int N, int V>
__device__ void write(const softmax_job &job, int64_t row, float (&x)[V][N], float from, float factor, float less) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (column<N>(v) >= job.cols) continue;
#pragma unroll
        for (int k = 0; k < N; k++) x[v][k] = (x[v][k] - from) * factor - less;
        store<TYPE, N>(job.y, row, job.cols, v, job.streaming, x[v]);
    }
}

template <int TYPE, int N, int V>
__device__ void finish(const softmax_job &job, int64_t row, float (&x)[V][N], float most, float base, float sum) {
    if (job.logarithm)
        write<TYPE, N, V>(job, row, x, most, 1, logf(sum));
    else /* a base above the row's largest is that of a part without any value */
        write<TYPE, N, V>(job, row, x, 0, expf(fminf(base - most, 0)) / sum, 0);
}

/* A team for every row. */
template <int TYPE, int N, int V, bool BIAS, int THREADS>
__global__ void __launch_bounds__(THREADS) softmax_kernel(const softmax_job job) {
    __shared__ shared_parts shared;
    const int64_t step = (int64_t)gridDim.x * blockDim.y, begin = (int64_t)blockIdx.x * blockDim.y;
    const bool once = job.turns.bias_rows == job.count && job.streaming;
    int set = 0;
    /* the same number of rounds for every thread of the block: they meet in there */
    for (int64_t first = begin; first < job.count; first += step, set ^= 1) {
        const int64_t row = first + threadIdx.y;
        const bool there = row < job.count;
        float x[V][N], base, most, sum;
        raw<TYPE, N> own[V], bias[V];
        load<TYPE, N, V>(job.x, row, there, job.cols, job.streaming, own);
        if constexpr (BIAS)
            load<TYPE, N, V>(job.bias, softmax_bias::row_of(job.turns, row), there, job.cols, once, bias);
        gather<TYPE, N, V, BIAS>(job, own, bias, x);
        warp_part<TYPE, N, V>(job.logarithm, x, &most, &base, &sum);
        whole_row(shared, set, &most, &sum);
        if (there) finish<TYPE, N, V>(job, row, x, most, base, sum);
    }
}

using kernel_fn = void (*)(const softmax_job);

template <int TYPE, bool BIAS> kernel_fn by_size(int size) {
    constexpr int N = wide_of<TYPE>;
    static const kernel_fn of[size_count] = {
        softmax_kernel<TYPE, N, 1, BIAS, 1024>, softmax_kernel<TYPE, N, 2, BIAS, 1024>,
        softmax_kernel<TYPE, N, 4, BIAS, 512>,  softmax_kernel<TYPE, N, 8, BIAS, 512>,
        softmax_kernel<TYPE, 1, 4, BIAS, 1024>, softmax_kernel<TYPE, 1, 16, BIAS, 1024>};
    return of[size];
}
template <int TYPE> kernel_fn by_bias(int size, bool bias) {
    return bias ? by_size<TYPE, true>(size) : by_size<TYPE, false>(size);
}
kernel_fn kernel_of(const softmax_rows_shape *s, int threads) {
    const int size = size_for(s->type, s->cols, threads);
    if (s->type == ROW_FP32) return by_bias<ROW_FP32>(size, s->bias_rows > 0);
    if (s->type == ROW_FP16) return by_bias<ROW_FP16>(size, s->bias_rows > 0);
    return by_bias<ROW_BF16>(size, s->bias_rows > 0);
}
} // namespace

extern "C" int softmax_rows_fits(const softmax_rows_shape *s, const row_config *config) {
    if (!type_known(s->type) || s->rows < 1 || !softmax_bias::possible(s)) return 0;
    return size_for(s->type, s->cols, config->threads) >= 0;
}

extern "C" int softmax_rows_prepare(const softmax_rows_shape *shape, const row_config *config,
                                    softmax_rows_plan *plan) {
    if (!softmax_rows_fits(shape, config)) return cudaErrorInvalidValue;
    plan->shape = *shape, plan->config = *config;
    divide(shape->rows, config->threads, (const void *)kernel_of(shape, config->threads), &plan->launch);
    return cudaSuccess;
}

extern "C" int softmax_rows_launch(const softmax_rows_plan *plan, const void *x, const void *bias, void *y,
                                   void *stream) {
    const softmax_rows_shape *s = &plan->shape;
    softmax_job job = {};
    job.x = x, job.bias = bias, job.y = y;
    job.count = s->rows, job.cols = (int)s->cols, job.logarithm = s->logarithm;
    job.streaming = plan->config.streaming, job.scale = s->scale, job.turns = softmax_bias::turns_of(s);
    return rows::launch(&plan->launch, &job, stream);
}
