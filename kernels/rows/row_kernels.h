/* The project's own norms and softmax for CUDA, as plain C functions: what a dispatch table names can be linked from
 * here. No header of CUDA is needed to include this; link the objects of kernels/rows/norm_*.cu,
 * kernels/rows/softmax_*.cu and the CUDA runtime.
 *
 *     norm_rows_plan plan;
 *     row_config config = {.threads = row_threads(ROW_FP16, cols, 0), .streaming = 0};
 *     if (norm_rows_prepare(&shape, &config, &plan) != 0) …      once; nothing to free
 *     norm_rows_launch(&plan, &tensors, stream);
 *
 * A launch only enqueues, allocates nothing, needs no workspace, and can be captured in a graph. `stream` is a
 * cudaStream_t. Everything works on the current device and returns 0 or a cudaError_t; what the shape rules out is
 * cudaErrorInvalidValue, before anything runs. Tensors are dense and begin at multiples of 32 bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { ROW_FP32 = 1, ROW_FP16 = 10, ROW_BF16 = 16 };

/* How rows are shared out where each is read once and stays in registers. */
typedef struct row_config {
    int threads;   /* of one row: a power of 2 from 4 to 1024 */
    int streaming; /* 1: streaming cache hints: nothing is used again */
} row_config;

/* Loads of each thread for a row of that length; 0: that many threads cannot hold it. */
int row_loads(int type, int64_t cols, int threads);
/* The numbers of threads that can hold a row, the likely best first: 0 for `choice` that there is none of. */
int row_threads(int type, int64_t cols, int choice);

typedef struct row_launch { /* of the kernels' own */
    const void *kernel;
    unsigned blocks, threads, rows;
} row_launch;

/* --- norms of rows that lie together: norm_rows, each row read once --- */

/* layer norm; over the root mean square; over the length; over the sum of magnitudes */
enum { NORM_FORM_CENTRED, NORM_FORM_RMS, NORM_FORM_LENGTH, NORM_FORM_MAGNITUDE };
enum { NORM_ACTIVATION_NONE, NORM_ACTIVATION_RELU, NORM_ACTIVATION_SILU };

/* y = activation((x + residual + input_bias - mean) * factor * scale + bias), sum = x + residual + input_bias. NULL:
 * what there is none of. */
typedef struct norm_tensors {
    const void *x, *residual, *scale, *bias, *input_bias, *mean, *variance;
    void *y, *sum;
} norm_tensors;

typedef struct norm_rows_shape {
    int64_t rows, cols;
    int form, activation;
    int type, type_side; /* of x, residual, y and sum; of the vectors of `cols` elements */
    int has_residual;
    int sides; /* how many of scale, bias and input_bias there are */
    float epsilon;
} norm_rows_shape;

typedef struct norm_rows_plan {
    norm_rows_shape shape;
    row_config config;
    row_launch launch;
} norm_rows_plan;

/* Whether that exists. */
int norm_rows_fits(const norm_rows_shape *shape, const row_config *config);
int norm_rows_prepare(const norm_rows_shape *shape, const row_config *config, norm_rows_plan *plan);
int norm_rows_launch(const norm_rows_plan *plan, const norm_tensors *tensors, void *stream);

/* --- the same of long rows, for numbers of threads that the compiler knows: norm_long --- */

/* Those numbers for a row of that length, the likely best first: 0 for `choice` that there is none of. */
int row_threads_long(int type, int64_t cols, int choice);
/* Layer norm and the root mean square, vectors of the rows' type, neither input_bias nor an activation; a bias for
 * layer norms alone, and a sum where there is a residual. */
int norm_long_fits(const norm_rows_shape *shape, const row_config *config);
int norm_long_prepare(const norm_rows_shape *shape, const row_config *config, norm_rows_plan *plan);
int norm_long_launch(const norm_rows_plan *plan, const norm_tensors *tensors, void *stream);

/* --- norms of rows of any length that lie anywhere: norm_any --- */

/* Element (a, i, b, j, c) lies at (((a * r0 + i) * k1 + b) * r1 + j) * k2 + c; (a, b, c) tell the row, (i, j) the place
 * in it. Its vectors' element is (a % repeat) * step_a + i * step_i + b * step_b + j * step_j. */
typedef struct norm_any_shape {
    int64_t k0, r0, k1, r1, k2;
    int64_t repeat, step_a, step_i, step_b, step_j;
    int form, activation;
    int type_x, type_y, type_side;
    float epsilon;
} norm_any_shape;

/* `threads`: of a block, a power of 2 from 64 to 1024. */
int norm_any_launch(const norm_any_shape *shape, int threads, const norm_tensors *tensors, void *stream);
/* By the mean and the variance that the tensors have for each element of the vectors; k1 = k2 = 1. */
int norm_batch_launch(const norm_any_shape *shape, int threads, const norm_tensors *tensors, void *stream);

/* Over a power of the squares of neighbouring channels: x and y are [images, channels, positions]. */
typedef struct norm_lrn_shape {
    int64_t images, channels, positions, size;
    int type_x, type_y;
    float alpha, beta, offset;
} norm_lrn_shape;

int norm_lrn_launch(const norm_lrn_shape *shape, int threads, const void *x, void *y, void *stream);

/* --- softmax of rows that lie together: softmax_rows, each row read once --- */

typedef struct softmax_rows_shape {
    int64_t rows, cols;
    int type; /* of x, bias and y */
    int logarithm;
    float scale;       /* x is multiplied by it */
    int64_t bias_rows; /* added then; 0: none */
    int64_t
        bias_turn; /* so many of them come in turn for rows * bias_turn / bias_rows neighbours, then the next ones */
} softmax_rows_shape;

typedef struct softmax_rows_plan {
    softmax_rows_shape shape;
    row_config config;
    row_launch launch;
} softmax_rows_plan;

int softmax_rows_fits(const softmax_rows_shape *shape, const row_config *config);
int softmax_rows_prepare(const softmax_rows_shape *shape, const row_config *config, softmax_rows_plan *plan);
int softmax_rows_launch(const softmax_rows_plan *plan, const void *x, const void *bias, void *y, void *stream);

/* --- the same of long rows, for numbers of threads that the compiler knows: softmax_long; no logarithm, and a scale
 * above zero --- */

int softmax_long_fits(const softmax_rows_shape *shape, const row_config *config);
int softmax_long_prepare(const softmax_rows_shape *shape, const row_config *config, softmax_rows_plan *plan);
int softmax_long_launch(const softmax_rows_plan *plan, const void *x, const void *bias, void *y, void *stream);

/* --- softmax of rows of any length, along the middle of [outer, cols, inner]: softmax_any --- */

typedef struct softmax_any_shape {
    int64_t outer, cols, inner;
    int type_x, type_y;
    int logarithm;
    float scale;
    int64_t bias_rows, bias_turn; /* as above; inner is 1 then */
} softmax_any_shape;

int softmax_any_launch(const softmax_any_shape *shape, int threads, const void *x, const void *bias, void *y,
                       void *stream);

#ifdef __cplusplus
}
#endif
