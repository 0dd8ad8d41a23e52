/* fp16 x 4 bits with fp16 scales, and zero points, in blocks along k: the weight is turned into fp16 in registers, on its
 * way from shared memory to the tensor cores. Two ways: streaming for few rows, as gemm_stream (a lane's own copies, no barrier within
 * a tile, warps that divide k), and tiles for many rows (gemm_tile.cuh).
 *
 * A nibble becomes a half by bits: or-ed into 0x6400 it is 1024 + q, from which 1024 and the zero point are taken off
 * together, exactly. One with a sign has its highest bit turned first, and a zero point that is 8 higher. The nibbles of a word that one logic instruction
 * brings out stand four apart, so A's values are paired in the same way: the order of k within a fragment is free.
 *
 * What was tried on an H200: 16 warps instead of 8 and the scale on sums instead of weights were expected to halve the
 * distance to a plain read of the weight; they brought a tenth (11008 x 4096, m = 1: from 13.4 to 12.3 us; the read
 * takes 6.8). Nibbles as subnormal halves, which saves a third of the arithmetic, brought nothing, so arithmetic does
 * not seem to be the bound. */
#include "kernels/harness/kernels.h"
#include "kernels/product/gemm_kernels.h"
#include "kernels/product/gemm_tile.cuh"

#include <cuda_runtime.h>

namespace {

enum {
    TILE = 32,  /* outputs at once */
    STEP = 256, /* of k, for a warp between two waits: 128 bytes of each row */
    WEIGHT_BYTES = TILE * STEP / 2,
    SCALE_BYTES = TILE * 16 /* room for blocks of 32 */
};

/* How numbers with a sign are read, or those without. */
struct int4_code {
    uint32_t even, odd; /* what two nibbles are turned with */
    __half zero;        /* of a weight without zero points; else what is added to them */
};

struct int4_job {
    const __half *a;
    const uint8_t *w;
    const __half *scales, *zeros; /* zeros: as halves, as the scales lie */
    __half *c;
    int4_code code;
    int m, n, k, steps, units, more, block_shift; /* outputs: as in gemm_stream's job */
    int64_t lda, ldw, ldc;                        /* ldw in bytes */
};

/* (w & mask) ^ pattern: nibbles 0 and 4 as 1024 + code, or, with the other mask, 1 and 5 as 1024 + 16 code. */
__device__ __forceinline__ uint32_t pick(uint32_t w, uint32_t mask, uint32_t pattern) { return (w & mask) ^ pattern; }

/* Eight nibbles to four pairs of halves, SCALED times the scale: (k0,k4) (k1,k5) (k2,k6) (k3,k7). */
template <bool SCALED>
__device__ __forceinline__ void expand(uint32_t (&out)[4], uint32_t w, const int4_code &code, __half zero,
                                       __half2 scale) {
    const __half2 low = __half2half2(__hsub(__float2half_rn(-1024.0f), zero)),
                  high = __half2half2(__hsub(__float2half_rn(-64.0f), zero)), part = __float2half2_rn(0.0625f);
#pragma unroll
    for (int i = 0; i < 2; i++, w >>= 8) {
        uint32_t even = pick(w, 0x000f000fu, code.even), odd = pick(w, 0x00f000f0u, code.odd);
        __half2 e = __hadd2(*(__half2 *)&even, low), o = __hfma2(*(__half2 *)&odd, part, high);
        if (SCALED) e = __hmul2(e, scale), o = __hmul2(o, scale);
        out[2 * i] = *(uint32_t *)&e, out[2 * i + 1] = *(uint32_t *)&o;
    }
}

/* Where 16-byte pieces stand: of a weight's row (8) and of A's row (32); neighbours in time are in different banks. */
__device__ __forceinline__ int place_w(int r, int c) { return r * 128 + ((c ^ (r & 1) << 2) << 4); }
__device__ __forceinline__ int place_a(int r, int c) { return r * 512 + ((c ^ ((c >> 3) & 1) ^ (r & 1) << 1) << 4); }

template <bool ZEROS> struct lane_source {
    int first, count;

    /* One for each block of this step: 2, 4 or 8, and as many bytes twice over. */
    __device__ __forceinline__ void fetch_blocks(const int4_job &job, const __half *from, int step, uint32_t to,
                                                 int lane) const {
        const int blocks = STEP >> job.block_shift;
        const __half *s = from + (int64_t)(first + lane) * (job.k >> job.block_shift) + step * blocks;
        const uint32_t there = to + lane * 16, some = lane < count ? 1 : 0;
        if (blocks == 8)
            gemm::copy16(there, s, some);
        else if (blocks == 4)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(there), "l"(s), "r"(some * 8) : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(there), "l"(s), "r"(some * 4) : "memory");
    }

    __device__ __forceinline__ void fetch(const int4_job &job, int step, uint32_t to, int lane) const {
        const uint32_t scales = to + WEIGHT_BYTES, a = scales + (1 + ZEROS) * SCALE_BYTES;
        const uint8_t *w = job.w + (int64_t)(first + (lane >> 3)) * job.ldw + step * (STEP / 2) + (lane & 7) * 16;
        for (int row = 0; row < job.m; row++)
            gemm::copy16(a + place_a(row, lane), job.a + row * job.lda + step * STEP + lane * 8, true);
#pragma unroll
        for (int i = 0; i < TILE / 4; i++, w += 4 * job.ldw)
            gemm::copy16(to + place_w(i * 4 + (lane >> 3), lane & 7), w, i * 4 + (lane >> 3) < count);
        fetch_blocks(job, job.scales, step, scales, lane);
        if (ZEROS) fetch_blocks(job, job.zeros, step, scales + SCALE_BYTES, lane);
    }
};

__device__ __forceinline__ __half of_block(uint32_t table, int row, int piece, int block_shift) {
    uint16_t bits;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(bits) : "r"(table + row * 16 + (piece * 32 >> block_shift) * 2));
    return __ushort_as_half(bits);
}

/* One step of one warp. WHOLE: blocks of 128, so that a scale holds for half of a step, and multiplies its sums. */
template <int MT, bool WHOLE, bool ZEROS>
__device__ __forceinline__ void multiply(float (&sums)[TILE / 16][MT][4], const int4_job &job, uint32_t from,
                                         int lane) {
    const int g = lane >> 2, t = lane & 3;
    const uint32_t scales = from + WEIGHT_BYTES, a = scales + (1 + ZEROS) * SCALE_BYTES;
#pragma unroll
    for (int p = 0; p < 2; p++) {
        uint4 w[TILE / 8];
        __half2 scale[TILE / 8];
        __half zero[TILE / 8];
        float part[TILE / 16][MT][4] = {};
#pragma unroll
        for (int i = 0; i < TILE / 8; i++) {
            w[i] = gemm::load_shared16(from + place_w(g, p * 4 + t) + i * 1024);
            scale[i] = __half2half2(of_block(scales, i * 8 + g, p * 4 + t, job.block_shift));
            zero[i] = job.code.zero;
            if (ZEROS)
                zero[i] = __hadd(zero[i], of_block(scales + SCALE_BYTES, i * 8 + g, p * 4 + t, job.block_shift));
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t x[MT][4];
#pragma unroll
            for (int h = 0; h < MT; h++) {
                uint4 v = make_uint4(0, 0, 0, 0);
                if (g + 8 * h < job.m) v = gemm::load_shared16(a + place_a(g, (p * 4 + t) * 4 + j) + h * 4096);
                x[h][0] = __byte_perm(v.x, v.z, 0x5410), x[h][1] = __byte_perm(v.x, v.z, 0x7632);
                x[h][2] = __byte_perm(v.y, v.w, 0x5410), x[h][3] = __byte_perm(v.y, v.w, 0x7632);
            }
#pragma unroll
            for (int strip = 0; strip < TILE / 16; strip++) {
                uint32_t r[4], s[4];
                const uint4 u = w[2 * strip], v = w[2 * strip + 1];
                expand<!WHOLE>(r, j == 0 ? u.x : j == 1 ? u.y : j == 2 ? u.z : u.w, job.code, zero[2 * strip],
                               scale[2 * strip]);
                expand<!WHOLE>(s, j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w, job.code, zero[2 * strip + 1],
                               scale[2 * strip + 1]);
#pragma unroll
                for (int h = 0; h < MT; h++) {
                    float(&to)[4] = WHOLE ? part[strip][h] : sums[strip][h];
                    gemm::mma16816<__half>(to, r[0], s[0], r[1], s[1], x[h][0], x[h][1]);
                    gemm::mma16816<__half>(to, r[2], s[2], r[3], s[3], x[h][2], x[h][3]);
                }
            }
        }
        if (WHOLE) {
#pragma unroll
            for (int i = 0; i < TILE / 16 * MT * 4; i++) {
                const int strip = i / (MT * 4), h = i / 4 % MT, e = i % 4;
                sums[strip][h][e] += part[strip][h][e] * __low2float(scale[2 * strip + (e >> 1)]);
            }
        }
    }
}

template <int WARPS, int MT, int DEPTH, bool WHOLE, bool ZEROS>
__global__ void __launch_bounds__(WARPS * 32, 1) int4_kernel(const __grid_constant__ int4_job job) {
    constexpr int PITCH = TILE + 4;
    extern __shared__ __align__(128) unsigned char memory[];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, block = blockIdx.x;
    const int less = block >= job.more, first = block * job.units + (less ? job.more : block);
    const int last = first + job.units + !less, tiles = (last - first + TILE - 1) / TILE;
    const int height = (last - first + tiles - 1) / tiles;
    const int steps = (job.steps - warp + WARPS - 1) / WARPS, turn = steps > 0 ? block % (unsigned)steps : 0;
    const int slot_bytes = WEIGHT_BYTES + (1 + ZEROS) * SCALE_BYTES + job.m * STEP * 2;
    const uint32_t ring = gemm::shared_address(memory) + warp * DEPTH * slot_bytes;
    float *partial = (float *)(memory + WARPS * DEPTH * slot_bytes);

    int next_tile = steps > 0 ? 0 : tiles, next_step = 0;
    auto issue = [&](int slot) {
        if (next_tile < tiles) {
            const int turned = next_step + turn, base = first + next_tile * height;
            const lane_source<ZEROS> source = {base, min(height, last - base)};
            source.fetch(job, warp + WARPS * (turned < steps ? turned : turned - steps), ring + slot * slot_bytes,
                         lane);
            if (++next_step == steps) next_step = 0, next_tile++;
        }
        gemm::copy_commit();
    };
#pragma unroll
    for (int slot = 0; slot < DEPTH; slot++) issue(slot);
    int slot = 0;
    for (int tile = 0; tile < tiles; tile++) {
        float sums[TILE / 16][MT][4] = {};
        for (int step = 0; step < steps; step++) {
            gemm::copy_wait<DEPTH - 1>();
            __syncwarp();
            multiply<MT, WHOLE, ZEROS>(sums, job, ring + slot * slot_bytes, lane);
            __syncwarp();
            issue(slot);
            slot = slot + 1 == DEPTH ? 0 : slot + 1;
        }
        if (tile > 0) __syncthreads();
#pragma unroll
        for (int strip = 0; strip < TILE / 16; strip++)
#pragma unroll
            for (int h = 0; h < MT; h++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    partial[(warp * 8 * MT + h * 8 + (lane & 3) * 2 + (e & 1)) * PITCH + strip * 16 + (lane >> 2) +
                            (e >> 1) * 8] = sums[strip][h][e];
        __syncthreads();
        const int base = first + tile * height, count = min(height, last - base);
        for (int i = threadIdx.x; i < TILE * job.m; i += WARPS * 32) {
            const int m = i / TILE, n = i % TILE;
            float sum = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += partial[(w * 8 * MT + m) * PITCH + n];
            if (n < count) job.c[m * job.ldc + base + n] = __float2half_rn(sum);
        }
    }
}

/* The streaming kernels: the first that takes the rows and fits is used. 16 warps: dequantising is bound by the latency
 * of its instructions, not by memory. */
enum { FORMS = 4 }; /* 1: whole, 2: with zero points */
#define STREAM(WARPS, ROWS, MT, DEPTH)                                                                                 \
    {                                                                                                                  \
        WARPS, ROWS, DEPTH, {                                                                                          \
            int4_kernel<WARPS, MT, DEPTH, false, false>, int4_kernel<WARPS, MT, DEPTH, true, false>,                   \
                int4_kernel<WARPS, MT, DEPTH, false, true>, int4_kernel<WARPS, MT, DEPTH, true, true>                  \
        }                                                                                                              \
    }
const struct {
    int warps, rows, depth;
    void (*kernels[FORMS])(const int4_job);
} streams[] = {STREAM(16, 4, 1, 2), STREAM(8, 8, 1, 3), STREAM(8, 16, 2, 2)};
enum { STREAMS = sizeof streams / sizeof streams[0] };

size_t shared_bytes_of(int which, int rows, int zeros) {
    const size_t warps = (size_t)streams[which].warps, padded = streams[which].rows <= 8 ? 8 : 16;
    const size_t slot = WEIGHT_BYTES + (size_t)(1 + zeros) * SCALE_BYTES + (size_t)rows * STEP * 2;
    return warps * (size_t)streams[which].depth * slot + warps * padded * (TILE + 4) * 4;
}

/* Which of them; -1: none. */
int stream_for(int64_t rows, int zeros, size_t limit) {
    for (int k = 0; k < STREAMS; k++)
        if (rows <= streams[k].rows && shared_bytes_of(k, (int)rows, zeros) <= limit) return k;
    return -1;
}

int4_code code_of(const gemm_shape *s) {
    if (s->type_b == GEMM_UINT4) return {0x64006400u, 0x64006400u, __float2half(0.0f)};
    return {0x64086408u, 0x64806480u, __float2half(8.0f)};
}

/* A slice of the weight for gemm_tile: 128 outputs, 32 k; 16 nibbles for each thread. */
struct int4_loader {
    const uint8_t *from;
    const __half *scales, *zeros;
    int4_code code;
    int64_t pitch, n, k, block;
    uint2 held;
    __half scale, zero;

    __device__ __forceinline__ void load(int64_t first, int64_t k0) {
        const int64_t r = first + threadIdx.x / 2, at = k0 + threadIdx.x % 2 * 16;
        held = make_uint2(0, 0), scale = __float2half(0.0f), zero = code.zero;
        if (r >= n || at >= k) return;
        held = *(const uint2 *)(from + r * pitch + at / 2);
        scale = scales[r * (k / block) + at / block];
        if (zeros) zero = __hadd(zero, zeros[r * (k / block) + at / block]);
    }
    __device__ __forceinline__ void store(__half *to) const {
        to += threadIdx.x / 2 * gemm::slice<true>::pitch + threadIdx.x % 2 * 16;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t x[4];
            expand<true>(x, i ? held.y : held.x, code, zero, __half2half2(scale));
            *(uint4 *)(to + i * 8) = make_uint4(__byte_perm(x[0], x[1], 0x5410), __byte_perm(x[2], x[3], 0x5410),
                                                __byte_perm(x[0], x[1], 0x7632), __byte_perm(x[2], x[3], 0x7632));
        }
    }
};

struct int4_tiled_job {
    gemm_shape s;
    const __half *a, *scales, *zeros;
    const uint8_t *b;
    __half *c;
    int4_code code;
};

__global__ void __launch_bounds__(gemm::TILE_THREADS, 2) int4_tiled_kernel(const int4_tiled_job job) {
    const gemm_shape &s = job.s;
    for (int64_t m0 = (int64_t)blockIdx.y * gemm::TILE_M; m0 < s.m; m0 += (int64_t)gridDim.y * gemm::TILE_M) {
        gemm::matrix_loader<__half, true> a = {job.a, s.lda, s.m, s.k,
                                               ((uintptr_t)job.a | (uint64_t)s.lda * 2) % 16 == 0};
        int4_loader b = {job.b, job.scales, job.zeros, job.code, s.ldb / 2, s.n, s.k, s.block_size};
        gemm::tile_product<__half, true, true>(a, b, job.c, s.ldc, s.m, s.n, s.k, m0,
                                               (int64_t)blockIdx.x * gemm::TILE_N);
    }
}

bool possible(const gemm_shape *s, const gemm_int4_config *config) {
    const bool types = s->type_a == GEMM_FP16 && (s->type_b == GEMM_INT4 || s->type_b == GEMM_UINT4) &&
                       s->type_c == GEMM_FP16;
    const bool sizes = s->m >= 1 && s->n >= 1 && s->n < (1 << 30) && s->k >= 16 && s->k < (1 << 30) && s->batch == 1;
    const bool layout = !s->trans_a && s->trans_b && s->block_size >= 16 && s->block_size % 16 == 0 &&
                        s->k % s->block_size == 0 && s->ldb % 16 == 0;
    const bool blocks = s->block_size == 32 || s->block_size == 64 || s->block_size == 128;
    return types && sizes && layout &&
           (config->tiled || (blocks && s->k % STEP == 0 && s->lda % 8 == 0 && s->ldb % 32 == 0));
}
} // namespace

extern "C" int gemm_int4_fits(const gemm_shape *shape, const gemm_int4_config *config, size_t shared_limit) {
    return possible(shape, config) && (config->tiled || stream_for(1, config->zeros, shared_limit) >= 0);
}

extern "C" int gemm_int4_prepare(const gemm_shape *shape, const gemm_int4_config *config, gemm_int4_plan *plan) {
    int device = 0, units = 0, limit = 0;
    *plan = {};
    if (!possible(shape, config)) return cudaErrorInvalidValue;
    plan->shape = *shape, plan->config = *config;
    if (config->tiled) return cudaSuccess;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess) e = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (e != cudaSuccess) return e;
    plan->shared_limit = (size_t)limit;
    plan->rows = (int)(shape->m < 16 ? shape->m : 16);
    while (plan->rows > 0 && stream_for(plan->rows, config->zeros, plan->shared_limit) < 0) plan->rows--;
    if (plan->rows == 0) return cudaErrorInvalidValue;
    plan->shared_bytes =
        shared_bytes_of(stream_for(plan->rows, config->zeros, plan->shared_limit), plan->rows, config->zeros);
    plan->blocks = (int)(units < shape->n ? units : shape->n);
    for (int k = 0; k < FORMS * STREAMS && e == cudaSuccess; k++)
        e = gemm::allow_shared((const void *)streams[k / FORMS].kernels[k % FORMS], (size_t)limit);
    return e;
}

extern "C" int gemm_int4_zeros(const gemm_int4_plan *plan, const void *zeros, void *halves, void *stream) {
    const gemm_shape *const s = &plan->shape;
    const int64_t blocks = s->k / s->block_size;
    const kernels_blocks table = {zeros, nullptr, nullptr, (uint32_t)s->type_b, 0, 1, s->n, blocks, blocks, 1, 1};
    return kernels_widen(halves, GEMM_FP16, &table, (cudaStream_t)stream);
}

extern "C" int gemm_int4_launch(const gemm_int4_plan *plan, const void *a, const void *b, const void *scales,
                                const void *zeros, void *c, void *stream) {
    const gemm_shape *s = &plan->shape;
    const int4_code code = code_of(s);
    if (plan->config.zeros != (zeros != nullptr)) return cudaErrorInvalidValue;
    if (plan->config.tiled) {
        const int64_t down = (s->m + gemm::TILE_M - 1) / gemm::TILE_M;
        const dim3 grid((unsigned)((s->n + gemm::TILE_N - 1) / gemm::TILE_N), (unsigned)(down < 65535 ? down : 65535));
        const int4_tiled_job job = {*s,
                                    (const __half *)a,
                                    (const __half *)scales,
                                    (const __half *)zeros,
                                    (const uint8_t *)b,
                                    (__half *)c,
                                    code};
        int4_tiled_kernel<<<grid, gemm::TILE_THREADS, 0, (cudaStream_t)stream>>>(job);
        return cudaGetLastError();
    }
    int shift = 5;
    while (s->block_size >> shift > 1) shift++;
    for (int64_t m = 0; m < s->m; m += plan->rows) {
        const int rows = (int)(s->m - m < plan->rows ? s->m - m : plan->rows);
        const int4_job job = {(const __half *)a + m * s->lda,
                              (const uint8_t *)b,
                              (const __half *)scales,
                              (const __half *)zeros,
                              (__half *)c + m * s->ldc,
                              code,
                              rows,
                              (int)s->n,
                              (int)s->k,
                              (int)(s->k / STEP),
                              (int)(s->n / plan->blocks),
                              (int)(s->n % plan->blocks),
                              shift,
                              s->lda,
                              s->ldb / 2,
                              s->ldc};
        const int which = stream_for(rows, plan->config.zeros, plan->shared_limit);
        const auto kernel = streams[which].kernels[(s->block_size == 128) + 2 * plan->config.zeros];
        kernel<<<(unsigned)plan->blocks, (unsigned)streams[which].warps * 32,
                 shared_bytes_of(which, rows, plan->config.zeros),
                 (cudaStream_t)stream>>>(job);
        const cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess) return e;
    }
    return cudaSuccess;
}
