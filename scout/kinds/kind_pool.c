/* Pools: maximum and average over windows (scout/op/pool.h), interpolation (scout/op/resize.h, sample.h), what cannot
 * be expressed so, and how exact a result has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_quantised.h"
#include "scout/kinds/kind_sample.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/pool.h"
#include "scout/op/resize.h"
#include "scout/op/sample.h"

#include <math.h>
#include <string.h>

static const struct {
    uint32_t type;
    bool average; /* of bytes: quantised ones alone, others would need a rule for rounding; ONNX has none of them */
} types[] = {
    {SCOUT_FP32, true}, {SCOUT_FP16, true}, {SCOUT_BF16, true}, {SCOUT_INT8, false}, {SCOUT_UINT8, false},
};

static const struct {
    const char *field, *text;
} not_expressed[] = {
    {"masked", "a mask of the window is not covered"},
    {"activation", "an activation of a pool is not covered"},
};

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = out->output = (uint32_t)rec->type;
    out->accumulate = SCOUT_FP32;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k].type == out->input && (types[k].average || kind_quantised(out) || op_is(out, "max")) &&
            (rec->out_type == DTYPE_NONE || rec->out_type == rec->type))
            return true;
    return kind_tensors_refuse(why, "type", "no %s pool of %s is known here", out->what, dtype_get(rec->type)->name);
}

/* The greatest byte is that of the greatest number where both ends have one scale, which is what models give to a
 * maximum: then nothing is left of it. */
static bool check_quant(const scout_op *op, scout_why *why) {
    if (op_field(op, "quant")) return kind_quantised_sum(op, why);
    return true;
}

static bool expressible(const scout_op *op, scout_why *why) {
    if (!op_is(op, "max") && !op_is(op, "average") && !op_is(op, "lp"))
        return kind_tensors_refuse(
            why, "feature",
            "pools are max, average, lp, resize, gridsample, roi_align and cropandresize here, not %.60s",
            op->what ? op->what : "nothing");
    for (size_t k = 0; k < sizeof not_expressed / sizeof *not_expressed; k++) {
        const scout_field *f = op_field(op, not_expressed[k].field);
        if (strcmp(not_expressed[k].field, "activation") == 0 && kind_quantised(op) && op_is(op, "average")) continue;
        if (f && (f->text || f->number != 0)) return kind_tensors_refuse(why, "feature", "%s", not_expressed[k].text);
    }
    return true;
}

/* Every window has a place inside of the input, and the output is as long as ONNX says, rounded either way. */
static bool check_axis(const window_axis *a, scout_why *why) {
    const int64_t reach = checked_add(checked_mul(a->kernel - 1, a->dilation), 1);
    const int64_t room = checked_sub(a->in + a->begin + a->end, reach);
    if (a->begin >= reach || a->end >= reach)
        return kind_tensors_refuse(why, "shape", "padding of %lld is not less than the window",
                                   (long long)(a->begin > a->end ? a->begin : a->end));
    if (a->dilation > a->in && a->begin > 0)
        return kind_tensors_refuse(why, "shape", "a window of this dilation may have no place in the input");
    if (room < 0) return kind_tensors_refuse(why, "shape", "the window is larger than the padded input");
    const int64_t floored = room / a->stride + 1, raised = checked_ceil_div(room, a->stride) + 1;
    if (a->out != floored && a->out != raised)
        return kind_tensors_refuse(why, "shape", "%lld outputs instead of %lld along a dimension", (long long)a->out,
                                   (long long)floored);
    if ((a->out - 1) * a->stride - a->begin >= a->in)
        return kind_tensors_refuse(why, "shape", "the last window begins behind the input");
    return true;
}

/* A scale for each dimension, 1 of planes. Outputs are as many as it makes, so that no place lies behind the input. */
static bool check_scales(const scout_op *op, int rank, const int64_t *input, scout_why *why) {
    double scales[SCOUT_MAX_RANK];
    if (!op_field(op, "scales")) return true;
    bool fits = resize_scales(op, scales) == rank;
    for (int d = 0; d < rank && fits; d++)
        fits = scales[d] > 0 && fabs((double)input[d] * scales[d] - (double)op->shape[d]) <= 1 &&
               (d >= rank - RESIZE_AXES || scales[d] == 1);
    return fits || kind_tensors_refuse(why, "feature", "its scales are not those of the last three dimensions");
}

/* Interpolation between neighbours; planes are what lies before the last three dimensions. */
static bool build_resize(const operation *o, arena *a, scout_op *out, scout_why *why) {
    static const char *const fields[] = {
        "input", "mode", "coordinates", "rounding", "cubic_coeff_a", "antialias", "exclude_outside", "scales", NULL};
    int64_t input[SCOUT_MAX_RANK];
    const int rank = op_ints(out, "input", input, SCOUT_MAX_RANK);
    if (!kind_fields_only(out, fields, why)) return false;
    if ((o->rec.type != DTYPE_FP32 && o->rec.type != DTYPE_FP16 && o->rec.type != DTYPE_BF16) ||
        (o->rec.out_type != DTYPE_NONE && o->rec.out_type != o->rec.type))
        return kind_tensors_refuse(why, "type", "interpolation of %s is not covered", dtype_get(o->rec.type)->name);
    if (rank != (int)out->rank || rank < 1 || rank > SCOUT_MAX_RANK)
        return kind_tensors_refuse(why, "shape", "the shape of its input is not known");
    for (int d = 0; d < rank; d++)
        if (input[d] < 1 || out->shape[d] < 1 || (d < rank - RESIZE_AXES && input[d] != out->shape[d]))
            return kind_tensors_refuse(why, "shape", "only the last three dimensions may be resized");
    for (int d = 0; d < rank; d++) /* a filter is only wider where the output is smaller */
        if (op_real(out, "antialias", 0) != 0 && out->shape[d] < input[d])
            return kind_tensors_refuse(why, "feature", "antialiasing of what becomes smaller is not covered");
    if (!check_scales(out, rank, input, why)) return false;
    const resize_problem p = resize_problem_of(out, input);
    if (p.mode == RESIZE_MODES || p.way == RESIZE_WAYS || p.rounding == RESIZE_ROUNDINGS)
        return kind_tensors_refuse(why, "feature", "this way to interpolate is not covered");
    out->input = out->output = (uint32_t)o->rec.type;
    out->accumulate = SCOUT_FP32;
    kind_tensors t = kind_tensors_of(out, a, why);
    return kind_tensors_add(&t, "input", SCOUT_INPUT, out->input, rank, input) &&
           kind_tensors_add(&t, "output", SCOUT_OUTPUT, out->output, rank, out->shape);
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    int64_t input[SCOUT_MAX_RANK];
    if (resize_is(out)) return build_resize(o, a, out, why);
    if (sample_is(out)) return kind_sample(&o->rec, a, out, why);
    if (!expressible(out, why) || !set_types(&o->rec, out, why) || !check_quant(out, why) ||
        !kind_window_check(out, op_number(out, "global", 0) != 0, why))
        return false;
    kind_window_input(out, input);
    if (input[0] != out->shape[0] || kind_window_channels(out, input) != kind_window_channels(out, out->shape))
        return kind_tensors_refuse(why, "shape", "images or channels of input and output differ");
    const window w = window_of(out);
    for (int k = 0; k < WINDOW_AXES; k++)
        if (!check_axis(&w.axes[k], why)) return false;
    const bool indices = pool_is_rare(out) && op_is(out, "max");
    if (op_is(out, "lp") && !(op_real(out, "p", 2) > 0))
        return kind_tensors_refuse(why, "feature", "a norm's order is above 0");
    if (indices && w.last) return kind_tensors_refuse(why, "layout", "indices are of channels before rows");
    kind_tensors t = kind_tensors_of(out, a, why);
    return kind_tensors_add(&t, "input", SCOUT_INPUT, out->input, (int)out->rank, input) &&
           kind_tensors_add(&t, "output", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape) &&
           (!indices || kind_tensors_add(&t, "indices", SCOUT_OUTPUT, SCOUT_INT64, (int)out->rank, out->shape));
}

/* An interpolation rounds each of its weights and sums.
 * A maximum is one of the inputs: exact. An average is rounded as the output, and its sum of K terms in fp32 as that of
 * a product is: each addition rounds (16 + 6 roots of K, as scout/kinds/kind_gemm.c has it). */
static double tolerance(const scout_op *op) {
    if (resize_is(op)) {
        const resize_problem r = resize_problem_of(op, op->tensors[POOL_INPUT].dims);
        return r.mode == RESIZE_NEAREST ? 0 : kind_rounding(op->output) + 0x1p-19;
    }
    if (sample_is(op)) return kind_sample_tolerance(op);
    const pool_problem p = pool_problem_of(op);
    if (p.quant.is) return requantize_tolerance(&p.quant);
    if (p.order > 0) return kind_rounding(op->output) + 0x1p-24 * (80 + 6 * sqrt((double)window_kernel(&p.w)));
    return p.average ? kind_rounding(op->output) + 0x1p-24 * (16 + 6 * sqrt((double)window_kernel(&p.w))) : 0;
}

const kind kind_pool = {.op = OP_POOL, .build = build, .tolerance = tolerance};
