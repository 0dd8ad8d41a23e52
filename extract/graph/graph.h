/* The model as the rest of extract sees it: tensors, nodes and regions. Functions are inlined already; every name in it
 * is valid UTF-8 without NUL; every node is in topological order within its region's list. All in the run's arena. */
#pragma once

#include "common/map.h"
#include "extract/graph/info.h"

typedef struct node node;
typedef struct graph graph;
typedef struct model model;

/* Where the bytes of a constant lie. */
typedef struct blob {
    const char *why_unreachable; /* NULL: reachable. Else one sentence ("external file w.bin is missing") */
    const char *file;            /* external file, relative to the model's folder; NULL: the model file itself */
    int64_t offset, length;      /* bytes in that file; for raw data only */
    bool raw; /* little-endian raw bytes at offset; false: typed fields (int32_data, …), offset and length span the
                 tensor message */
} blob;

typedef enum tensor_source {
    TENSOR_INPUT,
    TENSOR_INITIALIZER,
    TENSOR_NODE,
    TENSOR_FORMAL, /* input of a body */
    TENSOR_ASSUMED /* nothing makes it: data decide it, and expand/ takes it to be as suits its shape */
} tensor_source;

typedef struct tensor {
    const char *name; /* unique within its graph; inlined functions' tensors carry the call's path. This one and those
                         of nodes and regions are said again and again, and so at most as long as plain_name has them */
    tensor_source source;
    bool is_constant;   /* depends on nothing but initializers and constants (set by inference) */
    const info *info;   /* never NULL; &info_unknown until inferred */
    const info *stated; /* from value_info or a graph output: rank -1 or dims, -1 where symbolic; NULL where nothing is
                           stated */
    blob *blob;         /* initializers, and outputs of Constant; NULL otherwise */
    node *producer;     /* NULL for inputs and initializers */
    int producer_slot;
    int place;    /* in the model's list of tensors */
    node **users; /* each use once; a node that reads it twice is there twice. Bodies' nodes are among them */
    int user_count;
    bool is_graph_output; /* of the graph it belongs to */
    graph *home;
} tensor;

typedef enum attr_kind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_STRING,
    ATTR_TENSOR,
    ATTR_GRAPH,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_STRINGS,
    ATTR_TYPE,
    ATTR_OTHER
} attr_kind;

typedef struct attr {
    const char *name;
    attr_kind kind;
    int64_t i;
    double f;
    const char *s; /* NUL-terminated copy (may hold other bytes than text) */
    int64_t n;     /* of ints, floats, strings; length of s */
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    tensor *t; /* dtype, dims and blob; not part of any graph */
    graph *g;
    const info *type; /* ATTR_TYPE: rank -1 or dims, -1 where unknown */
} attr;

struct operator_def;

struct node {
    int64_t id;       /* position in the model's order of nodes; unique */
    const char *name; /* never empty: made from op_type and position where the model gives none; carries region and call
                         path; unique */
    const char *op_type;
    const char *domain;             /* "" for ai.onnx */
    int64_t opset;                  /* of its domain, where it stands */
    const struct operator_def *def; /* NULL: not known */
    attr *attrs;
    int attr_count;
    tensor **in; /* NULL entries: optional input left out */
    int in_count;
    tensor **out; /* NULL entries: output not wanted */
    int out_count;
    graph *home;
    const char *unresolved; /* why its outputs are not exactly known; NULL: resolved */
    bool unknown;           /* operator not in the table */
    bool misfit;  /* its inputs or attributes contradict each other, which behind an inexact input is no error */
    bool made;    /* a part that expand/ made: it is in no file */
    bool attends; /* an attention was made of it and others */
    bool whole;   /* several operations in one, which expand/ could not take apart: no work is told of it */
};

/* The main graph, or the body of an If, Loop, Scan or SequenceMap. */
struct graph {
    int place;          /* in the model's list of graphs */
    const char *region; /* "" for the main graph; else a path: "loop_7/body", "loop_7/body/if_2/then_branch" */
    graph *parent;      /* NULL for the main graph */
    node *owner;        /* the control-flow node; NULL for the main graph */
    double times; /* how often it runs per run of the model: trip counts multiplied; 1 where unknown, 0 for a branch
                     known not to run, or cheaper than the other one where that is not known */
    bool times_known;
    tensor **inputs; /* of a body: formals. Of the main graph: without those that are initializers too */
    int input_count;
    tensor **outputs;
    int output_count;
    tensor **initializers;
    int initializer_count;
    node **nodes;
    int node_count;
};

typedef struct model_dim { /* one symbol bound to a number, for the report */
    const char *name;
    int64_t size;
    const char *how; /* "--dim", "--batch", "--seq", "default" */
} model_dim;

struct model {
    arena *arena;
    guard *guard;
    const char *path; /* as given */
    const char *name; /* file name without .onnx */
    const char *producer;
    int64_t ir_version;
    int64_t opset; /* of ai.onnx; 0 where not imported */
    graph *main;
    graph **graphs; /* all, main first, parents before bodies */
    int graph_count;
    node **nodes; /* all nodes of all graphs; a body's nodes follow its owner */
    int64_t node_count;
    tensor **tensors; /* all tensors of all graphs in order of appearance; behind them what expand/ made */
    int64_t tensor_count;
    int64_t channel_block; /* of com.microsoft.nchwc (infer/channel_block.h); 0 until it is asked for */
    model_dim *dims;
    int dim_count;
    const char **external; /* the files of external data that the model names, there or not, in order of appearance */
    size_t external_count;
    const char **warnings; /* one line each */
    size_t warning_count, warning_cap;
    struct model_file *file;   /* for reading constants: read/read.h */
    struct infer_state *infer; /* shape/infer.c's own, while it runs */
};

__attribute__((format(printf, 2, 3))) void graph_warn(model *m, const char *format, ...);
void graph_link_users(const model *m); /* sets the users of all tensors */
/* NULL where absent, of another kind, or where the node is a misfit. */
const attr *graph_attr(const node *n, const char *name, attr_kind kind);
const attr *graph_attr_any(const node *n, const char *name); /* of any kind; NULL where absent */
int64_t graph_attr_int(const node *n, const char *name, int64_t otherwise);
double graph_attr_float(const node *n, const char *name, double otherwise);
const char *graph_attr_string(const node *n, const char *name, const char *otherwise);
bool graph_is(const node *n, const char *op_type);    /* n may be NULL; ai.onnx domain only */
bool graph_is_ms(const node *n, const char *op_type); /* com.microsoft */
bool graph_is_blocked(const node *n); /* com.microsoft.nchwc: channels lie in blocks, one block behind the other */
const char *graph_operator(arena *a, const node *n); /* its operator, with the domain where that is not the default */
bool graph_is_random(const node *n);                 /* its outputs differ at every run, whatever it is made from */
bool graph_has_body(const node *n);
/* The row of that name in a table that is sorted by names, with which its rows begin; NULL: there is none. */
const void *graph_row(const void *rows, size_t count, size_t size, const char *name);
