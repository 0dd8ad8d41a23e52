/* Rows and columns of a product's operands as doubles, whatever their types and layouts; weights in blocks with their
 * scales. */
#pragma once

#include "scout/op/gemm.h"

#include <stdbool.h>

typedef struct cpu_lines {
    gemm_problem p;
    const void *a, *b, *bias, *scales, *residual; /* borrowed; the last three: NULL where there are none */
    uint32_t bias_type, scales_type;
    int64_t bias_row, bias_column, bias_batch; /* steps of the bias between rows, columns and products */
    int64_t scale_blocks;                      /* scales of one output column */
    const void *a_zero, *b_zero, *factors;     /* of bytes; NULL where there are none */
} cpu_lines;

/* SCOUT_NO for a product that this cannot read (a type, an unknown bias). */
scout_answer cpu_lines_of(const scout_op *op, void *const *tensors, cpu_lines *out, scout_why *why);
void cpu_lines_a_row(const cpu_lines *l, int64_t product, int64_t row, double *out);       /* k values */
void cpu_lines_b_column(const cpu_lines *l, int64_t product, int64_t column, double *out); /* k values, scaled */
void cpu_lines_b_row(const cpu_lines *l, int64_t product, int64_t row, double *out);       /* n values, scaled */
double cpu_lines_bias(const cpu_lines *l, int64_t product, int64_t row, int64_t column);   /* 0 without one */
double cpu_lines_residual(const cpu_lines *l, int64_t product, int64_t row, int64_t column);
/* The epilogue of a sum: alpha, bias, residual and activation; *squares, of the terms of the sum, becomes that of all
 * terms, as far as the activation may pass on their errors. */
double cpu_lines_finish(const cpu_lines *l, int64_t product, int64_t row, int64_t column, double total,
                        double *squares);

typedef struct cpu_activated_sum { /* what an output, or a projection of outputs, should be */
    double want, spread;
} cpu_activated_sum;

/* Whether that many multiply-adds are too many to be done here: they would take minutes. */
bool cpu_activated_too_large(const gemm_problem *p);

/* Of one product of the batch: sums[row * segments + s] becomes the sum of x[j] * output[row][j] over the columns of
 * segment s, each `width` (at most CPU_ACTIVATED_COLUMNS, which it divides) wide. false: no memory. */
enum { CPU_ACTIVATED_COLUMNS = 32 };
bool cpu_activated(const cpu_lines *lines, int64_t product, const double *x, int64_t width, int64_t segments,
                   cpu_activated_sum *sums);
