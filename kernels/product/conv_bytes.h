/* Convolutions of bytes in any mixture by a plain kernel: a thread for each output. Self-contained, as product_bytes.h,
 * which has the epilogue. */
#ifndef KERNELS_PRODUCT_CONV_BYTES_H
#define KERNELS_PRODUCT_CONV_BYTES_H

#include "kernels/product/product_bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CONV_BYTES_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct conv_bytes_axis {
    int64_t in, out, kernel, stride, dilation, begin; /* begin: padding before */
} conv_bytes_axis;

/* Sums of (x - zero_in) * w, and 0 where a window reaches beyond the input. As int32 they are the output; quantised
 * they go through `finish`, with a bias (int32) for each output channel. */
typedef struct conv_bytes {
    conv_bytes_axis axes[CONV_BYTES_AXES];
    int64_t images, group, cin, cout; /* channels of all groups */
    int last;                         /* channels are the last dimension */
    /* Element (image, channel, place) at image * n + channel * c + place * step. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
    /* Of a group: element (output channel, input channel, tap) at group * w_g + output * w_o + input * w_i + tap. */
    int64_t w_g, w_o, w_i;
    int signed_in, signed_weight, zero_in, quantised;
    int type; /* of the output: int32, or quantised int8, uint8, fp32 */
    product_bytes_finish finish;
} conv_bytes;

/* Enqueues, and returns 0 or a cudaError_t. bias NULL: none. */
int conv_bytes_launch(const conv_bytes *c, const void *input, const void *weight, const void *bias, void *output,
                      void *stream);

#ifdef __cplusplus
}
#endif

#endif
