/* What the kernels share whose number of threads T is known to the compiler: norm_long and softmax_long. They are for
 * rows of whole pieces of 16 bytes that are long enough for a block each, of which a thread has V, two or four. There
 * every instruction counts between a row's coming and its being done, and every register, as many blocks at other
 * points of their rows are what keeps the memory busy: no loops over threads, no choices at run time, nothing is asked
 * for twice. Caches are told that nothing is used again. */
#ifndef KERNELS_LONG_ROWS_CUH
#define KERNELS_LONG_ROWS_CUH

#include "kernels/rows.cuh"

namespace long_rows {

using namespace rows;

/* How a kernel is made. FORM: of a norm. */
template <int TYPE_, int V_, int T_, bool RESIDUAL_ = false, int FORM_ = 0> struct how {
    static constexpr int TYPE = TYPE_, N = wide_of<TYPE_>, V = V_, T = T_, WARPS = T_ / 32, FORM = FORM_;
    static constexpr bool RESIDUAL = RESIDUAL_;
    typedef raw<TYPE_, wide_of<TYPE_>> chunk;
};

/* Which of the row's chunks is chunk v of this thread. */
template <class H> __device__ inline int place(int v) { return v * H::T + (int)threadIdx.x; }

/* Zeros behind the row's end. All loads are issued before the first is waited for. */
template <class H>
__device__ inline void bring_row(const void *data, int64_t row, int chunks, typename H::chunk (&to)[H::V]) {
    const typename H::chunk *const from = (const typename H::chunk *)data + row * chunks;
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        to[v] = {};
        if (place<H>(v) < chunks) to[v] = __ldcs(from + place<H>(v));
    }
}

template <class H> __device__ inline void leave(void *data, int64_t row, int chunks, int v, const float *x) {
    __stcs((typename H::chunk *)data + row * chunks + place<H>(v), pack<H::TYPE, H::N>(x));
}

__device__ inline float warp_sum(float x) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
    return x;
}
__device__ inline float warp_most(float x) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
    return x;
}

/* --- host --- */

constexpr int threads_known[] = {64, 128, 256, 512};
constexpr int known_count = sizeof threads_known / sizeof threads_known[0];

/* Which of them; -1: none. */
inline int known_of(int threads) {
    for (int k = 0; k < known_count; k++)
        if (threads_known[k] == threads) return k;
    return -1;
}

/* The chunks of each thread, 2 or 4; 0: that many threads are too few or too many for such rows. */
inline int loads_of(int type, int64_t cols, int threads) {
    const int64_t wide = type == ROW_FP32 ? 4 : 8;
    if (!type_known(type) || cols < 1 || cols % wide != 0 || known_of(threads) < 0) return 0;
    const int64_t chunks = cols / wide;
    return chunks <= threads || chunks > 4 * threads ? 0 : chunks <= 2 * threads ? 2 : 4;
}

inline void plan_launch(int64_t rows, int threads, const void *kernel, row_launch *out) {
    *out = {};
    out->kernel = kernel, out->threads = (unsigned)threads, out->rows = 1, out->blocks = (unsigned)rows;
}

constexpr int64_t most_rows = 0x7fffffff;

} // namespace long_rows

#endif
