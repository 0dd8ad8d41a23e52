/* Moving known values about: which element of an input each element of the output comes from. Shape functions that only
 * move data say it axis by axis; this file turns that into the output's values. */
#pragma once

#include "extract/graph/info.h"
#include "extract/infer/infer.h"

int64_t value_index_count(int rank, const int64_t *dims); /* saturates */
bool value_index_small(int rank, const int64_t *dims);    /* few enough elements for values to be tracked */
void value_index_strides(int rank, const int64_t *dims, int64_t *strides);
/* Inputs [first, first + count) all have known values, or are constants that may have. Reads no file, so that asking it
 * first keeps a weight from being read because it meets an activation. Floating constants of some length are weights:
 * sizes never come from them, and they are not read. */
bool value_index_known(const infer *c, int first, int count);
/* Sets an output with values v, or without where v is NULL. */
void value_index_set(infer *c, int out, dtype type, int rank, const int64_t *dims, const value *v);

/* dim numbers: start, start + step, … */
int64_t *value_index_axis(arena *a, int64_t dim, int64_t start, int64_t step);
/* Element (x0, x1, …) of the output comes from element parts[0][x0] + parts[1][x1] + … of the input; from nowhere (-1)
 * where one of them is negative. */
int64_t *value_index_map(arena *a, int rank, const int64_t *dims, int64_t *const *parts);
/* The map of numpy broadcasting `from` to `dims`. */
int64_t *value_index_broadcast(arena *a, int rank, const int64_t *dims, int from_rank, const int64_t *from);
/* Element k is v[from[k]], or fill's first (0 where NULL) where from[k] is negative. */
const value *value_index_pick(arena *a, const value *v, const int64_t *from, int64_t n, const value *fill);

/* The elements of v that parts (as of value_index_map) lead to. */
const value *value_index_move(arena *a, const value *v, int rank, const int64_t *dims, int64_t *const *parts,
                              const value *fill);

/* A value to be written, of the class of `type`. */
value *value_index_new(arena *a, dtype type, int64_t n, int64_t **i, double **f);

/* As infer_ints, for sizes, positions and axes: fails where input i could not be such a list (not integers, a matrix).
 */
bool value_index_ints(infer *c, int i, const int64_t **x, int64_t *n);

/* Input i is a tensor whose shape is known. Where it is not: fails on another form, else marks the node. */
bool value_index_need(infer *c, int i);

bool value_number_tracked(dtype t);            /* values of this type are propagated */
double value_number_round(dtype t, double x);  /* to the nearest of a floating type */
int64_t value_number_wrap(dtype t, int64_t x); /* to the bits of an integer type; booleans to 0 and 1 */
/* Values as another type; NULL where that type's values are not tracked (or v is NULL). */
const value *value_number_cast(arena *a, const value *v, dtype from, dtype to);

/* A tensor's values with its shape and type. */
typedef struct value_operand {
    const value *v;
    dtype type;
    int rank;
    const int64_t *dims;
} value_operand;

/* All return NULL where the operator has no entry or the result is not defined (division by 0). `name` is an operator's
 * name, or that of a form of it: "FMod", "ShiftLeft", "ShiftRight". */
const value *value_elementwise_unary(const infer *c, const char *name, const value *v, dtype type);
const value *value_elementwise_binary(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                      dtype type, int rank, const int64_t *dims);
const value *value_elementwise_compare(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                       int rank, const int64_t *dims);
const value *value_elementwise_clip(arena *a, const value *v, dtype type, const value *low, const value *high);
/* One step of a running reduction; false where undefined. */
bool value_elementwise_step(const char *name, bool integer, int64_t *i, double *f, int64_t xi, double xf);
