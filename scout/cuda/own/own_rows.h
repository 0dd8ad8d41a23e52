/* The project's own norms and softmax (kernels/rows/row_kernels.h) as candidates of the CUDA device, and the variants
 * that those share which hold rows in registers. */
#ifndef SCOUT_CUDA_OWN_OWN_ROWS_H
#define SCOUT_CUDA_OWN_OWN_ROWS_H

#include "kernels/rows/row_kernels.h"
#include "scout/op/norm.h"
#include "scout/plugin.h"

/* Threads of a row, cache hints: the likely best first. */
void own_rows_domain(int type, int64_t cols, int exhaustive, scout_domain *out);
/* A variant of that domain; values NULL: its first. */
row_config own_rows_config(int type, int64_t cols, const int64_t *values);
/* SCOUT_NO where no registers hold a row. */
scout_answer own_rows_hold(int type, int64_t cols, scout_why *why);
int own_rows_describe(const char *kernel, const row_config *config, const row_launch *launch, char *json, size_t room);

/* The same of long rows: numbers of threads that the compiler knows. */
void own_rows_long_domain(int type, int64_t cols, scout_domain *out);
row_config own_rows_long_config(int type, int64_t cols, const int64_t *values);
/* SCOUT_NO where rows are too short, too long or not of whole pieces, or change their type. `name`: the candidate's. */
scout_answer own_rows_long(const scout_op *op, int64_t cols, const char *name, scout_why *why);

norm_rows_shape own_rows_norm_shape(const scout_op *op, const norm_problem *p);
/* Whether each column has its own element of the vectors, or there are none. */
int own_rows_sides_by_column(const norm_problem *p);
/* What a norm reads and writes, as its kernels take it. */
norm_tensors own_rows_norm_tensors(const norm_problem *p, const scout_args *args);

/* The same of the general kernels, of which a block has so many threads; `few`: there are fewer blocks than it takes
 * to fill the device, so that large ones come first. */
void own_rows_any_domain(int few, scout_domain *out);
int own_rows_any_threads(int few, const int64_t *values);
/* Whether so many rows, `side` by side in memory (1: not), are few. */
int own_rows_few(const scout_device *device, int64_t rows, int64_t side);

#endif
