/* Operations of one element at a time: which operands there are and how they are broadcast, and how exact a result has
 * to be. The operators are the table of scout/op/elementwise.h; several of them as one are a chain. */
#include "scout/op/elementwise_chain.h"

#include "common/arena.h"
#include "common/checked.h"
#include "common/dtype.h"
#include "common/oprec.h"
#include "scout/kinds/kind_quantised.h"
#include "scout/kinds/kind_random.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"
#include "scout/op/requantize.h"
#include "scout/plugin.h"

#include <math.h>
#include <string.h>

/* The tensors of a chain of elementwise steps, what it costs at the least, and how exact it has to be. A step works on
 * as many elements as what it reads has, which may be fewer than the output's: what is broadcast later need not be
 * computed more than once, and its costs are counted so, whatever a candidate does. */

/* ---- which values may be negative ---- */

/* Of a result: never negative; not negative where its operands are not; negative now and then. */
typedef enum sign { SIGN_NEVER, SIGN_AS_OPERANDS, SIGN_ANY } sign;

static sign sign_of(const elementwise_step *s) {
    static const struct {
        elementwise_id id;
        sign is;
    } rows[] = {
        {ELEMENTWISE_abs, SIGN_NEVER},  {ELEMENTWISE_relu, SIGN_NEVER},     {ELEMENTWISE_relu6, SIGN_NEVER},
        {ELEMENTWISE_exp, SIGN_NEVER},  {ELEMENTWISE_sigmoid, SIGN_NEVER},  {ELEMENTWISE_squared_relu, SIGN_NEVER},
        {ELEMENTWISE_sqrt, SIGN_NEVER}, {ELEMENTWISE_softplus, SIGN_NEVER}, {ELEMENTWISE_hardsigmoid, SIGN_NEVER},
        {ELEMENTWISE_neg, SIGN_ANY},    {ELEMENTWISE_sub, SIGN_ANY},        {ELEMENTWISE_log, SIGN_ANY},
        {ELEMENTWISE_sin, SIGN_ANY},    {ELEMENTWISE_cos, SIGN_ANY},        {ELEMENTWISE_clip, SIGN_ANY},
    };
    const double e = s->numbers.alpha;
    if (s->id == ELEMENTWISE_clip && s->numbers.alpha >= 0) return SIGN_NEVER;
    if (s->id == ELEMENTWISE_pow && s->inputs == 1 && fmod(e, 2) == 0) return SIGN_NEVER;
    if (s->id == ELEMENTWISE_mul && s->from[0] == s->from[1]) return SIGN_NEVER;
    if (s->result == SCOUT_BOOL) return SIGN_NEVER;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].id == s->id) return rows[k].is;
    return SIGN_AS_OPERANDS;
}

/* Roots, logarithms and broken powers are of numbers that are not negative. */
static bool wants_positive(const elementwise_step *s) {
    const elementwise_operator *is = elementwise_operator_at(s->id);
    if (s->id != ELEMENTWISE_pow) return is && is->positive;
    return s->inputs > 1 || s->numbers.alpha != rint(s->numbers.alpha);
}

/* Some are of numbers below 1, which no step before them can promise. */
static bool wants_below_one(const elementwise_chain *c) {
    bool wants = false;
    for (int k = 0; k < c->count; k++) {
        const elementwise_operator *is = elementwise_operator_at(c->steps[k].id);
        wants = wants || (is && is->positive > 1);
    }
    return wants;
}

/* Whether all steps get what they want, when no tensor is negative, or any may be. */
static bool signs_fit(const elementwise_chain *c, bool tensors_positive) {
    bool value = true;
    for (int k = 0; k < c->count; k++) {
        const elementwise_step *s = &c->steps[k];
        bool operands = true;
        for (int i = 0; i < s->inputs; i++)
            if (!(s->id == ELEMENTWISE_where && i == 0))
                operands = operands && (s->from[i] == ELEMENTWISE_CHAIN_VALUE ? value : tensors_positive);
        if (wants_positive(s) && !operands) return false;
        const sign is = sign_of(s);
        value = is == SIGN_NEVER || (is == SIGN_AS_OPERANDS && operands);
    }
    return true;
}

/* ---- tensors ---- */

/* The dimensions of an operand under an output of `rank`; false: it does not fit. */
static bool dims_of(const elementwise_chain_operand *o, int rank, const int64_t *shape, int64_t *dims) {
    if (o->rank > rank) return false;
    for (int d = 0; d < rank; d++) {
        const int told = d - (rank - o->rank);
        dims[d] = 1;
        if (o->form == ELEMENTWISE_FORM_TENSOR || (o->form == ELEMENTWISE_FORM_VECTOR && d == rank - 1))
            dims[d] = shape[d];
        if (o->form == ELEMENTWISE_FORM_DIMS && told >= 0) dims[d] = o->dims[told];
        if (dims[d] != 1 && dims[d] != shape[d]) return false;
    }
    return true;
}

static bool chain_operand(kind_tensors *to, const elementwise_chain *c, int k, bool positive) {
    const elementwise_chain_operand *o = &c->operand[k];
    const bool side = o->form == ELEMENTWISE_FORM_VECTOR || o->form == ELEMENTWISE_FORM_SCALAR;
    const int rank = (int)to->op->rank;
    int64_t dims[SCOUT_MAX_RANK];
    char name[2] = {(char)('a' + k), 0};
    if (!dims_of(o, rank, to->op->shape, dims))
        return kind_tensors_refuse(to->why, "shape", "operand %d of the chain does not fit its shape", k + 1);
    /* the harness fills with positive numbers what is called scales */
    scout_tensor *t =
        kind_tensors_add(to, positive ? "scales" : name, side ? SCOUT_SIDE : SCOUT_INPUT, o->type, rank, dims);
    for (int d = 0; t && d < rank; d++)
        if (t->dims[d] == 1) t->strides[d] = 0;
    return t != NULL;
}

/* ---- costs ---- */

/* How many elements step `to` works on, for each of the steps up to it. */
static void step_elements(const scout_op *op, const elementwise_chain *c, double *elements) {
    int64_t value[SCOUT_MAX_RANK];
    for (uint32_t d = 0; d < op->rank; d++) value[d] = 1;
    for (int k = 0; k < c->count; k++) {
        const elementwise_step *s = &c->steps[k];
        for (int i = 0; i < s->inputs; i++)
            for (uint32_t d = 0; s->from[i] >= 0 && d < op->rank; d++)
                if (op->tensors[s->from[i]].dims[d] > value[d]) value[d] = op->tensors[s->from[i]].dims[d];
        elements[k] = 1;
        for (uint32_t d = 0; d < op->rank; d++) elements[k] *= (double)value[d];
    }
}

static void set_costs(scout_op *op, const elementwise_chain *c) {
    double elements[ELEMENTWISE_CHAIN_STEPS], least = 0;
    op->bytes_read = 0;
    for (uint32_t k = 0; k + 1 < op->tensor_count; k++) op->bytes_read += (double)op->tensors[k].bytes;
    op->bytes_written = (double)op->tensors[op->tensor_count - 1].bytes;
    step_elements(op, c, elements);
    for (int k = 0; k < c->count; k++) least += c->steps[k].id == ELEMENTWISE_COUNT ? 0 : elements[k];
    if (op->flops < least) op->flops = least; /* what is written by hand counts one a step */
}

static bool kind_chain_build(const oprec *rec, arena *a, scout_op *out, scout_why *why) {
    elementwise_chain c;
    out->input = (uint32_t)rec->type;
    out->weight = SCOUT_NONE;
    if (!elementwise_chain_of(out, &c, why)) return false;
    out->output = c.steps[c.count - 1].result;
    out->accumulate = elementwise_class_of(out->input) == ELEMENTWISE_FLOAT ? SCOUT_FP32 : out->input;
    if (rec->out_type != DTYPE_NONE && (uint32_t)rec->out_type != out->output)
        return kind_tensors_refuse(why, "type", "its chain does not end in %s", dtype_get(rec->out_type)->name);
    for (uint32_t d = 0; d < out->rank; d++)
        if (out->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension of the output is 0");
    if (wants_below_one(&c)) return kind_tensors_refuse(why, "feature", "a function of numbers below 1 in a chain");
    const bool positive = !signs_fit(&c, false);
    if (positive && !signs_fit(&c, true))
        return kind_tensors_refuse(why, "feature", "the root, logarithm or power of what may be negative");
    kind_tensors to = kind_tensors_of(out, a, why);
    for (int k = 0; k < c.operands; k++)
        if (!chain_operand(&to, &c, k, positive && elementwise_class_of(c.operand[k].type) == ELEMENTWISE_FLOAT))
            return false;
    if (!kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape)) return false;
    set_costs(out, &c);
    return true;
}

/* ---- as a kind's ---- */

static double kind_chain_tolerance(const scout_op *op) {
    elementwise_chain c;
    scout_why why;
    return elementwise_chain_of(op, &c, &why) ? elementwise_chain_tolerance(&c) : 0;
}

/* A whole power of small order is a product, and 0.5 a root. */
static double kind_chain_specials(const scout_op *op) {
    double elements[ELEMENTWISE_CHAIN_STEPS], sum = 0;
    elementwise_chain c;
    scout_why why;
    if (!elementwise_chain_of(op, &c, &why)) return 0;
    step_elements(op, &c, elements);
    for (int k = 0; k < c.count; k++) {
        const elementwise_step *s = &c.steps[k];
        const elementwise_operator *is = elementwise_operator_at(s->id);
        if (is && !(s->id == ELEMENTWISE_pow && s->inputs == 1 && fabs(s->numbers.alpha) <= 8))
            sum += is->specials * elements[k];
    }
    return sum;
}

/* ---- operands ---- */

typedef enum form { FORM_TENSOR, FORM_VECTOR, FORM_SCALAR, FORM_SAME, FORM_DIMS } form;

typedef struct operand {
    form form;
    int64_t dims[SCOUT_MAX_RANK]; /* aligned with the output's last dimension; of FORM_DIMS */
} operand;

typedef struct builder {
    scout_op *op;
    kind_tensors to;
    scout_why *why;
    const elementwise_operator *is;
    operand operands[ELEMENTWISE_MAX_INPUTS];
    int count;
} builder;

/* "2x1x1x128": each 1 or as the output's. */
static bool read_dims(const builder *b, const char *text, size_t length, operand *to) {
    const int rank = (int)b->op->rank;
    int64_t dims[SCOUT_MAX_RANK];
    int count = 0;
    /* a slope for each channel, as ONNX had it once */
    const bool channels = op_is(b->op, "prelu") && rank > 2;
    for (const char *at = text, *const end = text + length; at < end;) {
        char *behind;
        const long long x = strtoll(at, &behind, 10);
        if (behind == at || count == rank || (behind < end && *behind != 'x')) return false;
        dims[count++] = x;
        at = behind + 1;
    }
    if (channels && count == 1 && dims[0] != b->op->shape[rank - 1])
        while (count < rank - 1) dims[count++] = 1;
    for (int d = 0; d < rank; d++) {
        const int from = d - (rank - count);
        to->dims[d] = from < 0 ? 1 : dims[from];
        if (to->dims[d] != 1 && to->dims[d] != b->op->shape[d]) return false;
    }
    return count > 0;
}

static bool read_operand(builder *b, const char *text, size_t length) {
    static const char *const names[] = {"tensor", "vector", "scalar", "same"};
    operand *to = &b->operands[b->count];
    for (int k = 0; k < 4; k++)
        if (strlen(names[k]) == length && strncmp(text, names[k], length) == 0) {
            to->form = (form)k;
            return k != FORM_SAME || b->count > 0;
        }
    to->form = FORM_DIMS;
    return read_dims(b, text, length, to);
}

static bool read_operands(builder *b) {
    const scout_field *inputs = op_field(b->op, "inputs");
    const char *const text = inputs && inputs->text ? inputs->text : "tensor";
    const char *at = text;
    if (strstr(at, " more")) return kind_tensors_refuse(b->why, "feature", "more than 8 operands are not covered");
    for (;;) {
        const size_t length = strcspn(at, ",");
        if (b->count == ELEMENTWISE_MAX_INPUTS || !read_operand(b, at, length))
            return kind_tensors_refuse(b->why, "shape", "operands \"%.100s\" do not fit its shape", text);
        b->count++;
        if (at[length] == 0) return true;
        at += length + 1;
    }
}

/* ---- types ---- */

static bool set_types(const builder *b, const oprec *rec) {
    scout_op *op = b->op;
    op->input = (uint32_t)rec->type;
    /* what is written by hand need not say that a comparison tells truth */
    const dtype plain = b->is->truth ? DTYPE_BOOL : rec->type;
    op->output = rec->out_type != DTYPE_NONE ? (uint32_t)rec->out_type : (uint32_t)plain;
    op->weight = SCOUT_NONE;
    op->accumulate = elementwise_class_of(op->input) == ELEMENTWISE_FLOAT ? SCOUT_FP32 : op->input;
    if (op_field(op, "quant")) return kind_quantised_sum(op, b->why);
    if ((elementwise_class_of(op->input) & b->is->types) && op->output == (uint32_t)plain) return true;
    return kind_tensors_refuse(b->why, "type", "%.30s of %s into %s is not covered", op->what,
                               dtype_get((dtype)op->input)->name, dtype_get((dtype)op->output)->name);
}

/* ---- tensors ---- */

static bool positive(const builder *b) {
    if (b->is->positive) return true;
    if (!op_is(b->op, "pow")) return false;
    const double exponent = op_real(b->op, "exponent", 0.5); /* negative numbers have whole powers only */
    return exponent != rint(exponent);
}

static bool add_operand(builder *b, int k) {
    const operand *o = &b->operands[k];
    const int rank = (int)b->op->rank;
    int64_t dims[SCOUT_MAX_RANK];
    char name[2] = {(char)('a' + k), 0};
    for (int d = 0; d < rank; d++)
        dims[d] = o->form == FORM_DIMS                                                  ? o->dims[d]
                  : o->form == FORM_TENSOR || (o->form == FORM_VECTOR && d == rank - 1) ? b->op->shape[d]
                                                                                        : 1;
    const scout_role role = o->form == FORM_VECTOR || o->form == FORM_SCALAR ? SCOUT_SIDE : SCOUT_INPUT;
    const uint32_t type = op_is(b->op, "where") && k == 0 ? (uint32_t)SCOUT_BOOL : b->op->input;
    /* the harness fills with positive numbers what is called scales */
    scout_tensor *t = kind_tensors_add(&b->to, positive(b) ? "scales" : name, role, type, rank, dims);
    for (int d = 0; t && d < rank; d++)
        if (t->dims[d] == 1) t->strides[d] = 0;
    return t != NULL;
}

static bool add_operands(builder *b) {
    for (int k = 0; k < b->count; k++)
        if (b->operands[k].form != FORM_SAME && !add_operand(b, k)) return false;
    return true;
}

static bool expressible(const builder *b) {
    const requantize quant = requantize_elements(b->op);
    const double exponent = op_real(b->op, "exponent", 1);
    if (elementwise_in_wholes(b->op->input) && op_is(b->op, "pow") && exponent != rint(exponent))
        return kind_tensors_refuse(b->why, "feature", "a broken power of integers is not covered");
    if (quant.is && quant.factor == 0)
        return kind_tensors_refuse(b->why, "feature", "a quantised %.60s is not covered", b->op->what);
    return true;
}

static void set_bytes(scout_op *op) {
    op->bytes_read = 0;
    for (uint32_t k = 0; k + 1 < op->tensor_count; k++) op->bytes_read += (double)op->tensors[k].bytes;
    op->bytes_written = (double)op->tensors[op->tensor_count - 1].bytes;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    builder b = {.op = out, .why = why};
    if (!out->what) return kind_tensors_refuse(why, "feature", "\"what\" does not say which operator it is");
    if (op_is(out, "chain") && op_field(out, "quant"))
        return kind_tensors_refuse(why, "feature", "a quantised chain is not covered");
    if (op_is(out, "chain")) return kind_chain_build(&o->rec, a, out, why);
    if (kind_random_is(out)) return kind_random_build(&o->rec, a, out, why);
    b.is = elementwise_operator_of(out);
    if (!b.is) return kind_tensors_refuse(why, "feature", "the operator %.60s is not covered", out->what);
    if (!set_types(&b, &o->rec) || !expressible(&b) || !read_operands(&b)) return false;
    if (op_is(out, "pow") && op_field(out, "exponent")) b.count = 1; /* a known exponent is no operand */
    if (b.count < b.is->least || b.count > b.is->most)
        return kind_tensors_refuse(why, "feature", "%.60s of %d operands is not covered", out->what, b.count);
    b.to = kind_tensors_of(out, a, why);
    for (uint32_t d = 0; d < out->rank; d++)
        if (out->shape[d] < 1) return kind_tensors_refuse(why, "shape", "a dimension of the output is 0");
    if (!add_operands(&b)) return false;
    if (!kind_tensors_add(&b.to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape)) return false;
    set_bytes(out);
    return true;
}

/* ---- exactness ---- */

/* Truth and integers are exact; a float may be off by its own rounding and by what fp32 loses inside. */
static double tolerance(const scout_op *op) {
    const elementwise_operator *is = elementwise_operator_of(op);
    const requantize quant = requantize_elements(op);
    if (quant.is) return requantize_tolerance(&quant);
    if (op_is(op, "chain")) return kind_chain_tolerance(op);
    if (kind_random_is(op)) return kind_random_tolerance(op);
    const double rounding = kind_rounding(op->output);
    return rounding > 0 && is ? rounding + (op->input == SCOUT_FP64 ? 0x1p-53 : 0x1p-24) * is->grows : 0;
}

/* A whole power of small order is a product, and 0.5 a root. */
static double specials(const scout_op *op) {
    const elementwise_operator *is = elementwise_operator_of(op);
    if (op_is(op, "chain")) return kind_chain_specials(op);
    if (kind_random_is(op)) return kind_random_specials(op);
    if (!is) return 0;
    if (op_is(op, "pow") && fabs(op_real(op, "exponent", 1000)) <= 8) return 0;
    return (double)is->specials * (double)op_elements(&op->tensors[op->tensor_count - 1]);
}

const kind kind_elementwise = {
    .op = OP_ELEMENTWISE, .build = build, .tolerance = tolerance, .specials = specials, .light = true};
