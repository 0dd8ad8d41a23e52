/* The candidate "cudnn_reduce": reductions by the library's oldest function for them; as a graph it reduces only a
 * whole tensor. It is no baseline: PyTorch has kernels of its own, and this call takes up to ten times as long. */
#include "scout/cuda/dnn/dnn.h"
#include "scout/op/reduce.h"

struct scout_plan {
    const dnn_table *dnn;
    cudnnReduceTensorDescriptor_t how;
    cudnnTensorDescriptor_t in, out;
    size_t workspace;
};

/* cuDNN's names; it lacks the others. */
static const struct {
    const char *what;
    cudnnReduceTensorOp_t how;
} operators[] = {{"sum", CUDNN_REDUCE_TENSOR_ADD}, {"mean", CUDNN_REDUCE_TENSOR_AVG}, {"max", CUDNN_REDUCE_TENSOR_MAX},
                 {"min", CUDNN_REDUCE_TENSOR_MIN}, {"prod", CUDNN_REDUCE_TENSOR_MUL}, {"l1", CUDNN_REDUCE_TENSOR_NORM1},
                 {"l2", CUDNN_REDUCE_TENSOR_NORM2}};

static const cudnnReduceTensorOp_t *operator_of(const scout_op *op) {
    for (size_t k = 0; k < sizeof operators / sizeof operators[0]; k++)
        if (op_is(op, operators[k].what)) return &operators[k].how;
    return NULL;
}

static bool reduces(const scout_op *op) {
    const scout_tensor *x = &op->tensors[REDUCE_X], *y = &op->tensors[REDUCE_Y];
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->dims[d] != y->dims[d]) return true;
    return false;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    cudnnDataType_t type;
    (void)device;
    if (!operator_of(op))
        return scout_say(why, SCOUT_NO, "feature", "cuDNN has no reduction %.20s",
                         op->what ? op->what : "of this kind");
    if (!dnn_type(op->input, &type) || (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF))
        return scout_say(why, SCOUT_NO, "type", "cuDNN reduces fp32 and fp16");
    if (op_elements(&op->tensors[REDUCE_X]) > INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "cuDNN's reductions take less than 2^31 elements");
    if (!reduces(op))
        return scout_say(why, SCOUT_NO, "shape", "cuDNN refuses a reduction whose output is as large as its input");
    return dnn_open(why) ? SCOUT_OK : SCOUT_NO;
}

static void destroy(scout_plan *p) {
    if (p->how) p->dnn->cudnnDestroyReduceTensorDescriptor(p->how);
    if (p->in) p->dnn->cudnnDestroyTensorDescriptor(p->in);
    if (p->out) p->dnn->cudnnDestroyTensorDescriptor(p->out);
}

/* At least four dimensions, as the library requires. */
static cudnnStatus_t tell_tensor(const dnn_table *dnn, const scout_tensor *t, cudnnDataType_t type,
                                 cudnnTensorDescriptor_t *to) {
    const int more = t->rank < 4 ? 4 - (int)t->rank : 0, rank = (int)t->rank + more;
    int dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK], step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        dims[d] = d < more ? 1 : (int)t->dims[d - more];
        strides[d] = step;
        step *= dims[d];
    }
    const cudnnStatus_t status = dnn->cudnnCreateTensorDescriptor(to);
    return status == CUDNN_STATUS_SUCCESS ? dnn->cudnnSetTensorNdDescriptor(*to, type, rank, dims, strides) : status;
}

static cudnnStatus_t tell(scout_plan *p, cudnnHandle_t handle, const scout_op *op) {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    (void)dnn_type(op->input, &type);
    cudnnStatus_t status = tell_tensor(p->dnn, &op->tensors[REDUCE_X], type, &p->in);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_tensor(p->dnn, &op->tensors[REDUCE_Y], type, &p->out);
    if (status == CUDNN_STATUS_SUCCESS) status = p->dnn->cudnnCreateReduceTensorDescriptor(&p->how);
    if (status == CUDNN_STATUS_SUCCESS)
        status = p->dnn->cudnnSetReduceTensorDescriptor(p->how, *operator_of(op), CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                                        CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
    if (status == CUDNN_STATUS_SUCCESS)
        status = p->dnn->cudnnGetReductionWorkspaceSize(handle, p->how, p->in, p->out, &p->workspace);
    return status;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    cudnnHandle_t handle = NULL;
    (void)device, (void)values;
    p->dnn = dnn_ready(&handle, why);
    if (!p->dnn) return SCOUT_NO;
    const scout_answer answer = dnn_answer(tell(p, handle, op), "cuDNN's reduction", why);
    if (answer != SCOUT_OK) return answer;
    needs->workspace_bytes = p->workspace;
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    static const float one = 1, zero = 0;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(args->stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = p->dnn->cudnnReduceTensor(handle, p->how, NULL, 0, args->workspace, p->workspace, &one, p->in,
                                           args->tensors[REDUCE_X], &zero, p->out, args->tensors[REDUCE_Y]);
    return dnn_answer(status, "cudnnReduceTensor", why);
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"library\":\"cudnn\",\"version\":\"%s\",\"call\":\"cudnnReduceTensor\"}",
                    p->dnn->version);
}

const scout_candidate dnn_reduce_tensor = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .priority = 90,
    .name = "cudnn_reduce",
    .about = "cudnnReduceTensor: sums, means, extremes, products, norms",
    .library = "cudnn",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
