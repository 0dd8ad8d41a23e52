/* The reader of JSON without trees beside the one with: both take the same texts, and see the same in them. Shared by a
 * unit test and a fuzzer. */
#ifndef TESTS_JSON_ORACLE_H
#define TESTS_JSON_ORACLE_H

#include "common/json_scan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Whether the value that begins with the token is the tree's. */
static bool json_oracle_same(json_scan *s, json_scan_token token, const json_t *tree) {
    size_t seen = 0;
    switch (token) {
    case JSON_SCAN_TEXT:
        return json_is_string(tree) && json_string_length(tree) == s->length &&
               memcmp(json_string_value(tree), s->text, s->length) == 0;
    case JSON_SCAN_INT: return json_is_integer(tree) && json_integer_value(tree) == json_scan_int(s);
    case JSON_SCAN_REAL: return json_is_real(tree) && json_real_value(tree) == json_scan_real(s);
    case JSON_SCAN_TRUE: return json_is_true(tree);
    case JSON_SCAN_FALSE: return json_is_false(tree);
    case JSON_SCAN_NULL: return json_is_null(tree);
    case JSON_SCAN_ARRAY:
        if (!json_is_array(tree)) return false;
        while ((token = json_scan_next(s)) != JSON_SCAN_ARRAY_END)
            if (token <= JSON_SCAN_END || !json_oracle_same(s, token, json_array_get(tree, seen++))) return false;
        return json_array_size(tree) == seen;
    case JSON_SCAN_OBJECT:
        if (!json_is_object(tree)) return false;
        while ((token = json_scan_next(s)) == JSON_SCAN_KEY) {
            char *key = strndup(s->text, s->length);
            const json_t *value = json_object_get(tree, key);
            free(key);
            seen++;
            if (!json_oracle_same(s, json_scan_next(s), value)) return false;
        }
        return token == JSON_SCAN_OBJECT_END && json_object_size(tree) == seen;
    default: return false;
    }
}

/* Beyond this the reader without trees gives up, and the other one has to be kept from it. */
enum { JSON_ORACLE_DEPTH = 64 };

static bool json_oracle_agree(const char *text, size_t n) {
    json_scan s;
    char *copy = malloc(n + 1), *again = malloc(n + 1);
    bool good = copy && again;
    if (!good) abort();
    memcpy(copy, text, n), memcpy(again, text, n);
    copy[n] = again[n] = 0;
    json_scan_begin(&s, copy, n, JSON_ORACLE_DEPTH);
    json_scan_token token = json_scan_next(&s);
    while (token > JSON_SCAN_END) token = json_scan_next(&s);
    const bool deep = s.why && strcmp(s.why, "nested too deeply") == 0;
    if (memchr(text, 0, n)) {
        // No JSON has a NUL. jansson is not asked: it skips one right behind a number, as the end of its buffer.
        good = token != JSON_SCAN_END && s.why;
    } else if (!deep) {
        json_t *tree = json_loadb(text, n, 0, NULL), *strict = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        good = (tree != NULL) == (token == JSON_SCAN_END) && (tree != NULL) == (s.why == NULL);
        if (good && strict) {
            json_scan_begin(&s, again, n, JSON_ORACLE_DEPTH);
            good = json_oracle_same(&s, json_scan_next(&s), strict) && json_scan_next(&s) == JSON_SCAN_END;
        }
        json_decref(tree);
        json_decref(strict);
    }
    free(copy);
    free(again);
    return good;
}

#endif
