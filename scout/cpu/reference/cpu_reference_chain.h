/* One element of a chain of elementwise steps, and its bound of error where an implementation rounds between them. */
#ifndef SCOUT_CPU_REFERENCE_CPU_REFERENCE_CHAIN_H
#define SCOUT_CPU_REFERENCE_CPU_REFERENCE_CHAIN_H

#include "scout/op/elementwise_chain.h"

#include <stdbool.h>

typedef struct cpu_reference_chain {
    elementwise_chain chain;
    double tolerance; /* of all of it */
    double step_tolerance[ELEMENTWISE_CHAIN_STEPS];
    double step_smallest[ELEMENTWISE_CHAIN_STEPS]; /* normal number of its result's type */
} cpu_reference_chain;

bool cpu_reference_chain_of(const scout_op *op, cpu_reference_chain *out, scout_why *why);

/* `x`: the operands. tolerance * (|want| + spread) is what an element may be off by. */
void cpu_reference_chain_element(const cpu_reference_chain *c, const double *x, double *want, double *spread);

/* The smallest normal number of a type of floats, 0 of others: below it a type is coarse. */
double cpu_reference_chain_smallest(uint32_t type);
/* As a type of integers keeps it: modulo its range. */
int64_t cpu_reference_chain_kept(uint32_t type, int64_t x);

#endif
