/* The references of the kinds whose operation kernels/reference/whole.h computes as it is: each only says there which
 * tensors and sizes are meant. */
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "kernels/reference/whole_crop.h"
#include "kernels/reference/whole_matrix.h"
#include "kernels/reference/whole_suppress.h"
#include "scout/cuda/own/own.h"
#include "scout/op/embedding.h"
#include "scout/op/matrix.h"
#include "scout/op/pool.h"
#include "scout/op/quantize.h"
#include "scout/op/resize.h"
#include "scout/op/sample.h"
#include "scout/op/suppress.h"

static whole_norm_tensor tensor_of(const scout_op *op, void *const *tensors, int at) {
    return at < 0 ? (whole_norm_tensor){NULL, SCOUT_NONE} : (whole_norm_tensor){tensors[at], op->tensors[at].type};
}

static scout_answer norm(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output, double *want,
                         float *spread, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    if (p.form == NORM_NONE) return scout_say(why, SCOUT_NO, "feature", "no reference for this form of norm");
    const whole_norm_problem w = {.p = p,
                                  .x = tensor_of(op, tensors, NORM_X),
                                  .residual = tensor_of(op, tensors, p.residual),
                                  .input_bias = tensor_of(op, tensors, p.input_bias),
                                  .scale = tensor_of(op, tensors, p.scale),
                                  .bias = tensor_of(op, tensors, p.bias),
                                  .mean = tensor_of(op, tensors, p.mean),
                                  .variance = tensor_of(op, tensors, p.variance),
                                  .type = op->tensors[output].type};
    const cudaError_t error = (int)output == p.sum ? whole_norm_sum(&w, want, spread, device->stream)
                                                   : whole_norm(&w, want, spread, device->stream);
    return cuda_device_answer(error, "computing the reference of a norm", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_norm, SCOUT_NORM, norm);

static scout_answer softmax(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const softmax_problem p = softmax_problem_of(op);
    const whole_softmax_problem w = {.p = p,
                                     .x = tensors[SOFTMAX_X],
                                     .bias = p.bias < 0 ? NULL : tensors[p.bias],
                                     .type = op->input,
                                     .output = op->tensors[output].type};
    return cuda_device_answer(whole_softmax(&w, want, spread, device->stream), "computing the reference of a softmax",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_softmax, SCOUT_SOFTMAX, softmax);

static int is_whole(uint32_t type) {
    return type == SCOUT_INT64 || type == SCOUT_INT32 || type == SCOUT_INT8 || type == SCOUT_UINT8 ||
           type == SCOUT_UINT32 || type == SCOUT_UINT64;
}

static scout_answer along(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output, double *want,
                          float *spread, scout_why *why) {
    const whole_along_problem w = {.lines = reduce_lines_of(op),
                                   .x = tensors[REDUCE_X],
                                   .type = op->input,
                                   .wholes = is_whole(op->input),
                                   .places = output == REDUCE_PLACES};
    return cuda_device_answer(whole_along(&w, want, spread, device->stream), "computing the reference along lines",
                              why);
}

static scout_answer suppress(scout_device *device, const scout_op *op, void *const *tensors, double *want,
                             float *spread, scout_why *why) {
    const suppress_problem p = suppress_problem_of(op);
    whole_suppress_problem w = {.boxes = tensors[SUPPRESS_BOXES],
                                .scores = tensors[SUPPRESS_SCORES],
                                .images = p.images,
                                .classes = p.classes,
                                .count = p.boxes,
                                .most = p.most,
                                .centred = p.centred,
                                .overlap = p.overlap,
                                .threshold = p.threshold};
    static const char *const doing = "computing which boxes are kept";
    void *gone = NULL;
    scout_answer answer = cuda_device_alloc(device, (uint64_t)(p.images * p.classes * p.boxes), &gone, why);
    w.gone = gone;
    if (answer == SCOUT_OK) answer = cuda_device_answer(whole_suppress(&w, want, spread, device->stream), doing, why);
    if (answer == SCOUT_OK) answer = cuda_device_wait(device, doing, why);
    if (answer != SCOUT_LOST) cuda_device_release(device, gone);
    return answer;
}

static scout_answer matrix(scout_device *device, const scout_op *op, void *const *tensors, double *want, float *spread,
                           scout_why *why) {
    const matrix_problem p = matrix_problem_of(op);
    const whole_matrix_problem w = {tensors[MATRIX_X], p.inverts, p.type, p.count, p.n};
    return cuda_device_answer(whole_matrix(&w, want, spread, device->stream), "computing right inverses", why);
}

static scout_answer reduce(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                           double *want, float *spread, scout_why *why) {
    if (matrix_is(op)) return matrix(device, op, tensors, want, spread, why);
    if (suppress_is(op)) return suppress(device, op, tensors, want, spread, why);
    if (reduce_goes_along(op)) return along(device, op, tensors, output, want, spread, why);
    whole_reduce_problem w = {.p = reduce_problem_of(op),
                              .x = tensors[REDUCE_X],
                              .type = op->input,
                              .output = op->tensors[output].type,
                              .wholes = is_whole(op->input)};
    const reduce_operator *const is = reduce_operator_of(op, &w.id);
    if (!is || (w.wholes && !is->wholes)) return scout_say(why, SCOUT_NO, "feature", "no reference for this reduction");
    return cuda_device_answer(whole_reduce(&w, want, spread, device->stream), "computing the reference of a reduction",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_reduce, SCOUT_REDUCE, reduce);

static scout_answer rotary(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                           double *want, float *spread, scout_why *why) {
    const whole_rotary_problem w = {rotary_problem_of(op), tensors[ROTARY_X], tensors[ROTARY_COS], tensors[ROTARY_SIN]};
    (void)output;
    return cuda_device_answer(whole_rotary(&w, want, spread, device->stream), "computing the reference of a rotation",
                              why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_rotary, SCOUT_ROTARY, rotary);

static scout_answer resize(scout_device *device, const scout_op *op, void *const *tensors, double *want, float *spread,
                           scout_why *why) {
    const resize_problem p = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
    whole_resize_problem w = {.input = tensors[POOL_INPUT],
                              .type = op->input,
                              .mode = (int)p.mode,
                              .way = (int)p.way,
                              .rounding = (int)p.rounding,
                              .inside = p.inside,
                              .cubic = p.cubic,
                              .planes = p.planes};
    for (int k = 0; k < WHOLE_POOL_AXES; k++) {
        w.in[k] = p.in[k], w.out[k] = p.out[k];
        w.over[k] = p.over[k], w.under[k] = p.under[k];
    }
    return cuda_device_answer(whole_resize(&w, want, spread, device->stream), "computing the reference", why);
}

static scout_answer sample(scout_device *device, const scout_op *op, void *const *tensors, double *want, float *spread,
                           scout_why *why) {
    const sample_problem p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    const whole_sample_problem w = {.input = tensors[SAMPLE_INPUT],
                                    .side = tensors[SAMPLE_GRID],
                                    .batches = p.regions ? tensors[SAMPLE_BATCHES] : NULL,
                                    .type = op->input,
                                    .side_type = op->tensors[SAMPLE_GRID].type,
                                    .mode = (int)p.mode,
                                    .beyond = (int)p.beyond,
                                    .corners = p.corners,
                                    .half = p.half,
                                    .sampling = p.sampling,
                                    .scale = p.scale,
                                    .count = p.count,
                                    .channels = p.channels,
                                    .in = {p.in[0], p.in[1]},
                                    .out = {p.out[0], p.out[1]}};
    return cuda_device_answer(whole_sample(&w, want, spread, device->stream), "computing the reference", why);
}

static scout_answer crop(scout_device *device, const scout_op *op, void *const *tensors, double *want, float *spread,
                         scout_why *why) {
    const sample_problem p = sample_problem_of(op, op->tensors[SAMPLE_INPUT].dims);
    const whole_crop_problem w = {.input = tensors[SAMPLE_INPUT],
                                  .rois = tensors[SAMPLE_ROIS],
                                  .batches = tensors[SAMPLE_BATCHES],
                                  .type = op->input,
                                  .nearest = p.mode == SAMPLE_NEAREST,
                                  .count = p.count,
                                  .channels = p.channels,
                                  .in = {p.in[0], p.in[1]},
                                  .out = {p.out[0], p.out[1]},
                                  .outside = p.outside};
    return cuda_device_answer(whole_crop(&w, want, spread, device->stream), "computing right crops", why);
}

static scout_answer pool(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output, double *want,
                         float *spread, scout_why *why) {
    if (resize_is(op)) return resize(device, op, tensors, want, spread, why);
    if (sample_crops(op)) return crop(device, op, tensors, want, spread, why);
    if (sample_is(op)) return sample(device, op, tensors, want, spread, why);
    const pool_problem p = pool_problem_of(op);
    whole_pool_problem w = {.input = tensors[POOL_INPUT],
                            .type = p.type,
                            .average = p.average,
                            .order = p.order,
                            .index = (int)output == POOL_INDICES,
                            .columns = p.columns,
                            .padded = p.padded,
                            .last = p.w.last,
                            .quantised = p.quant.is,
                            .zero = p.quant.zero_in,
                            .factor = p.quant.factor,
                            .images = p.n,
                            .channels = p.channels,
                            .in_n = p.in_n,
                            .in_c = p.in_c,
                            .in_step = p.in_step,
                            .out_n = p.out_n,
                            .out_c = p.out_c,
                            .out_step = p.out_step};
    if (p.quant.is) requantize_bounds(&p.quant, &p.activation, &w.least, &w.most);
    for (int k = 0; k < WHOLE_POOL_AXES; k++) {
        const window_axis *a = &p.w.axes[k];
        w.axes[k] = (whole_pool_axis){a->in, a->out, a->kernel, a->stride, a->dilation, a->begin, a->end};
    }
    return cuda_device_answer(whole_pool(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_pool, SCOUT_POOL, pool);

/* What kernels/harness/values.cuh reads. */
static const uint32_t types[] = {SCOUT_FP32,    SCOUT_FP64,  SCOUT_FP16, SCOUT_BF16,  SCOUT_FP8E4M3,
                                 SCOUT_FP8E5M2, SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32, SCOUT_INT64,
                                 SCOUT_BOOL,    SCOUT_INT4,  SCOUT_UINT4};

static scout_answer embedding(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                              double *want, float *spread, scout_why *why) {
    const embedding_problem p = embedding_problem_of(op);
    size_t row = 0;
    (void)output;
    while (row < sizeof types / sizeof *types && types[row] != p.type) row++;
    if (row == sizeof types / sizeof *types) return scout_say(why, SCOUT_NO, "type", "no reference for this type");
    const whole_embedding_problem w = {.table = tensors[EMBEDDING_TABLE],
                                       .indices = tensors[EMBEDDING_INDICES],
                                       .scales = p.block > 0 ? tensors[EMBEDDING_SCALES] : NULL,
                                       .zeros = p.zeros < 0 ? NULL : tensors[p.zeros],
                                       .type = p.type,
                                       .index_type = p.index_type,
                                       .out_type = p.out_type,
                                       .rows = p.rows,
                                       .cols = p.cols,
                                       .block = p.block,
                                       .blocks = p.blocks};
    return cuda_device_answer(whole_embedding(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_embedding, SCOUT_EMBEDDING, embedding);

static scout_answer quantize(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                             double *want, float *spread, scout_why *why) {
    const quantize_problem p = quantize_problem_of(op);
    whole_quantize_problem w = {.x = tensors[0],
                                .scales = tensors[p.scales],
                                .from = p.from,
                                .to = p.to,
                                .scale_type = p.scale_type,
                                .quantizes = p.quantizes,
                                .outer = p.outer,
                                .channels = p.channels,
                                .inner = p.inner,
                                .block = p.block};
    if (p.dynamic) w.found = (int)output, w.scales = NULL;
    if (p.zero_points >= 0 && !p.dynamic)
        w.zero_points = tensors[p.zero_points], w.zero_type = op->tensors[p.zero_points].type;
    return cuda_device_answer(whole_quantize(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_quantize, SCOUT_QUANTIZE, quantize);

static const double most_products = 2e12; /* in fp64, some at a time from the second cache: about a minute */

static scout_answer recurrent(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                              double *want, float *spread, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    const recurrent_layer layer = own_recurrent_layer(&p);
    const recurrent_layer_tensors t = own_recurrent_tensors(&p, tensors);
    const whole_recurrent_output which = (int)output == p.y     ? WHOLE_RECURRENT_Y
                                         : (int)output == p.y_h ? WHOLE_RECURRENT_Y_H
                                                                : WHOLE_RECURRENT_Y_C;
    const double products =
        (double)(p.steps * p.batch) * (double)(p.directions * p.gates * p.hidden) * (double)(p.input + p.hidden);
    void *room = NULL;
    int unbounded = 0;
    if (products > most_products)
        return scout_say(why, SCOUT_NO, "shape", "its reference would take minutes: %.3g products in fp64", products);
    scout_answer answer = cuda_device_alloc(device, whole_recurrent_bytes(&layer), &room, why);
    if (answer == SCOUT_OK)
        answer = cuda_device_answer(
            whole_recurrent(&layer, &t, which, recurrent_most_spread, room, want, spread, device->stream),
            "computing the reference", why);
    if (answer == SCOUT_OK) answer = cuda_device_download(device, &unbounded, room, sizeof unbounded, why);
    if (answer == SCOUT_OK && unbounded) answer = recurrent_say_unbounded(why);
    if (answer != SCOUT_LOST) cuda_device_release(device, room);
    return answer;
}

CUDA_WHOLE_REFERENCE(cuda_whole_recurrent, SCOUT_RECURRENT, recurrent);
