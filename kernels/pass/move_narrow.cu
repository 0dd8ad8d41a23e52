/* Casts to and from numbers of few bits: a thread converts eight elements, which are whole bytes of any type. */
#include "kernels/pass/narrow.cuh"
#include "kernels/pass/pass.cuh"

namespace {

constexpr int most_threads = 512, each = 8;

struct job {
    pass::narrow_format from_format, to_format;
    int from_type, to_type;
    uint32_t up;
    int64_t count;
    const void *from;
    void *to;
};

/* Eight elements, the lowest bits first. */
template <int BITS> struct lane { uint32_t words[(BITS * each + 31) / 32]; };

/* As many bytes as an element has bits; `wide`: they lie at a multiple of 16 elements' bytes, and all are there. */
template <int BITS> __device__ __forceinline__ lane<BITS> load(const void *from, int64_t at, bool wide, int64_t left) {
    const unsigned char *const bytes = (const unsigned char *)from + at / each * BITS;
    lane<BITS> x = {};
    if (!wide) {
#pragma unroll
        for (int b = 0; b < BITS; b++)
            if (b * 8 < left * BITS) x.words[b / 4] |= (uint32_t)bytes[b] << b % 4 * 8;
        return x;
    }
    if constexpr (BITS == 2) x.words[0] = *(const uint16_t *)bytes;
    if constexpr (BITS == 4) x.words[0] = *(const uint32_t *)bytes;
    if constexpr (BITS == 8) {
        const uint2 two = *(const uint2 *)bytes;
        x.words[0] = two.x, x.words[1] = two.y;
    }
    if constexpr (BITS >= 16) {
#pragma unroll
        for (int w = 0; w < BITS / 4; w += 4) {
            const uint4 four = ((const uint4 *)bytes)[w / 4];
            x.words[w] = four.x, x.words[w + 1] = four.y, x.words[w + 2] = four.z, x.words[w + 3] = four.w;
        }
    }
    return x;
}

template <int BITS>
__device__ __forceinline__ void store(void *to, int64_t at, bool wide, int64_t left, const lane<BITS> &x) {
    unsigned char *const bytes = (unsigned char *)to + at / each * BITS;
    if (!wide) {
#pragma unroll
        for (int b = 0; b < BITS; b++)
            if (b * 8 < left * BITS) bytes[b] = (unsigned char)(x.words[b / 4] >> b % 4 * 8);
        return;
    }
    if constexpr (BITS == 2) *(uint16_t *)bytes = (uint16_t)x.words[0];
    if constexpr (BITS == 4) *(uint32_t *)bytes = x.words[0];
    if constexpr (BITS == 8) *(uint2 *)bytes = make_uint2(x.words[0], x.words[1]);
    if constexpr (BITS >= 16) {
#pragma unroll
        for (int w = 0; w < BITS / 4; w += 4)
            ((uint4 *)bytes)[w / 4] = make_uint4(x.words[w], x.words[w + 1], x.words[w + 2], x.words[w + 3]);
    }
}

template <int BITS> __device__ __forceinline__ uint32_t code_of(const lane<BITS> &x, int k) {
    const uint32_t word = x.words[k * BITS / 32] >> k * BITS % 32;
    return BITS == 32 ? word : word & (uint32_t)(((uint64_t)1 << BITS) - 1);
}

template <int BITS> __device__ __forceinline__ float value_of(const job &p, uint32_t code) {
    if constexpr (BITS == 32) return __uint_as_float(code);
    if constexpr (BITS == 16)
        return p.from_type == PASS_FP16 ? __half2float(__ushort_as_half((unsigned short)code))
                                        : __uint_as_float(code << 16);
    return pass::narrow_decode(p.from_format, code);
}

/* From a float to whole numbers the fraction is cut off, and what is beyond the range becomes its end. */
template <int BITS> __device__ __forceinline__ uint32_t encode(const job &p, float x) {
    const pass::narrow_format &f = p.to_format;
    if constexpr (BITS == 32) return __float_as_uint(x);
    if constexpr (BITS == 16)
        return p.to_type == PASS_FP16 ? __half_as_ushort(__float2half_rn(x))
                                      : __bfloat16_as_ushort(__float2bfloat16_rn(x));
    if (!f.whole) return pass::narrow_encode_float(f, x, p.up);
    if (!p.from_format.whole) x = fminf(fmaxf(truncf(x), pass::narrow_least(f)), pass::narrow_most(f));
    return pass::narrow_encode_whole(f, (int)x);
}

template <int FROM, int TO> __global__ void __launch_bounds__(most_threads) narrow(const job p, const bool aligned) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x * each;
    for (int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * each; at < p.count; at += step) {
        const int64_t left = p.count - at;
        const bool wide = aligned && left >= each;
        const lane<FROM> x = load<FROM>(p.from, at, wide, left);
        lane<TO> y = {};
#pragma unroll
        for (int k = 0; k < each; k++)
            y.words[k * TO / 32] |= encode<TO>(p, value_of<FROM>(p, code_of<FROM>(x, k))) << k * TO % 32;
        store<TO>(p.to, at, wide, left, y);
    }
}

#define NARROW(from)                                                                                                   \
    {                                                                                                                  \
        (const void *)narrow<from, 2>, (const void *)narrow<from, 4>, (const void *)narrow<from, 8>,                   \
            (const void *)narrow<from, 16>, (const void *)narrow<from, 32>                                             \
    }
#define WIDE(from)                                                                                                     \
    { (const void *)narrow<from, 2>, (const void *)narrow<from, 4>, (const void *)narrow<from, 8>, nullptr, nullptr }
const void *const kernels[5][5] = {NARROW(2), NARROW(4), NARROW(8), WIDE(16), WIDE(32)};

bool is_float(int type) { return type == PASS_FP32 || type == PASS_FP16 || type == PASS_BF16; }
int bits_of(int type) { return is_float(type) ? pass::size_of(type) * 8 : pass::narrow_format_of(type).bits; }

/* 2, 4, 8, 16, 32 */
int place(int bits) {
    int at = 0;
    while (2 << at < bits) at++;
    return at;
}

const void *kernel_of(const move_narrow *n) {
    const int from = bits_of(n->from_type), to = bits_of(n->to_type);
    return from && to ? kernels[place(from)][place(to)] : nullptr;
}

} // namespace

int move_narrow_fits(const move_narrow *n) {
    const int threads = n->config.threads;
    return kernel_of(n) && n->count > 0 && threads >= 0 && threads <= most_threads && threads % 32 == 0 &&
           n->config.resident >= 0;
}

int move_narrow_launch(const move_narrow *n, const void *from, void *to, void *stream) {
    if (!move_narrow_fits(n)) return cudaErrorInvalidValue;
    const int threads = pass::threads_of(n->config, 256);
    job j = {pass::narrow_format_of(n->from_type),
             pass::narrow_format_of(n->to_type),
             n->from_type,
             n->to_type,
             n->up,
             n->count,
             from,
             to};
    bool aligned = pass::aligned(from, 16) && pass::aligned(to, 16);
    void *args[] = {&j, &aligned};
    const int64_t tile = (int64_t)each * threads;
    return cudaLaunchKernel(kernel_of(n), dim3(pass::blocks_of(n->config, (n->count + tile - 1) / tile)), dim3(threads),
                            args, 0, (cudaStream_t)stream);
}
