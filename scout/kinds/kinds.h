/* What the harness itself knows of each kind of operation: its tensors, its tolerance, which precision it computes in.
 * One file per kind (kind_gemm.c, …) and one line in kinds.c. */
#pragma once

#include "scout/input/operation.h"
#include "scout/plugin.h"

typedef struct kind {
    op_kind op;
    /* Fills tensors, fields, types and costs; all in the arena, borrowed by `out`. false: the operation has a property
     * that no candidate of this kind could be told about; why says which. */
    bool (*build)(const operation *o, arena *a, scout_op *out, scout_why *why);
    /* Largest allowed |got - want| / (|want| + spread), from one visible table by types and depth; 0: exactly equal. */
    double (*tolerance)(const scout_op *op);
    /* Special functions (exponentials and their like) that a launch evaluates, at the least; NULL: none. */
    double (*specials)(const scout_op *op);
    /* Its workspace, in times of the usual one (0: one), where callers of the library give it more. */
    uint32_t workspaces;
    bool light; /* no candidate asks a library that takes a second to load; a compiler's tenth is no such */
} kind;

const kind *kinds_find(op_kind op); /* NULL: no candidates of this kind exist yet */
bool kinds_light(op_kind op);
/* A library generates code for it, for a second or two. */
bool kinds_dear(const oprec *rec);
bool kinds_build(const operation *o, uint64_t workspace_limit, arena *a, scout_op *out, scout_why *why);

/* Whether a candidate takes a product of this precision here and now (its library, this processor): it is asked about a
 * small one that every candidate's shapes include. Other kinds: true. */
bool kinds_offers(const scout_candidate *c, const char *precision);

extern const kind kind_gemm;
extern const kind kind_conv;
extern const kind kind_pool;
extern const kind kind_norm;
extern const kind kind_softmax;
extern const kind kind_elementwise;
extern const kind kind_reduce;
extern const kind kind_attention;
extern const kind kind_embedding;
extern const kind kind_rotary;
extern const kind kind_move;
extern const kind kind_quantize;
extern const kind kind_recurrent;
