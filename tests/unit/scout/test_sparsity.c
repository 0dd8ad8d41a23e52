/* The zeros of weights: matrices whose patterns are known by construction, and what is said of them. */
#include "scout/input/sparsity.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLS = 384 };
static uint16_t weight[ROWS * COLS];

static void make(const char *pattern, double zeros, uint64_t seed) {
    sparsity_made made = sparsity_make(pattern ? pattern : "UNSTRUCTURED", zeros, 64, seed);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++)
            weight[r * COLS + c] = sparsity_keeps(&made, r, c) ? (uint16_t)(0x3c00 + r + c) : (uint16_t)0x8000;
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
    sparsity_made made = sparsity_make("STRUCTURED_24", 0.5, 64, 9);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t c = 0; c < COLS; c++) weight[r * COLS + c] = sparsity_keeps(&made, c, r) ? 0x4000 : 0;
    f = look();
    UNIT_CHECK(f.two_of_four_by_col && !f.two_of_four_by_row);
    UNIT_TEXT(f.pattern, "STRUCTURED_24");
}

static void blocks_are_found(void) {
    make("BLOCK_SPARSE", 0.8, 3);
    const sparsity_facts f = look();
    sparsity_made made = sparsity_make("BLOCK_SPARSE", 0.8, 64, 3);
    int64_t kept = 0;
    for (int64_t r = 0; r < ROWS; r += 64)
        for (int64_t c = 0; c < COLS; c += 64) kept += sparsity_keeps(&made, r, c);
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

static sparsity_conversion convert(double threshold) {
    const sparsity_facts f = look();
    sparsity_conversion c;
    UNIT_CHECK(sparsity_convert(weight, DTYPE_FP16, &f, threshold, &c));
    return c;
}

/* One number of 2 in a block of 64, 0.5 in another one, and zeros. */
static void conversion_saves_and_loses(void) {
    memset(weight, 0, sizeof weight);
    weight[3 * COLS + 5] = 0x4000;
    weight[70 * COLS + 130] = 0xb800;
    sparsity_conversion c = convert(0);
    const double blocks = (ROWS / 64.0) * (COLS / 64.0);
    UNIT_CHECK(c.threshold == 0 && c.largest == 128 && fabs(c.work[2] - 2 / blocks) < 1e-12 && c.lost[2] == 0);
    c = convert(0.5); /* what is as large stays */
    UNIT_CHECK(fabs(c.work[2] - 2 / blocks) < 1e-12 && c.lost[0] == 0);
    UNIT_CHECK(fabs(c.below - (1 - 2.0 / (ROWS * COLS))) < 1e-12);
    c = convert(0.51);
    UNIT_CHECK(fabs(c.work[2] - 1 / blocks) < 1e-12 && fabs(c.work[0] - 1 / (16 * blocks)) < 1e-12);
    for (int k = 0; k < SPARSITY_SIZES; k++) UNIT_CHECK(fabs(c.lost[k] - sqrt(0.25 / 4.25)) < 1e-6);
    weight[3 * COLS + 6] = 0xb800; /* beside the large one: it is not lost */
    c = convert(0.51);
    UNIT_CHECK(fabs(c.lost[0] - sqrt(0.25 / 4.5)) < 1e-6 && fabs(c.below - (1 - 1.0 / (ROWS * COLS))) < 1e-12);
    c = convert(3);
    UNIT_CHECK(c.work[3] == 0 && fabs(c.lost[3] - 1) < 1e-6);
    make(NULL, 0, 0);
    c = convert(0);
    UNIT_CHECK(c.largest == 0 && c.work[0] == 1);
}

/* The size of a number in every type, told by a threshold just above it and just below. */
static void sizes_are_read(void) {
    static const float single = -0.75f;
    static const uint16_t half = 0x0001, brain = 0xbf40;
    static const int8_t whole = -128;
    static const uint8_t byte = 200, fp8 = 0x83; /* fp8: -3 * 2^-9 */
    static const struct {
        const void *data;
        dtype type;
        double size;
    } rows[] = {{&single, DTYPE_FP32, 0.75}, {&half, DTYPE_FP16, 0x1p-24}, {&brain, DTYPE_BF16, 0.75},
                {&whole, DTYPE_INT8, 128},   {&byte, DTYPE_UINT8, 200},    {&fp8, DTYPE_FP8E4M3FN, 3 * 0x1p-9}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        sparsity_facts f;
        sparsity_conversion c;
        UNIT_CHECK(sparsity_analyse(rows[k].data, rows[k].type, 1, 1, &f) && f.nonzeros == 1);
        UNIT_CHECK(sparsity_convert(rows[k].data, rows[k].type, &f, rows[k].size, &c) && c.below == 0);
        UNIT_CHECK(sparsity_convert(rows[k].data, rows[k].type, &f, 1.01 * rows[k].size, &c) && c.below == 1);
    }
    sparsity_facts f;
    sparsity_conversion c;
    static const uint32_t strange[2] = {0x7fc00000, 0}; /* not a number: it stays */
    UNIT_CHECK(sparsity_analyse(strange, DTYPE_FP32, 1, 2, &f) && sparsity_convert(strange, DTYPE_FP32, &f, 9, &c));
    UNIT_CHECK(c.below == 0.5 && c.work[0] == 1 && c.lost[0] == 0);
}

/* In whatever order it is asked. */
static void a_number_is_kept_or_not(void) {
    static const char *const patterns[] = {"UNSTRUCTURED", "BLOCK_SPARSE", "STRUCTURED_24"};
    for (int k = 0; k < 3; k++) {
        sparsity_made in_order = sparsity_make(patterns[k], 0.5, 16, 11);
        int unlike = 0, kept = 0;
        for (int64_t at = 0; at < ROWS * COLS; at++) {
            const int64_t place = at * 7919 % (ROWS * COLS);
            sparsity_made anew = sparsity_make(patterns[k], 0.5, 16, 11);
            const bool is = sparsity_keeps(&in_order, place / COLS, place % COLS);
            unlike += is != sparsity_keeps(&anew, place / COLS, place % COLS);
            kept += is;
        }
        UNIT_INT(unlike, 0);
        UNIT_CHECK(kept > 0.4 * ROWS * COLS && kept < 0.6 * ROWS * COLS);
    }
}

/* Against counting one number after another, over sides that are no multiples of anything. */
static void everything_is_counted(void) {
    static const int64_t sides[][2] = {{1, 1},   {1, 200},   {7, 63},    {17, 64},
                                       {65, 65}, {127, 129}, {129, 383}, {200, 130}};
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++) {
        const int64_t rows = sides[s][0], cols = sides[s][1];
        sparsity_made made = sparsity_make("BLOCK_SPARSE", 0.9, 4, s);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                weight[r * cols + c] = sparsity_keeps(&made, r, c) ? (uint16_t)(r % 5 + 1) : 0;
        sparsity_facts f;
        UNIT_CHECK(sparsity_analyse(weight, DTYPE_BF16, rows, cols, &f));
        int64_t all = 0;
        for (int64_t k = 0; k < rows * cols; k++) all += weight[k] != 0;
        UNIT_CHECK(f.nonzeros == all);
        for (int k = 0; k < SPARSITY_SIZES; k++) {
            const int64_t side = sparsity_sizes[k];
            int64_t blocks = 0, kept = 0, pieces = 0, full = 0;
            for (int64_t r = 0; r < rows; r += side)
                for (int64_t c = 0; c < cols; c += side, blocks++) {
                    bool any = false;
                    for (int64_t i = r; i < r + side && i < rows; i++) {
                        bool piece = false;
                        for (int64_t j = c; j < c + side && j < cols; j++) piece |= weight[i * cols + j] != 0;
                        any |= piece, full += piece, pieces++;
                    }
                    kept += any;
                }
            UNIT_CHECK(fabs(f.blocks[k] - (double)kept / (double)blocks) < 1e-12);
            UNIT_CHECK(fabs(f.pieces[k] - (double)full / (double)pieces) < 1e-12);
        }
    }
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
    UNIT_RUN(conversion_saves_and_loses);
    UNIT_RUN(sizes_are_read);
    UNIT_RUN(a_number_is_kept_or_not);
    UNIT_RUN(everything_is_counted);
    UNIT_RUN(other_types);
    return unit_end();
}
