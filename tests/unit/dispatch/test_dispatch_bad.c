/* Files that are not a dispatch tables: each is refused with one line that says where, whatever it holds. */
#include "tests/unit/dispatch/dispatch_fixture.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static scout_dispatch_note note;

static scout_dispatch_status try_text(const char *text, size_t size) {
    /* memory behind its end is not allocated: a sanitizer sees what reads there */
    char *alone = malloc(size ? size : 1);
    scout_dispatch *d = NULL;
    if (!alone) return SCOUT_DISPATCH_FAILED;
    memcpy(alone, text, size);
    const scout_dispatch_status status = scout_dispatch_open_text(&d, alone, size, NULL, &note);
    free(alone);
    UNIT_CHECK((d != NULL) == (status <= SCOUT_DISPATCH_WARNED));
    scout_dispatch_close(d);
    for (const char *s = note.text; *s; s++) UNIT_CHECK((unsigned char)*s >= ' ');
    return status;
}

static void bad(const char *text, const char *says) {
    UNIT_INT(try_text(text, strlen(text)), SCOUT_DISPATCH_BAD);
    if (!UNIT_CHECK(strstr(note.text, says) != NULL)) printf("    %.80s: %s\n", text, note.text);
}

/* A good table in which one text stands for another. */
static void bad_with(const char *what, const char *instead, const char *says) {
    lab_text good = {.used = 0}, t = {.used = 0};
    lab_add(&good, LAB_HEAD LAB_TUNED LAB_TAIL, 64, "");
    const char *at = strstr(good.text, what);
    if (!UNIT_CHECK(at != NULL)) return;
    lab_add(&t, "%.*s%s%s", (int)(at - good.text), good.text, instead, at + strlen(what));
    bad(t.text, says);
}

static void no_json_is_refused(void) {
    bad("", "expected");
    bad("[]", "an object is expected");
    bad("{\"schema\": \"ceiling-scout/dispatch/1\"} x", "is missing");
    bad("{\"schema\": \"ceiling-scout/dispatch/2\"}", "version 2");
    bad("{\"schema\": \"ceiling-scout/report/1\"}", "not a dispatch table");
    bad("{\"schema\": null}", "not a dispatch table");
    bad("{}", "\"schema\" is missing");
    bad("\n\n{\"a\": tru}", "line 3");
    bad("{\"a\" 1}", "a colon");
    bad("{\"a\": 1,}", "a string");
    bad("{\"a\": [1,]}", "number");
    bad("{\"a\": 01}", "zero");
    bad("{\"a\": .5}", "number");
    bad("{\"a\": 5.}", "number");
    bad("{\"a\": 1e}", "number");
    bad("{\"a\": 1e999}", "too large");
    bad("{\"a\": -1e99999999999999999999}", "too large");
    bad("{\"a\": NaN}", "number");
    bad("{\"a\": 'x'}", "number");
    bad("{a: 1}", "a string");
    bad("{\"a\": \"\n\"}", "control");
    bad("{\"a\": \"\xff\"}", "UTF-8");
    bad("{\"a\": \"\xc0\xaf\"}", "UTF-8");
    bad("{\"a\": \"\xed\xa0\x80\"}", "UTF-8");
    bad("{\"a\": \"\xf5\x80\x80\x80\"}", "UTF-8");
    bad("{\"a\": \"\xe2\x82\"}", "UTF-8");
    bad("{\"a\": \"\\x\"}", "escape");
    bad("{\"a\": \"\\u12\"}", "hex");
    bad("{\"a\": \"\\ud800\"}", "surrogate");
    bad("{\"a\": \"\\ud800\\u0041\"}", "surrogate");
    bad("{\"a\": \"\\udc00\"}", "\\udc00");
    bad("{\"a\": \"\\u0000\"}", "\\u0000");
    bad("{\"a\": \"", "end of a string");
}

static void contradictions_are_refused(void) {
    bad_with("\"class\": \"name=", "\"class\": 7, \"x\": \"", "a string is expected");
    bad_with("\"GPU A\", \"cap", "\"\", \"cap", "name is empty");
    bad_with("\"GPU A\", \"cap", "null, \"cap", "name is empty");
    bad_with("\"driver\": \"580.159.04\", ", "", "\"driver\" is missing");
    bad_with("\"units\": 132", "\"units\": -1", "negative");
    bad_with("\"units\": 132", "\"units\": 1.5", "whole number");
    bad_with("\"units\": 132", "\"units\": 9223372036854775808", "whole number");
    bad_with("\"cudnn\"", "\"cublaslt\"", "listed twice");
    bad_with("\"method\": 5", "\"method\": 5, \"method\": 5", "twice");
    bad_with("\"tuned\"", "\"best\"", "a choice is");
    bad_with("\"tuned\"", "null", "a choice is");
    bad_with("\"version\": \"13.1.0\"}, \"algo\"", "\"version\": \"13.1.1\"}, \"algo\"", "not one of the device's");
    bad_with("\"42ff00\"", "\"42ff0\"", "hex");
    bad_with("\"42ff00\"", "\"42fg00\"", "hex");
    bad_with("{\"a\": [1, \"x y\"]}", "[]", "an object is expected");
    bad_with("\"expected_us\": 9", "\"expected_us\": 0", "more than 0");
    bad_with("\"expected_us\": 9", "\"expected_us\": -3", "more than 0");
    bad_with("\"expected_us\": 9", "\"expected_us\": 1e-999", "more than 0");
    bad_with("\"ratio_ci\": 0.01", "\"ratio_ci\": -0.01", "negative");
    bad_with("\"key\": \"gemm;shape=64,", "\"key\": \"gemm; shape=64,", "no canonical key");
    bad_with("\"key\": \"gemm;shape=64,", "\"key\": \"gemm\\u001f=64,", "no canonical key");
    bad_with("\"implementation\": \"cublaslt\"", "\"implementation\": \"\"", "implementation is empty");
    bad_with("\"method\": 5, ", "", "is missing");
}

static void nothing_is_left_over_and_keys_stand_there_once(void) {
    lab_text t = {.used = 0}, longer = {.used = 0};
    lab_add(&longer, LAB_HEAD LAB_TUNED LAB_TAIL " 5", 64, "");
    bad(longer.text, "more after the end");
    lab_add(&t, LAB_HEAD LAB_TUNED ",", 64, "");
    lab_add(&t, LAB_TUNED LAB_TAIL, 64, "");
    bad(t.text, "twice");
}

static void entries_come_after_their_device(void) {
    bad("{\"schema\": \"ceiling-scout/dispatch/1\", \"entries\": []}", "must come before");
}

static void every_cut_is_refused(void) {
    lab_text t = {.used = 0};
    lab_add(&t, LAB_HEAD LAB_TUNED LAB_TAIL, 64, "");
    for (size_t size = 0; size < t.used; size++) UNIT_INT(try_text(t.text, size), SCOUT_DISPATCH_BAD);
    UNIT_INT(try_text(t.text, t.used), SCOUT_DISPATCH_OK);
}

/* Any byte of it may be another one: whatever comes of that, it is an answer. */
static void every_byte_may_change(void) {
    static const char others[] = {0, '"', '\\', '{', ']', ',', '9', '-', 'e', (char)0xe2};
    lab_text t = {.used = 0};
    lab_add(&t, LAB_HEAD LAB_TUNED LAB_TAIL, 64, "");
    for (size_t k = 0; k < t.used; k++) {
        const char kept = t.text[k];
        for (size_t n = 0; n < sizeof others; n++) {
            t.text[k] = others[n];
            const scout_dispatch_status status = try_text(t.text, t.used);
            UNIT_CHECK(status == SCOUT_DISPATCH_OK || (status == SCOUT_DISPATCH_BAD && note.text[0]));
        }
        t.text[k] = kept;
    }
}

static void depth_and_size_are_bounded(void) {
    enum { SIZE = 4 << 20 };
    char *text = malloc(SIZE + 1);
    if (!UNIT_CHECK(text != NULL)) return;
    memset(text, '[', SIZE);
    text[SIZE] = 0;
    memcpy(text, "{\"a\":", 5);
    bad(text, "nested");
    memset(text, '7', SIZE); /* one number */
    memcpy(text, "{\"a\":", 5);
    bad(text, "too large");
    memset(text, 'x', SIZE); /* one text */
    memcpy(text, "{\"a\":\"", 6);
    bad(text, "end of a string");
    free(text);
}

int main(void) {
    UNIT_RUN(no_json_is_refused);
    UNIT_RUN(contradictions_are_refused);
    UNIT_RUN(nothing_is_left_over_and_keys_stand_there_once);
    UNIT_RUN(entries_come_after_their_device);
    UNIT_RUN(every_cut_is_refused);
    UNIT_RUN(every_byte_may_change);
    UNIT_RUN(depth_and_size_are_bounded);
    return unit_end();
}
