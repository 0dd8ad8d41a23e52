/* Points and regions of images on the CPU device: the own loop against the reference in every way, the reference
 * against values of the specification, and what is refused. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#define GRID "{\"op\": \"pool\", \"what\": \"gridsample\", "
#define ROIS "{\"op\": \"pool\", \"what\": \"roi_align\", "

static void every_way_and_type(void) {
    static const char *const modes[] = {"linear", "nearest", "cubic"}, *const types[] = {"fp32", "fp16", "bf16"};
    static const char *const beyonds[] = {"zeros", "border", "reflection"};
    for (int k = 0; k < 3 * 3 * 2 * 3; k++) {
        char text[400];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text,
                 GRID
                 "\"shape\": [2, 67, 5, 9], \"input\": [2, 67, 13, 7], \"mode\": \"%s\", \"padding_mode\": \"%s\", "
                 "\"align_corners\": %d, \"dtype\": \"%s\"}",
                 modes[k % 3], beyonds[k / 3 % 3], k / 9 % 2, types[k / 18]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
    for (int k = 0; k < 2 * 2 * 2 * 3; k++) {
        char text[400];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text,
                 ROIS "\"shape\": [5, 65, 3, 4], \"input\": [2, 65, 9, 8], \"mode\": \"%s\", \"coordinates\": \"%s\", "
                      "\"sampling_ratio\": %d, \"spatial_scale\": 4.5, \"dtype\": \"%s\"}",
                 k % 2 ? "max" : "avg", k / 2 % 2 ? "half_pixel" : "output_half_pixel", k / 4 % 2 * 2, types[k / 8]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

static void put(cpu_built *b, const char *tensor, const double *x, int count) {
    for (int k = 0; k < count; k++) cpu_built_put(b, tensor, k, x[k]);
}

static void accepts(cpu_built *b, const double *want, int count) {
    put(b, "output", want, count);
    UNIT_CHECK(cpu_built_accepts(b));
    cpu_built_put(b, "output", count - 1, want[count - 1] + 0.01);
    UNIT_CHECK(!cpu_built_accepts(b));
    cpu_built_end(b);
}

/* The input of the specification's example: 0 to 5 in three rows of two. */
static void grid(const char *ways, const double *want) {
    static const double points[] = {-1, -1, -0.5, -0.5, -0.2, -0.2, 0, 0, 0, 0, -0.2, -0.2, 0.5, 0.5, 1, 1};
    char text[300];
    cpu_built b;
    snprintf(text, sizeof text, GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], %s}", ways);
    cpu_built_make(&b, text, 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    put(&b, "input", (const double[]){0, 1, 2, 3, 4, 5}, 6);
    put(&b, "grid", points, 16);
    accepts(&b, want, 8);
}

static void values_of_the_specification(void) {
    grid("\"mode\": \"linear\", \"align_corners\": 0", (const double[]){0, 0.5, 1.7, 2.5, 2.5, 1.7, 4.5, 1.25});
    grid("\"mode\": \"linear\", \"align_corners\": 1", (const double[]){0, 1.25, 2, 2.5, 2.5, 2, 3.75, 5});
    grid("\"mode\": \"nearest\", \"align_corners\": 0", (const double[]){0, 0, 2, 2, 2, 2, 5, 0});
    /* a region of 4 by 4 places in two bins each way: each is the average of the four points in its middle */
    cpu_built b;
    cpu_built_make(&b, ROIS "\"shape\": [1, 1, 2, 2], \"input\": [1, 1, 6, 6], \"coordinates\": \"output_half_pixel\"}",
                   1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    for (int k = 0; k < 36; k++) cpu_built_put(&b, "input", k, k);
    put(&b, "rois", (const double[]){0, 0, 4, 4}, 4);
    cpu_built_put(&b, "batches", 0, 0);
    accepts(&b, (const double[]){7, 9, 19, 21}, 4);
}

static void what_is_refused(void) {
    static const char *const rows[][2] = {
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"mode\": \"max\"}", "feature"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"padding_mode\": \"wrap\"}", "feature"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 2, 3, 2]}", "shape"},
        {GRID "\"shape\": [1, 1, 2, 4, 5], \"input\": [1, 1, 3, 2, 5]}", "shape"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"dtype\": \"int8\"}", "type"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"mode\": \"cubic\"}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"sampling_ratio\": -1}", "feature"}};
    const int before = cpu_built_failures;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) cpu_built_refused(rows[k][0], rows[k][1]);
    UNIT_INT(cpu_built_failures, before);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(every_way_and_type);
    UNIT_RUN(values_of_the_specification);
    UNIT_RUN(what_is_refused);
    cpu_built_close();
    return unit_end();
}
