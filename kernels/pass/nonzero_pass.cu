/* The places of what is not zero, in order: blocks count what their tiles have, one block adds these up, and then each
 * block writes its places behind those before. */
#include "kernels/pass/pass.cuh"
#include "kernels/pass/place_kernels.h"

namespace {

constexpr int threads = 256, rounds = 16, tile = threads * rounds, warps = threads / 32, summing = 1024;

struct job {
    const void *x;
    long long *y, *before; /* before: of each tile what those ahead of it have, and then of all together */
    int64_t count, tiles;
    int rank;
    unsigned long long mask; /* of a word: what tells zero from others, which a sign does not */
    pass::radix places;      /* innermost first */
};

template <int SIZE> __device__ __forceinline__ bool is_set(const job &p, int64_t at) {
    typedef typename pass::unit<SIZE>::type word;
    return at < p.count && (((const word *)p.x)[at] & (word)p.mask) != 0;
}

template <int SIZE> __global__ void __launch_bounds__(threads) count_tiles(const job p) {
    for (int64_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        int all = 0;
        for (int k = 0; k < rounds; k++) all += __syncthreads_count(is_set<SIZE>(p, t * tile + k * threads + threadIdx.x));
        if (threadIdx.x == 0) p.before[t] = all;
    }
}

/* One block. */
__global__ void __launch_bounds__(summing) add_up(const job p) {
    __shared__ long long sums[summing];
    long long ahead = 0;
    for (int64_t first = 0; first < p.tiles; first += summing) {
        const int64_t at = first + threadIdx.x;
        const long long own = at < p.tiles ? p.before[at] : 0;
        sums[threadIdx.x] = own;
        __syncthreads();
        for (int reach = 1; reach < summing; reach *= 2) {
            const long long left = (int)threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
            __syncthreads();
            sums[threadIdx.x] += left;
            __syncthreads();
        }
        if (at < p.tiles) p.before[at] = ahead + sums[threadIdx.x] - own;
        ahead += sums[summing - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) p.before[p.tiles] = ahead;
}

__device__ __forceinline__ void put(const job &p, int64_t at, int64_t column) {
    int64_t rest = at;
    for (int d = 0; d < p.rank; d++)
        p.y[(p.rank - 1 - d) * p.count + column] = (long long)pass::radix_next(p.places, d, rest);
}

template <int SIZE> __global__ void __launch_bounds__(threads) write_places(const job p) {
    __shared__ int found[warps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t all = p.before[p.tiles];
    for (int64_t t = blockIdx.x; t < p.tiles; t += gridDim.x) {
        int64_t next = p.before[t];
        for (int k = 0; k < rounds; k++) {
            const int64_t at = t * tile + k * threads + threadIdx.x;
            const bool here = is_set<SIZE>(p, at);
            const unsigned votes = __ballot_sync(~0u, here);
            if (lane == 0) found[warp] = __popc(votes);
            __syncthreads();
            int64_t column = next + __popc(votes & ((1u << lane) - 1));
            for (int w = 0; w < warps; w++) {
                if (w < warp) column += found[w];
                next += found[w];
            }
            if (here) put(p, at, column);
            if (at >= all && at < p.count)
                for (int d = 0; d < p.rank; d++) p.y[d * p.count + at] = 0;
            __syncthreads();
        }
    }
}

/* Signs of floats are no part of what makes them zero. */
const struct {
    int type;
    unsigned long long mask;
} masks[] = {{PASS_FP32, 0x7fffffffull}, {PASS_FP16, 0x7fffull}, {PASS_BF16, 0x7fffull},
             {PASS_FP64, 0x7fffffffffffffffull}};

const struct {
    int size;
    const void *count, *write;
} kernels[] = {{1, (const void *)count_tiles<1>, (const void *)write_places<1>},
               {2, (const void *)count_tiles<2>, (const void *)write_places<2>},
               {4, (const void *)count_tiles<4>, (const void *)write_places<4>},
               {8, (const void *)count_tiles<8>, (const void *)write_places<8>}};

int64_t tiles_of(const nonzero_pass *n) { return (n->count + tile - 1) / tile; }

} // namespace

int nonzero_pass_fits(const nonzero_pass *n) {
    return pass::size_of(n->type) > 0 && n->rank >= 1 && n->rank <= PASS_RANK && n->count > 0;
}

size_t nonzero_pass_workspace(const nonzero_pass *n) { return (size_t)(tiles_of(n) + 1) * sizeof(long long); }

int nonzero_pass_launch(const nonzero_pass *n, const void *x, void *y, void *workspace, void *stream) {
    if (!nonzero_pass_fits(n)) return cudaErrorInvalidValue;
    const int size = pass::size_of(n->type);
    const pass_config plain = {};
    int64_t dims[PASS_RANK];
    int row = 0;
    job j = {};
    j.x = x, j.y = (long long *)y, j.before = (long long *)workspace;
    j.count = n->count, j.tiles = tiles_of(n), j.rank = n->rank, j.mask = ~0ull;
    for (size_t k = 0; k < sizeof masks / sizeof masks[0]; k++)
        if (masks[k].type == n->type) j.mask = masks[k].mask;
    for (int d = 0; d < n->rank; d++) dims[d] = n->dims[n->rank - 1 - d];
    j.places = pass::radix_of(n->rank, dims);
    while (kernels[row].size != size) row++;
    const dim3 grid(pass::blocks_of(plain, j.tiles)), block(threads);
    void *args[] = {&j};
    int error = cudaLaunchKernel(kernels[row].count, grid, block, args, 0, (cudaStream_t)stream);
    if (!error) error = cudaLaunchKernel((const void *)add_up, dim3(1), dim3(summing), args, 0, (cudaStream_t)stream);
    return error ? error : cudaLaunchKernel(kernels[row].write, grid, block, args, 0, (cudaStream_t)stream);
}
