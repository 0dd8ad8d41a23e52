/* What a step of a recurrent layer does behind its products, for neighbouring hidden units of one row. */
#ifndef SCOUT_CPU_KERNELS_CPU_RECURRENT_GATES_H
#define SCOUT_CPU_KERNELS_CPU_RECURRENT_GATES_H

#include "scout/cpu/kernels/cpu_recurrent_kernels.h"

#include <stdbool.h>

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

/* second: the last gate of such a gru, whose product is there by now. */
void cpu_recurrent_gates_run(const cpu_recurrent_gates *g, bool second);

#endif
