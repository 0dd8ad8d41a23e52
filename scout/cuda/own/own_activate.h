/* An activation as the kernels number it, and the epilogue of a convolution as a tail. */
#pragma once

#include "kernels/product/tail.h"
#include "scout/op/conv.h"

/* -1: the kernels have no such function. */
static inline int own_activate(activation_function function) {
    static const int numbers[ACTIVATION_UNKNOWN] = {
        [ACTIVATION_PLAIN] = ACTIVATE_PLAIN,         [ACTIVATION_RELU] = ACTIVATE_RELU,
        [ACTIVATION_CLIP] = ACTIVATE_CLIP,           [ACTIVATION_HARDSIGMOID] = ACTIVATE_HARDSIGMOID,
        [ACTIVATION_HARDSWISH] = ACTIVATE_HARDSWISH, [ACTIVATION_SIGMOID] = ACTIVATE_SIGMOID,
        [ACTIVATION_TANH] = ACTIVATE_TANH,           [ACTIVATION_SILU] = ACTIVATE_SILU,
        [ACTIVATION_GELU] = ACTIVATE_GELU,           [ACTIVATION_GELU_TANH] = ACTIVATE_GELU_TANH,
    };
    return function < ACTIVATION_UNKNOWN ? numbers[function] : -1;
}

static inline tail own_activate_tail(const conv_problem *p) {
    const int64_t places = window_out(&p->w);
    return (tail){.elements = p->n * p->cout * places,
                  .step = p->w.last ? 1 : places,
                  .channels = p->cout,
                  .type = (int)p->type_out,
                  .factor = 1,
                  .function = own_activate(p->activation.function),
                  .alpha = (float)p->activation.alpha,
                  .beta = (float)p->activation.beta};
}
