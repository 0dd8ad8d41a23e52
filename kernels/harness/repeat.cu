/* A row repeated down a matrix: the bias, as the addend of a library's product that has none. */
#include "kernels/harness/kernels.h"

namespace {

constexpr int THREADS = 256;
constexpr int64_t ROWS_EACH = 8, MOST_DOWN = 65535;

template <typename E> __global__ void repeat_row(E *to, const E *row, int64_t rows, int64_t count, int64_t ld) {
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= count) return;
    const E value = row[at];
    for (int64_t r = blockIdx.y; r < rows; r += gridDim.y) to[r * ld + at] = value;
}

template <typename E>
cudaError_t repeat(void *to, const void *row, int64_t rows, int64_t count, int64_t ld, cudaStream_t stream) {
    const int64_t across = (count + THREADS - 1) / THREADS, wanted = (rows + ROWS_EACH - 1) / ROWS_EACH;
    if (rows < 1 || count < 1 || across > INT32_MAX) return cudaErrorInvalidValue;
    const dim3 grid((unsigned)across, (unsigned)(wanted < MOST_DOWN ? wanted : MOST_DOWN));
    repeat_row<E><<<grid, THREADS, 0, stream>>>((E *)to, (const E *)row, rows, count, ld);
    return cudaGetLastError();
}

} // namespace

cudaError_t kernels_repeat_row(void *to, const void *row, int element, int64_t rows, int64_t cols, int64_t ld,
                               cudaStream_t stream) {
    if (element != 2 && element != 4) return cudaErrorInvalidValue;
    const int64_t each = 16 / element;
    if (cols % each == 0 && ld % each == 0 && ((uintptr_t)to | (uintptr_t)row) % 16 == 0)
        return repeat<uint4>(to, row, rows, cols / each, ld / each, stream);
    return element == 2 ? repeat<uint16_t>(to, row, rows, cols, ld, stream)
                        : repeat<uint32_t>(to, row, rows, cols, ld, stream);
}
