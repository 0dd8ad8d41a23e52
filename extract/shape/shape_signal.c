/* Fourier transforms, windows and mel weights. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>

static dtype output_type(infer *c) {
    int64_t type = infer_attr_int(c, "output_datatype", DTYPE_FP32);
    if (!dtype_known(type)) infer_fail(c, "attribute 'output_datatype' is %" PRId64 ", which is no data type", type);
    return (dtype)type;
}

static bool length_of(infer *c, int i, int64_t *length, const char *what) {
    if (!shape_need_int(c, i, length, what)) return false;
    if (*length < 0) infer_fail(c, "%s is %" PRId64 ", it must not be negative", what, *length);
    return true;
}

/* The axis is an attribute in the first form and an input in the second, with another default. */
static bool dft_axis(infer *c, int rank, int *axis) {
    int64_t x = -2;
    if (infer_opset(c) < 20)
        x = infer_attr_int(c, "axis", 1);
    else if (infer_has(c, 2) && !shape_need_int(c, 2, &x, "the axis"))
        return false;
    *axis = infer_axis(c, x, rank);
    if (*axis == rank - 1)
        infer_fail(c, "the axis of the transform is the one of real and imaginary part; input 0 is %s",
                   shape_need_text(c, 0));
    return true;
}

void shape_signal_dft(infer *c) {
    int64_t dims[INFO_MAX_RANK], length;
    int rank = shape_need_rank(c, 0, 2, -1), axis;
    bool onesided = infer_attr_int(c, "onesided", 0) != 0, inverse = infer_attr_int(c, "inverse", 0) != 0;
    int64_t parts = infer_dim(c, 0, rank - 1);
    if (parts != 1 && parts != 2)
        infer_fail(c, "input 0 is %s, its last dimension must be 1 (real) or 2 (complex)", shape_need_text(c, 0));
    if (!dft_axis(c, rank, &axis)) return;
    length = infer_dim(c, 0, axis);
    if (onesided && inverse) length = checked_mul(2, checked_sub(length, 1));
    if (infer_has(c, 1) && !length_of(c, 1, &length, "the length of the transform")) return;
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    dims[axis] = onesided && !inverse ? length / 2 + 1 : length;
    dims[rank - 1] = onesided && inverse ? 1 : 2;
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

void shape_signal_stft(infer *c) {
    int64_t step, length;
    shape_need_rank(c, 0, 2, 3);
    int64_t signal = infer_dim(c, 0, 1);
    if (!length_of(c, 1, &step, "the step between frames")) return;
    if (step == 0) infer_fail(c, "the step between frames is 0, it must be at least 1");
    length = signal;
    if (infer_has(c, 2)) {
        shape_need_rank(c, 2, 1, 1);
        length = infer_dim(c, 2, 0);
    }
    if (infer_has(c, 3)) {
        if (!length_of(c, 3, &length, "the length of a frame")) return;
        if (infer_has(c, 2)) shape_need_dim(c, 2, 0, length, "length of a frame");
    }
    if (length > signal)
        infer_fail(c, "a frame has %" PRId64 " samples, the signal %s has %" PRId64, length, shape_need_text(c, 0),
                   signal);
    int64_t bins = infer_attr_int(c, "onesided", 1) ? length / 2 + 1 : length;
    infer_set(c, 0, infer_type(c, 0), 4, (int64_t[]){infer_dim(c, 0, 0), (signal - length) / step + 1, bins, 2});
}

void shape_signal_window(infer *c) {
    int64_t size;
    if (length_of(c, 0, &size, "the size of the window")) infer_set(c, 0, output_type(c), 1, &size);
}

void shape_signal_mel(infer *c) {
    int64_t bins, length;
    if (!length_of(c, 0, &bins, "the number of bins") || !length_of(c, 1, &length, "the length of the transform"))
        return;
    infer_set(c, 0, output_type(c), 2, (int64_t[]){length / 2 + 1, bins});
}

/* Transforms of com.microsoft: over the last signal_ndim dimensions, where only the last one is halved. */
void shape_signal_rfft(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 1, INFO_MAX_RANK - 1);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    dims[rank - 1] = dims[rank - 1] / 2 + 1;
    dims[rank] = 2;
    infer_set(c, 0, infer_type(c, 0), rank + 1, dims);
}

void shape_signal_irfft(infer *c) {
    int64_t dims[INFO_MAX_RANK] = {0};
    int rank = shape_need_rank(c, 0, 2, -1);
    shape_need_dim(c, 0, rank - 1, 2, "real and imaginary part");
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    dims[rank - 2] = checked_mul(2, checked_sub(dims[rank - 2], 1));
    infer_set(c, 0, infer_type(c, 0), rank - 1, dims);
}
