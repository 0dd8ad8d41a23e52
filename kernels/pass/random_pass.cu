/* Random numbers by counting: a thread makes the four words of a counter and of them four numbers, or one or two of fp64,
 * so that they do not depend on how the work is shared out. */
#include "kernels/pass/random_kernels.h"

#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, quad = 4;

struct words {
    uint32_t at[quad];
};

__device__ __forceinline__ words words_of(unsigned long long counter, unsigned long long key) {
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = 0, d = 0;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const uint32_t high0 = __umulhi(0xd2511f53u, a), low0 = 0xd2511f53u * a;
        const uint32_t high1 = __umulhi(0xcd9e8d57u, c), low1 = 0xcd9e8d57u * c;
        a = high1 ^ b ^ k0, b = low1, c = high0 ^ d ^ k1, d = low0;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    return {{a, b, c, d}};
}

__device__ __forceinline__ float fraction(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216); }

__device__ __forceinline__ double fraction(uint32_t high, uint32_t low) {
    return ((double)(high >> 5) * 67108864 + (double)(low >> 6)) * (1.0 / 9007199254740992);
}

/* Four elements, all or the first ones, also where their place allows no piece at once. */
template <int SIZE> __device__ __forceinline__ void put(void *y, int64_t at, int64_t count, bool whole,
                                                        const pass::bits<SIZE, quad> &x) {
    if (whole && count >= quad)
        pass::store<SIZE, quad>(y, at, x);
    else
        pass::store_some<SIZE, quad>(y, at, count, x);
}

template <int SIZE> __global__ void __launch_bounds__(most_threads) floats(const random_pass p, void *y, bool whole) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const float alpha = (float)p.alpha, beta = (float)p.beta, range = (float)(p.beta - p.alpha);
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n * quad < p.count; n += step) {
        const words w = words_of((unsigned long long)n, p.key);
        float x[quad];
#pragma unroll
        for (int i = 0; i < quad; i += 2) {
            const float first = fraction(w.at[i]), second = fraction(w.at[i + 1]);
            if (p.how == RANDOM_PASS_UNIFORM) {
                x[i] = alpha + first * range, x[i + 1] = alpha + second * range;
                continue;
            }
            const float size = beta * sqrtf(-2.0f * logf(first + 1.0f / 16777216));
            float sine, cosine;
            sincospif(2.0f * second, &sine, &cosine);
            x[i] = alpha + size * cosine, x[i + 1] = alpha + size * sine;
        }
        pass::bits<SIZE, quad> out;
        pass::narrow(p.to, x, out);
        put<SIZE>(y, n * quad, p.count - n * quad, whole, out);
    }
}

__global__ void __launch_bounds__(most_threads) doubles(const random_pass p, double *y) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const bool normal = p.how == RANDOM_PASS_NORMAL;
    const int each = normal ? 1 : 2;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n * each < p.count; n += step) {
        const words w = words_of((unsigned long long)n, p.key);
        const double first = fraction(w.at[0], w.at[1]), second = fraction(w.at[2], w.at[3]);
        if (normal) {
            y[n] = p.alpha + p.beta * sqrt(-2.0 * log(first + 1.0 / 9007199254740992)) * cospi(2.0 * second);
            continue;
        }
        y[2 * n] = p.alpha + first * (p.beta - p.alpha);
        if (2 * n + 1 < p.count) y[2 * n + 1] = p.alpha + second * (p.beta - p.alpha);
    }
}

/* `one`: the bits of 1. */
template <int SIZE>
__global__ void __launch_bounds__(most_threads)
    flips(const random_pass p, const void *from, void *y, unsigned long long one, bool whole) {
    typedef typename pass::unit<SIZE>::type word;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; n * quad < p.count; n += step) {
        const words w = words_of((unsigned long long)n, p.key);
        pass::bits<SIZE, quad> out;
#pragma unroll
        for (int i = 0; i < quad; i++) {
            const int64_t at = n * quad + i < p.count ? n * quad + i : p.count - 1;
            const float u = fraction(w.at[i]);
            const bool yes =
                p.from == PASS_FP64 ? (double)u < ((const double *)from)[at] : u < pass::load_float(p.from, from, at);
            out.at[i] = yes ? (word)one : (word)0;
        }
        put<SIZE>(y, n * quad, p.count - n * quad, whole, out);
    }
}

bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16 || type == PASS_FP64; }

unsigned long long one_of(int type) {
    switch (type) {
    case PASS_FP32: return 0x3f800000u;
    case PASS_FP16: return 0x3c00u;
    case PASS_BF16: return 0x3f80u;
    case PASS_FP64: return 0x3ff0000000000000ull;
    default: return 1;
    }
}

const void *kernel_of(const random_pass *p) {
    const int size = pass::size_of(p->to);
    if (p->how == RANDOM_PASS_BERNOULLI)
        return size == 1   ? (const void *)flips<1>
               : size == 2 ? (const void *)flips<2>
               : size == 4 ? (const void *)flips<4>
                           : (const void *)flips<8>;
    if (p->to == PASS_FP64) return (const void *)doubles;
    return size == 2 ? (const void *)floats<2> : (const void *)floats<4>;
}

} // namespace

int random_pass_fits(const random_pass *p) {
    const int threads = p->config.threads;
    if (p->count < 1 || p->how < 0 || p->how > RANDOM_PASS_BERNOULLI) return 0;
    if (p->how == RANDOM_PASS_BERNOULLI ? !is_float(p->from) || pass::size_of(p->to) == 0 : !is_float(p->to)) return 0;
    return threads >= 0 && threads <= most_threads && threads % 32 == 0 && p->config.resident >= 0;
}

int random_pass_launch(const random_pass *p, const void *probabilities, void *y, void *stream) {
    if (!random_pass_fits(p)) return cudaErrorInvalidValue;
    random_pass pass_ = *p;
    const bool wide = p->how != RANDOM_PASS_BERNOULLI && p->to == PASS_FP64;
    bool whole = pass::aligned(y, quad * pass::size_of(p->to));
    unsigned long long one = one_of(p->to);
    const int64_t each = !wide ? quad : p->how == RANDOM_PASS_NORMAL ? 1 : 2, threads = pass::threads_of(p->config, 256);
    const int64_t counters = (p->count + each - 1) / each;
    void *plain[] = {&pass_, &y, &whole}, *flipped[] = {&pass_, &probabilities, &y, &one, &whole};
    return cudaLaunchKernel(kernel_of(p), dim3(pass::blocks_of(p->config, (counters + threads - 1) / threads)),
                            dim3((unsigned)threads), p->how == RANDOM_PASS_BERNOULLI ? flipped : plain, 0,
                            (cudaStream_t)stream);
}
