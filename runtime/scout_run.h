/* libscout_run: what a dispatch table names, launched on the caller's memory. C11 and C++; nothing but the C library's
 * headers, and plain C types alone, so that other languages call it as it stands.
 *
 *     scout_run_options options = {.size = sizeof options, .table = "dispatch.json", .device = "cpu"};
 *     scout_run_error error;
 *     scout_run *run;
 *     if (scout_run_open(&run, &options, &error) != SCOUT_RUN_OK) …     error.text says why, in one line
 *     const scout_run_tensor a = scout_run_dense(data, SCOUT_RUN_FP32, 2, (int64_t[]){m, k});
 *     …
 *     scout_run_gemm(run, &a, &b, &c, NULL, NULL, error_or_NULL);
 *     …
 *     scout_run_close(run);
 *
 * The first call of an operation finds its entry in the table, makes a plan and keeps it. Each later call allocates
 * nothing, takes no lock and waits for no other thread: it compares the tensors, and launches. The kernels are those
 * that were measured: scout_batch's own, behind the interface of scout/plugin.h.
 *
 * What runs. The entry's implementation and variant, if the table has the operation and this process can make them.
 * Else the library's default, the first variant of the device's baseline: it is counted, and said once for each
 * operation (options.say). Where that is switched on, it is tuned (options.tune_ms). A table of another device, driver
 * branch or library is no error either: it is said when it is opened, and all operations run their defaults.
 *
 * Threads. All functions but scout_run_close may be called from any thread at any time. Launches at once, and launches
 * on several streams, each have a workspace and plans of their own (a lane). A lane is made when one more is needed.
 *
 * CUDA. A launch only enqueues, on the caller's stream (a cudaStream_t), and may be captured in a graph once a launch
 * like it was done on that thread. The caller makes the stream's device current, as for every launch, and orders
 * streams. CPU: a launch returns when all is computed, and `stream` is NULL.
 *
 * Errors. Functions return a scout_run_status; `error` (may be NULL) gets it too, and one line of text. Arguments that
 * do not fit are refused with what was expected, before anything is written. No call prints or ends the process. */
#ifndef SCOUT_RUN_H
#define SCOUT_RUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define SCOUT_RUN_API __attribute__((visibility("default")))
#else
#define SCOUT_RUN_API
#endif

typedef enum scout_run_status {
    SCOUT_RUN_OK = 0,
    SCOUT_RUN_INVALID,     /* an argument does not fit: the text says what was expected */
    SCOUT_RUN_UNSUPPORTED, /* nothing on this device computes the operation */
    SCOUT_RUN_NO_DEVICE,   /* open only: it is not there, or cannot be used */
    SCOUT_RUN_NO_MEMORY,   /* of the host or of the device */
    SCOUT_RUN_FAILED,      /* this launch failed; the device is fine */
    SCOUT_RUN_LOST         /* the device cannot be used from this process any more */
} scout_run_status;

typedef struct scout_run_error {
    int32_t status; /* scout_run_status */
    char text[508]; /* one line without its end; "" with SCOUT_RUN_OK */
} scout_run_error;

/* Numbered as in ONNX. */
typedef enum scout_run_type {
    SCOUT_RUN_FP32 = 1,
    SCOUT_RUN_UINT8 = 2,
    SCOUT_RUN_INT8 = 3,
    SCOUT_RUN_UINT16 = 4,
    SCOUT_RUN_INT16 = 5,
    SCOUT_RUN_INT32 = 6,
    SCOUT_RUN_INT64 = 7,
    SCOUT_RUN_BOOL = 9, /* a byte, 0 or 1 */
    SCOUT_RUN_FP16 = 10,
    SCOUT_RUN_FP64 = 11,
    SCOUT_RUN_UINT32 = 12,
    SCOUT_RUN_UINT64 = 13,
    SCOUT_RUN_BF16 = 16,
    SCOUT_RUN_FP8E4M3 = 17,
    SCOUT_RUN_FP8E5M2 = 19,
    SCOUT_RUN_UINT4 = 21, /* two values a byte, the low one first */
    SCOUT_RUN_INT4 = 22
} scout_run_type;

enum { SCOUT_RUN_RANK = 8 };

/* The caller's memory on the device that is run on. Nothing of it is kept after a call. */
typedef struct scout_run_tensor {
    void *data;
    int32_t type; /* scout_run_type */
    int32_t rank; /* 0 to SCOUT_RUN_RANK */
    int64_t dims[SCOUT_RUN_RANK];
    int64_t strides[SCOUT_RUN_RANK]; /* in elements; of a dimension of 1 any */
} scout_run_tensor;

/* One that lies densely, rows last. */
SCOUT_RUN_API scout_run_tensor scout_run_dense(void *data, int32_t type, int32_t rank, const int64_t *dims);

typedef struct scout_run scout_run;               /* a device with a table */
typedef struct scout_run_op scout_run_op;         /* an operation that was found, with its plans */
typedef struct scout_run_weight scout_run_weight; /* a packed weight */

/* ---- opening ---- */

/* What is 0 or NULL is as usual. */
typedef struct scout_run_options {
    uint32_t size;        /* sizeof(scout_run_options), as the caller's compiler knows it */
    uint32_t near_shapes; /* 1: an operation that is not listed, but lies in a proven range, runs what its ends run */
    const char *table;    /* path of a dispatch.json; NULL: none, all operations run their defaults */
    const char *device;   /* "cpu" (NULL is that too), "cuda", "cuda:1" */
    const char *library_path; /* folders with colons between, in which libraries are looked for first; the process's
                                 first open tells them */
    uint64_t workspace_bytes; /* the most of a launch; 32 MiB, of convolutions and recurrent layers 512 MiB */
    /* One line about what runs otherwise than the table says, from the thread whose call found it. NULL: nothing is
     * told. It may not call this library. */
    void (*say)(void *context, const char *line);
    void *context;
    /* Above 0: an operation that the table does not have is tuned when it is first asked for. Its candidates race for
     * about so many milliseconds, checked as scout_batch checks them, and what is proven to be faster than the default
     * runs from then on. Other threads that ask for something new meanwhile wait; launches that are ready do not. What
     * was found is kept in the cache of scout_batch, for other processes too. */
    uint32_t tune_ms;
    uint32_t reserved;     /* 0 */
    const char *cache_dir; /* of that cache; NULL: the usual one */
    const char *signers;   /* only a table that one of them has signed is used: scout_dispatch_open_signed; NULL: any */
} scout_run_options;

/* Opens a device, and the table for it. *run is NULL unless it returns SCOUT_RUN_OK. A table that cannot be used (no
 * file, not a table, of another device) is said, and *run has none. */
SCOUT_RUN_API int32_t scout_run_open(scout_run **run, const scout_run_options *options, scout_run_error *error);
/* When no call is under way and the device has done all launches. Packed weights go before. NULL is fine. */
SCOUT_RUN_API void scout_run_close(scout_run *run);

/* The name of the device ("NVIDIA H200"). */
SCOUT_RUN_API const char *scout_run_device(const scout_run *run);
/* 1: a table is used; 0: none is, and scout_run_table_note says why. */
SCOUT_RUN_API int32_t scout_run_has_table(const scout_run *run);
SCOUT_RUN_API const char *scout_run_table_note(const scout_run *run); /* "": nothing is to be said */
/* Data begins at multiples of so many bytes; on a CPU at multiples of the element's size where that is 1. */
SCOUT_RUN_API uint64_t scout_run_alignment(const scout_run *run);

/* Launches since it was opened. All but `listed` ran the library's default in its place. */
typedef struct scout_run_counts {
    uint64_t listed;   /* ran what the table says (which may be the default) */
    uint64_t unlisted; /* the table does not have the operation, or there is no table */
    uint64_t refused;  /* the table's choice could not be made here */
    uint64_t unpacked; /* the table's choice wants a packed weight, and the caller gave a plain one */
} scout_run_counts;
SCOUT_RUN_API void scout_run_count(const scout_run *run, scout_run_counts *counts);

/* ---- operations by their tensors ---- */

/* All return a scout_run_status. `stream`: the caller's; NULL on a CPU.
 *
 * gemm: c = activation(a b + bias + residual). a is [M,K] and b [K,N], in any order in memory that a transposition
 * makes; with a dimension of products before these (a and b may each have it or not), c has it too. */
typedef struct scout_run_gemm_more { /* what is NULL or 0 is not there */
    uint32_t size;
    int32_t weight;                   /* the constant side: 'a' or 'b'; 0: neither */
    int32_t tf32;                     /* 1: fp32 may be rounded to tf32 */
    int32_t reserved;                 /* 0 */
    const char *activation;           /* "relu", "gelu", "gelu_tanh", "silu", …: docs/kinds_tensors.md */
    const scout_run_tensor *bias;     /* [N], [M,1], [1] or [M,N] */
    const scout_run_tensor *residual; /* as c */
    const scout_run_tensor *scales;   /* of a weight b of 4 or 8 bits beside floats: [N, blocks along K],
                                       * of a batch of them [batch, N, blocks along K] */
    const scout_run_weight *packed;   /* of the constant side, or of its zeros; that one's data is not read then */
    const scout_run_tensor *zeros;    /* as scales, of the type of b: what is taken off its numbers */
} scout_run_gemm_more;
SCOUT_RUN_API int32_t scout_run_gemm(scout_run *run, const scout_run_tensor *a, const scout_run_tensor *b,
                                     const scout_run_tensor *c, const scout_run_gemm_more *more, void *stream,
                                     scout_run_error *error);

/* attention: out = softmax(scale q k^T + mask) v. All four are [sequences, heads, rows, size of a head] in any order in
 * memory, rows of a head side by side; k and v may have fewer heads. */
typedef struct scout_run_attention_more {
    uint32_t size;
    int32_t causal;                  /* 1: query i sees the keys up to i + past */
    int64_t past;                    /* of a causal one; usually as many as there are more keys than queries */
    int64_t window;                  /* of a causal one: at most so many keys, the last ones; 0: all */
    double scale;                    /* 0: 1 / sqrt(size of a head) */
    double softcap;                  /* 0: none */
    int32_t has_past;                /* 1: `past` is told, whatever it is */
    int32_t reserved;                /* 0 */
    const scout_run_tensor *mask;    /* added; of q's type, [sequences, heads, queries, keys], each of which may be 1 */
    const scout_run_tensor *lengths; /* int32 [sequences]: the place of the last key that counts */
} scout_run_attention_more;
SCOUT_RUN_API int32_t scout_run_attention(scout_run *run, const scout_run_tensor *q, const scout_run_tensor *k,
                                          const scout_run_tensor *v, const scout_run_tensor *out,
                                          const scout_run_attention_more *more, void *stream, scout_run_error *error);

/* conv: input and output are [N, C, space], in memory so or with the channels last; the weight is [outputs, inputs of a
 * group, kernel], of a transposed convolution [inputs, outputs of a group, kernel]. Space has 1 to 3 dimensions. */
typedef struct scout_run_conv_more {
    uint32_t size;
    int32_t transposed;
    int64_t group;       /* 0: one */
    int64_t stride[3];   /* of each dimension of space; 0: 1 */
    int64_t dilation[3]; /* likewise */
    int64_t pads[6];     /* before each dimension of space, then behind each */
    const char *activation;
    const scout_run_tensor *bias;     /* [outputs] */
    const scout_run_tensor *residual; /* as output */
    const scout_run_weight *packed;   /* the weight, whose data is not read then */
    int32_t constant;                 /* 1: the weight is a constant, which may be packed; as `packed` says by itself */
    int32_t tf32;                     /* 1: fp32 may be rounded to tf32 */
} scout_run_conv_more;
SCOUT_RUN_API int32_t scout_run_conv(scout_run *run, const scout_run_tensor *input, const scout_run_tensor *weight,
                                     const scout_run_tensor *output, const scout_run_conv_more *more, void *stream,
                                     scout_run_error *error);

/* norm: y = norm of x along its last dimension; dense. `what`: "layer", "rms", "l2". */
typedef struct scout_run_norm_more {
    uint32_t size;
    int32_t reserved;                     /* 0 */
    double epsilon;                       /* 0: 1e-5 (of l2: none) */
    const scout_run_tensor *scale, *bias; /* [columns] */
    const scout_run_tensor *residual;     /* as x, added before */
    const scout_run_tensor *sum;          /* as x: x + residual goes there too */
} scout_run_norm_more;
SCOUT_RUN_API int32_t scout_run_norm(scout_run *run, const char *what, const scout_run_tensor *x,
                                     const scout_run_tensor *y, const scout_run_norm_more *more, void *stream,
                                     scout_run_error *error);

/* softmax: y = softmax of x along `axis` (-1: the last one), or with logarithm its logarithm; dense. */
SCOUT_RUN_API int32_t scout_run_softmax(scout_run *run, const scout_run_tensor *x, const scout_run_tensor *y,
                                        int32_t axis, int32_t logarithm, void *stream, scout_run_error *error);

/* elementwise: y = what(inputs), inputs broadcast as in ONNX, y dense. `what`: "add", "mul", "relu", "gelu", "swiglu",
 * …: docs/kinds.md has all. One with parameters ("alpha", "min", …) is launched by its key. */
SCOUT_RUN_API int32_t scout_run_elementwise(scout_run *run, const char *what, const scout_run_tensor *const *inputs,
                                            int32_t count, const scout_run_tensor *y, void *stream,
                                            scout_run_error *error);

/* ---- weights ---- */

/* Packs the constant side of an operation for the plan that runs it. The operation is told as for its launch, once for
 * each set of sizes that it will be launched with: another number of rows may run another algorithm, which packs
 * otherwise. On CUDA what writes the weight has been waited for. Its data is read before this returns, and is not
 * needed any more then. A weight with zeros runs what the table has for a product with these zeros.
 * SCOUT_RUN_UNSUPPORTED: what runs here takes the weight as it is. */
SCOUT_RUN_API int32_t scout_pack_weight_gemm(scout_run *run, const scout_run_tensor *a, const scout_run_tensor *b,
                                             const scout_run_tensor *c, const scout_run_gemm_more *more,
                                             scout_run_weight **packed, scout_run_error *error);
SCOUT_RUN_API int32_t scout_pack_weight_conv(scout_run *run, const scout_run_tensor *input,
                                             const scout_run_tensor *weight, const scout_run_tensor *output,
                                             const scout_run_conv_more *more, scout_run_weight **packed,
                                             scout_run_error *error);
/* Of an operation by its key, with its tensors as for scout_run_launch; what is no weight or scale may be NULL. */
SCOUT_RUN_API int32_t scout_pack_weight(const scout_run_op *op, void *const *tensors, int32_t count,
                                        scout_run_weight **packed, scout_run_error *error);
SCOUT_RUN_API uint64_t scout_run_weight_bytes(const scout_run_weight *weight);
/* When the device has done all launches with it. NULL is fine. */
SCOUT_RUN_API void scout_run_weight_free(scout_run_weight *weight);

/* ---- operations by their key: every kind that tables have ---- */

/* By the canonical text that reports and tables have (`key`; scout_dispatch_key_write makes one). *op is valid until
 * the run is closed. */
SCOUT_RUN_API int32_t scout_run_find(scout_run *run, const char *key, const scout_run_op **op, scout_run_error *error);

typedef struct scout_run_op_info { /* texts are borrowed from the operation */
    uint32_t size;                 /* the caller's, before the call */
    int32_t listed;                /* 1: the table has it, and its choice runs; 0: the default */
    const char *key;
    const char *implementation, *variant; /* what runs */
    const char *note;                     /* why it is not the table's choice; "" where it is */
    int32_t tensor_count;
    int32_t packs; /* the tensor that goes packed; -1: none */
    uint64_t pack_bytes, workspace_bytes;
    double expected_us, default_us; /* of the table; 0: not known */
} scout_run_op_info;
SCOUT_RUN_API void scout_run_op_describe(const scout_run_op *op, scout_run_op_info *info);

typedef struct scout_run_tensor_info { /* what a launch expects as its tensor number so many */
    uint32_t size;
    int32_t output;      /* 1: it is written */
    scout_run_tensor as; /* data: NULL; strides as they have to be */
    uint64_t bytes;      /* of storage */
    char name[16];       /* "a", "b", "c", "bias", …: docs/kinds_tensors.md */
} scout_run_tensor_info;
SCOUT_RUN_API int32_t scout_run_op_tensor(const scout_run_op *op, int32_t number, scout_run_tensor_info *info,
                                          scout_run_error *error);

/* Launches it on `count` pointers, one for each tensor in its order. `packed`: stands for the tensor that the operation
 * packs, whose pointer is not looked at; NULL: all are plain. */
SCOUT_RUN_API int32_t scout_run_launch(const scout_run_op *op, void *const *tensors, int32_t count,
                                       const scout_run_weight *packed, void *stream, scout_run_error *error);

/* ---- a whole model ---- */

/* Every operation of a model in its order, on the caller's inputs, outputs and weights. What is made on the way lies in
 * memory of the plan's own. One launch at a time: several at once need a plan each. */
typedef struct scout_run_plan scout_run_plan;

/* From a model's folder: its ops.json, and, where it is there, its plan.json. What that names runs as it says, all else
 * as any operation does. Refused is a model of which ops.json does not tell all: the error names the node and what is
 * missing. Inputs have the sizes that extract_ops was given. */
SCOUT_RUN_API int32_t scout_run_plan_open(scout_run *run, const char *folder, scout_run_plan **plan,
                                          scout_run_error *error);
/* When the device has done all its launches, and before its run. NULL is fine. */
SCOUT_RUN_API void scout_run_plan_close(scout_run_plan *plan);

typedef enum scout_run_plan_use {
    SCOUT_RUN_PLAN_INPUT,
    SCOUT_RUN_PLAN_OUTPUT,
    SCOUT_RUN_PLAN_WEIGHT,  /* an initializer of the model, in the type of ops.json */
    SCOUT_RUN_PLAN_CONSTANT /* what a model computes of its weights alone, and ops.json does not tell */
} scout_run_plan_use;

typedef struct scout_run_plan_info {
    uint32_t size;       /* the caller's, before the call */
    int32_t use;         /* scout_run_plan_use */
    const char *name;    /* in the model; borrowed from the plan */
    scout_run_tensor as; /* type, dims and dense strides; data: what is bound, or NULL */
} scout_run_plan_info;

/* How many tensors a caller has to bind, and what the tensor number so many is. */
SCOUT_RUN_API int32_t scout_run_plan_count(const scout_run_plan *plan);
SCOUT_RUN_API int32_t scout_run_plan_tensor(const scout_run_plan *plan, int32_t number, scout_run_plan_info *info,
                                            scout_run_error *error);
/* Dense memory that stays where it is until another one is bound, or the plan is closed. Refused are names that the
 * plan does not have, other types, sizes and strides, and data that is not aligned (scout_run_alignment). A weight that
 * is bound once more is packed once more. */
SCOUT_RUN_API int32_t scout_run_plan_bind(scout_run_plan *plan, const char *name, const scout_run_tensor *tensor,
                                          scout_run_error *error);
/* A run. The first one, and one behind a new weight, packs weights: a later one allocates nothing, and may be captured.
 * Refused while a tensor is not bound, or outputs share memory with another one. Indices that come with a run, or that
 * the model computes, are not looked at: kernels read and write where they point. They count from 0. */
SCOUT_RUN_API int32_t scout_run_plan_launch(scout_run_plan *plan, void *stream, scout_run_error *error);

#ifdef __cplusplus
}
#endif

#endif
