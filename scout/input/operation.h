/* The operations to measure: read from ops.json, from its hand-written short form, or from the command line. */
#pragma once

#include "common/json.h"
#include "common/oprec.h"

typedef struct operation {
    const char *id;   /* of the report's file: unique in the list, safe as a file name */
    const char *name; /* what a person calls it: the short form's key, else the id */
    oprec rec;
    int64_t count;                      /* per run of the model; 0: a part */
    double sparsity;                    /* of the weight, 0 where dense */
    const char *pattern;                /* DENSE, BLOCK_SPARSE, STRUCTURED_24, UNSTRUCTURED */
    const struct weights_place *weight; /* where the sparse weight's numbers are; NULL: nowhere, or it is dense */
    uint64_t zeros_hash;                /* of which of them are zero */
    int sparse_block;                   /* side of the blocks that are zero in a made-up weight; 0: the customary one */
    double threshold;          /* what would be if numbers below it in size were zeros is asked as well; 0: no */
    uint64_t written, distant; /* operation_left: a bit for each of the first tensors that candidates see */
    double handed;             /* of its occurrences, the share at which some tensor is left so */
    double crowd_written;      /* scout_op.crowd_written, where one is distant; else 0 */
    const char *skip_code;     /* it cannot be measured, whatever the device: reason code and sentence; NULL: it can */
    const char *skip_text;
    json_t *source; /* its entry as read; borrowed from operation_list.root */
} operation;

/* What a run of the model has in memory, by the dataflow that its file tells: the weights, and the most of everything
 * else at once, one after another and without fusions. */
typedef struct operation_memory {
    bool known;
    int64_t weight_bytes, activation_bytes;
    const char *at; /* the node, or by hand the name, at which that is */
    bool least;     /* the size of something is not known, and counts as nothing */
} operation_memory;

typedef struct operation_tensor { /* of the dataflow */
    int64_t bytes;                /* -1: not known */
    int source;                   /* the tensor that it lies in; -1: it has memory of its own */
    int64_t offset;               /* of its first element there, in bytes */
    int64_t lie;                  /* how it lies there: operation_lie of its dims and strides */
    int producer;                 /* the occurrence that makes it; -1: none does, as of what lies in another one */
    int from, to;                 /* occurrences between which it is needed, views of it included */
    bool constant;                /* a weight, or computed when the model is loaded */
    bool kept;                    /* an output of the model, or one lies in it */
    dtype type;
} operation_tensor;

typedef struct operation_occurrence {
    int operation;               /* in the list */
    int place;                   /* which one of the operation's occurrences it is */
    int node;                    /* its first one among the operation's nodes; not for a worker */
    int64_t times;               /* that it runs: more than once in the body of a loop */
    int read, made, after;       /* where its tensors begin among the edges, and where the next one's do */
    int operands, operand_count; /* where the operation's own tensors begin; as many as it has, or none are told */
} operation_occurrence;

typedef enum operation_use {
    OPERATION_INPUT,
    OPERATION_WEIGHT,
    OPERATION_CONSTANT,
    OPERATION_STATE,
    OPERATION_ACTIVATION,
    OPERATION_OUTPUT,
    OPERATION_ASSUMED /* data decide it, in a way that the file does not tell */
} operation_use;

/* What is told of a tensor to what runs the model. */
typedef struct operation_told {
    operation_use use;
    const char *name; /* "" of what is made on the way */
    int rank;         /* -1: its dims are not known */
    const int64_t *dims;
    int source;                 /* that it is a view or a copy of; -1: none */
    int64_t offset;             /* of its first element there */
    const unsigned char *value; /* all its bytes; NULL: the file has them not */
} operation_told;

typedef struct operation_number_told { /* that an occurrence computes with beside its record */
    int occurrence;
    const char *name;
    double x;
    bool known;
} operation_number_told;

enum { OPERATION_TERMS = 3, OPERATION_TERM_RANK = 8 };

typedef struct operation_formed { /* an operand that an elementwise operator makes of tensors */
    int occurrence, place, count, rank;
    const char *what;
    int64_t dims[OPERATION_TERM_RANK]; /* that all terms are broadcast to */
    struct {
        int tensor, rank; /* and its dimensions there */
        int64_t dims[OPERATION_TERM_RANK];
    } terms[OPERATION_TERMS];
} operation_formed;

/* What a run does, one occurrence after another (docs/formats.md). */
typedef struct operation_flow {
    operation_tensor *tensors;
    operation_occurrence *occurrences;
    int *edges;    /* tensors that occurrences read and make */
    int *operands; /* tensors, in the order of scout_op.tensors; -1: none, or none is known */
    int tensor_count, occurrence_count, edge_count, operand_count;
    int cuts;             /* occurrences whose dataflow is not all known */
    operation_told *told; /* by tensor; this and the next ones of operation_read_whole alone */
    const char *unmade;   /* an output of the model that no occurrence makes; NULL: there is none */
    operation_number_told *numbers;
    operation_formed *formed;
    int number_count, formed_count;
} operation_flow;

typedef struct operation_list {
    operation *items;
    int count;
    const char *model; /* name of the model; "" where there is none */
    operation_memory memory;
    operation_flow *flow; /* NULL: the file tells none */
    json_t *root;         /* owned: operation_list_free */
    char *graph;          /* owned likewise, while it is read */
} operation_list;

typedef struct operation_block_mask {
    const char *text, *pattern; /* text: canonical; both borrowed */
    int64_t block;
    double density; /* the share of the blocks that are seen, of those that a causal mask and a window leave */
} operation_block_mask;
bool operation_blocks(const operation *o, operation_block_mask *out); /* false: it has no block mask */

/* `precision` (NULL: none) fills in dtypes that the file does not say. Everything else lies in the arena. Fails through
 * its guard: STATUS_INPUT with file, entry and what to do. */
void operation_read(const char *path, const char *precision, arena *a, operation_list *list);
/* The same with what is told to what runs the model. */
void operation_read_whole(const char *path, arena *a, operation_list *list);
/* One operation from --op, --shape and --precision: the same checks, told as STATUS_USAGE. */
void operation_from_words(const char *kind, const char *shape, const char *precision, double sparsity,
                          const char *pattern, arena *a, operation_list *list);

/* Several of one kind: a range in the shape and each --axis is an axis; every combination is an operation, the last
 * axis varies fastest. */
enum { OPERATION_AXES = 4 };
typedef struct operation_axis {
    const char *name; /* M, kv_len, precision, … */
    const char **values;
    int count;
    int dimension; /* of the shape; -1: a member of the short form */
} operation_axis;
typedef struct operation_axes {
    operation_axis items[OPERATION_AXES];
    int count; /* 0: one operation */
} operation_axes;
/* What the command line says of them. */
typedef struct operation_words {
    const char *kind, *shape, *precision, *pattern; /* NULL: not said */
    double sparsity;                                /* 0: not said */
    const char *const *sets, *const *axes;          /* NAME=VALUE of all of them; NAME=VALUE,VALUE,… */
    int set_count, axis_count;
} operation_words;
void operation_from_axes(const operation_words *words, arena *a, operation_list *list, operation_axes *out);
const char *operation_axis_value(const operation_axes *axes, int axis, int item); /* of the list's item */

uint32_t operation_left(const operation *o, uint32_t tensor); /* scout_tensor.left */

/* Heads of an attention, over its whole batch; 0: it is none. */
int64_t operation_heads(const operation *o);

void operation_list_free(operation_list *list);

/* What goes over the wire to a worker, and back: everything of it that decides how it is measured. The object is the
 * caller's. operation_from_json fails through the arena's guard. */
json_t *operation_to_json(const operation *o, json_builder *b);
void operation_from_json(const json_t *o, arena *a, operation *out);
/* How elements lie in memory, as one number: equal of two that have the same elements, whatever the order of their
 * dimensions. 0: side by side. Dimensions along which nothing moves count for nothing. */
int64_t operation_lie(int rank, const int64_t *dims, const int64_t *strides);
/* Of a view that reads dense elements again and again: no block of its own size lies there. operation_lie is odd or 0.
 */
enum { OPERATION_LIE_REPEATED = 2 };

/* The same of the dataflow of so many operations. */
json_t *operation_flow_to_json(const operation_flow *f, json_builder *b);
operation_flow *operation_flow_from_json(const json_t *o, int operations, arena *a);

/* What it computes with, as people and ceilings call it: fp32, tf32, fp16, bf16, fp8, int8, int4 (fp16 x int4). */
const char *operation_precision(const operation *o);

/* What tells two measurements apart beside the regime: the record's key, tf32, sparsity. In the arena. */
char *operation_key(const operation *o, arena *a);
/* The operation that has this key, without costs, and without a weight's numbers, which no key tells. Fails through the
 * arena's guard (STATUS_INPUT). */
void operation_from_key(const char *key, arena *a, operation *out);
