/* One launch for all pieces: a thread finds the row and the piece of what it copies. A launch for each piece takes
 * longer where pieces are many and small, as in networks whose layers read all layers before them. */
#include "kernels/pass/joined_kernels.h"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, at_once = 4;

template <int WIDTH> struct wide { typedef typename pass::unit<WIDTH>::type type; };
template <> struct wide<16> { typedef uint4 type; };

struct joining {
    const void *pieces[JOINED_MOST];
    const void *whole;
    uint32_t ends[JOINED_MOST]; /* of each piece in a row, in words; beyond the last one: the row's */
    int count, parted;
    uint32_t all; /* words */
    pass::divisor row;
};

/* The first piece that ends behind that place: as many steps as the number of pieces has bits. */
__device__ __forceinline__ int piece_at(const joining &p, uint32_t at) {
    int low = 0, high = p.count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (p.ends[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

template <int WIDTH> __global__ void __launch_bounds__(most_threads) join(const __grid_constant__ joining p) {
    typedef typename wide<WIDTH>::type word;
    const uint32_t tile = at_once * blockDim.x;
    for (uint64_t first = (uint64_t)blockIdx.x * tile + threadIdx.x; first < p.all;
         first += (uint64_t)gridDim.x * tile) {
        word *to[at_once];
        word x[at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            uint32_t n = (uint32_t)first + k * blockDim.x;
            if (n >= p.all || n < first) n = (uint32_t)first;
            const uint32_t outer = pass::divide(n, p.row), at = n - outer * p.row.by;
            const int which = piece_at(p, at);
            const uint32_t begin = which > 0 ? p.ends[which - 1] : 0, length = p.ends[which] - begin;
            word *const piece = (word *)p.pieces[which] + ((uint64_t)outer * length + (at - begin));
            word *const whole = (word *)p.whole + n;
            to[k] = p.parted ? piece : whole;
            x[k] = p.parted ? *whole : *piece;
        }
#pragma unroll
        for (int k = 0; k < at_once; k++)
            if (first + (uint64_t)k * blockDim.x < p.all) *to[k] = x[k];
    }
}

const void *const joins[] = {(const void *)join<1>, (const void *)join<2>, (const void *)join<4>, (const void *)join<8>,
                             (const void *)join<16>};

int64_t row_of(const joined_pass *p) {
    int64_t row = 0;
    for (int k = 0; k < p->count; k++) row += p->bytes[k];
    return row;
}

/* The widest word, as an exponent of 2, whose multiples all rows are. */
int exponent_of(const joined_pass *p) {
    int e = 4;
    for (int k = 0; k < p->count; k++)
        while (e > 0 && p->bytes[k] % (1 << e)) e--;
    return e;
}

} // namespace

int joined_fits(const joined_pass *p) {
    const int threads = p->config.threads;
    int64_t row = 0;
    if (p->count < 1 || p->count > JOINED_MOST || p->outer < 1) return 0;
    if (threads < 0 || threads > most_threads || threads % 32) return 0;
    for (int k = 0; k < p->count; k++) {
        if (p->bytes[k] < 0 || p->bytes[k] > ((int64_t)1 << 40) - row) return 0;
        row += p->bytes[k];
    }
    return row > 0 && p->outer <= (((int64_t)1 << 31) - 1) / row; /* by bytes: no address makes it more */
}

int joined_launch(const joined_pass *p, const void *const *pieces, const void *whole, void *stream) {
    joining j = {};
    if (!joined_fits(p)) return cudaErrorInvalidValue;
    int e = exponent_of(p), threads = pass::threads_of(p->config, 256);
    while (e > 0 && !pass::aligned(whole, 1 << e)) e--;
    for (int k = 0; k < p->count; k++)
        while (e > 0 && p->bytes[k] > 0 && !pass::aligned(pieces[k], 1 << e)) e--;
    uint32_t end = 0;
    for (int k = 0; k < p->count; k++) {
        if (p->bytes[k] == 0) continue;
        end += (uint32_t)(p->bytes[k] >> e);
        j.pieces[j.count] = pieces[k], j.ends[j.count++] = end;
    }
    j.whole = whole, j.parted = p->parted;
    j.row = pass::divisor_of(end);
    j.all = (uint32_t)((row_of(p) >> e) * p->outer);
    void *args[] = {&j};
    const int64_t tile = (int64_t)at_once * threads;
    return cudaLaunchKernel(joins[e], dim3(pass::blocks_of(p->config, (j.all + tile - 1) / tile)),
                            dim3((unsigned)threads), args, 0, (cudaStream_t)stream);
}
