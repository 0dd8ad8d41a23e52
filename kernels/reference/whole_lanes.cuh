/* How the references of kernels/reference/whole_*.cu share work: elements one by one, or rows that several lanes of a block read
 * together, more of them the longer a row is. */
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

constexpr int whole_threads = 256;

/* A power of two: about eight elements for each lane, until there are as many lanes as threads. */
inline int whole_lanes(int64_t length) {
    int lanes = 1;
    while (lanes < whole_threads && lanes * 8 < length) lanes *= 2;
    return lanes;
}

/* Blocks for so many rows of so many lanes; more rows than that are taken in turns. */
inline unsigned whole_blocks(int64_t rows, int lanes) {
    const int64_t each = whole_threads / lanes, blocks = (rows + each - 1) / each, most = 1 << 20;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* Of all lanes of a row, for each of them. All threads of the block must come here; `shared` has one place for each. */
template <typename combine> __device__ double whole_together(double mine, double *shared, int lanes, combine two) {
    const int at = (int)threadIdx.x, lane = at % lanes;
    __syncthreads(); /* all threads have read the old values */
    shared[at] = mine;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) shared[at] = two(shared[at], shared[at + half]);
    }
    __syncthreads();
    return shared[at - lane];
}

struct whole_plus {
    __device__ double operator()(double a, double b) const { return a + b; }
};
struct whole_greater {
    __device__ double operator()(double a, double b) const { return fmax(a, b); }
};
