/* Convolutions: their tensors as every candidate sees them (scout/op/conv.h), what cannot be expressed so, and how
 * exact a result has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_quantised.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/conv.h"
#include "scout/op/gemm.h"

#include <string.h>

/* Which types go together; weight SCOUT_NONE: as the input. `accumulate` is what the sums are kept in. */
static const struct {
    uint32_t input, weight, output, accumulate;
} combinations[] = {
    {SCOUT_FP32, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},    {SCOUT_FP16, SCOUT_NONE, SCOUT_FP16, SCOUT_FP32},
    {SCOUT_BF16, SCOUT_NONE, SCOUT_BF16, SCOUT_FP32},    {SCOUT_BF16, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},
    {SCOUT_FP32, SCOUT_INT8, SCOUT_FP32, SCOUT_FP32},    {SCOUT_FP16, SCOUT_INT8, SCOUT_FP16, SCOUT_FP32},
    {SCOUT_BF16, SCOUT_INT8, SCOUT_BF16, SCOUT_FP32},    {SCOUT_INT8, SCOUT_NONE, SCOUT_INT32, SCOUT_INT32},
    {SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32, SCOUT_INT32}, {SCOUT_UINT8, SCOUT_NONE, SCOUT_INT32, SCOUT_INT32},
    {SCOUT_INT8, SCOUT_UINT8, SCOUT_INT32, SCOUT_INT32},
};

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = (uint32_t)rec->type;
    out->weight = rec->weight_type != DTYPE_NONE ? (uint32_t)rec->weight_type : out->input;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : (uint32_t)rec->type;
    if (kind_quantised(out) && out->output != SCOUT_FP16 && out->output != SCOUT_BF16)
        return kind_quantised_types(out, why);
    for (size_t k = 0; k < sizeof combinations / sizeof *combinations && !kind_quantised(out); k++) {
        const uint32_t weight = combinations[k].weight == SCOUT_NONE ? out->input : combinations[k].weight;
        if (combinations[k].input != out->input || weight != out->weight || combinations[k].output != out->output)
            continue;
        out->accumulate = combinations[k].accumulate;
        const char *math = op_text(out, "math");
        out->tf32 = out->input == SCOUT_FP32 && math && strcmp(math, "tf32") == 0;
        return true;
    }
    return kind_tensors_refuse(why, "type", "no convolution of %s with a weight of %s into %s is known here",
                               dtype_get(rec->type)->name, dtype_get((dtype)out->weight)->name,
                               dtype_get((dtype)out->output)->name);
}

/* Each changes the result, and none can be said by tensors and windows: a row goes when a candidate can be told. */
static const struct {
    const char *field, *text;
} not_expressed[] = {
    {"zero_points", "zero points of a quantised weight are not covered"},
    {"block_size", "a weight quantised in blocks is not covered"},
    {"activation_gamma", "an activation with this parameter is not covered"},
};

static bool expressible(const scout_op *op, scout_why *why) {
    const char *bias = op_text(op, "bias");
    if (op->what && strcmp(op->what, "plain") != 0)
        return kind_tensors_refuse(why, "feature", "%.60s is no plain convolution", op->what);
    for (size_t k = 0; k < sizeof not_expressed / sizeof *not_expressed; k++) {
        const scout_field *f = op_field(op, not_expressed[k].field);
        if (f && (f->text || f->number != 0)) return kind_tensors_refuse(why, "feature", "%s", not_expressed[k].text);
    }
    if (!kind_quantised_fields(op, why)) return false;
    if (gemm_widens(op->input, op->weight) && op_number(op, "transposed", 0) != 0)
        return kind_tensors_refuse(why, "feature", "a transposed convolution of a quantised weight is not covered");
    if (bias && strcmp(bias, "channel") != 0)
        return kind_tensors_refuse(why, "feature", "a bias of the form %.40s is not covered", bias);
    const op_activation a = activation_of(op);
    const char *const refused = activation_refused(&a);
    if (refused) return kind_tensors_refuse(why, "epilogue", "%s: %.40s", refused, op_text(op, "activation"));
    const bool more = op_field(op, "bias") || op_number(op, "residual", 0) != 0 || a.function != ACTIVATION_PLAIN;
    if (op->output == SCOUT_INT32 && more)
        return kind_tensors_refuse(why, "epilogue",
                                   "integer sums with a bias, a residual or an activation are not "
                                   "covered");
    return true;
}

/* As long as ONNX says; a transposed one may be longer by an output padding. */
static bool check_axis(const window_axis *a, bool transposed, scout_why *why) {
    const int64_t reach = checked_add(checked_mul(a->kernel - 1, a->dilation), 1);
    if (reach > (int64_t)1 << 50) return kind_tensors_refuse(why, "shape", "the window is larger than any input");
    const int64_t large = transposed ? a->out : a->in, small = transposed ? a->in : a->out;
    const int64_t room = large + a->begin + a->end - reach, used = checked_mul(small - 1, a->stride);
    const int64_t left = checked_sub(room, used); /* what no window reaches */
    const int64_t most = transposed && a->dilation > a->stride ? a->dilation : a->stride;
    if (room >= 0 && left >= 0 && left < most) return true;
    return kind_tensors_refuse(why, "shape", "%lld inputs do not become %lld outputs along a dimension",
                               (long long)a->in, (long long)a->out);
}

static bool add_bias(kind_tensors *t, int64_t cout, int64_t depth) {
    scout_tensor *const bias = kind_tensors_add_vector(t, "bias", SCOUT_SIDE, kind_quantised_bias_type(t->op), cout);
    if (bias) kind_quantised_bias(t->op, bias, depth);
    return bias != NULL;
}

static bool add_tensors(const operation *o, arena *a, scout_op *out, const int64_t *input, scout_why *why) {
    const bool transposed = op_number(out, "transposed", 0) != 0, constant = o->rec.weight_type != DTYPE_NONE;
    const int64_t group = op_number(out, "group", 1), cin = kind_window_channels(out, input);
    const int64_t cout = kind_window_channels(out, out->shape);
    int64_t weight[SCOUT_MAX_RANK];
    weight[0] = transposed ? cin : cout;
    weight[1] = (transposed ? cout : cin) / group;
    (void)op_ints(out, "kernel", weight + 2, SCOUT_MAX_RANK - 2);
    kind_tensors t = kind_tensors_of(out, a, why);
    scout_tensor *filter = NULL;
    if (!kind_tensors_add(&t, "input", SCOUT_INPUT, out->input, (int)out->rank, input) ||
        !(filter = kind_tensors_add(&t, "weight", constant ? SCOUT_WEIGHT : SCOUT_INPUT, out->weight, (int)out->rank,
                                    weight)))
        return false;
    if (op_field(out, "activation")) filter->below = kind_small(op_elements(filter) / cout, filter->type);
    return kind_tensors_add(&t, "output", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape) &&
           (!op_field(out, "bias") || add_bias(&t, cout, op_elements(filter) / weight[0])) &&
           (op_number(out, "residual", 0) == 0 ||
            kind_tensors_add(&t, "residual", SCOUT_INPUT, out->output, (int)out->rank, out->shape)) &&
           (!gemm_widens(out->input, out->weight) ||
            kind_tensors_add_vector(&t, "scales", SCOUT_SIDE, out->input, cout));
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    int64_t input[SCOUT_MAX_RANK];
    if (!set_types(&o->rec, out, why) || !expressible(out, why) || !kind_window_check(out, false, why)) return false;
    kind_window_input(out, input);
    const int64_t group = op_number(out, "group", 1), cin = kind_window_channels(out, input);
    if (input[0] != out->shape[0]) return kind_tensors_refuse(why, "shape", "input and output have other batches");
    if (group < 1 || cin % group != 0 || kind_window_channels(out, out->shape) % group != 0)
        return kind_tensors_refuse(why, "shape", "%lld groups do not divide the channels", (long long)group);
    const window w = window_of(out);
    for (int k = 0; k < WINDOW_AXES; k++)
        if (!check_axis(&w.axes[k], op_number(out, "transposed", 0) != 0, why)) return false;
    return add_tensors(o, a, out, input, why);
}

/* The sums of a convolution are those of a product as deep as its filter: one table for both. What an activation
 * makes of an error, the reference takes into its spread. */
static double tolerance(const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    if (p.quant.is) return requantize_tolerance(&p.quant);
    scout_op product = *op;
    product.rank = 3;
    product.shape[0] = p.n, product.shape[1] = p.cout, product.shape[2] = conv_depth(&p);
    return kind_gemm.tolerance(&product);
}

static double specials(const scout_op *op) {
    const conv_problem p = conv_problem_of(op);
    return activation_is_special(&p.activation) ? (double)op_elements(&op->tensors[CONV_OUTPUT]) : 0;
}

const kind kind_conv = {
    .op = OP_CONV,
    .build = build,
    .tolerance = tolerance,
    .specials = specials,
    .workspaces = 16, /* frameworks let a convolution have what it asks for: rearranged inputs, at times */
};
