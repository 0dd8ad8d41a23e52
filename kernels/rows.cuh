/* What the kernels share that hold a row in registers: how values are loaded and stored, which thread has which, sums
 * over the threads of a row, and on the host which kernel and how many blocks.
 *
 * A row belongs to blockDim.x threads, and a block has blockDim.y rows (more than one only where these are 32 threads
 * or fewer). A thread has V chunks of N neighbouring values each: chunk v of thread t begins at column (v * blockDim.x
 * + t) * N. N is what 16 bytes hold where rows are whole numbers of that, else 1.
 *
 * Either there are threads for every row, which load it and are done; or there are as many as the device holds, which
 * go on to the row gridDim.x * blockDim.y further, while the next ones come to places of theirs in shared memory. No
 * thread reads another's place, so nobody has to wait for others there. */
#ifndef KERNELS_ROWS_CUH
#define KERNELS_ROWS_CUH

#include "kernels/row_kernels.h"

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
    const __half2_raw both = {(unsigned short)(bits & 0xffffu), (unsigned short)(bits >> 16)};
    return __half22float2(__half2(both));
}

template <int TYPE> __device__ inline unsigned down_two(float x, float y) {
    if constexpr (TYPE == ROW_BF16) {
        const __nv_bfloat162_raw both = __floats2bfloat162_rn(x, y);
        return both.x | (unsigned)both.y << 16;
    }
    const __half2_raw both = __floats2half2_rn(x, y);
    return both.x | (unsigned)both.y << 16;
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

/* A thread's places in shared memory: `depth` rows of `sets` tensors of V chunks. */
__device__ inline uint4 *place_of(uint4 *places, int chunk) {
    const int threads = (int)(blockDim.x * blockDim.y);
    return places + chunk * threads + (int)(threadIdx.y * blockDim.x + threadIdx.x);
}

/* Starts bringing a row there, with zeros behind its end; where there is no row, nothing will be asked for. */
template <int TYPE, int N, int V>
__device__ inline void start(const void *data, int64_t row, bool there, int cols, uint4 *places, int chunk) {
    const uint4 *from = (const uint4 *)data + row * (cols / N) + threadIdx.x;
    if (!there) return;
#pragma unroll
    for (int v = 0; v < V; v++) {
        const bool some = column<N>(v) < cols;
        const unsigned to = (unsigned)__cvta_generic_to_shared(place_of(places, chunk + v));
        const void *source = some ? (const void *)(from + v * (int)blockDim.x) : data;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source), "r"(some ? 16 : 0)
                     : "memory");
    }
}

__device__ inline void started() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* Until all but the last depth - 1 rows that were started are there. */
__device__ inline void arrived(int depth) {
    if (depth == 2)
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    else if (depth == 3)
        asm volatile("cp.async.wait_group 2;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 3;" ::: "memory");
}

template <int V> __device__ inline void take(uint4 *places, int chunk, uint4 *chunks) {
#pragma unroll
    for (int v = 0; v < V; v++) chunks[v] = *place_of(places, chunk + v);
}

template <int TYPE, int N>
__device__ inline void store(void *data, int64_t row, int cols, int v, bool streaming, const float *x) {
    raw<TYPE, N> *to = (raw<TYPE, N> *)data + row * (cols / N) + threadIdx.x + v * (int)blockDim.x;
    if (streaming)
        __stcs(to, pack<TYPE, N>(x));
    else
        *to = pack<TYPE, N>(x);
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
    int loads, threads;
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

/* Rows of a block. */
inline unsigned rows_of(const row_config *config) {
    return config->threads <= 32 ? 256u / (unsigned)config->threads : 1u;
}

constexpr int least_spare = 1024; /* bytes of shared memory that kernels have of their own, and more */

/* Shared memory for the rows on their way; `sets`: tensors that are read. */
inline size_t shared_for(const row_config *config, int size, int sets) {
    return (size_t)config->depth * (size_t)sets * (size_t)sizes[size].loads * 16 * (size_t)config->threads *
           rows_of(config);
}

inline bool depth_fits(const row_config *config, int size, int sets, size_t limit) {
    if (config->depth == 0) return true;
    if (config->depth < 2 || config->depth > 4 || !sizes[size].wide || sizes[size].loads > 4) return false;
    return shared_for(config, size, sets) + least_spare <= limit;
}

/* Blocks for that many rows. */
inline int divide(int64_t count, const row_config *config, int size, int sets, const void *kernel, row_launch *out) {
    const int64_t most = 0x7fffffff, rows = rows_of(config);
    int64_t blocks = (count + rows - 1) / rows;
    int all = 0, each = 0, limit = 0, device = 0;
    *out = {};
    out->kernel = kernel, out->threads = (unsigned)config->threads, out->rows = (unsigned)rows;
    if (config->depth > 0) {
        out->shared_bytes = (unsigned)shared_for(config, size, sets);
        cudaError_t e = cudaGetDevice(&device);
        if (e == cudaSuccess) e = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (e == cudaSuccess) e = cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, device);
        if (e == cudaSuccess)
            e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit - least_spare);
        if (e == cudaSuccess)
            e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, (int)(out->threads * out->rows),
                                                              out->shared_bytes);
        if (e != cudaSuccess) return e;
        if (each < 1) return cudaErrorInvalidValue;
        if (blocks > (int64_t)all * each) blocks = (int64_t)all * each;
    }
    out->blocks = (unsigned)(blocks < most ? blocks : most);
    return cudaSuccess;
}

inline int launch(const row_launch *l, void *job, void *stream) {
    void *arguments[] = {job};
    return cudaLaunchKernel(l->kernel, dim3(l->blocks), dim3(l->threads, l->rows), arguments, l->shared_bytes,
                            (cudaStream_t)stream);
}

} // namespace rows

#endif
