/* The dataflow of a model: its works in the order of their execution, the tensors between them, how long each is
 * needed, and which are only other ways to look at one. What `graph` of ops.json is written from. Everything in the
 * run's arena. */
#pragma once

#include "extract/ops/collect.h"

typedef enum dataflow_kind {
    DATAFLOW_INPUT,      /* of the model */
    DATAFLOW_WEIGHT,     /* stored in the model */
    DATAFLOW_CONSTANT,   /* computed when the model is loaded */
    DATAFLOW_STATE,      /* what a body is given by the loop around it */
    DATAFLOW_ASSUMED,    /* decided by data in a way that the model's graph does not tell */
    DATAFLOW_ACTIVATION, /* made by an occurrence */
    DATAFLOW_OUTPUT      /* made by an occurrence, and an output of the model */
} dataflow_kind;

/* In elements of the source: where the first one lies, and how far apart they are, for each dimension. */
typedef struct dataflow_strides {
    int64_t offset;
    int64_t strides[];
} dataflow_strides;

/* A large graph holds one of them per tensor, and one of the next per node: small matters. */
typedef struct dataflow_tensor {
    const tensor *t;
    uint8_t kind, type; /* a dataflow_kind; a dtype, as it is counted */
    int producer;       /* its occurrence; -1: none */
    int from, to;       /* the occurrences between which it is needed; of what nothing needs `to` is -1 */
    int readers;
    int source;                   /* the tensor that it is a view of, which has memory of its own; -1: none */
    int seen;                     /* dataflow.c's own: the last occurrence that reads it, plus 1 */
    const dataflow_strides *view; /* of one with a source; NULL: it lies as the source does */
} dataflow_tensor;

typedef struct dataflow_occurrence {
    const work *w;
    int place;      /* which of its entry's occurrences */
    int first_node; /* of it among the entry's nodes */
    int edges;      /* where its tensors begin: first what it reads, then what it makes */
    int reads, makes;
    int operands; /* where its own tensors begin among the operands */
    int operand_count;
    bool cut; /* what it reads, makes or does is not all known */
} dataflow_occurrence;

enum { FORMED_RANK = 8 }; /* what readers take */

typedef struct dataflow_formed { /* an operand that an elementwise operator makes of tensors */
    int occurrence, place;
    const char *what;
    int tensors[WORK_TERMS], count;
    const info *like, *as[WORK_TERMS]; /* what they are broadcast to, and the dimensions that they have there */
} dataflow_formed;

typedef struct dataflow {
    dataflow_tensor *tensors;
    dataflow_occurrence *occurrences;
    int *edges;    /* tensors */
    int *operands; /* tensors; -1: none, or none is known */
    dataflow_formed *formed;
    int *occurrence_of; /* by node id: dataflow_occurrence_of reads it */
    int tensor_count, occurrence_count;
    size_t edge_count, edge_cap, operand_count, operand_cap, formed_count, formed_cap;
    int64_t weight_bytes, activation_bytes; /* the latter at most at once */
    int peak;                               /* the occurrence at which that is */
    const tensor **unmade;                  /* outputs of the model that no occurrence makes */
    int unmade_count;
    int unsized; /* tensors that are counted as nothing, as their size is not known */
} dataflow;

const dataflow *dataflow_build(const catalog *c);
/* The occurrence that a work is by itself; -1: it is none, as one that is a part of another one. */
int dataflow_occurrence_of(const dataflow *d, const work *w);
/* No memory of its own: a part of another tensor, or all of it, as it lies. */
bool dataflow_is_alias(const dataflow_tensor *t);
