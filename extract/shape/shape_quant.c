/* Quantisation and back: shapes stay, types come from the zero point, the scale or an attribute. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

/* A scale is a scalar, one value per slice of an axis, or one per block. */
static void need_scale_fits(infer *c) {
    int rank = infer_rank(c, 0), scale_rank = infer_rank(c, 1);
    int64_t block = infer_attr_int(c, "block_size", 0);
    if (block < 0) infer_fail(c, "attribute 'block_size' is %" PRId64 ", it must not be negative", block);
    if (infer_has(c, 2) && infer_rank(c, 2) != scale_rank && info_count(infer_in(c, 2)) != info_count(infer_in(c, 1)))
        infer_fail(c, "the zero point %s does not fit the scale %s", shape_need_text(c, 2), shape_need_text(c, 1));
    if (block == 0) {
        if (scale_rank != 1 || infer_dim(c, 1, 0) == 1) return;
        int axis = infer_axis(c, infer_attr_int(c, "axis", 1), rank);
        if (infer_dim(c, 0, axis) != infer_dim(c, 1, 0))
            infer_fail(c, "the scale %s does not fit axis %d of %s", shape_need_text(c, 1), axis,
                       shape_need_text(c, 0));
        return;
    }
    int axis = infer_axis(c, infer_attr_int(c, "axis", 1), rank);
    shape_need_rank(c, 1, rank, rank);
    for (int k = 0; k < rank; k++)
        shape_need_dim(c, 1, k, k == axis ? checked_ceil_div(infer_dim(c, 0, k), block) : infer_dim(c, 0, k), "blocks");
}

static dtype stated_type(infer *c, dtype otherwise) {
    int64_t type = infer_attr_int(c, "output_dtype", 0);
    if (type == 0) return otherwise;
    if (!dtype_known(type)) infer_fail(c, "attribute 'output_dtype' is %" PRId64 ", which is no data type", type);
    return (dtype)type;
}

void shape_quant_quantize(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    need_scale_fits(c);
    dtype type = infer_has(c, 2) ? infer_type(c, 2) : stated_type(c, DTYPE_UINT8);
    infer_set_like(c, 0, type, infer_in(c, 0));
}

void shape_quant_dequantize(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    need_scale_fits(c);
    infer_set_like(c, 0, stated_type(c, infer_type(c, 1)), infer_in(c, 0));
}

void shape_quant_dynamic(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, DTYPE_UINT8, infer_in(c, 0));
    infer_set(c, 1, DTYPE_FP32, 0, NULL);
    infer_set(c, 2, DTYPE_UINT8, 0, NULL);
}
