/* Which tensors of the dataflow an operation's own tensors are, at one of its occurrences, by what ops.json says. What
 * it does not say, or what does not fit, has memory of its own in a replay. */
#pragma once

#include "scout/fusion/fusion.h"

/* to[k]: of op->tensors[k]; what is not known stays what it is. Returns how many are known. */
int binding_tensors(const operation_flow *flow, const operation_occurrence *at, const scout_op *op, int *to);
/* None is known. */
void binding_begin(int *to);

/* A fusion at a place in the model: the fused operation's tensors are those of its parts, by where the parts' tensors
 * lie in them. */
typedef struct binding_fusion { /* all borrowed */
    const scout_op *fused;
    const fusion_part *parts;
    const scout_op *const *ops; /* the parts as candidates see them */
    int count;
    const int *reads; /* by tensor: how often occurrences read it or what lies in it (binding_reads) */
} binding_fusion;

enum { BINDING_SLICES = 3 * FUSION_PARTS }; /* weights, biases and results of products */

/* A part's tensor that is a slice of the fused operation's: all of these are to lie in one piece, or, where a constant
 * has other readers, to be copied into one. */
typedef struct binding_slice {
    int part, tensor, of; /* of: the fused operation's */
    uint64_t offset;      /* in that */
    bool copied;
} binding_slice;

typedef struct binding_site {
    int fused[SCOUT_MAX_TENSORS]; /* of the dataflow; where it has slices, the first of them, or -1: they are copied */
    int parts[FUSION_PARTS][SCOUT_MAX_TENSORS]; /* -1: a number that the part is given */
    binding_slice slices[BINDING_SLICES];
    int slice_count;
} binding_site;

/* By tensor that has memory of its own. In the arena. */
int *binding_reads(const operation_flow *flow, arena *a);
/* occurrences: one for each part. False: it cannot be told so; why says for which reason. */
bool binding_fused(const operation_flow *flow, const int *occurrences, const binding_fusion *of, binding_site *out,
                   scout_why *why);

/* The tensor that has memory of its own: itself, or the source that a view lies in. */
int binding_owner(const operation_flow *flow, int tensor);
