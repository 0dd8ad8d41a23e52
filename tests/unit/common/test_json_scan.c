/* Reading JSON without trees: as strict as the reader with them, the same values, and where something is wrong. */
#include "tests/unit/common/json_oracle.h"
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <math.h>

static void agree(const char *text) {
    if (!UNIT_CHECK(json_oracle_agree(text, strlen(text)))) printf("of %s\n", text);
}

static void what_is_json(void) {
    static const char *const texts[] = {
        "{}",
        "[]",
        " { } ",
        "[[],{}]",
        "[1,2,3]",
        "{\"a\":1,\"b\":[true,false,null]}",
        "[\"\",\"a\",\"\\\"\\\\\\/\"]",
        "[\"\\b\\f\\n\\r\\t\"]",
        "[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]",
        "[\"\\uD83D\\uDE00x\"]",
        "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
        "[0,-0,10,-1,9223372036854775807,-9223372036854775808]",
        "[0.0,-0.0,1.5,1e5,1E+5,1e-5,1.25e2,123456789012345678.0,0.1,305.2155726278822]",
        "[1e308,1e-400,4.9e-324,179769313486231570000000000000000000000.0]",
        "[0.000000000000000000000000000000000000001]",
        "{\"a\":{\"a\":{\"a\":[[[1]]]}}}",
        "[ 1 ,\t2\r\n,3 ]",
        "{\"\":1}",
        "[\"01234567\",\"0123456\",\"012345678901234567\\n\",\"01234567\xc3\xa9\"]",
        "[\"\x7f\"]",
        "[1.0e+22,1e22,1e23,999999999999999.9,0.999999999999999]"};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        json_t *tree = json_loads(texts[k], 0, NULL);
        UNIT_CHECK(tree != NULL);
        json_decref(tree);
        agree(texts[k]);
    }
}

static void what_is_none(void) {
    static const char *const texts[] = {"",
                                        " ",
                                        "1",
                                        "\"a\"",
                                        "null",
                                        "{",
                                        "[",
                                        "}",
                                        "]",
                                        "[1",
                                        "[1,",
                                        "[1,]",
                                        "[,1]",
                                        "[1 2]",
                                        "{\"a\"}",
                                        "{\"a\":}",
                                        "{\"a\":1,}",
                                        "{a:1}",
                                        "{1:1}",
                                        "{\"a\":1 \"b\":2}",
                                        "[}",
                                        "{]",
                                        "[] []",
                                        "[]x",
                                        "[NaN]",
                                        "[nan]",
                                        "[Infinity]",
                                        "[-Infinity]",
                                        "[inf]",
                                        "[1e999]",
                                        "[-1e999]",
                                        "[01]",
                                        "[-]",
                                        "[+1]",
                                        "[1.]",
                                        "[.5]",
                                        "[1e]",
                                        "[1e+]",
                                        "[0x10]",
                                        "[9223372036854775808]",
                                        "[-9223372036854775809]",
                                        "[99999999999999999999999]",
                                        "[tru]",
                                        "[truex]",
                                        "[nulll]",
                                        "['a']",
                                        "[\"a]",
                                        "[\"\\\"]",
                                        "[\"\\x\"]",
                                        "[\"\\u12\"]",
                                        "[\"\\u0000\"]",
                                        "[\"\\ud800\"]",
                                        "[\"\\udc00\"]",
                                        "[\"\\ud800\\u0041\"]",
                                        "[\"\n\"]",
                                        "[\"\t\"]",
                                        "[\"\x01\"]",
                                        "[\"\xff\"]",
                                        "[\"\xc0\x80\"]",
                                        "[\"\xed\xa0\x80\"]",
                                        "[\"\xf5\x80\x80\x80\"]",
                                        "[\"\xe2\x82\"]",
                                        "[\"\xc3",
                                        "\xef\xbb\xbf[]",
                                        "[1]//",
                                        "/**/[]",
                                        "[1,/**/2]",
                                        "{\"a\":1,,\"b\":2}"};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
        json_t *tree = json_loads(texts[k], 0, NULL);
        if (!UNIT_CHECK(!tree)) printf("of %s\n", texts[k]);
        json_decref(tree);
        agree(texts[k]);
    }
    UNIT_CHECK(json_oracle_agree("[1,\0 2]", 7));
    UNIT_CHECK(json_oracle_agree("[1\0]", 4));
    UNIT_CHECK(json_oracle_agree("{\"a\": 1\0}", 9));
    UNIT_CHECK(json_oracle_agree("[\"a\0b\"]", 7));
    UNIT_CHECK(json_oracle_agree("[]\0", 3));
}

static void numbers_of_every_length(void) {
    char text[128];
    uint64_t state = 1;
    for (int k = 0; k < 20000; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double x = ldexp((double)(state >> 11), (int)(state % 120) - 80);
        snprintf(text, sizeof text, "[%.*g, %" PRId64 "]", (int)(state >> 7 & 15) + 3, x, (int64_t)state);
        if (!UNIT_CHECK(json_oracle_agree(text, strlen(text)))) printf("of %s\n", text);
    }
}

/* What stands in a report, with bytes changed, taken out and doubled: whatever it is then, both say the same. */
static void broken_texts(void) {
    static const char whole[] =
        "{\"schema\": \"ceiling-scout/report/1\", \"shape\": [2048, 11008, 4096], \"count\": 64,\n \"flops\": 1.8e11,"
        " \"reason\": null, \"name\": \"a\\\"b\\u00e9\xc3\xa9\", \"rows\": [{\"ok\": true}, {\"ok\": false, \"x\": "
        "-1.5}]}";
    static const char bytes[] = "{}[]\",:\\ \n\t0123456789eE+-.tfnu\x01\x7f\x80\xc3\xff";
    uint64_t state = 7;
    for (int k = 0; k < 60000; k++) {
        char text[2 * sizeof whole];
        size_t n = sizeof whole - 1;
        memcpy(text, whole, n);
        for (int times = 0; times < 1 + k % 3 && n > 1; times++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const size_t at = (size_t)(state >> 33) % n;
            switch (state >> 20 & 3) {
            case 0: text[at] = bytes[(state >> 22) % (sizeof bytes - 1)]; break;
            case 1: memmove(text + at, text + at + 1, --n - at); break;
            case 2: memmove(text + at + 1, text + at, n++ - at); break;
            default: n = at > 0 ? at : 1;
            }
        }
        if (!UNIT_CHECK(json_oracle_agree(text, n))) printf("of %.*s\n", (int)n, text);
    }
}

static void depth_has_a_limit(void) {
    char text[2 * JSON_ORACLE_DEPTH + 3];
    for (int depth = 1; depth <= JSON_ORACLE_DEPTH + 1; depth++) {
        json_scan s;
        json_scan_token token;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        json_scan_begin(&s, text, (size_t)depth * 2, JSON_ORACLE_DEPTH);
        while ((token = json_scan_next(&s)) > JSON_SCAN_END) continue;
        UNIT_INT(token, depth <= JSON_ORACLE_DEPTH ? JSON_SCAN_END : JSON_SCAN_WRONG);
    }
}

static void values_are_stepped_over(void) {
    char text[] = "{\"a\": [1, {\"b\": [2, \"x\"]}, 3], \"c\": 4.5}";
    json_scan s;
    json_scan_begin(&s, text, sizeof text - 1, 8);
    UNIT_INT(json_scan_next(&s), JSON_SCAN_OBJECT);
    UNIT_INT(json_scan_next(&s), JSON_SCAN_KEY);
    UNIT_CHECK(json_scan_skip(&s, json_scan_next(&s)));
    UNIT_INT(json_scan_next(&s), JSON_SCAN_KEY);
    UNIT_CHECK(s.length == 1 && s.text[0] == 'c');
    UNIT_CHECK(json_scan_skip(&s, json_scan_next(&s)));
    UNIT_CHECK(json_scan_real(&s) == 4.5);
    UNIT_INT(json_scan_next(&s), JSON_SCAN_OBJECT_END);
    UNIT_INT(json_scan_next(&s), JSON_SCAN_END);
    UNIT_INT(json_scan_next(&s), JSON_SCAN_END);
    char broken[] = "[[1, 2";
    json_scan_begin(&s, broken, sizeof broken - 1, 8);
    UNIT_CHECK(!json_scan_skip(&s, json_scan_next(&s)));
    UNIT_INT(json_scan_next(&s), JSON_SCAN_WRONG);
}

static void the_place_is_told(void) {
    char text[] = "{\n  \"a\": 1,\n  \"b\": nan\n}";
    json_scan s;
    size_t line, column;
    json_scan_begin(&s, text, sizeof text - 1, 8);
    while (json_scan_next(&s) > JSON_SCAN_END) continue;
    json_scan_place(&s, &line, &column);
    UNIT_INT(line, 3);
    UNIT_INT(column, 8);
    UNIT_CHECK(s.why != NULL);
}

int main(void) {
    UNIT_RUN(what_is_json);
    UNIT_RUN(what_is_none);
    UNIT_RUN(numbers_of_every_length);
    UNIT_RUN(broken_texts);
    UNIT_RUN(depth_has_a_limit);
    UNIT_RUN(values_are_stepped_over);
    UNIT_RUN(the_place_is_told);
    return unit_end();
}
