/* What the zeros of a matrix come to, counted on the device: one pass over the numbers, which leaves a bit for each,
 * and one over the bits. */
#ifndef KERNELS_HARNESS_SPARSITY_SCAN_H
#define KERNELS_HARNESS_SPARSITY_SCAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPARSITY_SCAN_SIZES = 4 }; /* 16, 32, 64, 128 */

/* On the device, zeroed before. */
typedef struct sparsity_scan_counts {
    unsigned long long blocks[SPARSITY_SCAN_SIZES]; /* square ones with any number */
    unsigned long long pieces[SPARSITY_SCAN_SIZES]; /* of rows, with any number */
    unsigned long long by_row, by_col;              /* how often more than two of four neighbours are numbers */
} sparsity_scan_counts;

/* Bytes of the bits, on 16 bytes. */
size_t sparsity_scan_bytes(int64_t rows, int64_t cols);

/* A dense matrix of elements of 1, 2 or 4 bytes, which are numbers where any of `bits` is set. For each row: how many
 * numbers it has, and a hash of all its bytes. Only enqueues; returns a cudaError_t. */
int sparsity_scan(const void *data, int element, uint32_t bits, int64_t rows, int64_t cols, void *scratch,
                  int32_t *row_counts, unsigned long long *row_hashes, sparsity_scan_counts *counts, void *stream);

#ifdef __cplusplus
}
#endif

#endif
