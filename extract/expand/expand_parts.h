/* What an operator's function of takes.h may use. It asks for the node's parts one after the other, and the shape
 * functions say whether they fit: the graph is changed only where all do. */
#pragma once

#include "extract/graph/graph.h"

enum {
    STEP_INPUTS = 64,
    STEP_OUTPUTS = 4,
    MAX_STEPS = 8192, /* parts of one node: those of training are several for each of its tensors */
    MAX_TENSORS = MAX_STEPS * (STEP_OUTPUTS + 2) /* what they make, and their constants */
};

/* What is common to all nodes of a model. */
typedef struct expander {
    model *m;
    node **nodes; /* the model's new order */
    size_t node_cap, tensor_cap;
    int64_t node_count, parts; /* parts: how many of the nodes were made here */
    map names;                 /* of all nodes and tensors; filled for the first node that is taken apart */
} expander;

typedef struct expansion { /* of one node */
    expander *e;
    const node *n;
    node last; /* what the node becomes */
    node **made;
    tensor **tensors;
    size_t made_cap, tensor_cap;
    int made_count, tensor_count;
    bool failed;
} expansion;

typedef struct step { /* one part */
    const char *domain, *op_type;
    tensor *in[STEP_INPUTS]; /* NULL: left out */
    attr attrs[8];           /* up to the first without a name */
    int outputs;             /* 0: one */
    unsigned left_out;       /* bits of those among them that are not made */
} step;

/* ---- what the node has ---- */
tensor *part_in(const expansion *x, int i); /* NULL: left out, or there is none */
tensor *part_out(const expansion *x, int i);
int tensor_rank(const tensor *t);              /* -1 where not known */
int64_t tensor_dim(const tensor *t, int axis); /* counted from the end where negative; 0: there is none */
int64_t tensor_count(const tensor *t);         /* 0 where not known */
/* A softmax near it may make it part of an attention. */
bool part_beside_softmax(const expansion *x);

/* ---- what its parts have ---- */
tensor *part_tensor(expansion *x, const char *name, tensor_source source, const info *is);
/* Made by no node, and in no file. */
tensor *part_constant(expansion *x, const char *what, const info *is);
tensor *part_numbers(expansion *x, const char *what, int64_t n, const int64_t *values);
tensor *part_number(expansion *x, const char *what, int64_t n);
tensor *part_scalar(expansion *x, const char *what, dtype type, int64_t n);      /* of a type of whole numbers */
tensor *part_real(expansion *x, const tensor *like, const char *what, double f); /* of that tensor's type */
/* Of known shape; what it holds decides nothing. */
tensor *part_table(expansion *x, const char *what, dtype type, int rank, const int64_t *dims);
attr int_attr(const char *name, int64_t i);
attr ints_attr(const char *name, int n, const int64_t *ints); /* which stay where they are */
attr text_attr(const char *name, const char *s);
attr real_attr(const char *name, double f);

/* ---- parts ---- */
void part_like_node(expansion *x, step *s); /* with the node's attributes */
/* Without outputs once a part did not fit: those that follow do not either. */
tensor *const *part_make(expansion *x, const step *s);
tensor *part_do(expansion *x, const char *op_type, tensor *a, tensor *b); /* b: NULL where it has one input */
tensor *part_cast(expansion *x, tensor *t, dtype to);
tensor *part_zeros(expansion *x, dtype type, int rank, const int64_t *dims);
tensor *part_add(expansion *x, tensor *a, tensor *b); /* as large as a, to which b is added */
tensor *part_slice(expansion *x, tensor *t, int axis, int64_t start, int64_t end);
tensor *part_reshaped(expansion *x, tensor *t, int rank, const int64_t *dims);
tensor *const *part_split(expansion *x, tensor *t, int axis, int parts, const int64_t *sizes);

/* ---- the last one ---- */
/* What the node becomes; one that does not make the node's first output is no part of it. */
void part_end(expansion *x, const step *s);
void part_end_made(expansion *x);                     /* the part that was made last */
void part_end_reshaped(expansion *x, tensor *t);      /* t in the shape of the node's first output */
void part_leave_out(expansion *x, int i);             /* an input that the last part has no more */
void part_give(expansion *x, int slot, tensor *made); /* the output of the node is what that part makes */
