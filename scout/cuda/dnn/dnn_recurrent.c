/* Recurrent layers by cuDNN: the baseline of this device. Its gates have another order and its weights a buffer of
 * their own, so both weights and the biases are packed as one, with the lengths of the sequences (all of them whole)
 * behind them, which it reads on the device. Its output has both directions side by side: where ONNX's layout differs,
 * the output goes to the workspace first and is copied. */
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/own/own.h"

#include <limits.h>

enum { ALGORITHM, PARAMETERS };
enum { ALIGNMENT = 256 };

static const char *const algorithms[] = {"standard", "persist_static", "persist_dynamic", "persist_small"};
static const cudnnRNNAlgo_t algorithm_of[] = {CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_ALGO_PERSIST_STATIC,
                                              CUDNN_RNN_ALGO_PERSIST_DYNAMIC, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };

struct scout_plan {
    recurrent_problem p;
    const dnn_table *dnn;
    cudnnRNNDescriptor_t layer;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t state, matrix, bias; /* the last two are what cuDNN describes its weights with */
    int32_t *lengths;                            /* on the host */
    size_t weight_bytes, room_bytes;             /* of its weight space; of its temporary one */
    size_t lengths_at;                           /* behind the weights */
    bool staged;                                 /* the output is copied */
    int algorithm;
};

/* ---- support ---- */

static scout_answer covers_cell(const recurrent_problem *p, scout_why *why) {
    const recurrent_function f = p->activations[0][0].function;
    const bool alike = p->directions == 1 || f == p->activations[1][0].function;
    if (p->cell == RECURRENT_GRU && !p->linear_before_reset)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's GRU resets after the product (linear_before_reset)");
    if (p->cell == RECURRENT_RNN ? !alike || (f != RECURRENT_TANH && f != RECURRENT_RELU) : !p->customary)
        return scout_say(why, SCOUT_NO, "feature", "cuDNN's layers have the default activations alone");
    if (p->peephole >= 0 || p->input_forget || p->clip > 0)
        return scout_say(why, SCOUT_NO, "feature",
                         "cuDNN has no peepholes and no coupled gates, and clips differently");
    if (p->lengths >= 0)
        return scout_say(why, SCOUT_NO, "feature",
                         "cuDNN takes the lengths of sequences on the host, before the launch");
    if (p->reverse) return scout_say(why, SCOUT_NO, "feature", "cuDNN has no layer with the backward direction alone");
    return SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const recurrent_problem p = recurrent_problem_of(op);
    const bool states = p.h0 >= 0 || p.y_h >= 0 || p.y_c >= 0;
    cudnnDataType_t type;
    (void)device;
    if (!dnn_open(why)) return SCOUT_NO;
    const scout_answer answer = covers_cell(&p, why);
    if (answer != SCOUT_OK) return answer;
    if (!dnn_type(p.type, &type)) return scout_say(why, SCOUT_NO, "type", "cuDNN has no layer of this type");
    if (p.batch_first && p.directions == 2 && p.batch > 1 && states)
        return scout_say(why, SCOUT_NO, "layout", "cuDNN's states have the directions before the batch");
    for (uint32_t k = 0; k < op->rank; k++)
        if (op->shape[k] > INT_MAX / 8) return scout_say(why, SCOUT_NO, "shape", "a dimension exceeds cuDNN's limit");
    return SCOUT_OK;
}

/* ---- describing it ---- */

static cudnnStatus_t tell_layer(scout_plan *plan, cudnnHandle_t handle, cudnnDataType_t type) {
    const recurrent_problem *p = &plan->p;
    const cudnnRNNMode_t mode = p->cell == RECURRENT_LSTM                         ? CUDNN_LSTM
                                : p->cell == RECURRENT_GRU                        ? CUDNN_GRU
                                : p->activations[0][0].function == RECURRENT_RELU ? CUDNN_RNN_RELU
                                                                                  : CUDNN_RNN_TANH;
    cudnnStatus_t status = plan->dnn->cudnnCreateRNNDescriptor(&plan->layer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    /* fp32 is not rounded to tf32; no dropout descriptor: there is one layer */
    status = plan->dnn->cudnnSetRNNDescriptor_v8(
        plan->layer, algorithm_of[plan->algorithm], mode, p->bias >= 0 ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
        p->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT,
        p->type == SCOUT_FP32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH, (int32_t)p->input, (int32_t)p->hidden,
        (int32_t)p->hidden, 1, NULL, p->batch_first ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED);
    if (status == CUDNN_STATUS_SUCCESS && algorithm_of[plan->algorithm] == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        status = plan->dnn->cudnnBuildRNNDynamic(handle, plan->layer, (int)p->batch);
    return status;
}

static cudnnStatus_t tell_data(scout_plan *plan, cudnnDataType_t type, int64_t wide, cudnnRNNDataDescriptor_t *to) {
    const recurrent_problem *p = &plan->p;
    const cudnnStatus_t status = plan->dnn->cudnnCreateRNNDataDescriptor(to);
    return status != CUDNN_STATUS_SUCCESS
               ? status
               : plan->dnn->cudnnSetRNNDataDescriptor(*to, type,
                                                      p->batch_first ? CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
                                                                     : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                                      (int)p->steps, (int)p->batch, (int)wide, plan->lengths, NULL);
}

static cudnnStatus_t tell_state(scout_plan *plan, cudnnDataType_t type) {
    const recurrent_problem *p = &plan->p;
    const int dims[] = {p->directions, (int)p->batch, (int)p->hidden};
    const int strides[] = {dims[1] * dims[2], dims[2], 1};
    cudnnStatus_t status = plan->dnn->cudnnCreateTensorDescriptor(&plan->matrix);
    if (status == CUDNN_STATUS_SUCCESS) status = plan->dnn->cudnnCreateTensorDescriptor(&plan->bias);
    if (status == CUDNN_STATUS_SUCCESS) status = plan->dnn->cudnnCreateTensorDescriptor(&plan->state);
    return status == CUDNN_STATUS_SUCCESS ? plan->dnn->cudnnSetTensorNdDescriptor(plan->state, type, 3, dims, strides)
                                          : status;
}

static cudnnStatus_t tell(scout_plan *plan, cudnnHandle_t handle, cudnnDataType_t type) {
    const recurrent_problem *p = &plan->p;
    size_t reserve = 0;
    cudnnStatus_t status = tell_layer(plan, handle, type);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_data(plan, type, p->input, &plan->x);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_data(plan, type, p->directions * p->hidden, &plan->y);
    if (status == CUDNN_STATUS_SUCCESS) status = tell_state(plan, type);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnGetRNNWeightSpaceSize(handle, plan->layer, &plan->weight_bytes);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnGetRNNTempSpaceSizes(handle, plan->layer, CUDNN_FWD_MODE_INFERENCE, plan->x,
                                                      &plan->room_bytes, &reserve);
    return status;
}

static void destroy(scout_plan *plan) {
    if (plan->layer) plan->dnn->cudnnDestroyRNNDescriptor(plan->layer);
    if (plan->x) plan->dnn->cudnnDestroyRNNDataDescriptor(plan->x);
    if (plan->y) plan->dnn->cudnnDestroyRNNDataDescriptor(plan->y);
    if (plan->state) plan->dnn->cudnnDestroyTensorDescriptor(plan->state);
    if (plan->matrix) plan->dnn->cudnnDestroyTensorDescriptor(plan->matrix);
    if (plan->bias) plan->dnn->cudnnDestroyTensorDescriptor(plan->bias);
    free(plan->lengths);
}

/* ---- the candidate ---- */

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = PARAMETERS;
    out->parameters[ALGORITHM] =
        (scout_parameter){.name = "algorithm", .count = ALGORITHMS, .values = {0, 1, 2, 3}, .labels = algorithms};
    return SCOUT_OK;
}

static size_t whole(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static size_t element(const scout_plan *plan) { return plan->p.type == SCOUT_FP32 ? 4 : 2; }

static size_t output_bytes(const scout_plan *plan) {
    const recurrent_problem *p = &plan->p;
    return (size_t)(p->steps * p->batch * p->directions * p->hidden) * element(plan);
}

static scout_answer fill(scout_plan *plan, cudnnHandle_t handle, const scout_op *op, scout_plan_needs *needs,
                         scout_why *why) {
    const recurrent_problem *p = &plan->p;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    if (!dnn_type(p->type, &type)) return scout_say(why, SCOUT_NO, "type", "cuDNN has no layer of this type");
    plan->lengths = malloc((size_t)p->batch * sizeof *plan->lengths);
    if (!plan->lengths) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
    for (int64_t k = 0; k < p->batch; k++) plan->lengths[k] = (int32_t)p->steps;
    const scout_answer answer = dnn_answer(tell(plan, handle, type), "cuDNN's layer", why);
    if (answer != SCOUT_OK) return answer;
    plan->staged = p->y < 0 || (p->directions == 2 && !p->batch_first && p->batch > 1);
    plan->lengths_at = whole(plan->weight_bytes);
    needs->packs = RECURRENT_W + 1;
    needs->pack_bytes = plan->lengths_at + (size_t)p->batch * sizeof *plan->lengths;
    needs->workspace_bytes = whole(plan->room_bytes) + (plan->staged ? output_bytes(plan) : 0);
    if (needs->workspace_bytes <= op->workspace_limit) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "memory", "cuDNN's layer needs %llu bytes of workspace",
                     (unsigned long long)needs->workspace_bytes);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    cudnnHandle_t handle = NULL;
    (void)device;
    scout_plan *const plan = *out;
    plan->p = recurrent_problem_of(op);
    plan->algorithm = values ? (int)values[ALGORITHM] : 0;
    plan->dnn = dnn_ready_for(&handle, "libcudnn_adv.so.9", why);
    if (!plan->dnn) return SCOUT_NO;
    return fill(plan, handle, op, needs, why);
}

/* The gate of ONNX (i, o, f, c; z, r, h) at a place of cuDNN's (i, f, c, o; r, z, h). */
static int gate_at(const recurrent_problem *p, int place) {
    static const int lstm[] = {0, 2, 3, 1}, gru[] = {1, 0, 2};
    return p->cell == RECURRENT_LSTM ? lstm[place] : p->cell == RECURRENT_GRU ? gru[place] : place;
}

/* One gate of the input (state 0) or of the state (1), with its bias: both lie in one piece here and there. */
static scout_answer pack_gate(scout_plan *plan, void *const *tensors, char *packed, int direction, int place, int state,
                              cudaStream_t stream, scout_why *why) {
    const recurrent_problem *p = &plan->p;
    const size_t size = element(plan), row = (size_t)p->hidden * size;
    const size_t depth = (size_t)(state ? p->hidden : p->input), gate = (size_t)gate_at(p, place);
    const size_t line = (size_t)(direction * p->gates) + gate;
    const char *from = (const char *)tensors[state ? RECURRENT_R : RECURRENT_W] + line * row * depth;
    void *matrix = NULL, *bias = NULL;
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnGetRNNWeightParams(handle, plan->layer, direction, plan->weight_bytes, packed,
                                                    place + state * p->gates, plan->matrix, &matrix, plan->bias, &bias);
    if (status != CUDNN_STATUS_SUCCESS) return dnn_answer(status, "cudnnGetRNNWeightParams", why);
    cudaError_t error =
        matrix ? cudaMemcpyAsync(matrix, from, row * depth, cudaMemcpyDeviceToDevice, stream) : cudaErrorInvalidValue;
    if (error == cudaSuccess && p->bias >= 0 && bias) {
        const size_t at = (size_t)(2 * direction + state) * (size_t)p->gates + gate;
        error = cudaMemcpyAsync(bias, (const char *)tensors[p->bias] + at * row, row, cudaMemcpyDeviceToDevice, stream);
    }
    return cuda_device_answer(error, "packing a gate", why);
}

static scout_answer pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream, scout_why *why) {
    const recurrent_problem *p = &plan->p;
    cudaError_t error = cudaMemsetAsync(packed, 0, plan->lengths_at, stream);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync((char *)packed + plan->lengths_at, plan->lengths,
                                (size_t)p->batch * sizeof *plan->lengths, cudaMemcpyHostToDevice, stream);
    scout_answer answer = cuda_device_answer(error, "packing a layer", why);
    for (int d = 0; d < p->directions; d++)
        for (int k = 0; k < 2 * p->gates && answer == SCOUT_OK; k++)
            answer = pack_gate(plan, tensors, packed, d, k % p->gates, k / p->gates, stream, why);
    return answer;
}

/* From [steps, batch, directions * hidden] to [steps, directions, batch, hidden]: a block for each direction. */
static cudaError_t copy_output(const scout_plan *plan, const char *from, char *to, cudaStream_t stream) {
    const recurrent_problem *p = &plan->p;
    const size_t row = (size_t)p->hidden * element(plan), rows = (size_t)p->batch, both = (size_t)p->directions;
    cudaError_t error = cudaSuccess;
    for (size_t d = 0; d < both && error == cudaSuccess; d++) {
        struct cudaMemcpy3DParms copy = {.kind = cudaMemcpyDeviceToDevice};
        copy.srcPtr = (struct cudaPitchedPtr){(void *)(uintptr_t)(from + d * row), both * row, both * row, rows};
        copy.dstPtr = (struct cudaPitchedPtr){to + d * rows * row, row, row, both * rows};
        copy.extent = (struct cudaExtent){row, rows, (size_t)p->steps};
        error = cudaMemcpy3DAsync(&copy, stream);
    }
    return error;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const recurrent_layer_tensors t = own_recurrent_tensors(&plan->p, args->tensors);
    char *const packed = args->tensors[RECURRENT_W], *const staged = (char *)args->workspace + whole(plan->room_bytes);
    cudnnHandle_t handle = NULL;
    cudnnStatus_t status = dnn_on(args->stream, &handle);
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->dnn->cudnnRNNForward(
            handle, plan->layer, CUDNN_FWD_MODE_INFERENCE, (const int32_t *)(packed + plan->lengths_at), plan->x, t.x,
            plan->y, plan->staged ? staged : t.y, plan->state, t.h0, t.y_h, plan->state, t.c0, t.y_c,
            plan->weight_bytes, packed, plan->room_bytes, args->workspace, 0, NULL);
    const scout_answer answer = dnn_answer(status, "cudnnRNNForward", why);
    if (answer != SCOUT_OK || !plan->staged || !t.y) return answer;
    return cuda_device_answer(copy_output(plan, staged, t.y, args->stream), "copying an output", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\":\"cudnn\",\"version\":\"%s\",\"function\":\"cudnnRNNForward\",\"algorithm\":\"%s\"}",
                    plan->dnn->version, algorithms[plan->algorithm]);
}

const scout_candidate dnn_recurrent = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_RECURRENT,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cudnn_recurrent",
    .about = "cuDNN's recurrent layers, weights packed; its algorithms are variants",
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
    .pack_tensors = pack_tensors,
};
