/* The device's own kernels as C functions: fills, checksums, probes, references, repacking. Each enqueues on the stream
 * and returns the launch's error. The caller owns all memory. */
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- fill.cu: types and ways of filling as in scout/plugin.h --- */

/* Normal random numbers times factor (or scales, or uniform nibbles) from a counter: the same seed gives the same
 * bytes. cudaErrorInvalidValue for an unknown type. */
cudaError_t kernels_fill(void *to, uint64_t bytes, uint32_t type, int scale, float factor, uint64_t seed,
                         cudaStream_t stream);
/* int32 or int64 (element: their size): whole numbers from `least` on, `range` of them alike. */
cudaError_t kernels_fill_places(void *to, uint64_t bytes, int element, uint32_t least, uint32_t range, uint64_t seed,
                                cudaStream_t stream);
/* fp32, fp16, bf16: boxes (x, y, x, y) in a square from 0 on, a quarter to half as wide and high as that. */
cudaError_t kernels_fill_boxes(void *to, uint64_t bytes, uint32_t type, float side, uint64_t seed, cudaStream_t stream);
/* Adds up all bytes, weighted by position, so that any single changed byte changes *sum (on the device). */
cudaError_t kernels_checksum(const void *data, uint64_t bytes, uint64_t *sum, int multiprocessors, cudaStream_t stream);

/* --- distance.cu --- */

/* As scout_distance has them, of what a block saw. */
typedef struct kernels_distance_sums {
    double off, all;
    uint64_t apart, infinite;
} kernels_distance_sums;
/* `count` numbers beside those that are wanted, by at most `*blocks` blocks, which becomes how many there were: each
 * writes its sums to its place of `parts`. */
cudaError_t kernels_distance(const void *want, uint32_t want_type, const void *got, uint32_t got_type, uint64_t count,
                             kernels_distance_sums *parts, int *blocks, cudaStream_t stream);

/* --- stream.cu --- */

/* Reads and writes so many bytes at once, as fast as the device can; `sink` takes the sum of what was read. variant 0:
 * the fastest for such sizes; the others are for the check that shows this. */
cudaError_t kernels_stream(const void *read, uint64_t read_bytes, void *written, uint64_t written_bytes, void *sink,
                           int multiprocessors, int variant, cudaStream_t stream);
int kernels_stream_variants(void);
const char *kernels_stream_name(int variant);
cudaError_t kernels_empty(cudaStream_t stream);
/* After it no code of another kernel is in the instruction caches. */
cudaError_t kernels_forget(void *sink, int multiprocessors, cudaStream_t stream);
/* Every byte is written as it was, but for up to 15 at either end. */
cudaError_t kernels_rewrite(void *data, uint64_t bytes, int multiprocessors, cudaStream_t stream);
/* Keeps the stream busy for so long without using memory or arithmetic. */
cudaError_t kernels_delay(uint32_t nanoseconds, cudaStream_t stream);
/* Writes the cycle counters of the first KERNELS_STAMPED multiprocessors, each beside the time in nanoseconds; of one
 * that no block came to, nothing is written. */
enum { KERNELS_STAMPED = 8 };
typedef struct kernels_stamps { /* one instant */
    uint64_t cycles[KERNELS_STAMPED], nanoseconds[KERNELS_STAMPED];
} kernels_stamps;
cudaError_t kernels_stamp(kernels_stamps *to, int multiprocessors, cudaStream_t stream);
/* Exponentials on the special function unit; returns how many in *done. */
cudaError_t kernels_special(uint64_t operations, uint64_t *done, void *sink, int multiprocessors, cudaStream_t stream);

/* --- pack.cu --- */

/* to[c][r] = from[r][c], `matrices` times; element of 1, 2, 4 or 8 bytes; ld in elements. */
cudaError_t kernels_transpose(void *to, const void *from, int element, int64_t rows, int64_t cols, int64_t ld_from,
                              int64_t ld_to, int64_t stride_from, int64_t stride_to, int64_t matrices,
                              cudaStream_t stream);
/* Weights of 4 or 8 bits in blocks along k. Each lies as [n][k] (columns_first) or as [k][n], rows `ld` numbers apart,
 * and one begins where the one before ends. */
typedef struct kernels_blocks {
    const void *numbers, *zeros; /* zeros: [matrices][n][k / block], of the numbers' type; NULL: none */
    const void *scales;          /* [matrices][n][k / block]; NULL: 1 */
    uint32_t type, type_scales;
    int columns_first;
    int64_t n, k, ld, block, matrices;
} kernels_blocks;
/* As floats of `type` (fp16, bf16 or fp32), each where it lay. */
cudaError_t kernels_widen(void *to, uint32_t type, const kernels_blocks *weight, cudaStream_t stream);

/* --- repeat.cu --- */

/* to[r][c] = row[c]; element of 2 or 4 bytes; ld in elements. */
cudaError_t kernels_repeat_row(void *to, const void *row, int element, int64_t rows, int64_t cols, int64_t ld,
                               cudaStream_t stream);

/* --- check_gemm.cu: the reference, in fp64 --- */

typedef struct kernels_gemm {
    int64_t m, n, k, batch;
    int64_t stride_a, stride_b, stride_c; /* elements; 0: shared by the batch */
    int64_t lda, ldb, ldc;
    int trans_a, trans_b;
    uint32_t type_a, type_b, type_c;
    const void *a, *b;
    const void *scales, *zeros; /* of a b of few bits: [batch][n][k / block]; NULL: none */
    uint32_t type_scales;       /* zeros are of b's type */
    int64_t block;
    const void *bias; /* NULL: none; element [i][j] of product p at p * bias_p + i * bias_i + j * bias_j */
    uint32_t type_bias;
    int64_t bias_p, bias_i, bias_j;
    const void *residual; /* NULL: none; of type_c, and laid out as C */
    double alpha, beta;
    int activation;                           /* of the sum of everything: activate.h */
    double activation_alpha, activation_beta; /* its parameters */
    double steepest;                          /* it passes on an error times this */
    int64_t width;                            /* columns of a segment */
    int64_t segments;                         /* ceil(n / width) */
    uint64_t seed;
} kernels_gemm;

typedef struct kernels_sample {
    uint64_t at; /* (product * m + row) * n + column */
    double want, spread, got;
} kernels_sample;

typedef struct kernels_found { /* of all projections of one output */
    uint64_t wrong;
    unsigned int worst_bits; /* of a float that is not negative; infinite for what is not a number */
    unsigned int unused;
} kernels_found;

/* folded: [batches of b][k][segments], b folded along each segment's columns; squares: the same of the squares. */
cudaError_t kernels_gemm_fold(const kernels_gemm *g, double *folded, float *squares, cudaStream_t stream);
/* want, spread: [batch][m][segments]. */
cudaError_t kernels_gemm_project(const kernels_gemm *g, const double *folded, const float *squares, double *want,
                                 float *spread, cudaStream_t stream);
/* The same where an activation is in the way, which no folding gets through: every output one by one. Its width is
 * KERNELS_FINE_WIDTH. */
enum { KERNELS_FINE_WIDTH = 16 };
cudaError_t kernels_gemm_activated(const kernels_gemm *g, double *want, float *spread, cudaStream_t stream);
cudaError_t kernels_gemm_samples(const kernels_gemm *g, kernels_sample *samples, int count, cudaStream_t stream);
/* Compares an output with both. `found` must be zero before. */
cudaError_t kernels_gemm_compare(const kernels_gemm *g, const void *c, const double *want, const float *spread,
                                 double tolerance, kernels_found *found, kernels_sample *samples, int count,
                                 cudaStream_t stream);

/* --- sparsity_scan.cu: counts of zeros: one pass over the numbers, which leaves a bit for each, and one over the bits
 * --- */

enum { SPARSITY_SCAN_SIZES = 4 }; /* 16, 32, 64, 128 */

/* On the device, zeroed before. */
typedef struct sparsity_scan_counts {
    unsigned long long blocks[SPARSITY_SCAN_SIZES]; /* square ones with any number */
    unsigned long long pieces[SPARSITY_SCAN_SIZES]; /* of rows, with any number */
    unsigned long long by_row, by_col;              /* how often more than two of four neighbours are numbers */
} sparsity_scan_counts;

/* Bytes of the bits, on 16 bytes. */
size_t sparsity_scan_bytes(int64_t rows, int64_t cols);

/* A dense matrix of elements of 1, 2 or 4 bytes, which are numbers where any of `bits` is set. For each row: how many
 * numbers it has, and a hash of all its bytes. Only enqueues; returns a cudaError_t. */
int sparsity_scan(const void *data, int element, uint32_t bits, int64_t rows, int64_t cols, void *scratch,
                  int32_t *row_counts, unsigned long long *row_hashes, sparsity_scan_counts *counts, void *stream);

#ifdef __cplusplus
}
#endif
