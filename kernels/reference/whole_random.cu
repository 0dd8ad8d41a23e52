/* The reference of random numbers: a thread makes the words of its own element, by products in 64 bits, and all else in
 * fp64. */
#include "kernels/reference/whole_random.h"

#include "kernels/harness/values.cuh"
#include "kernels/reference/whole_each.cuh"

namespace {

__device__ void words_of(uint64_t counter, uint64_t key, uint32_t *c) {
    c[0] = (uint32_t)counter, c[1] = (uint32_t)(counter >> 32), c[2] = c[3] = 0;
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
        const uint32_t k0 = (uint32_t)key + (uint32_t)round * 0x9e3779b9u;
        const uint32_t k1 = (uint32_t)(key >> 32) + (uint32_t)round * 0xbb67ae85u;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0, c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1, c[3] = (uint32_t)a;
    }
}

/* The fraction that begins with that word. */
__device__ double fraction(const uint32_t *w, int at, bool wide) {
    return wide ? ((double)(w[at] >> 5) * 0x1p26 + (double)(w[at + 1] >> 6)) * 0x1p-53 : (double)(w[at] >> 8) * 0x1p-24;
}

__global__ void __launch_bounds__(whole_each_threads)
    random_numbers(const whole_random_problem p, double *__restrict__ want, float *__restrict__ spread) {
    const bool wide = !p.flips && p.to == DTYPE_FP64;
    for (int64_t k = whole_each_first(); k < p.count; k += whole_each_step()) {
        uint32_t w[4];
        words_of((uint64_t)(!wide ? k / 4 : p.normal ? k : k / 2), p.key, w);
        const int first = wide ? (p.normal ? 0 : (int)(k % 2) * 2) : p.normal ? (int)(k % 4) & 2 : (int)(k % 4);
        const double u = fraction(w, first, wide);
        spread[k] = p.flips ? 0 : (float)(fabs(p.alpha) + fabs(p.beta) * (p.normal ? 6 : 1));
        if (p.flips)
            want[k] = u < values_at(p.p, p.from, k);
        else if (!p.normal)
            want[k] = p.alpha + u * (p.beta - p.alpha);
        else {
            const double turn = 2 * fraction(w, wide ? 2 : first + 1, wide);
            const double side = wide || k % 2 == 0 ? cospi(turn) : sinpi(turn);
            want[k] = p.alpha + p.beta * sqrt(-2 * log(u + (wide ? 0x1p-53 : 0x1p-24))) * side;
        }
    }
}

} // namespace

cudaError_t whole_random(const whole_random_problem *p, double *want, float *spread, cudaStream_t stream) {
    random_numbers<<<whole_each_blocks(p->count), whole_each_threads, 0, stream>>>(*p, want, spread);
    return cudaGetLastError();
}
