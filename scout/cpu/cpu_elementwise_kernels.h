/* The inner loops of the elementwise operators, over short dense runs: fp32 (and truth as 0 and 1), and int64. */
#ifndef SCOUT_CPU_CPU_ELEMENTWISE_KERNELS_H
#define SCOUT_CPU_CPU_ELEMENTWISE_KERNELS_H

#include "scout/elementwise.h"

typedef struct cpu_elementwise_call {
    const void *in[ELEMENTWISE_MAX_INPUTS];
    void *out;
    int64_t count;
    int operands;
    float alpha, beta;
    int64_t low, high; /* bounds of a clip of integers */
} cpu_elementwise_call;

typedef void cpu_elementwise_kernel(const cpu_elementwise_call *c);

/* The best for this processor; NULL: this operator is not known in that type. */
cpu_elementwise_kernel *cpu_elementwise_kernel_of(elementwise_id id, int wholes);

#endif
