/* The candidate "cudnn_norm": layer and RMS norms by cuDNN's norm operation, for rows at the end of the dimensions. A
 * row is the channels of one image of one pixel, the library's own view of it. It is no baseline: PyTorch and
 * onnxruntime have kernels of their own for these norms. */
#include "scout/cuda/dnn/dnn.h"

#include "scout/op/norm.h"

#include <stdlib.h>
#include <string.h>

/* Tensors are numbered by place plus 1, the scalar by this. */
enum { UID_EPSILON = 20, MOST_UIDS = 8 };

struct scout_plan {
    dnn_plan plan;
    int scale, bias; /* tensors; bias -1: none */
    float epsilon;
};

/* --- its graph --- */

static scout_answer build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why) {
    const norm_problem p = norm_problem_of(op);
    const int64_t rows[4] = {p.k0, p.r1, 1, 1}, sides[4] = {1, p.r1, 1, 1}, strides[4] = {p.r1, 1, p.r1, p.r1};
    const cudnnBackendNormMode_t mode = p.form == NORM_RMS ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
    const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
    cudnnDataType_t type, side;
    (void)way;
    if (!dnn_type(op->input, &type) || !dnn_type(op->tensors[p.scale].type, &side))
        return scout_say(why, SCOUT_NO, "type", "cuDNN does not support these types");
    const dnn_desc x = dnn_tensor(g, NORM_X + 1, type, 4, rows, strides);
    const dnn_desc y = dnn_tensor(g, NORM_Y + 1, type, 4, rows, strides);
    const dnn_desc scale = dnn_tensor(g, p.scale + 1, side, 4, sides, strides);
    const dnn_desc bias = p.bias >= 0 ? dnn_tensor(g, p.bias + 1, side, 4, sides, strides) : NULL;
    const dnn_desc epsilon = dnn_scalar(g, UID_EPSILON, CUDNN_DATA_FLOAT, 4);
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode},
        {CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase},
        {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &scale},
        {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &bias},
        {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &epsilon},
        {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
    };
    dnn_node(g, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, attributes, sizeof attributes / sizeof attributes[0],
             "cuDNN's norm");
    return SCOUT_OK;
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op->kind != SCOUT_NORM) return scout_say(why, SCOUT_NO, "feature", "this is no norm");
    const norm_problem p = norm_problem_of(op);
    const bool layer = op_is(op, "layer");
    if ((!layer && !op_is(op, "rms")) || p.form == NORM_NONE)
        return scout_say(why, SCOUT_NO, "feature",
                         "cuDNN's norm operation is used for layer and rms norms, not for %.20s",
                         op->what ? op->what : "such");
    if (p.k2 > 1 || p.k1 > 1 || p.r0 > 1)
        return scout_say(why, SCOUT_NO, "layout", "cuDNN's norms take rows at the end of the dimensions");
    if (p.residual >= 0 || p.input_bias >= 0 || p.sum >= 0)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's norms add no residual");
    if (p.activation != NORM_LINEAR)
        return scout_say(why, SCOUT_NO, "epilogue", "no activation is fused with cuDNN's norms");
    if (op->input != op->output)
        return scout_say(why, SCOUT_NO, "type", "cuDNN's norms need input and output of one type");
    if (p.scale < 0 || (layer && p.bias < 0))
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's %s",
                         layer ? "layer norm wants a scale and a bias" : "rms norm wants a scale");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "cuDNN's norms need compute capability 8.0");
    return dnn_open(why) ? SCOUT_OK : SCOUT_NO;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    memset(out, 0, sizeof *out);
    dnn_offer *const offer = dnn_offer_get(device, op, build, 0, why);
    return offer ? dnn_offer_domain(offer, exhaustive, out, why) : SCOUT_NO;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const dnn_offer *const offer = dnn_offer_get(device, op, build, 0, NULL);
    return offer && dnn_offer_allows(offer, values[0]);
}

static void destroy(scout_plan *plan) { dnn_plan_free(&plan->plan); }

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    const norm_problem problem = norm_problem_of(op);
    scout_plan *const p = *plan;
    p->scale = problem.scale;
    p->bias = problem.bias;
    p->epsilon = (float)problem.epsilon;
    dnn_offer *const offer = dnn_offer_get(device, op, build, 0, why);
    const scout_answer answer = offer ? dnn_plan_make(offer, values[0], &p->plan, why) : SCOUT_NO;
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = p->plan.workspace;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const int places[] = {NORM_X, NORM_Y, plan->scale, plan->bias};
    int64_t uids[MOST_UIDS] = {UID_EPSILON};
    void *pointers[MOST_UIDS] = {&plan->epsilon};
    int count = 1;
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        if (places[k] < 0) continue;
        uids[count] = places[k] + 1;
        pointers[count++] = args->tensors[places[k]];
    }
    return dnn_plan_launch(&plan->plan, count, uids, pointers, args->workspace, args->stream, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    char engine[900];
    dnn_plan_describe(&plan->plan, engine, sizeof engine);
    return snprintf(json, room, "{%s}", engine);
}

const scout_candidate dnn_norm = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_NORM,
    .priority = 100,
    .name = "cudnn_norm",
    .about = "cuDNN's layer and rms norms of contiguous rows: its ranked engines",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
