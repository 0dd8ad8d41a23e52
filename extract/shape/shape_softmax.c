/* Softmax, LogSoftmax and Hardmax: the input's shape. Their values never decide a shape and are not followed. */
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

void shape_softmax(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int64_t axis = infer_attr_int(c, "axis", infer_opset(c) < 13 ? 1 : -1);
    /* Before opset 13 the axis is where the shape is flattened, which may be at its very end. */
    bool at_end = infer_opset(c) < 13 && axis == x->rank;
    if (x->rank > 0 && !at_end) infer_axis(c, axis, x->rank);
    infer_set(c, 0, x->type, x->rank, x->dims);
}
