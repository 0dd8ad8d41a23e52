/* What the driver keeps during a run, shared with control flow only. */
#pragma once

#include "extract/infer/infer.h"

#include <setjmp.h>

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

/* Fails where a node's output i can't be. */
void infer_check_dims(infer *c, int i, const info *x);

/* Infers a body whose failure does not make the model wrong (a branch that may never run). False where it failed: the
 * nodes from there on are listed as unresolved. */
bool infer_graph_soft(model *m, graph *g);
