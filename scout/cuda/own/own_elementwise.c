/* elementwise_pass as a candidate: every operator and type of scout/op/elementwise.h. */
#include "common/checked.h"
#include "scout/cuda/own/own.h"
#include "scout/op/elementwise.h"
#include "scout/op/requantize.h"

struct scout_plan {
    elementwise_pass pass;
    int source[ELEMENTWISE_MAX_INPUTS]; /* the tensor of each operand */
    int output;
    const char *what;
};

_Static_assert((int)ELEMENTWISE_MAX_INPUTS == (int)ELEMENTWISE_PASS_INPUTS && (int)SCOUT_MAX_RANK == (int)PASS_RANK,
               "the pass takes what an operation may have");

static const int operators[ELEMENTWISE_COUNT] = {
#define OPERATOR(name, least, most, types, truth, specials, grows, positive)                                           \
    [ELEMENTWISE_##name] = ELEMENTWISE_PASS_##name,
    ELEMENTWISE_OPERATORS(OPERATOR)
#undef OPERATOR
};

static elementwise_pass_quant quant_of(const scout_op *op) {
    const requantize quant = requantize_elements(op);
    const op_activation activation = activation_of(op);
    double least = 0, most = 0;
    if (quant.is) requantize_bounds(&quant, &activation, &least, &most);
    return (elementwise_pass_quant){quant.is,     quant.zero_in, quant.zero_out, (float)quant.factor,
                                    (float)least, (float)most};
}

static int plan_of(const scout_op *op, scout_plan *p) {
    const elementwise_operator *is = elementwise_operator_of(op);
    memset(p, 0, sizeof *p);
    if (!is || op->tensor_count < 2) return 0;
    const elementwise_walk w = elementwise_walk_of(op);
    const elementwise_numbers n = elementwise_numbers_of(op);
    elementwise_pass *s = &p->pass;
    p->what = is->what, p->output = (int)op->tensor_count - 1;
    s->what = operators[elementwise_id_of(op)];
    s->inputs = w.inputs, s->rank = w.rank, s->count = w.count;
    s->type = (int)op->input, s->truth = is->truth;
    s->alpha = n.alpha, s->beta = n.beta;
    s->low = checked_from_double(n.alpha), s->high = checked_from_double(n.beta);
    s->quant = quant_of(op);
    memcpy(s->dims, w.dims, sizeof s->dims);
    memcpy(s->strides, w.strides, sizeof s->strides);
    memcpy(p->source, w.source, sizeof p->source);
    return elementwise_pass_fits(s);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (plan_of(op, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "elementwise_pass has no %.30s of this type and number of operands",
                     op->what ? op->what : "operator");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs;
    scout_plan *const p = *out;
    if (!plan_of(op, p)) return scout_say(why, SCOUT_NO, "type", "elementwise_pass does not support this operation");
    p->pass.config = own_pass_config(values);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const void *in[ELEMENTWISE_MAX_INPUTS] = {NULL};
    for (int k = 0; k < plan->pass.inputs; k++) in[k] = args->tensors[plan->source[k]];
    const int error = elementwise_pass_launch(&plan->pass, in, args->tensors[plan->output], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching elementwise_pass", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(
        json, room, "{\"kernel\":\"elementwise_pass\",\"what\":\"%s\",\"mode\":\"%s\",\"threads\":%d,\"resident\":%d}",
        plan->what, elementwise_pass_mode(&plan->pass), plan->pass.config.threads, plan->pass.config.resident);
}

const scout_candidate own_elementwise = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "elementwise_pass",
    .about = "own kernel, every operator and type; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", "bool", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
