/* Rows of numbers in vector form: the inner loops of norms and softmax. One table for each width of vectors that a
 * processor may have. Types are fp32, fp16 and bf16; `count` may be anything, nothing needs to be aligned, and an
 * output may be the very input. */
#pragma once

#include <stdint.h>

typedef struct cpu_rows {
    const char *name; /* "avx512", "avx2", "portable" */
    void (*load)(uint32_t type, const void *from, int64_t count, float *to);
    void (*store)(uint32_t type, const float *from, int64_t count, void *to); /* to the nearest, ties to even */
    double (*sum)(const float *x, int64_t count);
    double (*squares)(const float *x, int64_t count, float mean); /* of x - mean */
    double (*magnitudes)(const float *x, int64_t count);
    float (*largest)(const float *x, int64_t count); /* count > 0 */
    /* y = exp(x - shift), within 2 units in the last place of exp of that difference; their sum comes back. */
    double (*exponentials)(const float *x, int64_t count, float shift, float *y);
    void (*affine)(const float *x, int64_t count, float mean, float factor, float addend, float *y);
    /* The same with a factor and an addend for each; either may be NULL. */
    void (*scaled)(const float *x, int64_t count, float mean, float factor, const float *scale, const float *bias,
                   float *y);
    void (*add)(const float *a, const float *b, int64_t count, float *y);
    void (*add_one)(const float *a, float b, int64_t count, float *y);
    void (*relu)(const float *x, int64_t count, float *y);
    void (*silu)(const float *x, int64_t count, float *y); /* x / (1 + exp(-x)) */
    /* Per column of a slab: sums += x; sums += |x|; sums += (x - mean)^2; most = larger of both; y = (x - mean) *
     * factor; y = exp(x - most), sums += y. */
    void (*sum_columns)(const float *x, int64_t count, float *sums);
    void (*magnitude_columns)(const float *x, int64_t count, float *sums);
    void (*square_columns)(const float *x, const float *mean, int64_t count, float *sums);
    void (*largest_columns)(const float *x, int64_t count, float *most);
    void (*scale_columns)(const float *x, const float *mean, const float *factor, int64_t count, float *y);
    void (*exponential_columns)(const float *x, const float *most, int64_t count, float *y, float *sums);
} cpu_rows;

const cpu_rows *cpu_rows_best(void);
const cpu_rows *cpu_rows_at(int index); /* each that this processor can run, from 0 on; NULL: no more */

/* Where the scratch of a thread begins, and how much there is of it for all threads, in whole lines of the cache. */
int64_t cpu_rows_scratch(int64_t floats);
