/* The candidate "cudnn_batch_norm": batch norms in inference, by the library's call for them. It wants scale, bias,
 * mean and variance in fp32, whatever the type of the images. */
#include "scout/cuda/dnn/dnn.h"

#include "scout/op/norm.h"

struct scout_plan {
    const dnn_table *dnn;
    cudnnTensorDescriptor_t images, channels; /* owned */
    norm_problem p;
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op->kind != SCOUT_NORM) return scout_say(why, SCOUT_NO, "feature", "this is no norm");
    const norm_problem p = norm_problem_of(op);
    if (p.form != NORM_BATCH) return scout_say(why, SCOUT_NO, "feature", "this call is for batch norms alone");
    if (p.scale < 0 || p.bias < 0)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's batch norm needs a scale and a bias");
    if (p.residual >= 0 || p.input_bias >= 0 || p.sum >= 0)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's batch norm adds no residual");
    if (p.activation != NORM_LINEAR)
        return scout_say(why, SCOUT_NO, "epilogue", "no activation is fused with cuDNN's batch norm");
    if (op->input != op->output)
        return scout_say(why, SCOUT_NO, "type", "cuDNN's batch norm needs input and output of one type");
    const int sides[] = {p.scale, p.bias, p.mean, p.variance};
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
        if (sides[k] < 0 || op->tensors[sides[k]].type != SCOUT_FP32)
            return scout_say(why, SCOUT_NO, "type", "cuDNN needs scale, bias, mean and variance in fp32");
    if (p.rows > INT32_MAX / p.cols)
        return scout_say(why, SCOUT_NO, "shape", "cuDNN's batch norm takes at most 2^31 elements");
    return dnn_open(why) ? SCOUT_OK : SCOUT_NO;
}

static void destroy(scout_plan *plan) {
    if (plan->dnn && plan->images) plan->dnn->cudnnDestroyTensorDescriptor(plan->images);
    if (plan->dnn && plan->channels) plan->dnn->cudnnDestroyTensorDescriptor(plan->channels);
}

/* x is [images, channels, space]. */
static scout_answer describe_shapes(scout_plan *p, const scout_op *op, scout_why *why) {
    const int64_t *const d = op->tensors[NORM_X].dims;
    const int images = (int)d[0], channels = (int)d[1], space = (int)d[2];
    const int dims[4] = {images, channels, space, 1}, strides[4] = {channels * space, space, 1, 1};
    const int sides[4] = {1, channels, 1, 1}, steps[4] = {channels, 1, 1, 1};
    cudnnDataType_t type;
    if (!dnn_type(op->input, &type)) return scout_say(why, SCOUT_NO, "type", "cuDNN does not support this type");
    cudnnStatus_t status = p->dnn->cudnnCreateTensorDescriptor(&p->images);
    if (status == CUDNN_STATUS_SUCCESS) status = p->dnn->cudnnCreateTensorDescriptor(&p->channels);
    if (status == CUDNN_STATUS_SUCCESS) status = p->dnn->cudnnSetTensorNdDescriptor(p->images, type, 4, dims, strides);
    if (status == CUDNN_STATUS_SUCCESS)
        status = p->dnn->cudnnSetTensorNdDescriptor(p->channels, CUDNN_DATA_FLOAT, 4, sides, steps);
    return dnn_answer(status, "cuDNN's tensor", why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    cudnnHandle_t handle = NULL;
    (void)device, (void)values, (void)needs;
    p->p = norm_problem_of(op);
    p->dnn = dnn_ready(&handle, why);
    const scout_answer answer = p->dnn ? describe_shapes(p, op, why) : SCOUT_NO;
    return answer;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const norm_problem *const p = &plan->p;
    const float one = 1, zero = 0;
    void *const *const t = args->tensors;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(args->stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnBatchNormalizationForwardInference(
            handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, plan->images, t[NORM_X], plan->images, t[NORM_Y],
            plan->channels, t[p->scale], t[p->bias], t[p->mean], t[p->variance], p->epsilon);
    return dnn_answer(status, "cuDNN's batch norm", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\":\"cudnn\",\"version\":\"%s\",\"call\":\"cudnnBatchNormalizationForwardInference\"}",
                    plan->dnn->version);
}

const scout_candidate dnn_batch_norm = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cudnn_batch_norm",
    .about = "cuDNN's batch norm in inference",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
