/* Element by element: operands in, one output out. What models mostly do, one or two dense operands, a bias or a
 * number, has a kernel for each operator (elementwise_lean.cuh). For all else a thread holds 8 or 16 elements, loaded
 * in pieces of 16 bytes where they lie together, brought to fp32 (or int, or int64), and computed by one branch that
 * all threads take alike: one kernel for each arithmetic, number of operands and way to find them. Types and operators
 * that models seldom have are computed one by one (elementwise_plain.cu). */
#include "kernels/pass/elementwise_lean.cuh"
#include "kernels/pass/elementwise_plain.h"
#include "kernels/pass/elementwise_tiles.cuh"

using namespace tiles;

namespace {

/* --- the kernels --- */

constexpr int most_threads = 512;

/* Two blocks of the largest size on a multiprocessor: loads of others go on while one computes. */
template <class C, int N, int E, int MODE> __global__ void __launch_bounds__(most_threads, 2) fixed(const job p) {
    for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        C x[N][E];
        read_any<C, N, E, MODE>(p, tile, 0, x);
        operators::apply(p.what, p.numbers, x);
        write_any<C, E, MODE>(p, tile, x[0]);
    }
}

/* Quantised bytes, as integers minus the zero point. */
template <class, int N, int E, int MODE> __global__ void __launch_bounds__(most_threads, 2) quantised(const job p) {
    for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        int x[N][E];
        read<1, int, N, E, MODE>(p, tile, 0, x);
#pragma unroll
        for (int k = 0; k < N * E; k++) x[k / E][k % E] -= p.quant.zero_in;
        operators::apply(p.what, p.numbers, x);
#pragma unroll
        for (int k = 0; k < E; k++) {
            const float y = fminf(fmaxf(p.quant.factor * (float)x[0][k], p.quant.least), p.quant.most);
            x[0][k] = __float2int_rn(y) + p.quant.zero_out;
        }
        write<1, int, E, MODE>(p, tile, x[0]);
    }
}

/* Any number of operands, one after the other. */
template <class C, int, int E, int MODE> __global__ void __launch_bounds__(most_threads, 2) many(const job p) {
    for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        C y[1][E], x[1][E];
        read_any<C, 1, E, MODE>(p, tile, 0, y);
        for (int k = 1; k < p.inputs; k++) {
            read_any<C, 1, E, MODE>(p, tile, k, x);
            operators::join(p.what, x[0], y[0]);
        }
        if (p.what == ELEMENTWISE_PASS_mean) operators::share((C)p.inputs, y[0]);
        write_any<C, E, MODE>(p, tile, y[0]);
    }
}

/* As many pieces as registers hold. */
template <int SIZE> struct chosen_pieces {
    enum { count = SIZE == 1 ? 1 : 2 };
};

/* The second operand where the condition byte is set, else the third: values are not converted. */
template <int SIZE, int MODE> __global__ void __launch_bounds__(most_threads, 2) chosen(const job p) {
    constexpr int vec = piece<SIZE, MODE>::elements, pieces = MODE == single ? 4 : (int)chosen_pieces<SIZE>::count,
                  elements = vec * pieces;
    for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        const bool whole = (tile + 1) * elements * blockDim.x <= p.count;
        pass::bits<1, vec> which[pieces];
        pass::bits<SIZE, vec> x[2][pieces];
        int64_t at[pieces], from[pieces][3];
#pragma unroll
        for (int j = 0; j < pieces; j++) {
            at[j] = begin<vec>(tile, elements, j);
            find<3>(p, MODE, 0, at[j] < p.count ? at[j] : 0, from[j]);
        }
        fetch<1, vec, pieces>(p.in[0], p.strides[0][0] == 1, whole, p.count, at, &from[0][0], 3, which);
        fetch<SIZE, vec, pieces>(p.in[1], p.strides[1][0] == 1, whole, p.count, at, &from[0][1], 3, x[0]);
        fetch<SIZE, vec, pieces>(p.in[2], p.strides[2][0] == 1, whole, p.count, at, &from[0][2], 3, x[1]);
#pragma unroll
        for (int j = 0; j < pieces; j++) {
#pragma unroll
            for (int i = 0; i < vec; i++)
                if (!which[j].at[i]) x[0][j].at[i] = x[1][j].at[i];
        }
        put<SIZE, vec, pieces>(p, whole, at, x[0]);
    }
}

/* --- which of them --- */

struct choice {
    const void *kernel[3]; /* by mode */
    int elements[3];       /* of a thread */
};

#define FIXED(type, inputs, many_of, few_of) KERNEL(fixed, type, inputs, many_of, few_of)
#define KERNEL(name, type, inputs, many_of, few_of)                                                                    \
    {                                                                                                                  \
        {(const void *)name<type, inputs, many_of, flat>, (const void *)name<type, inputs, many_of, rows>,             \
         (const void *)name<type, inputs, few_of, single>},                                                            \
        {                                                                                                              \
            many_of, many_of, few_of                                                                                   \
        }                                                                                                              \
    }
#define MANY(type, many_of, few_of)                                                                                    \
    {                                                                                                                  \
        {(const void *)many<type, 0, many_of, flat>, (const void *)many<type, 0, many_of, rows>,                       \
         (const void *)many<type, 0, few_of, single>},                                                                 \
        {                                                                                                              \
            many_of, many_of, few_of                                                                                   \
        }                                                                                                              \
    }
#define CHOSEN(size)                                                                                                   \
    {                                                                                                                  \
        {(const void *)chosen<size, flat>, (const void *)chosen<size, rows>, (const void *)chosen<size, single>}, {    \
            16 / size *chosen_pieces<size>::count, 16 / size *chosen_pieces<size>::count, 4                            \
        }                                                                                                              \
    }

const choice floats[] = {
    {{(const void *)fixed<float, 1, 16, flat>, NULL, (const void *)fixed<float, 1, 4, single>}, {16, 0, 4}},
    FIXED(float, 2, 8, 4),
    FIXED(float, 3, 8, 4),
};
const choice ints[] = {FIXED(int, 1, 16, 4), FIXED(int, 2, 16, 4)};
const choice bytes[] = {KERNEL(quantised, int, 1, 16, 4), KERNEL(quantised, int, 2, 16, 4)};
const choice longs[] = {FIXED(long long, 1, 4, 4), FIXED(long long, 2, 4, 4)};
const choice any_floats = MANY(float, 8, 4), any_ints = MANY(int, 16, 4), any_longs = MANY(long long, 4, 4);
const choice wheres[] = {CHOSEN(1), CHOSEN(2), CHOSEN(4), CHOSEN(8)};

/* Sums of two have a kernel with both operands in flight; only what takes any number goes one by one. */
const choice *choose(const elementwise_pass *s) {
    const int size = pass::size_of(s->type),
              real = s->type == PASS_FP32 || s->type == PASS_FP16 || s->type == PASS_BF16;
    const int any = s->what == ELEMENTWISE_PASS_min || s->what == ELEMENTWISE_PASS_max ||
                    s->what == ELEMENTWISE_PASS_sum || s->what == ELEMENTWISE_PASS_mean;
    if (s->quant.is) return s->inputs > 2 ? NULL : &bytes[s->inputs - 1];
    if (s->what == ELEMENTWISE_PASS_where) return s->inputs != 3 ? NULL : &wheres[size == 8 ? 3 : size / 2];
    if (any && s->inputs != 2) return real ? &any_floats : size == 8 ? &any_longs : &any_ints;
    if (real) return s->inputs <= 3 ? &floats[s->inputs - 1] : NULL;
    return s->inputs > 2 ? NULL : size == 8 ? &longs[s->inputs - 1] : &ints[s->inputs - 1];
}

int mode_of(const elementwise_pass *s, const void *const *in, const void *out) {
    const int vec = 16 / pass::size_of(s->type);
    int mode = s->rank == 1 ? flat : rows;
    if (mode == rows && (s->dims[0] % vec != 0 || !choose(s)->kernel[rows])) return single;
    if (out && !pass::aligned(out, 16)) return single;
    for (int k = 0; k < s->inputs; k++) {
        const int64_t step = s->strides[k][0];
        if (step != 0 && step != 1) return single;
        if (step == 1 && in && !pass::aligned(in[k], 16)) return single;
        for (int d = 1; d < s->rank && step == 1; d++)
            if (s->strides[k][d] % vec != 0) return single;
    }
    return mode;
}

cudaError_t launch_lean(const void *kernel, lean::job *j, const elementwise_pass *s, int threads, void *stream) {
    const int64_t tile = (int64_t)threads * (16 / pass::size_of(s->type));
    void *args[] = {j};
    return cudaLaunchKernel(kernel, dim3(pass::blocks_of(s->config, (s->count + tile - 1) / tile)),
                            dim3((unsigned)threads), args, 0, (cudaStream_t)stream);
}

} // namespace

int elementwise_pass_fits(const elementwise_pass *s) {
    const int size = pass::size_of(s->type), threads = s->config.threads;
    if (s->what < 0 || s->what >= ELEMENTWISE_PASS_COUNT || size == 0) return 0;
    if (s->quant.is && (s->truth || (s->type != PASS_INT8 && s->type != PASS_UINT8))) return 0;
    if (s->inputs < 1 || s->inputs > ELEMENTWISE_PASS_INPUTS || s->rank < 1 || s->rank > PASS_RANK) return 0;
    if (threads < 0 || threads > most_threads || threads % 32 != 0 || s->config.resident < 0) return 0;
    int64_t count = 1;
    for (int d = 0; d < s->rank; d++) count *= s->dims[d];
    if (count < 1 || count != s->count) return 0;
    return elementwise_plain_takes(s) || (!elementwise_plain_alone(s) && choose(s) != NULL);
}

const char *elementwise_pass_mode(const elementwise_pass *s) {
    static const char *const names[] = {"flat", "rows", "single"};
    if (elementwise_plain_takes(s)) return "plain";
    const int mode = mode_of(s, NULL, NULL);
    lean::job unused = {};
    return mode != single && lean::choose(s, NULL, NULL, &unused) ? "lean" : names[mode];
}

int elementwise_pass_launch(const elementwise_pass *s, const void *const *in, void *out, void *stream) {
    if (!elementwise_pass_fits(s)) return cudaErrorInvalidValue;
    if (elementwise_plain_takes(s)) return elementwise_plain_launch(s, in, out, stream);
    const int threads = pass::threads_of(s->config, 256);
    const int mode = mode_of(s, in, out);
    lean::job few = {};
    const void *const one = mode != single ? lean::choose(s, in, out, &few) : NULL;
    if (one) return launch_lean(one, &few, s, threads, stream);
    const choice *c = choose(s);
    job j = {};
    j.what = s->what, j.inputs = s->inputs, j.type = s->type, j.size = pass::size_of(s->type), j.truth = s->truth;
    j.count = s->count, j.out = out;
    j.numbers = {(float)s->alpha, (float)s->beta, s->low, s->high};
    j.quant = s->quant;
    j.places = pass::radix_of(s->rank, s->dims);
    for (int k = 0; k < s->inputs; k++) {
        j.in[k] = in[k];
        for (int d = 0; d < s->rank; d++) j.strides[k][d] = s->strides[k][d];
    }
    const int64_t tile = (int64_t)c->elements[mode] * threads;
    j.tiles = (s->count + tile - 1) / tile;
    void *args[] = {&j};
    return cudaLaunchKernel(c->kernel[mode], dim3(pass::blocks_of(s->config, j.tiles)), dim3((unsigned)threads), args,
                            0, (cudaStream_t)stream);
}
