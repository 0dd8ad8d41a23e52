/* Passes along the lines of one dimension, as plain C functions; what kernels/pass/pass_kernels.h says of passes holds
 * here, too. Tensors are [outer][length][inner], densely. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- running_pass: sums or products of all that comes before --- */

/* Floats of at most 32 bits in fp32, fp64 in fp64, integers in their own bits, which wrap around. */
typedef struct running_pass {
    int type;
    int products;            /* else sums */
    int exclusive, backward; /* without the element itself; from the end */
    int64_t outer, length, inner;
} running_pass;

int running_pass_fits(const running_pass *pass);
const char *running_pass_mode(const running_pass *pass); /* "rows": a block for each line, "columns": a thread */
int running_pass_launch(const running_pass *pass, const void *x, void *y, void *stream);

/* --- search_pass: the best of each line, in order, and their places (int64) --- */

/* Of equal ones the first comes first. */
typedef struct search_pass {
    int type, largest; /* largest: else the smallest ones */
    int64_t outer, length, inner, kept;
} search_pass;

int search_pass_fits(const search_pass *pass);
size_t search_pass_workspace(const search_pass *pass); /* bytes, at a multiple of 16 */
const char *search_pass_mode(const search_pass *pass); /* "block": in shared memory, "sort": all in the workspace */
int search_pass_launch(const search_pass *pass, const void *x, void *y, void *places, void *workspace, void *stream);

#ifdef __cplusplus
}
#endif
