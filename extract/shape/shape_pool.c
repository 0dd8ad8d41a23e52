/* Pooling: windows that slide over spatial dimensions, over the whole of them, or over regions given as an input. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/infer/shape_window.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

static void slide_pool(infer *c, bool channels_last) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 3, -1);
    int first = channels_last ? 1 : 2, channel = channels_last ? rank - 1 : 1;
    shape_window w;
    shape_window_read(c, &w, rank - 2, NULL);
    dims[0] = infer_dim(c, 0, 0);
    dims[channel] = infer_dim(c, 0, channel);
    for (int k = 0; k < rank - 2; k++) dims[first + k] = shape_window_slide(c, &w, k, infer_dim(c, 0, first + k));
    infer_set(c, 0, infer_type(c, 0), rank, dims);
    infer_set(c, 1, DTYPE_INT64, rank, dims);
}

void shape_pool(infer *c) { slide_pool(c, infer_attr_int(c, "channels_last", 0) != 0); }

void shape_pool_nhwc(infer *c) { slide_pool(c, true); }

void shape_pool_global(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 2, -1);
    int channel = infer_attr_int(c, "channels_last", 0) ? rank - 1 : 1;
    for (int k = 0; k < rank; k++) dims[k] = k == 0 || k == channel ? infer_dim(c, 0, k) : 1;
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

/* The inverse of a max pool: positions come from the indices, the size from the window or from an input. */
void shape_pool_unpool(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 3, -1);
    shape_need_same(c, 1, 0);
    if (infer_has(c, 2)) {
        const int64_t *size;
        int64_t n;
        if (!shape_need_ints(c, 2, &size, &n, "the size of the output")) return;
        if (n != rank)
            infer_fail(c, "input 2 (output_shape) has %" PRId64 " values for the input %s", n, shape_need_text(c, 0));
        infer_set(c, 0, infer_type(c, 0), rank, size);
        return;
    }
    shape_window w;
    shape_window_read(c, &w, rank - 2, NULL);
    dims[0] = infer_dim(c, 0, 0);
    dims[1] = infer_dim(c, 0, 1);
    for (int k = 0; k < rank - 2; k++) {
        int64_t size = checked_mul(checked_sub(infer_dim(c, 0, 2 + k), 1), w.stride[k]);
        size = checked_sub(checked_add(size, w.kernel[k]), checked_add(w.before[k], w.after[k]));
        if (size < 0)
            infer_fail(c, "nothing is left of spatial dimension %d after padding; input 0 is %s", k,
                       shape_need_text(c, 0));
        dims[2 + k] = size;
    }
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

void shape_pool_max_roi(infer *c) {
    shape_need_rank(c, 0, 4, 4);
    shape_need_rank(c, 1, 2, 2);
    shape_need_dim(c, 1, 1, 5, "batch and corners of a region");
    int64_t pooled[2];
    if (!infer_attr(c, "pooled_shape")) infer_fail(c, "attribute 'pooled_shape' is missing");
    shape_window_ints(c, "pooled_shape", 2, 1, 1, pooled);
    int64_t dims[4] = {infer_dim(c, 1, 0), infer_dim(c, 0, 1), pooled[0], pooled[1]};
    infer_set(c, 0, infer_type(c, 0), 4, dims);
}

void shape_pool_roi_align(infer *c) {
    shape_need_rank(c, 0, 4, 4);
    shape_need_rank(c, 1, 2, 2);
    shape_need_dim(c, 1, 1, 4, "corners of a region");
    shape_need_rank(c, 2, 1, 1);
    shape_need_dim(c, 2, 0, infer_dim(c, 1, 0), "regions");
    int64_t height = infer_attr_int(c, "output_height", 1), width = infer_attr_int(c, "output_width", 1);
    if (height <= 0 || width <= 0)
        infer_fail(c, "the output of a region would be %" PRId64 " x %" PRId64, height, width);
    int64_t dims[4] = {infer_dim(c, 1, 0), infer_dim(c, 0, 1), height, width};
    infer_set(c, 0, infer_type(c, 0), 4, dims);
}
