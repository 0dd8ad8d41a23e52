/* Right determinants and inverses (scout/op/matrix.h). */
#pragma once

#include "scout/op/matrix.h"

/* Matrices [from, from + count), at want and spread as they lie in the output. */
void cpu_reference_matrix(const scout_op *op, void *const *tensors, int64_t from, int64_t count, double *want,
                          double *spread);
