/* What the kernels share that hold a row in registers: how values are loaded and stored, which thread has which, sums
 * over the threads of a row, and on the host which kernel and how many blocks.
 *
 * A row belongs to a team of blockDim.x threads, and a block has blockDim.y teams. A thread has V chunks of N
 * neighbouring values each: chunk v of thread t begins at column (v * blockDim.x + t) * N. N is what 16 bytes hold
 * where rows are whole numbers of that, else 1.
 *
 * Either there are teams for every row, which load it and are done (more than one in a block only where these are 32
 * threads or fewer). Or there are as many as the device holds, of whole warps, which go on to the row gridDim.x *
 * blockDim.y further while the copy engine brings their next ones: a ring of rows in shared memory for each team. That
 * keeps the memory busy however long a row takes to add up, with few threads that have much of a row each and so meet
 * seldom. */
#ifndef KERNELS_ROWS_CUH
#define KERNELS_ROWS_CUH

#include "kernels/gemm_device.cuh"
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

/* The same of a vector of this type that was brought to shared memory. */
template <int TYPE, int N> __device__ inline void near_side(const uint4 *vector, int at, float *x) {
    if constexpr (bytes_of<TYPE> * N == 16) unpack<TYPE, N>(vector[at / N], x);
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

/* The ring of a team: `depth` rows of SETS tensors one behind the other, and a barrier for each that says when it has
 * come. One thread asks; the others may still be reading what lies there until they have met. */
template <int SETS> struct ring {
    uint4 *places;
    uint32_t barriers; /* in shared memory */
    int chunks;        /* of 16 bytes in a row */
    int depth, turn, parity;

    __device__ void open(char *shared, size_t rows_from, int row_chunks, int rows_on_the_way) {
        const int first = (int)threadIdx.y * rows_on_the_way;
        chunks = row_chunks, depth = rows_on_the_way, turn = parity = 0;
        places = (uint4 *)(shared + rows_from) + (size_t)first * SETS * chunks;
        barriers = gemm::shared_address(shared) + (uint32_t)first * 8;
#ifdef GEMM_HAS_CLUSTERS
        for (int k = 0; threadIdx.x == 0 && k < depth; k++) gemm::barrier_init(barriers + (uint32_t)k * 8, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    }
    /* Of the team's first thread: row `row` of each tensor comes to place `to`. */
    __device__ void ask(int to, int64_t row, const void *const (&from)[SETS]) const {
#ifdef GEMM_HAS_CLUSTERS
        const uint32_t bytes = (uint32_t)chunks * 16, barrier = barriers + (uint32_t)to * 8;
        gemm::barrier_expect(barrier, bytes * SETS);
        for (int k = 0; k < SETS; k++)
            gemm::copy_bulk(gemm::shared_address(places + (size_t)(to * SETS + k) * chunks),
                            (const char *)from[k] + row * bytes, bytes, barrier);
#else
        (void)to, (void)row, (void)from;
#endif
    }
    __device__ void wait() const {
#ifdef GEMM_HAS_CLUSTERS
        gemm::barrier_wait(barriers + (uint32_t)turn * 8, (uint32_t)parity);
#endif
    }
    /* This thread's chunks of one tensor, zeros behind the row's end. */
    template <int V> __device__ void take(int set, uint4 *own) const {
        const uint4 *const row = places + (size_t)(turn * SETS + set) * chunks;
#pragma unroll
        for (int v = 0; v < V; v++) {
            const int at = v * (int)blockDim.x + (int)threadIdx.x;
            own[v] = at < chunks ? row[at] : uint4{};
        }
    }
    __device__ void turn_on() {
        turn = turn + 1 == depth ? 0 : turn + 1;
        parity ^= turn == 0;
    }
};

/* Of the block's warps, the first that has this thread's row. */
__device__ inline int first_warp() { return (int)(threadIdx.y * (blockDim.x >> 5)); }

/* The threads of a row wait for each other. A block of one row has one barrier: blocks that may use all there are would
 * leave none to others on the same multiprocessor. */
template <bool TEAMS> __device__ inline void meet() {
    if (!TEAMS)
        __syncthreads();
    else if (blockDim.x > 32)
        asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "r"(blockDim.x) : "memory");
    else
        __syncwarp();
}

/* A vector of `chunks` pieces of 16 bytes comes to shared memory, by all threads of the block. */
__device__ inline void bring(uint4 *to, const void *from, int chunks) {
    const int threads = (int)(blockDim.x * blockDim.y), me = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    for (int k = me; k < chunks; k += threads) to[k] = __ldg((const uint4 *)from + k);
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
    int threads; /* of a row where each has a block of its own; 0: only with a ring */
    int team;    /* threads of a block of rings; 0: none */
};

constexpr size sizes[] = {{1, 1, 1024, 512}, {1, 2, 1024, 512}, {1, 4, 512, 512}, {1, 8, 512, 512},
                          {1, 16, 0, 256},   {0, 4, 1024, 0},   {0, 16, 1024, 0}};
constexpr int size_count = sizeof sizes / sizeof sizes[0];
constexpr int most_depth = 16;

inline int type_known(int type) { return type == ROW_FP32 || type == ROW_FP16 || type == ROW_BF16; }

/* Which of `sizes` holds a row in that many threads; -1: none does. */
inline int size_for(int type, int64_t cols, int threads) {
    const int64_t wide = type == ROW_FP32 ? 4 : 8, each = cols % wide == 0 ? wide : 1;
    if (threads < 4 || threads > 1024 || (threads & (threads - 1)) != 0 || cols < 1) return -1;
    for (int k = 0; k < size_count; k++) {
        const int most = sizes[k].threads > sizes[k].team ? sizes[k].threads : sizes[k].team;
        if (sizes[k].wide == (each > 1) && threads <= most && cols <= each * sizes[k].loads * threads) return k;
    }
    return -1;
}

/* Of a ring: the bytes of a row of one tensor, and what blocks have beside the rows: barriers and `sides` vectors. */
inline size_t row_bytes(int type, int64_t cols) { return (size_t)cols * (type == ROW_FP32 ? 4 : 2); }
inline size_t rows_from(int teams, int depth, int sides, size_t bytes) {
    return ((size_t)teams * (size_t)depth * 8 + 15) / 16 * 16 + (size_t)sides * bytes;
}

constexpr size_t spare = 2048; /* bytes of shared memory that kernels have of their own, and more */

/* Rings that fit into a block; 0: none. `sets`: tensors that are read; `sides`: vectors that serve every row. */
inline int teams_of(const row_config *c, int size, int type, int64_t cols, int sets, int sides, size_t limit) {
    if (c->depth < 2 || c->depth > most_depth || c->threads < 32 || sizes[size].team < c->threads) return 0;
    const size_t bytes = row_bytes(type, cols), each = (size_t)c->depth * (size_t)sets * bytes;
    int teams = sizes[size].team / c->threads;
    if (teams > 8) teams = 8;
    while (teams > 0 && rows_from(teams, c->depth, sides, bytes) + (size_t)teams * each + spare > limit) teams--;
    return teams;
}

inline bool config_fits(const row_config *c, int size, int type, int64_t cols, int sets, int sides, size_t limit) {
    if (size < 0) return false;
    if (c->depth == 0) return c->threads <= sizes[size].threads;
    return teams_of(c, size, type, cols, sets, sides, limit) > 0;
}

/* Blocks for that many rows. */
inline int divide(int64_t count, const row_config *c, int type, int64_t cols, int sets, int sides, const void *kernel,
                  row_launch *out) {
    const int size = size_for(type, cols, c->threads);
    int64_t most = 0x7fffffff, teams = c->threads <= 32 ? 256 / c->threads : 1;
    int units = 0, held = 0, limit = 0, device = 0;
    *out = {};
    out->kernel = kernel, out->threads = (unsigned)c->threads;
    if (c->depth > 0) {
        cudaError_t e = cudaGetDevice(&device);
        if (e == cudaSuccess) e = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
        if (e == cudaSuccess) e = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
        if (e == cudaSuccess)
            e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit - (int)spare);
        if (e != cudaSuccess) return e;
        teams = teams_of(c, size, type, cols, sets, sides, (size_t)limit);
        if (teams < 1) return cudaErrorInvalidValue;
        const size_t bytes = row_bytes(type, cols);
        out->shared_bytes = (unsigned)(rows_from((int)teams, c->depth, sides, bytes) +
                                       (size_t)teams * (size_t)c->depth * (size_t)sets * bytes);
        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, kernel, (int)(c->threads * teams), out->shared_bytes);
        if (e != cudaSuccess) return e;
        if (held < 1) return cudaErrorInvalidValue;
        most = (int64_t)units * held;
    }
    const int64_t blocks = (count + teams - 1) / teams;
    out->rows = (unsigned)teams, out->blocks = (unsigned)(blocks < most ? blocks : most);
    return cudaSuccess;
}

inline int launch(const row_launch *l, void *job, void *stream) {
    void *arguments[] = {job};
    return cudaLaunchKernel(l->kernel, dim3(l->blocks), dim3(l->threads, l->rows), arguments, l->shared_bytes,
                            (cudaStream_t)stream);
}

} // namespace rows

#endif
