/* The tensors of an operation, one after the other: what the files of the kinds share. */
#pragma once

#include "common/arena.h"
#include "scout/op/op.h"

#include <stdbool.h>

typedef struct kind_tensors {
    scout_op *op;
    scout_tensor *tensors;
    scout_why *why;
} kind_tensors;

/* Room for SCOUT_MAX_TENSORS in the arena, as op->tensors. */
kind_tensors kind_tensors_of(scout_op *op, arena *a, scout_why *why);

/* Adds a tensor that lies densely, rows last; NULL: too many, or larger than any memory (why says so). */
scout_tensor *kind_tensors_add(kind_tensors *k, const char *name, scout_role role, uint32_t type, int rank,
                               const int64_t *dims);
/* The same of one dimension. */
scout_tensor *kind_tensors_add_vector(kind_tensors *k, const char *name, scout_role role, uint32_t type, int64_t count);
/* Sets the bytes of a tensor whose strides were given; false: larger than any memory. */
bool kind_tensors_close(kind_tensors *k, scout_tensor *t);

/* false, with why: "shape", "type", "feature", … and a sentence. */
__attribute__((format(printf, 3, 4))) bool kind_tensors_refuse(scout_why *why, const char *code, const char *format,
                                                               ...);

/* For scout_tensor.below of a side of a product with an activation behind it: what makes sums of `depth` products of
 * normal numbers about 1 large. At K of 4,096 they would be 64, where every activation is a straight line, and what
 * rounding may do to such a sum is more than the difference of two activations. 0: not of this type. */
int64_t kind_small(int64_t depth, uint32_t type);

/* Half a step of the type where it is widest against the number; 0: integers, and what is not known. */
double kind_rounding(uint32_t type);
/* What stands behind a product or a convolution and may be done by a kernel of its own: a bias, a residual, an
 * activation. How many of these. */
int kind_behind(const scout_op *op);
/* What an element of a product or a convolution may be off by beyond its kind's tolerance, which counts these kernels'
 * roundings by the root of their number: that holds for many elements together. In one of them all roundings may go the
 * same way, and then count by their number (docs/tolerances.md). */
double kind_in_parts(const scout_op *op);

/* `known` ends with NULL. false, with "feature": the operation has a field that is not among them, and is not 0. */
bool kind_fields_only(const scout_op *op, const char *const *known, scout_why *why);
