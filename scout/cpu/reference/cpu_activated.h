/* Projections of a product with an activation behind it. An activation rules out folding columns beforehand, so every
 * output is computed in fp64; only projections are kept. */
#ifndef SCOUT_CPU_REFERENCE_CPU_ACTIVATED_H
#define SCOUT_CPU_REFERENCE_CPU_ACTIVATED_H

#include "scout/cpu/reference/cpu_lines.h"

#include <stdbool.h>

typedef struct cpu_activated_sum { /* what an output, or a projection of outputs, should be */
    double want, spread;
} cpu_activated_sum;

/* Whether that many multiply-adds are too many to be done here: they would take minutes. */
bool cpu_activated_too_large(const gemm_problem *p);

/* Of one product of the batch: sums[row * segments + s] becomes the sum of x[j] * output[row][j] over the columns of
 * segment s, each `width` (at most CPU_ACTIVATED_COLUMNS, which it divides) wide. false: no memory. */
enum { CPU_ACTIVATED_COLUMNS = 32 };
bool cpu_activated(const cpu_lines *lines, int64_t product, const double *x, int64_t width, int64_t segments,
                   cpu_activated_sum *sums);

#endif
