/* What the own norms and softmax (kernels/rows/row_kernels.h) share as candidates: their variants, and whether rows fit
 * into the registers of one block. */
#pragma once

#include "kernels/rows/row_kernels.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/plugin.h"

/* Kernels that hold each row in registers. */
typedef struct own_rows {
    const char *name;
    int (*threads)(int type, int64_t cols, int choice); /* of a row, the likely best first; 0: there is none */
    const char *limits;                                 /* of rows */
} own_rows;

#define OWN_ROWS(name)                                                                                                 \
    { name, row_threads, "what the registers of one block hold" }
#define OWN_ROWS_LONG(name)                                                                                            \
    { name, row_threads_long, "65 to 2048 pieces of 16 bytes" }

/* Domains of the two as in a scout_candidate: threads of a row, cache hints, the likely best first. */
scout_answer own_rows_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                             scout_why *why);
scout_answer own_rows_long_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                  scout_why *why);
/* A variant of these; values NULL: the first. */
row_config own_rows_config(const own_rows *kernel, int type, int64_t cols, const int64_t *values);
/* SCOUT_NO where no registers hold a row, rows are strided, or their type changes. */
scout_answer own_rows_hold(const own_rows *kernel, const scout_op *op, int64_t cols, int contiguous, scout_why *why);
/* What the error of preparing such a kernel means. */
scout_answer own_rows_answer(const own_rows *kernel, int error, scout_why *why);
int own_rows_describe(const own_rows *kernel, const row_config *config, const row_launch *launch, char *json,
                      size_t room);

/* General kernels, whose one parameter is the threads of a block. `few`: there are fewer blocks than it takes to fill
 * the device, so that large ones come first. */
scout_answer own_rows_any_domain(int few, scout_domain *out);
int own_rows_any_threads(int few, const int64_t *values);
/* Whether so many rows, `side` by side in memory (1: not), are few. */
int own_rows_few(const scout_device *device, int64_t rows, int64_t side);
