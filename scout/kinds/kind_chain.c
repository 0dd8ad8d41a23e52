/* The tensors of a chain of elementwise steps, what it costs at the least, and how exact it has to be. A step works on
 * as many elements as what it reads has, which may be fewer than the output's: what is broadcast later need not be
 * computed more than once, and its costs are counted so, whatever a candidate does. */
#include "scout/kinds/kind_chain.h"

#include "scout/kinds/kind_tensors.h"
#include "scout/op/elementwise_chain.h"

#include <math.h>

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

static bool add_operand(kind_tensors *to, const elementwise_chain *c, int k, bool positive) {
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

bool kind_chain_build(const oprec *rec, arena *a, scout_op *out, scout_why *why) {
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
    const bool positive = !signs_fit(&c, false);
    if (positive && !signs_fit(&c, true))
        return kind_tensors_refuse(why, "feature", "the root, logarithm or power of what may be negative");
    kind_tensors to = kind_tensors_of(out, a, why);
    for (int k = 0; k < c.operands; k++)
        if (!add_operand(&to, &c, k, positive && elementwise_class_of(c.operand[k].type) == ELEMENTWISE_FLOAT))
            return false;
    if (!kind_tensors_add(&to, "y", SCOUT_OUTPUT, out->output, (int)out->rank, out->shape)) return false;
    set_costs(out, &c);
    return true;
}

/* ---- as a kind's ---- */

double kind_chain_tolerance(const scout_op *op) {
    elementwise_chain c;
    scout_why why;
    return elementwise_chain_of(op, &c, &why) ? elementwise_chain_tolerance(&c) : 0;
}

/* A whole power of small order is a product, and 0.5 a root. */
double kind_chain_specials(const scout_op *op) {
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
