/* The reference of embeddings: a thread fetches one element. */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

__global__ void __launch_bounds__(whole_each_threads)
    look_up(const whole_embedding_problem p, double *__restrict__ want, float *__restrict__ spread) {
    const int64_t count = p.rows * p.cols;
    for (int64_t k = whole_each_first(); k < count; k += whole_each_step()) {
        const int64_t at = k / p.cols;
        const int64_t row = p.index_type == DTYPE_INT64 ? (int64_t)((const long long *)p.indices)[at]
                                                        : ((const int32_t *)p.indices)[at];
        double x = values_at(p.table, p.type, row * p.cols + k % p.cols);
        if (p.block > 0) {
            const int64_t side = row * p.blocks + k % p.cols / p.block;
            x = (x - (p.zeros ? values_at(p.zeros, p.type, side) : 0)) * values_at(p.scales, p.out_type, side);
        }
        want[k] = x;
        spread[k] = p.out_type == DTYPE_FP16 ? 1.0f / 16384 : 0; /* below it steps grow no smaller */
    }
}

} // namespace

cudaError_t whole_embedding(const whole_embedding_problem *p, double *want, float *spread, cudaStream_t stream) {
    look_up<<<whole_each_blocks(p->rows * p->cols), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
