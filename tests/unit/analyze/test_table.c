/* analyze dispatch: which sizes lie in a proven range, and which of two entries stays. */
#include "analyze/table/table.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

static status st;

/* An entry with what decides: "tuned" ones are told apart by `algo`. */
static json_t *entry(const char *key, const char *choice, const char *algo, double ratio, double ci) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:{s:f, s:f, s:f, s:f}}", "key", key, "choice", choice,
                     "implementation", "cublaslt", "variant", key, "algo", algo, "config", "of", key, "proof", "ratio",
                     ratio, "ratio_ci", ci, "expected_ci", ci, "default_ci", ci);
}

static json_t *tuned(const char *key, const char *algo) { return entry(key, "tuned", algo, 0.9, 0.01); }

static size_t ranges_of(json_t *entries) {
    size_t count = 99;
    UNIT_CHECK(table_ranges_add(entries, &count, &st));
    return count;
}

static const json_t *range(const json_t *entries, size_t k) {
    return json_array_get(json_object_get(json_array_get(entries, k), "ranges"), 0);
}

/* ---- ranges ---- */

static void neighbours_that_agree_make_a_range(void) {
    json_t *e = json_pack("[o, o, o, o]", tuned("gemm;shape=256,64,64;layout=nn;type=fp16", "42"),
                          tuned("gemm;shape=64,64,64;layout=nn;type=fp16", "42"),
                          tuned("gemm;shape=120,64,64;layout=nn;type=fp16", "42"),
                          tuned("gemm;shape=512,64,64;layout=nn;type=fp16", "43"));
    UNIT_INT(ranges_of(e), 1); /* 64 to 120; 120 to 256 is more than twice; 512 is another algorithm */
    const json_t *r = range(e, 1);
    UNIT_INT(json_integer_value(json_object_get(r, "from")), 64);
    UNIT_INT(json_integer_value(json_object_get(r, "to")), 120);
    UNIT_INT(json_integer_value(json_object_get(r, "step")), 8); /* what both are aligned to */
    UNIT_TEXT(json_string_value(json_object_get(r, "upper")), "gemm;shape=120,64,64;layout=nn;type=fp16");
    json_decref(e);
}

static void one_that_was_measured_between_decides(void) {
    json_t *e = json_pack("[o, o, o]", tuned("gemm;shape=64,64,64;type=fp16", "42"),
                          tuned("gemm;shape=128,64,64;type=fp16", "42"),
                          entry("gemm;shape=96,64,64;type=fp16", "default", "42", 1, 0));
    UNIT_INT(ranges_of(e), 0);
    json_decref(e);
}

static void only_sizes_of_requests_range(void) {
    json_t *e = json_pack("[o, o, o, o, o]", tuned("gemm;shape=64,64,64;type=fp16", "42"),
                          tuned("gemm;shape=64,128,64;type=fp16", "42"),  /* N */
                          tuned("gemm;shape=128,64,128;type=fp16", "42"), /* M and K */
                          tuned("gemm;shape=128,64,64;type=bf16", "42"),  /* type */
                          tuned("elementwise;what=add;shape=64,64;type=fp16", "42"));
    UNIT_INT(ranges_of(e), 0);
    json_decref(e);
}

static void defaults_have_none(void) {
    json_t *e = json_pack("[o, o]", entry("gemm;shape=64,64,64;type=fp16", "default", "42", 1, 0),
                          entry("gemm;shape=128,64,64;type=fp16", "default", "42", 1, 0));
    UNIT_INT(ranges_of(e), 0);
    UNIT_CHECK(json_is_array(json_object_get(json_array_get(e, 0), "ranges")));
    json_decref(e);
}

static void sequences_move_with_their_cache(void) {
    json_t *e = json_pack("[o, o, o, o]", tuned("attention;shape=1,8,512,64;type=fp16;kv_heads=8;kv_len=512", "42"),
                          tuned("attention;shape=1,8,1024,64;type=fp16;kv_heads=8;kv_len=1024", "42"),
                          tuned("attention;shape=1,8,1,64;type=fp16;kv_heads=8;kv_len=512", "42"),
                          tuned("attention;shape=1,8,1,64;type=fp16;kv_heads=8;kv_len=1024", "42"));
    UNIT_INT(ranges_of(e), 2);
    UNIT_INT(json_array_size(json_object_get(range(e, 0), "places")), 2);
    UNIT_INT(json_array_size(json_object_get(range(e, 2), "places")), 1);
    json_decref(e);
}

static void absurd_sizes_do_no_harm(void) {
    json_t *e = json_pack("[o, o, o, o]", tuned("gemm;shape=9223372036854775807,64,64;type=fp16", "42"),
                          tuned("gemm;shape=9223372036854775806,64,64;type=fp16", "42"),
                          tuned("gemm;shape=-9223372036854775808,64,64;type=fp16", "42"),
                          tuned("gemm;shape=0,64,64;type=fp16", "42"));
    UNIT_INT(ranges_of(e), 1);
    json_decref(e);
}

/* ---- merging ---- */

static json_t *root(void) {
    return json_pack("{s:{s:s}, s:s, s:i, s:[s], s:[]}", "device", "class", "A", "regime", "r", "method", 5, "models",
                     "one", "entries");
}

static const char *kept(const json_t *table, const char *key, const char *member) {
    const json_t *entries = json_object_get(table, "entries");
    for (size_t k = 0; k < json_array_size(entries); k++)
        if (strcmp(json_string_value(json_object_get(json_array_get(entries, k), "key")), key) == 0)
            return json_string_value(json_object_get(json_array_get(entries, k), member));
    return NULL;
}

static void stays(json_t *first, json_t *second, bool second_stays, size_t conflicts) {
    json_t *table = root();
    table_merge m;
    const char *key = "gemm;shape=1,1,1";
    char *expected = strdup(json_string_value(json_object_get(second_stays ? second : first, "algo")));
    UNIT_CHECK(table_merge_begin(&m, table, "x", NULL, &st));
    UNIT_CHECK(table_merge_entry(&m, first, "a", &st) && table_merge_entry(&m, second, "b", &st));
    UNIT_INT(m.conflicts, conflicts);
    UNIT_CHECK(table_merge_end(&m, &st));
    UNIT_TEXT(kept(table, key, "algo"), expected);
    UNIT_INT(json_array_size(json_object_get(table, "entries")), 1);
    free(expected);
    json_decref(table);
}

static void the_better_proof_stays(void) {
    const char *key = "gemm;shape=1,1,1";
    /* proven beats not proven, whichever comes first */
    stays(entry(key, "default", "41", 1, 0), entry(key, "tuned", "42", 0.97, 0.005), true, 1);
    stays(entry(key, "tuned", "42", 0.97, 0.005), entry(key, "default", "41", 1, 0), false, 1);
    /* the one that surely saves more, not the one that looks faster */
    stays(entry(key, "tuned", "42", 0.90, 0.001), entry(key, "tuned", "43", 0.89, 0.08), false, 1);
    stays(entry(key, "tuned", "42", 0.90, 0.05), entry(key, "tuned", "43", 0.91, 0.001), true, 1);
    /* alike: no conflict; the first one stays where nothing tells them apart */
    stays(entry(key, "tuned", "42", 0.9, 0.01), entry(key, "tuned", "42", 0.9, 0.01), false, 0);
    /* defaults: the time that is known better */
    stays(entry(key, "default", "41", 1, 0.02), entry(key, "default", "42", 1, 0.01), true, 1);
}

static void entries_are_in_order(void) {
    json_t *table = root();
    table_merge m;
    UNIT_CHECK(table_merge_begin(&m, table, "x", NULL, &st));
    UNIT_CHECK(table_merge_entry(&m, tuned("c", "1"), "a", &st) && table_merge_entry(&m, tuned("a", "1"), "a", &st) &&
               table_merge_entry(&m, tuned("b", "1"), "a", &st));
    UNIT_CHECK(table_merge_end(&m, &st));
    const json_t *entries = json_object_get(table, "entries");
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t k = 0; k < 3; k++)
        UNIT_TEXT(json_string_value(json_object_get(json_array_get(entries, k), "key")), keys[k]);
    json_decref(table);
}

/* What another table must be to be taken in. */
static void only_the_same_class_regime_and_method_merge(void) {
    static const char text[] =
        "{\"schema\": \"ceiling-scout/dispatch/1\", \"device\": {\"class\": \"%s\", \"name\": \"n\", \"capability\": "
        "\"c\", "
        "\"driver\": \"1\", \"libraries\": []}, \"regime\": \"%s\", \"method\": %d, \"models\": [\"two\", \"one\", 5], "
        "\"entries\": []}";
    static const struct {
        const char *device, *regime;
        int method;
        const char *says; /* NULL: taken */
    } cases[] = {{"A", "r", 5, NULL},
                 {"B", "r", 5, "one device class"},
                 {"A", "s", 5, "one regime"},
                 {"A", "r", 4, "method 4"},
                 {"", "r", 5, "class is empty"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char path[] = "/tmp/test_table_XXXXXX", file[512];
        const int size = snprintf(file, sizeof file, text, cases[k].device, cases[k].regime, cases[k].method);
        const int fd = mkstemp(path);
        json_t *table = root();
        table_merge m;
        st = (status){0};
        UNIT_CHECK(fd >= 0 && write(fd, file, (size_t)size) == size && close(fd) == 0);
        UNIT_CHECK(table_merge_begin(&m, table, "x", NULL, &st));
        UNIT_CHECK(table_merge_file(&m, path, &st) == !cases[k].says);
        if (cases[k].says) UNIT_CHECK(st.code == STATUS_INPUT && strstr(st.text, cases[k].says));
        UNIT_CHECK(table_merge_end(&m, &st));
        UNIT_INT(json_array_size(json_object_get(table, "models")), cases[k].says ? 1 : 2);
        json_decref(table);
        unlink(path);
        st = (status){0};
    }
}

int main(void) {
    UNIT_RUN(neighbours_that_agree_make_a_range);
    UNIT_RUN(one_that_was_measured_between_decides);
    UNIT_RUN(only_sizes_of_requests_range);
    UNIT_RUN(defaults_have_none);
    UNIT_RUN(sequences_move_with_their_cache);
    UNIT_RUN(absurd_sizes_do_no_harm);
    UNIT_RUN(the_better_proof_stays);
    UNIT_RUN(entries_are_in_order);
    UNIT_RUN(only_the_same_class_regime_and_method_merge);
    return unit_end();
}
