/* What is kept of boxes (scout/op/suppress.h), by definition. */
#pragma once

#include "scout/op/suppress.h"

/* All of the output. */
void cpu_reference_suppress(const scout_op *op, void *const *tensors, double *want, double *spread);
