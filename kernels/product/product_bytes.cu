/* Around a product of bytes: passes that are memory bound, and a plain product of any bytes. 16 bytes of sums a thread
 * and step; 16 bytes of input where its rows allow it, else single ones, of which four are written at once. */
#include "kernels/product/product_bytes.h"

#include "kernels/pass/pass.cuh"

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

/* A warp for each row; four numbers at a time. */
__global__ void __launch_bounds__(threads)
    sums_kernel(int64_t rows, int64_t cols, int64_t ld, const int8_t *__restrict__ from, int32_t *__restrict__ to) {
    const int64_t warps = (int64_t)gridDim.x * (threads / 32);
    const int lane = threadIdx.x % 32;
    for (int64_t row = (int64_t)blockIdx.x * (threads / 32) + threadIdx.x / 32; row < rows; row += warps) {
        const int *const line = (const int *)(from + row * ld);
        int sum = 0;
        for (int64_t k = lane; k < cols / 4; k += 32) sum = __dp4a(line[k], 0x01010101, sum);
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0) to[row] = sum;
    }
}

__device__ __forceinline__ float bias_at(int type, const void *bias, int64_t at) {
    return type == PRODUCT_BYTES_FP32   ? ((const float *)bias)[at]
           : type == PRODUCT_BYTES_FP16 ? __half2float(((const __half *)bias)[at])
                                        : __bfloat162float(((const __nv_bfloat16 *)bias)[at]);
}

/* A sum as what it becomes: itself, or a float. */
__device__ __forceinline__ void put_sum(int type, int32_t sum, float scale, const void *bias, int64_t bias_place,
                                        void *to, int64_t at) {
    if (type == PRODUCT_BYTES_INT32) {
        ((int32_t *)to)[at] = sum;
        return;
    }
    const float y = fmaf((float)sum, scale, bias ? bias_at(type, bias, bias_place) : 0.0f);
    if (type == PRODUCT_BYTES_FP32)
        ((float *)to)[at] = y;
    else if (type == PRODUCT_BYTES_FP16)
        ((__half *)to)[at] = __float2half_rn(y);
    else
        ((__nv_bfloat16 *)to)[at] = __float2bfloat16_rn(y);
}

/* Sums and outputs may be one memory: a thread has read what it writes. */
__global__ void __launch_bounds__(threads)
    zeros_kernel(product_bytes_zeros p, const int32_t *sums, const int32_t *__restrict__ of_x,
                 const int32_t *__restrict__ of_w, const void *__restrict__ a_zero, const void *__restrict__ b_zero,
                 const float *__restrict__ scales, const void *__restrict__ bias, void *to) {
    const int64_t count = p.rows * p.cols, step = (int64_t)gridDim.x * threads;
    const int32_t a = product_bytes_zero(a_zero, 0, p.shift_a);
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < count; k += step) {
        int64_t row, col;
        place_of(k, count, p.cols, row, col);
        const int32_t b = product_bytes_zero(b_zero, p.b_each ? col : 0, p.shift_b);
        const int32_t sum =
            product_bytes_corrected(sums[row * p.ld_sums + col], a, b, of_x ? of_x[row] : 0, of_w ? of_w[col] : 0, p.k);
        put_sum(p.type, sum, scales ? scales[p.scales_each ? col : 0] : 1.0f, bias, col, to, row * p.ld_to + col);
    }
}

constexpr int side = 16;

/* Squares of 16 x 16 outputs; both sides go through shared memory, without their zero points. Blocks go on by the size
 * of the grid. */
__global__ void __launch_bounds__(side *side)
    any_kernel(product_bytes_any p, const uint8_t *__restrict__ a, const uint8_t *__restrict__ b,
               const void *__restrict__ a_zero, const void *__restrict__ b_zero, const float *__restrict__ scales,
               const void *__restrict__ bias, void *__restrict__ to) {
    __shared__ int32_t tile_a[side][side + 1], tile_b[side][side + 1];
    const int x = threadIdx.x % side, y = threadIdx.x / side;
    const int64_t across = (p.n + side - 1) / side, down = (p.m + side - 1) / side, tiles = across * down * p.batch;
    const int32_t zero_a = a_zero ? product_bytes_zero(a_zero, 0, 0) & (p.signed_a ? -1 : 255) : p.zero_a;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t product = tile / (across * down), first_row = tile / across % down * side,
                      first_col = tile % across * side;
        const int64_t row = first_row + y, col = first_col + x,
                      loaded = first_col + y; /* of b a thread loads another */
        const int32_t zero_b = !b_zero || loaded >= p.n
                                   ? p.zero_b
                                   : product_bytes_zero(b_zero, p.b_each ? loaded : 0, 0) & (p.signed_b ? -1 : 255);
        int32_t sum = 0;
        for (int64_t k = 0; k < p.k; k += side) {
            tile_a[y][x] = tile_b[y][x] = 0;
            if (row < p.m && k + x < p.k) {
                const uint8_t from = a[product * p.a_batch + row * p.a_row + (k + x) * p.a_k];
                tile_a[y][x] = (p.signed_a ? (int32_t)(int8_t)from : (int32_t)from) - zero_a;
            }
            if (loaded < p.n && k + x < p.k) {
                const uint8_t from = b[product * p.b_batch + loaded * p.b_col + (k + x) * p.b_k];
                tile_b[y][x] = (p.signed_b ? (int32_t)(int8_t)from : (int32_t)from) - zero_b;
            }
            __syncthreads();
#pragma unroll
            for (int i = 0; i < side; i++) sum += tile_a[y][i] * tile_b[x][i];
            __syncthreads();
        }
        if (row >= p.m || col >= p.n) continue;
        const int64_t at = product * p.c_batch + row * p.c_row + col, bias_place = row * p.bias_row + col * p.bias_col;
        if (!p.quantised) {
            put_sum(p.type, sum, scales ? scales[p.scales_each ? col : 0] : 1.0f, bias, bias_place, to, at);
            continue;
        }
        const float value = product_bytes_value(&p.finish, sum, bias ? ((const int32_t *)bias)[bias_place] : 0);
        if (p.type == PRODUCT_BYTES_UINT8 || p.type == PRODUCT_BYTES_INT8)
            ((uint8_t *)to)[at] = product_bytes_rounded(&p.finish, value);
        else if (p.type == PRODUCT_BYTES_FP32)
            ((float *)to)[at] = value;
        else if (p.type == PRODUCT_BYTES_FP16)
            ((__half *)to)[at] = __float2half_rn(value);
        else
            ((__nv_bfloat16 *)to)[at] = __float2bfloat16_rn(value);
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

extern "C" int product_bytes_sums_launch(int64_t rows, int64_t cols, int64_t ld, const void *from, void *to,
                                         void *stream) {
    if (rows < 1 || cols < 1 || cols % line != 0 || ld % line != 0 || ld < cols || !pass::aligned(from, line))
        return cudaErrorInvalidValue;
    sums_kernel<<<grid_of(rows * 32), threads, 0, (cudaStream_t)stream>>>(rows, cols, ld, (const int8_t *)from,
                                                                          (int32_t *)to);
    return cudaGetLastError();
}

static bool is_float(int type) {
    return type == PRODUCT_BYTES_FP32 || type == PRODUCT_BYTES_FP16 || type == PRODUCT_BYTES_BF16;
}

extern "C" int product_bytes_zeros_launch(const product_bytes_zeros *p, const void *sums, const void *of_x,
                                          const void *of_w, const void *a_zero, const void *b_zero, const void *scales,
                                          const void *bias, void *to, void *stream) {
    const bool whole = p->type == PRODUCT_BYTES_INT32;
    if ((!whole && !(is_float(p->type) && scales)) || (whole && (scales || bias)) || p->rows < 1 || p->cols < 1 ||
        p->ld_sums < p->cols || p->ld_to < p->cols || (!of_w && (a_zero || p->shift_a)) ||
        (!of_x && (b_zero || p->shift_b)))
        return cudaErrorInvalidValue;
    zeros_kernel<<<grid_of(p->rows * p->cols), threads, 0, (cudaStream_t)stream>>>(
        *p, (const int32_t *)sums, (const int32_t *)of_x, (const int32_t *)of_w, a_zero, b_zero, (const float *)scales,
        bias, to);
    return cudaGetLastError();
}

extern "C" int product_bytes_any_launch(const product_bytes_any *p, const void *a, const void *b, const void *a_zero,
                                        const void *b_zero, const void *scales, const void *bias, void *to,
                                        void *stream) {
    const bool byte = p->type == PRODUCT_BYTES_UINT8 || p->type == PRODUCT_BYTES_INT8;
    const bool good =
        p->quantised ? byte || is_float(p->type) : p->type == PRODUCT_BYTES_INT32 || (is_float(p->type) && scales);
    if (!good || p->m < 1 || p->n < 1 || p->k < 1 || p->batch < 1) return cudaErrorInvalidValue;
    const int64_t tiles = (p->m + side - 1) / side * ((p->n + side - 1) / side) * p->batch, most = 1 << 24;
    any_kernel<<<(unsigned)(tiles < most ? tiles : most), side * side, 0, (cudaStream_t)stream>>>(
        *p, (const uint8_t *)a, (const uint8_t *)b, a_zero, b_zero, (const float *)scales, bias, to);
    return cudaGetLastError();
}
