/* Probes of what the device can do at best: reading and writing in any proportion, a launch that does nothing, special
 * functions. The variants differ in how much a thread has in flight and how its accesses pass through the caches;
 * `choices` says which is taken when, as measured on an H200 (tests/gpu/check_stream.c measures them all again). The
 * bulk copy engine was a rival too: it never won by more than 1 %, and lost by 10 % on writes. */
#include "kernels/kernels.h"

namespace {

/* `read` and `written` in tiles; a step takes at most one tile of each, whichever side has fewer pauses in between. */
struct stream_work {
    const unsigned char *read;
    unsigned char *written;
    uint64_t read_bytes, written_bytes, read_tiles, written_tiles, steps;
    uint4 *sink;
};

struct stream_step {
    uint64_t read_at, written_at; /* bytes */
    bool reads, writes;
};

__device__ stream_step stream_step_of(const stream_work &w, uint64_t t, uint64_t tile) {
    stream_step s = {t * tile, t * tile, w.read_tiles == w.steps, w.written_tiles == w.steps};
    if (!s.reads) { /* at most 2^24 tiles on either side: no overflow */
        const uint64_t first = t * w.read_tiles / w.steps;
        s.reads = (t + 1) * w.read_tiles / w.steps > first;
        s.read_at = first * tile;
    }
    if (!s.writes) {
        const uint64_t first = t * w.written_tiles / w.steps;
        s.writes = (t + 1) * w.written_tiles / w.steps > first;
        s.written_at = first * tile;
    }
    return s;
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

/* Nobody can know that this never happens, so what was read had to be read. */
__device__ void stream_keep(uint4 *sink, uint4 x) {
    if (x.x == 0x9e3779b9u && x.y == 0x7f4a7c15u && x.z == 0xbf58476du && x.w == 0x1ce4e5b9u) *sink = x;
}

/* What is left over beyond 16-byte pieces: at most 15 bytes a side. */
__device__ void stream_rest(const stream_work &w, uint4 &seen) {
    if (blockIdx.x != 0 || threadIdx.x >= 16) return;
    const uint64_t r = (w.read_bytes & ~15ull) + threadIdx.x, c = (w.written_bytes & ~15ull) + threadIdx.x;
    if (r < w.read_bytes) seen.x ^= w.read[r];
    if (c < w.written_bytes) w.written[c] = (unsigned char)seen.x;
}

template <int policy, int pieces, int threads>
__global__ void __launch_bounds__(threads) stream_loads(const stream_work w) {
    constexpr uint64_t tile = (uint64_t)pieces * threads * 16;
    uint4 seen = make_uint4(threadIdx.x, blockIdx.x, 2, 3);
    for (uint64_t t = blockIdx.x; t < w.steps; t += gridDim.x) {
        const stream_step s = stream_step_of(w, t, tile);
        uint4 x[pieces];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const uint64_t at = s.read_at + ((uint64_t)k * threads + threadIdx.x) * 16;
            x[k] = s.reads && at + 16 <= w.read_bytes ? stream_load<policy>(w.read + at) : seen;
        }
        if (s.writes) {
#pragma unroll
            for (int k = 0; k < pieces; k++) {
                const uint64_t at = s.written_at + ((uint64_t)k * threads + threadIdx.x) * 16;
                if (at + 16 <= w.written_bytes) stream_store<policy>(w.written + at, x[k]);
            }
        } else {
#pragma unroll
            for (int k = 0; k < pieces; k++) stream_join(seen, x[k]);
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
    {0.0, 256u << 10, 1}, {0.7, any_size, 3},  {0.3, 2u << 20, 1}, {0.3, 64u << 20, 2},
    {0.3, any_size, 4},   {0.0, 48u << 20, 3}, {0.0, any_size, 2},
};

int stream_choose(uint64_t read_bytes, uint64_t written_bytes) {
    const uint64_t bytes = read_bytes + written_bytes;
    for (const auto &c : choices)
        if ((double)read_bytes >= c.read_share * (double)bytes && bytes <= c.bytes) return c.variant;
    return 2;
}

__global__ void stream_empty() {}

__global__ void stream_delay(uint32_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
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
    const uint64_t most = read_bytes > written_bytes ? read_bytes : written_bytes;
    if ((((uintptr_t)read | (uintptr_t)written) & 15) || variant < 0 || variant >= variant_count)
        return cudaErrorInvalidValue;
    if (!most) return cudaSuccess;
    const stream_variant &v = variants[variant ? variant : stream_choose(read_bytes, written_bytes)];
    stream_work w = {
        (const unsigned char *)read, (unsigned char *)written, read_bytes, written_bytes, 0, 0, 0, (uint4 *)sink};
    w.read_tiles = (read_bytes + v.tile - 1) / v.tile;
    w.written_tiles = (written_bytes + v.tile - 1) / v.tile;
    w.steps = w.read_tiles > w.written_tiles ? w.read_tiles : w.written_tiles;
    const uint64_t room = v.resident ? (uint64_t)v.resident * (uint64_t)multiprocessors : 0x7fffffff;
    return v.launch(w, (unsigned)(w.steps < room ? w.steps : room), stream);
}

cudaError_t kernels_empty(cudaStream_t stream) {
    stream_empty<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}

cudaError_t kernels_delay(uint32_t nanoseconds, cudaStream_t stream) {
    stream_delay<<<1, 1, 0, stream>>>(nanoseconds);
    return cudaGetLastError();
}

cudaError_t kernels_special(uint64_t operations, uint64_t *done, void *sink, int multiprocessors, cudaStream_t stream) {
    const uint64_t blocks = (uint64_t)multiprocessors * 4, a_round = blocks * special_threads * special_chains;
    const uint64_t rounds = operations ? (operations + a_round - 1) / a_round : 1;
    stream_special<<<(unsigned)blocks, special_threads, 0, stream>>>(rounds, (float *)sink);
    *done = rounds * a_round;
    return cudaGetLastError();
}
