/* Points and regions of images, which kind_pool.c takes in with its own. */
#pragma once

#include "common/oprec.h"
#include "scout/kinds/kind_tensors.h"

/* false: why says what is not covered. */
bool kind_sample(const oprec *rec, arena *a, scout_op *out, scout_why *why);
/* Weights and sums are rounded in fp32; the nearest place is exact. Errors of a region walk. */
double kind_sample_tolerance(const scout_op *op);
