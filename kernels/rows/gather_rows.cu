/* Rows of a table named by indices, copied in the widest pieces that their length and place allow: embeddings, gather,
 * gathernd. A thread has four pieces in flight, so that a row's place being looked up holds nothing up. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, pieces = 4;

struct job {
    gather_rows g;
    int64_t row_pieces, all;
    const void *table, *indices;
    void *out;
    pass::radix places; /* piece of a row, index, outer */
};

/* Indices that name one row: places in nested dimensions. */
__device__ __forceinline__ int64_t row_of(const job &p, int64_t at) {
    int64_t row = 0;
    for (int k = 0; k < p.g.parts; k++) {
        const int64_t i = at * p.g.parts + k;
        row = row * p.g.lengths[k] +
              (p.g.index_type == PASS_INT64 ? ((const long long *)p.indices)[i] : ((const int *)p.indices)[i]);
    }
    return row;
}

template <int WIDTH> struct wide { typedef typename pass::unit<WIDTH>::type type; };
template <> struct wide<16> { typedef uint4 type; };

template <int WIDTH> __global__ void __launch_bounds__(most_threads) gather(const job p) {
    typedef typename wide<WIDTH>::type word;
    const int64_t tile = (int64_t)pieces * blockDim.x;
    for (int64_t first = blockIdx.x * tile + threadIdx.x; first < p.all; first += gridDim.x * tile) {
        word x[pieces];
        int64_t from[pieces];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            int64_t n = first + (int64_t)k * blockDim.x;
            if (n >= p.all) n = first;
            const int64_t piece = pass::radix_next(p.places, 0, n), at = pass::radix_next(p.places, 1, n);
            from[k] = (n * p.g.length + row_of(p, at)) * p.row_pieces + piece;
        }
#pragma unroll
        for (int k = 0; k < pieces; k++) x[k] = ((const word *)p.table)[from[k]];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const int64_t n = first + (int64_t)k * blockDim.x;
            if (n < p.all) ((word *)p.out)[n] = x[k];
        }
    }
}

const struct {
    int width;
    const void *kernel;
} kernels[] = {{16, (const void *)gather<16>},
               {8, (const void *)gather<8>},
               {4, (const void *)gather<4>},
               {2, (const void *)gather<2>},
               {1, (const void *)gather<1>}};

int choose(const gather_rows *g, const void *table, const void *out) {
    int k = 0;
    while (g->row_bytes % kernels[k].width != 0 || !pass::aligned(table, kernels[k].width) ||
           !pass::aligned(out, kernels[k].width))
        k++;
    return k;
}

} // namespace

int gather_rows_fits(const gather_rows *g) {
    const int threads = g->config.threads;
    if (g->outer < 1 || g->length < 1 || g->count < 1 || g->row_bytes < 1) return 0;
    if (g->parts < 1 || g->parts > PASS_RANK || (g->index_type != PASS_INT64 && g->index_type != PASS_INT32)) return 0;
    return threads >= 0 && threads <= most_threads && threads % 32 == 0 && g->config.resident >= 0;
}

int gather_rows_width(const gather_rows *g) { return kernels[choose(g, NULL, NULL)].width; }

int gather_rows_launch(const gather_rows *g, const void *table, const void *indices, void *out, void *stream) {
    if (!gather_rows_fits(g)) return cudaErrorInvalidValue;
    const int k = choose(g, table, out), threads = pass::threads_of(g->config, 256);
    job j = {};
    j.g = *g, j.table = table, j.indices = indices, j.out = out;
    j.row_pieces = g->row_bytes / kernels[k].width, j.all = j.row_pieces * g->count * g->outer;
    const int64_t dims[] = {j.row_pieces, g->count, g->outer}, tile = (int64_t)pieces * threads;
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return cudaLaunchKernel(kernels[k].kernel, dim3(pass::blocks_of(g->config, (j.all + tile - 1) / tile)),
                            dim3((unsigned)threads), args, 0, (cudaStream_t)stream);
}
