/* The inner loops of reductions in fp32 and int64: along a row, and across rows into a run of sums. */
#pragma once

#include "scout/op/reduce.h"

typedef union cpu_reduce_value {
    float f;
    int64_t i;
} cpu_reduce_value;

/* x[0 … count) into *sum. */
typedef void cpu_reduce_row(const void *x, int64_t count, cpu_reduce_value *sum);
/* x[k] into sums[k]; of places, `which` into places[k] where x[k] is the better one. */
typedef void cpu_reduce_column(const void *x, int64_t count, void *sums, int64_t *places, int64_t which);

typedef struct cpu_reduce_kernels {
    cpu_reduce_row *row, *join; /* join: of partial sums of rows */
    cpu_reduce_column *column;
    cpu_reduce_value start;
    int order; /* of places: 1: the larger is better, -1: the smaller */
} cpu_reduce_kernels;

/* The best for this processor; false: there is none. */
int cpu_reduce_kernels_of(reduce_id id, int wholes, cpu_reduce_kernels *out);
/* The result of a sum of so many elements. */
cpu_reduce_value cpu_reduce_finish(reduce_id id, int wholes, cpu_reduce_value sum, int64_t count);
