/* Sliding windows: what convolution, pooling and unfolding share. */
#pragma once

#include "extract/infer/infer.h"

typedef enum window_pad { WINDOW_EXPLICIT, WINDOW_SAME_UPPER, WINDOW_SAME_LOWER, WINDOW_VALID } window_pad;

typedef struct shape_window {
    int n; /* spatial dimensions */
    window_pad pad;
    bool ceil; /* ceil_mode */
    bool pool; /* of a pool: it may hang over the end of its input by less than a stride */
    int64_t kernel[INFO_MAX_RANK], stride[INFO_MAX_RANK], dilation[INFO_MAX_RANK];
    int64_t before[INFO_MAX_RANK], after[INFO_MAX_RANK];
} shape_window;

/* Reads strides, dilations, pads, auto_pad and ceil_mode for n spatial dimensions; kernel sizes come from `kernel` (a
 * weight's shape; the attribute, where given, must agree) or, where that is NULL, from the attribute kernel_shape. */
void shape_window_read(infer *c, shape_window *w, int n, const int64_t *kernel);
/* Size of the output along spatial dimension k for an input of `size`. Fails where the kernel does not fit. */
int64_t shape_window_slide(infer *c, const shape_window *w, int k, int64_t size);
/* An attribute of n integers, each at least `least`; all `otherwise` where it is absent. */
void shape_window_ints(infer *c, const char *name, int n, int64_t least, int64_t otherwise, int64_t *x);
/* Where the kernel's sizes start in the shape of a convolution's weight: 2 for [M, C/group, k...], the usual, 1 for
 * [M, k..., C/group], which channels-last operators of com.microsoft may have. */
int shape_window_kernel_at(const node *n, const info *in, const info *weight);
