/* Casts: one kernel for each pair of sizes, which branches on their types. To whole numbers the fraction is cut off and
 * a float beyond the range becomes its end, where whole numbers lose their upper bits; to bool it is whether it is not
 * 0; fp8 has no infinity to become. */
#include "kernels/pass/pass.cuh"

#include <cuda_fp8.h>

namespace {

constexpr int most_threads = 512;

struct job {
    int from_type, to_type;
    int64_t count;
    const void *from;
    void *to;
};

__device__ __forceinline__ uint8_t byte_of(int type, long long x) { return type == PASS_BOOL ? x != 0 : (uint8_t)x; }

/* fp32, and fp64 where it is narrowed. */
template <class F> __device__ __forceinline__ uint8_t byte_of_float(int type, F x) {
    if (type == PASS_BOOL) return x != 0;
    if (type == PASS_FP8E4M3) return (uint8_t)__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, __NV_E4M3);
    if (type == PASS_FP8E5M2) return (uint8_t)__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, __NV_E5M2);
    const int low = type == PASS_INT8 ? -128 : 0, whole = (int)x; /* beyond its range an int is at its end */
    return (uint8_t)min(max(whole, low), low + 255);
}
__device__ __forceinline__ uint8_t byte_of(int type, float x) { return byte_of_float(type, x); }
__device__ __forceinline__ uint8_t byte_of(int type, double x) { return byte_of_float(type, x); }

/* Rounded once. */
__device__ __forceinline__ __half half_of(double x) { return __double2half(x); }
__device__ __forceinline__ __half half_of(float x) { return __float2half_rn(x); }
__device__ __forceinline__ __half half_of(long long x) { return __ll2half_rn(x); }

/* The instruction that converts a float stops at an int's ends. */
__device__ __forceinline__ uint32_t word_of(long long x) { return (uint32_t)x; }
__device__ __forceinline__ uint32_t word_of(float x) { return (uint32_t)__float2int_rz(x); }
__device__ __forceinline__ uint32_t word_of(double x) { return (uint32_t)__double2int_rz(x); }

template <int SIZE, int VEC, class V>
__device__ __forceinline__ void put(int type, const V *x, pass::bits<SIZE, VEC> &to) {
#pragma unroll
    for (int i = 0; i < VEC; i++) {
        if constexpr (SIZE == 8)
            to.at[i] = type == PASS_FP64 ? (unsigned long long)__double_as_longlong((double)x[i])
                                         : (unsigned long long)(long long)x[i];
        else if constexpr (SIZE == 4)
            to.at[i] = type == PASS_FP32 ? __float_as_uint((float)x[i]) : word_of(x[i]);
        else if constexpr (SIZE == 2)
            to.at[i] = type == PASS_FP16 ? __half_as_ushort(half_of(x[i]))
                                         : __bfloat16_as_ushort(__float2bfloat16_rn((float)x[i]));
        else
            to.at[i] = byte_of(type, x[i]);
    }
}

template <int FROM, int TO, int VEC>
__device__ __forceinline__ void convert(const job &p, const pass::bits<FROM, VEC> &x, pass::bits<TO, VEC> &y) {
    if (FROM == 2 || p.from_type == PASS_FP32) {
        float values[VEC];
        if constexpr (FROM == 2 || FROM == 4) pass::widen(p.from_type, x, values);
        if constexpr (FROM == 2 || FROM == 4) put<TO, VEC>(p.to_type, values, y);
        return;
    }
    if (FROM == 8 && p.from_type == PASS_FP64) {
        double values[VEC];
#pragma unroll
        for (int i = 0; i < VEC; i++) values[i] = __longlong_as_double((long long)x.at[i]);
        put<TO, VEC>(p.to_type, values, y);
        return;
    }
    if (FROM == 1 && (p.from_type == PASS_FP8E4M3 || p.from_type == PASS_FP8E5M2)) {
        const __nv_fp8_interpretation_t kind = p.from_type == PASS_FP8E4M3 ? __NV_E4M3 : __NV_E5M2;
        float values[VEC];
#pragma unroll
        for (int i = 0; i < VEC; i++)
            values[i] = __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x.at[i], kind)));
        put<TO, VEC>(p.to_type, values, y);
        return;
    }
    long long values[VEC];
#pragma unroll
    for (int i = 0; i < VEC; i++)
        values[i] = FROM == 8                  ? (long long)x.at[i]
                    : FROM == 4                ? (long long)(int)x.at[i]
                    : p.from_type == PASS_INT8 ? (long long)(int8_t)x.at[i]
                                               : (long long)(uint8_t)x.at[i];
    put<TO, VEC>(p.to_type, values, y);
}

template <int FROM, int TO, int WIDE> __global__ void __launch_bounds__(most_threads) cast(const job p) {
    constexpr int vec = WIDE ? 16 / (FROM > TO ? FROM : TO) : 1, pieces = 2;
    const int64_t tile = (int64_t)pieces * vec * blockDim.x;
    for (int64_t first = blockIdx.x * tile; first < p.count; first += gridDim.x * tile) {
        const bool whole = first + tile <= p.count;
        pass::bits<FROM, vec> x[pieces];
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const int64_t at = first + ((int64_t)k * blockDim.x + threadIdx.x) * vec;
            x[k] = whole ? pass::load<FROM, vec>(p.from, at) : pass::load_some<FROM, vec>(p.from, at, p.count - at);
        }
#pragma unroll
        for (int k = 0; k < pieces; k++) {
            const int64_t at = first + ((int64_t)k * blockDim.x + threadIdx.x) * vec;
            pass::bits<TO, vec> y;
            convert<FROM, TO, vec>(p, x[k], y);
            if (whole)
                pass::store<TO, vec>(p.to, at, y);
            else
                pass::store_some<TO, vec>(p.to, at, p.count - at, y);
        }
    }
}

#define TO(from, to)                                                                                                   \
    { (const void *)cast<from, to, 0>, (const void *)cast<from, to, 1> }
#define FROM(from)                                                                                                     \
    { TO(from, 1), TO(from, 2), TO(from, 4), TO(from, 8) }
const void *const kernels[4][4][2] = {FROM(1), FROM(2), FROM(4), FROM(8)};

/* 0: not one of those that are cast. */
int size_of(int type) {
    if (type == PASS_FP8E4M3 || type == PASS_FP8E5M2) return 1;
    const bool other = type == PASS_INT16 || type == PASS_UINT16 || type == PASS_UINT32 || type == PASS_UINT64;
    return other ? 0 : pass::size_of(type);
}

int place(int size) { return size == 8 ? 3 : size / 2; }

} // namespace

int move_cast_fits(const move_cast *c) {
    const int threads = c->config.threads;
    return size_of(c->from_type) && size_of(c->to_type) && c->count > 0 && threads >= 0 && threads <= most_threads &&
           threads % 32 == 0 && c->config.resident >= 0;
}

int move_cast_launch(const move_cast *c, const void *from, void *to, void *stream) {
    if (!move_cast_fits(c)) return cudaErrorInvalidValue;
    const int from_size = size_of(c->from_type), to_size = size_of(c->to_type);
    const int wide = pass::aligned(from, 16) && pass::aligned(to, 16), threads = pass::threads_of(c->config, 256);
    const int64_t tile = (int64_t)2 * threads * (wide ? 16 / (from_size > to_size ? from_size : to_size) : 1);
    job j = {c->from_type, c->to_type, c->count, from, to};
    void *args[] = {&j};
    return cudaLaunchKernel(kernels[place(from_size)][place(to_size)][wide],
                            dim3(pass::blocks_of(c->config, (c->count + tile - 1) / tile)), dim3((unsigned)threads),
                            args, 0, (cudaStream_t)stream);
}
