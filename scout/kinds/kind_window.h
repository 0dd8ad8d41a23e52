/* What the kinds with sliding windows check alike, before these numbers are used. */
#pragma once

#include "scout/kinds/kind_tensors.h"

/* 3 to 5 dimensions, nchw or nhwc, and the lists input, kernel, stride, dilation and pads as long as they have to be,
 * with numbers that cannot overflow. `global`: the kernel may be missing. Fills in an absent layout. */
bool kind_window_check(scout_op *op, bool global, scout_why *why);

/* The dimensions of the input; its channels. Of a checked operation. */
void kind_window_input(const scout_op *op, int64_t *dims);
int64_t kind_window_channels(const scout_op *op, const int64_t *dims);
