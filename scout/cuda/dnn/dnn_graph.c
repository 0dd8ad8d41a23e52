/* Describes an operation to cuDNN as a graph. A node takes a dozen calls, any of which may fail. The graph keeps the
 * first failure, so that code that builds one needs no checks. */
#include "scout/cuda/dnn/dnn.h"

#include <string.h>

enum { FIRST_VIRTUAL = 1000 };

scout_answer dnn_graph_begin(dnn_graph *g, scout_why *why) {
    memset(g, 0, sizeof *g);
    g->next_uid = FIRST_VIRTUAL;
    g->dnn = dnn_ready(&g->handle, why);
    return g->dnn ? SCOUT_OK : SCOUT_NO;
}

void dnn_graph_free(dnn_graph *g) {
    while (g->dnn && g->part_count > 0) g->dnn->cudnnBackendDestroyDescriptor(g->parts[--g->part_count]);
    g->graph = NULL;
}

static bool left_out(const dnn_attribute *a) {
    if (!a->value) return true;
    if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR || a->count != 1) return false;
    dnn_desc one;
    memcpy(&one, a->value, sizeof one);
    return !one;
}

static void stick(dnn_graph *g, cudnnStatus_t status, const char *doing) {
    if (status != CUDNN_STATUS_SUCCESS && g->answer == SCOUT_OK) g->answer = dnn_answer(status, doing, &g->why);
}

dnn_desc dnn_make(dnn_graph *g, cudnnBackendDescriptorType_t type, const dnn_attribute *attributes, int count,
                  const char *doing) {
    dnn_desc made = NULL;
    if (g->answer != SCOUT_OK) return NULL;
    if (g->part_count == DNN_MAX_PARTS) {
        g->answer = scout_say(&g->why, SCOUT_NO, "shape", "%.60s: the graph has too many parts", doing);
        return NULL;
    }
    stick(g, g->dnn->cudnnBackendCreateDescriptor(type, &made), doing);
    if (g->answer != SCOUT_OK) return NULL;
    g->parts[g->part_count++] = made;
    for (int k = 0; k < count && g->answer == SCOUT_OK; k++)
        if (!left_out(&attributes[k]))
            stick(g,
                  g->dnn->cudnnBackendSetAttribute(made, attributes[k].name, attributes[k].type, attributes[k].count,
                                                   attributes[k].value),
                  doing);
    if (g->answer == SCOUT_OK) stick(g, g->dnn->cudnnBackendFinalize(made), doing);
    return g->answer == SCOUT_OK ? made : NULL;
}

dnn_desc dnn_node(dnn_graph *g, cudnnBackendDescriptorType_t type, const dnn_attribute *attributes, int count,
                  const char *doing) {
    const dnn_desc made = dnn_make(g, type, attributes, count, doing);
    if (made && g->node_count == DNN_MAX_NODES) {
        g->answer = scout_say(&g->why, SCOUT_NO, "shape", "%.60s: the graph has too many operations", doing);
        return NULL;
    }
    if (made) g->nodes[g->node_count++] = made;
    return made;
}

scout_answer dnn_graph_end(dnn_graph *g, scout_why *why) {
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->node_count, g->nodes},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle},
    };
    g->graph = dnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, attributes, 2, "cuDNN's graph");
    if (g->answer != SCOUT_OK && why) *why = g->why;
    return g->answer;
}

typedef struct tensor_flags {
    bool is_virtual, by_value;
} tensor_flags;

static dnn_desc make_tensor(dnn_graph *g, int64_t uid, cudnnDataType_t type, int rank, const int64_t *dims,
                            const int64_t *strides, tensor_flags flags) {
    const int64_t alignment = 16;
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, rank, dims},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, rank, strides},
        {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &flags.is_virtual},
        {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &flags.by_value},
    };
    return dnn_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, attributes, sizeof attributes / sizeof attributes[0],
                    "cuDNN's tensor");
}

dnn_desc dnn_tensor(dnn_graph *g, int64_t uid, cudnnDataType_t type, int rank, const int64_t *dims,
                    const int64_t *strides) {
    return make_tensor(g, uid, type, rank, dims, strides, (tensor_flags){false, false});
}

dnn_desc dnn_virtual(dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dims, const int64_t *strides) {
    int64_t packed[CUDNN_DIM_MAX];
    for (int k = rank - 1; k >= 0; k--) packed[k] = k == rank - 1 ? 1 : packed[k + 1] * dims[k + 1];
    return make_tensor(g, g->next_uid++, type, rank, dims, strides ? strides : packed, (tensor_flags){true, false});
}

dnn_desc dnn_scalar(dnn_graph *g, int64_t uid, cudnnDataType_t type, int rank) {
    static const int64_t ones[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    return make_tensor(g, uid, type, rank, ones, ones, (tensor_flags){false, true});
}

dnn_desc dnn_pointwise(dnn_graph *g, cudnnPointwiseMode_t mode, dnn_desc x, dnn_desc b, dnn_desc t, dnn_desc y,
                       const dnn_pointwise_how *how) {
    static const dnn_pointwise_how plain = {.math = CUDNN_DATA_FLOAT};
    const dnn_pointwise_how h = how ? *how : plain;
    const int64_t axis = h.axis - 1;
    dnn_attribute told[9];
    int n = 0;
    told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode};
    told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &h.math};
    if (h.clipped) {
        told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, 1, &h.lower};
        told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &h.upper};
        told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &h.slope};
    }
    if (h.elu_alpha != 0)
        told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, 1, &h.elu_alpha};
    if (h.swish_beta != 0)
        told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, 1, &h.swish_beta};
    if (h.axis > 0) told[n++] = (dnn_attribute){CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis};
    const dnn_desc pointwise = dnn_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, told, n, "cuDNN's pointwise");
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pointwise},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b},
        {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &t},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
    };
    return dnn_node(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, attributes, 5, "cuDNN's pointwise");
}

static const cudnnDataType_t fp32 = CUDNN_DATA_FLOAT;

dnn_desc dnn_matmul(dnn_graph *g, dnn_desc a, dnn_desc b, dnn_desc c) {
    const dnn_attribute told[] = {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &fp32}};
    const dnn_desc matmul = dnn_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, told, 1, "cuDNN's product");
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a},
        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b},
        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c},
        {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &matmul},
    };
    return dnn_node(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, attributes, 4, "cuDNN's product");
}

dnn_desc dnn_reduce(dnn_graph *g, cudnnReduceTensorOp_t how, dnn_desc x, dnn_desc y) {
    const dnn_attribute told[] = {
        {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how},
        {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &fp32},
    };
    const dnn_desc reduction = dnn_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, told, 2, "cuDNN's reduction");
    const dnn_attribute attributes[] = {
        {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x},
        {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y},
        {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &reduction},
    };
    return dnn_node(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, attributes, 3, "cuDNN's reduction");
}
