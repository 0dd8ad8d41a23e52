/* What the makers of fused operations share: fusion_make.c has the table of patterns, fusion_fold.c products and
 * convolutions with what follows them, fusion_wide.c products side by side, fusion_rows.c norms and
 * softmax, fusion_chain.c elementwise operations. */
#pragma once

#include "scout/fusion/fusion.h"
#include "scout/op/op.h"

typedef struct fusion_maker {
    fusion *f;
    arena *a;
    scout_op ops[FUSION_PARTS]; /* the parts as candidates see them */
    scout_why why;              /* of what is refused */
} fusion_maker;

/* false, for the maker to return: it cannot be told as one operation, or not how its parts lie in that. */
__attribute__((format(printf, 3, 4))) bool fusion_refuse(fusion_maker *m, const char *code, const char *format, ...);

/* Tensor `tensor` of a part. Every tensor of every part needs a place. */
void fusion_put(fusion_maker *m, int part, int tensor, const char *of, int64_t offset, int64_t stride);
/* All tensors of a part that have none yet lie in tensors of their own names. */
void fusion_put_rest(fusion_maker *m, int part);
/* What part k writes for the next one. */
const char *fusion_between(const fusion_maker *m, int part);

/* An operation as candidates see it. */
bool fusion_build(fusion_maker *m, const operation *o, scout_op *out);

/* The costs of the fused operation: the parts' own without what is saved; `written` of them by those in the mask. */
void fusion_costs(fusion_maker *m, unsigned written);

/* Each makes m->f->fused.rec and the places, or refuses. */
bool fusion_fold(fusion_maker *m);
bool fusion_wide(fusion_maker *m);
bool fusion_norm(fusion_maker *m);
bool fusion_softmax(fusion_maker *m);
bool fusion_chain(fusion_maker *m);
