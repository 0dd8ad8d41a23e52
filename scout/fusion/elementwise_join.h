/* One operation made of several: elementwise operations (casts among them) that follow one another, each the only
 * reader of the one before, become one of kind elementwise, what `chain` (scout/op/elementwise_chain.h), and which of
 * its tensors the parts read is told, so that the parts in sequence can be measured beside it on the same tensors.
 *
 * ops.json does not say which operand of a part is what the part before it wrote: it is the first one whose type and
 * dimensions fit, so a - v may become v - a. The work is the same, and both sides of the measurement compute alike.
 * The part before may be smaller than the part that reads it (it is broadcast then), or the same elements by other
 * dimensions (a view lies between) where its operands can be told by the new ones. */
#pragma once

#include "scout/input/operation.h"
#include "scout/plugin.h"

/* Where a part's tensors are, in the order of its own scout_op (kinds_build), the output left out. */
typedef struct elementwise_join_part {
    int tensor_count;
    int tensors[SCOUT_MAX_TENSORS]; /* of the joined operation; -1: what the part before wrote */
} elementwise_join_part;

/* Joins `count` parts (2 to 16, in order) into `out`: its record (dtype, out_dtype, shape, what, chain, flops, bytes),
 * pattern DENSE, count 1; id and name are left to the caller (id is oprec_id of the record until then). `where` has
 * room for `count` and is filled. All is in the arena; texts of the parts are borrowed. The last tensor of the joined
 * scout_op is the last part's output. false: these cannot be one chain; why (a code of the closed list, a sentence)
 * says which part and why. Memory that runs out fails through the arena's guard. */
bool elementwise_join(const operation *const *parts, int count, arena *a, operation *out, elementwise_join_part *where,
                      scout_why *why);
