/* What the general kernels of norms and softmax share: rows that may be of any length and lie anywhere, of any types,
 * element by element. A block is `blockDim.x` neighbouring rows wide, whose elements lie side by side, and has
 * blockDim.y threads along each: 1 wide where the elements of a row itself are neighbours. */
#pragma once

#include "kernels/rows/rows.cuh"

namespace any_rows {

using namespace rows;

__device__ inline float value(const void *data, int type, int64_t at) {
    if (type == ROW_FP32) return ((const float *)data)[at];
    const unsigned bits = ((const unsigned short *)data)[at];
    return type == ROW_FP16 ? up<ROW_FP16>(bits) : up<ROW_BF16>(bits);
}

__device__ inline float value_or(const void *data, int type, int64_t at, float otherwise) {
    return data ? value(data, type, at) : otherwise;
}

__device__ inline void put(void *data, int type, int64_t at, float x) {
    if (type == ROW_FP32)
        ((float *)data)[at] = x;
    else
        ((unsigned short *)data)[at] = (unsigned short)(type == ROW_FP16 ? down<ROW_FP16>(x) : down<ROW_BF16>(x));
}

struct add {
    __device__ float operator()(float x, float y) const { return x + y; }
};
struct most {
    __device__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

/* Over the threads of each row of the block; every thread comes here. `room` is for 1024. */
template <typename F> __device__ inline float over_row(float x, float *room, F both) {
    const int at = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    __syncthreads(); /* what was there may still be read */
    room[at] = x;
    for (int half = (int)blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.y < half) room[at] = both(room[at], room[at + half * (int)blockDim.x]);
    }
    __syncthreads();
    return room[threadIdx.x];
}

/* Blocks of `threads` for `outer` times `inner` rows, of which `inner` lie side by side. */
inline bool divide_any(int64_t outer, int64_t inner, int threads, dim3 *grid, dim3 *block) {
    if (threads < 64 || threads > 1024 || (threads & (threads - 1)) != 0 || outer < 1 || inner < 1) return false;
    unsigned wide = 1;
    while (wide < 32 && (int64_t)wide < inner) wide *= 2;
    const int64_t blocks = outer * ((inner + wide - 1) / wide);
    *block = dim3(wide, (unsigned)threads / wide);
    *grid = dim3((unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff));
    return true;
}

} // namespace any_rows
