/* Determinants and inverses of small matrices on the CPU device: against the reference in every size, the reference
 * against values by hand, and what is refused. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#define DET     "{\"op\": \"reduce\", \"what\": \"det\", "
#define INVERSE "{\"op\": \"reduce\", \"what\": \"inverse\", "

static void every_size(void) {
    static const int sizes[] = {1, 2, 3, 4, 7, 16, 33, 64};
    for (int k = 0; k < 8 * 2; k++) {
        const char *const type = k % 2 ? "fp64" : "fp32";
        const int n = sizes[k / 2], before = cpu_built_failures;
        char text[300];
        snprintf(text, sizeof text, DET "\"shape\": [3, 7], \"input\": [3, 7, %d, %d], \"dtype\": \"%s\"}", n, n, type);
        cpu_built_check(text, 1);
        snprintf(text, sizeof text, INVERSE "\"shape\": [21, %d, %d], \"input\": [21, %d, %d], \"dtype\": \"%s\"}", n,
                 n, n, n, type);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

static void expect(const char *text, const double *x, const double *y, int count) {
    cpu_built b;
    cpu_built_make(&b, text, 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    for (int k = 0; k < 9; k++) cpu_built_put(&b, "x", k, x[k]);
    for (int k = 0; k < count; k++) cpu_built_put(&b, "y", k, y[k]);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", count - 1, y[count - 1] + 0.01);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

/* A turn of the axes and another matrix, whose pivots lie in an odd and in an even order. */
static void values_by_hand(void) {
    static const double turn[] = {0, 2, 0, 0, 0, 4, 8, 0, 0}, back[] = {0, 0, 0.125, 0.5, 0, 0, 0, 0.25, 0};
    static const double swap[] = {0, 2, 0, 4, 0, 0, 0, 0, 8}, again[] = {0, 0.25, 0, 0.5, 0, 0, 0, 0, 0.125};
    static const double plain[] = {2, 1, 1, 1, 3, 2, 1, 0, 0}, other[] = {0, 0, 1, -2, 1, 3, 3, -1, -5};
    const char *const inverse = INVERSE "\"shape\": [3, 3], \"input\": [3, 3]}";
    const char *const det = DET "\"shape\": [1], \"input\": [1, 3, 3]}";
    expect(inverse, turn, back, 9), expect(det, turn, (const double[]){64}, 1);
    expect(inverse, swap, again, 9), expect(det, swap, (const double[]){-64}, 1);
    expect(inverse, plain, other, 9), expect(det, plain, (const double[]){-1}, 1);
}

static void what_does_not_fit_is_refused(void) {
    static const char *const rows[][2] = {{DET "\"shape\": [2], \"input\": [2, 3, 4]}", "shape"},
                                          {DET "\"shape\": [3], \"input\": [2, 3, 3]}", "shape"},
                                          {DET "\"shape\": [2], \"input\": [2, 65, 65]}", "shape"},
                                          {DET "\"shape\": [2], \"input\": [2, 3, 3], \"dtype\": \"int32\"}", "type"},
                                          {INVERSE "\"shape\": [2, 3], \"input\": [2, 3]}", "shape"},
                                          {INVERSE "\"shape\": [3], \"input\": [3]}", "shape"}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) cpu_built_refused(rows[k][0], rows[k][1]);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(every_size);
    UNIT_RUN(values_by_hand);
    UNIT_RUN(what_does_not_fit_is_refused);
    cpu_built_close();
    return unit_end();
}
