/* What stands behind a product, by a pass of its own: for libraries that multiply and do no more. In place; sums that
 * the library rounded to 16 bits are rounded once more. */
#ifndef SCOUT_CPU_CPU_GEMM_TAIL_H
#define SCOUT_CPU_CPU_GEMM_TAIL_H

#include "scout/cpu/cpu_elementwise_kernels.h"
#include "scout/gemm.h"

typedef struct cpu_gemm_tail {
    gemm_problem p;
    int bias; /* its tensor; -1: none */
    uint32_t type_bias;
    cpu_elementwise_kernel *activate;    /* NULL: none */
    const struct cpu_gemm_tail_way *way; /* for this processor */
} cpu_gemm_tail;

/* SCOUT_NO: it is not for these types, or not for this bias. `op` has an epilogue. */
scout_answer cpu_gemm_tail_of(const scout_op *op, cpu_gemm_tail *out, scout_why *why);
void cpu_gemm_tail_run(const cpu_gemm_tail *tail, void *const *tensors);

#endif
