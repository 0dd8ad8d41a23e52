/* Probes of what the device can do at best: reading and writing in any proportion, a launch that does nothing, special
 * functions. The variants differ in how much a thread has in flight and how its accesses pass through the caches;
 * `choices` says which is taken when, as measured on an H200 (tests/gpu/check_stream.c measures them all again). The
 * bulk copy engine was measured too: it never won by more than 1 %, and lost by 10 % on writes. */
#include "kernels/harness/kernels.h"

namespace {

/* A step moves one tile of the larger side, and of the other one as much as its share is, so that both are busy from
 * the first step to the last. Bytes are whole pieces of 16; what is left over is in `rest`. */
struct stream_work {
    const unsigned char *read;
    unsigned char *written;
    uint64_t read_bytes, written_bytes;
    uint32_t read_tile, written_tile, steps, read_rest, written_rest;
    uint4 *sink;
};

/* Bytes of a side that lie in one tile. */
__device__ uint32_t stream_within(uint64_t bytes, uint64_t from, uint32_t tile) {
    return from >= bytes ? 0 : bytes - from < tile ? (uint32_t)(bytes - from) : tile;
}

/* How accesses pass through the caches: as ordinary ones do, or leaving as little behind as possible. */
enum { plain, through };

template <int policy> __device__ uint4 stream_load(const unsigned char *from) {
    if (policy == plain) return *(const uint4 *)from;
    uint4 x;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from));
    return x;
}

template <int policy> __device__ void stream_store(unsigned char *to, uint4 x) {
    if (policy == plain)
        *(uint4 *)to = x;
    else
        __stcs((uint4 *)to, x);
}

__device__ void stream_join(uint4 &into, uint4 x) { into.x ^= x.x, into.y ^= x.y, into.z ^= x.z, into.w ^= x.w; }

/* The compiler cannot prove that this never happens, so the reads stay. */
__device__ void stream_keep(uint4 *sink, uint4 x) {
    if (x.x == 0x9e3779b9u && x.y == 0x7f4a7c15u && x.z == 0xbf58476du && x.w == 0x1ce4e5b9u) *sink = x;
}

/* What is left over beyond 16-byte pieces: at most 15 bytes a side. */
__device__ void stream_rest(const stream_work &w, uint4 &seen) {
    if (blockIdx.x != 0) return;
    if (threadIdx.x < w.read_rest) seen.x ^= w.read[w.read_bytes + threadIdx.x];
    if (threadIdx.x < w.written_rest) w.written[w.written_bytes + threadIdx.x] = (unsigned char)seen.x;
}

template <int policy, int pieces, int threads>
__global__ void __launch_bounds__(threads) stream_loads(const stream_work w) {
    uint4 seen = make_uint4(threadIdx.x, blockIdx.x, 2, 3);
    for (uint32_t t = blockIdx.x; t < w.steps; t += gridDim.x) {
        const uint64_t read_at = (uint64_t)t * w.read_tile, written_at = (uint64_t)t * w.written_tile;
        const uint32_t reads = stream_within(w.read_bytes, read_at, w.read_tile),
                       writes = stream_within(w.written_bytes, written_at, w.written_tile);
        uint4 x[pieces];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const uint32_t at = (k * threads + threadIdx.x) * 16;
            x[k] = at < reads ? stream_load<policy>(w.read + read_at + at) : seen;
        }
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const uint32_t at = (k * threads + threadIdx.x) * 16;
            if (at < writes)
                stream_store<policy>(w.written + written_at + at, x[k]);
            else if (at < reads)
                stream_join(seen, x[k]);
        }
    }
    stream_rest(w, seen);
    stream_keep(w.sink, seen);
}

typedef cudaError_t stream_launcher(const stream_work &w, unsigned blocks, cudaStream_t stream);

template <int policy, int pieces, int threads>
cudaError_t stream_launch_loads(const stream_work &w, unsigned blocks, cudaStream_t stream) {
    stream_loads<policy, pieces, threads><<<blocks, threads, 0, stream>>>(w);
    return cudaGetLastError();
}

/* `resident`: blocks a multiprocessor; 0: one block for every tile. */
const struct stream_variant {
    const char *name;
    uint32_t tile;
    unsigned resident;
    stream_launcher *launch;
} variants[] = {
    {"automatic", 0, 0, NULL},
    {"plain 1x16, 512 threads", 1 * 16 * 512, 0, stream_launch_loads<plain, 1, 512>},
    {"plain 1x16, 256 threads", 1 * 16 * 256, 0, stream_launch_loads<plain, 1, 256>},
    {"plain 2x16, 256 threads", 2 * 16 * 256, 0, stream_launch_loads<plain, 2, 256>},
    {"plain 2x16, 128 threads", 2 * 16 * 128, 0, stream_launch_loads<plain, 2, 128>},
    {"plain 2x16, 512 threads", 2 * 16 * 512, 0, stream_launch_loads<plain, 2, 512>},
    {"plain 4x16, 256 threads", 4 * 16 * 256, 0, stream_launch_loads<plain, 4, 256>},
    {"plain 4x16, 1024 threads", 4 * 16 * 1024, 0, stream_launch_loads<plain, 4, 1024>},
    {"plain 8x16, 256 threads", 8 * 16 * 256, 0, stream_launch_loads<plain, 8, 256>},
    {"through 2x16, 512 threads", 2 * 16 * 512, 0, stream_launch_loads<through, 2, 512>},
    {"through 4x16, 256 threads", 4 * 16 * 256, 0, stream_launch_loads<through, 4, 256>},
    {"through 8x16, 256 threads, 4 resident", 8 * 16 * 256, 4, stream_launch_loads<through, 8, 256>},
};
constexpr int variant_count = (int)(sizeof variants / sizeof variants[0]);

constexpr uint64_t any_size = ~0ull;
const struct {
    double read_share; /* of the bytes moved, at least */
    uint64_t bytes;    /* read and written, at most */
    int variant;
} choices[] = {
    {0.0, 4u << 20, 2}, {0.8, 24u << 20, 5}, {0.8, any_size, 6}, {0.6, 64u << 20, 4},
    {0.6, any_size, 7}, {0.0, 64u << 20, 4}, {0.0, any_size, 2},
};

int stream_choose(uint64_t read_bytes, uint64_t written_bytes) {
    const uint64_t bytes = read_bytes + written_bytes;
    for (const auto &c : choices)
        if ((double)read_bytes >= c.read_share * (double)bytes && bytes <= c.bytes) return c.variant;
    return 2;
}

/* The smaller side's tile is its share, in pieces that a warp moves at once. */
uint32_t stream_tile(uint64_t bytes, uint64_t most, uint64_t steps, uint32_t tile) {
    const uint64_t share = (bytes + steps - 1) / steps, warp = 512;
    return bytes == most ? tile : (uint32_t)((share + warp - 1) / warp * warp);
}

__global__ void stream_empty() {}

__global__ void stream_delay(uint32_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}

__global__ void stream_stamp(kernels_stamps *to) {
    uint32_t at;
    uint64_t cycles, nanoseconds;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(at));
    if (at >= KERNELS_STAMPED) return;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
    to->cycles[at] = cycles, to->nanoseconds[at] = nanoseconds;
}

/* Straight code of 192 KB, which a warp for each scheduler of a multiprocessor runs through once. The larger cache of
 * instructions has 128 KB on a GPU of capability 9.0, so no other code is left there. */
constexpr int forget_threads = 128, forget_rounds = 3072; /* of four instructions of 16 bytes */

__global__ void __launch_bounds__(forget_threads) stream_forget(float factor, float *sink) {
    float a = (float)threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
#pragma unroll
    for (int k = 0; k < forget_rounds; k++) {
        a = __fmaf_rn(a, factor, 1.0f + (float)k);
        b = __fmaf_rn(b, factor, 2.0f + (float)k);
        c = __fmaf_rn(c, factor, 3.0f + (float)k);
        d = __fmaf_rn(d, factor, 4.0f + (float)k);
    }
    if (a + b + c + d == -1.0f) *sink = a; /* the sum is positive */
}

constexpr int rewrite_threads = 256, rewrite_blocks = 8; /* blocks: of a multiprocessor */

/* Every 16 bytes are written as they were. */
__global__ void __launch_bounds__(rewrite_threads) stream_rewrite(uint4 *data, uint64_t count) {
    const uint64_t step = (uint64_t)gridDim.x * rewrite_threads;
    for (uint64_t k = (uint64_t)blockIdx.x * rewrite_threads + threadIdx.x; k < count; k += step) {
        uint4 x;
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                     : "l"(data + k)
                     : "memory");
        data[k] = x;
    }
}

constexpr int special_threads = 512, special_chains = 8;

__global__ void __launch_bounds__(special_threads) stream_special(uint64_t rounds, float *sink) {
    float x[special_chains], sum = 0;
#pragma unroll
    for (int k = 0; k < special_chains; k++) x[k] = -0.001f * (float)(threadIdx.x + 7 * k);
    for (uint64_t r = 0; r < rounds; r++) {
#pragma unroll
        for (int k = 0; k < special_chains; k++) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x[k]));
    }
#pragma unroll
    for (int k = 0; k < special_chains; k++) sum += x[k];
    if (sum == -1.0f) *sink = sum; /* powers of two are positive */
}

} // namespace

int kernels_stream_variants(void) { return variant_count; }

const char *kernels_stream_name(int variant) {
    return variant >= 0 && variant < variant_count ? variants[variant].name : "";
}

cudaError_t kernels_stream(const void *read, uint64_t read_bytes, void *written, uint64_t written_bytes, void *sink,
                           int multiprocessors, int variant, cudaStream_t stream) {
    const uint64_t rest = 15, read_16 = read_bytes & ~rest, written_16 = written_bytes & ~rest,
                   most = read_16 > written_16 ? read_16 : written_16;
    if ((((uintptr_t)read | (uintptr_t)written) & rest) || variant < 0 || variant >= variant_count)
        return cudaErrorInvalidValue;
    if (!read_bytes && !written_bytes) return cudaSuccess;
    const stream_variant &v = variants[variant ? variant : stream_choose(read_bytes, written_bytes)];
    const uint64_t steps = most ? (most + v.tile - 1) / v.tile : 1;
    if (steps > 0x7fffffff) return cudaErrorInvalidValue;
    stream_work w = {};
    w.read = (const unsigned char *)read, w.written = (unsigned char *)written, w.sink = (uint4 *)sink;
    w.read_bytes = read_16, w.written_bytes = written_16;
    w.read_rest = (uint32_t)(read_bytes & rest), w.written_rest = (uint32_t)(written_bytes & rest);
    w.steps = (uint32_t)steps;
    w.read_tile = stream_tile(read_16, most, steps, v.tile);
    w.written_tile = stream_tile(written_16, most, steps, v.tile);
    const uint64_t room = v.resident ? (uint64_t)v.resident * (uint64_t)multiprocessors : 0x7fffffff;
    return v.launch(w, (unsigned)(w.steps < room ? w.steps : room), stream);
}

cudaError_t kernels_empty(cudaStream_t stream) {
    stream_empty<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}

cudaError_t kernels_forget(void *sink, int multiprocessors, cudaStream_t stream) {
    stream_forget<<<(unsigned)multiprocessors, forget_threads, 0, stream>>>(0.5f, (float *)sink);
    return cudaGetLastError();
}

/* All but the ends that are no whole 16 bytes. */
cudaError_t kernels_rewrite(void *data, uint64_t bytes, int multiprocessors, cudaStream_t stream) {
    const uint64_t piece = sizeof(uint4), before = (piece - (uintptr_t)data % piece) % piece,
                   count = bytes > before ? (bytes - before) / piece : 0,
                   blocks = (count + rewrite_threads - 1) / rewrite_threads,
                   most = (uint64_t)multiprocessors * rewrite_blocks;
    if (count == 0) return cudaSuccess;
    stream_rewrite<<<(unsigned)(blocks < most ? blocks : most), rewrite_threads, 0, stream>>>(
        (uint4 *)((char *)data + before), count);
    return cudaGetLastError();
}

cudaError_t kernels_delay(uint32_t nanoseconds, cudaStream_t stream) {
    stream_delay<<<1, 1, 0, stream>>>(nanoseconds);
    return cudaGetLastError();
}

cudaError_t kernels_stamp(kernels_stamps *to, int multiprocessors, cudaStream_t stream) {
    stream_stamp<<<multiprocessors, 1, 0, stream>>>(to);
    return cudaGetLastError();
}

cudaError_t kernels_special(uint64_t operations, uint64_t *done, void *sink, int multiprocessors, cudaStream_t stream) {
    const uint64_t blocks = (uint64_t)multiprocessors * 4, a_round = blocks * special_threads * special_chains;
    const uint64_t rounds = operations ? (operations + a_round - 1) / a_round : 1;
    stream_special<<<(unsigned)blocks, special_threads, 0, stream>>>(rounds, (float *)sink);
    *done = rounds * a_round;
    return cudaGetLastError();
}
