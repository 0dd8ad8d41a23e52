/* Interpolation on the CPU device: against the reference in every way and type, the reference against values of the
 * ONNX specification, and what is refused. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <string.h>

#define RESIZE "{\"op\": \"pool\", \"what\": \"resize\", "

static void every_way_and_type(void) {
    static const char *const shapes[] = {
        "\"shape\": [2, 3, 14, 21], \"input\": [2, 3, 7, 9]", "\"shape\": [1, 65, 5, 3], \"input\": [1, 65, 12, 8]",
        "\"shape\": [1, 2, 6, 7, 9], \"input\": [1, 2, 3, 7, 4]",
        "\"shape\": [3, 10, 10, 17], \"input\": [3, 5, 5, 17]", "\"shape\": [40], \"input\": [1]"};
    static const char *const ways[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"};
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const types[] = {"fp32", "fp16", "bf16"};
    for (int k = 0; k < 5 * 4 * 3 * 3; k++) {
        char text[300];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text, RESIZE "%s, \"coordinates\": \"%s\", \"mode\": \"%s\", \"dtype\": \"%s\"}",
                 shapes[k / 36], ways[k / 9 % 4], modes[k / 3 % 3], types[k % 3]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

/* The input is 1, 2, 3, … */
static void expect(const char *text, int inputs, const double *want, int count) {
    cpu_built b;
    cpu_built_make(&b, text, 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    for (int k = 0; k < inputs; k++) cpu_built_put(&b, "input", k, k + 1);
    for (int k = 0; k < count; k++) cpu_built_put(&b, "output", k, want[k]);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "output", count - 1, want[count - 1] + 0.01);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void values_of_the_specification(void) {
    expect(RESIZE "\"shape\": [1, 1, 4, 4], \"input\": [1, 1, 2, 2], \"mode\": \"linear\"}", 4,
           (const double[]){1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}, 16);
    expect(RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"coordinates\": \"align_corners\"}", 2,
           (const double[]){1, 4.0 / 3, 5.0 / 3, 2}, 4);
    expect(RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"coordinates\": \"asymmetric\"}", 2,
           (const double[]){1, 1.5, 2, 2}, 4);
    expect(RESIZE "\"shape\": [1, 3], \"input\": [1, 6], \"mode\": \"nearest\"}", 6, (const double[]){1, 3, 5}, 3);
    expect(RESIZE "\"shape\": [1, 3], \"input\": [1, 6], \"mode\": \"nearest\", \"rounding\": \"ceil\"}", 6,
           (const double[]){2, 4, 6}, 3);
    expect(RESIZE "\"shape\": [1, 8], \"input\": [1, 4], \"mode\": \"cubic\"}", 4,
           (const double[]){0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375, 4.10546875},
           8);
    /* where nothing becomes smaller there is nothing to smooth */
    expect(RESIZE "\"shape\": [1, 3], \"input\": [1, 2], \"mode\": \"linear\", \"coordinates\": \"align_corners\", "
                  "\"antialias\": 1}",
           2, (const double[]){1, 1.5, 2}, 3);
    /* weights of the neighbours inside, over their sum */
    expect(RESIZE "\"shape\": [1, 8], \"input\": [1, 4], \"mode\": \"cubic\", \"exclude_outside\": 1}", 4,
           (const double[]){0.8636363636363636, 1.1731448763250882, 1.6452830188679246, 2.296875, 2.703125,
                            3.3547169811320754, 3.8268551236749118, 4.136363636363637},
           8);
}

/* As onnxruntime has them: places follow from the scales, and not from the lengths. */
static void scales_that_are_not_the_ratio_of_lengths(void) {
    expect(RESIZE "\"shape\": [1, 7], \"input\": [1, 5], \"mode\": \"linear\", \"scales\": \"1,1.5\"}", 5,
           (const double[]){1, 1.5, 13.0 / 6, 17.0 / 6, 3.5, 25.0 / 6, 29.0 / 6}, 7);
    expect(RESIZE "\"shape\": [1, 7], \"input\": [1, 5], \"mode\": \"nearest\", \"rounding\": \"floor\", "
                  "\"coordinates\": \"asymmetric\", \"scales\": \"1,1.5\"}",
           5, (const double[]){1, 1, 2, 3, 3, 4, 5}, 7);
    expect(RESIZE "\"shape\": [1, 3], \"input\": [1, 5], \"mode\": \"cubic\", \"scales\": \"1,0.75\"}", 5,
           (const double[]){1.126157522201538, 2.5, 3.7870378494262695}, 3);
    expect(RESIZE "\"shape\": [1, 5], \"input\": [1, 3], \"mode\": \"linear\", \"coordinates\": \"asymmetric\", "
                  "\"scales\": \"1,1.75\"}",
           3, (const double[]){1, 11.0 / 7, 15.0 / 7, 19.0 / 7, 3}, 5);
    expect(RESIZE "\"shape\": [1, 7], \"input\": [1, 5], \"mode\": \"linear\", \"coordinates\": \"align_corners\", "
                  "\"scales\": \"1,1.5\"}",
           5, (const double[]){1, 5.0 / 3, 7.0 / 3, 3, 11.0 / 3, 13.0 / 3, 5}, 7);
    /* no longer than before, and yet not the same places */
    expect(RESIZE "\"shape\": [1, 3], \"input\": [1, 3], \"mode\": \"linear\", \"coordinates\": \"asymmetric\", "
                  "\"scales\": \"1,1.25\"}",
           3, (const double[]){1, 1.8, 2.6}, 3);
}

static void scales_in_every_mode_and_type(void) {
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const types[] = {"fp32", "fp16", "bf16"};
    for (int k = 0; k < 3 * 3; k++) {
        char text[300];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text,
                 RESIZE "\"shape\": [2, 3, 14, 11], \"input\": [2, 3, 9, 11], \"scales\": \"1,1,1.6,1.05\", "
                        "\"mode\": \"%s\", \"dtype\": \"%s\"}",
                 modes[k / 3], types[k % 3]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

static void what_is_refused(void) {
    static const char *const rows[][2] = {
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 8], \"mode\": \"linear\", \"antialias\": 1}", "feature"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"scales\": \"1.9\"}", "feature"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"scales\": \"1,0\"}", "feature"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"scales\": \"1,1.4\"}", "feature"},
        {RESIZE "\"shape\": [1, 1, 1, 4], \"input\": [1, 1, 1, 2], \"scales\": \"1.5,1,1,2\"}", "feature"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"coordinates\": \"tf_crop_and_resize\"}", "feature"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2], \"mode\": \"linear\", \"dtype\": \"int8\"}", "type"},
        {RESIZE "\"shape\": [2, 4, 4, 4], \"input\": [1, 2, 2, 2], \"mode\": \"linear\"}", "shape"},
        {RESIZE "\"shape\": [1, 4], \"input\": [1, 2, 2], \"mode\": \"linear\"}", "shape"}};
    const int before = cpu_built_failures;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) cpu_built_refused(rows[k][0], rows[k][1]);
    UNIT_INT(cpu_built_failures, before);
}

static void too_little_memory_is_refused(void) {
    static const char *const text = RESIZE "\"shape\": [1, 1000], \"input\": [1, 2], \"mode\": \"linear\"}";
    cpu_built b;
    cpu_built_make(&b, text, 16);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    UNIT_INT(cpu_built_run(&b, text), 0);
    cpu_built_end(&b);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(every_way_and_type);
    UNIT_RUN(values_of_the_specification);
    UNIT_RUN(scales_that_are_not_the_ratio_of_lengths);
    UNIT_RUN(scales_in_every_mode_and_type);
    UNIT_RUN(what_is_refused);
    UNIT_RUN(too_little_memory_is_refused);
    cpu_built_close();
    return unit_end();
}
