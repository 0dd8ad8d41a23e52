/* Fills buffers, and checks that they were not written. Both run near memory speed, since whole sets of rotating
 * buffers are filled and checked for every operation. */
#include "kernels/harness/kernels.h"
#include "kernels/harness/values.cuh"

namespace {

constexpr int threads = 256;

/* Two normal numbers from 64 random bits (Box and Muller). */
__device__ float2 fill_normals(uint64_t bits) {
    const float u = ((uint32_t)(bits >> 32) + 0.5f) * 0x1p-32f; /* in (0, 1) */
    const float angle = (float)(uint32_t)bits * (6.28318530718f * 0x1p-32f);
    const float radius = sqrtf(-2.0f * __logf(fminf(u, 0.99999994f)));
    float s, c;
    __sincosf(angle, &s, &c);
    return make_float2(radius * c, radius * s);
}

struct fill_fp32 {
    typedef float value;
    __device__ static value of(float x) { return x; }
};
struct fill_fp64 {
    typedef double value;
    __device__ static value of(float x) { return x; }
};
struct fill_fp16 {
    typedef __half value;
    __device__ static value of(float x) { return __float2half_rn(x); }
};
struct fill_bf16 {
    typedef __nv_bfloat16 value;
    __device__ static value of(float x) { return __float2bfloat16_rn(x); }
};
struct fill_e4m3 {
    typedef __nv_fp8_e4m3 value;
    __device__ static value of(float x) { return value(x); }
};
struct fill_e5m2 {
    typedef __nv_fp8_e5m2 value;
    __device__ static value of(float x) { return value(x); }
};
/* The same bits as a type with one more of the bias are half as much; the code of -0 is not a number there. */
struct fill_e4m3fnuz {
    typedef uint8_t value;
    __device__ static value of(float x) {
        const uint8_t code = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
        return code == 0x80 ? 0 : code;
    }
};
struct fill_e5m2fnuz {
    typedef uint8_t value;
    __device__ static value of(float x) {
        const uint8_t code = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
        return code == 0x80 ? 0 : code;
    }
};
/* Powers of two, the exponents as normal numbers. */
struct fill_e8m0 {
    typedef uint8_t value;
    __device__ static value of(float x) { return (uint8_t)(127 + (int)rintf(fminf(12.0f, fmaxf(-12.0f, x)))); }
};
struct fill_int8 {
    typedef int8_t value;
    __device__ static value of(float x) { return (int8_t)fminf(127.0f, fmaxf(-128.0f, rintf(32.0f * x))); }
};
struct fill_uint8 {
    typedef uint8_t value;
    __device__ static value of(float x) { return (uint8_t)fminf(255.0f, fmaxf(0.0f, rintf(32.0f * x) + 128.0f)); }
};
struct fill_int32 {
    typedef int32_t value;
    __device__ static value of(float x) { return (int32_t)rintf(0x1p27f * fminf(15.0f, fmaxf(-15.0f, x))); }
};
struct fill_int64 {
    typedef int64_t value;
    __device__ static value of(float x) { return (int64_t)rintf(0x1p20f * x); }
};
struct fill_int16 {
    typedef int16_t value;
    __device__ static value of(float x) { return (int16_t)fminf(32767.0f, fmaxf(-32768.0f, rintf(4096.0f * x))); }
};
struct fill_uint16 {
    typedef uint16_t value;
    __device__ static value of(float x) { return (uint16_t)fminf(65535.0f, rintf(4096.0f * fabsf(x))); }
};
struct fill_uint32 {
    typedef uint32_t value;
    __device__ static value of(float x) { return (uint32_t)rintf(0x1p27f * fminf(31.0f, fabsf(x))); }
};
struct fill_uint64 {
    typedef uint64_t value;
    __device__ static value of(float x) { return (uint64_t)rintf(0x1p20f * fabsf(x)); }
};
struct fill_bool {
    typedef uint8_t value;
    __device__ static value of(float x) { return x > 0; }
};

union fill_chunk {
    uint4 whole;
    unsigned char bytes[16];
};

__device__ void fill_put(unsigned char *to, uint64_t at, uint64_t bytes, bool aligned, const fill_chunk &chunk) {
    if (aligned && at + 16 <= bytes) {
        *(uint4 *)(to + at) = chunk.whole;
        return;
    }
    for (int k = 0; k < 16; k++)
        if (at + k < bytes) to[at + k] = chunk.bytes[k];
}

template <typename T>
__global__ void fill_values(unsigned char *to, uint64_t bytes, int scale, float factor, uint64_t seed) {
    constexpr int per = 16 / (int)sizeof(typename T::value);
    const uint64_t step = (uint64_t)gridDim.x * threads;
    const bool aligned = ((uintptr_t)to & 15) == 0;
    for (uint64_t c = (uint64_t)blockIdx.x * threads + threadIdx.x; c * 16 < bytes; c += step) {
        fill_chunk chunk;
        typename T::value *values = (typename T::value *)chunk.bytes;
#pragma unroll
        for (int k = 0; k < per; k += 2) {
            float2 pair = fill_normals(values_mix(seed + (c * per + k)));
            if (scale) pair = make_float2((fabsf(pair.x) + 1) / 64, (fabsf(pair.y) + 1) / 64);
            values[k] = T::of(pair.x * factor);
            values[k + 1] = T::of(pair.y * factor);
        }
        fill_put(to, c * 16, bytes, aligned, chunk);
    }
}

bool fill_has_every_pattern(uint32_t type) {
    return type == DTYPE_INT4 || type == DTYPE_UINT4 || type == DTYPE_INT2 || type == DTYPE_UINT2 ||
           type == DTYPE_FP4E2M1;
}

/* A few bits each: every pattern alike. */
__global__ void fill_bits(unsigned char *to, uint64_t bytes, uint64_t seed) {
    const uint64_t step = (uint64_t)gridDim.x * threads;
    const bool aligned = ((uintptr_t)to & 15) == 0;
    for (uint64_t c = (uint64_t)blockIdx.x * threads + threadIdx.x; c * 16 < bytes; c += step) {
        const uint64_t low = values_mix(seed + 2 * c), high = values_mix(seed + 2 * c + 1);
        fill_chunk chunk;
        chunk.whole = make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
        fill_put(to, c * 16, bytes, aligned, chunk);
    }
}

/* Whole numbers from `least` on, `range` of them alike. */
template <typename T>
__global__ void fill_places(T *to, uint64_t count, uint32_t least, uint32_t range, uint64_t seed) {
    const uint64_t step = (uint64_t)gridDim.x * threads;
    for (uint64_t k = (uint64_t)blockIdx.x * threads + threadIdx.x; k < count; k += step)
        to[k] = (T)(least + __umulhi((uint32_t)(values_mix(seed + k) >> 32), range));
}

/* Boxes (x, y, x, y) as cpu_fill.c has them: a thread makes one. */
template <typename T> __global__ void fill_boxes(typename T::value *to, uint64_t count, float side, uint64_t seed) {
    const uint64_t step = (uint64_t)gridDim.x * threads;
    for (uint64_t box = (uint64_t)blockIdx.x * threads + threadIdx.x; box * 4 < count; box += step) {
        float x[4];
        for (int k = 0; k < 4; k++) {
            const float part = (float)(uint32_t)(values_mix(seed + (box * 4 + k)) >> 40) * 0x1p-24f;
            x[k] = k < 2 ? side * 0.4375f * part : x[k & 1] + side * (0.25f + 0.25f * part);
            if (box * 4 + k < count) to[box * 4 + k] = T::of(x[k]);
        }
    }
}

template <typename T>
cudaError_t fill_launch(void *to, uint64_t bytes, int scale, float factor, uint64_t seed, unsigned blocks,
                        cudaStream_t stream) {
    fill_values<T><<<blocks, threads, 0, stream>>>((unsigned char *)to, bytes, scale, factor, seed);
    return cudaGetLastError();
}

typedef cudaError_t fill_launcher(void *to, uint64_t bytes, int scale, float factor, uint64_t seed, unsigned blocks,
                                  cudaStream_t stream);

const struct {
    uint32_t type;
    fill_launcher *launch;
} fill_types[] = {
    {DTYPE_FP32, fill_launch<fill_fp32>},
    {DTYPE_FP64, fill_launch<fill_fp64>},
    {DTYPE_FP16, fill_launch<fill_fp16>},
    {DTYPE_BF16, fill_launch<fill_bf16>},
    {DTYPE_FP8E4M3FN, fill_launch<fill_e4m3>},
    {DTYPE_FP8E5M2, fill_launch<fill_e5m2>},
    {DTYPE_INT8, fill_launch<fill_int8>},
    {DTYPE_UINT8, fill_launch<fill_uint8>},
    {DTYPE_INT32, fill_launch<fill_int32>},
    {DTYPE_INT64, fill_launch<fill_int64>},
    {DTYPE_INT16, fill_launch<fill_int16>},
    {DTYPE_UINT16, fill_launch<fill_uint16>},
    {DTYPE_UINT32, fill_launch<fill_uint32>},
    {DTYPE_UINT64, fill_launch<fill_uint64>},
    {DTYPE_BOOL, fill_launch<fill_bool>},
    {DTYPE_FP8E8M0, fill_launch<fill_e8m0>},
    {DTYPE_FP8E4M3FNUZ, fill_launch<fill_e4m3fnuz>},
    {DTYPE_FP8E5M2FNUZ, fill_launch<fill_e5m2fnuz>},
};

unsigned fill_blocks(uint64_t bytes) {
    const uint64_t blocks = (bytes / 16 + threads) / threads;
    return (unsigned)(blocks < 65536 ? blocks : 65536);
}

/* An odd weight for every place: a difference in one word cannot vanish, since odd numbers have inverses. */
__device__ uint64_t fill_weigh(uint64_t word, uint64_t at) { return word * ((at * 0x9e3779b97f4a7c15ull) | 1); }

__global__ void fill_checksum(const unsigned char *data, uint64_t bytes, unsigned long long *sum) {
    const uint64_t step = (uint64_t)gridDim.x * threads, whole = bytes / 16;
    uint64_t mine = 0;
#pragma unroll 4
    for (uint64_t c = (uint64_t)blockIdx.x * threads + threadIdx.x; c < whole; c += step) {
        const uint4 x = __ldcs((const uint4 *)data + c);
        mine += fill_weigh((uint64_t)x.y << 32 | x.x, 2 * c) + fill_weigh((uint64_t)x.w << 32 | x.z, 2 * c + 1);
    }
    if (blockIdx.x == 0)
        for (uint64_t k = whole * 16 + threadIdx.x; k < bytes; k += threads) mine += fill_weigh(data[k] + 1, k + bytes);
    for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(~0u, mine, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)mine);
}

/* For data not aligned to 16 bytes: the same guarantee, a byte at a time. */
__global__ void fill_checksum_bytes(const unsigned char *data, uint64_t bytes, unsigned long long *sum) {
    const uint64_t step = (uint64_t)gridDim.x * threads;
    uint64_t mine = 0;
    for (uint64_t k = (uint64_t)blockIdx.x * threads + threadIdx.x; k < bytes; k += step)
        mine += fill_weigh(data[k] + 1, k + bytes);
    for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(~0u, mine, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, (unsigned long long)mine);
}

} // namespace

cudaError_t kernels_fill(void *to, uint64_t bytes, uint32_t type, int scale, float factor, uint64_t seed,
                         cudaStream_t stream) {
    /* seeds that follow one another must not give shifted copies of one sequence */
    const uint64_t start = values_mix(seed ^ 0x5eedull);
    if (!bytes) return cudaSuccess;
    if (fill_has_every_pattern(type)) {
        fill_bits<<<fill_blocks(bytes), threads, 0, stream>>>((unsigned char *)to, bytes, start);
        return cudaGetLastError();
    }
    for (const auto &t : fill_types)
        if (t.type == type) return t.launch(to, bytes, scale, factor, start, fill_blocks(bytes), stream);
    return cudaErrorInvalidValue;
}

cudaError_t kernels_fill_places(void *to, uint64_t bytes, int element, uint32_t least, uint32_t range, uint64_t seed,
                                cudaStream_t stream) {
    const uint64_t start = values_mix(seed ^ 0x5eedull), count = bytes / (uint64_t)element;
    if (count == 0) return cudaSuccess;
    if (element == 8)
        fill_places<<<fill_blocks(bytes), threads, 0, stream>>>((int64_t *)to, count, least, range, start);
    else
        fill_places<<<fill_blocks(bytes), threads, 0, stream>>>((int32_t *)to, count, least, range, start);
    return cudaGetLastError();
}

cudaError_t kernels_fill_boxes(void *to, uint64_t bytes, uint32_t type, float side, uint64_t seed,
                               cudaStream_t stream) {
    const uint64_t start = values_mix(seed ^ 0x5eedull);
    const unsigned blocks = fill_blocks(bytes);
    if (type != DTYPE_FP32 && type != DTYPE_FP16 && type != DTYPE_BF16) return cudaErrorInvalidValue;
    if (type == DTYPE_FP32)
        fill_boxes<fill_fp32><<<blocks, threads, 0, stream>>>((float *)to, bytes / 4, side, start);
    else if (type == DTYPE_FP16)
        fill_boxes<fill_fp16><<<blocks, threads, 0, stream>>>((__half *)to, bytes / 2, side, start);
    else
        fill_boxes<fill_bf16><<<blocks, threads, 0, stream>>>((__nv_bfloat16 *)to, bytes / 2, side, start);
    return cudaGetLastError();
}

cudaError_t kernels_checksum(const void *data, uint64_t bytes, uint64_t *sum, int multiprocessors,
                             cudaStream_t stream) {
    const cudaError_t cleared = cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    if (cleared != cudaSuccess || !bytes) return cleared;
    const unsigned most = (unsigned)multiprocessors * 8, needed = fill_blocks(bytes);
    const unsigned blocks = needed < most ? needed : most;
    if ((uintptr_t)data & 15)
        fill_checksum_bytes<<<blocks, threads, 0, stream>>>((const unsigned char *)data, bytes,
                                                            (unsigned long long *)sum);
    else
        fill_checksum<<<blocks, threads, 0, stream>>>((const unsigned char *)data, bytes, (unsigned long long *)sum);
    return cudaGetLastError();
}
