/* Shape inference: the driver, and what an operator's shape function may use. A shape function is called with every
 * input's info set and sets every wanted output's info. It may ask for values of inputs: where they are known
 * (constants, arithmetic on shapes) it gets them, whether they come from the model file or were propagated. */
#pragma once

#include "extract/graph/graph.h"
#include "extract/graph/operators.h"

#include <setjmp.h>

typedef struct infer {
    model *model;
    arena *arena;
    node *node;
    info **out; /* what the function sets; out_count of the node */
    bool bound; /* inputs are at the least or the most they may be, and need not divide or add up */
} infer;

/* Infers every tensor of the model. Fails through the guard where shapes contradict each other. */
void infer_model(model *m);
/* One graph's nodes, for control flow (shape_control.c): formals must have their infos. May be called again for a next
 * iteration; infos are overwritten. */
void infer_graph(model *m, graph *g);

/* ---- inputs ---- */
int infer_in_count(const infer *c);
bool infer_has(const infer *c, int i);           /* input i is there and not left out */
const info *infer_in(const infer *c, int i);     /* never NULL: &info_unknown where absent */
bool infer_shaped(const infer *c, int i);        /* input i is a tensor whose shape is known */
int infer_rank(const infer *c, int i);           /* -1 where unknown */
int64_t infer_dim(const infer *c, int i, int k); /* k may be negative (from the end); fails where out of range */
dtype infer_type(const infer *c, int i);
/* Values of input i, NULL where not known. Reads initializers of up to INFO_MAX_VALUES elements, lazily. */
const value *infer_value(const infer *c, int i);
bool infer_int(const infer *c, int i,
               int64_t *x); /* first element of a known integer (or float) input of one element */
/* Integers of input i as an array (floats are truncated); false where not known */
bool infer_ints(const infer *c, int i, const int64_t **x, int64_t *n);

/* ---- attributes ---- */
int64_t infer_attr_int(const infer *c, const char *name, int64_t otherwise);
double infer_attr_float(const infer *c, const char *name, double otherwise);
const char *infer_attr_string(const infer *c, const char *name,
                              const char *otherwise); /* never NULL unless otherwise is */
bool infer_attr_ints(const infer *c, const char *name, const int64_t **x, int64_t *n); /* false where absent */
const attr *infer_attr(const infer *c, const char *name);                    /* of any kind: look before reading it */
const attr *infer_attr_of(const infer *c, const char *name, attr_kind kind); /* fails where it is of another kind */
int64_t infer_opset(const infer *c);
int infer_axis(const infer *c, int64_t axis, int rank); /* normalised; fails where outside [-rank, rank) */

/* ---- outputs ---- */
int infer_out_count(const infer *c);
bool infer_wants(const infer *c, int i);                                    /* output i exists and is named */
void infer_set(infer *c, int i, dtype type, int rank, const int64_t *dims); /* ignored where not wanted */
void infer_set_info(infer *c, int i, const info *x);                        /* any form, with values */
void infer_set_like(infer *c, int i, dtype type, const info *shape_of);
void infer_set_ints(infer *c, int i, dtype type, int rank, const int64_t *dims, const int64_t *x, int64_t n);
void infer_set_floats(infer *c, int i, dtype type, int rank, const int64_t *dims, const double *x, int64_t n);
/* As infer_set, but because they depend on data the dims are somewhere from least (NULL: 0) to most. */
void infer_set_between(infer *c, int i, dtype type, int rank, const int64_t *least, const int64_t *most);
/* The same, listed as unresolved with why. */
__attribute__((format(printf, 7, 8))) void infer_set_bound(infer *c, int i, dtype type, int rank, const int64_t *least,
                                                           const int64_t *most, const char *why, ...);
/* Nothing can be said of output shapes: all outputs that are not set stay unknown, the node is listed with why. */
__attribute__((format(printf, 2, 3))) void infer_unresolved(infer *c, const char *why, ...);
/* The model is wrong: ends the run with exit 3 and "node 'x' (Op): …". Where an input is inexact or unknown the node
 * becomes unresolved instead, so a function needs not tell the two apart. Does not return. */
__attribute__((format(printf, 2, 3))) _Noreturn void infer_fail(infer *c, const char *format, ...);

/* Numpy broadcasting of two shapes; fails where they do not fit. Returns the rank; dims has INFO_MAX_RANK places. */
int infer_broadcast(infer *c, int rank_a, const int64_t *a, int rank_b, const int64_t *b, int64_t *dims);

/* The driver does this after each function, so that functions need not: checks arity before and dims after (negative,
 * or element count overflow: refused), compares with what the model states, and where an input that matters is unknown:
 * calls nothing and marks the node "follows from node 'y'". Where an input is inexact it is called with exact ones, the
 * least and the most (infer_bound.c). */

typedef struct infer_state {
    jmp_buf *soft;      /* where infer_fail goes while a node may be unresolvable without the model being wrong */
    int64_t repeats;    /* nodes inferred again for loop iterations so far: bounded */
    int64_t mismatches; /* tensors whose stated type or shape differs from the inferred one */
} infer_state;

/* Why a node is unresolved, as ops.json can have it. */
const char *infer_reason(infer *c, char *text);

/* Sets what is known of the outputs of a node behind inputs of which only a least and a most are known; an output stays
 * NULL where that can't be said. */
void infer_bound(infer *c);

/* Infers a node that is not the model's own. False where it does not fit, or an output's shape is not known. */
bool infer_made(model *m, node *n);

/* Of nodes in a loop (node.unresolved): other shapes in other iterations. */
extern const char infer_changing[];

/* Fails where a node's output i can't be. */
void infer_check_dims(infer *c, int i, const info *x);

/* Infers a body whose failure does not make the model wrong (a branch that may never run). False where it failed: the
 * nodes from there on are listed as unresolved. */
bool infer_graph_soft(model *m, graph *g);
