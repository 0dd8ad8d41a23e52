/* Rows of a convolution in fp64: the sums of the reference, whatever the filters are. */
#ifndef SCOUT_CPU_PRODUCTS_CPU_CONV_ROWS_H
#define SCOUT_CPU_PRODUCTS_CPU_CONV_ROWS_H

#include "scout/op/conv.h"

enum { CONV_ROWS_BEHIND = 32 };

/* Columns [from, to) of the row (depth, height) of one output channel: want is increased by the sum of the products,
 * squares by the sum of their squares. `image`: the input channels of the group, dense, each in order of depth, height
 * and width, and CONV_ROWS_BEHIND numbers of any kind behind all of them. weights, squared: of this output channel,
 * [input channel][tap]; squared are what the squares of the inputs are multiplied with. */
void cpu_conv_rows(const conv_problem *p, const double *image, const double *weights, const double *squared,
                   int64_t depth, int64_t height, int64_t from, int64_t to, double *want, double *squares);

#endif
