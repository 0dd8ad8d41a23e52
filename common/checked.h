/* Arithmetic on numbers that come from a file: saturates instead of overflowing, so that a nonsense dimension stays a
 * huge number that a later bound refuses. */
#pragma once

#include <stdint.h>

static inline int64_t checked_add(int64_t a, int64_t b) {
    int64_t r;
    if (!__builtin_add_overflow(a, b, &r)) return r;
    return a > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t checked_sub(int64_t a, int64_t b) {
    int64_t r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    return a >= 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t checked_mul(int64_t a, int64_t b) {
    int64_t r;
    if (!__builtin_mul_overflow(a, b, &r)) return r;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

/* Truncating division and remainder; b must not be 0. INT64_MIN / -1 saturates. */
static inline int64_t checked_div(int64_t a, int64_t b) { return b == -1 ? checked_sub(0, a) : a / b; }
static inline int64_t checked_rem(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

/* Smallest integer not below a / b; b > 0. */
static inline int64_t checked_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/* A double as an integer; not-a-number is 0, what does not fit saturates. */
static inline int64_t checked_from_double(double x) {
    if (!(x == x)) return 0;
    if (x >= 9223372036854775807.0) return INT64_MAX;
    if (x <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)x;
}
