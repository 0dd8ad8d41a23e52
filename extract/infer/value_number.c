/* Rounding and wrapping per element type. Sizes in real models pass through fp32 and fp16 arithmetic before they are
 * cast back to integers, so a value must be exactly what a runtime would have at each step. */
#include "extract/infer/value_index.h"

#include "common/checked.h"

#include <math.h>

bool value_number_tracked(dtype t) {
    const dtype_info *d = dtype_get(t);
    return d->cls == DTYPE_CLASS_INT || t == DTYPE_FP32 || t == DTYPE_FP64 || t == DTYPE_FP16 || t == DTYPE_BF16;
}

/* Nearest number with `bits` significant bits and no exponent below `least`, ties to even; infinite above `most`. */
static double round_bits(double x, int bits, int least, double most) {
    if (x == 0 || !isfinite(x)) return x;
    int exponent;
    frexp(x, &exponent);
    if (exponent < least) exponent = least;
    double unit = ldexp(1.0, exponent - bits);
    double r = rint(x / unit) * unit;
    return fabs(r) > most ? copysign(INFINITY, r) : r;
}

double value_number_round(dtype t, double x) {
    switch (t) {
    case DTYPE_FP32:
        /* A double beyond the range of float would be undefined to convert. */
        return round_bits(x, 24, -125, 3.4028234663852886e38);
    case DTYPE_FP16: return round_bits(x, 11, -13, 65504);
    case DTYPE_BF16: return round_bits(x, 8, -125, 3.3895313892515355e38);
    default: return x;
    }
}

int64_t value_number_wrap(dtype t, int64_t x) {
    const dtype_info *d = dtype_get(t);
    if (t == DTYPE_BOOL) return x != 0;
    if (d->bits <= 0 || d->bits >= 64) return x;
    uint64_t mask = ((uint64_t)1 << d->bits) - 1;
    uint64_t low = (uint64_t)x & mask;
    bool negative = d->is_signed && (low >> (d->bits - 1)) != 0;
    return negative ? (int64_t)low - (int64_t)mask - 1 : (int64_t)low;
}

static int64_t to_integer(double x, dtype to) {
    if (to == DTYPE_BOOL) return x != 0; /* not-a-number is true */
    return value_number_wrap(to, checked_from_double(x));
}

static double to_floating(int64_t x, dtype from, dtype to) {
    /* Straight to the target: going through double first could round twice. */
    if (from == DTYPE_UINT64) {
        uint64_t u = (uint64_t)x;
        return to == DTYPE_FP32 ? (double)(float)u : value_number_round(to, (double)u);
    }
    return to == DTYPE_FP32 ? (double)(float)x : value_number_round(to, (double)x);
}

const value *value_number_cast(arena *a, const value *v, dtype from, dtype to) {
    if (!v || !value_number_tracked(to)) return NULL;
    bool integer = dtype_get(to)->cls == DTYPE_CLASS_INT;
    if (from == to) return v;
    value *r = arena_zalloc(a, sizeof *r);
    r->n = v->n;
    if (integer) {
        int64_t *x = arena_array(a, int64_t, v->n);
        for (int64_t k = 0; k < v->n; k++) x[k] = v->i ? value_number_wrap(to, v->i[k]) : to_integer(v->f[k], to);
        r->i = x;
    } else {
        double *x = arena_array(a, double, v->n);
        for (int64_t k = 0; k < v->n; k++)
            x[k] = v->i ? to_floating(v->i[k], from, to) : value_number_round(to, v->f[k]);
        r->f = x;
    }
    return r;
}
