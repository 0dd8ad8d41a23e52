/* Every lower function that the operator table names. */
#pragma once

#include "extract/graph/operators.h"
#include "extract/ops/work.h"

operator_lower_fn lower_attention, lower_attention_ms, lower_control, lower_conv, lower_dropout, lower_einsum,
    lower_elementwise, lower_gather, lower_gemm, lower_matmul, lower_matmul_nbits, lower_moe, lower_move, lower_norm,
    lower_other, lower_pool, lower_quantize, lower_random, lower_recurrent, lower_reduce, lower_reorder, lower_resize,
    lower_rotary, lower_scatter, lower_softmax, lower_uncosted, lower_whole, lower_view;
