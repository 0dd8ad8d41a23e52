/* The epilogue of a product in a pass of its own: for libraries without a fused one. In place; sums that the library
 * rounded to 16 bits are rounded once more. */
#pragma once

#include "scout/cpu/kernels/cpu_elementwise_kernels.h"
#include "scout/op/gemm.h"

#include <stdbool.h>

/* Rows of fp32, fp16 and bf16 to fp32 and back, at the width of this processor. */
typedef struct cpu_gemm_tail_way {
    void (*load)(uint32_t type, const void *from, int64_t count, float *to);
    void (*store)(uint32_t type, const float *from, int64_t count, void *to);
    void (*scale)(float by, int64_t count, float *to);
    void (*add)(const float *from, float constant, int64_t count, float *to); /* from NULL: the constant alone */
} cpu_gemm_tail_way;

typedef struct cpu_gemm_tail {
    gemm_problem p;
    int bias; /* its tensor; -1: none */
    uint32_t type_bias;
    cpu_elementwise_kernel *activate; /* NULL: none */
    const cpu_gemm_tail_way *way;
} cpu_gemm_tail;

/* Whether a product of which the library makes the bare sums needs the pass. */
static inline bool cpu_gemm_tail_wanted(const gemm_problem *p) { return gemm_has_epilogue(p) || gemm_has_factors(p); }

/* SCOUT_NO: unsupported types or bias. It multiplies sums by alpha; p.alpha = 1 afterwards where that is done. */
scout_answer cpu_gemm_tail_of(const scout_op *op, cpu_gemm_tail *out, scout_why *why);
/* All of the output, in place, on all threads. */
void cpu_gemm_tail_run(const cpu_gemm_tail *tail, void *const *tensors);
/* `count` columns of a row from `first` on: from sums in fp32, which it changes, to the output. */
enum { CPU_GEMM_TAIL_MOST = 1024 };
void cpu_gemm_tail_row(const cpu_gemm_tail *tail, void *const *tensors, int64_t product, int64_t row, int64_t first,
                       int64_t count, float *sums);
