/* Bias, residual and activation as pointwise nodes. */
#include "scout/cuda/dnn/dnn_activate.h"

#include <float.h>

int dnn_activate_constants(const op_activation *a, float values[DNN_ACTIVATE_CONSTANTS]) {
    if (a->function != ACTIVATION_HARDSIGMOID && a->function != ACTIVATION_HARDSWISH) return 0;
    const bool swish = a->function == ACTIVATION_HARDSWISH;
    values[0] = swish ? 1.0F / 6 : (float)a->alpha;
    values[1] = swish ? 0.5F : (float)a->beta;
    return 2;
}

static dnn_desc between(dnn_graph *g, const dnn_behind *b) {
    return dnn_virtual(g, CUDNN_DATA_FLOAT, b->rank, b->dims, b->strides);
}

/* Activations with a mode of their own. */
static bool tell_simple(dnn_graph *g, const op_activation *a, dnn_desc x, dnn_desc y) {
    static const struct {
        activation_function function;
        cudnnPointwiseMode_t mode;
    } modes[] = {{ACTIVATION_RELU, CUDNN_POINTWISE_RELU_FWD},
                 {ACTIVATION_CLIP, CUDNN_POINTWISE_RELU_FWD},
                 {ACTIVATION_SIGMOID, CUDNN_POINTWISE_SIGMOID_FWD},
                 {ACTIVATION_TANH, CUDNN_POINTWISE_TANH_FWD},
                 {ACTIVATION_SILU, CUDNN_POINTWISE_SWISH_FWD},
                 {ACTIVATION_GELU, CUDNN_POINTWISE_GELU_FWD},
                 {ACTIVATION_GELU_TANH, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD}};
    dnn_pointwise_how how = {.math = CUDNN_DATA_FLOAT};
    if (a->function == ACTIVATION_RELU && a->alpha != 0) how.clipped = true, how.upper = FLT_MAX, how.slope = a->alpha;
    if (a->function == ACTIVATION_CLIP)
        how.clipped = true, how.lower = fmax(a->alpha, -FLT_MAX), how.upper = fmin(a->beta, FLT_MAX);
    if (a->function == ACTIVATION_SILU && a->alpha != 1) how.swish_beta = a->alpha;
    for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++)
        if (modes[k].function == a->function) {
            dnn_pointwise(g, modes[k].mode, x, NULL, NULL, y, &how);
            return true;
        }
    return false;
}

/* From 0 to 1 what alpha and beta make of x; times x where it is a swish. */
static void tell_hard(dnn_graph *g, const dnn_behind *b, dnn_desc x, dnn_desc y) {
    const dnn_pointwise_how from_0_to_1 = {.math = CUDNN_DATA_FLOAT, .clipped = true, .lower = 0, .upper = 1};
    const bool swish = b->activation.function == ACTIVATION_HARDSWISH;
    const dnn_desc alpha = dnn_scalar(g, DNN_ACTIVATE_FIRST, CUDNN_DATA_FLOAT, b->rank);
    const dnn_desc beta = dnn_scalar(g, DNN_ACTIVATE_FIRST + 1, CUDNN_DATA_FLOAT, b->rank);
    const dnn_desc scaled = between(g, b), moved = between(g, b), clipped = swish ? between(g, b) : y;
    dnn_pointwise(g, CUDNN_POINTWISE_MUL, x, alpha, NULL, scaled, NULL);
    dnn_pointwise(g, CUDNN_POINTWISE_ADD, scaled, beta, NULL, moved, NULL);
    dnn_pointwise(g, CUDNN_POINTWISE_RELU_FWD, moved, NULL, NULL, clipped, &from_0_to_1);
    if (swish) dnn_pointwise(g, CUDNN_POINTWISE_MUL, x, clipped, NULL, y, NULL);
}

void dnn_activate(dnn_graph *g, const dnn_behind *b, dnn_desc sums, dnn_desc y) {
    const bool active = b->activation.function != ACTIVATION_PLAIN;
    dnn_desc at = sums;
    if (b->residual) { /* the last one that there is writes the output */
        const dnn_desc sum = b->bias || active ? between(g, b) : y;
        dnn_pointwise(g, CUDNN_POINTWISE_ADD, at, b->residual, NULL, sum, NULL);
        at = sum;
    }
    if (b->bias) {
        const dnn_desc sum = active ? between(g, b) : y;
        dnn_pointwise(g, CUDNN_POINTWISE_ADD, at, b->bias, NULL, sum, NULL);
        at = sum;
    }
    if (active && !tell_simple(g, &b->activation, at, y)) tell_hard(g, b, at, y);
}

uint32_t dnn_activate_never(const scout_op *op) {
    const uint32_t tf32 = 1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1U << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return op->input == SCOUT_FP32 && !op->tf32 ? tf32 : 0;
}

uint32_t dnn_activate_refused(const scout_op *op) {
    const uint32_t coarse = 1U << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
                            1U << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                            1U << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    /* both transform in the type of the input: in 16 bits that is one rounding more than there may be */
    const uint32_t transforms = 1U << CUDNN_NUMERICAL_NOTE_WINOGRAD | 1U << CUDNN_NUMERICAL_NOTE_FFT;
    return coarse | (op->input != SCOUT_FP32 ? transforms : dnn_activate_never(op));
}
