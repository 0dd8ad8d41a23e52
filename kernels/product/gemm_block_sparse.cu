/* Products with a weight of blocks, most of which are zero: every thread block computes a tile of rows times one column
 * of blocks and walks along the list of the blocks that are there. Steps are 64 deep whatever the side is, so that
 * small blocks share a step and large ones take several; each thread copies one piece of 8 along k for many rows, and
 * thus needs one place of the list for each step, which it fetches a step ahead. */
#include "kernels/product/gemm_device.cuh"
#include "kernels/product/gemm_kernels.h"
#include "kernels/product/gemm_sparse_pack.h"

#include <cuda_runtime.h>

namespace {

enum { DEEP = 64, ROW_BYTES = DEEP * 2, PIECE = 8, PIECES = DEEP / PIECE, MIN_DEPTH = 2, MAX_DEPTH = 4 };

struct sparse_job {
    const uint16_t *a, *values;
    const int32_t *begin, *place;
    const void *bias; /* NULL: none */
    void *c;
    int64_t m, n, k, ldc, row_step, k_step; /* steps: elements of A between rows, and along k */
    unsigned columns;
    int depth;
};

/* How the warps share a tile: two columns of them where the weight's blocks are wide enough. */
template <int ROWS, int SIDE> struct division {
    static constexpr int warps = ROWS == 64 ? 4 : 8, threads = warps * 32, lines = threads / PIECES;
    static constexpr int across = SIDE >= 64 ? 2 : 1, down = warps / across;
    static constexpr int mi = ROWS / down / 16, ni = SIDE / across / 8;
    static constexpr int resident = ROWS == 64 ? 4 : ROWS == 256 && SIDE == 128 ? 1 : 2;
    static constexpr int stage_bytes = (ROWS + SIDE) * ROW_BYTES;
};

/* What one thread copies: piece `piece` of the rows line, line + lines, … of a step's A and weight. */
template <int ROWS, int SIDE, bool FAST> struct copier {
    using D = division<ROWS, SIDE>;
    const sparse_job &job;
    const uint16_t *a;          /* of this thread's first row */
    unsigned char *first_place; /* in stage 0 */
    int64_t rows;               /* that are there, from this thread's first on */
    int32_t first, last, held;  /* held: place of the step that comes next, -1: none */
    int piece, line;

    __device__ __forceinline__ copier(const sparse_job &j, unsigned char *shared, int64_t m0, int32_t from, int32_t to)
        : job(j), first(from), last(to) {
        piece = threadIdx.x % PIECES, line = threadIdx.x / PIECES;
        a = job.a + (m0 + line) * job.row_step;
        rows = job.m - m0 - line;
        first_place = shared + line * ROW_BYTES + ((piece ^ (line & 7)) << 4);
        fetch(0);
    }
    __device__ __forceinline__ int32_t block(int step) const { return first + (step * DEEP + piece * PIECE) / SIDE; }
    __device__ __forceinline__ void fetch(int step) {
        const int32_t b = block(step);
        held = b < last ? job.place[b] : -1;
    }
    /* Any layout, any alignment: through registers. */
    __device__ __forceinline__ void gather(unsigned char *to, int row, int64_t k0, bool there) const {
        uint32_t word[4] = {};
#pragma unroll
        for (int e = 0; e < PIECE; e++)
            if (there && k0 + e < job.k)
                word[e / 2] |= (uint32_t)a[row * job.row_step + (k0 + e) * job.k_step] << (e & 1) * 16;
        *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
    }
    __device__ __forceinline__ void copy(int step, int slot) {
        const int within = (step * DEEP + piece * PIECE) % SIDE;
        const bool kept = held >= 0;
        const int64_t k0 = kept ? (int64_t)held * SIDE + within : 0;
        unsigned char *to = first_place + slot * D::stage_bytes;
#pragma unroll
        for (int i = 0; i < ROWS / D::lines; i++) {
            const bool there = kept && i * D::lines < rows && k0 < job.k;
            if (FAST)
                gemm::copy16(gemm::shared_address(to + i * D::lines * ROW_BYTES),
                             there ? a + i * D::lines * job.row_step + k0 : job.a, there);
            else
                gather(to + i * D::lines * ROW_BYTES, i * D::lines, k0, there);
        }
        to += ROWS * ROW_BYTES;
        const uint16_t *from = job.values + ((int64_t)block(step) * SIDE + line) * SIDE + within;
#pragma unroll
        for (int n = 0; n < SIDE; n += D::lines)
            if (SIDE % D::lines == 0 || n + line < SIDE)
                gemm::copy16(gemm::shared_address(to + n * ROW_BYTES), kept ? from + n * SIDE : job.values, kept);
        fetch(step + 1);
    }
};

/* All but the youngest depth - 2 copies have arrived. */
__device__ __forceinline__ void wait_for_oldest(int depth) {
    if (depth == 2)
        gemm::copy_wait<0>();
    else if (depth == 3)
        gemm::copy_wait<1>();
    else
        gemm::copy_wait<2>();
}

template <typename T, int ROWS, int SIDE>
__device__ __forceinline__ void multiply(const unsigned char *stage,
                                         float (&sums)[division<ROWS, SIDE>::mi][division<ROWS, SIDE>::ni][4]) {
    using D = division<ROWS, SIDE>;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, swizzle = lane & 7;
    const uint32_t a = gemm::shared_address(stage) + (warp / D::across * D::mi * 16 + (lane & 15)) * ROW_BYTES;
    const uint32_t b =
        gemm::shared_address(stage) + (ROWS + warp % D::across * D::ni * 8 + (lane & 7) + (lane >> 4) * 8) * ROW_BYTES;
#pragma unroll
    for (int k = 0; k < DEEP / 16; k++) {
        uint32_t fa[D::mi][4], fb[D::ni / 2][4];
        const uint32_t piece_a = ((k * 2 + (lane >> 4)) ^ swizzle) << 4;
        const uint32_t piece_b = ((k * 2 + (lane >> 3 & 1)) ^ swizzle) << 4;
#pragma unroll
        for (int i = 0; i < D::mi; i++) gemm::load_matrices(fa[i], a + i * 16 * ROW_BYTES + piece_a);
#pragma unroll
        for (int j = 0; j < D::ni / 2; j++) gemm::load_matrices(fb[j], b + j * 16 * ROW_BYTES + piece_b);
#pragma unroll
        for (int i = 0; i < D::mi; i++)
#pragma unroll
            for (int j = 0; j < D::ni; j++)
                gemm::mma16816<T>(sums[i][j], fa[i][0], fa[i][1], fa[i][2], fa[i][3], fb[j / 2][j % 2 * 2],
                                  fb[j / 2][j % 2 * 2 + 1]);
    }
}

/* Through shared memory, so that rows leave in whole lines. */
template <typename T, int ROWS, int SIDE>
__device__ __forceinline__ void store(const sparse_job &job, T *tile, int64_t m0, int64_t n0,
                                      const float (&sums)[division<ROWS, SIDE>::mi][division<ROWS, SIDE>::ni][4]) {
    using D = division<ROWS, SIDE>;
    constexpr int pitch = SIDE + PIECE;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int row = warp / D::across * D::mi * 16 + (lane >> 2), col = warp % D::across * D::ni * 8 + (lane & 3) * 2;
#pragma unroll
    for (int j = 0; j < D::ni; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int64_t n = n0 + col + j * 8 + e;
            const float more = job.bias && n < job.n ? gemm::to_float(((const T *)job.bias)[n]) : 0.0f;
#pragma unroll
            for (int i = 0; i < D::mi; i++) {
                T *const at = tile + (row + i * 16) * pitch + col + j * 8 + e;
                at[0] = gemm::from_float<T>(sums[i][j][e] + more);
                at[8 * pitch] = gemm::from_float<T>(sums[i][j][e + 2] + more);
            }
        }
    __syncthreads();
    const bool whole = job.ldc % PIECE == 0 && (uintptr_t)job.c % 16 == 0;
    for (int i = threadIdx.x; i < ROWS * (SIDE / PIECE); i += D::threads) {
        const int r = i / (SIDE / PIECE), p = i % (SIDE / PIECE) * PIECE;
        if (m0 + r >= job.m) continue;
        T *const to = (T *)job.c + (m0 + r) * job.ldc + n0 + p;
        if (whole && n0 + p + PIECE <= job.n) {
            *(uint4 *)to = *(const uint4 *)(tile + r * pitch + p);
        } else {
            for (int e = 0; e < PIECE; e++)
                if (n0 + p + e < job.n) to[e] = tile[r * pitch + p + e];
        }
    }
}

/* Neighbouring thread blocks have the same rows, which the cache then serves to all columns. */
template <typename T, int ROWS, int SIDE, bool FAST>
__global__ void __launch_bounds__(division<ROWS, SIDE>::threads, division<ROWS, SIDE>::resident)
    block_sparse_kernel(const sparse_job job) {
    using D = division<ROWS, SIDE>;
    extern __shared__ __align__(128) unsigned char shared[];
    const unsigned column = blockIdx.x % job.columns;
    const int64_t m0 = (int64_t)(blockIdx.x / job.columns) * ROWS;
    const int32_t first = job.begin[column], last = job.begin[column + 1];
    const int steps = ((last - first) * SIDE + DEEP - 1) / DEEP;
    float sums[D::mi][D::ni][4] = {};
    copier<ROWS, SIDE, FAST> copies(job, shared, m0, first, last);
    for (int step = 0; step < job.depth - 1; step++) {
        if (step < steps) copies.copy(step, step);
        gemm::copy_commit();
    }
    int slot = 0, next = job.depth - 1;
    for (int step = 0; step < steps; step++) {
        wait_for_oldest(job.depth);
        __syncthreads();
        if (step + job.depth - 1 < steps) copies.copy(step + job.depth - 1, next);
        gemm::copy_commit();
        multiply<T, ROWS, SIDE>(shared + slot * D::stage_bytes, sums);
        next = slot;
        slot = slot + 1 == job.depth ? 0 : slot + 1;
    }
    gemm::copy_wait<0>();
    __syncthreads();
    store<T, ROWS, SIDE>(job, (T *)shared, m0, (int64_t)column * SIDE, sums);
}

/* --- host --- */

using kernel_fn = void (*)(const sparse_job);

struct size_row {
    int rows, side, threads;
    size_t stage_bytes;
    kernel_fn fast, any; /* any: of every layout and alignment; NULL: not with this many rows */
};

template <typename T, int ROWS, int SIDE> constexpr size_row with_any() {
    using D = division<ROWS, SIDE>;
    return {ROWS,
            SIDE,
            D::threads,
            D::stage_bytes,
            block_sparse_kernel<T, ROWS, SIDE, true>,
            block_sparse_kernel<T, ROWS, SIDE, false>};
}
template <typename T, int ROWS, int SIDE> constexpr size_row fast_only() {
    using D = division<ROWS, SIDE>;
    return {ROWS, SIDE, D::threads, D::stage_bytes, block_sparse_kernel<T, ROWS, SIDE, true>, nullptr};
}

template <typename T> const size_row *find_size(const gemm_block_sparse_config *c) {
    static const size_row sizes[] = {
        with_any<T, 64, 16>(),   with_any<T, 64, 32>(),   with_any<T, 64, 64>(),   with_any<T, 64, 128>(),
        fast_only<T, 128, 16>(), fast_only<T, 128, 32>(), fast_only<T, 128, 64>(), fast_only<T, 128, 128>(),
        fast_only<T, 256, 16>(), fast_only<T, 256, 32>(), fast_only<T, 256, 64>(), fast_only<T, 256, 128>(),
    };
    for (const size_row &s : sizes)
        if (s.rows == c->rows && s.side == c->side) return &s;
    return nullptr;
}

const size_row *size_of(const gemm_shape *s, const gemm_block_sparse_config *c) {
    if (s->type_b != s->type_a || s->type_c != s->type_a) return nullptr;
    return s->type_a == GEMM_FP16   ? find_size<__half>(c)
           : s->type_a == GEMM_BF16 ? find_size<__nv_bfloat16>(c)
                                    : nullptr;
}

/* Pieces of 8 along k are whole and lie on 16 bytes. */
bool is_fast(const gemm_shape *s) { return !s->trans_a && s->lda % PIECE == 0 && s->k % PIECE == 0; }

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }
size_t rounded(size_t bytes) { return (bytes + 127) / 128 * 128; }

} // namespace

extern "C" int gemm_block_sparse_fits(const gemm_shape *shape, const gemm_block_sparse_config *config,
                                      size_t shared_limit) {
    const gemm_shape *const s = shape;
    const size_row *const size = size_of(s, config);
    if (!size || s->m < 1 || s->n < 1 || s->k < 1 || s->batch != 1 || s->k > INT32_MAX / 4) return 0;
    if (!is_fast(s) && !size->any) return 0;
    if (config->depth < MIN_DEPTH || config->depth > MAX_DEPTH) return 0;
    if (parts(s->m, config->rows) > INT32_MAX / parts(s->n, config->side)) return 0;
    return size->stage_bytes * (size_t)config->depth <= shared_limit;
}

extern "C" int gemm_block_sparse_prepare(const gemm_shape *shape, const gemm_block_sparse_config *config,
                                         int64_t blocks, gemm_block_sparse_plan *plan) {
    if (!gemm_block_sparse_fits(shape, config, SIZE_MAX) || blocks < 0 || blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    const size_row *const size = size_of(shape, config);
    const size_t block_bytes = (size_t)config->side * (size_t)config->side * 2;
    *plan = {};
    plan->shape = *shape, plan->config = *config;
    plan->fast = is_fast(shape);
    plan->kernel = (const void *)(plan->fast ? size->fast : size->any);
    plan->blocks = blocks;
    plan->columns = parts(shape->n, config->side);
    plan->thread_blocks = plan->columns * parts(shape->m, config->rows);
    plan->threads = size->threads;
    plan->shared_bytes = size->stage_bytes * (size_t)config->depth;
    plan->place_at = rounded((size_t)(plan->columns + 1) * sizeof(int32_t));
    plan->values_at = plan->place_at + rounded((size_t)blocks * sizeof(int32_t));
    plan->pack_bytes = plan->values_at + (size_t)blocks * block_bytes;
    return gemm::allow_shared(plan->kernel, plan->shared_bytes);
}

extern "C" int gemm_block_sparse_pack(const gemm_block_sparse_plan *plan, const void *weight, void *packed,
                                      int32_t *blocks, void *stream) {
    const gemm_shape *const s = &plan->shape;
    unsigned char *const to = (unsigned char *)packed;
    const gemm_sparse_weight w = {weight, s->n, s->k, s->ldb, s->trans_b, 2};
    int32_t *const begin = (int32_t *)to;
    const int error = gemm_sparse_pack_blocks(&w, plan->config.side, plan->blocks, begin,
                                              (int32_t *)(to + plan->place_at), to + plan->values_at, stream);
    if (error) return error;
    const cudaError_t copied =
        cudaMemcpyAsync(blocks, begin + plan->columns, sizeof *blocks, cudaMemcpyDeviceToHost, (cudaStream_t)stream);
    return copied ? copied : cudaStreamSynchronize((cudaStream_t)stream);
}

extern "C" int gemm_block_sparse_launch(const gemm_block_sparse_plan *plan, const void *a, const void *packed,
                                        const void *bias, void *c, void *stream) {
    const gemm_shape *const s = &plan->shape;
    const unsigned char *const from = (const unsigned char *)packed;
    if ((uintptr_t)packed % 16 != 0 || (plan->fast && (uintptr_t)a % 16 != 0)) return cudaErrorInvalidValue;
    sparse_job job = {};
    job.a = (const uint16_t *)a, job.c = c, job.bias = bias;
    job.begin = (const int32_t *)from;
    job.place = (const int32_t *)(from + plan->place_at);
    job.values = (const uint16_t *)(from + plan->values_at);
    job.m = s->m, job.n = s->n, job.k = s->k, job.ldc = s->ldc;
    job.row_step = s->trans_a ? 1 : s->lda, job.k_step = s->trans_a ? s->lda : 1;
    job.columns = (unsigned)plan->columns, job.depth = plan->config.depth;
    void *arguments[] = {&job};
    return cudaLaunchKernel(plan->kernel, dim3((unsigned)plan->thread_blocks), dim3((unsigned)plan->threads), arguments,
                            plan->shared_bytes, (cudaStream_t)stream);
}
