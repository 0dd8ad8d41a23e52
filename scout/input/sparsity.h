/* What the zeros of a weight are good for: how many there are, whether they come in a pattern that some kernel can
 * leave out, and what each pattern would keep. Pure: a matrix in memory, no device. */
#pragma once

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

/* The same of a matrix with zeros counted elsewhere: blocks and pieces with any number, those at the edge
 * included. Everything but the hash. */
typedef struct sparsity_counts {
    int64_t nonzeros, fewest, most, same_rows;
    int64_t blocks[SPARSITY_SIZES], pieces[SPARSITY_SIZES];
    bool two_of_four_by_row, two_of_four_by_col;
} sparsity_counts;
sparsity_facts sparsity_of_counts(const sparsity_counts *counts, int64_t rows, int64_t cols);

/* What becomes of a weight that is kept as square blocks, and those left out of which no number is as large in size as
 * the threshold. Numbers below it that share a block with a larger one stay. */
typedef struct sparsity_conversion {
    double threshold;
    double below;                /* fraction of all numbers that are zero, or smaller in size than the threshold */
    double work[SPARSITY_SIZES]; /* fraction of the dense product's that is left to do */
    double lost[SPARSITY_SIZES]; /* norm of what is left out, as a fraction of the weight's (Frobenius) */
    int largest;                 /* side of the largest blocks that save a tenth of the work; 0: none */
} sparsity_conversion;

/* Of a matrix whose facts are known; without a threshold they tell everything. False: no memory. */
bool sparsity_convert(const void *data, dtype type, const sparsity_facts *facts, double threshold,
                      sparsity_conversion *out);

/* Fraction of zeros among `count` numbers. */
double sparsity_zeros(const void *data, dtype type, size_t count);

/* Which numbers of a synthetic weight are kept: a pattern as above (BLOCK_SPARSE: blocks of so many a side) with a
 * fraction of zeros, the same for the same seed. Looked at is one cell of numbers that are decided together. */
typedef struct sparsity_made {
    bool two_of_four;
    int64_t high, wide; /* a cell */
    double zeros;
    uint64_t seed;
    int64_t row, col; /* where the cell begins that was looked at last */
    unsigned kept;    /* a bit for each column of it */
} sparsity_made;

extern const int sparsity_block; /* 64: the customary side */
sparsity_made sparsity_make(const char *pattern, double zeros, int block, uint64_t seed);
bool sparsity_keeps(sparsity_made *of, int64_t row, int64_t col);
