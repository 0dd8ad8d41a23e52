/* JSON in with its limits, builders that fail once, and the exact bytes that come out. */
#include "common/files.h"
#include "common/json.h"
#include "common/json_stream.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64] = "/tmp/unit_json_XXXXXX";
static status st;

static json_t *read_text(const char *text, const json_limits *limits) {
    st = (status){0};
    UNIT_CHECK(files_write(path, text, strlen(text), &st));
    return json_read(path, limits, &st);
}

static void refuse(const char *text, const json_limits *limits, const char *place) {
    json_t *root = read_text(text, limits);
    UNIT_CHECK(root == NULL);
    json_decref(root);
    UNIT_INT(st.code, STATUS_INPUT);
    if (!UNIT_CHECK(strstr(st.text, place) != NULL)) printf("    %s\n", st.text);
}

static const char *written(void) {
    static char text[65536];
    size_t n = 0;
    char *bytes = files_read(path, sizeof text - 1, &n, &st);
    snprintf(text, sizeof text, "%s", bytes ? bytes : "(none)");
    free(bytes);
    return text;
}

static void reading(void) {
    json_t *root = read_text("{\"a\": [1, 2.5, \"[[[[\"]}", NULL);
    UNIT_INT(json_integer_value(json_array_get(json_object_get(root, "a"), 0)), 1);
    json_decref(root);
    refuse("{\n  \"a\": ]\n}", NULL, "line 2, column 8: ");
    refuse("{\"a\": 1, \"a\": 2}", NULL, "duplicate");
    refuse("", NULL, "line 1, column 0: ");
    refuse("5", NULL, "line 1, column 1: ");
    refuse("{} x", NULL, "line 1, column ");
    refuse("{\"a\": 1e999}", NULL, "overflow");
    refuse("{\"a\": 99999999999999999999}", NULL, "too big");
    refuse("{\"a\": \"\xff\"}", NULL, "line 1, column ");
    UNIT_CHECK(json_read("/nonexistent/file", NULL, &st) == NULL);
    UNIT_INT(st.code, STATUS_INPUT);
}

static void limits(void) {
    json_limits small = {.bytes = 10, .depth = 3};
    refuse("[1, 2, 3, 4]", &small, "10 bytes");
    refuse("[\n[[\n [", &small, "line 3, column 2: nested deeper than 3");
    json_t *root = read_text("[[[\"[\"]]]", &small);
    UNIT_CHECK(root != NULL);
    json_decref(root);
    root = read_text("[\"\\\"[[[\"]", &small);
    UNIT_CHECK(root != NULL);
    json_decref(root);
    static char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    refuse(deep, NULL, "column 65: nested deeper than 64");
}

static void schemas(void) {
    json_t *root = read_text("{\"schema\": \"ceiling-scout/ops/1\"}", NULL);
    UNIT_CHECK(json_check_schema(root, "ops", 1, "f", &st));
    UNIT_CHECK(!json_check_schema(root, "ops", 2, "f", &st));
    UNIT_TEXT(st.text, "f: its schema is ceiling-scout/ops/1; ceiling-scout/ops/2 is needed");
    UNIT_CHECK(!json_check_schema(root, "report", 1, "f", &st));
    json_decref(root);
    root = read_text("[]", NULL);
    UNIT_CHECK(!json_check_schema(root, "ops", 1, "f", &st));
    UNIT_INT(st.code, STATUS_INPUT);
    json_decref(root);
}

static void built_tree_has_these_bytes(void) {
    json_builder b = {0};
    json_t *root = json_new_object(&b);
    json_put_text(&b, root, "z", "q\"\\\n\t\x01\x7f/é");
    json_put_int(&b, root, "a", INT64_MIN);
    json_put_real(&b, root, "r", 0.1);
    json_put_real(&b, root, "whole", 3);
    json_put_real(&b, root, "tiny", 5e-324);
    json_put_bool(&b, root, "yes", true);
    json_put_text(&b, root, "nothing", NULL);
    json_put(&b, root, "ints", json_new_ints(&b, 3, (int64_t[]){1, 2, 3}));
    json_put(&b, root, "empty", json_new_object(&b));
    json_t *list = json_new_array(&b), *inner = json_new_object(&b);
    json_put_int(&b, inner, "k", 1);
    json_push(&b, list, inner);
    json_push_text(&b, list, "t");
    json_push_int(&b, list, 7);
    json_put(&b, root, "list", list);
    root = json_finish(&b, root, &st);
    UNIT_CHECK(root && json_save(path, root, &st));
    json_decref(root);
    UNIT_TEXT(
        written(),
        "{\n  \"z\": \"q\\\"\\\\\\n\\t\\u0001\\u007f/é\",\n  \"a\": -9223372036854775808,\n  \"r\": 0.1,\n"
        "  \"whole\": 3.0,\n  \"tiny\": 4.94066e-324,\n  \"yes\": true,\n  \"nothing\": null,\n  \"ints\": [1, 2, 3],\n"
        "  \"empty\": {},\n  \"list\": [\n    {\n      \"k\": 1\n    },\n    \"t\",\n    7\n  ]\n}\n");
    json_t *again = json_read(path, NULL, &st); /* and it is JSON */
    UNIT_CHECK(again != NULL);
    json_decref(again);
}

static void builders_remember_the_first_failure(void) {
    static const char broken[] = "\xff";
    for (int k = 0; k < 6; k++) {
        json_builder b = {0};
        json_t *root = json_new_object(&b), *list = json_new_array(&b);
        if (k == 0) json_put_real(&b, root, "x", NAN);
        if (k == 1) json_put_real(&b, root, "x", INFINITY);
        if (k == 2) json_put_text(&b, root, "x", broken);
        if (k == 3) json_put_int(&b, root, broken, 1);
        if (k == 4) json_push_text(&b, list, broken);
        if (k == 5) json_put(&b, root, "x", NULL);
        json_put_int(&b, root, "later", 1); /* ignored */
        json_put(&b, root, "list", list);   /* taken over all the same */
        json_put(&b, NULL, "x", json_new_object(&b));
        UNIT_CHECK(b.why != NULL);
        UNIT_CHECK(json_finish(&b, root, &st) == NULL);
        UNIT_INT(st.code, STATUS_ENVIRONMENT);
    }
}

static void only_what_is_known_is_put(void) {
    json_builder b = {0};
    json_t *root = json_new_object(&b);
    json_put_known(&b, root, "none", NAN);
    json_put_known(&b, root, "endless", -INFINITY);
    json_put_known(&b, root, "nothing", 0);
    json_put_known(&b, root, "less", -2.5);
    root = json_finish(&b, root, &st);
    UNIT_CHECK(root && json_save(path, root, &st));
    json_decref(root);
    UNIT_TEXT(written(), "{\n  \"nothing\": 0.0,\n  \"less\": -2.5\n}\n");
}

static void members_that_may_be_missing(void) {
    json_t *o =
        read_text("{\"t\": \"x\", \"e\": \"\", \"n\": 2.5, \"i\": -7, \"z\": 0, \"null\": null, \"a\": [1]}", NULL);
    static const char *const no_text[] = {"missing", "n", "i", "null", "a"};
    static const char *const no_number[] = {"missing", "t", "e", "null", "a"};
    UNIT_TEXT(json_get_text(o, "t"), "x");
    UNIT_TEXT(json_get_text_or_null(o, "t"), "x");
    UNIT_TEXT(json_get_text_or_null(o, "e"), "");
    for (int k = 0; k < 5; k++) {
        UNIT_TEXT(json_get_text(o, no_text[k]), "");
        UNIT_CHECK(json_get_text_or_null(o, no_text[k]) == NULL);
        UNIT_CHECK(isnan(json_get_number(o, no_number[k])));
        UNIT_CHECK(isnan(json_get_positive(o, no_number[k])));
        UNIT_INT(json_get_int(o, no_number[k], -1), -1);
    }
    UNIT_CHECK(json_get_number(o, "n") == 2.5 && json_get_positive(o, "n") == 2.5);
    UNIT_CHECK(json_get_number(o, "i") == -7 && isnan(json_get_positive(o, "i")));
    UNIT_CHECK(json_get_number(o, "z") == 0 && isnan(json_get_positive(o, "z")));
    UNIT_INT(json_get_int(o, "i", 3), -7);
    UNIT_INT(json_get_int(o, "n", 3), 3); /* not a whole one */
    UNIT_TEXT(json_get_text(NULL, "t"), "");
    UNIT_CHECK(json_get_text_or_null(json_object_get(o, "a"), "t") == NULL && isnan(json_get_number(NULL, "t")));
    json_decref(o);
}

/* jansson's memory made to fail after so many allocations; what was given out is counted. */
static long allowed, alive;
static void *scarce(size_t n) {
    if (allowed-- <= 0) return NULL;
    alive++;
    return malloc(n);
}
static void give_back(void *p) {
    if (p) alive--;
    free(p);
}

static bool build_something(void) {
    json_builder b = {0};
    json_t *root = json_new_object(&b), *list = json_new_array(&b);
    for (int k = 0; k < 20; k++) {
        json_t *one = json_new_object(&b);
        json_put_text(&b, one, "name", "some text");
        json_put(&b, one, "shape", json_new_ints(&b, 4, (int64_t[]){1, 2, 3, 4}));
        json_put_real(&b, one, "x", 1.5);
        json_push(&b, list, one);
    }
    json_put(&b, root, "list", list);
    root = json_finish(&b, root, &st);
    bool good = root != NULL;
    json_decref(root);
    return good;
}

static void every_allocation_may_fail(void) {
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(scarce, give_back);
    bool good = false;
    long n = 0;
    for (; n < 10000 && !good; n++) {
        allowed = n;
        alive = 0;
        good = build_something();
        UNIT_INT(alive, 0);
    }
    json_set_alloc_funcs(old_malloc, old_free);
    UNIT_CHECK(good && n > 100);
}

static void stream_has_these_bytes(void) {
    json_stream s;
    UNIT_CHECK(json_stream_begin(&s, path, &st));
    json_stream_open(&s, NULL, '{', false);
    json_stream_int(&s, "n", 5);
    json_stream_open(&s, "names", '[', true);
    json_stream_text(&s, NULL, "a");
    json_stream_text(&s, NULL, "b");
    json_stream_close(&s);
    json_stream_ints(&s, "none", 0, NULL);
    json_stream_open(&s, "rows", '[', false);
    json_stream_open(&s, NULL, '{', true);
    json_stream_real(&s, "x", 1e300);
    json_stream_open(&s, "y", '{', false); /* flat, as what it stands in */
    json_stream_null(&s, "z");
    json_stream_bool(&s, "b", false);
    json_stream_close(&s);
    json_stream_close(&s);
    json_stream_close(&s);
    json_stream_close(&s);
    UNIT_CHECK(json_stream_commit(&s, &st));
    UNIT_TEXT(written(), "{\n  \"n\": 5,\n  \"names\": [\"a\", \"b\"],\n  \"none\": [],\n  \"rows\": [\n"
                         "    {\"x\": 1e+300, \"y\": {\"z\": null, \"b\": false}}\n  ]\n}\n");
}

static void stream_mistakes_leave_no_file(void) {
    for (int k = 0; k < 8; k++) {
        unlink(path);
        json_stream s;
        UNIT_CHECK(json_stream_begin(&s, path, &st));
        json_stream_open(&s, NULL, '{', false);
        if (k == 0) json_stream_real(&s, "x", NAN);
        if (k == 1) json_stream_text(&s, "x", "\xed\xa0\x80");
        if (k == 2) json_stream_int(&s, NULL, 1);
        if (k == 3) json_stream_open(&s, "x", '[', false);
        if (k == 4) json_stream_text(&s, "\xff", "x");
        if (k == 5) json_stream_close(&s);
        if (k == 6)
            for (int j = 0; j < 1000; j++) json_stream_open(&s, "x", '{', false);
        if (k == 7) json_stream_text(&s, "x", "cut \xf0\x9f\x98");
        json_stream_close(&s);
        UNIT_CHECK(!json_stream_commit(&s, &st));
        UNIT_CHECK(access(path, F_OK) != 0);
    }
    json_stream s;
    UNIT_CHECK(json_stream_begin(&s, path, &st));
    json_stream_open(&s, NULL, '{', false);
    json_stream_abort(&s);
    UNIT_CHECK(access(path, F_OK) != 0);
}

static void deep_trees_are_refused_when_saved(void) {
    json_t *root = json_array();
    for (int k = 0; k < 1000; k++) {
        json_t *outer = json_array();
        json_array_append_new(outer, root);
        root = outer;
    }
    unlink(path);
    UNIT_CHECK(!json_save(path, root, &st));
    UNIT_CHECK(access(path, F_OK) != 0);
    json_decref(root);
}

static void numbers_read_back_the_same(void) {
    static const double numbers[] = {0.1,  1.0 / 3, 1e21,   123456789.123, 2.5e-10, 1.7976931348623157e308,
                                     -0.0, 1e15,    100000, 1234567};
    json_builder b = {0};
    json_t *root = json_new_object(&b), *list = json_new_array(&b);
    size_t n = sizeof numbers / sizeof numbers[0];
    for (size_t k = 0; k < n; k++) json_push(&b, list, json_real(numbers[k]));
    json_put(&b, root, "list", list);
    root = json_finish(&b, root, &st);
    UNIT_CHECK(root && json_save(path, root, &st));
    json_decref(root);
    root = json_read(path, NULL, &st);
    list = json_object_get(root, "list");
    for (size_t k = 0; k < n; k++) {
        UNIT_CHECK(json_is_real(json_array_get(list, k)));
        UNIT_CHECK(json_real_value(json_array_get(list, k)) == numbers[k]);
    }
    json_decref(root);
}

static json_t *read_apart(const char *text, char **apart, size_t *n) {
    st = (status){0};
    UNIT_CHECK(files_write(path, text, strlen(text), &st));
    return json_read_apart(path, NULL, "big", apart, n, &st);
}

/* Found by its name in the root alone; brackets in texts, and what else is called so, do not count. */
static void a_member_is_handed_out_apart(void) {
    char *apart;
    size_t n;
    json_t *root = read_apart(
        "{\"a\": [\"big\", {\"big\": {}}], \"big\" : {\"x\": \"}\\\"{\", \"y\": [[{}]]}, \"b\": 1}", &apart, &n);
    UNIT_CHECK(root && apart);
    if (apart) UNIT_TEXT(apart, "{\"x\": \"}\\\"{\", \"y\": [[{}]]}");
    UNIT_INT((int64_t)n, apart ? (int64_t)strlen(apart) : -1);
    UNIT_CHECK(json_is_null(json_object_get(root, "big")) && json_object_get(root, "b"));
    free(apart);
    json_decref(root);
    static const char *const whole[] = {"{\"big\": [1, 2, 3]}", "{\"a\": \"big\"}", "{\"big\": {}}",
                                        "[{\"big\": {\"a\": 1}}]"};
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        root = read_apart(whole[k], &apart, &n);
        UNIT_CHECK(root && !apart && n == 0);
        json_decref(root);
    }
    UNIT_CHECK(!read_apart("{\"big\": {\"a\": 1}, \"big\": {}}", &apart, &n) && !apart && strstr(st.text, "duplicate"));
    UNIT_CHECK(!read_apart("{\"big\": {\n\"a\": 1},\n \"b\": x}", &apart, &n) && !apart && strstr(st.text, "line 3"));
}

/* More than are written at once, one into no folder, and one that is no JSON: the others are there. */
static void many_files_at_once(void) {
    enum { COUNT = 70, LOST = 5, BROKEN = 66 };
    char folder[] = "/tmp/test_json_many_XXXXXX", names[COUNT][64];
    const char *paths[COUNT];
    json_t *roots[COUNT], *deep = json_array();
    st = (status){0};
    if (!UNIT_CHECK(mkdtemp(folder) != NULL)) return;
    for (int k = 0; k < 200; k++) {
        json_t *outer = json_array();
        json_array_append_new(outer, deep);
        deep = outer;
    }
    for (int k = 0; k < COUNT; k++) {
        snprintf(names[k], sizeof names[k], "%s%s/%d.json", folder, k == LOST ? "/none" : "", k);
        paths[k] = names[k];
        roots[k] = k == BROKEN ? deep : json_pack("{s:i}", "k", k);
    }
    UNIT_CHECK(!json_save_all(paths, roots, COUNT, &st));
    UNIT_INT(st.code, STATUS_ENVIRONMENT); /* the first of the two */
    UNIT_CHECK(strstr(st.text, "/none/5.json") != NULL);
    for (int k = 0; k < COUNT; k++) {
        json_t *read = json_read(paths[k], NULL, &st);
        UNIT_INT(read != NULL, k != LOST && k != BROKEN);
        if (read) UNIT_CHECK(json_equal(read, roots[k]));
        json_decref(read);
        json_decref(roots[k]);
        unlink(paths[k]);
    }
    UNIT_CHECK(rmdir(folder) == 0); /* nothing half-written is left */
    st = (status){0};
    UNIT_CHECK(json_save_all(paths, roots, 0, &st) && st.code == STATUS_OK);
}

int main(void) {
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    UNIT_RUN(reading);
    UNIT_RUN(limits);
    UNIT_RUN(a_member_is_handed_out_apart);
    UNIT_RUN(schemas);
    UNIT_RUN(built_tree_has_these_bytes);
    UNIT_RUN(only_what_is_known_is_put);
    UNIT_RUN(members_that_may_be_missing);
    UNIT_RUN(builders_remember_the_first_failure);
    UNIT_RUN(every_allocation_may_fail);
    UNIT_RUN(stream_has_these_bytes);
    UNIT_RUN(stream_mistakes_leave_no_file);
    UNIT_RUN(deep_trees_are_refused_when_saved);
    UNIT_RUN(numbers_read_back_the_same);
    UNIT_RUN(many_files_at_once);
    unlink(path);
    return unit_end();
}
