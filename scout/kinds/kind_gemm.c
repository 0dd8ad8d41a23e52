/* Matrix products: their tensors as every candidate sees them (scout/op/gemm.h), what cannot be expressed so, and how
 * exact a result has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "scout/kinds/kind_quantised.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/gemm.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

/* Which types go together; weight SCOUT_NONE: as the input. `accumulate` is what the sums are kept in. */
static const struct {
    uint32_t input, weight, output, accumulate;
} combinations[] = {
    {SCOUT_FP32, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},       {SCOUT_FP64, SCOUT_NONE, SCOUT_FP64, SCOUT_FP64},
    {SCOUT_FP16, SCOUT_NONE, SCOUT_FP16, SCOUT_FP32},       {SCOUT_FP16, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},
    {SCOUT_BF16, SCOUT_NONE, SCOUT_BF16, SCOUT_FP32},       {SCOUT_BF16, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},
    {SCOUT_FP8E4M3, SCOUT_NONE, SCOUT_BF16, SCOUT_FP32},    {SCOUT_FP8E4M3, SCOUT_NONE, SCOUT_FP16, SCOUT_FP32},
    {SCOUT_FP8E4M3, SCOUT_NONE, SCOUT_FP32, SCOUT_FP32},    {SCOUT_FP8E4M3, SCOUT_FP8E5M2, SCOUT_BF16, SCOUT_FP32},
    {SCOUT_FP8E5M2, SCOUT_FP8E4M3, SCOUT_BF16, SCOUT_FP32}, {SCOUT_INT8, SCOUT_NONE, SCOUT_INT32, SCOUT_INT32},
    {SCOUT_UINT8, SCOUT_NONE, SCOUT_INT32, SCOUT_INT32},    {SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32, SCOUT_INT32},
    {SCOUT_INT8, SCOUT_UINT8, SCOUT_INT32, SCOUT_INT32},    {SCOUT_FP16, SCOUT_INT4, SCOUT_FP16, SCOUT_FP32},
    {SCOUT_BF16, SCOUT_INT4, SCOUT_BF16, SCOUT_FP32},       {SCOUT_FP32, SCOUT_INT4, SCOUT_FP32, SCOUT_FP32},
};

/* By what the tables know it: all weights of few bits beside floats are alike. */
static uint32_t weight_of(const scout_op *op) {
    if (gemm_widens(op->input, op->weight)) return SCOUT_INT4;
    return op->weight == op->input ? (uint32_t)SCOUT_NONE : op->weight;
}

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = (uint32_t)rec->type;
    out->weight = (uint32_t)rec->weight_type;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : (uint32_t)rec->type;
    if (kind_quantised(out) || kind_quantised_dynamic(out)) return kind_quantised_types(out, why);
    const uint32_t weight = weight_of(out);
    for (size_t k = 0; k < sizeof combinations / sizeof *combinations; k++) {
        if (combinations[k].input != out->input || combinations[k].weight != weight ||
            combinations[k].output != out->output)
            continue;
        out->accumulate = combinations[k].accumulate;
        const scout_field *math = op_field(out, "math");
        out->tf32 = out->input == SCOUT_FP32 && math && math->text && strcmp(math->text, "tf32") == 0;
        return true;
    }
    return kind_tensors_refuse(
        why, "type", "no product of %s with a weight of %s into %s is known here", dtype_get(rec->type)->name,
        dtype_get(rec->weight_type ? rec->weight_type : rec->type)->name, dtype_get((dtype)out->output)->name);
}

/* ---- properties that a candidate is not told about ---- */

/* Each changes the result, and none can be said by tensors and strides: a row goes when a candidate can be told. */
static const struct {
    const char *field, *text;
} not_expressed[] = {
    {"group_index", "a weight whose rows come in another order is not covered"},
    {"quant_type", "4-bit floating weights are not covered"},
    {"activation_gamma", "an activation with parameters is not covered"},
    {"activation_axis", "an activation with parameters is not covered"},
    {"batch_a", "batches that broadcast in part are not covered: one stride cannot say them"},
    {"batch_b", "batches that broadcast in part are not covered: one stride cannot say them"},
};

static bool text_is(const scout_op *op, const char *field, const char *text) {
    const scout_field *f = op_field(op, field);
    return f && f->text && strcmp(f->text, text) == 0;
}

static bool expressible(const scout_op *op, scout_why *why) {
    if (op->what && strcmp(op->what, "plain") != 0)
        return kind_tensors_refuse(why, "feature", "%.60s is no plain product", op->what);
    for (size_t k = 0; k < sizeof not_expressed / sizeof *not_expressed; k++) {
        const scout_field *f = op_field(op, not_expressed[k].field);
        if (f && (f->text || f->number != 0)) return kind_tensors_refuse(why, "feature", "%s", not_expressed[k].text);
    }
    if (!kind_quantised_fields(op, why)) return false;
    if (kind_quantised(op) && text_is(op, "weight_side", "a"))
        return kind_tensors_refuse(why, "feature", "a quantised product whose left side is the weight is not covered");
    if (op_number(op, "batch_stride_a", 0) != 0 || op_number(op, "batch_stride_b", 0) != 0)
        return kind_tensors_refuse(why, "feature", "gaps between the products of a batch are not covered");
    const op_activation a = activation_of(op);
    const char *const refused = activation_refused(&a);
    if (refused) return kind_tensors_refuse(why, "epilogue", "%s: %.40s", refused, op_text(op, "activation"));
    if (op->accumulate == SCOUT_INT32 && (op_field(op, "alpha") || op_field(op, "beta")))
        return kind_tensors_refuse(why, "feature", "a factor of integer sums is not covered");
    if (op->output == SCOUT_INT32 && (a.function != ACTIVATION_PLAIN || op_number(op, "residual", 0) != 0))
        return kind_tensors_refuse(why, "epilogue", "integer sums with a residual or an activation are not covered");
    return true;
}

/* ---- tensors ---- */

typedef struct builder {
    const operation *operation;
    scout_op *op;
    kind_tensors to;
    int64_t batch;
} builder;

/* Without strides yet. */
static scout_tensor *add(builder *b, const char *name, scout_role role, uint32_t type) {
    scout_tensor *t = &b->to.tensors[b->op->tensor_count++];
    *t = (scout_tensor){.size = sizeof *t, .role = (uint32_t)role, .type = type};
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

/* A matrix per product of the batch, or one for all; `inside`: the batch lies between rows and columns. */
static bool add_matrix(builder *b, const char *name, scout_role role, uint32_t type, int64_t rows, int64_t cols,
                       bool shared, bool inside) {
    scout_tensor *t = add(b, name, role, type);
    t->rank = 3;
    t->dims[0] = shared ? 1 : b->batch;
    t->dims[1] = rows;
    t->dims[2] = cols;
    t->strides[0] = shared && b->batch > 1 ? 0 : inside ? cols : checked_mul(rows, cols);
    t->strides[1] = inside && !shared ? checked_mul(b->batch, cols) : cols;
    t->strides[2] = 1;
    return kind_tensors_close(&b->to, t);
}

static bool add_side(builder *b, const char *name, scout_role role, uint32_t type, int64_t rows, int64_t cols) {
    scout_tensor *t = add(b, name, role, type);
    t->rank = rows > 0 ? 2 : 1;
    t->dims[0] = rows > 0 ? rows : cols;
    t->dims[1] = rows > 0 ? cols : 0;
    t->strides[0] = rows > 0 ? cols : 1;
    t->strides[1] = rows > 0 ? 1 : 0;
    return kind_tensors_close(&b->to, t);
}

static bool add_bias(builder *b, scout_why *why) {
    const scout_op *op = b->op;
    const scout_field *bias = op_field(op, "bias");
    const int64_t m = op->shape[0], n = op->shape[1];
    if (!bias) return true;
    if (!bias->text) return kind_tensors_refuse(why, "feature", "a bias of this form is not covered");
    if (strcmp(bias->text, "n") == 0) {
        const bool added = add_side(b, "bias", SCOUT_SIDE, kind_quantised_bias_type(op), 0, n);
        if (added) kind_quantised_bias(op, &b->to.tensors[op->tensor_count - 1], op->shape[2]);
        return added;
    }
    if (kind_quantised(op)) return kind_tensors_refuse(why, "feature", "a quantised product's bias is along N");
    if (strcmp(bias->text, "m") == 0) return add_side(b, "bias", SCOUT_SIDE, op->output, 0, m);
    if (strcmp(bias->text, "scalar") == 0) return add_side(b, "bias", SCOUT_SIDE, op->output, 0, 1);
    if (strcmp(bias->text, "each") == 0) return add_side(b, "bias", SCOUT_SIDE, op->output, b->batch, n);
    if (strcmp(bias->text, "full") == 0 && b->batch == 1) return add_side(b, "bias", SCOUT_INPUT, op->output, m, n);
    return kind_tensors_refuse(why, "feature", "a bias of this form is not covered");
}

/* Zero points of bytes, and the products of both sides' scales: single ones, or one for each column. */
static bool add_zeros(builder *b, scout_why *why) {
    const scout_op *op = b->op;
    const int64_t n = op->shape[1], scales = op_field(op, "weight_scales") ? n : 1;
    const bool dynamic = kind_quantised_dynamic(op), bytes = op->accumulate == SCOUT_INT32 && !kind_quantised(op);
    const bool each = text_is(op, "b_zero", "channel"), one = text_is(op, "b_zero", "one");
    if (!bytes)
        return !op_field(op, "a_zero") && !op_field(op, "b_zero")
                   ? true
                   : kind_tensors_refuse(why, "feature", "zero points go with bytes");
    if (op_field(op, "b_zero") && !each && !one)
        return kind_tensors_refuse(why, "feature", "zero points of this form are not covered");
    if (op_number(op, "a_zero", 0) != 0 && !add_side(b, "a_zero", SCOUT_SIDE, b->to.tensors[GEMM_A].type, 0, 1))
        return false;
    if ((each || one) && !add_side(b, "b_zero", SCOUT_SIDE, b->to.tensors[GEMM_B].type, 0, each ? n : 1)) return false;
    return !dynamic || add_side(b, "scales", SCOUT_SIDE, SCOUT_FP32, 0, scales);
}

/* A weight of 4 or 8 bits has a scale for each block along K, or column, and may have a zero point for it. */
static bool check_blocks(const scout_op *op, scout_why *why) {
    const int64_t k = op->shape[2], block = op_number(op, "block_size", 0);
    const bool four = op->weight == SCOUT_INT4 || op->weight == SCOUT_UINT4;
    if (!gemm_widens(op->input, op->weight)) {
        if (op_number(op, "zero_points", 0) != 0)
            return kind_tensors_refuse(why, "feature", "zero points of a quantised weight are not covered");
        if (block == 0) return true;
        return kind_tensors_refuse(why, "feature", "blocks of a weight that becomes no floats are not covered");
    }
    if (!text_is(op, "weight_side", "b"))
        return kind_tensors_refuse(why, "layout", "a weight of few bits must be the right side");
    if (block < 0 || (block > 0 && k % block != 0))
        return kind_tensors_refuse(why, "feature", "K, %lld, is no multiple of the weight's block size, %lld",
                                   (long long)k, (long long)block);
    if (four && (k % 2 != 0 || block % 2 != 0))
        return kind_tensors_refuse(why, "feature", "a weight of 4 bits is covered for an even K and even blocks");
    if (op_number(op, "batch", 1) != 1 &&
        (op_field(op, "batch_stride_b") || text_is(op, "batch_inside", "b") || text_is(op, "batch_inside", "ab")))
        return kind_tensors_refuse(why, "layout", "weights of few bits must lie one behind the other in a batch");
    return true;
}

static bool add_blocks(builder *b) {
    const scout_op *op = b->op;
    const int64_t k = op->shape[2], blocks = k / op_number(op, "block_size", k);
    const int64_t columns = checked_mul(b->batch, op->shape[1]);
    if (!gemm_widens(op->input, op->weight)) return true;
    return add_side(b, "scales", SCOUT_SIDE, op->input, columns, blocks) &&
           (op_number(op, "zero_points", 0) == 0 || add_side(b, "b_zero", SCOUT_SIDE, op->weight, columns, blocks));
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    builder b = {.operation = o, .op = out, .batch = oprec_int(&o->rec, "batch", 1)};
    if (out->rank != 3 || b.batch < 1) return kind_tensors_refuse(why, "shape", "a product needs M, N and K");
    for (int d = 0; d < 3; d++)
        if (out->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension of the product is 0");
    if (!out->layout) out->layout = "nn";
    if (!set_types(&o->rec, out, why) || !expressible(out, why) || !check_blocks(out, why)) return false;
    const int64_t m = out->shape[0], n = out->shape[1], k = out->shape[2];
    const bool ta = out->layout[0] == 't', tb = out->layout[1] == 't';
    const bool weight_a = text_is(out, "weight_side", "a"), weight_b = text_is(out, "weight_side", "b");
    const bool inside_a = text_is(out, "batch_inside", "a") || text_is(out, "batch_inside", "ab"),
               inside_b = text_is(out, "batch_inside", "b") || text_is(out, "batch_inside", "ab");
    const bool shared_a = b.batch == 1 || (op_field(out, "batch_stride_a") != NULL),
               shared_b = b.batch == 1 || (op_field(out, "batch_stride_b") != NULL);
    const uint32_t stored = out->weight != SCOUT_NONE ? out->weight : out->input;
    b.to = kind_tensors_of(out, a, why);
    if (!add_matrix(&b, "a", weight_a ? SCOUT_WEIGHT : SCOUT_INPUT, weight_a ? stored : out->input, ta ? k : m,
                    ta ? m : k, shared_a, inside_a) ||
        !add_matrix(&b, "b", weight_b ? SCOUT_WEIGHT : SCOUT_INPUT, weight_a ? out->input : stored, tb ? n : k,
                    tb ? k : n, shared_b, inside_b) ||
        !add_matrix(&b, "c", SCOUT_OUTPUT, out->output, m, n, b.batch == 1, false))
        return false;
    if (op_field(out, "activation")) { /* the constant side, else the right one */
        scout_tensor *side = &b.to.tensors[weight_a ? GEMM_A : GEMM_B];
        side->below = kind_small(k, side->type);
    }
    if (!add_bias(&b, why)) return false;
    if (op_number(out, "residual", 0) != 0 &&
        !add_matrix(&b, "residual", SCOUT_INPUT, out->output, m, n, b.batch == 1, false))
        return false;
    return add_zeros(&b, why) && add_blocks(&b);
}

/* ---- tolerance ---- */

/* Errors are relative to |want| + spread, the root of the sum of the squared terms; on normal data a sum of K terms is
 * of the size of its spread. Every row allows the rounding of the output and unit * (fixed + root * sqrt(K) + line *
 * K): `root` is the walk of independent rounding errors, taken five times its deviation since millions of elements are
 * looked at; `line` is for adders that cut off instead of rounding, whose errors add up in one direction. A wrong
 * element is off by about its spread: 1 here, and 0.01 to 0.04 where it is projected with others, as argued in
 * scout/cpu/device/cpu_cover.c, which chooses how many by what this table comes to. */
typedef struct tolerance_row {
    uint32_t input, weight; /* weight SCOUT_NONE: any */
    int tf32;
    double unit, fixed, root, line;
    const char *reason;
} tolerance_row;

static const tolerance_row tolerances[] = {
    {SCOUT_INT8, SCOUT_NONE, 0, 0, 0, 0, 0, "integers are exact"},
    {SCOUT_UINT8, SCOUT_NONE, 0, 0, 0, 0, 0, "integers are exact"},
    {SCOUT_FP64, SCOUT_NONE, 0, 0x1p-53, 16, 8, 0, "the reference rounds as much as the candidate"},
    {SCOUT_FP16, SCOUT_INT4, 0, 0x1p-11, 3, 0, 0x1p-16, "weights times scales may be rounded to the input's type"},
    {SCOUT_BF16, SCOUT_INT4, 0, 0x1p-8, 3, 0, 0x1p-18, "weights times scales may be rounded to the input's type"},
    {SCOUT_FP32, SCOUT_INT4, 0, 0x1p-11, 3, 0, 0x1p-16, "weights times scales may be rounded to half precision"},
    {SCOUT_FP32, SCOUT_NONE, 1, 0x1p-11, 8, 0, 0x1p-16, "inputs are rounded or cut off to 10 bits, sums as fp16"},
    {SCOUT_FP32, SCOUT_NONE, 0, 0x1p-24, 16, 6, 0, "sums in fp32, each addition rounded"},
    {SCOUT_FP16, SCOUT_NONE, 0, 0x1p-23, 16, 6, 0x1p-4, "exact products; sums of 16 at a time are cut off to fp32"},
    {SCOUT_BF16, SCOUT_NONE, 0, 0x1p-23, 16, 6, 0x1p-4, "exact products; sums of 16 at a time are cut off to fp32"},
    {SCOUT_FP8E4M3, SCOUT_NONE, 0, 0x1p-13, 16, 0.5, 0, "sums of 128 keep about 14 bits, and are then added in fp32"},
    {SCOUT_FP8E5M2, SCOUT_NONE, 0, 0x1p-13, 16, 0.5, 0, "sums of 128 keep about 14 bits, and are then added in fp32"},
};

/* What is added or applied behind the product may be done by another kernel, which reads what the one before rounded:
 * independent roundings, that add up by the root of their number. Exponentials and tanh are taken from the hardware,
 * whose tanh is off by 2^-11 of itself (PTX: tanh.approx). */
static double rounding(const scout_op *op) {
    const op_activation a = activation_of(op);
    return kind_rounding(op->output) * sqrt(1 + kind_behind(op)) + (activation_is_special(&a) ? 0x1p-11 : 0);
}

static double tolerance(const scout_op *op) {
    const double k = (double)op->shape[2];
    const requantize quant = requantize_of(op, op->shape[2]);
    if (quant.is) return requantize_tolerance(&quant) + (quant.rounds ? 0 : kind_rounding(op->output));
    if (kind_quantised_dynamic(op)) return rounding(op) + 4 * 0x1p-24; /* the sum, its factor, the bias */
    for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++) {
        const tolerance_row *row = &tolerances[i];
        if (row->input != op->input || row->tf32 != (int)op->tf32) continue;
        if (row->weight != SCOUT_NONE && row->weight != weight_of(op)) continue;
        return rounding(op) + row->unit * (row->fixed + row->root * sqrt(k) + row->line * k);
    }
    return 0;
}

static double specials(const scout_op *op) {
    const op_activation a = activation_of(op);
    return activation_is_special(&a) ? (double)op_elements(&op->tensors[GEMM_C]) : 0;
}

const kind kind_gemm = {.op = OP_GEMM, .build = build, .tolerance = tolerance, .specials = specials};
