/* The epilogue of a primitive as post-operations of oneDNN: the residual first, then the activation of the sum. */
#pragma once

#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/op/requantize.h"

/* The residual's argument of the primitive. */
enum { CPU_ONEDNN_POST_RESIDUAL = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1 };

/* Requantising before the post-operations: a factor and zero points, where there are any. oneDNN 3 takes these as
 * memories of a launch, which is not supported here: dnnl_unimplemented. */
dnnl_status_t cpu_onednn_post_quantise(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant);

/* The same for a primitive without zero points, with the zero point `zeros` times in its result (a sum of two 2, an
 * average 1): by post-operations alone, which both versions have. */
dnnl_status_t cpu_onednn_post_sum(const cpu_onednn *l, dnnl_primitive_attr_t attr, const requantize *quant, int zeros,
                                  const op_activation *a);

/* residual: NULL or not `there`: none. */
dnnl_status_t cpu_onednn_post(const cpu_onednn *l, dnnl_primitive_attr_t attr, const cpu_onednn_md *residual,
                              const op_activation *a);
