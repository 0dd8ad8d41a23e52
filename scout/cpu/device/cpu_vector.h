/* Vector code whatever the mode of the build: a body is compiled once for every width that the CPU may have. */
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#define FAST      __attribute__((optimize("O3", "no-math-errno", "no-trapping-math")))
#define FAST_BODY static inline __attribute__((always_inline, optimize("O3", "no-math-errno", "no-trapping-math")))
#else
#define FAST
#define FAST_BODY static inline __attribute__((always_inline))
#endif
#if defined(__x86_64__)
#define WIDE_AVX2   __attribute__((target("avx2,fma")))
#define WIDE_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#else
#define WIDE_AVX2
#define WIDE_AVX512
#endif
