/* Moves whose places are told by data, or computed, as plain C functions; what kernels/pass/pass_kernels.h says of
 * passes holds here, too. An index that lies outside is passed over. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- scatter_pass: y = x, then updates written to, or combined with, the places that indices name --- */

enum { SCATTER_WRITE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN, SCATTER_COMBINES };

/* Written: of several updates for one place the last one stays, which a first kernel finds out, so that the output does
 * not depend on which thread comes first. Combined (fp32, fp64, fp16, bf16): in any order, so that sums and products
 * are rounded in another order each time. */
typedef struct scatter_pass {
    int type, combine, index_type; /* index_type: int32, int64 */
    int64_t elements, updates;     /* of x and y; of updates */
    /* Rows of `cols` updates, whose place `parts` numbers tell in dimensions of these lengths. */
    int parts; /* 0: each update has an index of its own */
    int64_t cols, lengths[PASS_RANK];
    /* With an index of its own an update goes where it lies, but for `axis`: dimensions of the updates and steps of y,
     * innermost first. `length`: of y along the axis. */
    int rank, axis;
    int64_t length, dims[PASS_RANK], strides[PASS_RANK];
    pass_config config;
} scatter_pass;

int scatter_pass_fits(const scatter_pass *pass);
size_t scatter_pass_workspace(const scatter_pass *pass); /* bytes, at a multiple of 16 */
int scatter_pass_launch(const scatter_pass *pass, const void *x, const void *indices, const void *updates, void *y,
                        void *workspace, void *stream);

/* --- nonzero_pass: the places of what is not zero, in order --- */

/* y is int64, [rank][count], zeros behind the last place; dimensions outermost first. */
typedef struct nonzero_pass {
    int type, rank;
    int64_t count, dims[PASS_RANK];
} nonzero_pass;

int nonzero_pass_fits(const nonzero_pass *pass);
size_t nonzero_pass_workspace(const nonzero_pass *pass); /* bytes, at a multiple of 16 */
int nonzero_pass_launch(const nonzero_pass *pass, const void *x, void *y, void *workspace, void *stream);

/* --- onehot_pass: y[o][k][i] = indices[o][i] == k --- */

typedef struct onehot_pass {
    int type, index_type; /* of y; int32, int64 */
    int64_t outer, depth, inner;
    pass_config config;
} onehot_pass;

int onehot_pass_fits(const onehot_pass *pass);
int onehot_pass_launch(const onehot_pass *pass, const void *indices, void *y, void *stream);

/* --- pad_pass: what lies beyond is a copy of what lies inside --- */

enum { PAD_REFLECT = 1, PAD_EDGE, PAD_WRAP };

/* Innermost first: dimensions of y, of x, and what stands before x. */
typedef struct pad_pass {
    int size, how, rank; /* size: bytes of an element: 1, 2, 4, 8 */
    int64_t dims[PASS_RANK], lengths[PASS_RANK], before[PASS_RANK];
    pass_config config;
} pad_pass;

int pad_pass_fits(const pad_pass *pass);
int pad_pass_launch(const pad_pass *pass, const void *x, void *y, void *stream);

#ifdef __cplusplus
}
#endif
