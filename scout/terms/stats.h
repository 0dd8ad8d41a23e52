/* Statistics of numbers without a clock or a device. Numbers that are not finite are left out; where nothing is left,
 * or the host has no memory left, the figure is not-a-number. */
#pragma once

#include <stddef.h>

double stats_median(const double *x, size_t n);             /* x is not changed */
double stats_quantile(const double *x, size_t n, double q); /* linear between neighbours */
void stats_sort(double *x, size_t n);                       /* all of it, the least first */
