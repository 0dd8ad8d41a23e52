/* Rows in vector form, at every width that this processor has: exponentials against those of the C library over their
 * whole range, the rest against plain loops. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/kernels/cpu_rows.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdint.h>

enum { MOST = 5000 };

static const int64_t counts[] = {1, 7, 15, 16, 17, 63, 64, 65, 127, 129, 511, 513, 1000, 4095, 4097, MOST};
static float x[MOST + 1], other[MOST + 1], y[MOST + 1];

static void fill(void) {
    uint32_t state = 7;
    for (int k = 0; k <= MOST; k++) {
        state = state * 1664525u + 1013904223u;
        x[k] = (float)((double)(state >> 8) * 0x1p-22 - 2);
        state = state * 1664525u + 1013904223u;
        other[k] = (float)((double)(state >> 8) * 0x1p-22 - 2);
    }
}

static double ulp_of(float want) {
    const float size = fabsf(want);
    return (double)nextafterf(size, INFINITY) - (double)size;
}

/* From where results vanish to where they overflow, in steps of about 1e-5 of the argument. */
static void exponentials_are_within_2_ulp(void) {
    for (int at = 0; cpu_rows_at(at); at++) {
        const cpu_rows *v = cpu_rows_at(at);
        double worst = 0;
        int compared = 0;
        for (uint32_t bits = 0x2f000000u; bits < 0x42d10000u; bits += 97 * 64) {
            int count = 0;
            for (uint32_t b = bits; count < 64; b += 97, count++) memcpy(&x[count], &b, sizeof b);
            for (int sign = 0; sign < 2; sign++) {
                (void)v->exponentials(x, count, 0, y);
                for (int k = 0; k < count; k++) {
                    const double exact = exp((double)x[k]);
                    if (exact >= 0x1.fffffep127) continue;
                    worst = fmax(worst, fabs((double)y[k] - exact) / ulp_of((float)exact));
                    compared++;
                }
                for (int k = 0; k < count; k++) x[k] = -x[k];
            }
        }
        printf("  %s: %.3f ulp at worst of %d\n", v->name, worst, compared);
        UNIT_CHECK(worst <= 2 && compared > 1000000);
    }
}

static void exponentials_at_the_ends(void) {
    static const float in[] = {0, -0.0f, 88.73f, 200, 3e38f, INFINITY, -104.1f, -200, -3e38f, -INFINITY, NAN};
    for (int at = 0; cpu_rows_at(at); at++) {
        (void)cpu_rows_at(at)->exponentials(in, 11, 0, y);
        UNIT_CHECK(y[0] == 1 && y[1] == 1);
        for (int k = 2; k < 6; k++) UNIT_CHECK(isinf(y[k]) && y[k] > 0);
        for (int k = 6; k < 10; k++) UNIT_CHECK(y[k] == 0);
        UNIT_CHECK(isnan(y[10]));
    }
}

static bool near(double got, double want, double size) { return fabs(got - want) <= 0x1p-20 * (fabs(want) + size); }

static void sums_of_any_length(void) {
    fill();
    for (int at = 0; cpu_rows_at(at); at++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const cpu_rows *v = cpu_rows_at(at);
            double sum = 0, squares = 0, magnitudes = 0, exponentials = 0;
            float largest = -INFINITY;
            for (int64_t k = 0; k < counts[c]; k++) {
                const double e = (double)x[k + 1] - 0.25;
                sum += (double)x[k + 1], magnitudes += fabs((double)x[k + 1]), squares += e * e, exponentials += exp(e);
                largest = fmaxf(largest, x[k + 1]);
            }
            UNIT_CHECK(near(v->sum(x + 1, counts[c]), sum, magnitudes));
            UNIT_CHECK(near(v->squares(x + 1, counts[c], 0.25f), squares, 0));
            UNIT_CHECK(near(v->magnitudes(x + 1, counts[c]), magnitudes, 0));
            UNIT_CHECK(v->largest(x + 1, counts[c]) == largest);
            UNIT_CHECK(near(v->exponentials(x + 1, counts[c], 0.25f, y), exponentials, 0));
        }
}

/* The largest one is found wherever it stands. */
static void the_largest_anywhere(void) {
    for (int at = 0; cpu_rows_at(at); at++)
        for (int k = 0; k < 200; k++) {
            fill();
            x[k] = 9;
            UNIT_CHECK(cpu_rows_at(at)->largest(x, 200) == 9);
            for (int i = 0; i < 200; i++) x[i] = i == k ? -7.0f : -8.0f;
            UNIT_CHECK(cpu_rows_at(at)->largest(x, 200) == -7);
        }
}

static void elementwise_also_in_place(void) {
    for (int at = 0; cpu_rows_at(at); at++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
            for (int place = 0; place < 2; place++) {
                const cpu_rows *v = cpu_rows_at(at);
                const int64_t n = counts[c];
                float *to = place ? x : y;
                fill();
                y[n] = x[n];
                const float end = x[n], last = x[n - 1], side = other[n - 1];
                v->affine(x, n, 0.5f, 3, 1, to);
                UNIT_CHECK(near((double)to[n - 1], ((double)last - 0.5) * 3 + 1, 4));
                fill();
                v->scaled(x, n, 0.5f, 3, other, other, to);
                UNIT_CHECK(near((double)to[n - 1], ((double)last - 0.5) * 3 * (double)side + (double)side, 4));
                fill();
                v->scaled(x, n, 0.5f, 3, NULL, other, to);
                UNIT_CHECK(near((double)to[n - 1], ((double)last - 0.5) * 3 + (double)side, 4));
                fill();
                v->add(x, other, n, to);
                UNIT_CHECK(to[n - 1] == last + side);
                fill();
                v->silu(x, n, to);
                UNIT_CHECK(near((double)to[n - 1], (double)last / (1 + exp(-(double)last)), 0));
                fill();
                v->relu(x, n, to);
                UNIT_CHECK(to[n - 1] == fmaxf(last, 0));
                UNIT_CHECK(to[n] == end);
            }
}

static void types_are_loaded_and_stored(void) {
    static const uint32_t types[] = {SCOUT_FP32, SCOUT_FP16, SCOUT_BF16};
    static uint8_t stored[4 * MOST + 8];
    for (int at = 0; cpu_rows_at(at); at++)
        for (size_t t = 0; t < 3; t++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                const size_t bytes = (size_t)cpu_number_bits(types[t]) / 8;
                fill();
                x[0] = 65519.9f, x[counts[c] / 2] = 3e-6f; /* largest and subnormal in fp16 */
                memset(stored, 0xA5, sizeof stored);
                cpu_rows_at(at)->store(types[t], x, counts[c], stored);
                UNIT_CHECK(stored[(size_t)counts[c] * bytes] == 0xA5);
                cpu_rows_at(at)->load(types[t], stored, counts[c], y);
                for (int64_t k = 0; k < counts[c]; k++) {
                    double want;
                    uint32_t one = 0;
                    cpu_number_store(types[t], &one, 0, (double)x[k]);
                    cpu_number_load(types[t], &one, 0, 1, 1, &want);
                    UNIT_CHECK((double)y[k] == want);
                }
            }
}

int main(void) {
    UNIT_RUN(exponentials_are_within_2_ulp);
    UNIT_RUN(exponentials_at_the_ends);
    UNIT_RUN(sums_of_any_length);
    UNIT_RUN(the_largest_anywhere);
    UNIT_RUN(elementwise_also_in_place);
    UNIT_RUN(types_are_loaded_and_stored);
    return unit_end();
}
