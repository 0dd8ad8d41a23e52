/* How finely the reference covers an output, and what it then allows: so that rounding passes and one wrong element
 * does not, wherever it is. */
#pragma once

#include "scout/op/gemm.h"

/* How many columns of a row are projected together, and how many such segments a row has. */
void cpu_cover_segments(const gemm_problem *p, int64_t *width, int64_t *segments);
double cpu_cover_weight(uint64_t seed, int64_t column); /* plus or minus 48 to 60, or 68 to 80 */

/* The measure that a tolerance bounds: 0 where equal; infinite where `got` is not a number, or where anything but equal
 * has no measure. squares: of what was projected, each with its weight. */
double cpu_cover_sample_error(double got, double want, double spread);
double cpu_cover_projection_error(double got, double squares, double want, double spread);

/* Merges the threads' parts of a comparison; verdict->size says how much of it is filled. */
void cpu_cover_sum(const scout_verdict *parts, int count, scout_verdict *verdict);
