/* Elementwise operators of the reference. */
#pragma once

#include "scout/op/elementwise.h"

#include <stdbool.h>

bool cpu_reference_operators_has(elementwise_id id, bool wholes);
/* Of operators that it has: the result of n operands; of integers in 64 bits, not yet as their type keeps it. */
double cpu_reference_operators_floats(elementwise_id id, const double *x, int n, const elementwise_numbers *p);
int64_t cpu_reference_operators_wholes(elementwise_id id, const int64_t *x, int n, const elementwise_numbers *p);
/* The root of the sum of the squares of the terms beside the result itself that its rounding errors are part of. */
double cpu_reference_operators_spread(elementwise_id id, const double *x, int n);
/* Random numbers (scout/op/random.h): elements [from, from + count) of the output. */
void cpu_reference_random(const scout_op *op, void *const *tensors, int64_t from, int64_t count, double *want,
                          double *spread);
