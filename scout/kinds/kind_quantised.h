/* Work on bytes between DequantizeLinear and QuantizeLinear (scout/op/requantize.h): what their kinds
 * share. */
#pragma once

#include "scout/kinds/kind_tensors.h"

/* Whether the operation says so. Its input, weight and output types must be set for the rest. */
bool kind_quantised(const scout_op *op);
/* Whether scales and zero points are known only when it runs (`quant` dynamic). Bytes come in, floats go out. */
bool kind_quantised_dynamic(const scout_op *op);
/* Sets what sums are kept in; false: these types do not go together. */
bool kind_quantised_types(scout_op *op, scout_why *why);
/* Whether what the operation's fields say can be told; true of one that is not quantised, unless it has scales for each
 * channel. */
bool kind_quantised_fields(const scout_op *op, scout_why *why);
/* Makes a bias that was added the integers that go with sums of so many products; of others nothing. */
void kind_quantised_bias(const scout_op *op, scout_tensor *bias, int64_t depth);
/* Of what has no weight, and says that it is quantised: whether types and fields can be told. */
bool kind_quantised_sum(const scout_op *op, scout_why *why);
/* The type of a bias. */
uint32_t kind_quantised_bias_type(const scout_op *op);
