/* Rows of a table of few bits named by indices, widened as they are written. A thread takes eight columns at once where
 * rows and blocks are made of such pieces, else one byte: two nibbles, or one code of 8 bits. */
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, wide = 8;

struct job {
    gather_blocks g;
    int64_t blocks, all; /* of a row; pieces of all rows */
    const void *table, *indices, *scales, *zeros;
    void *out;
    pass::radix places; /* piece of a row, row */
};

/* With a sign the highest bit counts backward. */
template <int BITS> __device__ __forceinline__ float code_of(unsigned x, bool has_sign) {
    const int code = (int)(x & ((1u << BITS) - 1)), sign = has_sign ? 1 << (BITS - 1) : 0;
    return (float)((code ^ sign) - sign);
}

template <int BITS> __device__ __forceinline__ float code_at(const void *x, int64_t at, bool has_sign) {
    const unsigned char *const bytes = (const unsigned char *)x;
    return code_of<BITS>(BITS == 4 ? bytes[at / 2] >> at % 2 * 4 : bytes[at], has_sign);
}

__device__ __forceinline__ int64_t row_of(const job &p, int64_t k) {
    return p.g.index_type == PASS_INT64 ? (int64_t)((const long long *)p.indices)[k] : ((const int *)p.indices)[k];
}

template <int BITS, int SIZE, int VEC> __global__ void __launch_bounds__(most_threads) gather(const job p) {
    typedef typename pass::unit<BITS * VEC / 8>::type word;
    const bool has_sign = p.g.from == PASS_INT4 || p.g.from == PASS_INT8;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n < p.all; n += step) {
        int64_t k = n;
        const int64_t col = pass::radix_next(p.places, 0, k) * VEC, row = row_of(p, k);
        const word codes = ((const word *)p.table)[(row * p.g.cols + col) / VEC];
        float x[VEC], scale = 0, zero = 0;
        int64_t block = -1;
#pragma unroll
        for (int i = 0; i < VEC; i++) {
            const int64_t its = VEC == wide && i > 0 ? block : (col + i) / p.g.block;
            if (its != block) {
                block = its;
                scale = pass::load_float(p.g.to, p.scales, row * p.blocks + block);
                zero = p.zeros ? code_at<BITS>(p.zeros, row * p.blocks + block, has_sign) : 0.0f;
            }
            x[i] = (code_of<BITS>((unsigned)(codes >> BITS * i), has_sign) - zero) * scale;
        }
        pass::bits<SIZE, VEC> y;
        pass::narrow(p.g.to, x, y);
        if (VEC == wide)
            pass::store<SIZE, VEC>(p.out, k * p.g.cols + col, y);
        else
            pass::store_some<SIZE, VEC>(p.out, k * p.g.cols + col, VEC, y);
    }
}

const struct {
    int bits, size, vec;
    const void *kernel;
} kernels[] = {{4, 4, wide, (const void *)gather<4, 4, wide>}, {4, 4, 2, (const void *)gather<4, 4, 2>},
               {4, 2, wide, (const void *)gather<4, 2, wide>}, {4, 2, 2, (const void *)gather<4, 2, 2>},
               {8, 4, wide, (const void *)gather<8, 4, wide>}, {8, 4, 1, (const void *)gather<8, 4, 1>},
               {8, 2, wide, (const void *)gather<8, 2, wide>}, {8, 2, 1, (const void *)gather<8, 2, 1>}};

bool is_nibble(int type) { return type == PASS_INT4 || type == PASS_UINT4; }
bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }

int choose(const gather_blocks *g, const void *table, const void *out) {
    const int bits = is_nibble(g->from) ? 4 : 8, size = pass::size_of(g->to);
    const bool pieces = g->cols % wide == 0 && g->block % wide == 0 && pass::aligned(table, bits) &&
                        pass::aligned(out, size * wide);
    int k = 0;
    while (kernels[k].bits != bits || kernels[k].size != size || (kernels[k].vec == wide) != pieces) k++;
    return k;
}

} // namespace

int gather_blocks_fits(const gather_blocks *g) {
    const int threads = g->config.threads;
    if (g->rows < 1 || g->cols < 1 || g->block < 1 || (g->index_type != PASS_INT64 && g->index_type != PASS_INT32))
        return 0;
    if (!is_float(g->to) || !(is_nibble(g->from) || g->from == PASS_INT8 || g->from == PASS_UINT8)) return 0;
    if (is_nibble(g->from) && g->cols % 2 != 0) return 0;
    return threads >= 0 && threads <= most_threads && threads % 32 == 0 && g->config.resident >= 0;
}

int gather_blocks_launch(const gather_blocks *g, const void *table, const void *indices, const void *scales,
                         const void *zeros, void *out, void *stream) {
    if (!gather_blocks_fits(g)) return cudaErrorInvalidValue;
    const int k = choose(g, table, out), threads = pass::threads_of(g->config, 256);
    const int64_t dims[] = {g->cols / kernels[k].vec, g->rows};
    job j = {};
    j.g = *g, j.table = table, j.indices = indices, j.scales = scales, j.zeros = zeros, j.out = out;
    j.blocks = (g->cols + g->block - 1) / g->block, j.all = dims[0] * dims[1];
    j.places = pass::radix_of(2, dims);
    void *args[] = {&j};
    return cudaLaunchKernel(kernels[k].kernel, dim3(pass::blocks_of(g->config, (j.all + threads - 1) / threads)),
                            dim3((unsigned)threads), args, 0, (cudaStream_t)stream);
}
