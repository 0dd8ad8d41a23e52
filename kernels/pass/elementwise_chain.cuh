/* What the generated kernels of chains (scout/cuda/nvrtc/chain_source.c) are made of: pieces of memory and the numbers in
 * them, and every operator under its name. Compiled at run time with no header there: conversions are instructions. */
#ifndef KERNELS_PASS_ELEMENTWISE_CHAIN_CUH
#define KERNELS_PASS_ELEMENTWISE_CHAIN_CUH

#include "kernels/pass/elementwise_functions.cuh"

namespace chain {

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

/* --- memory: pieces of 8 bytes or whole 16 --- */

template <int BYTES> struct raw { u32 w[BYTES / 4]; };

/* STREAM: what is read once should not push anything out of the first cache. Volatile keeps the order: loads are all
 * on their way before the first number is needed. */
template <bool STREAM> __device__ __forceinline__ void load16(u32 *w, const void *from) {
    if (STREAM)
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "l"(from));
    else
        asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "l"(from));
}

template <bool STREAM, int BYTES> __device__ __forceinline__ void load(raw<BYTES> &x, const void *base, u64 at) {
    const char *const from = (const char *)base + at;
    if constexpr (BYTES == 8) {
        asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(x.w[0]), "=r"(x.w[1]) : "l"(from));
    } else {
#pragma unroll
        for (int k = 0; k < BYTES; k += 16) load16<STREAM>(x.w + k / 4, from + k);
    }
}

template <bool STREAM> __device__ __forceinline__ void store16(void *to, const u32 *w) {
    if (STREAM)
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                     : "memory");
    else
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3])
                     : "memory");
}

template <bool STREAM, int BYTES> __device__ __forceinline__ void store(void *base, u64 at, const raw<BYTES> &x) {
    char *const to = (char *)base + at;
    if constexpr (BYTES == 8) {
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(to), "r"(x.w[0]), "r"(x.w[1]) : "memory");
    } else {
#pragma unroll
        for (int k = 0; k < BYTES; k += 16) store16<STREAM>(to + k, x.w + k / 4);
    }
}

/* --- types: what an element is stored as, what it is computed in, and both ways between --- */

struct fp32 {
    typedef u32 bits;
    typedef float value;
    static __device__ __forceinline__ float from(u32 x) { return __uint_as_float(x); }
    static __device__ __forceinline__ u32 to(float x) { return __float_as_uint(x); }
};

struct fp16 {
    typedef u16 bits;
    typedef float value;
    static __device__ __forceinline__ float from(u16 x) {
        float y;
        asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
        return y;
    }
    static __device__ __forceinline__ u16 to(float x) {
        u16 y;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
    static __device__ __forceinline__ u32 pair(float low, float high) {
        u32 y;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
};

struct bf16 {
    typedef u16 bits;
    typedef float value;
    static __device__ __forceinline__ float from(u16 x) { return __uint_as_float((u32)x << 16); }
    static __device__ __forceinline__ u16 to(float x) {
        u16 y;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
        return y;
    }
    static __device__ __forceinline__ u32 pair(float low, float high) {
        u32 y;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
        return y;
    }
};

template <class BITS, class VALUE> struct as_it_is {
    typedef BITS bits;
    typedef VALUE value;
    static __device__ __forceinline__ VALUE from(BITS x) { return (VALUE)x; }
    static __device__ __forceinline__ BITS to(VALUE x) { return (BITS)x; }
};
typedef as_it_is<u64, i64> int64;
typedef as_it_is<u32, int> int32;
typedef as_it_is<u8, i8> int8;
typedef as_it_is<u8, u8> uint8;

struct truth {
    typedef u8 bits;
    typedef bool value;
    static __device__ __forceinline__ bool from(u8 x) { return x != 0; }
    static __device__ __forceinline__ u8 to(bool x) { return x ? 1 : 0; }
};

template <int SIZE> struct lane;
template <> struct lane<1> {
    static __device__ __forceinline__ u8 get(const u32 *w, int i) { return (u8)(w[i / 4] >> 8 * (i % 4)); }
    static __device__ __forceinline__ void put(u32 *w, int i, u8 x) { w[i / 4] |= (u32)x << 8 * (i % 4); }
};
template <> struct lane<2> {
    static __device__ __forceinline__ u16 get(const u32 *w, int i) { return (u16)(w[i / 2] >> 16 * (i % 2)); }
};
template <> struct lane<4> {
    static __device__ __forceinline__ u32 get(const u32 *w, int i) { return w[i]; }
    static __device__ __forceinline__ void put(u32 *w, int i, u32 x) { w[i] = x; }
};
template <> struct lane<8> {
    static __device__ __forceinline__ u64 get(const u32 *w, int i) { return w[2 * i] | (u64)w[2 * i + 1] << 32; }
    static __device__ __forceinline__ void put(u32 *w, int i, u64 x) {
        w[2 * i] = (u32)x;
        w[2 * i + 1] = (u32)(x >> 32);
    }
};

/* Element i of a piece; one that lies alone. */
template <class T, int BYTES> __device__ __forceinline__ typename T::value get(const raw<BYTES> &x, int i) {
    return T::from(lane<sizeof(typename T::bits)>::get(x.w, i));
}
template <class T> __device__ __forceinline__ typename T::value one(const void *base, u64 at) {
    return T::from(((const typename T::bits *)base)[at]);
}
template <class T> __device__ __forceinline__ void put_one(void *base, u64 at, typename T::value x) {
    ((typename T::bits *)base)[at] = T::to(x);
}

/* A whole piece of results. Two of two bytes are converted at once. */
template <class T, int VEC>
__device__ __forceinline__ void pack(const typename T::value *v, raw<VEC *(int)sizeof(typename T::bits)> &to) {
    if constexpr (sizeof(typename T::bits) == 2) {
#pragma unroll
        for (int i = 0; i < VEC; i += 2) to.w[i / 2] = T::pair(v[i], v[i + 1]);
    } else {
#pragma unroll
        for (int i = 0; i < VEC * (int)sizeof(typename T::bits) / 4; i++) to.w[i] = 0;
#pragma unroll
        for (int i = 0; i < VEC; i++) lane<sizeof(typename T::bits)>::put(to.w, i, T::to(v[i]));
    }
}

/* --- operators: alpha and beta are the operator's numbers; of integers the bounds of a clip --- */

#define CHAIN_ONE(name, expression)                                                                                    \
    __device__ __forceinline__ float f_##name(float x, float alpha, float beta) {                                      \
        (void)alpha, (void)beta;                                                                                       \
        return expression;                                                                                             \
    }
#define CHAIN_TWO(name, expression)                                                                                    \
    __device__ __forceinline__ float f_##name(float x, float y, float alpha, float beta) {                             \
        (void)alpha, (void)beta;                                                                                       \
        return expression;                                                                                             \
    }
#define CHAIN_TEST(name, expression)                                                                                   \
    __device__ __forceinline__ bool f_##name(float x, float y, float, float) { return expression; }

CHAIN_ONE(abs, fabsf(x))
CHAIN_ONE(neg, -x)
CHAIN_ONE(relu, fmaxf(x, 0.0f))
CHAIN_ONE(relu6, fminf(fmaxf(x, 0.0f), 6.0f))
CHAIN_ONE(squared_relu, fmaxf(x, 0.0f) * fmaxf(x, 0.0f))
CHAIN_ONE(sign, (x > 0 ? 1.0f : 0.0f) - (x < 0 ? 1.0f : 0.0f))
CHAIN_ONE(clip, fminf(fmaxf(x, alpha), beta))
CHAIN_ONE(ceil, ceilf(x))
CHAIN_ONE(floor, floorf(x))
CHAIN_ONE(round, rintf(x))
CHAIN_ONE(sqrt, sqrtf(x))
CHAIN_ONE(reciprocal, 1.0f / x)
CHAIN_ONE(exp, expf(x))
CHAIN_ONE(log, logf(x))
CHAIN_ONE(sin, sinf(x))
CHAIN_ONE(cos, cosf(x))
CHAIN_ONE(tanh, tanhf(x))
CHAIN_ONE(erf, erff(x))
CHAIN_ONE(sigmoid, operators::sigmoid(x))
CHAIN_ONE(silu, operators::swish(x, 1.0f))
CHAIN_ONE(quickgelu, operators::swish(x, alpha))
CHAIN_ONE(swish, operators::swish(x, alpha))
CHAIN_ONE(gelu, operators::gelu(x))
CHAIN_ONE(gelu_tanh, operators::gelu_tanh(x))
CHAIN_ONE(mish, operators::mish(x))
CHAIN_ONE(softplus, operators::softplus(x))
CHAIN_ONE(softsign, x / (1.0f + fabsf(x)))
CHAIN_ONE(elu, x > 0 ? x : alpha * operators::minus_one(x))
CHAIN_ONE(celu, x > 0 ? x : alpha * (__expf(x / alpha) - 1.0f))
CHAIN_ONE(selu, beta *(x > 0 ? x : alpha * operators::minus_one(x)))
CHAIN_ONE(leakyrelu, x > 0 ? x : alpha * x)
CHAIN_ONE(thresholdedrelu, x > alpha ? x : 0.0f)
CHAIN_ONE(hardsigmoid, fminf(fmaxf(fmaf(alpha, x, beta), 0.0f), 1.0f))
CHAIN_ONE(hardswish, x *fminf(fmaxf(fmaf(x, 1.0f / 6, 0.5f), 0.0f), 1.0f))
CHAIN_ONE(tan, operators::tangent(x))
CHAIN_ONE(acos, acosf(x))
CHAIN_ONE(asin, asinf(x))
CHAIN_ONE(atan, atanf(x))
CHAIN_ONE(sinh, operators::hyperbolic_sine(x))
CHAIN_ONE(cosh, coshf(x))
CHAIN_ONE(acosh, operators::arcosh(x))
CHAIN_ONE(asinh, asinhf(x))
CHAIN_ONE(atanh, atanhf(x))
CHAIN_ONE(shrink, operators::shrink(x, alpha, beta))
CHAIN_TWO(mod, operators::modulo(x, y, alpha))
CHAIN_TWO(add, x + y)
CHAIN_TWO(sub, x - y)
CHAIN_TWO(mul, x *y)
CHAIN_TWO(div, x / y)
CHAIN_TWO(prelu, x > 0 ? x : x * y)
CHAIN_TWO(min, fminf(x, y))
CHAIN_TWO(max, fmaxf(x, y))
CHAIN_TWO(sum, x + y)
CHAIN_TWO(swiglu, operators::swish(x, 1.0f) * y)
CHAIN_TWO(geglu, operators::gelu(x) * y)
CHAIN_TWO(geglu_tanh, operators::gelu_tanh(x) * y)
CHAIN_TWO(quick_geglu, operators::swish(x, alpha) * y)
CHAIN_TWO(reglu, fmaxf(x, 0.0f) * y)
CHAIN_TWO(biasgelu, operators::gelu(x + y))
CHAIN_TWO(fastgelu, operators::gelu_tanh(x + y))
CHAIN_TEST(equal, x == y)
CHAIN_TEST(less, x < y)
CHAIN_TEST(lessorequal, x <= y)
CHAIN_TEST(greater, x > y)
CHAIN_TEST(greaterorequal, x >= y)

__device__ __forceinline__ bool f_isnan(float x, float, float) { return x != x; }
__device__ __forceinline__ bool f_isinf(float x, float alpha, float beta) {
    return fabsf(x) == __int_as_float(0x7f800000) && (x < 0 ? alpha : beta) != 0;
}
__device__ __forceinline__ float f_biasadd(float x, float y, float z, float, float) { return x + y + z; }
__device__ __forceinline__ float f_pow(float x, float y, float, float) { return powf(x, y); }

/* A known exponent is a constant here, so only one of these is left. */
__device__ __forceinline__ float f_pow(float x, float alpha, float) {
    if (alpha == 2.0f) return x * x;
    if (alpha == 3.0f) return x * x * x;
    if (alpha == 0.5f) return sqrtf(x);
    return powf(x, alpha);
}

__device__ __forceinline__ bool b_not(bool x, i64, i64) { return !x; }
__device__ __forceinline__ bool b_and(bool x, bool y, i64, i64) { return x && y; }
__device__ __forceinline__ bool b_or(bool x, bool y, i64, i64) { return x || y; }
__device__ __forceinline__ bool b_xor(bool x, bool y, i64, i64) { return x != y; }
__device__ __forceinline__ bool b_equal(bool x, bool y, i64, i64) { return x == y; }

/* C: int for narrow types, narrowed again by the generated code, or long long. */
#define CHAIN_WHOLE(name, expression)                                                                                  \
    template <class C> __device__ __forceinline__ C i_##name(C x, i64 alpha, i64 beta) {                               \
        (void)alpha, (void)beta;                                                                                       \
        return expression;                                                                                             \
    }
#define CHAIN_WHOLES(name, result, expression)                                                                         \
    template <class C> __device__ __forceinline__ result i_##name(C x, C y, i64 alpha, i64) {                          \
        (void)alpha;                                                                                                   \
        return expression;                                                                                             \
    }

CHAIN_WHOLE(abs, x < 0 ? operators::minus((C)0, x) : x)
CHAIN_WHOLE(neg, operators::minus((C)0, x))
CHAIN_WHOLE(relu, x > 0 ? x : (C)0)
CHAIN_WHOLE(sign, (C)((x > 0) - (x < 0)))
CHAIN_WHOLE(clip, (C)((i64)x<alpha ? alpha : (i64)x> beta ? beta : (i64)x))
CHAIN_WHOLES(add, C, operators::plus(x, y))
CHAIN_WHOLES(sub, C, operators::minus(x, y))
CHAIN_WHOLES(mul, C, operators::times(x, y))
CHAIN_WHOLES(div, C, operators::quotient(x, y))
CHAIN_WHOLES(min, C, y < x ? y : x)
CHAIN_WHOLES(max, C, y > x ? y : x)
CHAIN_WHOLES(mod, C, operators::remainder_of(x, y, alpha != 0))
CHAIN_WHOLES(pow, C, (C)operators::whole_power(x, y))
CHAIN_WHOLE(pow, (C)operators::whole_power(x, alpha))
CHAIN_WHOLE(bitwisenot, ~x)
CHAIN_WHOLES(bitwiseand, C, x &y)
CHAIN_WHOLES(bitwiseor, C, x | y)
CHAIN_WHOLES(bitwisexor, C, x ^ y)
CHAIN_WHOLES(bitshift, C, (C)operators::shifted(x, y, alpha != 0))
CHAIN_WHOLES(equal, bool, x == y)
CHAIN_WHOLES(less, bool, x < y)
CHAIN_WHOLES(lessorequal, bool, x <= y)
CHAIN_WHOLES(greater, bool, x > y)
CHAIN_WHOLES(greaterorequal, bool, x >= y)

} // namespace chain

#endif
