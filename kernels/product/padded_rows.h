/* Changes the leading dimension of a matrix: rows padded with zeros so that each begins at 16 bytes, or packed densely
 * again. Self-contained: nothing of the program is needed to use it. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct padded_rows {
    int element;              /* bytes: 1, 2, 4 */
    int64_t rows, cols, ld;   /* of what is read; ld: elements from row to row */
    int64_t rows_to, cols_to; /* of what is written, rows behind each other: what there is not is 0, or left out */
} padded_rows;

/* Enqueues; 0 or a cudaError_t. `to` begins at 16 bytes. */
int padded_rows_launch(const padded_rows *p, const void *from, void *to, void *stream);

#ifdef __cplusplus
}
#endif
