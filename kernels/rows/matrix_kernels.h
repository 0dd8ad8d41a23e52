/* Determinants and inverses of small matrices, as a plain C function; what kernels/pass/pass_kernels.h says of passes
 * holds here, too. */
#pragma once

#include "kernels/pass/pass_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MATRIX_PASS_MOST = 64 };

/* x [count, n, n]; y [count], or of inverses as x; fp32 or fp64, in which it computes. */
typedef struct matrix_pass {
    int inverts, type, n; /* n: at most MATRIX_PASS_MOST */
    int64_t count;
} matrix_pass;

int matrix_pass_fits(const matrix_pass *pass);
int matrix_pass_launch(const matrix_pass *pass, const void *x, void *y, void *stream);

#ifdef __cplusplus
}
#endif
