/* What every pattern needs to follow data through the graph: whose result is used where, which operators leave numbers
 * alone, scalars with their values, and the set of nodes that a pattern gathers before it joins them. */
#pragma once

#include "extract/mask/mask_eval.h"
#include "extract/ops/work.h"

/* A scalar's value as once looked up. Patterns try the same constants many times. */
typedef struct flow_scalar_slot {
    const tensor *t;
    bool known;
    double x;
} flow_scalar_slot;

enum {
    FLOW_SCALARS = 2048, /* slots, a power of two; a tensor that falls on a taken one replaces it */
    FLOW_MAX_NODES = 96, /* no pattern gathers more */
    FLOW_MAX_USERS = 64  /* users looked at before a tensor counts as used elsewhere */
};

/* One run of all patterns over one list. */
typedef struct match {
    worklist *list;
    model *model;
    arena *arena;
    mask_cache masks;          /* verdicts, shared by layers that share a mask */
    flow_scalar_slot *scalars; /* FLOW_SCALARS of them */
    double *gate_values;       /* match_gate.c's own: its forms' values, computed once */
} match;

/* Nodes that a pattern is made of; each once. A node that does not fit is dropped and `full` set: such a match is given
 * up. */
typedef struct flow_set {
    node *nodes[FLOW_MAX_NODES];
    int count;
    bool full;
} flow_set;

void flow_add(flow_set *s, node *n); /* NULL is ignored */
/* Every use of t that needs its numbers is by a node of the set, and t is no output of the graph. Uses that only ask
 * for its shape do not count: a joined operation still knows its shapes. */
bool flow_closed(const flow_set *s, const tensor *t);

/* The one node that uses t's numbers (however often); NULL where there are several, none, or t is an output of the
 * graph. */
node *flow_user(const tensor *t);
/* The distinct users of t's numbers, at most `max`; -1 where there are more or t is an output of the graph. */
int flow_users(const tensor *t, node **users, int max);

bool flow_is(const node *n, const char *op_type); /* ai.onnx or com.microsoft; n may be NULL */
bool flow_renames(const node *n);      /* Identity, Cast that rounds at most, Dropout: same numbers, same shape */
bool flow_reshapes(const node *n);     /* Reshape, Squeeze, Unsqueeze, Flatten: same numbers, other shape */
tensor *flow_in(const node *n, int i); /* NULL where absent */
tensor *flow_out(const node *n, int i);
tensor *flow_origin(tensor *t); /* up through what renames */
node *flow_producer(tensor *t); /* of flow_origin */

bool flow_constant(const tensor *t);  /* known without running the model: a weight, or made from weights */
bool flow_is_scalar(const tensor *t); /* one element */
bool flow_scalar(match *m, const tensor *t, double *x); /* one element whose value is known */
/* The only non-scalar input of a binary operator; *slot says which. NULL where both or none are. */
tensor *flow_operand(const node *n, int *slot);
/* Integers of a small constant or propagated tensor; NULL where not known */
const int64_t *flow_ints(match *m, const tensor *t, int64_t *n);

int flow_rank(const tensor *t);           /* -1 where unknown */
int64_t flow_dim(const tensor *t, int k); /* k may be negative; -1 where out of range or unknown */
int64_t flow_count(const tensor *t);      /* elements; 0 where unknown */
bool flow_same_shape(const tensor *a, const tensor *b);
/* A Transpose's permutation; false where n is no Transpose or its shape is unknown. perm has INFO_MAX_RANK places. */
bool flow_perm(const node *n, int *rank, int64_t *perm);
bool flow_swaps_last(const node *n); /* a Transpose that swaps the last two dimensions and nothing else */

/* The plain work of n counts itself: no pattern has taken it yet. */
bool flow_free(const match *m, const node *n);
/* Joins the set at `anchor` after making sure that it is sealed, whole, and part of no other pattern but as a whole.
 * NULL where it can't be. The new work starts with the anchor's record. */
work *flow_join(match *m, flow_set *s, node *anchor);
