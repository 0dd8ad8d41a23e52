/* Moving known values about: which element of an input each element of the output comes from. Shape functions that only
 * move data say it axis by axis; this file turns that into the output's values. */
#ifndef EXTRACT_INFER_VALUE_INDEX_H
#define EXTRACT_INFER_VALUE_INDEX_H

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

#endif
