/* Counting the zeros of a weight on the GPU: the kernels' counts, and the host's work on single rows. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/device/cuda_device.h"

#include <stdlib.h>
#include <string.h>

/* All bits but the sign: a zero of either sign is none. */
static const struct {
    uint32_t type;
    int element;
    uint32_t bits;
} known[] = {{SCOUT_FP32, 4, 0x7fffffff}, {SCOUT_FP16, 2, 0x7fff}, {SCOUT_BF16, 2, 0x7fff},
             {SCOUT_INT8, 1, 0xff},       {SCOUT_UINT8, 1, 0xff},  {SCOUT_FP8E4M3, 1, 0x7f}};

/* On the device, one behind another in one buffer. */
typedef struct places {
    uint64_t counts_at, hashes_at, rows_at, bits_at, bytes;
} places;

static uint64_t rounded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

static places lay_out(int64_t rows, int64_t cols) {
    places p = {.counts_at = 0};
    p.hashes_at = rounded(sizeof(sparsity_scan_counts));
    p.rows_at = p.hashes_at + rounded((uint64_t)rows * sizeof(unsigned long long));
    p.bits_at = p.rows_at + rounded((uint64_t)rows * sizeof(int32_t));
    p.bytes = p.bits_at + sparsity_scan_bytes(rows, cols);
    return p;
}

static int by_hash(const void *a, const void *b) {
    const unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;
    return (x > y) - (x < y);
}

/* `host` is everything in front of the bits. */
static void tell(char *host, const places *p, int64_t rows, int64_t cols, scout_zeros *out) {
    const sparsity_scan_counts *const counts = (const void *)(host + p->counts_at);
    const int32_t *const row = (const void *)(host + p->rows_at);
    unsigned long long *const hashes = (void *)(host + p->hashes_at);
    out->nonzeros = out->same_rows = out->most = 0;
    out->fewest = cols;
    for (int64_t r = 0; r < rows; r++) {
        out->nonzeros += row[r];
        if (row[r] < out->fewest) out->fewest = row[r];
        if (row[r] > out->most) out->most = row[r];
    }
    qsort(hashes, (size_t)rows, sizeof *hashes, by_hash);
    for (int64_t r = 1; r < rows; r++) out->same_rows += hashes[r] == hashes[r - 1];
    for (int k = 0; k < SPARSITY_SCAN_SIZES; k++) {
        out->blocks[k] = (int64_t)counts->blocks[k];
        out->pieces[k] = (int64_t)counts->pieces[k];
    }
    out->two_of_four_by_row = counts->by_row == 0;
    out->two_of_four_by_col = counts->by_col == 0;
}

static scout_answer count(scout_device *device, const void *matrix, size_t row_of_known, int64_t rows, int64_t cols,
                          const places *p, char *memory, char *host, scout_why *why) {
    const char *const doing = "counting the zeros of a weight";
    cudaError_t error = cudaMemsetAsync(memory, 0, p->hashes_at, device->stream);
    if (error == cudaSuccess)
        error = (cudaError_t)sparsity_scan(matrix, known[row_of_known].element, known[row_of_known].bits, rows, cols,
                                           memory + p->bits_at, (int32_t *)(void *)(memory + p->rows_at),
                                           (unsigned long long *)(void *)(memory + p->hashes_at),
                                           (sparsity_scan_counts *)(void *)(memory + p->counts_at), device->stream);
    const scout_answer answer = cuda_device_answer(error, doing, why);
    return answer == SCOUT_OK ? cuda_device_download(device, host, memory, p->bits_at, why) : answer;
}

scout_answer cuda_device_zeros(scout_device *device, const void *matrix, uint32_t type, int64_t rows, int64_t cols,
                               scout_zeros *out, scout_why *why) {
    size_t k = 0;
    while (k < sizeof known / sizeof known[0] && known[k].type != type) k++;
    if (k == sizeof known / sizeof known[0] || rows < 1 || cols < 1 || rows > INT32_MAX || cols > INT32_MAX)
        return scout_say(why, SCOUT_NO, "type", "zeros of this type are not counted on the GPU");
    const places p = lay_out(rows, cols);
    void *memory = NULL;
    scout_answer answer = cuda_device_alloc(device, p.bytes, &memory, why);
    char *const host = answer == SCOUT_OK ? malloc(p.bits_at) : NULL;
    if (answer == SCOUT_OK && !host)
        answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the counts of %lld rows", (long long)rows);
    if (answer == SCOUT_OK) answer = count(device, matrix, k, rows, cols, &p, memory, host, why);
    if (answer == SCOUT_OK) tell(host, &p, rows, cols, out);
    free(host);
    cuda_device_release(device, memory);
    return answer;
}
