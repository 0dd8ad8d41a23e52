/* To integers of 4 and 16 bits and to fp8, and back, also with a scale for each block: an element at a time, two beside
 * each other in a thread, so that no two threads write to one byte. */
#include "kernels/pass/pass.cuh"

#include <cuda_fp8.h>

namespace {

constexpr int threads = 256;

struct job {
    quantize_any q;
    const void *x, *scales, *zeros;
    void *y;
    int64_t count;
    int forward;
    pass::radix places; /* inner, length, outer */
};

__device__ __forceinline__ float fp8(unsigned char x, __nv_fp8_interpretation_t kind) {
    return __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind)));
}

__device__ float load(int type, const void *x, int64_t at) {
    const unsigned char *const bytes = (const unsigned char *)x;
    switch (type) {
    case PASS_FP32: return ((const float *)x)[at];
    case PASS_FP16: return __half2float(((const __half *)x)[at]);
    case PASS_BF16: return __uint_as_float((unsigned)((const unsigned short *)x)[at] << 16);
    case PASS_FP8E4M3: return fp8(bytes[at], __NV_E4M3);
    case PASS_FP8E5M2: return fp8(bytes[at], __NV_E5M2);
    case PASS_INT16: return (float)((const int16_t *)x)[at];
    case PASS_UINT16: return (float)((const uint16_t *)x)[at];
    case PASS_INT8: return (float)((const int8_t *)x)[at];
    case PASS_UINT8: return (float)bytes[at];
    case PASS_INT4: return (float)(int)(((bytes[at / 2] >> at % 2 * 4 & 15) ^ 8) - 8);
    default: return (float)(bytes[at / 2] >> at % 2 * 4 & 15); /* uint4 */
    }
}

struct range {
    int type;
    float least, most;
};

__device__ range range_of(int type) {
    switch (type) {
    case PASS_INT16: return {type, -32768, 32767};
    case PASS_UINT16: return {type, 0, 65535};
    case PASS_INT8: return {type, -128, 127};
    case PASS_UINT8: return {type, 0, 255};
    case PASS_INT4: return {type, -8, 7};
    default: return {type, 0, 15};
    }
}

/* Whole numbers within the type's range, or any for floats. */
__device__ void store(int type, void *y, int64_t at, float x) {
    switch (type) {
    case PASS_FP32: ((float *)y)[at] = x; break;
    case PASS_FP16: ((__half *)y)[at] = __float2half_rn(x); break;
    case PASS_BF16: ((__nv_bfloat16 *)y)[at] = __float2bfloat16_rn(x); break;
    case PASS_FP8E4M3: ((unsigned char *)y)[at] = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); break;
    case PASS_FP8E5M2: ((unsigned char *)y)[at] = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); break;
    case PASS_INT16:
    case PASS_UINT16: ((unsigned short *)y)[at] = (unsigned short)(int)x; break;
    default: ((unsigned char *)y)[at] = (unsigned char)(int)x; break; /* of 8 bits */
    }
}

__device__ __forceinline__ bool is_fp8(int type) { return type == PASS_FP8E4M3 || type == PASS_FP8E5M2; }
__device__ __forceinline__ bool is_nibble(int type) { return type == PASS_INT4 || type == PASS_UINT4; }

__device__ float value_of(const job &p, int64_t at) {
    int64_t outer = at;
    const int64_t inner = pass::radix_next(p.places, 0, outer), along = pass::radix_next(p.places, 1, outer);
    const int64_t blocks = (p.q.length + p.q.block - 1) / p.q.block;
    const int64_t side = p.q.each ? (outer * blocks + along / p.q.block) * p.q.inner + inner : along / p.q.block;
    const float scale = load(p.q.scale_type, p.scales, side), x = load(p.q.from, p.x, at);
    const float zero = p.zeros ? load(p.forward ? p.q.to : p.q.from, p.zeros, side) : 0;
    if (!p.forward) return (x - zero) * scale;
    if (is_fp8(p.q.to)) return x / scale + zero;
    const range r = range_of(p.q.to);
    return fminf(fmaxf(rintf(x / scale) + zero, r.least), r.most);
}

__global__ void __launch_bounds__(threads) quantize(const job p) {
    const int64_t step = 2 * (int64_t)gridDim.x * threads;
    for (int64_t at = 2 * ((int64_t)blockIdx.x * threads + threadIdx.x); at < p.count; at += step) {
        const bool two = at + 1 < p.count;
        const float low = value_of(p, at), high = two ? value_of(p, at + 1) : 0;
        if (is_nibble(p.q.to)) {
            ((unsigned char *)p.y)[at / 2] = (unsigned char)(((int)low & 15) | ((int)high & 15) << 4);
            continue;
        }
        store(p.q.to, p.y, at, low);
        if (two) store(p.q.to, p.y, at + 1, high);
    }
}

bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }
bool is_short(int type) {
    static const int types[] = {PASS_INT8, PASS_UINT8, PASS_INT16,   PASS_UINT16,
                                PASS_INT4, PASS_UINT4, PASS_FP8E4M3, PASS_FP8E5M2};
    for (int t : types)
        if (t == type) return true;
    return false;
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
    j.places = pass::radix_of(3, dims);
    void *args[] = {&j};
    return cudaLaunchKernel((const void *)quantize,
                            dim3(pass::blocks_of(plain, ((j.count + 1) / 2 + threads - 1) / threads)), dim3(threads),
                            args, 0, (cudaStream_t)stream);
}
