/* Counting zeros on the CUDA device (cuda_device_zeros.c) against plain loops on the host. */
#include "tests/gpu/gpu_check.h"

static const int sides[4] = {16, 32, 64, 128};

typedef struct matrix {
    uint32_t type;
    int element;
    int64_t rows, cols;
    unsigned char *bytes;
} matrix;

/* A zero of either sign is none; whole numbers have no sign of zero. */
static bool is_number(const matrix *m, int64_t row, int64_t col) {
    const unsigned char *at = m->bytes + (row * m->cols + col) * m->element;
    const bool whole = m->type == SCOUT_INT8 || m->type == SCOUT_UINT8;
    bool any = false;
    for (int k = 0; k < m->element; k++) any |= (k + 1 == m->element && !whole ? at[k] & 0x7f : at[k]) != 0;
    return any;
}

static bool same_row(const matrix *m, int64_t a, int64_t b) {
    const size_t bytes = (size_t)(m->cols * m->element);
    return memcmp(m->bytes + (size_t)a * bytes, m->bytes + (size_t)b * bytes, bytes) == 0;
}

static int64_t numbers_in(const matrix *m, int64_t row, int64_t col, int64_t down, int64_t across) {
    int64_t n = 0;
    for (int64_t r = row; r < row + down && r < m->rows; r++)
        for (int64_t c = col; c < col + across && c < m->cols; c++) n += is_number(m, r, c);
    return n;
}

static scout_zeros count(const matrix *m) {
    scout_zeros z = {.size = sizeof z, .fewest = m->cols, .two_of_four_by_row = 1, .two_of_four_by_col = 1};
    for (int64_t r = 0; r < m->rows; r++) {
        const int64_t n = numbers_in(m, r, 0, 1, m->cols);
        bool before = false;
        z.nonzeros += n;
        if (n < z.fewest) z.fewest = n;
        if (n > z.most) z.most = n;
        for (int64_t other = 0; other < r && !before; other++) before = same_row(m, r, other);
        z.same_rows += before;
        for (int64_t c = 0; c < m->cols; c += 4) z.two_of_four_by_row &= numbers_in(m, r, c, 1, 4) <= 2;
    }
    for (int64_t r = 0; r < m->rows; r += 4)
        for (int64_t c = 0; c < m->cols; c++) z.two_of_four_by_col &= numbers_in(m, r, c, 4, 1) <= 2;
    for (int k = 0; k < 4; k++)
        for (int64_t c = 0; c < m->cols; c += sides[k]) {
            for (int64_t r = 0; r < m->rows; r += sides[k]) z.blocks[k] += numbers_in(m, r, c, sides[k], sides[k]) > 0;
            for (int64_t r = 0; r < m->rows; r++) z.pieces[k] += numbers_in(m, r, c, 1, sides[k]) > 0;
        }
    return z;
}

/* Four kinds of zeros: blocks of 16, two of four along rows, two of four down columns, and single numbers; some rows
 * repeat others, and some zeros are negative. */
static void make(matrix *m, int kind, uint64_t seed) {
    uint64_t x = seed * 2654435761u + 1;
    memset(m->bytes, 0, (size_t)(m->rows * m->cols * m->element));
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->cols; c++) {
            unsigned char *at = m->bytes + (r * m->cols + c) * m->element;
            x = x * 6364136223846793005u + 1442695040888963407u;
            const bool keep = kind == 0   ? (r / 16 * 31 + c / 16 * 17 + (int64_t)seed) % 7 == 0
                              : kind == 1 ? (c + r) % 4 < 2
                              : kind == 2 ? (c + r) % 4 < 2 && r % 2 == 0
                                          : x >> 40 < (1 << 24) / 10;
            if (keep) at[0] = (unsigned char)(x >> 33 | 1);
            if (!keep && x >> 62 == 0 && m->type != SCOUT_INT8 && m->type != SCOUT_UINT8) at[m->element - 1] = 0x80;
        }
    for (int64_t r = 5; r + 3 < m->rows; r += 11)
        memcpy(m->bytes + r * m->cols * m->element, m->bytes + (r + 3) * m->cols * m->element,
               (size_t)(m->cols * m->element));
}

static void compare(const matrix *m, int kind) {
    const uint64_t bytes = (uint64_t)(m->rows * m->cols * m->element);
    const scout_zeros want = count(m);
    scout_zeros got = {.size = sizeof got};
    void *device = NULL;
    GPU_OK(gpu_api->alloc(gpu, bytes, &device, &gpu_why));
    GPU_OK(gpu_api->upload(gpu, device, m->bytes, bytes, &gpu_why));
    GPU_OK(gpu_api->zeros(gpu, device, m->type, m->rows, m->cols, &got, &gpu_why));
    gpu_api->release(gpu, device);
    const size_t from = offsetof(scout_zeros, nonzeros); /* what is in front of it has a gap behind */
    gpu_expect(memcmp((char *)&got + from, (const char *)&want + from, sizeof got - from) == 0,
               "type %u, %lld x %lld, kind %d: %lld numbers (%lld), %lld to %lld in a row (%lld to %lld), %lld rows "
               "repeat (%lld), blocks %lld %lld %lld %lld (%lld %lld %lld %lld), pieces %lld (%lld), 2:4 %d %d (%d %d)",
               m->type, (long long)m->rows, (long long)m->cols, kind, (long long)got.nonzeros, (long long)want.nonzeros,
               (long long)got.fewest, (long long)got.most, (long long)want.fewest, (long long)want.most,
               (long long)got.same_rows, (long long)want.same_rows, (long long)got.blocks[0], (long long)got.blocks[1],
               (long long)got.blocks[2], (long long)got.blocks[3], (long long)want.blocks[0], (long long)want.blocks[1],
               (long long)want.blocks[2], (long long)want.blocks[3], (long long)got.pieces[0],
               (long long)want.pieces[0], got.two_of_four_by_row, got.two_of_four_by_col, want.two_of_four_by_row,
               want.two_of_four_by_col);
}

int main(int argc, char **argv) {
    static const struct {
        uint32_t type;
        int element;
    } types[] = {{SCOUT_FP32, 4}, {SCOUT_FP16, 2},  {SCOUT_BF16, 2},
                 {SCOUT_INT8, 1}, {SCOUT_UINT8, 1}, {SCOUT_FP8E4M3, 1}};
    static const int64_t shapes[][2] = {{1, 1}, {7, 17}, {63, 65}, {127, 129}, {129, 127}, {256, 384}, {300, 1000}};
    gpu_begin(argc, argv, true);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int kind = 0; kind < 4; kind++) {
                matrix m = {types[t].type, types[t].element, shapes[s][0], shapes[s][1], NULL};
                m.bytes = malloc((size_t)(m.rows * m.cols * m.element));
                if (!gpu_expect(m.bytes != NULL, "no memory")) return gpu_end();
                make(&m, kind, 7 * t + s);
                compare(&m, kind);
                free(m.bytes);
            }
    gpu_api->close(gpu);
    return gpu_end();
}
