/* Pools on the GPU: maximum and average over windows of one to three dimensions, and interpolation. Self-contained:
 * nothing of the program is needed to use them.
 *
 *     pool_shape shape = {…};
 *     pool_config config = {.lanes = 1, .vector = 1};
 *     if (!pool_direct_fits(&shape, &config)) …
 *     pool_direct_launch(&shape, &config, input, output, stream);
 *
 * A launch only enqueues, allocates nothing, needs no workspace, and can be captured in a graph. `stream` is a
 * cudaStream_t. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { POOL_FP32 = 1, POOL_UINT8 = 2, POOL_INT8 = 3, POOL_FP16 = 10, POOL_BF16 = 16 };

enum { POOL_AXES = 3, POOL_LARGEST = 1 << 28, POOL_MOST_LANES = 32 };

/* Each at most POOL_LARGEST; every window has a place inside of the input. */
typedef struct pool_axis {
    int in, out, kernel, stride, dilation;
    int begin, end; /* padding */
} pool_axis;

/* An average of bytes that becomes bytes again (`is` 1): of x - zero it is multiplied by the factor, kept within least
 * and most, rounded, and zero added. Of all else everything is 0. */
typedef struct pool_quant {
    int is, zero;
    float factor, least, most;
} pool_quant;

typedef struct pool_shape {
    int64_t n, channels;
    pool_axis axes[POOL_AXES]; /* depth, height, width */
    int last;                  /* 1: channels are the last dimension (nhwc), else nchw; densely packed */
    int type;
    int average; /* else the maximum */
    int padded;  /* an average counts padding in */
    pool_quant quant;
} pool_shape;

typedef struct pool_config {
    int lanes;  /* 1, 8 or 32: threads that share a window */
    int vector; /* 1: nhwc, 16 bytes of channels at once, which must divide them all; else 0 */
} pool_config;

int pool_direct_fits(const pool_shape *shape, const pool_config *config);
/* 0 or a cudaError_t */
int pool_direct_launch(const pool_shape *shape, const pool_config *config, const void *in, void *out, void *stream);

/* --- windows_any: norms of windows, and maxima that tell their places --- */

/* Element (image, channel, place) at image * n + channel * c + place * step. indices (int64, as the output lies; NULL:
 * none) count all elements of the input, planes first, and rows before columns or (`columns`) columns before rows. */
typedef struct windows_any_shape {
    int type;
    float order; /* of the norm (floats alone); 0: the maximum */
    int columns;
    int64_t n, channels;
    pool_axis axes[POOL_AXES];
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
} windows_any_shape;

int windows_any_fits(const windows_any_shape *shape);
int windows_any_launch(const windows_any_shape *shape, const void *in, void *out, void *indices, void *stream);

/* --- resize_taps: interpolation along the last three dimensions; fp32, fp16, bf16 --- */

enum { RESIZE_PASS_NEAREST, RESIZE_PASS_LINEAR, RESIZE_PASS_CUBIC };
enum { RESIZE_PASS_HALF_PIXEL, RESIZE_PASS_PYTORCH_HALF_PIXEL, RESIZE_PASS_ALIGN_CORNERS, RESIZE_PASS_ASYMMETRIC };
enum { RESIZE_PASS_PREFER_FLOOR, RESIZE_PASS_PREFER_CEIL, RESIZE_PASS_FLOOR, RESIZE_PASS_CEIL };

/* Modes, how places of the output lie among those of the input, and how a nearest one is found, as ONNX names them.
 * What lies beyond the input is its edge; `inside`: it has no weight instead. */
typedef struct resize_taps_shape {
    int type, mode, way, rounding, inside;
    double cubic;                                  /* the coefficient */
    int64_t planes, in[POOL_AXES], out[POOL_AXES]; /* densely packed */
    double over[POOL_AXES], under[POOL_AXES];      /* `over` of the input becomes `under`: the lengths, or a scale */
} resize_taps_shape;

int resize_taps_fits(const resize_taps_shape *shape);
uint64_t resize_taps_workspace(const resize_taps_shape *shape); /* bytes, at a multiple of 16 */
int resize_taps_launch(const resize_taps_shape *shape, const void *in, void *out, void *workspace, void *stream);

/* --- sample_points: values between places, at points of a grid or over bins of regions; fp32, fp16, bf16 --- */

enum { SAMPLE_POINTS_LINEAR, SAMPLE_POINTS_NEAREST, SAMPLE_POINTS_CUBIC, SAMPLE_POINTS_MAX };
enum { SAMPLE_POINTS_ZEROS, SAMPLE_POINTS_BORDER, SAMPLE_POINTS_REFLECTION };

/* As ONNX has GridSample (side: the grid, [count][rows][columns][2]) and RoiAlign (side: [count][4], and the image of
 * each in `batches`, int64, which a grid has not), and onnxruntime CropAndResize (crops: rois as parts of the image,
 * batches in int32, and `outside` beyond it). Linear is the average of a bin. in:
 * [images][channels][rows][columns], as the output for `count` images or regions. */
typedef struct sample_points_shape {
    int type, side_type, mode, beyond, corners, half; /* half: regions are moved by half a place */
    int64_t sampling;                                 /* points of a bin along each axis; 0: by its size */
    double scale;
    int64_t count, channels, in[2], out[2];
    int crops;
    float outside;
} sample_points_shape;

int sample_points_fits(const sample_points_shape *shape);
int sample_points_launch(const sample_points_shape *shape, const void *in, const void *side, const void *batches,
                         void *out, void *stream);

#ifdef __cplusplus
}
#endif
