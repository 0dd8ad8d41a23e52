/* The reference of elementwise operations: every operator in fp64 from the C library's functions, and on integers in 64
 * bits, wrapped to the type. */
#include "scout/cpu/device/cpu_candidates.h"

#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/reference/cpu_reference_chain.h"
#include "scout/cpu/reference/cpu_reference_operators.h"
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/requantize.h"

#include <math.h>

typedef struct state {
    elementwise_walk walk;
    bool chain;
    cpu_reference_chain steps; /* of one operator: one step */
    uint32_t type;             /* of the output */
    bool wholes;               /* one operator that is computed in integers */
    double largest;            /* beyond it the output is infinite */
    requantize quant;
    op_activation activation; /* of a quantised one */
} state;

static double largest_of(uint32_t type) {
    return type == SCOUT_FP32   ? 0x1.ffffffp127
           : type == SCOUT_BF16 ? 0x1.ffp127
           : type == SCOUT_FP16 ? 0x1.ffep15
                                : INFINITY;
}

static scout_answer open(const scout_op *op, void **out, scout_why *why) {
    state *s = calloc(1, sizeof *s);
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    if (!cpu_reference_chain_of(op, &s->steps, why)) {
        free(s);
        return SCOUT_NO;
    }
    s->walk = elementwise_walk_of(op);
    s->chain = op_is(op, "chain");
    s->type = op->output;
    s->wholes = elementwise_class_of(op->input) == ELEMENTWISE_WHOLE;
    s->largest = largest_of(op->output);
    s->quant = requantize_elements(op), s->activation = activation_of(op);
    *out = s;
    return SCOUT_OK;
}

static int64_t grain(const void *context, const scout_op *op, uint32_t output) {
    (void)context, (void)op, (void)output;
    return 1;
}

enum { RUN = 256 };
static size_t scratch(const void *context, const scout_op *op) {
    (void)context, (void)op;
    return (size_t)RUN * ELEMENTWISE_MAX_OPERANDS;
}

static void one_operator(const state *s, const double *x, double *want, double *spread) {
    const elementwise_step *one = &s->steps.chain.steps[0];
    int64_t whole[ELEMENTWISE_MAX_INPUTS];
    *spread = cpu_reference_operators_spread(one->id, x, one->inputs) + s->steps.step_smallest[0];
    if (!s->wholes) {
        *want = cpu_reference_operators_floats(one->id, x, one->inputs, &one->numbers);
        return;
    }
    for (int k = 0; k < one->inputs; k++) whole[k] = (int64_t)x[k];
    *want = (double)cpu_reference_chain_kept(
        s->type, cpu_reference_operators_wholes(one->id, whole, one->inputs, &one->numbers));
}

static void quantised(const state *s, const double *x, double *want, double *spread) {
    const elementwise_step *one = &s->steps.chain.steps[0];
    double above[ELEMENTWISE_MAX_INPUTS] = {0}; /* the zero point */
    for (int k = 0; k < one->inputs; k++) above[k] = x[k] - s->quant.zero_in;
    *want = requantize_apply(&s->quant, &s->activation,
                             cpu_reference_operators_floats(one->id, above, one->inputs, &one->numbers));
    *spread = requantize_spread(&s->quant, *want);
}

static scout_answer compute(const void *context, const scout_op *op, void *const *tensors, uint32_t output,
                            int64_t from, int64_t count, double *want, double *spread, double *room) {
    const state *s = context;
    const elementwise_walk *w = &s->walk;
    (void)output;
    for (int64_t at = 0; at < count;) {
        int64_t offsets[ELEMENTWISE_MAX_OPERANDS], run = elementwise_walk_to(w, from + at, offsets);
        if (run > count - at) run = count - at;
        if (run > RUN) run = RUN;
        for (int k = 0; k < w->inputs; k++)
            cpu_number_load(op->tensors[w->source[k]].type, tensors[w->source[k]], offsets[k], w->strides[k][0], run,
                            room + (size_t)k * RUN);
        for (int64_t i = 0; i < run; i++, at++) {
            double x[ELEMENTWISE_MAX_OPERANDS] = {0};
            for (int k = 0; k < w->inputs; k++) x[k] = room[k * RUN + i];
            if (s->quant.is)
                quantised(s, x, &want[at], &spread[at]);
            else if (s->chain)
                cpu_reference_chain_element(&s->steps, x, &want[at], &spread[at]);
            else
                one_operator(s, x, &want[at], &spread[at]);
            if (fabs(want[at]) >= s->largest) want[at] = copysign(INFINITY, want[at]), spread[at] = 0;
        }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {
    .kind = SCOUT_ELEMENTWISE, .open = open, .grain = grain, .compute = compute, .scratch = scratch};

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    (void)device, (void)seed;
    return cpu_whole_begin(&whole, op, tensors, check, why);
}

const scout_reference cpu_reference_elementwise = {
    .size = sizeof(scout_reference),
    .kind = SCOUT_ELEMENTWISE,
    .begin = begin,
    .compare = cpu_whole_compare,
    .end = cpu_whole_end,
    .compare_at = cpu_whole_compare_at,
};
