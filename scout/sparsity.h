/* What the zeros of a weight are good for: how many there are, whether they come in a pattern that some kernel can
 * leave out, and what each pattern would keep. Pure: a matrix in memory, no device. */
#ifndef SCOUT_SPARSITY_H
#define SCOUT_SPARSITY_H

#include "common/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sides of square blocks, and lengths of pieces of a row, that are looked at. */
enum { SPARSITY_SIZES = 4 };
extern const int sparsity_sizes[SPARSITY_SIZES]; /* 16, 32, 64, 128 */

/* From so many zeros on, sparse candidates are worth measuring. */
extern const double sparsity_worth; /* 0.7 */

typedef struct sparsity_facts {
    int64_t rows, cols; /* as stored */
    int64_t nonzeros;
    double zeros;            /* fraction */
    bool two_of_four_by_row; /* of each four neighbours in a row at most two are not zero; */
    bool two_of_four_by_col; /* the same down the columns */
    double
        blocks[SPARSITY_SIZES]; /* of all blocks, the fraction that is not all zeros; those at the edge count whole */
    double pieces[SPARSITY_SIZES]; /* the same of 1xN pieces of rows */
    int64_t fewest, most;          /* nonzeros of a row */
    int64_t same_rows;             /* rows that are equal to an earlier one */
    int block;                     /* side of the largest blocks at least half of whose numbers are no zeros; 0: none */
    const char *pattern;           /* DENSE, BLOCK_SPARSE, STRUCTURED_24, UNSTRUCTURED */
    uint64_t hash;                 /* of which numbers are zero */
} sparsity_facts;

/* A dense matrix in row order of a type whose zeros are known (sparsity_knows). False: no memory. */
bool sparsity_analyse(const void *data, dtype type, int64_t rows, int64_t cols, sparsity_facts *out);
bool sparsity_knows(dtype type);

/* Fraction of zeros among `count` numbers. */
double sparsity_zeros(const void *data, dtype type, size_t count);

/* Whether each number of a synthetic weight is kept: `pattern` as above (BLOCK_SPARSE: blocks of 64), a fraction of
 * zeros, the same for the same seed. */
bool sparsity_keeps(const char *pattern, double zeros, int64_t row, int64_t col, uint64_t seed);

#endif
