/* Norms: tensors as every candidate sees them (scout/op/norm.h), what cannot be expressed so, and how exact a result
 * has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/norm.h"

#include <math.h>

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16; }

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = (uint32_t)rec->type;
    out->weight = (uint32_t)rec->weight_type;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : out->input;
    out->accumulate = SCOUT_FP32;
    if (is_float(out->input) && is_float(out->output) && (out->weight == SCOUT_NONE || is_float(out->weight)))
        return true;
    return kind_tensors_refuse(why, "type", "a norm of fp32, fp16 and bf16 is known here, no other types");
}

/* ---- properties ---- */

/* Every field may change the result: one that is not known here is not passed over. */
static bool fields_known(const scout_op *op, scout_why *why) {
    static const struct {
        const char *name;
        bool text; /* lists and fractions are */
    } known[] = {{"bias", false},
                 {"residual", false},
                 {"residual_out", false},
                 {"input_bias", false},
                 {"channels", false},
                 {"size", false},
                 {"input", true},
                 {"axes", true},
                 {"p", false},
                 {"alpha", true},
                 {"beta", true},
                 {"offset", true},
                 {"weight_rearranged", false}};
    for (uint32_t k = 0; k < op->field_count; k++) {
        const scout_field *f = &op->fields[k];
        size_t at = 0;
        if (strcmp(f->name, "activation") == 0 && f->text &&
            (strcmp(f->text, "silu") == 0 || strcmp(f->text, "relu") == 0))
            continue;
        while (at < sizeof known / sizeof *known && strcmp(known[at].name, f->name) != 0) at++;
        if (at == sizeof known / sizeof *known || (f->text && !known[at].text))
            return kind_tensors_refuse(why, "feature", "a norm with %.40s %.40s is not covered", f->name,
                                       f->text ? f->text : "");
    }
    return true;
}

static bool check_channels(const scout_op *op, scout_why *why) {
    const int64_t channels = op_number(op, "channels", 0), rows = op->shape[0];
    if (channels < 1)
        return kind_tensors_refuse(why, "shape", "the number of channels of this %s norm is not known", op->what);
    if (op->layout && strcmp(op->layout, "nhwc") != 0 && strcmp(op->layout, "nchw") != 0)
        return kind_tensors_refuse(why, "layout", "layout %.20s of a norm is not known", op->layout);
    if (op_is(op, "group")) {
        if (norm_groups(rows, op->shape[1], channels) > 0) return true;
        return kind_tensors_refuse(why, "shape", "rows of %lld do not divide into %lld channels",
                                   (long long)op->shape[1], (long long)channels);
    }
    if (op->layout && strcmp(op->layout, "nhwc") == 0)
        return kind_tensors_refuse(why, "layout", "a %s norm has its channels in front here", op->what);
    if (rows % channels == 0) return true;
    return kind_tensors_refuse(why, "shape", "rows are no multiple of %lld channels", (long long)channels);
}

/* Rows that do not lie at the end: dimensions and axes must make up the rows and columns that the shape tells. */
static bool check_axes(const scout_op *op, scout_why *why) {
    int64_t dims[SCOUT_MAX_RANK], axes[SCOUT_MAX_RANK], all = 1, cols = 1;
    const int rank = op_ints(op, "input", dims, SCOUT_MAX_RANK), count = op_ints(op, "axes", axes, SCOUT_MAX_RANK);
    unsigned seen = 0;
    if (rank == 0 && count == 0) return true;
    if (rank < 1 || rank > SCOUT_MAX_RANK || count < 1 || count > rank)
        return kind_tensors_refuse(why, "layout", "%d dimensions with %d axes are not covered", rank, count);
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 1)
            return kind_tensors_refuse(why, "shape", "a dimension of its input is %lld", (long long)dims[d]);
        all = checked_mul(all, dims[d]);
    }
    for (int k = 0; k < count; k++) {
        if (axes[k] < 0 || axes[k] >= rank || (seen >> axes[k] & 1))
            return kind_tensors_refuse(why, "shape", "axis %lld is out of range, or is given twice",
                                       (long long)axes[k]);
        seen |= 1u << axes[k];
        cols = checked_mul(cols, dims[axes[k]]);
    }
    if (cols != op->shape[1] || all != checked_mul(op->shape[0], cols))
        return kind_tensors_refuse(why, "shape", "its input and axes make other rows than its shape tells");
    return true;
}

static bool check_form(const scout_op *op, scout_why *why) {
    const norm_form form = norm_form_of(op->what);
    const bool channels = op_is(op, "group") || op_is(op, "instance") || op_is(op, "batch");
    const int64_t power = op_number(op, "p", 2), size = op_number(op, "size", 1);
    if (form == NORM_NONE)
        return kind_tensors_refuse(why, "feature", "a norm of form %.40s is not covered", op->what ? op->what : "none");
    if (power != 1 && power != 2)
        return kind_tensors_refuse(why, "feature", "a length with powers of %lld is not covered", (long long)power);
    if (form == NORM_LRN && (size < 1 || size > op->shape[1]))
        return kind_tensors_refuse(why, "shape", "%lld neighbours among %lld channels are not covered", (long long)size,
                                   (long long)op->shape[1]);
    if (channels && (op_field(op, "input") || op_field(op, "axes")))
        return kind_tensors_refuse(why, "layout", "axes of a %s norm are not covered", op->what);
    if (channels ? !check_channels(op, why) : !check_axes(op, why)) return false;
    if (norm_problem_of(op).form == NORM_NONE)
        return kind_tensors_refuse(why, "layout", "axes that take turns with others so often are not covered");
    return true;
}

/* ---- tensors ---- */

/* The dimensions of x, which are those of y, the residual and the sum. */
static int dims_of(const scout_op *op, const norm_problem *p, int64_t *dims) {
    const int rank = op_ints(op, "input", dims, SCOUT_MAX_RANK);
    const int64_t channels = op_number(op, "channels", 1);
    if (p->form == NORM_LRN) {
        dims[0] = 1, dims[1] = p->cols, dims[2] = p->rows;
        return 3;
    }
    if (op_field(op, "channels")) {
        const int64_t groups = op_is(op, "group") ? norm_groups(p->rows, p->cols, channels) : channels;
        const bool last = op->layout && strcmp(op->layout, "nhwc") == 0;
        dims[0] = p->rows / groups;
        dims[last ? 2 : 1] = channels;
        dims[last ? 1 : 2] = p->cols / (channels / groups);
        return 3;
    }
    if (rank > 0) return rank;
    dims[0] = p->rows, dims[1] = p->cols;
    return 2;
}

static bool add_flagged(kind_tensors *t, const char *field, const char *name, scout_role role, uint32_t type, int rank,
                        const int64_t *dims) {
    return op_number(t->op, field, 0) == 0 || kind_tensors_add(t, name, role, type, rank, dims) != NULL;
}

static bool add_tensors(kind_tensors *t, scout_op *op) {
    const norm_problem p = norm_problem_of(op);
    const uint32_t side = op->weight != SCOUT_NONE ? op->weight : op->input;
    int64_t dims[SCOUT_MAX_RANK];
    const int rank = dims_of(op, &p, dims);
    return kind_tensors_add(t, "x", SCOUT_INPUT, op->input, rank, dims) &&
           kind_tensors_add(t, "y", SCOUT_OUTPUT, op->output, rank, dims) &&
           (op->weight == SCOUT_NONE || kind_tensors_add_vector(t, "scale", SCOUT_SIDE, side, p.sides)) &&
           add_flagged(t, "bias", "bias", SCOUT_SIDE, side, 1, &p.sides) &&
           (p.form != NORM_BATCH || (kind_tensors_add_vector(t, "mean", SCOUT_SIDE, side, p.sides) &&
                                     kind_tensors_add_vector(t, "variance", SCOUT_SIDE, side, p.sides))) &&
           add_flagged(t, "residual", "residual", SCOUT_INPUT, op->input, rank, dims) &&
           add_flagged(t, "input_bias", "input_bias", SCOUT_SIDE, side, 1, &p.sides) &&
           add_flagged(t, "residual_out", "sum", SCOUT_OUTPUT, op->output, rank, dims);
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    if (out->rank != 2 || out->shape[0] < 1 || out->shape[1] < 1)
        return kind_tensors_refuse(why, "shape", "a norm needs rows and columns, 1 at least");
    if (checked_mul(out->shape[0], out->shape[1]) >= (int64_t)1 << 50)
        return kind_tensors_refuse(why, "shape", "its tensors are larger than any memory");
    if (!set_types(&o->rec, out, why) || !fields_known(out, why) || !check_form(out, why)) return false;
    kind_tensors t = kind_tensors_of(out, a, why);
    if (norm_form_of(out->what) == NORM_LRN && (out->weight != SCOUT_NONE || op_field(out, "bias") ||
                                                op_field(out, "residual") || op_field(out, "activation")))
        return kind_tensors_refuse(why, "feature", "a norm over neighbouring channels has no scale and no bias");
    return add_tensors(&t, out);
}

/* ---- tolerance ---- */

/* Relative to |want| + spread, where spread is made of the terms x / deviation and mean / deviation: so rows whose
 * values lie close together may lose what they must. Statistics are sums of `cols` rounded terms, which walk by their
 * root; scaling takes a few roundings more. A candidate that adds a residual may round the sum to the input's type
 * before it goes on with it (what it writes is rounded so), or not. Powers of lrn are exponentials of logarithms: 8
 * more. */
static double tolerance(const scout_op *op) {
    const double extra = op_number(op, "residual", 0) ? kind_rounding(op->input) : 0;
    const double cols = op_is(op, "lrn") ? (double)op_number(op, "size", 1) : (double)op->shape[1];
    return kind_rounding(op->output) + extra + 0x1p-24 * (16 + (op_is(op, "lrn") ? 8 : 0) + sqrt(cols));
}

/* A root for each row or channel; a power for each element of lrn. */
static double specials(const scout_op *op) {
    const double rows = (double)op->shape[0], cols = (double)op->shape[1];
    const char *activation = op_text(op, "activation");
    const double silu = activation && strcmp(activation, "silu") == 0 ? rows * cols : 0;
    if (op_is(op, "batch")) return (double)op_number(op, "channels", 1) + silu;
    return silu + (op_is(op, "lrn") ? rows * cols : rows);
}

const kind kind_norm = {.op = OP_NORM, .build = build, .tolerance = tolerance, .specials = specials};
