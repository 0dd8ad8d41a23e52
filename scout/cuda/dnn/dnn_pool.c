/* Pools by cuDNN: the baseline of this device, through the library's oldest function for them, which frameworks call.
 * Its windows have no dilation and the same padding on both sides, and its output lengths are rounded down: all else is
 * refused here. */
#include "scout/cuda/dnn/dnn.h"
#include "scout/op/pool.h"

#include <limits.h>

struct scout_plan {
    const dnn_table *dnn;
    cudnnPoolingDescriptor_t pool;
    cudnnTensorDescriptor_t in, out;
    cudnnPoolingMode_t mode;
};

/* Dimensions of space for cuDNN: 2 or 3. */
static int space_of(const pool_problem *p) { return p->w.spatial < 2 ? 2 : p->w.spatial; }
static const window_axis *axis(const pool_problem *p, int k) { return &p->w.axes[WINDOW_AXES - space_of(p) + k]; }

static scout_answer check_axis(const pool_problem *p, const window_axis *a, scout_why *why) {
    const int64_t reach = window_reach(a), room = a->in + 2 * a->begin - reach;
    if (a->dilation != 1 && a->kernel > 1) return scout_say(why, SCOUT_NO, "feature", "cuDNN's pools have no dilation");
    if (room < 0 || a->out != room / a->stride + 1)
        return scout_say(why, SCOUT_NO, "feature",
                         "cuDNN's pools have the same padding on both sides and no overhang (ceil_mode)");
    /* cuDNN divides by the whole window; ours ends with the padding that the operation has */
    if (p->average && p->padded && (a->out - 1) * a->stride + reach > a->in + a->begin + a->end)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN would count the window's overhang beyond the padding");
    return SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (!pool_has_windows(op)) return scout_say(why, SCOUT_NO, "feature", "interpolation is not its work");
    const pool_problem p = pool_problem_of(op);
    cudnnDataType_t type;
    (void)device;
    if (!dnn_open(why)) return SCOUT_NO;
    if (!dnn_type(p.type, &type) || type == CUDNN_DATA_UINT8)
        return scout_say(why, SCOUT_NO, "type", "cuDNN has no pool of this type");
    if (p.quant.is) return scout_say(why, SCOUT_NO, "feature", "cuDNN's pools do not rescale averages");
    for (int k = 0; k < WINDOW_AXES; k++) {
        const scout_answer answer = check_axis(&p, &p.w.axes[k], why);
        if (answer != SCOUT_OK) return answer;
    }
    for (int k = 0; k < 2; k++)
        if (op_elements(&op->tensors[k]) > INT_MAX)
            return scout_say(why, SCOUT_NO, "shape", "a tensor exceeds the limit of cuDNN's pools");
    return SCOUT_OK;
}

static void destroy(scout_plan *plan) {
    if (plan->pool) plan->dnn->cudnnDestroyPoolingDescriptor(plan->pool);
    if (plan->in) plan->dnn->cudnnDestroyTensorDescriptor(plan->in);
    if (plan->out) plan->dnn->cudnnDestroyTensorDescriptor(plan->out);
}

static cudnnStatus_t tell_tensor(const dnn_table *dnn, const pool_problem *p, cudnnDataType_t type, bool out,
                                 cudnnTensorDescriptor_t *to) {
    const int rank = space_of(p) + 2;
    int dims[WINDOW_AXES + 2] = {(int)p->n, (int)p->channels}, strides[WINDOW_AXES + 2];
    int64_t step = out ? p->out_step : p->in_step;
    for (int k = rank - 1; k >= 2; k--) {
        dims[k] = (int)(out ? axis(p, k - 2)->out : axis(p, k - 2)->in);
        strides[k] = (int)step;
        step *= dims[k];
    }
    strides[0] = (int)(out ? p->out_n : p->in_n);
    strides[1] = (int)(out ? p->out_c : p->in_c);
    const cudnnStatus_t status = dnn->cudnnCreateTensorDescriptor(to);
    return status == CUDNN_STATUS_SUCCESS ? dnn->cudnnSetTensorNdDescriptor(*to, type, rank, dims, strides) : status;
}

static cudnnStatus_t tell_pool(scout_plan *plan, const pool_problem *p) {
    int kernel[WINDOW_AXES], padding[WINDOW_AXES], stride[WINDOW_AXES];
    for (int k = 0; k < space_of(p); k++) {
        const window_axis *const a = axis(p, k);
        kernel[k] = (int)a->kernel, padding[k] = (int)a->begin;
        stride[k] = a->stride < INT_MAX / 2 ? (int)a->stride : INT_MAX / 2; /* longer than any input either way */
    }
    const cudnnStatus_t status = plan->dnn->cudnnCreatePoolingDescriptor(&plan->pool);
    return status == CUDNN_STATUS_SUCCESS
               ? plan->dnn->cudnnSetPoolingNdDescriptor(plan->pool, plan->mode, CUDNN_PROPAGATE_NAN, space_of(p),
                                                        kernel, padding, stride)
               : status;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const pool_problem p = pool_problem_of(op);
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnHandle_t handle = NULL;
    (void)device, (void)values, (void)needs;
    scout_plan *const plan = *out;
    plan->mode = !p.average ? CUDNN_POOLING_MAX
                 : p.padded ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                            : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
    plan->dnn = dnn_ready(&handle, why);
    if (!plan->dnn || !dnn_type(p.type, &type)) return SCOUT_NO;
    cudnnStatus_t status = tell_tensor(plan->dnn, &p, type, false, &plan->in);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_tensor(plan->dnn, &p, type, true, &plan->out);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_pool(plan, &p);
    const scout_answer answer = dnn_answer(status, "cuDNN's pool", why);
    return answer;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    static const float one = 1, zero = 0;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(args->stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnPoolingForward(handle, plan->pool, &one, plan->in, args->tensors[POOL_INPUT], &zero,
                                                plan->out, args->tensors[POOL_OUTPUT]);
    return dnn_answer(status, "cudnnPoolingForward", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"library\":\"cudnn\",\"version\":\"%s\",\"function\":\"cudnnPoolingForward\"}",
                    plan->dnn->version);
}

const scout_candidate dnn_pool = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_POOL,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cudnn_pool",
    .about = "cuDNN's pooling: maximum and average",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", "int8", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
