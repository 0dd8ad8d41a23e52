/* What the builders of the graph share: the model under construction, scopes in which names have a meaning, and nodes
 * as the file states them. Everything that must stay is in the run's arena; everything else in the file's frames. */
#pragma once

#include "extract/read/bind.h"
#include "extract/read/constants.h"
#include "extract/read/external.h"

#include "common/arena.h"
#include "extract/read/model_file.h"
#include "onnx_meta.pb-c.h"

#include <stdbool.h>

/* Unpacks the metadata fields of one message: a pointer to its OnnxMeta__ struct, valid until the next call. */
const void *model_meta_unpack(model_file *f, wire_kind kind, wire_span span);

/* The nested messages of one message by field number, in order; in the arena given. */
typedef struct model_list {
    wire_span *items;
    size_t count;
} model_list;
typedef struct model_index {
    model_list fields[WIRE_SCHEMA_FIELDS];
} model_index;
void model_meta_index(model_file *f, arena *a, wire_kind kind, wire_span span, model_index *index);
/* The same for one field alone. */
model_list model_meta_list(model_file *f, arena *a, wire_span span, uint32_t number);

/* A set of texts, each with a small count: the names of a model. Slots hold no more than a pointer and a count, because
 * a model has as many names as tensors and nodes together, and the table is thrown away once the graphs are built. */
typedef struct build_string {
    const char *text; /* NULL: free */
    uint32_t hash;    /* its upper half */
    uint32_t count;   /* the user's */
} build_string;

typedef struct build_strings {
    arena *tables; /* of the slots */
    build_string *slots;
    size_t capacity, count; /* capacity is 0 or a power of two */
    uint64_t seed;          /* random, so that a hostile model cannot choose names that collide */
} build_strings;

void build_strings_init(build_strings *s, arena *tables);
/* The slot of a text, valid until the next call; `added` says whether it is new: its text is `text` itself then, where
 * `copies` is NULL, or a copy in that arena. */
build_string *build_strings_put(build_strings *s, const char *text, size_t length, arena *copies, bool *added);

enum {
    BUILD_MAX_NODES = 1000000, /* after inlining */
    BUILD_MAX_ENDS = 65536,    /* inputs, and outputs, of one node */
    BUILD_MAX_ATTRS = 4096,    /* of one node, and defaults of one function */
    BUILD_MAX_DEPTH = 128      /* bodies and calls of functions inside one another */
};

typedef struct build_function build_function; /* below */

typedef struct build {
    model *model;
    model_file *file;
    arena *arena;             /* the run's */
    arena *frames;            /* lists and name tables of what is being built; last in, first out */
    build_strings strings;    /* every name once */
    build_strings node_names; /* and how often each was asked for */
    map functions;            /* key -> build_function */
    map opsets;               /* domain -> int64_t *, of the model */
    bind bind;
    external external;
    size_t node_cap, tensor_cap, graph_cap;
    int64_t calls;
} build;

/* A node as the file states it. */
typedef struct build_raw {
    wire_span span;
    const char *name, *op_type, *domain;
    const char **in, **out; /* "" where left out */
    size_t in_count, out_count;
    model_list attrs;
    const build_function *function; /* NULL: an operator */
    const char **captured;          /* names that its bodies use from outside */
    size_t captured_count;
} build_raw;

typedef struct build_name { /* what a name stands for in a scope */
    tensor *t;              /* NULL until it is produced */
    int64_t producer;       /* which of the scope's raw nodes; -1: none */
    bool left_out;          /* formal of a function for which the call gives nothing */
} build_name;

typedef struct build_target { /* the graph that nodes are added to; shared by the functions inlined into it */
    graph *g;
    size_t node_cap;
    build_strings taken; /* names of tensors that inlining made */
} build_target;

typedef struct build_scope {
    const struct build_scope *outer; /* of the graph around a body; NULL for the main graph and for functions */
    build_target *target;
    const struct build_call *call; /* the call that is being inlined; NULL outside functions */
    const map *opsets;
    const char *node_prefix, *tensor_prefix;
    int depth;  /* bodies and calls around it */
    map names;  /* name -> build_name */
    map stated; /* name -> info */
    map given;  /* functions: output -> the caller's tensor */
} build_scope;

typedef struct build_call {
    const build_function *function;
    const build_scope *scope; /* where it stands, and where its attributes have their meaning */
    const build_raw *raw;
    map attrs; /* name -> wire_span *, of the attributes that the call gives */
} build_call;

/* ---- build_name.c: text and names ---- */
__attribute__((format(printf, 2, 3))) _Noreturn void build_fail(build *b, const char *format, ...); /* exit 3 */
const char *build_text(build *b, ProtobufCBinaryData bytes, const char *what); /* checked and interned */
const char *build_domain(build *b, ProtobufCBinaryData bytes);                 /* "" for ai.onnx */
const char *build_raw_text(build *b, const build_raw *raw);                    /* "node 'x' (Op)" */
build_name *build_name_find(const build_scope *s, const char *name);           /* NULL where nothing has that name */
build_name *build_name_declare(build *b, build_scope *s, const char *name, const char *owner);
const char *build_name_joined(build *b, const char *prefix, const char *name); /* as plain_name has it */
const char *build_name_of_node(build *b, const build_scope *s, const char *given, const char *op_type); /* unique */
const char *build_name_of_tensor(build *b, const build_scope *s, const char *name); /* unique in its graph */

/* ---- build_graph.c ---- */
graph *build_graph_main(build *b, wire_span span);
graph *build_graph_body(build *b, const build_scope *outer, wire_span span, node *owner, const char *attr_name);
tensor *build_graph_tensor(build *b, build_target *target, const char *name, tensor_source source);

/* ---- build_node.c ---- */
void build_nodes(build *b, build_scope *s, const model_list *spans);
void build_node_identity(build *b, build_scope *s, const char *name, tensor *in, tensor *out);

/* ---- build_order.c: the order in which every input is there before its use ---- */
const int64_t *build_order(build *b, const build_scope *s, const build_raw *raws, size_t count);

/* ---- build_capture.c: the names that the bodies of a node use from outside ---- */
void build_capture(build *b, build_raw *raw);

/* ---- build_attr.c ---- */
void build_attrs(build *b, const build_scope *s, const build_raw *raw, node *n);

/* ---- build_type.c ---- */
/* A type as the model states it: dims of symbols that are bound as numbers, others -1. NULL where nothing is stated. */
const info *build_type_stated(build *b, const OnnxMeta__Type *type, const char *name);
/* The type of a graph input: every dim is a number. */
const info *build_type_input(build *b, const OnnxMeta__Type *type, const char *name);
/* Tells the binding which symbols an input has. */
void build_type_see(build *b, const OnnxMeta__Type *type, const char *name);

/* ---- build_tensor.c ---- */
/* A constant; not part of a graph yet: name, info and blob are set. */
tensor *build_tensor(build *b, wire_span span, const char *where);
tensor *build_tensor_sparse(build *b, wire_span span, const char *where);

/* ---- build_function.c ---- */
void build_functions(build *b, const model_list *spans);
const build_function *build_function_find(build *b, const char *domain, const char *name, const char *overload);
void build_function_inline(build *b, build_scope *s, const build_raw *raw);
/* The attribute of the call that a reference inside the function means: its bytes and the scope they are read in; false
 * where the call gives none and there is no default. */
bool build_function_attr(build *b, const build_call *call, const char *name, wire_span *span,
                         const build_scope **scope);

/* ---- build_expand.c ---- */
/* Refuses functions that call themselves and models that would be too large when all calls are inlined. */
void build_expand_check(build *b, wire_span main_graph);
/* Refuses a model of which too much has been read again and again; asked for every node and attribute that inlining
 * reads. */
void build_expand_bound(build *b);

typedef enum build_visit { BUILD_NEW, BUILD_OPEN, BUILD_DONE } build_visit;

struct build_function {
    wire_span span;
    const char *name;
    build_visit visit; /* of the check for cycles */
    int64_t expanded;  /* nodes it stands for when everything it calls is inlined */
    /* set by build_function_open */
    const char **in, **out;
    size_t in_count, out_count;
    model_list nodes;
    model_list defaults; /* attributes with a default value */
    map default_spans;   /* name -> wire_span *, in defaults */
    map opsets;          /* domain -> int64_t * */
};

/* Decodes a function; before its first call is inlined. */
void build_function_open(build *b, build_function *fn);
