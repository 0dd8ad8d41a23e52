/* Looks at the zeros of a weight, in one pass over its rows. Everything but whether rows are alike is told from one bit
 * for each number. */
#include "scout/input/sparsity.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const int sparsity_sizes[SPARSITY_SIZES] = {16, 32, 64, 128};
const double sparsity_worth = 0.7;
const int sparsity_block = 64;

static const double filled = 0.5; /* of what is kept in blocks that are worth keeping as such */
enum { WORD = 64 };

/* --- numbers --- */

/* All bits but the sign: a zero of either sign is none. */
static const struct {
    dtype type;
    int bytes;
    uint32_t bits;
} known[] = {{DTYPE_FP32, 4, 0x7fffffff}, {DTYPE_FP16, 2, 0x7fff}, {DTYPE_BF16, 2, 0x7fff},
             {DTYPE_INT8, 1, 0xff},       {DTYPE_UINT8, 1, 0xff},  {DTYPE_FP8E4M3FN, 1, 0x7f}};

static int row_of(dtype type) {
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        if (known[k].type == type) return (int)k;
    return -1;
}

bool sparsity_knows(dtype type) { return row_of(type) >= 0; }

static bool is_zero(const unsigned char *data, int row, size_t at) {
    uint32_t x = 0;
    memcpy(&x, data + at * (size_t)known[row].bytes, (size_t)known[row].bytes);
    return (x & known[row].bits) == 0;
}

double sparsity_zeros(const void *data, dtype type, size_t count) {
    const int row = row_of(type);
    size_t zeros = 0;
    for (size_t k = 0; row >= 0 && k < count; k++) zeros += is_zero(data, row, k);
    return count ? (double)zeros / (double)count : 0;
}

/* --- bits: set where a number is not zero --- */

/* Eight flags of a byte each become eight bits: every product of the multiplication lands on a place of its own. */
static uint64_t pack_flags(const uint8_t flags[WORD]) {
    uint64_t word = 0;
    for (int g = 0; g < WORD / 8; g++) {
        uint64_t eight;
        memcpy(&eight, flags + 8 * g, sizeof eight);
        word |= (eight * 0x0102040810204080u) >> 56 << 8 * g;
    }
    return word;
}

/* Loops of one length without branches, which compilers turn into vectors. */
#define FLAGS(name, type)                                                                                              \
    static uint64_t name(const unsigned char *data, uint32_t bits) {                                                   \
        uint8_t flags[WORD];                                                                                           \
        for (int k = 0; k < WORD; k++) {                                                                               \
            type x;                                                                                                    \
            memcpy(&x, data + (size_t)k * sizeof x, sizeof x);                                                         \
            flags[k] = (x & (type)bits) != 0;                                                                          \
        }                                                                                                              \
        return pack_flags(flags);                                                                                      \
    }
FLAGS(flags_1, uint8_t)
FLAGS(flags_2, uint16_t)
FLAGS(flags_4, uint32_t)

/* Bits beyond the last column are 0. */
static void row_bits(const unsigned char *data, int row, int64_t cols, uint64_t *to) {
    const size_t bytes = (size_t)known[row].bytes;
    uint64_t (*const flags)(const unsigned char *, uint32_t) = bytes == 1 ? flags_1 : bytes == 2 ? flags_2 : flags_4;
    const int64_t whole = cols / WORD;
    for (int64_t k = 0; k < whole; k++) to[k] = flags(data + (size_t)(k * WORD) * bytes, known[row].bits);
    if (cols % WORD) to[whole] = 0;
    for (int64_t c = whole * WORD; c < cols; c++) to[whole] |= (uint64_t)!is_zero(data, row, (size_t)c) << c % WORD;
}

/* Three or four of four. */
static bool more_than_two_beside(uint64_t w) {
    const uint64_t a = w, b = w >> 1, c = w >> 2, d = w >> 3;
    return (((a & b & (c | d)) | (c & d & (a | b))) & 0x1111111111111111u) != 0;
}

/* --- one pass over the rows, which looks at everything while a row is at hand --- */

typedef struct scan {
    int64_t width;                  /* words of a row of bits */
    uint64_t *row;                  /* of the row at hand; all that follows is as long */
    uint64_t *once, *twice;         /* of the four rows at hand: columns with one number, with two */
    uint64_t *band[SPARSITY_SIZES]; /* columns with any number, of the 16, 32, 64, 128 rows at hand */
    uint64_t *hashes;               /* of rows */
    XXH3_state_t *state;            /* hash of all bits */
    sparsity_counts counts;
} scan;

static void *lay_out(scan *s, int64_t rows, int64_t cols) {
    s->width = (cols + WORD - 1) / WORD;
    uint64_t *const all = calloc((size_t)((3 + SPARSITY_SIZES) * s->width + rows), sizeof *all);
    s->row = all, s->once = all + s->width, s->twice = all + 2 * s->width;
    for (int k = 0; k < SPARSITY_SIZES; k++) s->band[k] = all + (3 + k) * s->width;
    s->hashes = all + (3 + SPARSITY_SIZES) * s->width;
    return all;
}

/* Pieces of 16, 32, 64 and 128 columns that hold any number: into count[0], where `count` has room for one size, that
 * size alone. */
static void count_pieces(const uint64_t *bits, int64_t width, int first, int last, int64_t count[SPARSITY_SIZES]) {
    for (int64_t k = 0; k < width; k++) {
        uint64_t w = bits[k];
        for (int step = 8; step > 0; step /= 2) w |= w >> step;
        const uint64_t pair = w | w >> 16;
        if (first <= 0 && last >= 0) count[0] += __builtin_popcountll(w & 0x0001000100010001u);
        if (first <= 1 && last >= 1) count[1] += __builtin_popcountll(pair & 0x0000000100000001u);
        if (first <= 2 && last >= 2) count[2] += bits[k] != 0;
        if (first <= 3 && last >= 3 && k % 2 == 0) count[3] += (bits[k] | (k + 1 < width ? bits[k + 1] : 0)) != 0;
    }
}

/* A band that is complete is counted, and becomes part of the one that is twice as high. */
static void close_bands(scan *s, int64_t rows_done, bool end) {
    for (int k = 0; k < SPARSITY_SIZES && (end || rows_done % sparsity_sizes[k] == 0); k++) {
        count_pieces(s->band[k], s->width, k, k, s->counts.blocks);
        for (int64_t at = 0; k + 1 < SPARSITY_SIZES && at < s->width; at++) s->band[k + 1][at] |= s->band[k][at];
        memset(s->band[k], 0, (size_t)s->width * sizeof *s->band[k]);
    }
}

static void look_at_row(scan *s, int64_t r) {
    sparsity_counts *const f = &s->counts;
    int64_t count = 0;
    uint64_t beside = 0, below = 0;
    if (r % 4 == 0) memset(s->once, 0, 2 * (size_t)s->width * sizeof *s->once); /* and `twice` behind it */
    for (int64_t k = 0; k < s->width; k++) {
        const uint64_t w = s->row[k];
        count += __builtin_popcountll(w);
        beside |= more_than_two_beside(w);
        below |= s->twice[k] & w;
        s->twice[k] |= s->once[k] & w;
        s->once[k] |= w;
        s->band[0][k] |= w;
    }
    f->nonzeros += count;
    if (count < f->fewest) f->fewest = count;
    if (count > f->most) f->most = count;
    if (beside) f->two_of_four_by_row = false;
    if (below) f->two_of_four_by_col = false;
}

static void scan_rows(scan *s, const unsigned char *data, int type, int64_t rows, int64_t cols) {
    const size_t bytes = (size_t)cols * (size_t)known[type].bytes;
    s->counts = (sparsity_counts){.fewest = cols, .two_of_four_by_row = true, .two_of_four_by_col = true};
    XXH3_64bits_reset(s->state);
    for (int64_t r = 0; r < rows; r++) {
        const unsigned char *const row = data + (size_t)r * bytes;
        row_bits(row, type, cols, s->row);
        look_at_row(s, r);
        count_pieces(s->row, s->width, 0, SPARSITY_SIZES - 1, s->counts.pieces);
        close_bands(s, r + 1, r + 1 == rows);
        XXH3_64bits_update(s->state, s->row, (size_t)s->width * sizeof *s->row);
        s->hashes[r] = XXH3_64bits(row, bytes);
    }
}

/* --- rows that are alike --- */

static int by_hash(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int64_t count_same(uint64_t *hashes, int64_t rows) {
    int64_t same = 0;
    qsort(hashes, (size_t)rows, sizeof *hashes, by_hash);
    for (int64_t r = 1; r < rows; r++) same += hashes[r] == hashes[r - 1];
    return same;
}

/* --- what it is good for --- */

static void decide(sparsity_facts *f) {
    const double kept = 1 - f->zeros;
    f->block = 0;
    for (int k = 0; k < SPARSITY_SIZES; k++)
        if (kept > 0 && f->blocks[k] < 1 && kept >= filled * f->blocks[k]) f->block = sparsity_sizes[k];
    const bool half = f->two_of_four_by_row || f->two_of_four_by_col;
    if (f->zeros > sparsity_worth)
        f->pattern = f->block ? "BLOCK_SPARSE" : "UNSTRUCTURED";
    else
        f->pattern = half ? "STRUCTURED_24" : "DENSE";
}

sparsity_facts sparsity_of_counts(const sparsity_counts *counts, int64_t rows, int64_t cols) {
    sparsity_facts f = {.rows = rows,
                        .cols = cols,
                        .nonzeros = counts->nonzeros,
                        .two_of_four_by_row = counts->two_of_four_by_row,
                        .two_of_four_by_col = counts->two_of_four_by_col,
                        .fewest = counts->fewest,
                        .most = counts->most,
                        .same_rows = counts->same_rows};
    f.zeros = 1 - (double)f.nonzeros / ((double)rows * (double)cols);
    for (int k = 0; k < SPARSITY_SIZES; k++) {
        const int64_t side = sparsity_sizes[k], across = (cols + side - 1) / side, down = (rows + side - 1) / side;
        f.blocks[k] = (double)counts->blocks[k] / ((double)across * (double)down);
        f.pieces[k] = (double)counts->pieces[k] / ((double)across * (double)rows);
    }
    decide(&f);
    return f;
}

bool sparsity_analyse(const void *data, dtype type, int64_t rows, int64_t cols, sparsity_facts *out) {
    const int row = row_of(type);
    scan s = {.state = NULL};
    *out = (sparsity_facts){.rows = rows, .cols = cols, .pattern = "DENSE"};
    if (row < 0 || rows < 1 || cols < 1) return true;
    void *const all = lay_out(&s, rows, cols);
    s.state = XXH3_createState();
    const bool good = all && s.state;
    if (good) {
        scan_rows(&s, data, row, rows, cols);
        s.counts.same_rows = count_same(s.hashes, rows);
        *out = sparsity_of_counts(&s.counts, rows, cols);
        out->hash = XXH3_64bits_digest(s.state);
    }
    XXH3_freeState(s.state);
    free(all);
    return good;
}

/* --- synthetic ones --- */

static uint64_t mixed(uint64_t seed, int64_t a, int64_t b) {
    const int64_t place[2] = {a, b};
    return XXH3_64bits_withSeed(place, sizeof place, seed);
}

sparsity_made sparsity_make(const char *pattern, double zeros, int block, uint64_t seed) {
    const bool two_of_four = strcmp(pattern, "STRUCTURED_24") == 0;
    const int64_t side = strcmp(pattern, "BLOCK_SPARSE") == 0 ? block : 1;
    return (sparsity_made){.two_of_four = two_of_four,
                           .high = side,
                           .wide = two_of_four ? 4 : side,
                           .zeros = zeros,
                           .seed = seed,
                           .row = -1,
                           .col = -1};
}

static void look(sparsity_made *of, int64_t row, int64_t col) {
    static const uint8_t pairs[6] = {0x3, 0x5, 0x6, 0x9, 0xa, 0xc}; /* two of four */
    const int64_t down = row / of->high, across = col / of->wide;
    const uint64_t drawn = mixed(of->seed, down, across);
    of->row = down * of->high;
    of->col = across * of->wide;
    of->kept = of->two_of_four ? pairs[drawn % 6] : (double)(drawn >> 11) * 0x1p-53 >= of->zeros;
}

bool sparsity_keeps(sparsity_made *of, int64_t row, int64_t col) {
    const bool here =
        of->row >= 0 && row >= of->row && row < of->row + of->high && col >= of->col && col < of->col + of->wide;
    if (!here) look(of, row, col);
    return of->two_of_four ? of->kept >> (col - of->col) & 1 : of->kept != 0;
}
