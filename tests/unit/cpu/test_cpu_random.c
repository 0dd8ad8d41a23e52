/* Random numbers on the CPU device: the generator against its published words, every form against the reference,
 * numbers by hand, and how they are spread. */
#include "scout/op/random.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <math.h>

static void check(const char *text, int least) {
    const int before = cpu_built_failures;
    cpu_built_check(text, least);
    UNIT_INT(cpu_built_failures, before);
}

/* The known answers of Random123 whose upper half of the counter is 0; of all ones our counter has no such half. */
static void words_are_those_of_philox(void) {
    uint32_t w[4];
    random_words(0, 0, w);
    UNIT_CHECK(w[0] == 0x6627e8d5u && w[1] == 0xe169c58du && w[2] == 0xbc57ac4cu && w[3] == 0x9b00dbd8u);
}

static void every_form(void) {
    static const char *const whats[] = {"randomnormal", "randomuniformlike"}, *const types[] = {"fp32", "fp16", "bf16",
                                                                                                "fp64"};
    char text[256];
    for (int k = 0; k < 2 * 4 * 2; k++) {
        snprintf(text, sizeof text,
                 "{\"op\": \"elementwise\", \"what\": \"%s\", \"shape\": [3, %d], \"dtype\": \"%s\", \"alpha\": -1.5, "
                 "\"beta\": 2.5}",
                 whats[k % 2], k / 8 ? 1 : 1367, types[k / 2 % 4]);
        check(text, 1);
    }
    static const char *const ones[] = {"fp32", "fp16", "bf16", "fp64", "bool", "int8", "uint16", "int32", "uint64"};
    for (int k = 0; k < 4 * 9; k++) {
        snprintf(text, sizeof text,
                 "{\"op\": \"elementwise\", \"what\": \"bernoulli\", \"shape\": [7, 301], \"dtype\": \"%s\", "
                 "\"out_dtype\": \"%s\"}",
                 types[k % 4], ones[k / 4]);
        check(text, 1);
    }
}

/* Half of them below the middle, and their mean and deviation, each within five of its own deviations. */
static void numbers_are_spread_as_they_should(void) {
    static const struct {
        const char *what, *type;
        double mean, deviation;
    } rows[] = {{"randomnormal", "fp32", 2, 3},
                {"randomnormal", "fp64", 2, 3},
                {"randomuniform", "fp32", 2.5, 0.28868},
                {"randomuniform", "fp64", 2.5, 0.28868}};
    enum { COUNT = 40000 };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        char text[256];
        double sum = 0, squares = 0, below = 0, beside = 0, last = 0;
        cpu_built b;
        snprintf(text, sizeof text,
                 "{\"op\": \"elementwise\", \"what\": \"%s\", \"shape\": [%d], \"dtype\": \"%s\", \"alpha\": 2, "
                 "\"beta\": 3}",
                 rows[r].what, COUNT, rows[r].type);
        cpu_built_make(&b, text, 1 << 20);
        cpu_built_fill(&b, 5);
        UNIT_CHECK(b.built && cpu_built_launch(&b, "random_numbers"));
        for (int64_t k = 0; k < COUNT; k++) {
            const double x = (cpu_built_at(&b, "y", k) - rows[r].mean) / rows[r].deviation;
            sum += x, squares += x * x, below += x < 0, beside += x * last, last = x;
        }
        UNIT_CHECK(fabs(sum) < 5 * sqrt(COUNT) && fabs(squares - COUNT) < 5 * sqrt(2.0 * COUNT));
        UNIT_CHECK(fabs(below - 0.5 * COUNT) < 2.5 * sqrt(COUNT) && fabs(beside) < 5 * sqrt(COUNT));
        cpu_built_end(&b);
    }
}

/* The first words: 0x6627e8d5, 0xe169c58d. */
static void references_by_hand(void) {
    cpu_built b;
    cpu_built_make(&b, "{\"op\": \"elementwise\", \"what\": \"randomuniform\", \"shape\": [2]}", 1 << 20);
    cpu_built_fill(&b, 5);
    cpu_built_put(&b, "y", 0, 0x6627e8p-24), cpu_built_put(&b, "y", 1, 0xe169c5p-24);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 1, 0xe169d8p-24);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
    cpu_built_make(&b, "{\"op\": \"elementwise\", \"what\": \"randomnormal\", \"shape\": [2]}", 1 << 20);
    cpu_built_fill(&b, 5);
    cpu_built_put(&b, "y", 0, 0.9911375), cpu_built_put(&b, "y", 1, -0.9246628);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 1, 0.9246628);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
    cpu_built_make(&b, "{\"op\": \"elementwise\", \"what\": \"bernoulli\", \"shape\": [3], \"out_dtype\": \"int8\"}",
                   1 << 20);
    cpu_built_fill(&b, 5);
    cpu_built_put(&b, "p", 0, 0x6627e9p-24), cpu_built_put(&b, "p", 1, 0xe169c5p-24), cpu_built_put(&b, "p", 2, -1);
    for (int k = 0; k < 3; k++) cpu_built_put(&b, "y", k, k == 0);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 1, 1);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void what_is_no_number_is_refused(void) {
    cpu_built_refused("{\"op\": \"elementwise\", \"what\": \"randomnormal\", \"shape\": [4], \"dtype\": \"int32\"}",
                      "type");
    cpu_built_refused("{\"op\": \"elementwise\", \"what\": \"bernoulli\", \"shape\": [4], \"dtype\": \"int8\"}",
                      "type");
    cpu_built_refused("{\"op\": \"elementwise\", \"what\": \"bernoulli\", \"shape\": [4], \"out_dtype\": \"int4\"}",
                      "type");
    static const char *const numbers[] = {"\"alpha\": \"inf\"", "\"beta\": \"nan\"", "\"beta\": 1e39",
                                          "\"alpha\": -3e38, \"beta\": 3e38",
                                          "\"dtype\": \"fp64\", \"alpha\": -1e308, \"beta\": 1e308"};
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
        char text[200];
        snprintf(text, sizeof text, "{\"op\": \"elementwise\", \"what\": \"randomuniform\", \"shape\": [4], %s}",
                 numbers[k]);
        cpu_built_refused(text, "feature");
    }
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(words_are_those_of_philox);
    UNIT_RUN(every_form);
    UNIT_RUN(numbers_are_spread_as_they_should);
    UNIT_RUN(references_by_hand);
    UNIT_RUN(what_is_no_number_is_refused);
    cpu_built_close();
    return unit_end();
}
