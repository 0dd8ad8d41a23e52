/* What a convolution's output should be, in fp64: every element, into memory of the caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_CONV_H
#define KERNELS_REFERENCE_WHOLE_CONV_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WHOLE_CONV_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct whole_conv_axis {
    int64_t in, out, kernel, stride, dilation, begin; /* begin: padding before */
} whole_conv_axis;

typedef struct whole_conv_problem {
    const void *input, *weight;
    const void *bias, *residual;             /* NULL: none; the residual lies as the output */
    uint32_t type_in, type_weight, type_out; /* as in scout/plugin.h; a residual has the output's */
    uint32_t type_bias;
    int transposed, last;             /* last: channels are the last dimension, of input and output */
    int64_t images, group, cin, cout; /* channels of all groups */
    whole_conv_axis axes[WHOLE_CONV_AXES];
    /* Element (image, channel, place) at image * n + channel * c + place * step. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
    /* Of a group: element (output channel, input channel, tap) at group * w_g + output * w_o + input * w_i + tap. */
    int64_t w_g, w_o, w_i;
    int activation;               /* of the sum of everything: kernels/pass/activate.h */
    double alpha, beta, steepest; /* of the activation; it passes on an error times `steepest` */
    int quantised, rounds;        /* scout/op/requantize.h: 0 or 1 */
    double factor, zero_in, zero_weight, zero_out, least, most;
    /* Told when it runs, NULL: as above, and no scales. Of the input one zero point of its type, of the weight one or
     * one for each output channel; scales (fp32) likewise, before the bias. */
    const void *zeros_in, *zeros_weight;
    const float *scales;
    int zeros_weight_each, scales_each;
} whole_conv_problem;

/* want and spread are indexed as the output lies. */
cudaError_t whole_conv(const whole_conv_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
