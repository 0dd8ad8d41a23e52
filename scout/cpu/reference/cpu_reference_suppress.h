/* What is kept of boxes (scout/op/suppress.h), by definition. */
#pragma once

#include "scout/op/suppress.h"

#include <stdbool.h>

/* All of the output. gone: room for a flag of each box, which is kept or given up, so that none is tested again. */
void cpu_reference_suppress(const scout_op *op, void *const *tensors, double *want, double *spread, bool *gone);
