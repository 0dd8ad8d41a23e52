/* cuDNN, opened at run time (so that the search order of scout/device/libraries.h decides which file it is), and what
 * its candidates share. An operation is described to it as a graph; it returns ranked engines (an "offer"), and an
 * engine is built into a plan. How a candidate uses this:
 *
 *   a function of type dnn_build tells the graph: dnn_tensor, dnn_pointwise, dnn_matmul, dnn_reduce, dnn_node. No call
 *     needs checking by itself: the first one that fails is remembered, and those behind it do nothing;
 *   domain():  dnn_offer_domain
 *   allows():  dnn_offer_allows
 *   prepare(): dnn_plan_make; its `workspace` is what the plan needs
 *   launch():  dnn_plan_launch with the address of every tensor that is not virtual
 *   destroy(): dnn_plan_free
 *
 * Its functions are a table with the types of cudnn.h: a call that does not fit does not compile. */
#pragma once

#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/op/activation.h"
#include "scout/op/conv.h"
#include "scout/plugin.h"

#include <cudnn.h>
#include <stdatomic.h>
#include <stdbool.h>

#define DNN_FUNCTIONS(F)                                                                                               \
    F(cudnnGetVersion)                                                                                                 \
    F(cudnnGetErrorString)                                                                                             \
    F(cudnnGetLastErrorString)                                                                                         \
    F(cudnnCreate)                                                                                                     \
    F(cudnnSetStream)                                                                                                  \
    F(cudnnBackendCreateDescriptor)                                                                                    \
    F(cudnnBackendDestroyDescriptor)                                                                                   \
    F(cudnnBackendSetAttribute)                                                                                        \
    F(cudnnBackendGetAttribute)                                                                                        \
    F(cudnnBackendFinalize)                                                                                            \
    F(cudnnBackendExecute)                                                                                             \
    F(cudnnCreateTensorDescriptor)                                                                                     \
    F(cudnnSetTensorNdDescriptor)                                                                                      \
    F(cudnnDestroyTensorDescriptor)                                                                                    \
    F(cudnnCreatePoolingDescriptor)                                                                                    \
    F(cudnnSetPoolingNdDescriptor)                                                                                     \
    F(cudnnDestroyPoolingDescriptor)                                                                                   \
    F(cudnnPoolingForward)                                                                                             \
    F(cudnnSoftmaxForward)                                                                                             \
    F(cudnnCreateReduceTensorDescriptor)                                                                               \
    F(cudnnSetReduceTensorDescriptor)                                                                                  \
    F(cudnnDestroyReduceTensorDescriptor)                                                                              \
    F(cudnnGetReductionWorkspaceSize)                                                                                  \
    F(cudnnReduceTensor)                                                                                               \
    F(cudnnBatchNormalizationForwardInference)                                                                         \
    F(cudnnCreateRNNDescriptor)                                                                                        \
    F(cudnnSetRNNDescriptor_v8)                                                                                        \
    F(cudnnDestroyRNNDescriptor)                                                                                       \
    F(cudnnBuildRNNDynamic)                                                                                            \
    F(cudnnCreateRNNDataDescriptor)                                                                                    \
    F(cudnnSetRNNDataDescriptor)                                                                                       \
    F(cudnnDestroyRNNDataDescriptor)                                                                                   \
    F(cudnnGetRNNTempSpaceSizes)                                                                                       \
    F(cudnnGetRNNWeightSpaceSize)                                                                                      \
    F(cudnnGetRNNWeightParams)                                                                                         \
    F(cudnnRNNForward)

typedef struct dnn_table {
#define DNN_MEMBER(name) __typeof__(&(name)) name;
    DNN_FUNCTIONS(DNN_MEMBER)
#undef DNN_MEMBER
    char path[256], version[48];
} dnn_table;

/* The library, opened at the first call; NULL: why says where it was looked for. No context is made. */
const dnn_table *dnn_open(scout_why *why);
/* The calling thread's handle of the device that is current; made at the thread's first call, lives as long as the
 * process. */
const dnn_table *dnn_ready(cudnnHandle_t *handle, scout_why *why);
/* The same, and one more of its parts ("libcudnn_adv.so.9") is found where the others are; few operations need it. */
const dnn_table *dnn_ready_for(cudnnHandle_t *handle, const char *part, scout_why *why);
/* The same handle with its launches going to this stream: a plan may be launched by another thread than made it. */
cudnnStatus_t dnn_on(void *stream, cudnnHandle_t *handle);
/* The meaning of a status: SCOUT_OK, SCOUT_NO where cuDNN does not support this, or worse; `doing` begins the sentence.
 */
scout_answer dnn_answer(cudnnStatus_t status, const char *doing, scout_why *why);
/* cuDNN's name of a type of scout/plugin.h; false: it has none. */
bool dnn_type(uint32_t type, cudnnDataType_t *out);

/* --- telling a graph: dnn_graph.c --- */

typedef cudnnBackendDescriptor_t dnn_desc;

enum { DNN_MAX_PARTS = 128, DNN_MAX_NODES = 48 };

typedef struct dnn_graph {
    const dnn_table *dnn;
    cudnnHandle_t handle;
    dnn_desc parts[DNN_MAX_PARTS]; /* all descriptors: owned, destroyed in reverse */
    dnn_desc nodes[DNN_MAX_NODES]; /* the operations among them, in the order of their making */
    int part_count, node_count;
    int64_t next_uid;    /* of virtual tensors */
    uint32_t refused;    /* engines with one of these are left out: 1 << CUDNN_NUMERICAL_NOTE_… */
    uint32_t coarse;     /* of these, those that frameworks ignore: the heuristic's first choice is taken */
    dnn_desc graph;      /* one of the parts, once dnn_graph_end was there */
    scout_answer answer; /* of the first call that failed */
    scout_why why;       /* its reason */
} dnn_graph;

scout_answer dnn_graph_begin(dnn_graph *g, scout_why *why); /* dnn_graph_free is valid afterwards in every case */
scout_answer dnn_graph_end(dnn_graph *g, scout_why *why);
void dnn_graph_free(dnn_graph *g);

typedef struct dnn_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    const void *value; /* NULL, or the address of one descriptor that is NULL: the attribute is left out */
} dnn_attribute;

/* Creates, sets and finalizes a descriptor, which the graph owns. NULL where anything failed. */
dnn_desc dnn_make(dnn_graph *g, cudnnBackendDescriptorType_t type, const dnn_attribute *attributes, int count,
                  const char *doing);
/* The same for an operation, which becomes a node of the graph. */
dnn_desc dnn_node(dnn_graph *g, cudnnBackendDescriptorType_t type, const dnn_attribute *attributes, int count,
                  const char *doing);

/* A tensor in memory, known by its number (below 1000) at launch. */
dnn_desc dnn_tensor(dnn_graph *g, int64_t uid, cudnnDataType_t type, int rank, const int64_t *dims,
                    const int64_t *strides);
/* One that exists only between nodes; strides NULL: rows behind each other. */
dnn_desc dnn_virtual(dnn_graph *g, cudnnDataType_t type, int rank, const int64_t *dims, const int64_t *strides);
/* A number passed at launch by the address of a value on the host; all its `rank` dimensions are 1. */
dnn_desc dnn_scalar(dnn_graph *g, int64_t uid, cudnnDataType_t type, int rank);

/* Parameters of a pointwise operation; all zero is what most need. */
typedef struct dnn_pointwise_how {
    cudnnDataType_t math; /* 0 is CUDNN_DATA_FLOAT */
    bool clipped;         /* RELU_FWD: from `lower` to `upper`, below that `slope` times what is missing */
    double lower, upper, slope;
    double elu_alpha, swish_beta; /* 0: 1 */
    int64_t axis;                 /* GEN_INDEX: 1 + the dimension */
} dnn_pointwise_how;

/* y = mode(x, b, t); b and t NULL where the mode has none; how NULL: nothing but fp32 arithmetic. */
dnn_desc dnn_pointwise(dnn_graph *g, cudnnPointwiseMode_t mode, dnn_desc x, dnn_desc b, dnn_desc t, dnn_desc y,
                       const dnn_pointwise_how *how);
dnn_desc dnn_matmul(dnn_graph *g, dnn_desc a, dnn_desc b, dnn_desc c);                /* sums in fp32 */
dnn_desc dnn_reduce(dnn_graph *g, cudnnReduceTensorOp_t how, dnn_desc x, dnn_desc y); /* in fp32 */

/* --- what the library offers, kept for the operations at hand, and plans: dnn_offer.c --- */

/* Builds the graph of one way to compute the operation (`way`: the candidate's own number). dnn_graph_begin and _end
 * are done around it. SCOUT_NO: this way does not exist; what cuDNN refuses needs no answer here. */
typedef scout_answer dnn_build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why);

enum { DNN_MAX_ENGINES = 64, DNN_RANKED_ENGINES = 16 };

typedef struct dnn_engine {
    dnn_desc config, plan; /* plan NULL: not built yet, or it cannot be (answer) */
    bool tried;
    bool coarse; /* less exact than the operation asks for, but the heuristic's first: its results decide */
    scout_answer answer;
    scout_why why;
    int64_t workspace;
    char name[400]; /* JSON members that say which engine this is, with its knobs */
} dnn_engine;

typedef struct dnn_offer {
    char *key; /* owned */
    dnn_build *build;
    int64_t way;
    atomic_int users; /* plans that use it, which any thread may free; and 1 for its place in the list */
    uint64_t workspace_limit;
    dnn_graph graph;
    int count;
    dnn_engine engines[DNN_MAX_ENGINES];
} dnn_offer;

typedef struct dnn_offers dnn_offers;
void dnn_offers_free(dnn_offers *offers);

/* The ranked engines for one way of an operation: those of heuristic mode A, then its fallbacks. Borrowed until the
 * next calls for others; NULL: why. Asking again is cheap. */
dnn_offer *dnn_offer_get(scout_device *device, const scout_op *op, dnn_build *build, int64_t way, scout_why *why);
/* The first engine that can be built: the library's default. Its rank, or -1: why is that of the best one. */
int dnn_offer_first(dnn_offer *offer, scout_why *why);
/* Adds a parameter "engine" to a domain: the rank of the first that can be built, then those behind it (as many as
 * DNN_RANKED_ENGINES, or all). SCOUT_NO where there is none. */
scout_answer dnn_offer_domain(dnn_offer *offer, int exhaustive, scout_domain *out, scout_why *why);
/* Whether there is an engine of this rank; it may still turn out not to build. */
bool dnn_offer_allows(const dnn_offer *offer, int64_t rank);

typedef struct dnn_plan {
    const dnn_table *dnn;
    dnn_offer *offer;
    int rank;
    bool coarse; /* for scout_plan_needs */
    uint64_t workspace;
} dnn_plan;

scout_answer dnn_plan_make(dnn_offer *offer, int64_t rank, dnn_plan *out, scout_why *why);
/* Enqueues. pointers[k] is the address of the tensor that uids[k] is; all that are not virtual, scalars too. */
scout_answer dnn_plan_launch(const dnn_plan *plan, int count, const int64_t *uids, void *const *pointers,
                             void *workspace, void *stream, scout_why *why);
/* JSON members (without braces): library, version, engine, knobs, rank, workspace. As snprintf. */
int dnn_plan_describe(const dnn_plan *plan, char *text, size_t room);
void dnn_plan_free(dnn_plan *plan); /* all zero: nothing happens */

/* --- the candidates, one file each --- */

/* --- the epilogue as nodes of a graph, for products and convolutions alike --- */

/* Constants of activations (dnn_scalar) are known by numbers from here on. */
enum { DNN_ACTIVATE_FIRST = 100, DNN_ACTIVATE_CONSTANTS = 2 };
/* Their values, in this order; returns how many there are. */
int dnn_activate_constants(const op_activation *a, float values[DNN_ACTIVATE_CONSTANTS]);

typedef struct dnn_behind {
    dnn_desc residual, bias; /* NULL: none; both may broadcast */
    op_activation activation;
    int rank; /* of the sums, with dimensions and strides: what lies between nodes is in fp32 */
    const int64_t *dims, *strides;
} dnn_behind;

/* Residual, bias, activation, in the order of the library's precompiled kernels: from the sums, a virtual tensor in
 * fp32, to y. */
void dnn_activate(dnn_graph *g, const dnn_behind *b, dnn_desc sums, dnn_desc y);
/* Notes of engines that would not be as exact as the operation asks for (dnn_graph's `refused`), and those of them that
 * PyTorch, too, leaves out. */
uint32_t dnn_activate_refused(const scout_op *op);
uint32_t dnn_activate_never(const scout_op *op);

/* --- convolutions --- */

/* Layouts, and what one launch computes: the parameter "form" of the candidate. */
typedef enum dnn_conv_form {
    DNN_CONV_AS_IS,  /* everything in the operation's layouts, in one graph */
    DNN_CONV_PACKED, /* nhwc: the weight too with its channels last, repacked once */
    DNN_CONV_SPLIT, /* the convolution alone; bias, residual and activation by a second kernel; a weight as in PACKED */
    DNN_CONV_CONVERTED, /* nchw: activations brought to nhwc and back within each launch; the weight as in PACKED */
    DNN_CONV_FORMS
} dnn_conv_form;

/* Whether there is such a form of this operation, as far as it can be said without the library. */
bool dnn_conv_exists(const scout_op *op, dnn_conv_form form);
/* Whether the weight has to be repacked for it. */
bool dnn_conv_packs(const scout_op *op, dnn_conv_form form);

/* A dnn_build; `way` is a form. Tensors are known by their places in op->tensors plus 1. */
scout_answer dnn_conv_build(dnn_graph *g, const scout_op *op, int64_t way, scout_why *why);
