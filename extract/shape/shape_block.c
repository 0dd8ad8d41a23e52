/* Operators of com.microsoft.nchwc that ONNX has not: what brings channels into blocks and back. A tensor in blocks has
 * the dimensions of a plain one, with channels padded to whole blocks. */
#include "common/checked.h"
#include "extract/infer/channel_block.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

/* Sizes of space from one of both layouts to the other. */
static void move_space(infer *c, int rank, bool from_last, bool to_last, int64_t *dims) {
    for (int k = 0; k < rank - 2; k++) dims[(to_last ? 1 : 2) + k] = infer_dim(c, 0, (from_last ? 1 : 2) + k);
}

void shape_block_input(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    const int rank = shape_need_rank(c, 0, 2, -1);
    const bool last = infer_attr_int(c, "channels_last", 0) != 0;
    const int64_t block = channel_block(c->model);
    dims[0] = infer_dim(c, 0, 0);
    dims[1] = checked_mul(checked_ceil_div(infer_dim(c, 0, last ? rank - 1 : 1), block), block);
    move_space(c, rank, last, false, dims);
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

void shape_block_output(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    const int rank = shape_need_rank(c, 0, 2, -1);
    const bool last = infer_attr_int(c, "channels_last", 0) != 0;
    const int64_t channels = shape_need_positive(c, "channels");
    if (channels > infer_dim(c, 0, 1))
        infer_fail(c, "attribute 'channels' is %" PRId64 ", more than the input %s has", channels,
                   shape_need_text(c, 0));
    dims[0] = infer_dim(c, 0, 0);
    dims[last ? rank - 1 : 1] = channels;
    move_space(c, rank, false, last, dims);
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

/* Its scales are whole numbers. */
void shape_block_upsample(infer *c) {
    int64_t dims[INFO_MAX_RANK], n;
    const int64_t *scales;
    const int rank = shape_need_rank(c, 0, 2, -1);
    if (!infer_attr_ints(c, "scales", &scales, &n)) infer_fail(c, "attribute 'scales' is missing");
    if (n != rank) infer_fail(c, "%" PRId64 " scales are given for %d axes of %s", n, rank, shape_need_text(c, 0));
    for (int k = 0; k < rank; k++) {
        if (scales[k] < 1) infer_fail(c, "a scale is %" PRId64 ", it must be positive", scales[k]);
        dims[k] = checked_mul(infer_dim(c, 0, k), scales[k]);
    }
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}
