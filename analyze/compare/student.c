/* Owns the tails of Student's t: a comparison of hundreds of operations asks for quantiles of one in a million, where a
 * table of 95 % says nothing. */
#include "analyze/compare/student.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* The continued fraction of the incomplete beta function (Lentz's way), for x below (a + 1) / (a + b + 2). */
static double fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int k = 1; k <= 500; k++) {
        const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        const double steps[] = {even, odd};
        double change = 1;
        for (int s = 0; s < 2; s++) {
            d = 1 + steps[s] * d;
            c = 1 + steps[s] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < 1e-14) break;
    }
    return value;
}

/* Regularised incomplete beta function. */
static double beta_part(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
}

double student_tail(double t, double degrees) {
    if (isinf(degrees)) return erfc(t / sqrt(2)) / 2;
    const double part = beta_part(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
    return t >= 0 ? part : 1 - part;
}

double student_quantile(double tail, double degrees) {
    double low = 0, high = 1;
    while (student_tail(high, degrees) > tail && high < 1e12) high *= 2;
    for (int k = 0; k < 60; k++) {
        const double middle = (low + high) / 2;
        *(student_tail(middle, degrees) > tail ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

double student_log_density(double t, double degrees) {
    if (isinf(degrees)) return -t * t / 2 - log(2 * pi) / 2;
    return lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - log(degrees * pi) / 2 -
           (degrees + 1) / 2 * log1p(t * t / degrees);
}
