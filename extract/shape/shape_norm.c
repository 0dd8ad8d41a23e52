/* Normalisations, and the many operators whose output is simply shaped like their first input. */
#include "extract/infer/shape_need.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

void shape_norm_same(infer *c) {
    if (!infer_shaped(c, 0)) shape_need_rank(c, 0, 0, -1);
    shape_need_like(c, 0, 0);
}

/* As above, where every other input must have the very same shape. */
void shape_norm_same_all(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    for (int i = 1; i < infer_in_count(c); i++)
        if (infer_has(c, i)) shape_need_same(c, i, 0);
    shape_need_like(c, 0, 0);
}

static dtype stash_type(infer *c) {
    int64_t stash = infer_attr_int(c, "stash_type", DTYPE_FP32);
    if (!dtype_known(stash)) infer_fail(c, "attribute 'stash_type' is %" PRId64 ", which is no data type", stash);
    return (dtype)stash;
}

/* Mean and inverse deviation keep the dimensions before the axis and have 1 in place of those that are normalised. */
static void set_statistics(infer *c, int rank, int axis) {
    int64_t dims[INFO_MAX_RANK];
    dtype type = stash_type(c);
    for (int k = 0; k < rank; k++) dims[k] = k < axis ? infer_dim(c, 0, k) : 1;
    infer_set(c, 1, type, rank, dims);
    infer_set(c, 2, type, rank, dims);
}

/* A scale has to broadcast to the normalised dimensions, but may not widen them. */
static void need_scale_fits(infer *c, int i) {
    if (!infer_has(c, i)) return;
    int rank = infer_rank(c, 0), scale_rank = infer_rank(c, i);
    for (int k = 1; k <= scale_rank; k++) {
        int64_t size = infer_dim(c, i, -k);
        if (size != 1 && (k > rank || size != infer_dim(c, 0, -k)))
            infer_fail(c, "input %d, %s, does not fit the normalised dimensions of %s", i, shape_need_text(c, i),
                       shape_need_text(c, 0));
    }
}

void shape_norm_layer(infer *c) {
    int rank = shape_need_rank(c, 0, 1, -1);
    int axis = infer_axis(c, infer_attr_int(c, "axis", -1), rank);
    need_scale_fits(c, 1);
    need_scale_fits(c, 2);
    bool simplified =
        graph_is(c->node, "SimplifiedLayerNormalization") || graph_is_ms(c->node, "SimplifiedLayerNormalization");
    infer_set_like(c, 0, infer_type(c, simplified ? 1 : 0), infer_in(c, 0));
    set_statistics(c, rank, axis);
}

/* The output has the type of the scale. */
void shape_norm_rms(infer *c) {
    int rank = shape_need_rank(c, 0, 1, -1);
    infer_axis(c, infer_attr_int(c, "axis", -1), rank);
    need_scale_fits(c, 1);
    infer_set_like(c, 0, infer_type(c, 1), infer_in(c, 0));
}

/* One value per channel; the oldest form may keep one per position instead (spatial 0), so nothing is said of the rank.
 * Outputs after the first exist in training and look like the running mean and variance. */
void shape_norm_batch(infer *c) {
    int rank = shape_need_rank(c, 0, 1, -1);
    int64_t channels = rank > 1 ? infer_dim(c, 0, 1) : 1;
    for (int i = 1; i <= 4; i++)
        if (infer_rank(c, i) == 1) shape_need_dim(c, i, 0, channels, "channels");
    shape_need_like(c, 0, 0);
    for (int k = 1; k <= 4; k++) shape_need_like(c, k, k % 2 ? 3 : 4);
}

/* Softmax, LogSoftmax and Hardmax. Their values never decide a shape and are not followed. */
void shape_softmax(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    int64_t axis = infer_attr_int(c, "axis", infer_opset(c) < 13 ? 1 : -1);
    /* Before opset 13 the axis is where the shape is flattened, which may be at its very end. */
    bool at_end = infer_opset(c) < 13 && axis == x->rank;
    if (x->rank > 0 && !at_end) infer_axis(c, axis, x->rank);
    infer_set(c, 0, x->type, x->rank, x->dims);
}
