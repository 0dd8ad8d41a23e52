/* Owns exact fractions: always in lowest terms, so that they fit as long as possible. */
#include "extract/read/bind_fraction.h"

static uint64_t magnitude(int64_t x) { return x < 0 ? -(uint64_t)x : (uint64_t)x; }

/* Of numbers of which one is a denominator: fits, and is not 0. */
static int64_t common(int64_t a, int64_t denominator) {
    uint64_t x = magnitude(a), y = (uint64_t)denominator;
    while (x) {
        const uint64_t rest = y % x;
        y = x;
        x = rest;
    }
    return (int64_t)y;
}

static fraction lowest(fraction x) {
    const int64_t g = common(x.n, x.d);
    return (fraction){x.n / g, x.d / g};
}

bool fraction_add(fraction a, fraction b, fraction *x) {
    const int64_t g = common(a.d, b.d);
    int64_t p, q;
    if (__builtin_mul_overflow(a.n, b.d / g, &p) || __builtin_mul_overflow(b.n, a.d / g, &q)) return false;
    if (__builtin_add_overflow(p, q, &p) || __builtin_mul_overflow(a.d, b.d / g, &q)) return false;
    *x = lowest((fraction){p, q});
    return true;
}

bool fraction_subtract(fraction a, fraction b, fraction *x) {
    if (b.n == INT64_MIN) return false;
    return fraction_add(a, (fraction){-b.n, b.d}, x);
}

bool fraction_multiply(fraction a, fraction b, fraction *x) {
    const int64_t g = common(a.n, b.d), h = common(b.n, a.d);
    fraction y;
    if (__builtin_mul_overflow(a.n / g, b.n / h, &y.n) || __builtin_mul_overflow(a.d / h, b.d / g, &y.d)) return false;
    *x = y;
    return true;
}

bool fraction_divide(fraction a, fraction b, fraction *x) {
    if (b.n == 0 || b.n == INT64_MIN) return false;
    return fraction_multiply(a, b.n < 0 ? (fraction){-b.d, -b.n} : (fraction){b.d, b.n}, x);
}

bool fraction_floor(fraction a, fraction *x) {
    *x = (fraction){a.n / a.d - (a.n % a.d < 0), 1};
    return true;
}

bool fraction_ceil(fraction a, fraction *x) {
    *x = (fraction){a.n / a.d + (a.n % a.d > 0), 1};
    return true;
}

bool fraction_floor_divide(fraction a, fraction b, fraction *x) {
    fraction y;
    return fraction_divide(a, b, &y) && fraction_floor(y, x);
}

bool fraction_mod(fraction a, fraction b, fraction *x) {
    fraction y;
    return fraction_floor_divide(a, b, &y) && fraction_multiply(y, b, &y) && fraction_subtract(a, y, x);
}

bool fraction_power(fraction a, fraction b, fraction *x) {
    fraction y = {1, 1};
    if (b.d != 1 || b.n < 0) return false;
    for (int64_t left = b.n; left > 0; left >>= 1) {
        if ((left & 1) && !fraction_multiply(y, a, &y)) return false;
        if (left > 1 && !fraction_multiply(a, a, &a)) return false;
    }
    *x = y;
    return true;
}

static bool is_less(fraction a, fraction b, bool *possible) {
    fraction y = {0, 1};
    *possible = fraction_subtract(a, b, &y);
    return y.n < 0;
}

bool fraction_max(fraction a, fraction b, fraction *x) {
    bool possible;
    *x = is_less(a, b, &possible) ? b : a;
    return possible;
}

bool fraction_min(fraction a, fraction b, fraction *x) {
    bool possible;
    *x = is_less(a, b, &possible) ? a : b;
    return possible;
}
