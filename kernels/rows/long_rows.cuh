/* Shared by norm_long and softmax_long, whose number of threads T is a compile-time constant. They are for rows of
 * whole pieces of 16 bytes that are long enough for a block each, of which a thread has V, two or four. Every
 * instruction and every register counts there: many blocks at different points of their rows keep memory busy, and the
 * power of instructions lowers the clock. So there are no loops over threads, no branches at run time and no repeated
 * loads. */
#pragma once

#include "kernels/rows/rows.cuh"

namespace long_rows {

using namespace rows;

/* How a kernel is made. WHOLE: rows have V chunks for each thread, none is missing. EXTRA: there is a second tensor
 * that is read, a residual or a bias. ONCE: caches are told that nothing is used again. FORM: of a norm. */
template <int TYPE_, int V_, int T_, bool WHOLE_, bool EXTRA_, bool ONCE_, int FORM_ = 0> struct how {
    static constexpr int TYPE = TYPE_, N = wide_of<TYPE_>, V = V_, T = T_, WARPS = T_ / 32, FORM = FORM_;
    static constexpr bool WHOLE = WHOLE_, EXTRA = EXTRA_, ONCE = ONCE_, HALF = TYPE_ != ROW_FP32;
    typedef raw<TYPE_, wide_of<TYPE_>> chunk;
};

/* Threads that a multiprocessor is to hold: what a thread has of the rows on their way to it, and what it needs of
 * registers for them. */
template <class H> constexpr int held = H::EXTRA ? 768 : H::V == 2 ? 1536 : 1024;

/* Which of the row's chunks is chunk v of this thread, and whether there is such a one. */
template <class H> __device__ inline int place(int v) { return v * H::T + (int)threadIdx.x; }
template <class H> __device__ inline bool there(int chunks, int v) { return H::WHOLE || place<H>(v) < chunks; }

/* `without` behind the row's end. All loads are issued before the first is waited for. AGAIN: other rows want it too.
 */
template <class H, bool AGAIN = false>
__device__ inline void bring_row(const void *data, int64_t row, int chunks, unsigned without,
                                 typename H::chunk (&to)[H::V]) {
    const typename H::chunk *const from = (const typename H::chunk *)data + row * chunks;
#pragma unroll
    for (int v = 0; v < H::V; v++) {
        if constexpr (!H::WHOLE) to[v] = make_uint4(without, without, without, without);
        if (!there<H>(chunks, v)) continue;
        if constexpr (AGAIN)
            to[v] = __ldg(from + place<H>(v));
        else
            to[v] = H::ONCE ? __ldcs(from + place<H>(v)) : from[place<H>(v)];
    }
}

template <class H> __device__ inline void leave(void *data, int64_t row, int chunks, int v, const float *x) {
    typename H::chunk *const to = (typename H::chunk *)data + row * chunks + place<H>(v);
    if constexpr (H::ONCE)
        __stcs(to, pack<H::TYPE, H::N>(x));
    else
        *to = pack<H::TYPE, H::N>(x);
}

/* Over neighbouring lanes, all of a warp or a power of 2 of them. */
template <int LANES = 32> __device__ inline float lanes_total(float x) {
#pragma unroll
    for (int far = LANES / 2; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
    return x;
}

/* What each warp found, for all of its block: the only synchronisation. Of the answers lane w has that of warp w %
 * WARPS, as passing sums round among lanes takes fewer instructions than adding them up in every thread. */
template <class H> __device__ inline float2 swap_parts(float2 (&room)[H::WARPS], float2 part) {
    if ((threadIdx.x & 31) == 0) room[threadIdx.x >> 5] = part;
    __syncthreads();
    return room[threadIdx.x & (H::WARPS - 1)];
}

/* --- host --- */

constexpr int threads_known[] = {64, 128, 256, 512};
constexpr int known_count = sizeof threads_known / sizeof threads_known[0];

/* A table of kernels: by those threads, whether rows are whole, and whether caches are told that nothing is used again.
 */
#define LONG_ROWS_KERNELS(of)                                                                                          \
    { LONG_ROWS_OF(of, 64), LONG_ROWS_OF(of, 128), LONG_ROWS_OF(of, 256), LONG_ROWS_OF(of, 512) }
#define LONG_ROWS_OF(of, threads)                                                                                      \
    {                                                                                                                  \
        {of(threads, false, false), of(threads, false, true)}, { of(threads, true, false), of(threads, true, true) }   \
    }
static_assert(known_count == 4, "kernels for each");

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

inline void plan_launch(int64_t rows, const row_config &config, const void *kernel, row_launch *out) {
    *out = {};
    out->kernel = kernel, out->threads = (unsigned)config.threads, out->rows = 1, out->blocks = (unsigned)rows;
}

constexpr int64_t most_rows = 0x7fffffff;

} // namespace long_rows
