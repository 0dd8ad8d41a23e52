/* What the kernels share that hold a row in registers: how values are loaded and stored, which thread has which, sums
 * over the threads of a row, and on the host which kernel and how many blocks.
 *
 * A row belongs to a team of blockDim.x threads, and a block has blockDim.y teams. A thread has V chunks of N
 * neighbouring values each: chunk v of thread t begins at column (v * blockDim.x + t) * N. N is what 16 bytes hold
 * where rows are whole numbers of that, else 1.
 *
 * There are teams for every row, which load it and are done: more than one in a block only where these are 32 threads
 * or fewer. */
#pragma once

#include "kernels/rows/row_kernels.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace rows {

template <int TYPE> constexpr int bytes_of = TYPE == ROW_FP32 ? 4 : 2;
template <int TYPE> constexpr int wide_of = 16 / bytes_of<TYPE>;

/* --- values --- */

template <int BYTES> struct raw_of;
template <> struct raw_of<16> { typedef uint4 type; };
template <> struct raw_of<8> { typedef uint2 type; };
template <> struct raw_of<4> { typedef unsigned type; };
template <> struct raw_of<2> { typedef unsigned short type; };
template <int TYPE, int N> using raw = typename raw_of<bytes_of<TYPE> * N>::type;

template <int TYPE> __device__ inline float up(unsigned bits) {
    if constexpr (TYPE == ROW_FP32) return __uint_as_float(bits);
    if constexpr (TYPE == ROW_BF16) return __uint_as_float(bits << 16);
    return __half2float(__ushort_as_half((unsigned short)bits));
}

template <int TYPE> __device__ inline unsigned down(float x) {
    if constexpr (TYPE == ROW_FP32) return __float_as_uint(x);
    if constexpr (TYPE == ROW_BF16) return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    return __half_as_ushort(__float2half_rn(x));
}

template <int TYPE> __device__ inline float2 up_two(unsigned bits) {
    if constexpr (TYPE == ROW_BF16)
        return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
    return __half22float2(*(const __half2 *)&bits);
}

template <int TYPE> __device__ inline unsigned down_two(float x, float y) {
    if constexpr (TYPE == ROW_BF16) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
        return *(const unsigned *)&both;
    }
    const __half2 both = __floats2half2_rn(x, y);
    return *(const unsigned *)&both;
}

template <int TYPE, int N> __device__ inline void unpack(const raw<TYPE, N> &chunk, float *x) {
    if constexpr (N == 1) {
        x[0] = up<TYPE>(chunk);
    } else {
        const unsigned *words = (const unsigned *)&chunk;
#pragma unroll
        for (int k = 0; k < N * bytes_of<TYPE> / 4; k++) {
            if constexpr (TYPE == ROW_FP32) {
                x[k] = __uint_as_float(words[k]);
            } else {
                const float2 both = up_two<TYPE>(words[k]);
                x[2 * k] = both.x, x[2 * k + 1] = both.y;
            }
        }
    }
}

template <int TYPE, int N> __device__ inline raw<TYPE, N> pack(const float *x) {
    raw<TYPE, N> chunk;
    if constexpr (N == 1) {
        chunk = (raw<TYPE, N>)down<TYPE>(x[0]);
    } else {
        unsigned *words = (unsigned *)&chunk;
#pragma unroll
        for (int k = 0; k < N * bytes_of<TYPE> / 4; k++) {
            if constexpr (TYPE == ROW_FP32)
                words[k] = __float_as_uint(x[k]);
            else
                words[k] = down_two<TYPE>(x[2 * k], x[2 * k + 1]);
        }
    }
    return chunk;
}

/* N values of a vector whose type is not known at compile time; `at` is a multiple of N. It is used again by every row
 * and stays in the caches. */
template <int TYPE, int N> __device__ inline void side_of(const void *vector, int at, float *x) {
    if constexpr (bytes_of<TYPE> * N > 16) {
        side_of<TYPE, N / 2>(vector, at, x);
        side_of<TYPE, N / 2>(vector, at + N / 2, x + N / 2);
    } else {
        unpack<TYPE, N>(__ldg((const raw<TYPE, N> *)((const char *)vector + (int64_t)at * bytes_of<TYPE>)), x);
    }
}

template <int N> __device__ inline void side(const void *vector, int type, int at, float *x) {
    if (type == ROW_FP32)
        side_of<ROW_FP32, N>(vector, at, x);
    else if (type == ROW_FP16)
        side_of<ROW_FP16, N>(vector, at, x);
    else
        side_of<ROW_BF16, N>(vector, at, x);
}

/* --- a thread's part of a row --- */

template <int N> __device__ inline int column(int v) { return (v * (int)blockDim.x + (int)threadIdx.x) * N; }

/* All loads are issued before the first is waited for. */
template <int TYPE, int N, int V>
__device__ inline void load(const void *data, int64_t row, bool there, int cols, bool streaming, raw<TYPE, N> *chunks) {
    const raw<TYPE, N> *from = (const raw<TYPE, N> *)data + row * (cols / N) + threadIdx.x;
    if (streaming) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            chunks[v] = {};
            if (there && column<N>(v) < cols) chunks[v] = __ldcs(from + v * (int)blockDim.x);
        }
    } else {
#pragma unroll
        for (int v = 0; v < V; v++) {
            chunks[v] = {};
            if (there && column<N>(v) < cols) chunks[v] = __ldg(from + v * (int)blockDim.x);
        }
    }
}

template <int TYPE, int N>
__device__ inline void store(void *data, int64_t row, int cols, int v, bool streaming, const float *x) {
    raw<TYPE, N> *to = (raw<TYPE, N> *)data + row * (cols / N) + threadIdx.x + v * (int)blockDim.x;
    if (streaming)
        __stcs(to, pack<TYPE, N>(x));
    else
        *to = pack<TYPE, N>(x);
}

/* N sums that grew side by side become one: a single one would wait for each of its additions. */
template <int N> __device__ inline float pairs_sum(float (&lines)[N]) {
#pragma unroll
    for (int width = N / 2; width >= 1; width /= 2)
#pragma unroll
        for (int k = 0; k < width; k++) lines[k] += lines[k + width];
    return lines[0];
}
template <int N> __device__ inline float pairs_most(float (&lines)[N]) {
#pragma unroll
    for (int width = N / 2; width >= 1; width /= 2)
#pragma unroll
        for (int k = 0; k < width; k++) lines[k] = fmaxf(lines[k], lines[k + width]);
    return lines[0];
}

/* Over those lanes of a warp that have the same row. Every lane takes part. */
__device__ inline float lanes_sum(float x) {
    for (int far = min((int)blockDim.x, 32) / 2; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
    return x;
}

__device__ inline float lanes_most(float x) {
    for (int far = min((int)blockDim.x, 32) / 2; far > 0; far /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, far));
    return x;
}

/* --- host --- */

struct size { /* a kernel exists for it */
    int wide; /* 1: chunks of 16 bytes */
    int loads;
    int threads; /* of a row, at most */
};

constexpr size sizes[] = {{1, 1, 1024}, {1, 2, 1024}, {1, 4, 512}, {1, 8, 512}, {0, 4, 1024}, {0, 16, 1024}};
constexpr int size_count = sizeof sizes / sizeof sizes[0];

inline int type_known(int type) { return type == ROW_FP32 || type == ROW_FP16 || type == ROW_BF16; }

/* Which of `sizes` holds a row in that many threads; -1: none does. */
inline int size_for(int type, int64_t cols, int threads) {
    const int64_t wide = type == ROW_FP32 ? 4 : 8, each = cols % wide == 0 ? wide : 1;
    if (threads < 4 || threads > 1024 || (threads & (threads - 1)) != 0 || cols < 1) return -1;
    for (int k = 0; k < size_count; k++)
        if (sizes[k].wide == (each > 1) && threads <= sizes[k].threads && cols <= each * sizes[k].loads * threads)
            return k;
    return -1;
}

/* Blocks for that many rows. */
inline void divide(int64_t count, int threads, const void *kernel, row_launch *out) {
    const int64_t teams = threads <= 32 ? 256 / threads : 1, blocks = (count + teams - 1) / teams;
    *out = {};
    out->kernel = kernel, out->threads = (unsigned)threads, out->rows = (unsigned)teams;
    out->blocks = (unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

inline int launch(const row_launch *l, void *job, void *stream) {
    void *arguments[] = {job};
    return cudaLaunchKernel(l->kernel, dim3(l->blocks), dim3(l->threads, l->rows), arguments, 0, (cudaStream_t)stream);
}

} // namespace rows
