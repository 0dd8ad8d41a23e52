/* Softmax, and its logarithm, of rows of any length along the middle of [outer, cols, inner], element by element: what
 * softmax_rows does not hold in registers or does not find in one piece. A row is read twice. */
#include "kernels/rows/any_rows.cuh"

using namespace any_rows;

namespace {

struct any_job {
    softmax_any_shape s;
    const void *x, *bias;
    void *y;
    int64_t slabs; /* of blockDim.x neighbouring rows in `inner` */
};

__device__ float gathered(const any_job &job, int64_t at, int64_t bias_at) {
    const float x = value(job.x, job.s.type_x, at) * job.s.scale;
    return job.bias ? x + value(job.bias, job.s.type_x, bias_at) : x;
}

/* The row of the bias that belongs to a row. */
__device__ int64_t bias_row(const softmax_any_shape &s, int64_t row) {
    if (s.bias_rows < 1) return 0;
    const int64_t serves = s.outer * s.inner / (s.bias_rows / s.bias_turn);
    return row / serves * s.bias_turn + row % serves % s.bias_turn;
}

__device__ void do_rows(const any_job &job, int64_t from, int64_t bias, bool there, float *room) {
    const softmax_any_shape &s = job.s;
    float largest = -INFINITY, sum = 0;
    for (int64_t k = threadIdx.y; there && k < s.cols; k += blockDim.y) {
        const float x = gathered(job, from + k * s.inner, bias + k);
        if (x > largest) {
            sum = sum * expf(largest - x) + 1; /* of nothing before: 0 */
            largest = x;
        } else if (largest != -INFINITY) {
            sum += expf(x - largest);
        }
    }
    const float top = over_row(largest, room, most());
    sum = over_row(sum > 0 ? sum * expf(largest - top) : 0, room, add());
    const float log_sum = logf(sum);
    for (int64_t k = threadIdx.y; there && k < s.cols; k += blockDim.y) {
        const int64_t at = from + k * s.inner;
        const float x = gathered(job, at, bias + k) - top;
        put(job.y, s.type_y, at, s.logarithm ? x - log_sum : expf(x) / sum);
    }
}

__global__ void __launch_bounds__(1024) softmax_any_kernel(const any_job job) {
    __shared__ float room[1024];
    const softmax_any_shape &s = job.s;
    for (int64_t item = blockIdx.x; item < s.outer * job.slabs; item += gridDim.x) {
        const int64_t outer = item / job.slabs, c = item % job.slabs * blockDim.x + threadIdx.x;
        do_rows(job, outer * s.cols * s.inner + c, bias_row(s, outer) * s.cols, c < s.inner, room);
    }
}
} // namespace

extern "C" int softmax_any_launch(const softmax_any_shape *shape, int threads, const void *x, const void *bias, void *y,
                                  void *stream) {
    any_job job = {*shape, x, bias, y, 0};
    dim3 grid, block;
    if (!type_known(shape->type_x) || !type_known(shape->type_y) || shape->cols < 1 ||
        (shape->bias_rows > 0 && (shape->inner != 1 || shape->outer % shape->bias_rows != 0 || shape->bias_turn < 1 ||
                                  shape->bias_rows % shape->bias_turn != 0)) ||
        !divide_any(shape->outer, shape->inner, threads, &grid, &block))
        return cudaErrorInvalidValue;
    job.slabs = (shape->inner + block.x - 1) / block.x;
    softmax_any_kernel<<<grid, block, 0, (cudaStream_t)stream>>>(job);
    return cudaGetLastError();
}
