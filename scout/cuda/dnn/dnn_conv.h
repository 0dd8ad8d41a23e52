/* How a convolution is described to cuDNN, and its candidate. */
#pragma once

#include "scout/cuda/dnn/dnn.h"
#include "scout/op/conv.h"

/* Layouts, and what one launch computes: the parameter "form" of the candidate. */
typedef enum dnn_conv_form {
    DNN_CONV_AS_IS,     /* everything in the operation's layouts, in one graph */
    DNN_CONV_PACKED,    /* nhwc: the weight too with its channels last, repacked once */
    DNN_CONV_SPLIT,     /* the convolution alone; bias, residual and activation by a second kernel */
    DNN_CONV_CONVERTED, /* nchw: activations brought to nhwc and back within each launch; the weight as in PACKED */
    DNN_CONV_FORMS
} dnn_conv_form;

/* Whether there is such a form of this operation, as far as it can be said without the library. */
bool dnn_conv_exists(const scout_op *op, dnn_conv_form form);
/* Whether the weight has to be repacked for it. */
bool dnn_conv_packs(const scout_op *op, dnn_conv_form form);

/* A dnn_build; `way` is a form. Tensors are known by their places in op->tensors plus 1. */
scout_answer dnn_conv_build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why);
