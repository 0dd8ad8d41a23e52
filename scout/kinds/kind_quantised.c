/* What quantised work has in common: types, fields, the bias. */
#include "scout/kinds/kind_quantised.h"

#include "common/dtype.h"
#include "scout/op/gemm.h"

#include <string.h>

bool kind_quantised(const scout_op *op) { return requantize_of(op, 1).is != 0; }

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

bool kind_quantised_dynamic(const scout_op *op) {
    const char *const quant = op_text(op, "quant");
    return quant && strcmp(quant, "dynamic") == 0;
}

bool kind_quantised_types(scout_op *op, scout_why *why) {
    const bool is_float = op->output == SCOUT_FP32 || op->output == SCOUT_FP16 || op->output == SCOUT_BF16;
    const uint32_t weight = op->weight == SCOUT_NONE ? op->input : op->weight;
    op->accumulate = SCOUT_INT32;
    if (is_byte(op->input) && is_byte(weight) && (is_float || (is_byte(op->output) && kind_quantised(op)))) return true;
    return kind_tensors_refuse(why, "type", "quantised work on %s with a weight of %s into %s is not covered",
                               dtype_get((dtype)op->input)->name, dtype_get((dtype)op->weight)->name,
                               dtype_get((dtype)op->output)->name);
}

/* Scales of channels are as many numbers as the bias, and change neither the work nor what is looked for. */
bool kind_quantised_fields(const scout_op *op, scout_why *why) {
    const op_activation a = activation_of(op);
    if (kind_quantised_dynamic(op) && op_number(op, "residual", 0) == 0 && a.function == ACTIVATION_PLAIN) return true;
    if (!kind_quantised(op)) {
        if (op_field(op, "quant"))
            return kind_tensors_refuse(why, "feature",
                                       "quantising on the way, by what the input holds, is not covered");
        if (op_field(op, "weight_scales") && !gemm_widens(op->input, op->weight))
            return kind_tensors_refuse(why, "feature", "scales per channel of a quantised weight are not covered");
        return true;
    }
    if (op_number(op, "residual", 0) != 0)
        return kind_tensors_refuse(why, "epilogue", "a residual within quantised work is not covered");
    if (!requantize_activation(&a))
        return kind_tensors_refuse(why, "epilogue", "relu and clip are covered within quantised work, not %.40s",
                                   op_text(op, "activation"));
    return true;
}

uint32_t kind_quantised_bias_type(const scout_op *op) {
    return kind_quantised(op) ? (uint32_t)SCOUT_INT32 : op->output;
}

void kind_quantised_bias(const scout_op *op, scout_tensor *bias, int64_t depth) {
    if (kind_quantised(op)) bias->below = requantize_bias(depth);
}

bool kind_quantised_sum(const scout_op *op, scout_why *why) {
    const op_activation a = activation_of(op);
    const char *const refused = activation_refused(&a);
    const bool in = is_byte(op->input), out = is_byte(op->output);
    if (!kind_quantised(op))
        return kind_tensors_refuse(why, "feature", "quantising on the way, by what the input holds, is not covered");
    if (!in || !out)
        return kind_tensors_refuse(why, "type", "quantised work on %s into %s is not covered",
                                   dtype_get((dtype)op->input)->name, dtype_get((dtype)op->output)->name);
    if (refused) return kind_tensors_refuse(why, "epilogue", "%s", refused);
    if (!requantize_activation(&a) || (a.function == ACTIVATION_RELU && a.alpha != 0))
        return kind_tensors_refuse(why, "epilogue", "relu and clip are covered within quantised work, not %.40s",
                                   op_text(op, "activation"));
    return true;
}
