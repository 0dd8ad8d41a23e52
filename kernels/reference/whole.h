/* References of whole outputs, a function for each kind, and the comparison with them. A reference computes every
 * element in fp64, indexed as the output's storage is (densely). Pointers are of the device, memory is the caller's,
 * types are as in scout/plugin.h, and everything is enqueued on the stream. */
#pragma once

#include "kernels/pass/recurrent_kernels.h"
#include "scout/op/elementwise_chain.h"
#include "scout/op/norm.h"
#include "scout/op/reduce.h"
#include "scout/op/rotary.h"
#include "scout/op/softmax.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct whole_found {
    unsigned long long wrong;
    unsigned long long at; /* of the worst element */
    double worst;          /* |got - want| / (|want| + spread); infinite for what is not a number */
    double got, want;
} whole_found;

/* Every element: `found` (on the device) is cleared before. */
cudaError_t whole_compare(uint32_t type, const void *output, const double *want, const float *spread, uint64_t count,
                          double tolerance, whole_found *found, int multiprocessors, cudaStream_t stream);

/* --- whole_norm.cu --- */

typedef struct whole_norm_tensor {
    const void *data; /* NULL: the operation has none */
    uint32_t type;
} whole_norm_tensor;

typedef struct whole_norm_problem {
    norm_problem p;
    whole_norm_tensor x, residual, input_bias, scale, bias, mean, variance;
    uint32_t type; /* of the output */
} whole_norm_problem;

cudaError_t whole_norm(const whole_norm_problem *problem, double *want, float *spread, cudaStream_t stream);
/* Every element of x + residual + input_bias. */
cudaError_t whole_norm_sum(const whole_norm_problem *problem, double *want, float *spread, cudaStream_t stream);

/* --- whole_softmax.cu --- */

typedef struct whole_softmax_problem {
    softmax_problem p;
    const void *x, *bias; /* bias NULL: none */
    uint32_t type;        /* of both */
    uint32_t output;
} whole_softmax_problem;

cudaError_t whole_softmax(const whole_softmax_problem *problem, double *want, float *spread, cudaStream_t stream);

/* --- whole_reduce.cu --- */

typedef struct whole_reduce_problem {
    reduce_problem p;
    reduce_id id;
    const void *x;
    uint32_t type, output;
    int wholes; /* computed in integers of 64 bits */
} whole_reduce_problem;

cudaError_t whole_reduce(const whole_reduce_problem *problem, double *want, float *spread, cudaStream_t stream);

/* --- whole_rotary.cu --- */

typedef struct whole_rotary_problem {
    rotary_problem p;
    const void *x, *cosine, *sine;
} whole_rotary_problem;

cudaError_t whole_rotary(const whole_rotary_problem *problem, double *want, float *spread, cudaStream_t stream);

/* --- whole_elementwise.cu --- */

/* Quantised work (scout/op/requantize.h): what it is kept within before zero_out is added. `is` 0: there is none. */
typedef struct whole_elementwise_quant {
    int is;
    double zero_in, zero_out, factor, least, most;
} whole_elementwise_quant;

typedef struct whole_elementwise_problem {
    elementwise_id id;
    elementwise_walk walk;
    elementwise_numbers numbers;
    int64_t low, high;                        /* bounds of integers, where the operator has bounds */
    int wholes;                               /* computed in integers of 64 bits */
    const void *data[ELEMENTWISE_MAX_INPUTS]; /* of each operand */
    uint32_t types[ELEMENTWISE_MAX_INPUTS];
    uint32_t output;
    whole_elementwise_quant quant;
} whole_elementwise_problem;

typedef struct whole_chain_problem {
    elementwise_chain chain;
    elementwise_walk walk;
    const void *data[ELEMENTWISE_MAX_OPERANDS]; /* of each operand */
    double tolerance, step_tolerance[ELEMENTWISE_CHAIN_STEPS];
    uint32_t output;
} whole_chain_problem;

cudaError_t whole_elementwise(const whole_elementwise_problem *problem, double *want, float *spread,
                              cudaStream_t stream);
cudaError_t whole_chain(const whole_chain_problem *problem, double *want, float *spread, cudaStream_t stream);

/* --- whole_attention.cu --- */

/* Steps of a tensor of rank 4, in elements: [sequences, heads, queries or keys, size of a head or keys]. */
typedef struct whole_attention_steps {
    int64_t sequence, head, row, last;
} whole_attention_steps;

typedef struct whole_attention_problem {
    const void *q, *k, *v;
    const void *mask;       /* NULL: none; added to the scaled scores */
    const int32_t *lengths; /* of each sequence the place of its last key; NULL: all keys */
    /* NULL: all; else a bit for each block of `block` queries (a row of words) and of keys: those that are seen. */
    const uint32_t *blocks;
    int64_t block, block_words;
    uint32_t type, mask_type;
    int64_t batch, heads, queries, keys, dim, v_dim;
    int64_t group;  /* heads that share keys and values */
    int64_t past;   /* query i of a causal one sees keys up to past + i, */
    int64_t window; /* the last so many of them; 0: all */
    int causal;
    double scale, softcap; /* softcap 0: none */
    whole_attention_steps q_at, k_at, v_at, mask_at, out_at;
} whole_attention_problem;

cudaError_t whole_attention(const whole_attention_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_conv.cu --- */

enum { WHOLE_CONV_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct whole_conv_axis {
    int64_t in, out, kernel, stride, dilation, begin; /* begin: padding before */
} whole_conv_axis;

typedef struct whole_conv_problem {
    const void *input, *weight;
    const void *bias, *residual;             /* NULL: none; the residual lies as the output */
    uint32_t type_in, type_weight, type_out; /* a residual has the output's */
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
     * one for each output channel; scales likewise, before the bias. */
    const void *zeros_in, *zeros_weight;
    const void *scales;
    uint32_t type_scales;
    int zeros_weight_each, scales_each;
} whole_conv_problem;

cudaError_t whole_conv(const whole_conv_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_pool.cu --- */

enum { WHOLE_POOL_AXES = 3 }; /* depth, height, width; what there is not is 1 */

typedef struct whole_pool_axis {
    int64_t in, out, kernel, stride, dilation, begin, end; /* begin, end: padding */
} whole_pool_axis;

typedef struct whole_pool_problem {
    const void *input;
    uint32_t type;
    int average;        /* else the maximum */
    double order;       /* of a norm instead; 0: none */
    int index, columns; /* the place of the maximum is wanted (scout/op/pool.h) */
    int padded;         /* an average counts padding in */
    int last;           /* channels are the last dimension, of input and output */
    int quantised; /* an average of bytes (scout/op/requantize.h), and what it is kept within before `zero` is added */
    double zero, factor, least, most;
    int64_t images, channels;
    whole_pool_axis axes[WHOLE_POOL_AXES];
    /* Element (image, channel, place) at image * n + channel * c + place * step. */
    int64_t in_n, in_c, in_step, out_n, out_c, out_step;
} whole_pool_problem;

cudaError_t whole_pool(const whole_pool_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_resize.cu --- */

/* Numbers as in scout/op/resize.h. */
typedef struct whole_resize_problem {
    const void *input;
    uint32_t type;
    int mode, way, rounding, inside;
    double cubic;
    int64_t planes, in[WHOLE_POOL_AXES], out[WHOLE_POOL_AXES];
    double over[WHOLE_POOL_AXES], under[WHOLE_POOL_AXES];
} whole_resize_problem;

cudaError_t whole_resize(const whole_resize_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_sample.cu --- */

/* Numbers as in scout/op/sample.h; batches NULL: a grid's points. */
typedef struct whole_sample_problem {
    const void *input, *side, *batches;
    uint32_t type, side_type;
    int mode, beyond, corners, half;
    int64_t sampling;
    double scale;
    int64_t count, channels, in[2], out[2];
} whole_sample_problem;

cudaError_t whole_sample(const whole_sample_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_embedding.cu --- */

typedef struct whole_embedding_problem {
    const void *table, *indices, *scales, *zeros;
    uint32_t type, index_type, out_type; /* index_type: int32 or int64 */
    int64_t rows, cols;                  /* of the output */
    int64_t block, blocks;               /* columns that share a scale, and how many of them; 0: none do */
} whole_embedding_problem;

cudaError_t whole_embedding(const whole_embedding_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_move.cu --- */

enum { WHOLE_MOVE_RANK = 8, WHOLE_MOVE_INPUTS = 72 };

/* Where place i along a dimension of the output comes from: place i * step - before of an input's dimension of that
 * length, again and again where it goes beyond it. */
typedef struct whole_move_dim {
    int64_t count;                /* of the output */
    int64_t step, before, length; /* of the input */
    int64_t stride;               /* of the input, in elements */
} whole_move_dim;

enum {
    WHOLE_MOVE_PLACES, /* as `dims` say */
    WHOLE_MOVE_PADDED, /* the same, but beyond the input lies what `beyond` says */
    WHOLE_MOVE_JOINED, /* inputs one behind the other along `axis` */
    WHOLE_MOVE_GATHERED,
    WHOLE_MOVE_ELEMENTS, /* as `dims` say, but for `axis`: there as an index of the element's own says */
    WHOLE_MOVE_TRIANGLE, /* where it lies, or 0 */
    WHOLE_MOVE_MARKED    /* 1 where the index of the place, but for `axis`, is the place along it, else 0 */
};

/* What lies beyond the input of what is padded. */
enum { WHOLE_MOVE_ZEROS, WHOLE_MOVE_REFLECTED, WHOLE_MOVE_EDGE, WHOLE_MOVE_WRAPPED };

typedef struct whole_move_problem {
    int how;
    uint32_t from, to;
    int64_t up;    /* to fp8e8m0: so many 2^-23 of its power of two make a number the next one */
    int64_t count; /* elements of the output */
    const void *inputs[WHOLE_MOVE_INPUTS];
    int rank;
    whole_move_dim dims[WHOLE_MOVE_RANK]; /* of what is joined only `count` */
    int axis;
    int64_t lengths[WHOLE_MOVE_INPUTS]; /* along it, of each input */
    /* Gathered: y[o][k][i] = x[o][place k][i], and the place is told by `parts` indices. */
    int64_t length, gathered, inner;
    int parts;
    int64_t part_lengths[WHOLE_MOVE_RANK];
    const void *indices;
    uint32_t index_type; /* int32 or int64 */
    int beyond;
    /* A triangle: kept are columns from row + diagonal on (upper), or up to it. */
    int upper;
    int64_t diagonal;
} whole_move_problem;

cudaError_t whole_move(const whole_move_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_places.cu --- */

/* Updates go one after the other to the places that indices name: rows of `cols` updates to the place that `parts`
 * numbers tell, or (`parts` 0) each to where it lies, but for `axis`. `how`: written, added, multiplied, the greater,
 * the smaller one. */
typedef struct whole_scatter_problem {
    const void *x, *indices, *updates;
    uint32_t type, index_type;
    int how;
    int64_t count, updated; /* elements of x, of updates */
    int parts;
    int64_t cols, lengths[WHOLE_MOVE_RANK];
    int rank, axis;
    int64_t dims[WHOLE_MOVE_RANK], strides[WHOLE_MOVE_RANK]; /* of the updates, of x */
} whole_scatter_problem;

cudaError_t whole_scatter(const whole_scatter_problem *p, double *want, float *spread, cudaStream_t stream);

/* Places of what is not zero, [rank][count], and zeros behind the last one. */
typedef struct whole_nonzero_problem {
    const void *x;
    uint32_t type;
    int rank;
    int64_t count, dims[WHOLE_MOVE_RANK];
} whole_nonzero_problem;

cudaError_t whole_nonzero(const whole_nonzero_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_along.cu --- */

typedef struct whole_along_problem {
    reduce_lines lines;
    const void *x;
    uint32_t type;
    int wholes, places; /* places: of a search these are the output, not values */
} whole_along_problem;

cudaError_t whole_along(const whole_along_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_quantize.cu --- */

typedef struct whole_quantize_problem {
    const void *x, *scales, *zero_points; /* zero_points NULL: none */
    uint32_t from, to, scale_type, zero_type;
    int quantizes;                         /* else it goes back */
    int64_t outer, channels, inner, block; /* block: scout/op/quantize.h */
    int found; /* of dynamic quantising: 1 to 3, its output y, scale or zero point; scales and zero points are none then
                */
} whole_quantize_problem;

cudaError_t whole_quantize(const whole_quantize_problem *p, double *want, float *spread, cudaStream_t stream);

/* --- whole_recurrent.cu --- */

typedef enum whole_recurrent_output {
    WHOLE_RECURRENT_Y,
    WHOLE_RECURRENT_Y_H,
    WHOLE_RECURRENT_Y_C
} whole_recurrent_output;

enum { WHOLE_RECURRENT_STATES = 256 }; /* where its states begin in what it works in */

/* Bytes that it works in. */
uint64_t whole_recurrent_bytes(const recurrent_layer *p);
/* The outputs in `t` are not looked at. The first int of `room` is 1
 * afterwards where a spread was more than `most` times the number's size, or 1; else 0. */
cudaError_t whole_recurrent(const recurrent_layer *p, const recurrent_layer_tensors *t, whole_recurrent_output output,
                            double most, void *room, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
