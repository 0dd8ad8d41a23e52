/* Memory bound: 16 bytes are written by a thread and step, wherever the rows begin; they are read one by one, as rows
 * may begin anywhere. */
#include "kernels/product/padded_rows.h"

#include "kernels/pass/pass.cuh"

namespace {

constexpr int threads = 256, line = 16;

/* A piece may have the end of one row and the beginning of the next ones. */
template <int SIZE>
__device__ __forceinline__ pass::bits<SIZE, line / SIZE> gather(const padded_rows &p, const void *from, int64_t row,
                                                                int64_t col) {
    typedef typename pass::unit<SIZE>::type word;
    constexpr int vec = line / SIZE;
    const word *const here = (const word *)from + row * p.ld;
    pass::bits<SIZE, vec> x;
    if (row < p.rows && col + vec <= p.cols && col + vec <= p.cols_to) {
#pragma unroll
        for (int i = 0; i < vec; i++) x.at[i] = here[col + i];
        return x;
    }
#pragma unroll
    for (int i = 0; i < vec; i++) {
        x.at[i] = row < p.rows && col < p.cols ? ((const word *)from)[row * p.ld + col] : (word)0;
        if (++col == p.cols_to) col = 0, row++;
    }
    return x;
}

template <int SIZE>
__global__ void __launch_bounds__(threads)
    padded_kernel(padded_rows p, const void *__restrict__ from, void *__restrict__ to) {
    constexpr int vec = line / SIZE;
    const int64_t all = p.rows_to * p.cols_to, pieces = (all + vec - 1) / vec, step = (int64_t)gridDim.x * threads;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < pieces; k += step) {
        const int64_t at = k * vec;
        const int64_t row = all <= 0x7fffffff ? (uint32_t)at / (uint32_t)p.cols_to : at / p.cols_to;
        const pass::bits<SIZE, vec> x = gather<SIZE>(p, from, row, at - row * p.cols_to);
        if (at + vec <= all)
            pass::store<SIZE, vec>(to, at, x);
        else
            pass::store_some<SIZE, vec>(to, at, all - at, x);
    }
}

} // namespace

extern "C" int padded_rows_launch(const padded_rows *p, const void *from, void *to, void *stream) {
    if (p->rows < 1 || p->cols < 1 || p->ld < p->cols || p->rows_to < 1 || p->cols_to < 1 ||
        (p->element != 1 && p->element != 2 && p->element != 4) || !pass::aligned(to, line) ||
        !pass::aligned(from, p->element))
        return cudaErrorInvalidValue;
    const int64_t pieces = (p->rows_to * p->cols_to * p->element + line - 1) / line, most = 65536;
    const int64_t blocks = (pieces + threads - 1) / threads;
    const auto kernel = p->element == 1 ? padded_kernel<1> : p->element == 2 ? padded_kernel<2> : padded_kernel<4>;
    kernel<<<(unsigned)(blocks < most ? blocks : most), threads, 0, (cudaStream_t)stream>>>(*p, from, to);
    return cudaGetLastError();
}
