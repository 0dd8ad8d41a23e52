/* Looks at the zeros of a weight. Everything but the values of rows is told from one bit for each number. */
#include "scout/sparsity.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

const int sparsity_sizes[SPARSITY_SIZES] = {16, 32, 64, 128};
const double sparsity_worth = 0.7;

static const double filled = 0.5; /* of what is kept in blocks that are worth keeping as such */
enum { SYNTHETIC_BLOCK = 64, WORD = 64 };

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

typedef struct bits {
    uint64_t *words;
    int64_t rows, cols, width; /* width: words of a row; bits beyond the last column are 0 */
} bits;

static const uint64_t *row_bits(const bits *b, int64_t row) { return b->words + row * b->width; }

static bool make_bits(const unsigned char *data, int type, int64_t rows, int64_t cols, bits *b) {
    *b = (bits){.rows = rows, .cols = cols, .width = (cols + WORD - 1) / WORD};
    b->words = calloc((size_t)(rows * b->width), sizeof *b->words);
    for (int64_t r = 0; b->words && r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            if (!is_zero(data, type, (size_t)(r * cols + c)))
                b->words[r * b->width + c / WORD] |= (uint64_t)1 << c % WORD;
    return b->words != NULL;
}

/* Three or four of four. */
static uint64_t more_than_two(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return (a & b & (c | d)) | (c & d & (a | b));
}

static bool two_of_four_by_row(const bits *b) {
    for (int64_t k = 0; k < b->rows * b->width; k++) {
        const uint64_t w = b->words[k];
        if (more_than_two(w, w >> 1, w >> 2, w >> 3) & 0x1111111111111111u) return false;
    }
    return true;
}

static bool two_of_four_by_col(const bits *b) {
    static const uint64_t none = 0;
    for (int64_t r = 0; r < b->rows; r += 4)
        for (int64_t k = 0; k < b->width; k++) {
            uint64_t w[4];
            for (int64_t j = 0; j < 4; j++) w[j] = r + j < b->rows ? row_bits(b, r + j)[k] : none;
            if (more_than_two(w[0], w[1], w[2], w[3])) return false;
        }
    return true;
}

/* Of bands of `side` rows, pieces of `size` columns that hold any number: as a fraction of all. */
static double occupied(const bits *b, int64_t side, int64_t size, uint64_t *band) {
    int64_t found = 0, all = 0;
    for (int64_t r = 0; r < b->rows; r += side) {
        memset(band, 0, (size_t)b->width * sizeof *band);
        for (int64_t j = r; j < r + side && j < b->rows; j++)
            for (int64_t k = 0; k < b->width; k++) band[k] |= row_bits(b, j)[k];
        for (int64_t c = 0; c < b->cols; c += size, all++) {
            uint64_t any = band[c / WORD] >> c % WORD;
            if (size < WORD) any &= ((uint64_t)1 << size) - 1;
            for (int64_t k = c / WORD + 1; k < b->width && k < (c + size) / WORD; k++) any |= band[k];
            found += any != 0;
        }
    }
    return all ? (double)found / (double)all : 0;
}

static void count_rows(const bits *b, sparsity_facts *out) {
    out->fewest = b->cols;
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t count = 0;
        for (int64_t k = 0; k < b->width; k++) count += __builtin_popcountll(row_bits(b, r)[k]);
        out->nonzeros += count;
        if (count < out->fewest) out->fewest = count;
        if (count > out->most) out->most = count;
    }
    out->zeros = 1 - (double)out->nonzeros / ((double)b->rows * (double)b->cols);
}

/* --- rows that are alike --- */

static int by_hash(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool count_same(const unsigned char *data, size_t row_bytes, int64_t rows, int64_t *same) {
    uint64_t *hashes = malloc((size_t)rows * sizeof *hashes);
    if (!hashes) return false;
    for (int64_t r = 0; r < rows; r++) hashes[r] = XXH3_64bits(data + (size_t)r * row_bytes, row_bytes);
    qsort(hashes, (size_t)rows, sizeof *hashes, by_hash);
    *same = 0;
    for (int64_t r = 1; r < rows; r++) *same += hashes[r] == hashes[r - 1];
    free(hashes);
    return true;
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

bool sparsity_analyse(const void *data, dtype type, int64_t rows, int64_t cols, sparsity_facts *out) {
    const int row = row_of(type);
    bits b;
    *out = (sparsity_facts){.rows = rows, .cols = cols, .pattern = "DENSE"};
    if (row < 0 || rows < 1 || cols < 1) return true;
    uint64_t *band = calloc((size_t)((cols + WORD - 1) / WORD), sizeof *band);
    bool good = make_bits(data, row, rows, cols, &b) && band;
    if (good) {
        count_rows(&b, out);
        out->two_of_four_by_row = two_of_four_by_row(&b);
        out->two_of_four_by_col = two_of_four_by_col(&b);
        for (int k = 0; k < SPARSITY_SIZES; k++) {
            out->blocks[k] = occupied(&b, sparsity_sizes[k], sparsity_sizes[k], band);
            out->pieces[k] = occupied(&b, 1, sparsity_sizes[k], band);
        }
        out->hash = XXH3_64bits(b.words, (size_t)(rows * b.width) * sizeof *b.words);
        good = count_same(data, (size_t)cols * (size_t)known[row].bytes, rows, &out->same_rows);
        decide(out);
    }
    free(b.words);
    free(band);
    return good;
}

/* --- synthetic ones --- */

static uint64_t mixed(uint64_t seed, int64_t a, int64_t b) {
    const int64_t place[2] = {a, b};
    return XXH3_64bits_withSeed(place, sizeof place, seed);
}

bool sparsity_keeps(const char *pattern, double zeros, int64_t row, int64_t col, uint64_t seed) {
    static const uint8_t pairs[6] = {0x3, 0x5, 0x6, 0x9, 0xa, 0xc}; /* two of four */
    const bool blocks = strcmp(pattern, "BLOCK_SPARSE") == 0;
    if (strcmp(pattern, "STRUCTURED_24") == 0) return pairs[mixed(seed, row, col / 4) % 6] >> col % 4 & 1;
    const int64_t side = blocks ? SYNTHETIC_BLOCK : 1;
    return (double)(mixed(seed, row / side, col / side) >> 11) * 0x1p-53 >= zeros;
}
