/* Norms in fp64: every element of the normalised output, and of the sum where that is written too. What an element is
 * and what it may be off by are those of the CPU's reference (scout/cpu/reference/cpu_reference_norm.c). */
#include "kernels/reference/whole.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_lanes.cuh"

namespace {

/* One element of a tensor; `otherwise` where the operation has none. */
__device__ double element(const whole_norm_tensor &t, int64_t at, double otherwise) {
    return t.data ? values_at(t.data, t.type, at) : otherwise;
}

/* x + residual + input_bias, and the squares of these three. */
__device__ double added(const whole_norm_problem &w, int64_t at, int64_t side, double *squares) {
    const double x = element(w.x, at, 0), residual = element(w.residual, at, 0), bias = element(w.input_bias, side, 0);
    *squares = x * x + residual * residual + bias * bias;
    return x + residual + bias;
}

__device__ int64_t side_of(const norm_problem &p, int64_t a, int64_t i, int64_t b, int64_t j) {
    return a % p.repeat * p.step_a + i * p.step_i + b * p.step_b + j * p.step_j;
}

__device__ double activated(const norm_problem &p, double x) {
    if (p.activation == NORM_RELU) return x > 0 ? x : 0;
    return p.activation == NORM_SILU ? x / (1 + exp(-x)) : x;
}

/* fp16 is not relative below its smallest normal number. */
__device__ double least_spread(uint32_t type) { return type == DTYPE_FP16 ? 0x1p-14 : 0; }

/* y = (x - mean) * factor * scale + bias is made of x, which may be a sum itself (size), the mean and the terms that
 * make it up, and bias. */
__device__ void put(const whole_norm_problem &w, int64_t at, int64_t side, double x, double size, double mean,
                    double terms, double factor, double *want, float *spread) {
    const double scale = factor * element(w.scale, side, 1), bias = element(w.bias, side, 0);
    const double a = size * scale, b = mean * scale, c = terms * scale;
    want[at] = activated(w.p, (x - mean) * scale + bias);
    spread[at] = (float)fmax(sqrt(a * a + b * b + c * c + bias * bias), least_spread(w.type));
}

/* Where element k of row (a, b, c) lies, and its scale and bias. */
struct place {
    int64_t at, side;
};
__device__ place place_of(const norm_problem &p, int64_t a, int64_t b, int64_t c, int64_t k) {
    const int64_t i = k / p.r1, j = k % p.r1;
    return {(((a * p.r0 + i) * p.k1 + b) * p.r1 + j) * p.k2 + c, side_of(p, a, i, b, j)};
}

/* 1 over the deviation, the root of the mean square, or the length; of `sum` see below. */
__device__ double factor_of(const norm_problem &p, double sum) {
    if (p.form == NORM_LP) return 1 / (p.power == 1 ? sum : sqrt(sum));
    return 1 / sqrt(sum / (double)p.cols + p.epsilon);
}

__global__ void norm_rows(whole_norm_problem w, int lanes, double *want, float *spread) {
    __shared__ double shared[whole_threads];
    const norm_problem &p = w.p;
    const int64_t rows = p.k0 * p.k1 * p.k2, each = whole_threads / lanes;
    const int group = (int)threadIdx.x / lanes, lane = (int)threadIdx.x % lanes;
    for (int64_t first = blockIdx.x * each; first < rows; first += gridDim.x * each) {
        const int64_t row = first + group, cols = row < rows ? p.cols : 0; /* all threads meet where sums are made */
        const int64_t c = row % p.k2, b = row / p.k2 % p.k1, a = row / p.k2 / p.k1;
        double total = 0, terms = 0, sum = 0, squares;
        for (int64_t k = lane; k < cols; k += lanes) {
            const place to = place_of(p, a, b, c, k);
            const double x = added(w, to.at, to.side, &squares);
            total += x, terms += squares;
        }
        total = whole_together(total, shared, lanes, whole_plus());
        terms = whole_together(terms, shared, lanes, whole_plus());
        const double mean = p.form == NORM_CENTRED ? total / (double)p.cols : 0;
        terms = p.form == NORM_CENTRED ? sqrt(terms) / (double)p.cols : 0;
        for (int64_t k = lane; k < cols; k += lanes) {
            const place to = place_of(p, a, b, c, k);
            const double x = added(w, to.at, to.side, &squares);
            sum += p.form == NORM_LP && p.power == 1 ? fabs(x) : (x - mean) * (x - mean);
        }
        const double factor = factor_of(p, whole_together(sum, shared, lanes, whole_plus()));
        for (int64_t k = lane; k < cols; k += lanes) {
            const place to = place_of(p, a, b, c, k);
            const double x = added(w, to.at, to.side, &squares);
            put(w, to.at, to.side, x, sqrt(squares), mean, terms, factor, want, spread);
        }
    }
}

__device__ void norm_batch(const whole_norm_problem &w, int64_t at, int64_t side, double *want, float *spread) {
    const double mean = element(w.mean, side, 0), variance = element(w.variance, side, 1);
    double squares;
    const double x = added(w, at, side, &squares);
    put(w, at, side, x, sqrt(squares), mean, 0, 1 / sqrt(variance + w.p.epsilon), want, spread);
}

/* The neighbours of a channel are (size - 1) / 2 before it, rounded down, and as many behind, rounded up. */
__device__ void norm_neighbours(const whole_norm_problem &w, int64_t at, int64_t j, double *want, float *spread) {
    const norm_problem &p = w.p;
    const int64_t before = (p.size - 1) / 2, after = p.size - 1 - before;
    double sum = 0;
    for (int64_t n = j > before ? j - before : 0; n <= j + after && n < p.cols; n++) {
        const double x = element(w.x, at + (n - j) * p.k2, 0);
        sum += x * x;
    }
    const double x = element(w.x, at, 0), factor = pow(p.offset + p.alpha / (double)p.size * sum, -p.beta);
    put(w, at, 0, x, x, 0, 0, factor, want, spread);
}

/* What needs no sums of its row: one thread for each element. */
__global__ void norm_elements(whole_norm_problem w, bool sums, double *want, float *spread) {
    const norm_problem &p = w.p;
    const int64_t count = p.k0 * p.r0 * p.k1 * p.r1 * p.k2, step = (int64_t)gridDim.x * whole_threads;
    for (int64_t at = blockIdx.x * (int64_t)whole_threads + threadIdx.x; at < count; at += step) {
        const int64_t j = at / p.k2 % p.r1, b = at / p.k2 / p.r1 % p.k1, i = at / p.k2 / p.r1 / p.k1 % p.r0;
        const int64_t side = side_of(p, at / p.k2 / p.r1 / p.k1 / p.r0, i, b, j);
        double squares;
        if (sums) {
            want[at] = added(w, at, side, &squares);
            spread[at] = (float)fmax(sqrt(squares), least_spread(w.type));
        } else if (p.form == NORM_BATCH) {
            norm_batch(w, at, side, want, spread);
        } else {
            norm_neighbours(w, at, j, want, spread);
        }
    }
}

cudaError_t by_element(const whole_norm_problem *w, bool sums, double *want, float *spread, cudaStream_t stream) {
    const int64_t count = w->p.k0 * w->p.r0 * w->p.k1 * w->p.r1 * w->p.k2;
    norm_elements<<<whole_blocks(count, 1), whole_threads, 0, stream>>>(*w, sums, want, spread);
    return cudaGetLastError();
}

} // namespace

cudaError_t whole_norm(const whole_norm_problem *w, double *want, float *spread, cudaStream_t stream) {
    if (w->p.form == NORM_BATCH || w->p.form == NORM_LRN) return by_element(w, false, want, spread, stream);
    const int lanes = whole_lanes(w->p.cols);
    const unsigned blocks = whole_blocks(w->p.k0 * w->p.k1 * w->p.k2, lanes);
    norm_rows<<<blocks, whole_threads, 0, stream>>>(*w, lanes, want, spread);
    return cudaGetLastError();
}

cudaError_t whole_norm_sum(const whole_norm_problem *w, double *want, float *spread, cudaStream_t stream) {
    return by_element(w, true, want, spread, stream);
}
