/* The zeros of weights: matrices whose patterns are known by construction, and what is said of them. */
#include "scout/sparsity.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLS = 384 };
static uint16_t weight[ROWS * COLS];

static void make(const char *pattern, double zeros, uint64_t seed) {
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++)
            weight[r * COLS + c] =
                !pattern || sparsity_keeps(pattern, zeros, r, c, seed) ? (uint16_t)(0x3c00 + r + c) : (uint16_t)0x8000;
}

static sparsity_facts look(void) {
    sparsity_facts f;
    UNIT_CHECK(sparsity_analyse(weight, DTYPE_FP16, ROWS, COLS, &f));
    return f;
}

static void dense_is_dense(void) {
    make(NULL, 0, 0);
    const sparsity_facts f = look();
    UNIT_TEXT(f.pattern, "DENSE");
    UNIT_CHECK(f.zeros == 0 && f.nonzeros == ROWS * COLS && f.block == 0 && f.fewest == COLS && f.most == COLS);
    UNIT_CHECK(!f.two_of_four_by_row && !f.two_of_four_by_col && f.same_rows == 0);
    for (int k = 0; k < SPARSITY_SIZES; k++) UNIT_CHECK(f.blocks[k] == 1 && f.pieces[k] == 1);
}

static void scattered_zeros_make_no_blocks(void) {
    make("UNSTRUCTURED", 0.9, 5);
    const sparsity_facts f = look();
    UNIT_TEXT(f.pattern, "UNSTRUCTURED");
    UNIT_CHECK(fabs(f.zeros - 0.9) < 0.01 && f.block == 0 && f.blocks[0] > 0.99 && !f.two_of_four_by_row);
    UNIT_CHECK(f.fewest < f.most && fabs((double)f.nonzeros / (ROWS * COLS) - (1 - f.zeros)) < 1e-12);
    UNIT_CHECK(fabs(f.pieces[0] - (1 - pow(0.9, 16))) < 0.02);
}

static void half_of_each_four(void) {
    make("STRUCTURED_24", 0.5, 7);
    sparsity_facts f = look();
    UNIT_TEXT(f.pattern, "STRUCTURED_24");
    UNIT_CHECK(f.zeros == 0.5 && f.two_of_four_by_row && !f.two_of_four_by_col);
    weight[17 * COLS + 40] = weight[17 * COLS + 41] = weight[17 * COLS + 43] = 1; /* three of four, in one place */
    UNIT_TEXT(look().pattern, "DENSE");
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++)
            weight[r * COLS + c] = sparsity_keeps("STRUCTURED_24", 0.5, c, r, 9) ? 0x4000 : 0;
    f = look();
    UNIT_CHECK(f.two_of_four_by_col && !f.two_of_four_by_row);
    UNIT_TEXT(f.pattern, "STRUCTURED_24");
}

static void blocks_are_found(void) {
    make("BLOCK_SPARSE", 0.8, 3);
    const sparsity_facts f = look();
    int64_t kept = 0;
    for (int64_t r = 0; r < ROWS; r += 64)
        for (int64_t c = 0; c < COLS; c += 64) kept += sparsity_keeps("BLOCK_SPARSE", 0.8, r, c, 3);
    const double part = (double)kept / (ROWS / 64.0) / (COLS / 64.0);
    UNIT_TEXT(f.pattern, "BLOCK_SPARSE");
    UNIT_CHECK(f.block >= 64 && fabs(f.blocks[0] - part) < 1e-12 && fabs(f.blocks[2] - part) < 1e-12);
    UNIT_CHECK(f.blocks[3] >= part && fabs(f.zeros - (1 - part)) < 1e-12 && fabs(f.pieces[2] - part) < 1e-12);
}

/* One number in the last corner of a matrix whose sides are no multiples of anything. */
static void edges_count(void) {
    static float odd[33 * 130];
    sparsity_facts f;
    memset(odd, 0, sizeof odd);
    odd[33 * 130 - 1] = -1;
    UNIT_CHECK(sparsity_analyse(odd, DTYPE_FP32, 33, 130, &f));
    UNIT_CHECK(f.nonzeros == 1 && f.fewest == 0 && f.most == 1 && f.same_rows == 31);
    UNIT_CHECK(fabs(f.blocks[0] - 1.0 / 27) < 1e-12 && fabs(f.blocks[3] - 1.0 / 2) < 1e-12);
    UNIT_CHECK(fabs(f.pieces[3] - 1.0 / 66) < 1e-12);
    UNIT_TEXT(f.pattern, "UNSTRUCTURED"); /* blocks would hold nothing but zeros */
    odd[0] = -0.0f;
    UNIT_CHECK(sparsity_zeros(odd, DTYPE_FP32, 33 * 130) == 1 - 1.0 / (33 * 130));
    memset(odd, 0, sizeof odd);
    UNIT_CHECK(sparsity_analyse(odd, DTYPE_FP32, 33, 130, &f) && f.zeros == 1 && f.block == 0);
}

/* One number that comes or goes changes what is remembered of the mask; a value that changes does not. */
static void the_mask_has_a_name(void) {
    make("UNSTRUCTURED", 0.5, 1);
    const uint64_t before = look().hash;
    weight[5] = weight[5] & 0x7fff ? 0x4123 : weight[5];
    UNIT_CHECK(look().hash == before);
    weight[ROWS * COLS - 1] ^= weight[ROWS * COLS - 1] & 0x7fff ? weight[ROWS * COLS - 1] : 0x3c00;
    UNIT_CHECK(look().hash != before);
}

static void other_types(void) {
    static const int8_t bytes[8] = {0, 0, 1, -1, 0, 0, 0, 0};
    sparsity_facts f;
    UNIT_CHECK(sparsity_analyse(bytes, DTYPE_INT8, 2, 4, &f) && f.nonzeros == 2 && f.two_of_four_by_row);
    UNIT_CHECK(!sparsity_knows(DTYPE_INT64) && sparsity_analyse(bytes, DTYPE_INT64, 1, 1, &f));
    UNIT_TEXT(f.pattern, "DENSE");
}

int main(void) {
    UNIT_RUN(dense_is_dense);
    UNIT_RUN(scattered_zeros_make_no_blocks);
    UNIT_RUN(half_of_each_four);
    UNIT_RUN(blocks_are_found);
    UNIT_RUN(edges_count);
    UNIT_RUN(the_mask_has_a_name);
    UNIT_RUN(other_types);
    return unit_end();
}
