/* Exact fractions of 64-bit numbers for the dimensions that follow from others. All: false where the result does not
 * exist or does not fit; x may be an operand. */
#ifndef EXTRACT_READ_BIND_FRACTION_H
#define EXTRACT_READ_BIND_FRACTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fraction {
    int64_t n, d; /* n/d in lowest terms, d positive */
} fraction;

bool fraction_add(fraction a, fraction b, fraction *x);
bool fraction_subtract(fraction a, fraction b, fraction *x);
bool fraction_multiply(fraction a, fraction b, fraction *x);
bool fraction_divide(fraction a, fraction b, fraction *x);
bool fraction_floor(fraction a, fraction *x);
bool fraction_ceil(fraction a, fraction *x);
bool fraction_floor_divide(fraction a, fraction b, fraction *x);
bool fraction_mod(fraction a, fraction b, fraction *x);   /* has the sign of b */
bool fraction_power(fraction a, fraction b, fraction *x); /* b: a whole number, not negative */
bool fraction_max(fraction a, fraction b, fraction *x);
bool fraction_min(fraction a, fraction b, fraction *x);

#endif
