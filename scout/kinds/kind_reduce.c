/* Reductions: their tensors, and how exact a sum has to be. The operators are the table of scout/op/reduce.h. */
#include "scout/op/reduce.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"
#include "scout/op/matrix.h"
#include "scout/op/suppress.h"

#include <math.h>
#include <string.h>

/* ---- types ---- */

static bool is_float(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_BF16 || type == SCOUT_FP16 || type == SCOUT_FP64;
}

static bool is_whole(uint32_t type) {
    return type == SCOUT_INT64 || type == SCOUT_INT32 || type == SCOUT_INT8 || type == SCOUT_UINT8;
}

static bool set_types(const reduce_operator *is, const oprec *rec, scout_op *op, scout_why *why) {
    const uint32_t plain = is->place ? (uint32_t)SCOUT_INT64 : (uint32_t)rec->type;
    op->input = (uint32_t)rec->type;
    op->weight = SCOUT_NONE;
    op->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : plain;
    op->accumulate = is_float(op->input) && op->input != SCOUT_FP64 ? SCOUT_FP32 : op->input;
    const bool chooses = op->input == SCOUT_BOOL && is->exact && !is->place; /* any and all of truth */
    if ((is_float(op->input) || chooses || (is_whole(op->input) && is->wholes)) && op->output == plain) return true;
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
    for (int d = 0; d < f->rank && d < SCOUT_MAX_RANK; d++)
        if (f->in[d] == 0) return kind_tensors_refuse(why, "shape", "its input is empty: there is nothing to reduce");
    const bool nothing = count == 0 && f->rank > 0 && f->rank == (int)op->rank; /* no axis is told: none is reduced */
    if (nothing && memcmp(f->in, op->shape, (size_t)f->rank * sizeof *f->in) == 0) {
        memcpy(f->out, f->in, sizeof f->out);
        return true;
    }
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

/* Types of lines. */
static bool is_along(uint32_t type) {
    return is_float(type) || type == SCOUT_INT32 || type == SCOUT_INT64 || type == SCOUT_UINT32 || type == SCOUT_UINT64;
}

/* Running sums and searches: the input's shape, or [rows, cols]; of a search the output's own shape is told. */
static bool build_lines(const operation *o, arena *a, scout_op *out, scout_why *why) {
    int64_t in[SCOUT_MAX_RANK];
    const bool searches = op_is(out, "topk");
    int rank = op_ints(out, "input", in, SCOUT_MAX_RANK);
    out->input = out->output = (uint32_t)o->rec.type;
    out->weight = SCOUT_NONE;
    out->accumulate = is_float(out->input) && out->input != SCOUT_FP64 ? SCOUT_FP32 : out->input;
    if (!is_along(out->input))
        return kind_tensors_refuse(why, "type", "%.30s of %s is not covered", out->what,
                                   dtype_get((dtype)out->input)->name);
    if (rank == 0 && !searches) memcpy(in, out->shape, sizeof in), rank = (int)out->rank;
    const int axis = rank > 0 && rank <= SCOUT_MAX_RANK ? reduce_line_axis(out, rank) : -1;
    if (axis < 0 || (searches && rank != (int)out->rank))
        return kind_tensors_refuse(why, "shape", "which dimension it goes along is not known");
    const int64_t rows = out->rank == 1 ? 1 : out->shape[0]; /* a line alone is told as it is */
    if (!searches &&
        (out->rank > 2 || op_ints(out, "axes", in + rank, 0) > 1 ||
         product(rank, in) != checked_mul(rows, out->shape[out->rank - 1]) || in[axis] != out->shape[out->rank - 1]))
        return kind_tensors_refuse(why, "shape", "its axis does not make as many rows as its shape says");
    for (int d = 0; searches && d < rank; d++)
        if (out->shape[d] < 1 || (d == axis ? out->shape[d] > in[d] : out->shape[d] != in[d]))
            return kind_tensors_refuse(why, "shape", "input and output do not belong together");
    kind_tensors to = kind_tensors_of(out, a, why);
    return kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, rank, in) &&
           kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, rank, searches ? out->shape : in) &&
           (!searches || kind_tensors_add(&to, "places", SCOUT_OUTPUT, SCOUT_INT64, rank, out->shape));
}

/* Boxes are random ones in a square, a quarter to half as wide, so that most overlap; scores are normal. As many are
 * kept as that leaves, and zeros stand behind them. */
static bool build_suppression(const operation *o, arena *a, scout_op *out, scout_why *why) {
    enum { SIDE = 1024 };
    static const char *const known_fields[] = {"center_point_box", "input",     "channels",
                                               "iou_threshold",    "threshold", NULL};
    int64_t in[SCOUT_MAX_RANK];
    const int rank = op_ints(out, "input", in, SCOUT_MAX_RANK);
    const int64_t classes = op_number(out, "channels", 0);
    out->input = (uint32_t)o->rec.type;
    out->output = o->rec.out_type != DTYPE_NONE ? (uint32_t)o->rec.out_type : (uint32_t)SCOUT_INT64;
    out->weight = SCOUT_NONE;
    out->accumulate = SCOUT_FP32;
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (out->input != SCOUT_FP32 || out->output != SCOUT_INT64)
        return kind_tensors_refuse(why, "type", "boxes are fp32, and what is kept of them is told in int64");
    if (rank != 3 || in[2] != 4 || in[0] < 1 || in[1] < 1 || in[1] > INT32_MAX || classes < 1 || out->rank != 2 ||
        out->shape[1] != 3)
        return kind_tensors_refuse(why, "shape", "boxes are [images, boxes, 4], for each class, and give [rows, 3]");
    const int64_t lists = checked_mul(in[0], classes), scores[] = {in[0], classes, in[1]};
    if (out->shape[0] < 1 || out->shape[0] % lists != 0 || out->shape[0] / lists > in[1])
        return kind_tensors_refuse(why, "shape", "its rows are not as many for each class, or none");
    kind_tensors to = kind_tensors_of(out, a, why);
    scout_tensor *boxes = kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, 3, in);
    if (!boxes) return false;
    boxes->below = SIDE;
    if (!kind_tensors_add(&to, "scores", SCOUT_INPUT, out->input, 3, scores) ||
        !kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, 2, out->shape))
        return false;
    out->bytes_read = (double)(boxes->bytes + to.tensors[SUPPRESS_SCORES].bytes);
    out->bytes_written = (double)to.tensors[SUPPRESS_Y].bytes;
    return true;
}

/* Numbers are as small as keeps determinants far from the ends of fp32. */
static bool build_matrices(const operation *o, arena *a, scout_op *out, scout_why *why) {
    static const char *const known_fields[] = {"input", NULL};
    int64_t in[SCOUT_MAX_RANK];
    const int rank = op_ints(out, "input", in, SCOUT_MAX_RANK), left = op_is(out, "inverse") ? rank : rank - 2;
    out->input = out->output = out->accumulate = (uint32_t)o->rec.type;
    out->weight = SCOUT_NONE;
    if (!kind_fields_only(out, known_fields, why)) return false;
    if (out->input != SCOUT_FP32 && out->input != SCOUT_FP64)
        return kind_tensors_refuse(why, "type", "a %.30s of %s is not covered", out->what,
                                   dtype_get((dtype)out->input)->name);
    if (rank < 2 || rank > SCOUT_MAX_RANK || in[rank - 1] != in[rank - 2] || left != (int)out->rank ||
        memcmp(in, out->shape, (size_t)left * sizeof *in) != 0)
        return kind_tensors_refuse(why, "shape",
                                   "its input is not made of square matrices, or of more than its output");
    if (in[rank - 1] > MATRIX_MOST)
        return kind_tensors_refuse(why, "shape", "matrices of more than %d rows are not covered", (int)MATRIX_MOST);
    kind_tensors to = kind_tensors_of(out, a, why);
    scout_tensor *x = kind_tensors_add(&to, "x", SCOUT_INPUT, out->input, rank, in);
    if (!x) return false;
    x->below = kind_small(in[rank - 1], out->input);
    if (!kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, left, out->shape)) return false;
    out->bytes_read = (double)to.tensors[MATRIX_X].bytes;
    out->bytes_written = (double)to.tensors[MATRIX_Y].bytes;
    return true;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    form f = {.rank = 0};
    if (matrix_is(out)) return build_matrices(o, a, out, why);
    if (suppress_is(out)) return build_suppression(o, a, out, why);
    if (reduce_goes_along(out)) return build_lines(o, a, out, why);
    if (!out->what) return kind_tensors_refuse(why, "feature", "\"what\" does not say which reduction it is");
    const reduce_operator *is = reduce_operator_of(out, NULL);
    if (!is) return kind_tensors_refuse(why, "feature", "the reduction %.60s is not covered", out->what);
    if (op_field(out, "quant")) return kind_tensors_refuse(why, "feature", "quantising inside is not covered");
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

/* Elimination with pivots is off by some roundings of what the reference adds up. Of a determinant these are its
 * derivatives by each number, with some for each row; of an inverse the largest of y x y: of 400,000 random matrices of
 * three rows the worst was off by under 6 roundings of that, and of larger ones by less. */
static double matrix_tolerance(const scout_op *op) {
    const matrix_problem p = matrix_problem_of(op);
    return (p.inverts ? 24 : 8 * (double)p.n) * kind_rounding(op->output);
}

/* What only chooses is exact, and so are integers. Sums in fp32 walk away by their roundings as those of a product do:
 * the line of fp32 in kind_gemm.c. A product of K numbers is rounded K times, and a logarithm a few times more. */
static double tolerance(const scout_op *op) {
    const reduce_operator *is = reduce_operator_of(op, NULL);
    if (matrix_is(op)) return matrix_tolerance(op);
    const double rounding = kind_rounding(op->output), x = (double)op_elements(&op->tensors[REDUCE_X]);
    const double inside = op->input == SCOUT_FP64 ? 0x1p-53 : 0x1p-24;
    if (reduce_goes_along(op) && !op_is(op, "topk") && rounding > 0)
        return rounding + inside * (16 + 6 * sqrt((double)reduce_lines_of(op).length));
    if (!is || is->exact || rounding == 0) return 0;
    return rounding + inside * (16 + 6 * sqrt(x / (double)op_elements(&op->tensors[REDUCE_Y])));
}

static double specials(const scout_op *op) {
    if (op_is(op, "logsumexp")) return (double)op_elements(&op->tensors[REDUCE_X]);
    return op_is(op, "logsum") ? (double)op_elements(&op->tensors[REDUCE_Y]) : 0;
}

const kind kind_reduce = {.op = OP_REDUCE, .build = build, .tolerance = tolerance, .specials = specials};
