/* Which tensors of the dataflow an operation's own tensors are, at one of its occurrences. Neither file nor candidate
 * says it, so it is found by order, type and size: what is not found has memory of its own in a replay. */
#pragma once

#include "scout/input/operation.h"
#include "scout/plugin.h"

/* to[k]: of op->tensors[k]; -1: not found. Returns how many were. */
int binding_tensors(const operation_flow *flow, const operation_occurrence *at, const scout_op *op, int *to);

/* The tensor that has memory of its own: itself, or the source that a view lies in. */
int binding_owner(const operation_flow *flow, int tensor);
