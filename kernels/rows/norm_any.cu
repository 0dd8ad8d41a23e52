/* Norms of rows of any length that lie anywhere, element by element: what norm_rows does not hold in registers or does
 * not find in one piece (group, instance and mvn norms, long rows, mixed types); batch norms, whose statistics are
 * given; and norms over neighbouring channels. Simple: a row is read from memory or a cache for each thing that is
 * wanted of it. */
#include "kernels/rows/any_rows.cuh"

using namespace any_rows;

namespace {

struct any_job {
    norm_any_shape s;
    norm_tensors t;
    int64_t slabs; /* of blockDim.x neighbouring rows in k2 */
};

__device__ float activated(int activation, float x) {
    if (activation == NORM_ACTIVATION_RELU) return x > 0 ? x : 0;
    return activation == NORM_ACTIVATION_SILU ? x / (1 + expf(-x)) : x;
}

__device__ int64_t side_at(const norm_any_shape &s, int64_t a, int64_t i, int64_t b, int64_t j) {
    return (s.repeat > 1 ? a % s.repeat * s.step_a : 0) + i * s.step_i + b * s.step_b + j * s.step_j;
}

__device__ float gathered(const any_job &job, int64_t at, int64_t side) {
    float x = value(job.t.x, job.s.type_x, at);
    if (job.t.residual) x += value(job.t.residual, job.s.type_x, at);
    if (job.t.input_bias) x += value(job.t.input_bias, job.s.type_side, side);
    return x;
}

struct row_of { /* which one a thread works at */
    int64_t a, b, c, side;
    bool there;
};

/* Calls visit(element, its place in the vectors) for this thread's share of a row, without a division for each. */
template <typename F> __device__ void each(const norm_any_shape &s, const row_of &row, F visit) {
    const int64_t over = blockDim.y / s.r1, rest = blockDim.y % s.r1;
    int64_t i = threadIdx.y / s.r1, j = threadIdx.y % s.r1;
    if (!row.there) return;
    while (i < s.r0) {
        visit((((row.a * s.r0 + i) * s.k1 + row.b) * s.r1 + j) * s.k2 + row.c, row.side + i * s.step_i + j * s.step_j);
        i += over, j += rest;
        if (j >= s.r1) j -= s.r1, i++;
    }
}

__device__ float factor_of(const norm_any_shape &s, float total) {
    if (s.form == NORM_FORM_MAGNITUDE) return 1 / total;
    if (s.form == NORM_FORM_LENGTH) return 1 / sqrtf(total);
    return 1 / sqrtf(total / (float)(s.r0 * s.r1) + s.epsilon);
}

__device__ void do_rows(const any_job &job, const row_of &row, float *room) {
    const norm_any_shape &s = job.s;
    float sum = 0, total = 0, mean = 0;
    if (s.form == NORM_FORM_CENTRED) {
        each(s, row, [&](int64_t at, int64_t side) { sum += gathered(job, at, side); });
        mean = over_row(sum, room, add()) / (float)(s.r0 * s.r1);
    }
    each(s, row, [&](int64_t at, int64_t side) {
        const float d = gathered(job, at, side) - mean;
        total += s.form == NORM_FORM_MAGNITUDE ? fabsf(d) : d * d;
    });
    const float factor = factor_of(s, over_row(total, room, add()));
    each(s, row, [&](int64_t at, int64_t side) {
        const float x = gathered(job, at, side);
        const float scale = value_or(job.t.scale, s.type_side, side, 1);
        const float y = (x - mean) * factor * scale + value_or(job.t.bias, s.type_side, side, 0);
        if (job.t.sum) put(job.t.sum, s.type_y, at, x);
        put(job.t.y, s.type_y, at, activated(s.activation, y));
    });
}

__global__ void __launch_bounds__(1024) norm_any_kernel(const any_job job) {
    __shared__ float room[1024];
    const norm_any_shape &s = job.s;
    const int64_t items = s.k0 * s.k1 * job.slabs;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t ab = item / job.slabs;
        row_of row;
        row.c = item % job.slabs * blockDim.x + threadIdx.x;
        row.a = ab / s.k1, row.b = ab % s.k1;
        row.side = side_at(s, row.a, 0, row.b, 0);
        row.there = row.c < s.k2;
        do_rows(job, row, room);
    }
}

/* Eight neighbours for each thread: so the divisions that tell the channel are few. */
__global__ void __launch_bounds__(1024) norm_batch_kernel(const any_job job) {
    const norm_any_shape &s = job.s;
    const int64_t count = s.k0 * s.r0 * s.r1, step = (int64_t)gridDim.x * blockDim.x * 8;
    for (int64_t from = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 8; from < count; from += step) {
        int64_t j = from % s.r1, i = from / s.r1 % s.r0, a = from / s.r1 / s.r0;
        for (int64_t at = from; at < from + 8 && at < count; at++) {
            const int64_t side = side_at(s, a, i, 0, j);
            const float x = gathered(job, at, side);
            const float scale = value_or(job.t.scale, s.type_side, side, 1);
            const float factor = 1 / sqrtf(value(job.t.variance, s.type_side, side) + s.epsilon);
            const float y = (x - value(job.t.mean, s.type_side, side)) * factor * scale +
                            value_or(job.t.bias, s.type_side, side, 0);
            if (job.t.sum) put(job.t.sum, s.type_y, at, x);
            put(job.t.y, s.type_y, at, activated(s.activation, y));
            if (++j < s.r1) continue;
            j = 0;
            if (++i == s.r0) i = 0, a++;
        }
    }
}

/* The neighbours of a channel are (size - 1) / 2 before it, rounded down, and as many behind, rounded up. */
__global__ void __launch_bounds__(1024) norm_lrn_kernel(const norm_lrn_shape s, const void *x, void *y) {
    const int64_t count = s.images * s.channels * s.positions, before = (s.size - 1) / 2, after = s.size - 1 - before;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        const int64_t channel = at / s.positions % s.channels;
        const int64_t first = channel > before ? -before : -channel;
        const int64_t last = channel + after < s.channels ? after : s.channels - 1 - channel;
        float sum = 0;
        for (int64_t k = first; k <= last; k++) {
            const float other = value(x, s.type_x, at + k * s.positions);
            sum += other * other;
        }
        put(y, s.type_y, at, value(x, s.type_x, at) * powf(s.offset + s.alpha / (float)s.size * sum, -s.beta));
    }
}

bool possible(const norm_any_shape *s) {
    return s->k0 >= 1 && s->r0 >= 1 && s->k1 >= 1 && s->r1 >= 1 && s->k2 >= 1 && s->repeat >= 1 &&
           type_known(s->type_x) && type_known(s->type_y) && type_known(s->type_side);
}

/* Blocks for items that are independent; each takes more where there are too many. */
unsigned flat(int64_t items, int threads) {
    const int64_t blocks = (items + threads - 1) / threads, most = 1 << 20;
    return (unsigned)(blocks < most ? blocks : most);
}
} // namespace

extern "C" int norm_any_launch(const norm_any_shape *shape, int threads, const norm_tensors *tensors, void *stream) {
    any_job job = {*shape, *tensors, 0};
    dim3 grid, block;
    if (!possible(shape) || !divide_any(shape->k0 * shape->k1, shape->k2, threads, &grid, &block))
        return cudaErrorInvalidValue;
    job.slabs = (shape->k2 + block.x - 1) / block.x;
    norm_any_kernel<<<grid, block, 0, (cudaStream_t)stream>>>(job);
    return cudaGetLastError();
}

extern "C" int norm_batch_launch(const norm_any_shape *shape, int threads, const norm_tensors *tensors, void *stream) {
    const any_job job = {*shape, *tensors, 0};
    if (!possible(shape) || shape->k1 != 1 || shape->k2 != 1 || threads < 32 || threads > 1024)
        return cudaErrorInvalidValue;
    const int64_t items = (shape->k0 * shape->r0 * shape->r1 + 7) / 8;
    norm_batch_kernel<<<flat(items, threads), threads, 0, (cudaStream_t)stream>>>(job);
    return cudaGetLastError();
}

extern "C" int norm_lrn_launch(const norm_lrn_shape *s, int threads, const void *x, void *y, void *stream) {
    if (s->images < 1 || s->channels < 1 || s->positions < 1 || s->size < 1 || !type_known(s->type_x) ||
        !type_known(s->type_y) || threads < 32 || threads > 1024)
        return cudaErrorInvalidValue;
    const int64_t items = s->images * s->channels * s->positions;
    norm_lrn_kernel<<<flat(items, threads), threads, 0, (cudaStream_t)stream>>>(*s, x, y);
    return cudaGetLastError();
}
