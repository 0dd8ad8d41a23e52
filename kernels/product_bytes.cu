/* Around a product of bytes: two passes, both memory bound. 16 bytes of sums a thread and step; 16 bytes of input where
 * its rows allow it, else single ones, of which four are written at once. */
#include "kernels/product_bytes.h"

#include "kernels/pass.cuh"

namespace {

constexpr int threads = 256, quad = 4, line = 16;

static_assert((int)PRODUCT_BYTES_FP32 == PASS_FP32 && (int)PRODUCT_BYTES_UINT8 == PASS_UINT8 &&
                  (int)PRODUCT_BYTES_INT8 == PASS_INT8,
              "both are numbered as in ONNX");

/* Row and piece of the k-th piece. */
__device__ __forceinline__ void place_of(int64_t k, int64_t pieces, int64_t across, int64_t &row, int64_t &piece) {
    if (pieces <= 0x7fffffff) {
        row = (uint32_t)k / (uint32_t)across;
        piece = (uint32_t)k % (uint32_t)across;
    } else {
        row = k / across;
        piece = k % across;
    }
}

/* VEC 16: rows begin at 16 bytes and are whole pieces. */
template <int VEC>
__global__ void __launch_bounds__(threads)
    input_kernel(product_bytes_input p, const void *__restrict__ from, void *__restrict__ to) {
    const int64_t across = p.cols_to / VEC, pieces = p.rows_to * across, step = (int64_t)gridDim.x * threads;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < pieces; k += step) {
        int64_t row, piece;
        place_of(k, pieces, across, row, piece);
        const int64_t col = piece * VEC, left = row < p.rows ? p.cols - col : 0, at = row * p.ld + col;
        pass::bits<1, VEC> x = {};
        if constexpr (VEC == line) {
            if (left > 0) x = pass::load<1, VEC>(from, at);
        } else {
            x = pass::load_some<1, VEC>(from, at, left);
        }
#pragma unroll
        for (int i = 0; i < VEC; i++)
            if (i < left) x.at[i] = product_bytes_shifted(x.at[i], p.flip);
        pass::store<1, VEC>(to, k * VEC, x);
    }
}

__device__ __forceinline__ void keep(const product_bytes_finish &p, float y, uint8_t &to) {
    to = product_bytes_rounded(&p, y);
}
__device__ __forceinline__ void keep(const product_bytes_finish &, float y, uint32_t &to) { to = __float_as_uint(y); }

/* SIZE: of an output. WHOLE: four outputs and four biases can be moved at once. Sums and outputs may be one memory: a
 * thread has read what it writes. */
template <int SIZE, bool WHOLE>
__global__ void __launch_bounds__(threads)
    finish_kernel(product_bytes_finish p, const void *sums, const void *__restrict__ bias, void *to) {
    const int64_t across = (p.cols + quad - 1) / quad, pieces = p.rows * across, step = (int64_t)gridDim.x * threads;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < pieces; k += step) {
        int64_t row, piece;
        place_of(k, pieces, across, row, piece);
        const int64_t col = piece * quad, left = p.cols - col;
        const pass::bits<4, quad> sum = pass::load<4, quad>(sums, row * p.ld_sums + col);
        pass::bits<4, quad> more = {};
        pass::bits<SIZE, quad> y;
        if (bias) more = WHOLE ? pass::load<4, quad>(bias, col) : pass::load_some<4, quad>(bias, col, left);
#pragma unroll
        for (int i = 0; i < quad; i++)
            keep(p, product_bytes_value(&p, (int32_t)sum.at[i], (int32_t)more.at[i]), y.at[i]);
        if constexpr (WHOLE)
            pass::store<SIZE, quad>(to, row * p.ld_to + col, y);
        else
            pass::store_some<SIZE, quad>(to, row * p.ld_to + col, left, y);
    }
}

unsigned grid_of(int64_t pieces) {
    const int64_t blocks = (pieces + threads - 1) / threads, most = 16384;
    return (unsigned)(blocks < most ? blocks : most);
}

} // namespace

extern "C" int product_bytes_input_launch(const product_bytes_input *p, const void *from, void *to, void *stream) {
    if (p->rows < 1 || p->cols < 1 || p->ld < p->cols || p->rows_to < p->rows || p->cols_to < p->cols ||
        p->cols_to % line != 0 || !pass::aligned(to, line))
        return cudaErrorInvalidValue;
    const bool lines = p->cols % line == 0 && p->ld % line == 0 && pass::aligned(from, line);
    const int64_t pieces = p->rows_to * (p->cols_to / (lines ? line : quad));
    const auto kernel = lines ? input_kernel<line> : input_kernel<quad>;
    kernel<<<grid_of(pieces), threads, 0, (cudaStream_t)stream>>>(*p, from, to);
    return cudaGetLastError();
}

extern "C" int product_bytes_finish_launch(const product_bytes_finish *p, const void *sums, const void *bias, void *to,
                                           void *stream) {
    const bool wide = p->type == PRODUCT_BYTES_FP32;
    if ((!wide && p->type != PRODUCT_BYTES_UINT8 && p->type != PRODUCT_BYTES_INT8) || p->rows < 1 || p->cols < 1 ||
        p->ld_sums < p->cols || p->ld_sums % quad != 0 || p->ld_to < p->cols || !pass::aligned(sums, 16))
        return cudaErrorInvalidValue;
    const bool whole = p->cols % quad == 0 && p->ld_to % quad == 0 && pass::aligned(to, 16) && pass::aligned(bias, 16);
    const auto kernel = wide    ? whole ? finish_kernel<4, true> : finish_kernel<4, false>
                           : whole ? finish_kernel<1, true>
                                : finish_kernel<1, false>;
    kernel<<<grid_of(p->rows * ((p->cols + quad - 1) / quad)), threads, 0, (cudaStream_t)stream>>>(*p, sums, bias, to);
    return cudaGetLastError();
}
