/* What cpu_reference_reduce.c has from files of their own: each is right by its definition. */
#pragma once

#include "scout/op/matrix.h"
#include "scout/op/suppress.h"

#include <stdbool.h>

/* Determinants and inverses of matrices [from, from + count), at want and spread as they lie in the output. */
void cpu_reference_matrix(const scout_op *op, void *const *tensors, int64_t from, int64_t count, double *want,
                          double *spread);
/* All that is kept of boxes. gone: room for a flag of each, which is kept or given up, so that none is tested again. */
void cpu_reference_suppress(const scout_op *op, void *const *tensors, double *want, double *spread, bool *gone);
