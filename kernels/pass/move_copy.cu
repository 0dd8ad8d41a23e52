/* Copies along steps: what lies together on both sides goes in the widest pieces, what is turned through tiles in
 * shared memory, so that both sides are read and written in order, and the rest element by element. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, pieces = 4;

/* Steps in pieces, innermost first. */
struct steps {
    const void *from;
    void *to;
    int64_t all;
    pass::radix places;
    int64_t from_strides[PASS_PLACES], to_strides[PASS_PLACES];
};

template <int WIDTH> struct wide { typedef typename pass::unit<WIDTH>::type type; };
template <> struct wide<16> { typedef uint4 type; };

template <int WIDTH> __global__ void __launch_bounds__(most_threads) copy(const steps p) {
    typedef typename wide<WIDTH>::type word;
    const int64_t tile = (int64_t)pieces * blockDim.x;
    for (int64_t first = blockIdx.x * tile + threadIdx.x; first < p.all; first += gridDim.x * tile) {
        int64_t from[pieces], to[pieces];
        word x[pieces];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            int64_t n = first + (int64_t)k * blockDim.x;
            if (n >= p.all) n = first;
            from[k] = to[k] = 0;
            for (int d = 0; d < p.places.rank; d++) {
                const int64_t place = pass::radix_next(p.places, d, n);
                from[k] += place * p.from_strides[d], to[k] += place * p.to_strides[d];
            }
        }
#pragma unroll
        for (int k = 0; k < pieces; k++) x[k] = ((const word *)p.from)[from[k]];
#pragma unroll
        for (int k = 0; k < pieces; k++)
            if (first + (int64_t)k * blockDim.x < p.all) ((word *)p.to)[to[k]] = x[k];
    }
}

/* A plane whose rows are read and whose columns are written in order, again and again along other dimensions. */
struct turning {
    const void *from;
    void *to;
    int64_t width, height, all;     /* width: what is read in order; height: what is written so; all: tiles */
    int64_t from_stride, to_stride; /* of rows that are read, of columns that are written */
    pass::radix places;             /* tiles along the height, along the width, then the other dimensions */
    int64_t from_strides[PASS_PLACES], to_strides[PASS_PLACES];
};

template <int SIZE> struct tile {
    enum { side = SIZE <= 2 ? 64 : 32, pad = SIZE < 4 ? 4 / SIZE : 1, threads = 256, rows = threads / side };
};

template <int SIZE> __global__ void __launch_bounds__(256) turn(const turning p) {
    typedef typename pass::unit<SIZE>::type word;
    constexpr int side = tile<SIZE>::side, rows = tile<SIZE>::rows;
    __shared__ word shared[side][side + tile<SIZE>::pad];
    const int column = threadIdx.x % side, row = threadIdx.x / side;
    for (int64_t n = blockIdx.x; n < p.all; n += gridDim.x) {
        int64_t rest = n, from = 0, to = 0;
        const int64_t down = pass::radix_next(p.places, 0, rest) * side,
                      right = pass::radix_next(p.places, 1, rest) * side;
        for (int d = 2; d < p.places.rank; d++) {
            const int64_t place = pass::radix_next(p.places, d, rest);
            from += place * p.from_strides[d], to += place * p.to_strides[d];
        }
#pragma unroll
        for (int k = 0; k < side; k += rows)
            if (right + column < p.width && down + row + k < p.height)
                shared[row + k][column] =
                    ((const word *)p.from)[from + (down + row + k) * p.from_stride + right + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < side; k += rows)
            if (down + column < p.height && right + row + k < p.width)
                ((word *)p.to)[to + (right + row + k) * p.to_stride + down + column] = shared[column][row + k];
        __syncthreads();
    }
}

const void *const copies[] = {(const void *)copy<1>, (const void *)copy<2>, (const void *)copy<4>,
                              (const void *)copy<8>, (const void *)copy<16>};
const void *const turns[] = {(const void *)turn<1>, (const void *)turn<2>, (const void *)turn<4>,
                             (const void *)turn<8>};

int exponent(int size) {
    int k = 0;
    while (1 << k < size) k++;
    return k;
}

/* The dimension that is read in order where another one is written so; -1: none, or too short for tiles. */
int across(const move_copy *c) {
    if (c->from_strides[0] == 1 || c->to_strides[0] != 1 || c->dims[0] < 8) return -1;
    for (int d = 1; d < c->rank; d++)
        if (c->from_strides[d] == 1 && c->dims[d] >= 8) return d;
    return -1;
}

/* Bytes that can be moved at once. */
int width_of(const move_copy *c, const void *from, const void *to) {
    if (c->from_strides[0] != 1 || c->to_strides[0] != 1) return c->size;
    for (int width = 16; width > c->size; width /= 2) {
        int good = c->dims[0] * c->size % width == 0 && pass::aligned(from, width) && pass::aligned(to, width);
        for (int d = 1; d < c->rank; d++)
            good = good && c->from_strides[d] * c->size % width == 0 && c->to_strides[d] * c->size % width == 0;
        if (good) return width;
    }
    return c->size;
}

int launch_copy(const move_copy *c, const void *from, void *to, cudaStream_t stream) {
    const int width = width_of(c, from, to), by = width / c->size, threads = pass::threads_of(c->config, 256);
    int64_t dims[PASS_PLACES];
    steps s = {};
    s.from = from, s.to = to, s.all = 1;
    for (int d = 0; d < c->rank; d++) {
        dims[d] = d == 0 ? c->dims[d] / by : c->dims[d];
        s.from_strides[d] = d == 0 ? c->from_strides[d] : c->from_strides[d] / by;
        s.to_strides[d] = d == 0 ? c->to_strides[d] : c->to_strides[d] / by;
        s.all *= dims[d];
    }
    s.places = pass::radix_of(c->rank, dims);
    void *args[] = {&s};
    const int64_t part = (int64_t)pieces * threads;
    return cudaLaunchKernel(copies[exponent(width)], dim3(pass::blocks_of(c->config, (s.all + part - 1) / part)),
                            dim3((unsigned)threads), args, 0, stream);
}

int launch_turn(const move_copy *c, int read, const void *from, void *to, cudaStream_t stream) {
    const int64_t side = c->size <= 2 ? 64 : 32;
    int64_t dims[PASS_PLACES + 1] = {(c->dims[0] + side - 1) / side, (c->dims[read] + side - 1) / side};
    int rank = 2;
    turning t = {};
    t.from = from, t.to = to, t.height = c->dims[0], t.width = c->dims[read];
    t.from_stride = c->from_strides[0], t.to_stride = c->to_strides[read];
    t.all = dims[0] * dims[1];
    for (int d = 1; d < c->rank; d++) {
        if (d == read) continue;
        dims[rank] = c->dims[d], t.all *= dims[rank];
        t.from_strides[rank] = c->from_strides[d], t.to_strides[rank] = c->to_strides[d];
        rank++;
    }
    t.places = pass::radix_of(rank, dims);
    void *args[] = {&t};
    return cudaLaunchKernel(turns[exponent(c->size)], dim3(pass::blocks_of(c->config, t.all)), dim3(256), args, 0,
                            stream);
}

} // namespace

int move_copy_fits(const move_copy *c) {
    const int threads = c->config.threads;
    if (c->rank < 1 || c->rank > PASS_PLACES || c->size < 1 || c->size > 8 || (c->size & (c->size - 1))) return 0;
    for (int d = 0; d < c->rank; d++)
        if (c->dims[d] < 1) return 0;
    return threads >= 0 && threads <= most_threads && threads % 32 == 0 && c->config.resident >= 0;
}

const char *move_copy_mode(const move_copy *c) {
    return across(c) >= 0 ? "tiles" : c->from_strides[0] == 1 && c->to_strides[0] == 1 ? "rows" : "single";
}

int move_copy_launch(const move_copy *c, const void *from, void *to, void *stream) {
    if (!move_copy_fits(c)) return cudaErrorInvalidValue;
    const char *begin = (const char *)from + c->from_at * c->size;
    char *end = (char *)to + c->to_at * c->size;
    const int read = across(c);
    return read >= 0 ? launch_turn(c, read, begin, end, (cudaStream_t)stream)
                     : launch_copy(c, begin, end, (cudaStream_t)stream);
}

int move_zero_launch(void *to, size_t bytes, void *stream) {
    return cudaMemsetAsync(to, 0, bytes, (cudaStream_t)stream);
}
