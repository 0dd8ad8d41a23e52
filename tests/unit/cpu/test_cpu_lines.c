/* Running sums and searches on the CPU device: against the reference in every type, the reference against values
 * written by hand, and what is refused. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <string.h>

static void check_lines(const char *form, const char *const *kinds, int count) {
    for (int k = 0; k < count; k++) {
        char text[400];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text, "{\"op\": \"reduce\", %s, \"dtype\": \"%s\"}", form, kinds[k]);
        cpu_built_check(text, 1);
        UNIT_INT(cpu_built_failures, before);
    }
}

/* What goes along lines: running sums and searches, along the last dimension and along others. */
static void lines_of_every_type(void) {
    static const char *const sums[] = {
        "\"what\": \"cumsum\", \"shape\": [3, 700]", "\"what\": \"cumsum\", \"shape\": [65, 1], \"exclusive\": 1",
        "\"what\": \"cumsum\", \"shape\": [130, 17], \"input\": [2, 17, 65], \"axes\": [1], \"reverse\": 1",
        "\"what\": \"cumsum\", \"shape\": [70, 9], \"input\": [9, 70], \"axes\": 0, \"exclusive\": 1, \"reverse\": 1"};
    static const char *const searches[] = {
        "\"what\": \"topk\", \"shape\": [3, 5], \"input\": [3, 1700]",
        "\"what\": \"topk\", \"shape\": [7, 64], \"input\": [7, 64], \"largest\": 0",
        "\"what\": \"topk\", \"shape\": [2, 6, 33], \"input\": [2, 40, 33], \"axis\": 1",
        "\"what\": \"topk\", \"shape\": [1, 1], \"input\": [1, 900], \"sorted\": 0"};
    static const char *const products[] = {
        "\"what\": \"cumprod\", \"shape\": [70], \"input\": [70]",
        "\"what\": \"cumprod\", \"shape\": [65, 9], \"exclusive\": 1",
        "\"what\": \"cumprod\", \"shape\": [130, 17], \"input\": [2, 17, 65], \"axes\": [1], \"reverse\": 1"};
    static const char *const kinds[] = {"fp32", "fp16", "bf16", "fp64", "int32", "int64", "uint32", "uint64"};
    for (int k = 0; k < 4; k++) check_lines(sums[k], kinds, 8);
    for (int k = 0; k < 3; k++) check_lines(products[k], kinds, 8);
    for (int k = 0; k < 4; k++) check_lines(searches[k], kinds, 8);
}

static void expect_lines(const char *text, const double *x, int count, const char *output, const double *y, int kept) {
    cpu_built b;
    cpu_built_make(&b, text, 1 << 20);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    for (int k = 0; k < count; k++) cpu_built_put(&b, "x", k, x[k]);
    const double values[] = {7, 7, 2}; /* of the search below, where its places are looked at */
    for (int k = 0; k < 3 && strcmp(output, "places") == 0; k++) cpu_built_put(&b, "y", k, values[k]);
    for (int k = 0; k < kept; k++) cpu_built_put(&b, output, k, y[k]);
    if (strcmp(output, "y") == 0 && strstr(text, "topk"))
        for (int k = 0; k < kept; k++) cpu_built_put(&b, "places", k, (const double[]){1, 3, 2}[k]);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, output, 1, y[1] + 1);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void lines_by_hand(void) {
    static const double x[] = {1, 7, 2, 7, -3};
    expect_lines("{\"op\": \"reduce\", \"what\": \"cumsum\", \"shape\": [1, 5]}", x, 5, "y",
                 (const double[]){1, 8, 10, 17, 14}, 5);
    expect_lines("{\"op\": \"reduce\", \"what\": \"cumsum\", \"shape\": [1, 5], \"exclusive\": 1, \"reverse\": 1}", x,
                 5, "y", (const double[]){13, 6, 4, -3, 0}, 5);
    expect_lines("{\"op\": \"reduce\", \"what\": \"cumprod\", \"shape\": [1, 5], \"exclusive\": 1}", x, 5, "y",
                 (const double[]){1, 1, 7, 14, 98}, 5);
    static const char *const best = "{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [1, 3], \"input\": [1, 5]}";
    expect_lines(best, x, 5, "y", (const double[]){7, 7, 2}, 3);
    expect_lines(best, x, 5, "places", (const double[]){1, 3, 2}, 3);
}

static void lines_that_are_refused(void) {
    static const char *const rows[][2] = {
        {"{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [4, 6]}", "shape"},
        {"{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [4, 6], \"input\": [4, 5]}", "shape"},
        {"{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [4, 6], \"input\": [5, 9]}", "shape"},
        {"{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [4, 6], \"input\": [4, 9], \"axis\": 2}", "shape"},
        {"{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [4, 6], \"input\": [4, 9], \"dtype\": \"int8\"}", "type"},
        {"{\"op\": \"reduce\", \"what\": \"cumsum\", \"shape\": [4, 6], \"dtype\": \"bool\"}", "type"},
        {"{\"op\": \"reduce\", \"what\": \"cumsum\", \"shape\": [4, 6], \"input\": [4, 6], \"axes\": 0}", "shape"}};
    const int before = cpu_built_failures;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) cpu_built_refused(rows[k][0], rows[k][1]);
    UNIT_INT(cpu_built_failures, before);
}

static void too_little_memory_is_refused(void) {
    static const char *const text =
        "{\"op\": \"reduce\", \"what\": \"topk\", \"shape\": [1, 500], \"input\": [1, 900]}";
    cpu_built b;
    cpu_built_make(&b, text, 16);
    if (!UNIT_CHECK(b.built)) return;
    cpu_built_fill(&b, 3);
    UNIT_INT(cpu_built_run(&b, text), 0);
    cpu_built_end(&b);
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(lines_of_every_type);
    UNIT_RUN(lines_by_hand);
    UNIT_RUN(lines_that_are_refused);
    UNIT_RUN(too_little_memory_is_refused);
    cpu_built_close();
    return unit_end();
}
