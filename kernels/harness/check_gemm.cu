/* The reference of matrix products, in fp64: sampled outputs one by one, and the whole output by projections. Each row
 * of C is cut into segments; a segment's columns are folded into one number with random integer weights, and so is B
 * beforehand, so that C x = A (B x) costs a product with as many columns as there are segments. The weights are small
 * integers, which keeps products of integers exact; they differ, so that columns that changed places show. */
#include "kernels/pass/activate.cuh"
#include "kernels/harness/kernels.h"
#include "kernels/harness/values.cuh"

#include <float.h>

namespace {

constexpr int threads = 256, warps = threads / 32;

/* A projection may be off by tolerance * projected_deviations * root(spread^2 + sum of (c * weight)^2), and the weights
 * are ±(48 to 60) for even columns and ±(68 to 80) for odd ones: why is written in scout/cpu/device/cpu_cover.c. */
constexpr double projected_deviations = 3;

__device__ double check_weight(const kernels_gemm &g, int64_t column) {
    const uint64_t bits = values_mix(g.seed ^ values_mix((uint64_t)column));
    const int size = (column % 2 ? 68 : 48) + (int)((bits >> 8) % 13);
    return bits & 1 ? -size : size;
}

__device__ double check_a(const kernels_gemm &g, int64_t p, int64_t i, int64_t k) {
    return values_at(g.a, g.type_a, p * g.stride_a + (g.trans_a ? k * g.lda + i : i * g.lda + k));
}

__device__ double check_b(const kernels_gemm &g, int64_t p, int64_t k, int64_t j) {
    const double number = values_at(g.b, g.type_b, p * g.stride_b + (g.trans_b ? j * g.ldb + k : k * g.ldb + j));
    if (!g.scales) return number;
    const int64_t block = (p * g.n + j) * (g.k / g.block) + k / g.block;
    return values_at(g.scales, g.type_scales, block) * (number - (g.zeros ? values_at(g.zeros, g.type_b, block) : 0));
}

__device__ double check_bias(const kernels_gemm &g, int64_t p, int64_t i, int64_t j) {
    return g.bias ? g.beta * values_at(g.bias, g.type_bias, p * g.bias_p + i * g.bias_i + j * g.bias_j) : 0;
}

__device__ double check_residual(const kernels_gemm &g, int64_t p, int64_t i, int64_t j) {
    return g.residual ? values_at(g.residual, g.type_c, p * g.stride_c + i * g.ldc + j) : 0;
}

__device__ double check_activate(const kernels_gemm &g, double x) {
    return activate_exactly(g.activation, g.activation_alpha, g.activation_beta, x);
}

__device__ double check_sum(double x) {
    for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
    return x;
}

__device__ int64_t check_end(const kernels_gemm &g, int64_t segment) {
    const int64_t end = (segment + 1) * g.width;
    return end < g.n ? end : g.n;
}

/* B stored [K,N]: a warp for each row's segment. */
__global__ void check_fold_rows(const kernels_gemm g, int64_t matrices, double *folded, float *squares) {
    const int64_t total = matrices * g.k * g.segments, step = (int64_t)gridDim.x * warps;
    const int lane = threadIdx.x % 32;
    for (int64_t at = (int64_t)blockIdx.x * warps + threadIdx.x / 32; at < total; at += step) {
        const int64_t segment = at % g.segments, k = at / g.segments % g.k, p = at / g.segments / g.k;
        double sum = 0, square = 0;
        for (int64_t j = segment * g.width + lane; j < check_end(g, segment); j += 32) {
            const double term = check_weight(g, j) * check_b(g, p, k, j);
            sum += term;
            square += term * term;
        }
        sum = check_sum(sum);
        square = check_sum(square);
        if (lane == 0) folded[at] = sum, squares[at] = (float)square;
    }
}

/* B stored [N,K]: a thread for each k, so that neighbours read neighbours. */
__global__ void check_fold_columns(const kernels_gemm g, int64_t matrices, double *folded, float *squares) {
    const int64_t total = matrices * g.k * g.segments, step = (int64_t)gridDim.x * threads;
    for (int64_t at = (int64_t)blockIdx.x * threads + threadIdx.x; at < total; at += step) {
        const int64_t k = at % g.k, segment = at / g.k % g.segments, p = at / g.k / g.segments;
        double sum = 0, square = 0;
        for (int64_t j = segment * g.width; j < check_end(g, segment); j++) {
            const double term = check_weight(g, j) * check_b(g, p, k, j);
            sum += term;
            square += term * term;
        }
        folded[(p * g.k + k) * g.segments + segment] = sum;
        squares[(p * g.k + k) * g.segments + segment] = (float)square;
    }
}

constexpr int tile_m = 64, tile_s = 32, tile_k = 16, activated_width = KERNELS_FINE_WIDTH;
static_assert(activated_width == 16, "a segment is what 16 neighbouring threads add up");

/* A grid's y and z hold 65,535 each: a batch may need both. */
__device__ int64_t check_product() { return blockIdx.y + (int64_t)blockIdx.z * gridDim.y; }

constexpr int64_t most_batch = 65535ll * 65535;

dim3 check_grid(int64_t blocks, int64_t batch) {
    const int64_t y = batch < 65535 ? batch : 65535;
    return dim3((unsigned)blocks, (unsigned)y, (unsigned)((batch + y - 1) / y));
}

struct check_tiles {
    double a[tile_k][tile_m + 1];
    double y[tile_k][tile_s];
    float z[tile_k][tile_s];
};

__device__ void check_load(const kernels_gemm &g, check_tiles &t, int64_t p, int64_t row, int64_t segment, int64_t k0,
                           const double *folded, const float *squares) {
    const int64_t from = g.stride_b ? p * g.k : 0;
    for (int at = threadIdx.x; at < tile_m * tile_k; at += threads) {
        const int i = g.trans_a ? at % tile_m : at / tile_k, k = g.trans_a ? at / tile_m : at % tile_k;
        t.a[k][i] = row + i < g.m && k0 + k < g.k ? check_a(g, p, row + i, k0 + k) : 0;
    }
    for (int at = threadIdx.x; at < tile_s * tile_k; at += threads) {
        const int s = at % tile_s, k = at / tile_s;
        const bool inside = segment + s < g.segments && k0 + k < g.k;
        const int64_t place = (from + k0 + k) * g.segments + segment + s;
        t.y[k][s] = inside ? folded[place] : 0;
        t.z[k][s] = inside ? squares[place] : 0;
    }
}

__device__ void check_store(const kernels_gemm &g, int64_t p, int64_t i, int64_t s, double sum, double square,
                            double *want, float *spread) {
    if (i >= g.m || s >= g.segments) return;
    sum *= g.alpha;
    square *= g.alpha * g.alpha;
    const bool any = g.bias || g.residual;
    for (int64_t j = s * g.width; any && j < check_end(g, s); j++) {
        const double bias = check_weight(g, j) * check_bias(g, p, i, j);
        const double residual = check_weight(g, j) * check_residual(g, p, i, j);
        sum += bias + residual;
        square += bias * bias + residual * residual;
    }
    want[(p * g.m + i) * g.segments + s] = sum;
    spread[(p * g.m + i) * g.segments + s] = (float)sqrt(square);
}

/* A times folded B, and squares times squares: 64 rows and 32 segments a block. */
__global__ void __launch_bounds__(threads) check_project(const kernels_gemm g, int64_t across, const double *folded,
                                                         const float *squares, double *want, float *spread) {
    __shared__ check_tiles t;
    const int64_t p = check_product(), row = blockIdx.x / across * tile_m, segment = blockIdx.x % across * tile_s;
    if (p >= g.batch) return;
    const int i = threadIdx.x / 16, s = threadIdx.x % 16; /* rows i + 16 r, segments s + 16 c */
    double sum[4][2] = {};
    float square[4][2] = {};
    for (int64_t k0 = 0; k0 < g.k; k0 += tile_k) {
        check_load(g, t, p, row, segment, k0, folded, squares);
        __syncthreads();
        for (int k = 0; k < tile_k; k++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const double a = t.a[k][i + 16 * r];
                const float aa = (float)a * (float)a;
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    sum[r][c] += a * t.y[k][s + 16 * c];
                    square[r][c] += aa * t.z[k][s + 16 * c];
                }
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 2; c++)
            check_store(g, p, row + i + 16 * r, segment + s + 16 * c, sum[r][c], square[r][c], want, spread);
}

struct check_square {
    double a[tile_k][tile_m + 1], b[tile_k][tile_m + 1];
};

__device__ void check_load_square(const kernels_gemm &g, check_square &t, int64_t p, int64_t row, int64_t col,
                                  int64_t k0) {
    for (int at = threadIdx.x; at < tile_m * tile_k; at += threads) {
        const int i = g.trans_a ? at % tile_m : at / tile_k, ka = g.trans_a ? at / tile_m : at % tile_k;
        const int j = g.trans_b ? at / tile_k : at % tile_m, kb = g.trans_b ? at % tile_k : at / tile_m;
        t.a[ka][i] = row + i < g.m && k0 + ka < g.k ? check_a(g, p, row + i, k0 + ka) : 0;
        t.b[kb][j] = col + j < g.n && k0 + kb < g.k ? check_b(g, p, k0 + kb, col + j) : 0;
    }
}

/* 64 rows of four segments of 16 a block: the outputs themselves, then their activation, then the projections. */
__global__ void __launch_bounds__(threads)
    check_activated(const kernels_gemm g, int64_t across, double *want, float *spread) {
    __shared__ check_square t;
    const int64_t p = check_product(), row = blockIdx.x / across * tile_m, column = blockIdx.x % across * tile_m;
    if (p >= g.batch) return;
    const int i = threadIdx.x / 16, j = threadIdx.x % 16;
    double sum[4][4] = {};
    float square[4][4] = {};
    for (int64_t k0 = 0; k0 < g.k; k0 += tile_k) {
        check_load_square(g, t, p, row, column, k0);
        __syncthreads();
        for (int k = 0; k < tile_k; k++)
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const double term = t.a[k][i + 16 * r] * t.b[k][j + 16 * c];
                    sum[r][c] += term;
                    square[r][c] += (float)term * (float)term;
                }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            const int64_t y = row + i + 16 * r, x = column + j + 16 * c;
            const bool inside = y < g.m && x < g.n;
            const double bias = inside ? check_bias(g, p, y, x) : 0, weight = inside ? check_weight(g, x) : 0;
            const double residual = inside ? check_residual(g, p, y, x) : 0;
            double projected = weight * check_activate(g, g.alpha * sum[r][c] + bias + residual);
            double squares = weight * weight * (g.alpha * g.alpha * square[r][c] + bias * bias + residual * residual);
            for (int offset = 8; offset > 0; offset /= 2) {
                projected += __shfl_xor_sync(~0u, projected, offset);
                squares += __shfl_xor_sync(~0u, squares, offset);
            }
            if (j != 0 || !inside) continue;
            const int64_t at = (p * g.m + y) * g.segments + x / activated_width;
            want[at] = projected;
            spread[at] = (float)(g.steepest * sqrt(squares));
        }
}

/* A block for each sample. */
__global__ void check_samples(const kernels_gemm g, kernels_sample *samples) {
    __shared__ double sums[warps], squares[warps];
    kernels_sample *const sample = samples + blockIdx.x;
    const int64_t at = (int64_t)sample->at, j = at % g.n, i = at / g.n % g.m, p = at / g.n / g.m;
    double sum = 0, square = 0;
    for (int64_t k = threadIdx.x; k < g.k; k += threads) {
        const double term = g.alpha * check_a(g, p, i, k) * check_b(g, p, k, j);
        sum += term;
        square += term * term;
    }
    sum = check_sum(sum);
    square = check_sum(square);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum, squares[threadIdx.x / 32] = square;
    __syncthreads();
    if (threadIdx.x != 0) return;
    const double bias = check_bias(g, p, i, j), residual = check_residual(g, p, i, j);
    for (int w = 1; w < warps; w++) sum += sums[w], square += squares[w];
    sample->want = check_activate(g, sum + bias + residual);
    sample->spread = g.steepest * sqrt(square + bias * bias + residual * residual);
}

__global__ void check_gather(const kernels_gemm g, const void *c, kernels_sample *samples, int count) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    const int64_t where = (int64_t)samples[at].at, j = where % g.n, i = where / g.n % g.m, p = where / g.n / g.m;
    samples[at].got = values_at(c, g.type_c, p * g.stride_c + i * g.ldc + j);
}

/* A warp for each segment of each row. */
__global__ void check_compare(const kernels_gemm g, const void *c, const double *want, const float *spread,
                              double tolerance, kernels_found *found) {
    const int64_t total = g.batch * g.m * g.segments, step = (int64_t)gridDim.x * warps;
    const int lane = threadIdx.x % 32;
    double worst = 0;
    unsigned long long wrong = 0;
    for (int64_t at = (int64_t)blockIdx.x * warps + threadIdx.x / 32; at < total; at += step) {
        const int64_t segment = at % g.segments, i = at / g.segments % g.m, p = at / g.segments / g.m;
        double got = 0, squares = 0;
        for (int64_t j = segment * g.width + lane; j < check_end(g, segment); j += 32) {
            const double term = check_weight(g, j) * values_at(c, g.type_c, p * g.stride_c + i * g.ldc + j);
            got += term;
            squares += term * term;
        }
        got = check_sum(got);
        squares = check_sum(squares);
        const double off = fabs(got - want[at]), known = spread[at];
        double error = off == 0 ? 0 : off / (projected_deviations * sqrt(known * known + squares));
        if (!(error <= FLT_MAX)) error = __longlong_as_double(0x7ff0000000000000ll);
        worst = fmax(worst, error);
        wrong += error > tolerance;
    }
    if (lane != 0) return;
    if (worst > 0) atomicMax(&found->worst_bits, __float_as_uint((float)worst));
    if (wrong) atomicAdd((unsigned long long *)&found->wrong, wrong);
}

unsigned check_blocks(int64_t items, int64_t a_block) {
    const int64_t blocks = (items + a_block - 1) / a_block;
    return (unsigned)(blocks < 1 ? 1 : blocks < 65536 ? blocks : 65536);
}

} // namespace

cudaError_t kernels_gemm_fold(const kernels_gemm *g, double *folded, float *squares, cudaStream_t stream) {
    const int64_t matrices = g->stride_b ? g->batch : 1, total = matrices * g->k * g->segments;
    if (g->trans_b)
        check_fold_columns<<<check_blocks(total, threads), threads, 0, stream>>>(*g, matrices, folded, squares);
    else
        check_fold_rows<<<check_blocks(total, warps), threads, 0, stream>>>(*g, matrices, folded, squares);
    return cudaGetLastError();
}

cudaError_t kernels_gemm_project(const kernels_gemm *g, const double *folded, const float *squares, double *want,
                                 float *spread, cudaStream_t stream) {
    const int64_t down = (g->m + tile_m - 1) / tile_m, across = (g->segments + tile_s - 1) / tile_s;
    if (down * across > 0x7fffffff || g->batch > most_batch) return cudaErrorInvalidValue;
    check_project<<<check_grid(down * across, g->batch), threads, 0, stream>>>(*g, across, folded, squares, want,
                                                                               spread);
    return cudaGetLastError();
}

cudaError_t kernels_gemm_activated(const kernels_gemm *g, double *want, float *spread, cudaStream_t stream) {
    const int64_t across = (g->n + tile_m - 1) / tile_m, blocks = (g->m + tile_m - 1) / tile_m * across;
    if (g->width != activated_width || blocks > 0x7fffffff || g->batch > most_batch) return cudaErrorInvalidValue;
    check_activated<<<check_grid(blocks, g->batch), threads, 0, stream>>>(*g, across, want, spread);
    return cudaGetLastError();
}

cudaError_t kernels_gemm_samples(const kernels_gemm *g, kernels_sample *samples, int count, cudaStream_t stream) {
    check_samples<<<(unsigned)count, threads, 0, stream>>>(*g, samples);
    return cudaGetLastError();
}

cudaError_t kernels_gemm_compare(const kernels_gemm *g, const void *c, const double *want, const float *spread,
                                 double tolerance, kernels_found *found, kernels_sample *samples, int count,
                                 cudaStream_t stream) {
    check_compare<<<check_blocks(g->batch * g->m * g->segments, warps), threads, 0, stream>>>(*g, c, want, spread,
                                                                                              tolerance, found);
    const cudaError_t compared = cudaGetLastError();
    if (compared != cudaSuccess) return compared;
    check_gather<<<check_blocks(count, 128), 128, 0, stream>>>(*g, c, samples, count);
    return cudaGetLastError();
}
