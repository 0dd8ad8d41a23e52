/* The epilogue as nodes of a cuDNN graph, for products and convolutions alike. */
#pragma once

#include "scout/cuda/dnn/dnn.h"
#include "scout/op/activation.h"

/* Constants of activations (dnn_scalar) are known by numbers from here on. */
enum { DNN_ACTIVATE_FIRST = 100, DNN_ACTIVATE_CONSTANTS = 2 };
/* Their values, in this order; returns how many there are. */
int dnn_activate_constants(const op_activation *a, float values[DNN_ACTIVATE_CONSTANTS]);

typedef struct dnn_behind {
    dnn_desc residual, bias; /* NULL: none; both may broadcast */
    op_activation activation;
    int rank; /* of the sums, with dimensions and strides: what lies between nodes is in fp32 */
    const int64_t *dims, *strides;
} dnn_behind;

/* Residual, bias, activation, in the order of the library's precompiled kernels: from the sums, a virtual tensor in
 * fp32, to y. */
void dnn_activate(dnn_graph *g, const dnn_behind *b, dnn_desc sums, dnn_desc y);
/* Notes of engines that would not be as exact as the operation asks for (dnn_graph's `refused`), and those of them that
 * PyTorch, too, leaves out. */
uint32_t dnn_activate_refused(const scout_op *op);
uint32_t dnn_activate_never(const scout_op *op);
