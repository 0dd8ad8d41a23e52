/* What converting a weight to blocks would save and lose. Everything is told from tiles of 16 by 16: what of them is
 * large enough to stay, and the squares that would be lost; four tiles make the next size. */
#include "scout/input/sparsity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double saved = 0.1; /* of the work, for a conversion to be worth it */
enum { TILE = 16 };

/* How a number's size is read: its bits but the sign, moved to where a float has them, times what the smaller
 * exponent is short of. Whole numbers have no shift. */
static const struct size_row {
    dtype type;
    int bytes, shift; /* shift -1: a whole number */
    uint32_t bits;
    float scale;
} sizes[] = {
    {DTYPE_FP32, 4, 0, 0x7fffffff, 1}, {DTYPE_FP16, 2, 13, 0x7fff, 0x1p112f},
    {DTYPE_BF16, 2, 16, 0x7fff, 1},    {DTYPE_INT8, 1, -1, 0, 1},
    {DTYPE_UINT8, 1, -1, 0, 1},        {DTYPE_FP8E4M3FN, 1, 20, 0x7f, 0x1p120f},
};

static const struct size_row *row_of(dtype type) {
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (sizes[k].type == type) return &sizes[k];
    return NULL;
}

static float as_float(uint32_t bits, float scale) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x * scale;
}

/* Sizes of a row's numbers. */
static void read_sizes(const struct size_row *r, const unsigned char *from, int64_t count, float *to) {
    if (r->shift < 0) {
        for (int64_t k = 0; k < count; k++)
            to[k] = r->type == DTYPE_INT8 ? fabsf((float)(int8_t)from[k]) : (float)from[k];
    } else if (r->bytes == 1) {
        for (int64_t k = 0; k < count; k++) to[k] = as_float((from[k] & r->bits) << r->shift, r->scale);
    } else if (r->bytes == 2) {
        for (int64_t k = 0; k < count; k++) {
            uint16_t x;
            memcpy(&x, from + 2 * k, sizeof x);
            to[k] = as_float((x & r->bits) << r->shift, r->scale);
        }
    } else {
        for (int64_t k = 0; k < count; k++) {
            uint32_t x;
            memcpy(&x, from + 4 * k, sizeof x);
            to[k] = as_float(x & r->bits, r->scale);
        }
    }
}

/* Tiles of one size. */
typedef struct tiles {
    int64_t down, across;
    double *squares;
    uint8_t *stays;
} tiles;

/* A not-a-number stays: its value is unknown. */
static int64_t add_row(const float *row, int64_t cols, double threshold, double *squares, uint8_t *stays) {
    const float limit = (float)threshold;
    int64_t below = 0;
    for (int64_t c = 0; c < cols; c += TILE) {
        const int64_t end = c + TILE < cols ? c + TILE : cols;
        float sum = 0;
        int small = 0;
        for (int64_t k = c; k < end; k++) {
            sum += row[k] * row[k];
            small += row[k] < limit || row[k] == 0;
        }
        squares[c / TILE] += (double)sum;
        stays[c / TILE] |= small < end - c;
        below += small;
    }
    return below;
}

/* Two by two become one, in place: nothing is read after it was written over. */
static void merge(tiles *t) {
    const int64_t down = (t->down + 1) / 2, across = (t->across + 1) / 2;
    for (int64_t r = 0; r < down; r++)
        for (int64_t c = 0; c < across; c++) {
            double squares = 0;
            uint8_t stays = 0;
            for (int64_t i = 2 * r; i < 2 * r + 2 && i < t->down; i++)
                for (int64_t j = 2 * c; j < 2 * c + 2 && j < t->across; j++) {
                    squares += t->squares[i * t->across + j];
                    stays |= t->stays[i * t->across + j];
                }
            t->squares[r * across + c] = squares;
            t->stays[r * across + c] = stays;
        }
    t->down = down, t->across = across;
}

static void note_work(int size, double work, sparsity_conversion *out) {
    out->work[size] = work;
    if (work <= 1 - saved) out->largest = sparsity_sizes[size];
}

static void judge(const tiles *t, int size, sparsity_conversion *out) {
    double kept = 0, lost = 0, all = 0;
    for (int64_t k = 0; k < t->down * t->across; k++) {
        kept += t->stays[k];
        all += t->squares[k];
        if (!t->stays[k]) lost += t->squares[k];
    }
    out->lost[size] = all > 0 && isfinite(all) ? sqrt(lost / all) : 0;
    note_work(size, kept / ((double)t->down * (double)t->across), out);
}

bool sparsity_convert(const void *data, dtype type, const sparsity_facts *facts, double threshold,
                      sparsity_conversion *out) {
    const struct size_row *const r = row_of(type);
    const int64_t rows = facts->rows, cols = facts->cols;
    *out = (sparsity_conversion){.threshold = threshold, .below = facts->zeros};
    for (int k = 0; k < SPARSITY_SIZES; k++) note_work(k, facts->blocks[k], out);
    if (!r || rows < 1 || cols < 1 || !(threshold > 0)) return true;
    out->largest = 0;
    tiles t = {(rows + TILE - 1) / TILE, (cols + TILE - 1) / TILE, NULL, NULL};
    float *const row = malloc((size_t)cols * sizeof *row);
    t.squares = calloc((size_t)(t.down * t.across), sizeof *t.squares);
    t.stays = calloc((size_t)(t.down * t.across), sizeof *t.stays);
    const bool good = row && t.squares && t.stays;
    if (good) {
        int64_t below = 0;
        for (int64_t k = 0; k < rows; k++) {
            read_sizes(r, (const unsigned char *)data + (size_t)k * (size_t)cols * (size_t)r->bytes, cols, row);
            below += add_row(row, cols, threshold, t.squares + k / TILE * t.across, t.stays + k / TILE * t.across);
        }
        out->below = (double)below / ((double)rows * (double)cols);
        for (int k = 0; k < SPARSITY_SIZES; k++) {
            judge(&t, k, out);
            merge(&t);
        }
    }
    free(row);
    free(t.squares);
    free(t.stays);
    return good;
}
