/* A thread for each element of an output: shared by references with independent elements. */
#pragma once

#include <stdint.h>

constexpr int whole_each_threads = 256;

/* Blocks for so many elements; a thread goes on with every whole_each_step()-th one where these are not enough. */
inline unsigned whole_each_blocks(int64_t count) {
    const int64_t needed = (count + whole_each_threads - 1) / whole_each_threads, most = 1 << 24;
    return (unsigned)(needed < 1 ? 1 : needed < most ? needed : most);
}

__device__ inline int64_t whole_each_first() { return blockIdx.x * (int64_t)whole_each_threads + threadIdx.x; }
__device__ inline int64_t whole_each_step() { return gridDim.x * (int64_t)whole_each_threads; }
