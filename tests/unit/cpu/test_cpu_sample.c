/* Points and regions of images, and windows that models seldom have, on the CPU device: the own loop against the
 * reference in every way, the reference against values of the specification, and what is refused. */
#include "scout/op/sample.h"
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
                 ROIS
                 "\"shape\": [5, 65, 3, 4], \"input\": [2, 65, 19, 18], \"mode\": \"%s\", \"coordinates\": \"%s\", "
                 "\"sampling_ratio\": %d, \"spatial_scale\": 0.25, \"dtype\": \"%s\"}",
                 k % 2 ? "max" : "avg", k / 2 % 2 ? "half_pixel" : "output_half_pixel", k / 4 % 2 * 2, types[k / 8]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

#define CROPS "{\"op\": \"pool\", \"what\": \"cropandresize\", "

static void crops_of_every_type(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"}, *const sizes[] = {"3, 4", "1, 5", "20, 33"};
    for (int k = 0; k < 2 * 3 * 3; k++) {
        char text[400];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text,
                 CROPS "\"shape\": [5, 65, %s], \"input\": [2, 65, 19, 18], \"mode\": \"%s\", \"dtype\": \"%s\"}",
                 sizes[k / 6], k % 2 ? "nearest" : "linear", types[k / 2 % 3]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

/* As onnxruntime computes them, of 0 to 11 in an image of 3 rows. */
static void crops_of_onnxruntime(void) {
    static const struct {
        const char *size, *mode;
        int count, points;
        double y[12];
    } rows[] = {{"2, 1, 2, 3", "linear", 2, 12, {1.4, 2.225, 3.05, 7.8, 8.625, 9.45, -7, -7, -7, 8, 9.875, -7}},
                {"2, 1, 2, 3", "nearest", 2, 12, {1, 1, 2, 9, 9, 10, -7, -7, -7, 8, 10, -7}},
                {"1, 1, 1, 1", "linear", 1, 1, {5.425}},
                {"1, 1, 1, 1", "nearest", 1, 1, {5}}};
    static const double rois[8] = {0.1, 0.2, 0.9, 0.75, -0.5, 0, 1, 1.25};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char text[400];
        cpu_built b;
        snprintf(text, sizeof text,
                 CROPS "\"shape\": [%s], \"input\": [1, 1, 3, 4], \"mode\": \"%s\", \"extrapolation_value\": -7}",
                 rows[r].size, rows[r].mode);
        cpu_built_make(&b, text, 1 << 20);
        if (!UNIT_CHECK(b.built)) return;
        cpu_built_fill(&b, 3);
        for (int k = 0; k < 12; k++) cpu_built_put(&b, "input", k, k);
        for (int k = 0; k < 4 * rows[r].count; k++) cpu_built_put(&b, "rois", k, rois[k]);
        for (int k = 0; k < rows[r].points; k++) cpu_built_put(&b, "output", k, rows[r].y[k]);
        UNIT_CHECK(cpu_built_accepts(&b));
        cpu_built_put(&b, "output", 0, rows[r].y[0] + 0.01);
        UNIT_CHECK(!cpu_built_accepts(&b));
        UNIT_CHECK(cpu_built_launch(&b, "sample_points"));
        for (int k = 0; k < rows[r].points; k++) UNIT_CHECK(fabs(cpu_built_at(&b, "output", k) - rows[r].y[k]) < 1e-5);
        cpu_built_end(&b);
    }
}

static void windows(void) {
    static const char *const forms[] = {
        "\"what\": \"lp\", \"shape\": [2, 5, 4, 6], \"input\": [2, 5, 9, 12], \"kernel\": [3, 2], \"stride\": [2, 2]",
        "\"what\": \"lp\", \"shape\": [2, 5, 9, 12], \"input\": [2, 5, 9, 12], \"kernel\": [3, 3], \"pads\": [1, 1, 1, "
        "1], "
        "\"p\": 1",
        "\"what\": \"lp\", \"shape\": [3, 7, 1, 1], \"input\": [3, 7, 8, 9], \"global\": 1, \"p\": 3",
        "\"what\": \"lp\", \"shape\": [2, 9, 5], \"input\": [2, 13, 5], \"kernel\": [3], \"dilation\": [2], "
        "\"layout\": "
        "\"nhwc\"",
        "\"what\": \"max\", \"shape\": [2, 5, 4, 6], \"input\": [2, 5, 9, 13], \"kernel\": [3, 3], \"stride\": [2, 2], "
        "\"indices_out\": 1",
        "\"what\": \"max\", \"shape\": [2, 5, 9, 12], \"input\": [2, 5, 9, 12], \"kernel\": [3, 3], \"pads\": [1, 1, "
        "1, "
        "1], \"indices_out\": 1, \"storage_order\": 1",
        "\"what\": \"max\", \"shape\": [1, 3, 3, 4, 5], \"input\": [1, 3, 4, 5, 6], \"kernel\": [2, 2, 2], "
        "\"indices_out\": 1"};
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    for (int k = 0; k < 7 * 3; k++) {
        char text[400];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text, "{\"op\": \"pool\", %s, \"dtype\": \"%s\"}", forms[k % 7], types[k / 7]);
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
    cpu_built norm;
    cpu_built_make(&norm,
                   "{\"op\": \"pool\", \"what\": \"lp\", \"shape\": [1, 1, 2], \"input\": [1, 1, 3], \"kernel\": [2]}",
                   1 << 20);
    if (!UNIT_CHECK(norm.built)) return;
    cpu_built_fill(&norm, 3);
    put(&norm, "input", (const double[]){5, 12, -9}, 3);
    accepts(&norm, (const double[]){13, 15}, 2);
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

/* Half of five of the least steps of fp16 is two of them, and not four. */
static void the_least_numbers_are_rounded_to_their_steps(void) {
    cpu_built b;
    cpu_built_make(&b, GRID "\"shape\": [1, 1, 1, 1], \"input\": [1, 1, 1, 2], \"dtype\": \"fp16\"}", 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    put(&b, "input", (const double[]){5 * 0x1p-24, 0}, 2), put(&b, "grid", (const double[]){0, 0}, 2);
    put(&b, "output", (const double[]){2 * 0x1p-24}, 1);
    UNIT_CHECK(cpu_built_accepts(&b));
    put(&b, "output", (const double[]){4 * 0x1p-24}, 1);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

/* Regions lie in the image and have points by their size; whatever stands in a grid or a region ends. */
static void regions_are_in_the_image(void) {
    cpu_built b;
    cpu_built_make(&b, ROIS "\"shape\": [50, 1, 2, 3], \"input\": [1, 1, 40, 64], \"spatial_scale\": 0.0625}", 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    const sample_problem p = sample_problem_of(&b.op, b.op.tensors[SAMPLE_INPUT].dims);
    for (int k = 0; k < 50; k++) {
        double roi[4];
        for (int d = 0; d < 4; d++) roi[d] = cpu_built_at(&b, "rois", 4 * k + d);
        for (int d = 0; d < 2; d++) UNIT_CHECK(roi[d] >= 0 && roi[d + 2] - roi[d] >= 160 && roi[d + 2] < 640);
        const sample_region r = sample_region_of(&p, roi);
        UNIT_CHECK(r.points[0] >= 5 && r.points[0] <= 10 && r.points[1] >= 4 && r.points[1] <= 7);
        UNIT_CHECK(sample_points(&r) <= sample_most_points(&p));
    }
    const double hostile[] = {0, NAN, INFINITY, 1e300};
    const sample_region r = sample_region_of(&p, hostile);
    UNIT_CHECK(r.points[0] >= 0 && r.points[0] <= SAMPLE_POINTS && r.points[1] == SAMPLE_POINTS);
    cpu_built_end(&b);
    cpu_built_make(&b, GRID "\"shape\": [1, 1, 2, 2], \"input\": [1, 1, 3, 2], \"padding_mode\": \"reflection\"}",
                   1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    sample_problem g = sample_problem_of(&b.op, b.op.tensors[SAMPLE_INPUT].dims);
    for (int k = 0; k < 9; k++) {
        const double far[] = {NAN, INFINITY, -1e300};
        int64_t places[SAMPLE_TAPS];
        double weights[SAMPLE_TAPS];
        g.beyond = (sample_beyond)(k / 3);
        for (int n = sample_taps(&g, far[k % 3], 0, places, weights); n-- > 0;)
            UNIT_CHECK(places[n] >= 0 && places[n] < 6);
    }
    cpu_built_end(&b);
}

/* Of two rows of three, the largest of all is in the second row and the second column: the fifth, or by columns the
 * fourth. */
static void places_of_maxima(void) {
    for (int columns = 0; columns < 2; columns++) {
        char text[300];
        cpu_built b;
        snprintf(
            text, sizeof text,
            "{\"op\": \"pool\", \"what\": \"max\", \"shape\": [1, 1, 1, 1], \"input\": [1, 1, 2, 3], \"kernel\": [2, "
            "3], \"indices_out\": 1, \"storage_order\": %d}",
            columns);
        cpu_built_make(&b, text, 1 << 20);
        if (!UNIT_CHECK(b.built)) return;
        cpu_built_fill(&b, 3);
        put(&b, "input", (const double[]){1, 2, 3, 4, 9, 5}, 6);
        cpu_built_put(&b, "output", 0, 9), cpu_built_put(&b, "indices", 0, columns ? 3 : 4);
        UNIT_CHECK(cpu_built_accepts(&b));
        cpu_built_put(&b, "indices", 0, columns ? 4 : 3);
        UNIT_CHECK(!cpu_built_accepts(&b));
        cpu_built_end(&b);
    }
}

static void what_is_refused(void) {
    static const char *const rows[][2] = {
        {CROPS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"mode\": \"cubic\"}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"extrapolation_value\": 1}", "feature"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"mode\": \"max\"}", "feature"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"padding_mode\": \"wrap\"}", "feature"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 2, 3, 2]}", "shape"},
        {GRID "\"shape\": [1, 1, 2, 4, 5], \"input\": [1, 1, 3, 2, 5]}", "shape"},
        {GRID "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"dtype\": \"int8\"}", "type"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"mode\": \"cubic\"}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"sampling_ratio\": -1}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"sampling_ratio\": 65}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"sampling_ratio\": 4000000000000}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"spatial_scale\": 3}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"spatial_scale\": 0}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"spatial_scale\": -1}", "feature"},
        {ROIS "\"shape\": [1, 1, 2, 4], \"input\": [1, 1, 3, 2], \"spatial_scale\": 1e-300}", "feature"}};
    const int before = cpu_built_failures;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) cpu_built_refused(rows[k][0], rows[k][1]);
    UNIT_INT(cpu_built_failures, before);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(every_way_and_type);
    UNIT_RUN(values_of_the_specification);
    UNIT_RUN(the_least_numbers_are_rounded_to_their_steps);
    UNIT_RUN(regions_are_in_the_image);
    UNIT_RUN(crops_of_every_type);
    UNIT_RUN(crops_of_onnxruntime);
    UNIT_RUN(windows);
    UNIT_RUN(places_of_maxima);
    UNIT_RUN(what_is_refused);
    cpu_built_close();
    return unit_end();
}
