/* Reductions: their tensors, and how exact a sum has to be. The operators are the table of scout/op/reduce.h. */
#include "scout/op/reduce.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"

#include <math.h>

/* ---- types ---- */

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_BF16 || type == SCOUT_FP16; }

static bool is_whole(uint32_t type) {
    return type == SCOUT_INT64 || type == SCOUT_INT32 || type == SCOUT_INT8 || type == SCOUT_UINT8;
}

static bool set_types(const reduce_operator *is, const oprec *rec, scout_op *op, scout_why *why) {
    const uint32_t plain = is->place ? (uint32_t)SCOUT_INT64 : (uint32_t)rec->type;
    op->input = (uint32_t)rec->type;
    op->weight = SCOUT_NONE;
    op->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : plain;
    op->accumulate = is_float(op->input) ? SCOUT_FP32 : op->input;
    if ((is_float(op->input) || (is_whole(op->input) && is->wholes)) && op->output == plain) return true;
    return kind_tensors_refuse(why, "type", "%.30s of %s into %s is not covered", op->what,
                               dtype_get((dtype)op->input)->name, dtype_get((dtype)op->output)->name);
}

/* ---- tensors ---- */

typedef struct form {
    int rank;
    int64_t in[SCOUT_MAX_RANK], out[SCOUT_MAX_RANK];
} form;

static int64_t product(int rank, const int64_t *dims) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count = checked_mul(count, dims[d]);
    return count;
}

/* The last dimension of [rows, cols], or the given axes of the given input. */
static bool read_form(const scout_op *op, form *f, scout_why *why) {
    int64_t axes[SCOUT_MAX_RANK];
    const int count = op_ints(op, "axes", axes, SCOUT_MAX_RANK);
    f->rank = op_ints(op, "input", f->in, SCOUT_MAX_RANK);
    if (f->rank == 0 && count == 0 && op->rank == 2) {
        f->rank = 2;
        f->in[0] = op->shape[0], f->in[1] = op->shape[1];
        f->out[0] = op->shape[0], f->out[1] = 1;
        return true;
    }
    if (f->rank < 1 || f->rank > SCOUT_MAX_RANK || count < 1 || count > f->rank)
        return kind_tensors_refuse(why, "shape", "which dimensions are reduced is not known");
    memcpy(f->out, f->in, sizeof f->out);
    for (int k = 0; k < count; k++) {
        if (axes[k] < 0 || axes[k] >= f->rank) return kind_tensors_refuse(why, "shape", "an axis is no dimension");
        f->out[axes[k]] = 1;
    }
    if (op->rank != 2 || product(f->rank, f->out) != op->shape[0])
        return kind_tensors_refuse(why, "shape", "the axes do not leave as many outputs as its shape says");
    return true;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    form f = {.rank = 0};
    if (!out->what) return kind_tensors_refuse(why, "feature", "\"what\" does not say which reduction it is");
    const reduce_operator *is = reduce_operator_of(out, NULL);
    if (!is) return kind_tensors_refuse(why, "feature", "the reduction %.60s is not covered", out->what);
    if (op_field(out, "quant") || op_real(out, "select_last_index", 0) != 0)
        return kind_tensors_refuse(why, "feature",
                                   "quantising inside, and the last of several places, are not covered");
    if (!set_types(is, &o->rec, out, why) || !read_form(out, &f, why)) return false;
    kind_tensors to = kind_tensors_of(out, a, why);
    /* the harness fills with positive numbers what is called scales */
    if (!kind_tensors_add(&to, is->positive ? "scales" : "x", SCOUT_INPUT, out->input, f.rank, f.in) ||
        !kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, f.rank, f.out))
        return false;
    out->bytes_read = (double)to.tensors[REDUCE_X].bytes;
    out->bytes_written = (double)to.tensors[REDUCE_Y].bytes;
    return true;
}

/* ---- exactness ---- */

/* What only chooses is exact, and so are integers. Sums in fp32 walk away by their roundings as those of a product do:
 * the line of fp32 in kind_gemm.c. A product of K numbers is rounded K times, and a logarithm a few times more. */
static double tolerance(const scout_op *op) {
    const reduce_operator *is = reduce_operator_of(op, NULL);
    const double rounding = kind_rounding(op->output), x = (double)op_elements(&op->tensors[REDUCE_X]);
    if (!is || is->exact || rounding == 0) return 0;
    return rounding + 0x1p-24 * (16 + 6 * sqrt(x / (double)op_elements(&op->tensors[REDUCE_Y])));
}

static double specials(const scout_op *op) {
    return op_is(op, "logsum") ? (double)op_elements(&op->tensors[REDUCE_Y]) : 0;
}

const kind kind_reduce = {.op = OP_REDUCE, .build = build, .tolerance = tolerance, .specials = specials};
