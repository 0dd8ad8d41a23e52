/* The epilogue of a convolution in fp32: bias, residual, activation. Shared by the project's own loops.
 */
#pragma once

#include "scout/op/conv.h"

/* Types, layout and activation that these loops have; SCOUT_NO with the reason otherwise. */
scout_answer cpu_conv_epilogue_covers(const conv_problem *p, scout_why *why);

/* out[k] = activation(out[k] + bias + residual[k]); residual NULL: none. */
void cpu_conv_epilogue_row(const op_activation *a, float bias, const float *residual, float *out, int64_t count);
