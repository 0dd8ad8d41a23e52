/* What recurrent layers are made of in fp32, in vector form: products of rows, and the activations of gates. One table
 * for each width of vectors that a processor may have. */
#ifndef SCOUT_CPU_KERNELS_CPU_RECURRENT_KERNELS_H
#define SCOUT_CPU_KERNELS_CPU_RECURRENT_KERNELS_H

#include "scout/op/recurrent.h"

typedef struct cpu_recurrent_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    /* out[k * out_apart] = the product of w with row k of x; rows are `apart` from each other. */
    void (*dots)(const float *w, const float *x, int64_t count, int64_t rows, int64_t apart, float *out,
                 int64_t out_apart);
    void (*sigmoid)(float *x, int64_t count);
    void (*tangent)(float *x, int64_t count);
} cpu_recurrent_kernels;

const cpu_recurrent_kernels *cpu_recurrent_kernels_best(void);

/* In place, after clipping (clip 0: none). */
void cpu_recurrent_activate(const cpu_recurrent_kernels *k, const recurrent_activation *a, float clip, float *x,
                            int64_t count);

#endif
