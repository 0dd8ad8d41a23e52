/* Operators that sample or make images. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/infer/shape_window.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

void shape_image_affine_grid(infer *c) {
    const int64_t *size;
    int64_t n;
    shape_need_rank(c, 0, 3, 3);
    if (!shape_need_ints(c, 1, &size, &n, "the size of the image")) return;
    if (n != 4 && n != 5) infer_fail(c, "input 1 (size) has %" PRId64 " values, it must have 4 or 5", n);
    shape_need_dim(c, 0, 0, size[0], "batch");
    int64_t dims[5] = {size[0]};
    for (int64_t k = 2; k < n; k++) dims[k - 1] = size[k];
    dims[n - 1] = n - 2;
    infer_set(c, 0, infer_type(c, 0), (int)n, dims);
}

void shape_image_grid_sample(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 3, -1);
    shape_need_rank(c, 1, rank, rank);
    shape_need_dim(c, 1, 0, infer_dim(c, 0, 0), "batch");
    shape_need_dim(c, 1, rank - 1, rank - 2, "coordinates");
    dims[0] = infer_dim(c, 0, 0);
    dims[1] = infer_dim(c, 0, 1);
    for (int k = 1; k < rank - 1; k++) dims[k + 1] = infer_dim(c, 1, k);
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

/* Columns are [batch, channels * block, blocks]: both products have to come out. */
void shape_image_col2im(infer *c) {
    const int64_t *image, *block;
    int64_t n, block_n, dims[INFO_MAX_RANK], pads[2 * INFO_MAX_RANK], stride[INFO_MAX_RANK], dilation[INFO_MAX_RANK];
    shape_need_rank(c, 0, 3, 3);
    if (!shape_need_ints(c, 1, &image, &n, "the size of the image") ||
        !shape_need_ints(c, 2, &block, &block_n, "the size of a block"))
        return;
    if (n < 1 || n != block_n || n > INFO_MAX_RANK - 2)
        infer_fail(c, "the image has %" PRId64 " dimensions and the block %" PRId64, n, block_n);
    shape_window_ints(c, "pads", 2 * (int)n, 0, 0, pads);
    shape_window_ints(c, "strides", (int)n, 1, 1, stride);
    shape_window_ints(c, "dilations", (int)n, 1, 1, dilation);
    int64_t block_size = 1, blocks = 1;
    for (int k = 0; k < n; k++) {
        if (block[k] <= 0) infer_fail(c, "input 2 (block_shape) holds %" PRId64 ", it must be at least 1", block[k]);
        int64_t padded = checked_add(image[k], checked_add(pads[k], pads[n + k]));
        int64_t room = checked_sub(padded, checked_add(checked_mul(block[k] - 1, dilation[k]), 1));
        if (room < 0)
            infer_fail(c, "a block reaches past the padded image of %" PRId64 " along dimension %d", padded, k);
        block_size = checked_mul(block_size, block[k]);
        blocks = checked_mul(blocks, room / stride[k] + 1);
        dims[2 + k] = image[k];
    }
    shape_need_dim(c, 0, 2, blocks, "blocks");
    dims[0] = infer_dim(c, 0, 0);
    dims[1] = shape_need_multiple(c, infer_dim(c, 0, 1), block_size, "the number of rows", "the size of a block");
    infer_set(c, 0, infer_type(c, 0), 2 + (int)n, dims);
}

void shape_image_decoder(infer *c) { infer_unresolved(c, "the size of the image is in its bytes"); }

void shape_image_crop_and_resize(infer *c) {
    const int64_t *size;
    int64_t n;
    shape_need_rank(c, 0, 4, 4);
    shape_need_rank(c, 1, 2, 2);
    if (!shape_need_ints(c, 3, &size, &n, "the size of a crop")) return;
    if (n != 2) infer_fail(c, "input 3 (crop_size) has %" PRId64 " values, it must have 2", n);
    infer_set(c, 0, infer_type(c, 0), 4, (int64_t[]){infer_dim(c, 1, 0), infer_dim(c, 0, 1), size[0], size[1]});
}
