/* Quantising to few bits and back: tensors (scout/op/quantize.h), and how exact a step has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/quantize.h"

static const char *const known_fields[] = {"axis", "zero_points", "block_size", "order_in", "order_out", NULL};

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16; }

static bool is_short(uint32_t type) {
    static const uint32_t types[] = {SCOUT_INT8,    SCOUT_UINT8,       SCOUT_INT16,      SCOUT_UINT16, SCOUT_UINT4,
                                     SCOUT_INT4,    SCOUT_FP8E4M3,     SCOUT_FP8E5M2,    SCOUT_UINT2,  SCOUT_INT2,
                                     SCOUT_FP4E2M1, SCOUT_FP8E4M3FNUZ, SCOUT_FP8E5M2FNUZ};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k] == type) return true;
    return false;
}

static bool build_dynamic(arena *a, scout_op *out, scout_why *why) {
    if (!is_float(out->input) || out->output != SCOUT_UINT8)
        return kind_tensors_refuse(why, "type", "dynamic quantising is from a float to uint8");
    kind_tensors to = kind_tensors_of(out, a, why);
    return kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, (int)out->rank, out->shape) &&
           kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape) &&
           kind_tensors_add_vector(&to, "scale", SCOUT_OUTPUT, SCOUT_FP32, 1) &&
           kind_tensors_add_vector(&to, "zero", SCOUT_OUTPUT, SCOUT_UINT8, 1);
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    const bool forward = op_is(out, "quantize");
    out->input = (uint32_t)o->rec.type;
    out->output = (uint32_t)o->rec.out_type;
    if (op_is(out, "dynamic")) return kind_fields_only(out, known_fields + 5, why) && build_dynamic(a, out, why);
    if (!forward && !op_is(out, "dequantize"))
        return kind_tensors_refuse(why, "feature", "quantising of kind %.40s is not covered",
                                   out->what ? out->what : "none");
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (forward ? !is_float(out->input) || !is_short(out->output) : !is_short(out->input) || !is_float(out->output))
        return kind_tensors_refuse(why, "type", "no way from %s to %s is known here",
                                   dtype_get((dtype)out->input)->name, dtype_get((dtype)out->output)->name);
    if (op_number(out, "order_in", 0) != op_number(out, "order_out", 0))
        return kind_tensors_refuse(why, "feature", "elements that are brought into another order are not covered");
    const int64_t axis = op_number(out, "axis", -1);
    if (axis >= (int64_t)out->rank || axis < -1) return kind_tensors_refuse(why, "shape", "there is no such axis");
    const int64_t block = op_number(out, "block_size", 0);
    if (block < 0 || (block > 0 && axis < 0)) return kind_tensors_refuse(why, "shape", "there are no such blocks");
    for (uint32_t d = 0; d < out->rank; d++)
        if (out->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension is 0");
    kind_tensors to = kind_tensors_of(out, a, why);
    quantize_problem p = {.outer = 1, .channels = axis < 0 ? 1 : out->shape[axis], .inner = 1, .block = block};
    for (int64_t d = 0; d < (int64_t)out->rank && axis >= 0; d++)
        if (d != axis) *(d < axis ? &p.outer : &p.inner) = checked_mul(d < axis ? p.outer : p.inner, out->shape[d]);
    const int64_t channels =
        checked_mul(checked_mul(p.outer, p.channels), p.inner) < INT64_MAX ? quantize_sides(&p) : 0;
    if (!kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, (int)out->rank, out->shape) ||
        !kind_tensors_add_vector(&to, "scales", SCOUT_SIDE, forward ? out->input : out->output, channels))
        return false;
    if (op_number(out, "zero_points", 0) &&
        !kind_tensors_add_vector(&to, "zero_points", SCOUT_SIDE, forward ? out->output : out->input, channels))
        return false;
    return kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape) != NULL;
}

/* Back, and to fp8: one product or quotient in fp32, one rounding to the type. To integers and other short floats: the
 * reference keeps the quotient as it is, and chooses its spread so that 2^-10 of |want| + spread is half a step and
 * 2^-9 more, for quotients (or products with a reciprocal) that round near the middle between two steps. The scale that
 * dynamic quantising finds has a spread that leaves 2^-23 of it. */
static double tolerance(const scout_op *op) {
    const double rounding = kind_rounding(op->output); /* 0: of whole numbers */
    return rounding > 0 ? rounding + 3 * 0x1p-24 : 0x1p-10;
}

const kind kind_quantize = {.op = OP_QUANTIZE, .build = build, .tolerance = tolerance, .light = true};
