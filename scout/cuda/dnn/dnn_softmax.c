/* The candidate "cudnn_softmax": softmax and its logarithm by the library's call of that name. Rows run along the
 * channels of images that are `inner` pixels high. It is no baseline: PyTorch and onnxruntime have kernels of their
 * own. */
#include "scout/cuda/dnn/dnn.h"

#include "scout/op/softmax.h"

#include <string.h>

struct scout_plan {
    const dnn_table *dnn;
    cudnnTensorDescriptor_t shape; /* of both tensors; owned */
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnSoftmaxMode_t mode;
};

/* The same where a row is a whole image; the library may have another kernel for it. */
static const char *const names[] = {"channel", "instance"};
static const cudnnSoftmaxMode_t modes[] = {CUDNN_SOFTMAX_MODE_CHANNEL, CUDNN_SOFTMAX_MODE_INSTANCE};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (op->kind != SCOUT_SOFTMAX) return scout_say(why, SCOUT_NO, "feature", "this is no softmax");
    const softmax_problem p = softmax_problem_of(op);
    if (p.scale != 1) return scout_say(why, SCOUT_NO, "feature", "cuDNN's softmax does not scale its input");
    if (p.bias >= 0) return scout_say(why, SCOUT_NO, "feature", "cuDNN's softmax adds no bias");
    if (op->input != op->output)
        return scout_say(why, SCOUT_NO, "type", "cuDNN's softmax needs input and output of one type");
    if (p.rows > INT32_MAX / p.cols)
        return scout_say(why, SCOUT_NO, "shape", "cuDNN's softmax takes at most 2^31 elements");
    return dnn_open(why) ? SCOUT_OK : SCOUT_NO;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    scout_parameter *const p = &out->parameters[0];
    (void)device, (void)exhaustive, (void)why;
    memset(out, 0, sizeof *out);
    out->count = 1;
    snprintf(p->name, sizeof p->name, "mode");
    p->count = softmax_problem_of(op).inner == 1 ? sizeof modes / sizeof modes[0] : 1;
    p->labels = names;
    for (uint32_t k = 0; k < p->count; k++) p->values[k] = k;
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) {
    if (plan->dnn && plan->shape) plan->dnn->cudnnDestroyTensorDescriptor(plan->shape);
}

static scout_answer describe_shape(scout_plan *p, const scout_op *op, scout_why *why) {
    const softmax_problem s = softmax_problem_of(op);
    const int dims[4] = {(int)s.outer, (int)s.cols, (int)s.inner, 1};
    const int strides[4] = {(int)(s.cols * s.inner), (int)s.inner, 1, 1};
    cudnnDataType_t type;
    if (!dnn_type(op->input, &type)) return scout_say(why, SCOUT_NO, "type", "cuDNN does not support this type");
    cudnnStatus_t status = p->dnn->cudnnCreateTensorDescriptor(&p->shape);
    if (status == CUDNN_STATUS_SUCCESS) status = p->dnn->cudnnSetTensorNdDescriptor(p->shape, type, 4, dims, strides);
    return dnn_answer(status, "cuDNN's tensor", why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    cudnnHandle_t handle = NULL;
    (void)device, (void)needs;
    p->algorithm = softmax_problem_of(op).logarithm ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
    p->mode = modes[values[0]];
    p->dnn = dnn_ready(&handle, why);
    const scout_answer answer = p->dnn ? describe_shape(p, op, why) : SCOUT_NO;
    return answer;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const float one = 1, zero = 0;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(args->stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnSoftmaxForward(handle, plan->algorithm, plan->mode, &one, plan->shape,
                                                args->tensors[SOFTMAX_X], &zero, plan->shape, args->tensors[SOFTMAX_Y]);
    return dnn_answer(status, "cudnnSoftmaxForward", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\":\"cudnn\",\"version\":\"%s\",\"call\":\"cudnnSoftmaxForward\",\"mode\":\"%s\"}",
                    plan->dnn->version, names[plan->mode == modes[0] ? 0 : 1]);
}

const scout_candidate dnn_softmax = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_SOFTMAX,
    .priority = 100,
    .name = "cudnn_softmax",
    .about = "cudnnSoftmaxForward, accurate or logarithmic",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
