/* Layer, RMS and length norms of rows that fit into the registers of their threads (rows.cuh): each is read once. A
 * variance is taken about the mean of each warp's part, and the parts are put together exactly, so that one
 * synchronisation is enough and nothing cancels. */
#include "kernels/rows/rows.cuh"

using namespace rows;

namespace {

struct norm_job {
    norm_tensors t;
    int64_t count; /* rows */
    int cols, form, activation, type_side, streaming;
    float epsilon;
};

struct shared_parts { /* of the block's warps; two sets in turn, so that no warp overwrites what is still read */
    float sums[2][32], squares[2][32], counts[32];
};

__device__ float activated(int activation, float x) {
    if (activation == NORM_ACTIVATION_RELU) return x > 0 ? x : 0;
    return activation == NORM_ACTIVATION_SILU ? x / (1 + expf(-x)) : x;
}

__device__ float factor_of(const norm_job &job, float total) {
    if (job.form == NORM_FORM_MAGNITUDE) return 1 / total;
    if (job.form == NORM_FORM_LENGTH) return 1 / sqrtf(total);
    return 1 / sqrtf(total / (float)job.cols + job.epsilon);
}

/* Of this thread's values: the squares of their distances from a centre. Places behind the row's end count nothing. */
template <int N, int V> __device__ float distances(const norm_job &job, const float (&x)[V][N], float centre) {
    float lines[N] = {};
#pragma unroll
    for (int v = 0; v < V; v++) {
        if (column<N>(v) >= job.cols) continue;
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = x[v][k] - centre;
            lines[k] += job.form == NORM_FORM_MAGNITUDE ? fabsf(d) : d * d;
        }
    }
    return pairs_sum<N>(lines);
}

template <int N, int V> __device__ float total_of(const float (&x)[V][N]) {
    float lines[N] = {};
#pragma unroll
    for (int v = 0; v < V; v++)
#pragma unroll
        for (int k = 0; k < N; k++) lines[k] += x[v][k];
    return pairs_sum<N>(lines);
}

/* The mean of the row (0 where it is not centred), and what its factor is made of. `counted`: the values of this warp's
 * part. Every thread of the row comes here. */
template <int N, int V>
__device__ void statistics(const norm_job &job, shared_parts &shared, int turn, const float (&x)[V][N], float counted,
                           float *mean, float *total) {
    const bool centred = job.form == NORM_FORM_CENTRED;
    const float sum = centred ? lanes_sum(total_of<N, V>(x)) : 0;
    const float middle = counted > 0 ? sum / counted : 0;
    const float squares = lanes_sum(distances<N, V>(job, x, middle));
    *mean = middle, *total = squares;
    if (blockDim.x <= 32) return;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) shared.sums[turn][warp] = sum, shared.squares[turn][warp] = squares;
    __syncthreads();
    const bool there = lane < blockDim.x >> 5;
    const float part = there ? shared.sums[turn][lane] : 0, count = there ? shared.counts[lane] : 0;
    float apart = there ? shared.squares[turn][lane] : 0;
    *mean = centred ? lanes_sum(part) / (float)job.cols : 0;
    if (centred && count > 0) {
        const float d = part / count - *mean;
        apart += count * d * d;
    }
    *total = lanes_sum(apart);
}

template <int TYPE, int N, int V>
__device__ void write(const norm_job &job, int64_t row, const float (&x)[V][N], float mean, float factor) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        const int at = column<N>(v);
        float y[N], s[N];
        if (at >= job.cols) continue;
#pragma unroll
        for (int k = 0; k < N; k++) y[k] = (x[v][k] - mean) * factor;
        if (job.t.scale) {
            side<N>(job.t.scale, job.type_side, at, s);
#pragma unroll
            for (int k = 0; k < N; k++) y[k] *= s[k];
        }
        if (job.t.bias) {
            side<N>(job.t.bias, job.type_side, at, s);
#pragma unroll
            for (int k = 0; k < N; k++) y[k] += s[k];
        }
        if (job.activation != NORM_ACTIVATION_NONE) {
#pragma unroll
            for (int k = 0; k < N; k++) y[k] = activated(job.activation, y[k]);
        }
        store<TYPE, N>(job.t.y, row, job.cols, v, job.streaming, y);
    }
}

/* x + residual + input_bias from what was loaded; the sum is written where it is wanted. */
template <int TYPE, int N, int V, bool RESIDUAL>
__device__ void gather(const norm_job &job, int64_t row, const raw<TYPE, N> *own, const raw<TYPE, N> *residual,
                       float (&x)[V][N]) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        unpack<TYPE, N>(own[v], x[v]);
        if constexpr (RESIDUAL) {
            float r[N];
            unpack<TYPE, N>(residual[v], r);
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] += r[k];
        }
    }
    if (!job.t.input_bias && !job.t.sum) return;
#pragma unroll
    for (int v = 0; v < V; v++) {
        const int at = column<N>(v);
        float s[N];
        if (at >= job.cols) continue;
        if (job.t.input_bias) {
            side<N>(job.t.input_bias, job.type_side, at, s);
#pragma unroll
            for (int k = 0; k < N; k++) x[v][k] += s[k];
        }
        if (job.t.sum && row < job.count) store<TYPE, N>(job.t.sum, row, job.cols, v, job.streaming, x[v]);
    }
}

template <int N, int V> __device__ float counted_of(int cols) {
    int count = 0;
#pragma unroll
    for (int v = 0; v < V; v++) count += column<N>(v) < cols ? N : 0;
    return lanes_sum((float)count);
}

/* A team for every row. */
template <int TYPE, int N, int V, bool RESIDUAL, int THREADS>
__global__ void __launch_bounds__(THREADS) norm_kernel(const norm_job job) {
    __shared__ shared_parts shared;
    const int64_t step = (int64_t)gridDim.x * blockDim.y, begin = (int64_t)blockIdx.x * blockDim.y;
    const float counted = counted_of<N, V>(job.cols);
    int set = 0;
    if ((threadIdx.x & 31) == 0 && blockDim.x > 32) shared.counts[threadIdx.x >> 5] = counted;
    /* the same number of rounds for every thread of the block: they meet in there */
    for (int64_t first = begin; first < job.count; first += step, set ^= 1) {
        const int64_t row = first + threadIdx.y;
        const bool there = row < job.count;
        float x[V][N], mean, total;
        raw<TYPE, N> own[V], residual[V];
        load<TYPE, N, V>(job.t.x, row, there, job.cols, job.streaming, own);
        if constexpr (RESIDUAL) load<TYPE, N, V>(job.t.residual, row, there, job.cols, job.streaming, residual);
        gather<TYPE, N, V, RESIDUAL>(job, row, own, residual, x);
        statistics<N, V>(job, shared, set, x, counted, &mean, &total);
        if (there) write<TYPE, N, V>(job, row, x, mean, factor_of(job, total));
    }
}

using kernel_fn = void (*)(const norm_job);

template <int TYPE, bool RESIDUAL> kernel_fn by_size(int size) {
    constexpr int N = wide_of<TYPE>;
    static const kernel_fn of[size_count] = {
        norm_kernel<TYPE, N, 1, RESIDUAL, 1024>, norm_kernel<TYPE, N, 2, RESIDUAL, 1024>,
        norm_kernel<TYPE, N, 4, RESIDUAL, 512>,  norm_kernel<TYPE, N, 8, RESIDUAL, 512>,
        norm_kernel<TYPE, 1, 4, RESIDUAL, 1024>, norm_kernel<TYPE, 1, 16, RESIDUAL, 1024>};
    return of[size];
}
template <int TYPE> kernel_fn by_residual(int size, bool residual) {
    return residual ? by_size<TYPE, true>(size) : by_size<TYPE, false>(size);
}
kernel_fn kernel_of(const norm_rows_shape *s, int threads) {
    const int size = size_for(s->type, s->cols, threads);
    if (s->type == ROW_FP32) return by_residual<ROW_FP32>(size, s->has_residual);
    if (s->type == ROW_FP16) return by_residual<ROW_FP16>(size, s->has_residual);
    return by_residual<ROW_BF16>(size, s->has_residual);
}
} // namespace

extern "C" int row_loads(int type, int64_t cols, int threads) {
    const int size = type_known(type) ? size_for(type, cols, threads) : -1;
    return size < 0 ? 0 : sizes[size].loads;
}

/* Four loads for each thread keep enough under way, and few threads have to synchronise. Threads without any part of
 * the row are a waste. */
extern "C" int row_threads(int type, int64_t cols, int choice) {
    static const int loads[] = {4, 2, 8, 1, 16};
    for (int k = 0; k < (int)(sizeof loads / sizeof loads[0]); k++)
        for (int threads = 4; threads <= 1024; threads *= 2) {
            const int64_t wide = type == ROW_FP32 ? 4 : 8, each = cols % wide == 0 ? wide : 1;
            if (row_loads(type, cols, threads) != loads[k]) continue;
            if (threads > 4 && (int64_t)threads / 2 * each >= cols) continue;
            if (choice-- == 0) return threads;
        }
    return 0;
}

extern "C" int norm_rows_fits(const norm_rows_shape *s, const row_config *config) {
    if (!type_known(s->type) || !type_known(s->type_side) || s->rows < 1) return 0;
    if (s->form < NORM_FORM_CENTRED || s->form > NORM_FORM_MAGNITUDE || s->sides < 0 || s->sides > 3) return 0;
    return size_for(s->type, s->cols, config->threads) >= 0;
}

extern "C" int norm_rows_prepare(const norm_rows_shape *shape, const row_config *config, norm_rows_plan *plan) {
    if (!norm_rows_fits(shape, config)) return cudaErrorInvalidValue;
    plan->shape = *shape, plan->config = *config;
    divide(shape->rows, config->threads, (const void *)kernel_of(shape, config->threads), &plan->launch);
    return cudaSuccess;
}

extern "C" int norm_rows_launch(const norm_rows_plan *plan, const norm_tensors *tensors, void *stream) {
    const norm_rows_shape *s = &plan->shape;
    norm_job job = {};
    job.t = *tensors;
    if (s->sides != !!tensors->scale + !!tensors->bias + !!tensors->input_bias) return cudaErrorInvalidValue;
    job.count = s->rows, job.cols = (int)s->cols, job.form = s->form, job.activation = s->activation;
    job.type_side = s->type_side, job.streaming = plan->config.streaming, job.epsilon = s->epsilon;
    return rows::launch(&plan->launch, &job, stream);
}
