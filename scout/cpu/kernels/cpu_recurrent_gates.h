/* A step of a recurrent layer after its products, for neighbouring hidden units of one row, and the inner loops of
 * recurrent layers in fp32. */
#pragma once

#include "scout/op/recurrent.h"

#include <stdbool.h>

/* One table for each width of vectors that a processor may have (cpu_recurrent_kernels.c). */
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

/* Pointers are those of the first unit; the same unit of the next gate is `hidden` further. */
typedef struct cpu_recurrent_gates {
    const recurrent_problem *p;
    const cpu_recurrent_kernels *kernels;
    const recurrent_activation *functions; /* of the direction */
    int64_t wide, count;                   /* gates times hidden; units */
    float *input;                          /* products of the input; overwritten */
    const float *back;                     /* products of the state */
    const float *bias, *peephole;          /* NULL: none; the state's bias is `wide` behind the input's */
    const float *before;                   /* the state */
    float *h;                              /* the next one */
    float *c;                              /* of an lstm; overwritten */
    float *reset;                          /* what a gru that resets before its product multiplies */
} cpu_recurrent_gates;

/* second: the last gate of such a gru, after its product. */
void cpu_recurrent_gates_run(const cpu_recurrent_gates *g, bool second);
