/* Counting zeros. A thread block turns a row into bits; then a warp has 128 by 128 bits, four rows of four words for
 * each lane, so that lanes combine their bits by a few shuffles: 4 lanes make 16 rows, 8 make 32, and so on.
 */
#include "kernels/harness/kernels.h"

#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256, WARPS = THREADS / 32, SCANNERS = 4; /* warps that look at bits, in a thread block */
constexpr int64_t SQUARE = 128, WORDS = SQUARE / 32;
constexpr unsigned ALL = 0xffffffffu;

/* Words of a row of bits: whole squares. */
__host__ __device__ constexpr int64_t width_of(int64_t cols) { return (cols + SQUARE - 1) / SQUARE * WORDS; }

__device__ __forceinline__ unsigned long long mixed(unsigned long long x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* A row's hash is a sum over its places, so that the order of adding up does not matter. */
template <typename E>
__global__ void __launch_bounds__(THREADS) make_bits(const E *data, uint32_t mask, int64_t cols, uint32_t *bits,
                                                     int32_t *row_counts, unsigned long long *row_hashes) {
    __shared__ unsigned long long hashes[WARPS];
    __shared__ int counts[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t row = blockIdx.x, width = width_of(cols);
    const E *const from = data + row * cols;
    unsigned long long hash = 0;
    int count = 0;
    for (int64_t word = warp; word < width; word += WARPS) {
        const int64_t at = word * 32 + lane;
        const E x = at < cols ? from[at] : (E)0;
        const unsigned found = __ballot_sync(ALL, (x & (E)mask) != 0);
        if (x != 0) hash += mixed((unsigned long long)(at + 1) << 32 ^ x);
        if (lane == 0) bits[row * width + word] = found;
        count += __popc(found);
    }
    for (int step = 16; step > 0; step /= 2) hash += __shfl_xor_sync(ALL, hash, step);
    if (lane == 0) hashes[warp] = hash, counts[warp] = count;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int k = 1; k < WARPS; k++) hash += hashes[k], count += counts[k];
    row_counts[row] = count;
    row_hashes[row] = hash;
}

/* Three or four of four. */
__device__ __forceinline__ uint32_t more_than_two(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return (a & b & (c | d)) | (c & d & (a | b));
}

struct words {
    uint32_t w[WORDS];
};

__device__ __forceinline__ words joined(const words &a, int lanes) {
    words both;
#pragma unroll
    for (int k = 0; k < WORDS; k++) both.w[k] = a.w[k] | __shfl_xor_sync(ALL, a.w[k], lanes);
    return both;
}

/* Of a line of 128 bits, pieces of `size` with any. */
__device__ __forceinline__ unsigned pieces16(const words &a) {
    unsigned n = 0;
#pragma unroll
    for (int k = 0; k < WORDS; k++) n += ((a.w[k] & 0xffffu) != 0) + ((a.w[k] >> 16) != 0);
    return n;
}
__device__ __forceinline__ unsigned pieces32(const words &a) {
    return (a.w[0] != 0) + (a.w[1] != 0) + (a.w[2] != 0) + (a.w[3] != 0);
}
__device__ __forceinline__ unsigned pieces64(const words &a) {
    return ((a.w[0] | a.w[1]) != 0) + ((a.w[2] | a.w[3]) != 0);
}
__device__ __forceinline__ unsigned pieces128(const words &a) { return (a.w[0] | a.w[1] | a.w[2] | a.w[3]) != 0; }

__device__ __forceinline__ void add(unsigned long long *to, unsigned mine) {
    const unsigned all = __reduce_add_sync(ALL, mine);
    if ((threadIdx.x & 31) == 0 && all > 0) atomicAdd(to, (unsigned long long)all);
}

__device__ __forceinline__ words read_row(const uint32_t *bits, int64_t row, int64_t rows, int64_t width,
                                          int64_t word) {
    if (row >= rows) return {};
    const uint4 four = *(const uint4 *)(bits + row * width + word);
    return {{four.x, four.y, four.z, four.w}};
}

__global__ void __launch_bounds__(SCANNERS * 32)
    look_at_bits(const uint32_t *bits, int64_t rows, int64_t width, int64_t squares, sparsity_scan_counts *counts) {
    const int64_t square = (int64_t)blockIdx.x * SCANNERS + (threadIdx.x >> 5), across = width / WORDS;
    const int lane = threadIdx.x & 31;
    if (square >= squares) return; /* a whole warp */
    const int64_t first = square / across * SQUARE + lane * 4, word = square % across * WORDS;
    words row[4], any = {};
    unsigned p16 = 0, p32 = 0, p64 = 0, p128 = 0, by_row = 0, by_col = 0;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        row[r] = read_row(bits, first + r, rows, width, word);
        p16 += pieces16(row[r]), p32 += pieces32(row[r]), p64 += pieces64(row[r]), p128 += pieces128(row[r]);
#pragma unroll
        for (int k = 0; k < WORDS; k++) {
            const uint32_t w = row[r].w[k];
            by_row += __popc(more_than_two(w, w >> 1, w >> 2, w >> 3) & 0x11111111u);
            any.w[k] |= w;
        }
    }
#pragma unroll
    for (int k = 0; k < WORDS; k++) by_col += __popc(more_than_two(row[0].w[k], row[1].w[k], row[2].w[k], row[3].w[k]));
    add(&counts->pieces[0], p16), add(&counts->pieces[1], p32);
    add(&counts->pieces[2], p64), add(&counts->pieces[3], p128);
    add(&counts->by_row, by_row), add(&counts->by_col, by_col);
    any = joined(joined(any, 1), 2);
    add(&counts->blocks[0], lane % 4 == 0 ? pieces16(any) : 0);
    any = joined(any, 4);
    add(&counts->blocks[1], lane % 8 == 0 ? pieces32(any) : 0);
    any = joined(any, 8);
    add(&counts->blocks[2], lane % 16 == 0 ? pieces64(any) : 0);
    any = joined(any, 16);
    add(&counts->blocks[3], lane == 0 ? pieces128(any) : 0);
}

template <typename E>
void start_bits(const void *data, uint32_t mask, int64_t rows, int64_t cols, void *scratch, int32_t *row_counts,
                unsigned long long *row_hashes, cudaStream_t stream) {
    make_bits<E><<<(unsigned)rows, THREADS, 0, stream>>>((const E *)data, mask, cols, (uint32_t *)scratch, row_counts,
                                                         row_hashes);
}

} // namespace

extern "C" size_t sparsity_scan_bytes(int64_t rows, int64_t cols) {
    return (size_t)rows * (size_t)width_of(cols) * sizeof(uint32_t);
}

extern "C" int sparsity_scan(const void *data, int element, uint32_t bits, int64_t rows, int64_t cols, void *scratch,
                             int32_t *row_counts, unsigned long long *row_hashes, sparsity_scan_counts *counts,
                             void *stream) {
    const auto start = element == 1 ? start_bits<uint8_t> : element == 2 ? start_bits<uint16_t> : start_bits<uint32_t>;
    const int64_t width = width_of(cols), squares = (rows + SQUARE - 1) / SQUARE * (width / WORDS);
    const int64_t blocks = (squares + SCANNERS - 1) / SCANNERS;
    if (rows < 1 || cols < 1 || rows > INT32_MAX || cols > INT32_MAX || blocks > INT32_MAX ||
        (element != 1 && element != 2 && element != 4))
        return cudaErrorInvalidValue;
    start(data, bits, rows, cols, scratch, row_counts, row_hashes, (cudaStream_t)stream);
    look_at_bits<<<(unsigned)blocks, SCANNERS * 32, 0, (cudaStream_t)stream>>>((const uint32_t *)scratch, rows, width,
                                                                               squares, counts);
    return cudaGetLastError();
}
