/* Softmax and its logarithm in fp64. What an element is and what it may be off by are those of the CPU's reference
 * (scout/cpu/reference/cpu_reference_softmax.c). */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_lanes.cuh"

namespace {

/* A row: its first element, the first of its bias. */
struct row_of {
    int64_t x, bias;
};
__device__ row_of find_row(const softmax_problem &p, int64_t row) {
    int64_t bias = 0;
    if (p.bias_rows > 0) {
        const int64_t serves = p.rows / (p.bias_rows / p.bias_turn);
        bias = row / serves * p.bias_turn + row % serves % p.bias_turn;
    }
    return {row / p.inner * p.cols * p.inner + row % p.inner, bias * p.cols};
}

__device__ double value_of(const whole_softmax_problem &w, const row_of &row, int64_t k) {
    const double x = w.p.scale * values_at(w.x, w.type, row.x + k * w.p.inner);
    return w.bias ? x + values_at(w.bias, w.type, row.bias + k) : x;
}

__device__ void put(const whole_softmax_problem &w, int64_t at, double x, double largest, double sum, double *want,
                    float *spread) {
    const double y = w.p.logarithm ? x - largest - log(sum) : exp(x - largest) / sum, log_sum = log(sum);
    want[at] = y;
    if (w.p.logarithm)
        spread[at] = (float)sqrt(1 + x * x + largest * largest + log_sum * log_sum);
    else
        spread[at] = (float)(w.output == DTYPE_FP16 ? fmax(y, 0x1p-14) : y);
}

__global__ void softmax_rows(whole_softmax_problem w, int lanes, double *want, float *spread) {
    __shared__ double shared[whole_threads];
    const softmax_problem &p = w.p;
    const int64_t rows = p.outer * p.inner, each = whole_threads / lanes;
    const int group = (int)threadIdx.x / lanes, lane = (int)threadIdx.x % lanes;
    for (int64_t first = blockIdx.x * each; first < rows; first += gridDim.x * each) {
        const int64_t cols = first + group < rows ? p.cols : 0; /* all threads meet where sums are made */
        const row_of row = find_row(p, cols ? first + group : 0);
        double largest = __longlong_as_double(0xfff0000000000000ll), sum = 0;
        for (int64_t k = lane; k < cols; k += lanes) largest = fmax(largest, value_of(w, row, k));
        largest = whole_together(largest, shared, lanes, whole_greater());
        for (int64_t k = lane; k < cols; k += lanes) sum += exp(value_of(w, row, k) - largest);
        sum = whole_together(sum, shared, lanes, whole_plus());
        for (int64_t k = lane; k < cols; k += lanes)
            put(w, row.x + k * p.inner, value_of(w, row, k), largest, sum, want, spread);
    }
}

} // namespace

cudaError_t whole_softmax(const whole_softmax_problem *w, double *want, float *spread, cudaStream_t stream) {
    const int lanes = whole_lanes(w->p.cols);
    const unsigned blocks = whole_blocks(w->p.outer * w->p.inner, lanes);
    softmax_rows<<<blocks, whole_threads, 0, stream>>>(*w, lanes, want, spread);
    return cudaGetLastError();
}
