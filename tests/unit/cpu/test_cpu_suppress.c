/* Boxes that overlap better ones are given up, on the CPU device: against the reference in every form, the reference
 * against the examples of ONNX, and what is refused. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#define TEXT "{\"op\": \"reduce\", \"what\": \"nonmaxsuppression\", \"dtype\": \"fp32\", "

static void every_form(void) {
    static const char *const forms[] = {
        "\"shape\": [1, 3], \"input\": [1, 1, 4], \"channels\": 1}",
        "\"shape\": [60, 3], \"input\": [2, 300, 4], \"channels\": 3, \"iou_threshold\": 0.5}",
        "\"shape\": [600, 3], \"input\": [1, 600, 4], \"channels\": 1, \"iou_threshold\": 0.9, \"threshold\": -0.5}",
        "\"shape\": [42, 3], \"input\": [3, 77, 4], \"channels\": 7, \"center_point_box\": 1, \"threshold\": 0.25}",
        "\"shape\": [18, 3], \"input\": [1, 65, 4], \"channels\": 9, \"iou_threshold\": 0.3, \"threshold\": 9}",
        /* nearly all are kept: no end where each one is held against all of those again and again */
        "\"shape\": [8400, 3], \"input\": [1, 8400, 4], \"channels\": 1, \"iou_threshold\": 0.95}"};
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
        char text[300];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text, TEXT "%s", forms[k]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

static void expect(const char *form, const double *boxes, const double *scores, int lists, const double *y, int rows) {
    char text[300];
    cpu_built b;
    snprintf(text, sizeof text, TEXT "%s", form);
    cpu_built_make(&b, text, 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    for (int k = 0; k < 24; k++) cpu_built_put(&b, "x", k, boxes[k]);
    for (int k = 0; k < 6 * lists; k++) cpu_built_put(&b, "scores", k, scores[k % 6]);
    for (int k = 0; k < 3 * rows; k++) cpu_built_put(&b, "y", k, y[k]);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 2, y[2] + 1);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

/* As ONNX has them, in its documentation and backend tests. */
static void examples_of_onnx(void) {
    static const double corners[24] = {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                       0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,  1, 101};
    static const double flipped[24] = {1, 1,  0, 0,  0, 0.1,  1, 1.1,  0, 0.9, 1, -0.1,
                                       0, 10, 1, 11, 1, 10.1, 0, 11.1, 1, 101, 0, 100};
    static const double centred[24] = {0.5, 0.5,  1, 1, 0.5, 0.6,  1, 1, 0.5, 0.4,   1, 1,
                                       0.5, 10.5, 1, 1, 0.5, 10.6, 1, 1, 0.5, 100.5, 1, 1};
    static const double scores[6] = {0.9, 0.75, 0.6, 0.95, 0.5, 0.3}, alike[6] = {0.9, 0.9, 0.9, 0.9, 0.9, 0.9};
    static const double three[9] = {0, 0, 3, 0, 0, 0, 0, 0, 5}, two[9] = {0, 0, 3, 0, 0, 0, 0, 0, 0};
    static const double classes[12] = {0, 0, 3, 0, 0, 0, 0, 1, 3, 0, 1, 0}, ties[9] = {0, 0, 0, 0, 0, 3, 0, 0, 5};
    const char *const plain = "\"shape\": [3, 3], \"input\": [1, 6, 4], \"channels\": 1, \"iou_threshold\": 0.5}";
    expect(plain, corners, scores, 1, three, 3);
    expect(plain, flipped, scores, 1, three, 3);
    expect(plain, corners, alike, 1, ties, 3);
    expect("\"shape\": [3, 3], \"input\": [1, 6, 4], \"channels\": 1, \"iou_threshold\": 0.5, \"center_point_box\": 1}",
           centred, scores, 1, three, 3);
    expect("\"shape\": [3, 3], \"input\": [1, 6, 4], \"channels\": 1, \"iou_threshold\": 0.5, \"threshold\": 0.4}",
           corners, scores, 1, two, 3);
    expect("\"shape\": [4, 3], \"input\": [1, 6, 4], \"channels\": 2, \"iou_threshold\": 0.5}", corners, scores, 2,
           classes, 4);
}

static void what_does_not_fit_is_refused(void) {
    static const char *const rows[][2] = {
        {TEXT "\"shape\": [4, 3], \"input\": [1, 6, 4]}", "shape"},
        {TEXT "\"shape\": [7, 3], \"input\": [1, 6, 4], \"channels\": 1}", "shape"},
        {TEXT "\"shape\": [3, 3], \"input\": [1, 6, 4], \"channels\": 2}", "shape"},
        {TEXT "\"shape\": [3, 3], \"input\": [1, 6, 5], \"channels\": 1}", "shape"},
        {TEXT "\"shape\": [3, 3], \"input\": [4294967296, 6, 4], \"channels\": 4294967296}", "shape"},
        {TEXT "\"shape\": [3, 3], \"input\": [1, 6, 4], \"channels\": 1, \"out_dtype\": \"fp32\"}", "type"}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) cpu_built_refused(rows[k][0], rows[k][1]);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(every_form);
    UNIT_RUN(examples_of_onnx);
    UNIT_RUN(what_does_not_fit_is_refused);
    cpu_built_close();
    return unit_end();
}
