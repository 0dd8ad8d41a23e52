/* The map: growth, absence, interning. */
#include "common/map.h"
#include "tests/unit/unit.h"

static guard g;
static arena a;
static map m;

static void start(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)64 << 20);
    map_init(&m, &a);
}

static void empty_has_nothing(void) {
    start();
    UNIT_CHECK(map_get(&m, "x") == NULL);
    UNIT_CHECK(map_get(&m, "") == NULL);
    arena_free(&a);
}

static void grows_and_finds_all(void) {
    start();
    enum { N = 20000 };
    static int values[N];
    for (int k = 0; k < N; k++) {
        void **place = map_put(&m, arena_printf(&a, "name_%d", k));
        UNIT_CHECK(*place == NULL);
        *place = &values[k];
    }
    UNIT_INT(m.count, N);
    bool good = true;
    char key[32];
    for (int k = 0; k < N; k++) {
        snprintf(key, sizeof key, "name_%d", k);
        good = good && map_get(&m, key) == &values[k];
    }
    UNIT_CHECK(good);
    UNIT_CHECK(map_get(&m, "name_") == NULL);
    UNIT_CHECK(map_get(&m, "name_20000") == NULL);
    arena_free(&a);
}

static void putting_again_finds_the_same_place(void) {
    start();
    int x = 0;
    char other[] = "key";
    *map_put(&m, "key") = &x;
    UNIT_CHECK(*map_put(&m, other) == &x);
    UNIT_INT(m.count, 1);
    arena_free(&a);
}

static void interning_keeps_one_copy(void) {
    start();
    const char *abc = map_intern(&m, "abcdef", 3);
    UNIT_TEXT(abc, "abc");
    UNIT_CHECK(map_intern(&m, "abc", 3) == abc);
    UNIT_CHECK(map_intern(&m, "abcx", 4) != abc);
    UNIT_TEXT(map_intern(&m, "ab", 2), "ab");
    const char *empty = map_intern(&m, NULL, 0);
    UNIT_TEXT(empty, "");
    UNIT_CHECK(map_intern(&m, "anything", 0) == empty);
    UNIT_CHECK(map_intern(&m, "abc\0def", 7) == abc); /* a text ends at its NUL */
    UNIT_INT(m.count, 4);
    for (int k = 0; k < 1000; k++) {
        const char *text = arena_printf(&a, "%d", k);
        map_intern(&m, text, strlen(text));
    }
    UNIT_CHECK(map_intern(&m, "abc", 3) == abc);
    arena_free(&a);
}

static void unique_names_are_new(void) {
    start();
    UNIT_TEXT(map_unique(&m, "x_2"), "x_2");
    UNIT_TEXT(map_unique(&m, "x"), "x");
    UNIT_TEXT(map_unique(&m, "x"), "x_3"); /* x_2 is there */
    UNIT_TEXT(map_unique(&m, "x"), "x_4");
    UNIT_TEXT(map_unique(&m, "x_2"), "x_2_2");
    arena_free(&a);
}

int main(void) {
    UNIT_RUN(empty_has_nothing);
    UNIT_RUN(grows_and_finds_all);
    UNIT_RUN(putting_again_finds_the_same_place);
    UNIT_RUN(interning_keeps_one_copy);
    UNIT_RUN(unique_names_are_new);
    return unit_end();
}
