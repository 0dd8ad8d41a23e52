/* Softmax and its logarithm: tensors as every candidate sees them (scout/op/softmax.h), what cannot be expressed so,
 * and how exact a result has to be. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/softmax.h"

#include <math.h>

static bool is_float(uint32_t type) { return type == SCOUT_FP32 || type == SCOUT_FP16 || type == SCOUT_BF16; }

static bool set_types(const oprec *rec, scout_op *out, scout_why *why) {
    out->input = (uint32_t)rec->type;
    out->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : out->input;
    out->accumulate = SCOUT_FP32;
    if (is_float(out->input) && is_float(out->output)) return true;
    return kind_tensors_refuse(why, "type", "a softmax of fp32, fp16 and bf16 is known here, no other types");
}

/* Every field may change the result: one that is not known here is not passed over. */
static bool expressible(const scout_op *op, scout_why *why) {
    static const char *const known[] = {"inner", "bias", "inner_broadcast", "scale"};
    if (op->what && strcmp(op->what, "log") != 0)
        return kind_tensors_refuse(why, "feature", "a softmax of form %.40s is not covered", op->what);
    for (uint32_t k = 0; k < op->field_count; k++) {
        const scout_field *f = &op->fields[k];
        size_t at = 0;
        while (at < sizeof known / sizeof *known && strcmp(known[at], f->name) != 0) at++;
        const bool number = !f->text || strcmp(f->name, "scale") == 0; /* fractions come as text */
        if (at == sizeof known / sizeof *known || !number)
            return kind_tensors_refuse(why, "feature", "a softmax with %.40s is not covered", f->name);
    }
    const double scale = op_real(op, "scale", 1);
    if (!(fabs(scale) <= 1)) return kind_tensors_refuse(why, "feature", "a scale of %g is not covered", scale);
    return true;
}

/* How large the tensor is that is added is told by the bytes that are read; where they are those of the input alone
 * (a hand-written entry), it is as large as the input. */
static bool add_bias(kind_tensors *t, scout_op *op, scout_why *why) {
    const int64_t cols = op->shape[1], elements = op->shape[0] * cols;
    const double size = (double)dtype_bytes((dtype)op->input, 1);
    double left = op->bytes_read / size - (double)elements;
    if (op_number(op, "bias", 0) == 0) return true;
    if (op_number(op, "inner", 1) != 1)
        return kind_tensors_refuse(why, "feature", "a softmax over inner dimensions has no bias here");
    if (!(left > 0)) {
        left = (double)elements;
        op->bytes_read += left * size;
    }
    const int64_t rows = checked_from_double(left / (double)cols);
    if (rows < 1 || rows > op->shape[0] || (double)rows * (double)cols != left || op->shape[0] % rows != 0)
        return kind_tensors_refuse(why, "feature", "a bias of %.0f elements does not fit rows of %lld", left,
                                   (long long)cols);
    const int64_t turn = op_number(op, "inner_broadcast", 0);
    if (turn < 0 || turn > rows || (turn > 0 && rows % turn != 0))
        return kind_tensors_refuse(why, "feature", "%lld rows of a bias are no multiple of the %lld that come in turn",
                                   (long long)rows, (long long)turn);
    return kind_tensors_add(t, "bias", SCOUT_INPUT, op->input, 2, (int64_t[]){rows, cols}) != NULL;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    if (out->rank != 2 || out->shape[0] < 1 || out->shape[1] < 1)
        return kind_tensors_refuse(why, "shape", "a softmax needs rows and columns, 1 at least");
    if (!set_types(&o->rec, out, why) || !expressible(out, why)) return false;
    const int64_t inner = op_number(out, "inner", 1);
    if (inner < 1 || out->shape[0] % inner != 0)
        return kind_tensors_refuse(why, "shape", "rows are no multiple of inner, which is %lld", (long long)inner);
    kind_tensors t = kind_tensors_of(out, a, why);
    const int64_t dims[] = {out->shape[0] / inner, out->shape[1], inner};
    return kind_tensors_add(&t, "x", SCOUT_INPUT, out->input, 3, dims) &&
           kind_tensors_add(&t, "y", SCOUT_OUTPUT, out->output, 3, dims) && add_bias(&t, out, why);
}

/* Relative to |want| + spread; the reference says which. The exponent x - largest is rounded as 2^-24 of itself, which
 * is as much of the result: up to 16 of it, where normal data ends. The exponential and the division take a few
 * roundings more, and the sum of `cols` rounded terms walks by their root at most. A wrong element is off by itself. */
static double tolerance(const scout_op *op) {
    return kind_rounding(op->output) + 0x1p-24 * (32 + sqrt((double)op->shape[1]));
}

static double specials(const scout_op *op) {
    const double rows = (double)op->shape[0];
    return rows * (double)op->shape[1] + (op_is(op, "log") ? rows : 0);
}

const kind kind_softmax = {.op = OP_SOFTMAX, .build = build, .tolerance = tolerance, .specials = specials};
