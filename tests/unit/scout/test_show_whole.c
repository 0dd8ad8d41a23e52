/* What is said of a model as a whole. */
#include "scout/show/show.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static guard g;

static bool says(const json_t *root, const char *wanted) {
    char *text = NULL;
    size_t size = 0;
    arena a;
    if (guard_enter(&g)) {
        arena_init(&a, &g, (size_t)1 << 20);
        FILE *out = open_memstream(&text, &size);
        show_whole(out, &a, root);
        fclose(out);
    }
    arena_free(&a);
    const bool found = text && strstr(text, wanted);
    free(text);
    return found;
}

/* Each part was timed at the clock of its own load: at the model's they take something else, and the rest is told by
 * launch. Where no clock is known nothing is said of it. */
static void the_clock_has_its_part_in_a_difference(void) {
    json_t *root = json_pack("{s:{s:f, s:f, s:f, s:f}, s:f, s:i}", "default", "time_us", 120.0, "ci", 0.01, "sum_us",
                             100.0, "at_clock_us", 110.0, "clock_mhz", 1500.0, "launches", 20);
    if (!UNIT_CHECK(root)) return;
    UNIT_CHECK(says(root, "the sum of its parts 100.0 us"));
    UNIT_CHECK(says(
        root,
        "at the model's 1500 MHz they take 110.0 us: +9.1 %; each of 20 launches 0.500 us more among the others\n"));
    json_object_set_new(json_object_get(root, "default"), "fetch_us", json_real(6));
    UNIT_CHECK(says(root, "take 110.0 us: +9.1 %; 6.000 us of it to refill caches; each of 20 launches 0.500 us"));
    json_object_del(json_object_get(root, "default"), "fetch_us");
    json_object_set_new(json_object_get(root, "default"), "at_clock_us", json_real(125));
    UNIT_CHECK(says(root, "they take 125.0 us: -4.0 %\n"));
    json_object_del(json_object_get(root, "default"), "at_clock_us");
    UNIT_CHECK(!says(root, "MHz"));
    json_object_set_new(
        root, "best",
        json_pack("{s:f, s:f, s:f, s:f}", "time_us", 80.0, "ci", 0.01, "sum_us", 90.0, "at_clock_us", 79.2));
    UNIT_CHECK(says(root, "MHz they take 79.20 us: +1.0 %\n"));
    json_object_del(root, "best");
    json_object_set_new(json_object_get(root, "default"), "fetch_us", json_real(6));
    UNIT_CHECK(!says(root, "MHz") && says(root, "\n            6.000 us of that to refill caches\n"));
    json_decref(root);
}

int main(void) {
    guard_init(&g);
    UNIT_RUN(the_clock_has_its_part_in_a_difference);
    return unit_end();
}
