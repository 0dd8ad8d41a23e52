/* Recurrent layers (LSTM, GRU, RNN) as ONNX defines them, as plain C functions: what a dispatch table names can be
 * linked from here. No header of CUDA is needed to include this; link the object of kernels/pass/recurrent_steps.cu and
 * the CUDA runtime.
 *
 *     recurrent_steps_plan plan;
 *     if (recurrent_steps_prepare(&layer, rows, limit, &plan) != 0) …      once; nothing to free
 *     recurrent_steps_launch(&plan, &tensors, workspace, stream);          workspace: plan.workspace_bytes
 *
 * A launch only enqueues (a kernel for each step, two where a GRU resets before its product), allocates nothing, and
 * can be captured in a graph. `stream` is a cudaStream_t. Everything works on the current device and returns 0 or a
 * cudaError_t; what the layer rules out is cudaErrorInvalidValue, before anything runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { RECURRENT_LAYER_FP32 = 1, RECURRENT_LAYER_FP16 = 10, RECURRENT_LAYER_BF16 = 16 };
enum { RECURRENT_LAYER_RNN = 1, RECURRENT_LAYER_GRU, RECURRENT_LAYER_LSTM };
enum {
    RECURRENT_LAYER_SIGMOID,
    RECURRENT_LAYER_TANH,
    RECURRENT_LAYER_RELU,
    RECURRENT_LAYER_AFFINE,      /* alpha x + beta */
    RECURRENT_LAYER_LEAKYRELU,   /* alpha x below 0 */
    RECURRENT_LAYER_SCALEDTANH,  /* alpha tanh(beta x) */
    RECURRENT_LAYER_HARDSIGMOID, /* alpha x + beta, from 0 to 1 */
    RECURRENT_LAYER_ELU,
    RECURRENT_LAYER_SOFTSIGN,
    RECURRENT_LAYER_SOFTPLUS
};

typedef struct recurrent_layer_function {
    int function;
    double alpha, beta;
} recurrent_layer_function;

typedef struct recurrent_layer {
    int type, cell, gates; /* gates: 4 of an LSTM (i, o, f, c), 3 of a GRU (z, r, h), 1 */
    int directions, reverse, input_forget, linear_before_reset;
    int64_t steps, batch, input, hidden;
    double clip;                              /* of what goes into a function; 0: none */
    recurrent_layer_function functions[2][3]; /* f, g, h of each direction */
    int64_t x_step, x_row;                    /* element (t, b, i) of x at t * step + b * row + i */
    int64_t y_step, y_direction, y_row;       /* element (t, d, b, j) of y */
    int64_t state_direction, state_row;       /* element (d, b, j) of h0, c0, y_h, y_c */
} recurrent_layer;

/* w [directions, gates * hidden, input], r [directions, gates * hidden, hidden], bias [directions, 2 * gates * hidden],
 * peephole [directions, 3 * hidden], lengths [batch]. NULL: what there is none of, or what is not wanted. */
typedef struct recurrent_layer_tensors {
    const void *x, *w, *r, *bias, *h0, *c0, *peephole;
    const int32_t *lengths;
    void *y, *y_h, *y_c;
} recurrent_layer_tensors;

typedef struct recurrent_steps_plan {
    recurrent_layer layer;
    int rows;      /* of the batch that a warp takes at once: 1, 2, 4 or 8 */
    int64_t chunk; /* steps whose input is multiplied at once */
    size_t workspace_bytes;
} recurrent_steps_plan;

/* Whether there is such a layer at all; limit: bytes of workspace that there may be. */
int recurrent_steps_prepare(const recurrent_layer *layer, int rows, size_t limit, recurrent_steps_plan *plan);
int recurrent_steps_launch(const recurrent_steps_plan *plan, const recurrent_layer_tensors *tensors, void *workspace,
                           void *stream);

#ifdef __cplusplus
}
#endif
