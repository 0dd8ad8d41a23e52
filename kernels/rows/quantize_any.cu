/* To integers of 2, 4 and 16 bits and to short floats, and back, also with a scale for each block: an element at a
 * time, some beside each other in a thread, so that no two threads write to one byte. */
#include "kernels/pass/narrow.cuh"
#include "kernels/pass/pass.cuh"

#include <cuda_fp8.h>

namespace {

constexpr int threads = 256;

struct job {
    quantize_any q;
    const void *x, *scales, *zeros;
    void *y;
    int64_t count;
    int forward, together;      /* elements beside each other */
    pass::narrow_format narrow; /* of the type of few bits; `bits` 0: it is none of them */
    pass::radix places;         /* inner, length, outer */
};

__device__ __forceinline__ float fp8(unsigned char x, __nv_fp8_interpretation_t kind) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind)));
}

__device__ float load(const job &p, int type, const void *x, int64_t at) {
    const unsigned char *const bytes = (const unsigned char *)x;
    switch (type) {
    case PASS_FP32: return ((const float *)x)[at];
    case PASS_FP16: return __half2float(((const __half *)x)[at]);
    case PASS_BF16: return __uint_as_float((unsigned)((const unsigned short *)x)[at] << 16);
    case PASS_FP8E4M3: return fp8(bytes[at], __NV_E4M3);
    case PASS_FP8E5M2: return fp8(bytes[at], __NV_E5M2);
    case PASS_INT16: return (float)((const int16_t *)x)[at];
    case PASS_UINT16: return (float)((const uint16_t *)x)[at];
    default: return pass::narrow_decode(p.narrow, pass::narrow_code_at(x, p.narrow.bits, at));
    }
}

/* Whole numbers within the type's range, or any for floats; of 8 bits and less: the code. */
__device__ void store(int type, void *y, int64_t at, float x, uint32_t code) {
    switch (type) {
    case PASS_FP32: ((float *)y)[at] = x; break;
    case PASS_FP16: ((__half *)y)[at] = __float2half_rn(x); break;
    case PASS_BF16: ((__nv_bfloat16 *)y)[at] = __float2bfloat16_rn(x); break;
    case PASS_FP8E4M3: ((unsigned char *)y)[at] = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); break;
    case PASS_FP8E5M2: ((unsigned char *)y)[at] = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); break;
    case PASS_INT16:
    case PASS_UINT16: ((unsigned short *)y)[at] = (unsigned short)(int)x; break;
    default: ((unsigned char *)y)[at] = (unsigned char)code; break;
    }
}

__device__ __forceinline__ bool is_fp8(int type) { return type == PASS_FP8E4M3 || type == PASS_FP8E5M2; }

__device__ float value_of(const job &p, int64_t at) {
    int64_t outer = at;
    const int64_t inner = pass::radix_next(p.places, 0, outer), along = pass::radix_next(p.places, 1, outer);
    const int64_t blocks = (p.q.length + p.q.block - 1) / p.q.block;
    const int64_t side = p.q.each ? (outer * blocks + along / p.q.block) * p.q.inner + inner : along / p.q.block;
    const float scale = load(p, p.q.scale_type, p.scales, side), x = load(p, p.q.from, p.x, at);
    const float zero = p.zeros ? load(p, p.forward ? p.q.to : p.q.from, p.zeros, side) : 0;
    if (!p.forward) return (x - zero) * scale;
    if (is_fp8(p.q.to) || (p.narrow.bits && !p.narrow.whole)) return x / scale + zero;
    const float y = rintf(x / scale) + zero;
    if (p.q.to == PASS_INT16) return fminf(fmaxf(y, -32768.0f), 32767.0f);
    if (p.q.to == PASS_UINT16) return fminf(fmaxf(y, 0.0f), 65535.0f);
    return fminf(fmaxf(y, pass::narrow_least(p.narrow)), pass::narrow_most(p.narrow));
}

__device__ __forceinline__ uint32_t code_of(const job &p, float y) {
    if (!p.forward || p.narrow.bits == 0) return 0;
    return p.narrow.whole ? pass::narrow_encode_whole(p.narrow, (int)y) : pass::narrow_encode_float(p.narrow, y, 0);
}

__global__ void __launch_bounds__(threads) quantize(const job p) {
    const int64_t step = p.together * (int64_t)gridDim.x * threads;
    for (int64_t at = p.together * ((int64_t)blockIdx.x * threads + threadIdx.x); at < p.count; at += step) {
        const int here = (int)min((int64_t)p.together, p.count - at);
        uint32_t byte = 0; /* of codes that share it */
        for (int k = 0; k < here; k++) {
            const float y = value_of(p, at + k);
            const uint32_t code = code_of(p, y);
            if (p.forward && p.narrow.bits && p.narrow.bits < 8)
                byte |= code << k * p.narrow.bits;
            else
                store(p.q.to, p.y, at + k, y, code);
        }
        if (p.forward && p.narrow.bits && p.narrow.bits < 8)
            ((unsigned char *)p.y)[at / p.together] = (unsigned char)byte;
    }
}

bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }
bool is_short(int type) {
    static const int types[] = {PASS_INT16, PASS_UINT16, PASS_FP8E4M3, PASS_FP8E5M2};
    for (int t : types)
        if (t == type) return true;
    return type != PASS_FP8E8M0 && pass::narrow_format_of(type).bits > 0;
}

} // namespace

int quantize_any_fits(const quantize_any *q) {
    if (!(is_float(q->from) && is_short(q->to)) && !(is_short(q->from) && is_float(q->to))) return 0;
    return is_float(q->scale_type) && q->outer > 0 && q->length > 0 && q->inner > 0 && q->block > 0;
}

int quantize_any_launch(const quantize_any *q, const void *x, const void *scales, const void *zero_points, void *y,
                        void *stream) {
    if (!quantize_any_fits(q)) return cudaErrorInvalidValue;
    const int64_t dims[] = {q->inner, q->length, q->outer};
    const pass_config plain = {};
    job j = {};
    j.q = *q, j.x = x, j.scales = scales, j.zeros = zero_points, j.y = y;
    j.count = dims[0] * dims[1] * dims[2];
    j.forward = is_float(q->from);
    j.narrow = pass::narrow_format_of(j.forward ? q->to : q->from);
    j.together = j.narrow.bits && j.narrow.bits < 8 ? 8 / j.narrow.bits : 2;
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return cudaLaunchKernel((const void *)quantize,
                            dim3(pass::blocks_of(plain, (j.count + j.together * threads - 1) / (j.together * threads))),
                            dim3(threads), args, 0, (cudaStream_t)stream);
}
