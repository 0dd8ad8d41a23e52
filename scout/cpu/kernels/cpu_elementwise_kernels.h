/* The inner loops of the elementwise operators, over short dense runs: fp32 (and truth as 0 and 1), int64 (with a sign,
 * or as uint64), and fp64. */
#pragma once

#include "scout/op/elementwise.h"

typedef struct cpu_elementwise_call {
    const void *in[ELEMENTWISE_MAX_INPUTS];
    void *out;
    int64_t count;
    int operands;
    double alpha, beta;
    int64_t low, high; /* the same of integers */
} cpu_elementwise_call;

typedef void cpu_elementwise_kernel(const cpu_elementwise_call *c);

/* What happens to a value between the steps of a chain: from fp32 to int64 (the fraction is cut off) and back, to truth
 * (of fp32, of int64), and integers as a narrow type keeps them; fp32 times alpha. */
typedef enum cpu_elementwise_change {
    CPU_ELEMENTWISE_COPY,
    CPU_ELEMENTWISE_TO_WHOLES,
    CPU_ELEMENTWISE_TO_FLOATS,
    CPU_ELEMENTWISE_TRUTH,
    CPU_ELEMENTWISE_WHOLE_TRUTH,
    CPU_ELEMENTWISE_KEEP_INT32,
    CPU_ELEMENTWISE_KEEP_INT8,
    CPU_ELEMENTWISE_KEEP_UINT8,
    CPU_ELEMENTWISE_SCALE
} cpu_elementwise_change;

cpu_elementwise_kernel *cpu_elementwise_change_of(cpu_elementwise_change change); /* one operand */

/* The best for this processor. `in`: one of ELEMENTWISE_FLOAT, _WHOLE, _NATURAL and _DOUBLE. NULL: this operator is not
 * known in that. */
cpu_elementwise_kernel *cpu_elementwise_kernel_of(elementwise_id id, int in);
