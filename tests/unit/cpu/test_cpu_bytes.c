/* Products of int8 and uint8 in any mixture on the CPU device, with zero points and scales that come when they run, and
 * between DequantizeLinear and QuantizeLinear: every candidate against the reference, the reference against values
 * written by hand, and what knows no zero points refuses them. */
#include "scout/op/gemm.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

static void check(const char *text) {
    const int before = cpu_built_failures;
    cpu_built_check(text, 1);
    if (!UNIT_INT(cpu_built_failures, before)) printf("%s\n", text);
}

static const char *const bytes[] = {"int8", "uint8"}, *const layouts[] = {"nn", "nt", "tn", "tt"},
                         *const shapes[] = {"[1, 1, 1]", "[7, 33, 129]", "[97, 150, 64]", "[130, 31, 515]"};

static void sums_in_every_mixture(void) {
    static const char *const zeros[] = {"", ", \"a_zero\": 1", ", \"b_zero\": \"one\"",
                                        ", \"a_zero\": 1, \"b_zero\": \"channel\""};
    for (int k = 0; k < 4 * 4 * 4; k++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"op\": \"gemm\", \"shape\": %s, \"layout\": \"%s\", \"dtype\": \"%s\", \"weight_dtype\": \"%s\", "
                 "\"out_dtype\": \"int32\", \"weight_side\": \"b\"%s}",
                 shapes[k / 16], layouts[k / 4 % 4], bytes[k % 2], bytes[k / 2 % 2], zeros[(k + k / 16) % 4]);
        check(text);
    }
}

static void sums_that_are_scaled(void) {
    static const char *const outs[] = {"fp32", "fp16"},
                             *const more[] = {
                                 "", ", \"a_zero\": 1, \"bias\": \"n\"",
                                 ", \"a_zero\": 1, \"b_zero\": \"channel\", \"weight_scales\": \"channel\"",
                                 ", \"b_zero\": \"one\", \"weight_scales\": \"channel\", \"bias\": \"n\""};
    for (int k = 0; k < 4 * 4 * 2; k++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"op\": \"gemm\", \"shape\": %s, \"layout\": \"%s\", \"dtype\": \"%s\", \"weight_dtype\": \"%s\", "
                 "\"out_dtype\": \"%s\", \"weight_side\": \"b\", \"quant\": \"dynamic\"%s}",
                 shapes[k / 8], layouts[k % 4], bytes[k % 2], bytes[k / 2 % 2], outs[k / 4 % 2], more[(k + k / 8) % 4]);
        check(text);
    }
}

/* Both sides are activations: attention that was quantised. */
static void batches(void) {
    check("{\"op\": \"gemm\", \"shape\": [17, 33, 64], \"batch\": 3, \"dtype\": \"uint8\", \"out_dtype\": \"int32\", "
          "\"a_zero\": 1, \"b_zero\": \"one\"}");
    check("{\"op\": \"gemm\", \"shape\": [17, 33, 64], \"batch\": 3, \"dtype\": \"uint8\", \"out_dtype\": \"fp32\", "
          "\"a_zero\": 1, \"b_zero\": \"one\", \"quant\": \"dynamic\"}");
    check("{\"op\": \"gemm\", \"shape\": [17, 33, 64], \"batch\": 3, \"batch_stride_b\": 0, \"dtype\": \"int8\", "
          "\"out_dtype\": \"fp32\", \"quant\": \"dynamic\"}");
    check("{\"op\": \"gemm\", \"shape\": [17, 33, 64], \"batch\": 2, \"dtype\": \"uint8\", \"out_dtype\": \"uint8\", "
          "\"quant\": \"qdq\"}");
}

static void weights_without_sign_between_quantisers(void) {
    static const char *const outs[] = {"int8", "uint8", "fp32", "fp16"},
                             *const behind[] = {"", ", \"bias\": \"n\"", ", \"bias\": \"n\", \"activation\": \"relu\"",
                                                ", \"activation\": \"relu6\""};
    for (int k = 0; k < 4 * 4; k++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "{\"op\": \"gemm\", \"shape\": %s, \"layout\": \"%s\", \"dtype\": \"%s\", \"weight_dtype\": \"uint8\", "
            "\"out_dtype\": \"%s\", \"weight_side\": \"b\", \"quant\": \"qdq\"%s}",
            shapes[1 + k % 3], layouts[k / 4], bytes[k % 2], outs[k % 4], behind[k / 4]);
        check(text);
    }
}

/* 2 x 2 x 3, by hand: (a - 3)(b - column's zero) times its scale, and the bias. */
static void the_reference_by_hand(void) {
    static const double a[] = {4, 5, 1, 0, 3, 255}, b[] = {1, -1, 2, 5, -128, 7},
                        want[] = {132.5, -9.75, -16251.5, 123.25};
    cpu_built x;
    cpu_built_make(&x,
                   "{\"op\": \"gemm\", \"shape\": [2, 2, 3], \"dtype\": \"uint8\", \"weight_dtype\": \"int8\", "
                   "\"out_dtype\": \"fp32\", \"weight_side\": \"b\", \"quant\": \"dynamic\", \"a_zero\": 1, "
                   "\"b_zero\": \"channel\", \"weight_scales\": \"channel\", \"bias\": \"n\"}",
                   1 << 20);
    if (!UNIT_CHECK(x.built)) return;
    cpu_built_fill(&x, 3);
    for (int k = 0; k < 6; k++) cpu_built_put(&x, "a", k, a[k]), cpu_built_put(&x, "b", k, b[k]);
    cpu_built_put(&x, "a_zero", 0, 3);
    cpu_built_put(&x, "b_zero", 0, 1), cpu_built_put(&x, "b_zero", 1, 5);
    cpu_built_put(&x, "scales", 0, 0.5), cpu_built_put(&x, "scales", 1, 0.25);
    cpu_built_put(&x, "bias", 0, 2.5), cpu_built_put(&x, "bias", 1, -7.25);
    for (int k = 0; k < 4; k++) cpu_built_put(&x, "c", k, want[k]);
    UNIT_CHECK(cpu_built_accepts(&x));
    for (int k = 0; k < 4; k++) {
        cpu_built_put(&x, "c", k, want[k] + 0.25);
        UNIT_CHECK(!cpu_built_accepts(&x));
        cpu_built_put(&x, "c", k, want[k]);
    }
    cpu_built_end(&x);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(sums_in_every_mixture);
    UNIT_RUN(sums_that_are_scaled);
    UNIT_RUN(batches);
    UNIT_RUN(weights_without_sign_between_quantisers);
    UNIT_RUN(the_reference_by_hand);
    cpu_built_close();
    return unit_end();
}
