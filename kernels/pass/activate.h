/* Activations in the epilogue of a product or a convolution, by number. Self-contained: nothing of the program is
 * needed to use it. */
#pragma once

enum {
    ACTIVATE_PLAIN,
    ACTIVATE_RELU,        /* x < 0: alpha * x */
    ACTIVATE_CLIP,        /* from alpha to beta */
    ACTIVATE_HARDSIGMOID, /* alpha * x + beta, from 0 to 1 */
    ACTIVATE_HARDSWISH,   /* x * hardsigmoid(x) with 1/6 and 1/2 */
    ACTIVATE_SIGMOID,
    ACTIVATE_TANH,
    ACTIVATE_SILU,      /* x * sigmoid(alpha * x) */
    ACTIVATE_GELU,      /* by the error function */
    ACTIVATE_GELU_TANH, /* by the hyperbolic tangent */
    ACTIVATE_COUNT
};
