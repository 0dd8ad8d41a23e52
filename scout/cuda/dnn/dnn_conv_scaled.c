/* Convolutions of floats with a weight of int8: cuDNN's own, with the weight packed once to the input's type, each
 * output channel times its scale. The library's formats of a weight are left out: it is packed already. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/own/own.h"
#include "scout/op/conv.h"

enum { MOST_TENSORS = 5 };

/* All but the scales, which come last. */
typedef struct product {
    scout_op op;
    scout_tensor tensors[MOST_TENSORS];
} product;

struct scout_plan {
    product asked;
    scout_plan *convolve; /* of dnn_conv */
    quantize_rows weight;
    int scales;
};

static scout_answer product_of(const scout_op *op, product *to, scout_why *why) {
    const conv_problem p = conv_problem_of(op);
    memset(to, 0, sizeof *to);
    if (p.scales < 0) return scout_say(why, SCOUT_NO, "type", "for weights of int8 beside floats");
    if (p.scales != (int)op->tensor_count - 1 || p.scales > MOST_TENSORS)
        return scout_say(why, SCOUT_NO, "feature", "the scales do not come last");
    to->op = *op;
    to->op.weight = op->input;
    to->op.tensor_count = (uint32_t)p.scales;
    memcpy(to->tensors, op->tensors, (size_t)p.scales * sizeof *to->tensors);
    scout_tensor *const weight = &to->tensors[CONV_WEIGHT];
    weight->type = op->input;
    weight->role = SCOUT_INPUT; /* not the library's to pack */
    weight->bytes = (uint64_t)op_elements(weight) * (op->input == SCOUT_FP32 ? 4 : 2);
    to->op.tensors = to->tensors;
    return SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    product asked;
    const scout_answer answer = product_of(op, &asked, why);
    return answer == SCOUT_OK ? dnn_conv.supports(&asked.op, device, why) : answer;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    product asked;
    const scout_answer answer = product_of(op, &asked, why);
    return answer == SCOUT_OK ? dnn_conv.domain(&asked.op, device, exhaustive, out, why) : answer;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    product asked;
    return product_of(op, &asked, NULL) == SCOUT_OK && dnn_conv.allows(&asked.op, device, values);
}

static void destroy(scout_plan *plan) {
    if (plan->convolve) scout_destroy(&dnn_conv, plan->convolve);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    const conv_problem p = conv_problem_of(op);
    scout_answer answer = product_of(op, &plan->asked, why);
    plan->asked.op.tensors = plan->asked.tensors;
    plan->scales = p.scales;
    plan->weight = (quantize_rows){
        .from = SCOUT_INT8,
        .to = (int)op->input,
        .scale_type = (int)op->input,
        .outer = 1,
        .channels = p.cout,
        .inner = conv_depth(&p),
    };
    if (answer == SCOUT_OK && !quantize_rows_fits(&plan->weight))
        answer = scout_say(why, SCOUT_NO, "shape", "the weight cannot be widened");
    if (answer == SCOUT_OK)
        answer = scout_prepare(&dnn_conv, &plan->asked.op, device, values, &plan->convolve, needs, why);
    if (answer == SCOUT_OK && needs->packs)
        answer = scout_say(why, SCOUT_NO, "layout", "cuDNN would pack the weight once more");
    if (answer != SCOUT_OK) return answer;
    needs->packs = CONV_WEIGHT + 1;
    needs->pack_bytes = plan->asked.tensors[CONV_WEIGHT].bytes;
    return SCOUT_OK;
}

static scout_answer pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    return cuda_device_answer((cudaError_t)quantize_rows_launch(&plan->weight, tensors[CONV_WEIGHT],
                                                                tensors[plan->scales], NULL, packed, stream),
                              "widening the weight", why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    return dnn_conv.launch(plan->convolve, args, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return scout_describe(&dnn_conv, plan->convolve, json, room);
}

const scout_candidate dnn_conv_scaled = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_CONV,
    .flags = SCOUT_BASELINE,
    .priority = 95,
    .name = "cudnn_conv_scaled",
    .about = "cuDNN's convolutions with a weight of int8 that is widened once, times its scales",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .pack_tensors = pack_tensors,
    .plan_bytes = sizeof(scout_plan),
};
