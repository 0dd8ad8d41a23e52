/* An elementwise operation, one operator or a chain of them, as a list of calls over short runs in the first cache: the
 * operators' kernels, and between them conversions of arithmetic. */
#ifndef SCOUT_CPU_KERNELS_CPU_ELEMENTWISE_STEPS_H
#define SCOUT_CPU_KERNELS_CPU_ELEMENTWISE_STEPS_H

#include "scout/cpu/device/cpu_blocks.h"
#include "scout/cpu/kernels/cpu_elementwise_kernels.h"
#include "scout/op/elementwise_chain.h"

typedef struct cpu_elementwise_step {
    cpu_elementwise_kernel *kernel;
    int from[ELEMENTWISE_MAX_INPUTS]; /* operand of the operation, or ELEMENTWISE_CHAIN_VALUE */
    cpu_elementwise_call call;        /* its numbers, and how many operands; the rest is the caller's */
} cpu_elementwise_step;

/* A step is a change of its value, an operator, and a change of its result at the most. */
enum { CPU_ELEMENTWISE_MOST_STEPS = 3 * ELEMENTWISE_CHAIN_STEPS };

typedef struct cpu_elementwise_steps {
    int count; /* at least 1 */
    cpu_elementwise_step steps[CPU_ELEMENTWISE_MOST_STEPS];
    cpu_blocks in[ELEMENTWISE_MAX_OPERANDS], out; /* how operands are read, and the last value is written */
} cpu_elementwise_steps;

/* false: there is no kernel of that operator in that type (why says so). */
bool cpu_elementwise_steps_of(const scout_op *op, cpu_elementwise_steps *out, scout_why *why);

#endif
