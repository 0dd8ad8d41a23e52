/* Convolutions of bytes, an output a thread: neighbours read neighbouring inputs, and the same weights. */
#include "kernels/product/product_bytes.h"

#include <cuda_runtime.h>

namespace {

constexpr int threads = 256;

__device__ __forceinline__ int32_t number(uint8_t x, int is_signed) {
    return is_signed ? (int32_t)(int8_t)x : (int32_t)x;
}

__device__ int32_t sum_of(const conv_bytes &p, const uint8_t *input, const uint8_t *weight, int64_t place) {
    const conv_bytes_axis &d = p.axes[0], &h = p.axes[1], &w = p.axes[2];
    const int64_t x = place % w.out, y = place / w.out % h.out, z = place / w.out / h.out, channels = p.cin / p.group;
    int32_t sum = 0;
    for (int64_t kd = 0; kd < d.kernel; kd++) {
        const int64_t in_d = z * d.stride - d.begin + kd * d.dilation;
        if (in_d < 0 || in_d >= d.in) continue;
        for (int64_t kh = 0; kh < h.kernel; kh++) {
            const int64_t in_h = y * h.stride - h.begin + kh * h.dilation;
            if (in_h < 0 || in_h >= h.in) continue;
            for (int64_t kw = 0; kw < w.kernel; kw++) {
                const int64_t in_w = x * w.stride - w.begin + kw * w.dilation;
                if (in_w < 0 || in_w >= w.in) continue;
                const uint8_t *const from = input + ((in_d * h.in + in_h) * w.in + in_w) * p.in_step;
                const uint8_t *const by = weight + (kd * h.kernel + kh) * w.kernel + kw;
                for (int64_t c = 0; c < channels; c++)
                    sum += (number(from[c * p.in_c], p.signed_in) - p.zero_in) *
                           (number(by[c * p.w_i], p.signed_weight) - p.zero_weight);
            }
        }
    }
    return sum;
}

__global__ void __launch_bounds__(threads)
    convolve(const conv_bytes p, int64_t places, const uint8_t *__restrict__ input, const uint8_t *__restrict__ weight,
             const int32_t *__restrict__ bias, void *__restrict__ output) {
    const int64_t count = p.images * p.cout * places, step = (int64_t)gridDim.x * threads, each = p.cout / p.group;
    for (int64_t k = (int64_t)blockIdx.x * threads + threadIdx.x; k < count; k += step) {
        const int64_t rest = k % (p.cout * places), image = k / (p.cout * places);
        const int64_t channel = p.last ? rest % p.cout : rest / places, place = p.last ? rest / p.cout : rest % places;
        const int64_t group = channel / each, at = image * p.out_n + channel * p.out_c + place * p.out_step;
        const int32_t sum = sum_of(p, input + image * p.in_n + group * (p.cin / p.group) * p.in_c,
                                   weight + group * p.w_g + channel % each * p.w_o, place);
        if (!p.quantised) {
            ((int32_t *)output)[at] = sum;
            continue;
        }
        const float value = product_bytes_value(&p.finish, sum, bias ? bias[channel] : 0);
        if (p.type == PRODUCT_BYTES_FP32)
            ((float *)output)[at] = value;
        else
            ((uint8_t *)output)[at] = product_bytes_rounded(&p.finish, value);
    }
}

} // namespace

extern "C" int conv_bytes_launch(const conv_bytes *c, const void *input, const void *weight, const void *bias,
                                 void *output, void *stream) {
    const bool byte = c->type == PRODUCT_BYTES_INT8 || c->type == PRODUCT_BYTES_UINT8;
    const bool good = c->quantised ? byte || c->type == PRODUCT_BYTES_FP32 : c->type == PRODUCT_BYTES_INT32 && !bias;
    const int64_t places = c->axes[0].out * c->axes[1].out * c->axes[2].out, count = c->images * c->cout * places;
    if (!good || count < 1 || c->group < 1) return cudaErrorInvalidValue;
    const int64_t blocks = (count + threads - 1) / threads, most = 1 << 24;
    convolve<<<(unsigned)(blocks < most ? blocks : most), threads, 0, (cudaStream_t)stream>>>(
        *c, places, (const uint8_t *)input, (const uint8_t *)weight, (const int32_t *)bias, output);
    return cudaGetLastError();
}
