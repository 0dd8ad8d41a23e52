/* Convolutions that are computed in fp32 between passes of their own: types and layouts that no library has. */
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

static void check(const char *text, int least) {
    const int before = cpu_built_failures;
    cpu_built_check(text, least);
    UNIT_INT(cpu_built_failures, before);
}

static const char *const forms[] = {
    ("\"shape\": [2, 12, 7, 5], \"input\": [2, 6, 13, 9], \"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"stride\": [2, "
     "2], "
     "\"group\": 2, \"bias\": \"channel\""),
    "\"shape\": [1, 33, 17], \"input\": [1, 20, 19], \"kernel\": [3], \"activation\": \"silu\"",
    ("\"shape\": [2, 9, 8, 24], \"input\": [2, 9, 8, 16], \"kernel\": [1, 1], \"layout\": \"nhwc\", \"residual\": 1, "
     "\"bias\": \"channel\", \"activation\": \"relu\""),
    "\"shape\": [1, 16, 8, 8], \"input\": [1, 16, 8, 8], \"kernel\": [3, 3], \"pads\": [1, 1, 1, 1], \"group\": 16",
};

static void weights_of_int8_beside_floats(void) {
    static const char *const types[] = {
        "fp32",
        "fp16",
        "bf16",
    };
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            char text[512];
            snprintf(text, sizeof text, "{\"op\": \"conv\", \"dtype\": \"%s\", \"weight_dtype\": \"int8\", %s}",
                     types[t], forms[k]);
            check(text, 1);
        }
    check("{\"op\": \"conv\", \"dtype\": \"fp32\", \"weight_dtype\": \"int8\", \"weight_scales\": \"channel\", "
          "\"shape\": "
          "[1, 600, 3, 3], \"input\": [1, 700, 3, 3], \"kernel\": [1, 1]}",
          1);
}

static void transposed_halves(void) {
    static const char *const types[] = {
        "\"fp16\", \"weight_dtype\": \"fp16\"",
        "\"bf16\", \"weight_dtype\": \"bf16\"",
        "\"fp16\"",
    };
    static const char *const shapes[] = {
        ("\"shape\": [2, 12, 20, 12], \"input\": [2, 3, 7, 6], \"kernel\": [3, 3], \"output_padding\": [1, 1], "
         "\"pads\": "
         "[1, 1, 1, 1], \"stride\": [3, 2], \"bias\": \"channel\""),
        ("\"shape\": [1, 16, 16, 16], \"input\": [1, 32, 8, 8], \"kernel\": [2, 2], \"stride\": [2, 2], "
         "\"activation\": "
         "\"gelu\""),
        "\"shape\": [1, 4, 5], \"input\": [1, 4, 3], \"kernel\": [3], \"group\": 2",
    };
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < 3; k++) {
            char text[512];
            snprintf(text, sizeof text, "{\"op\": \"conv\", \"transposed\": 1, \"dtype\": %s, %s}", types[t],
                     shapes[k]);
            check(text, 1);
        }
}

static void bytes_whose_channels_come_last(void) {
    static const char *const types[] = {
        "\"uint8\", \"out_dtype\": \"uint8\"",
        "\"uint8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"uint8\"",
        "\"int8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"fp32\"",
        ("\"uint8\", \"weight_dtype\": \"uint8\", \"out_dtype\": \"int8\", \"bias\": "
         "\"channel\", \"activation\": \"relu\""),
    };
    for (size_t k = 0; k < 4; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"op\": \"conv\", \"quant\": \"qdq\", \"layout\": \"nhwc\", \"shape\": [2, 7, 6, 36], \"input\": "
                 "[2, 9, 8, 20], \"kernel\": [3, 3], \"group\": 2, \"dtype\": %s}",
                 types[k]);
        check(text, 1);
    }
}

static void what_is_left_out_is_refused(void) {
    static const char *const rows[] = {
        "\"transposed\": 1, \"shape\": [1, 4, 5], \"input\": [1, 4, 3], \"kernel\": [3]",
        "\"zero_points\": 1, \"shape\": [1, 4, 3], \"input\": [1, 4, 3], \"kernel\": [1]",
    };
    for (size_t k = 0; k < 2; k++) {
        char text[256];
        const int before = cpu_built_failures;
        snprintf(text, sizeof text, "{\"op\": \"conv\", \"weight_dtype\": \"int8\", %s}", rows[k]);
        cpu_built_refused(text, "feature");
        UNIT_INT(cpu_built_failures, before);
    }
}

int main(void) {
    if (!cpu_built_open()) return 1;
    UNIT_RUN(weights_of_int8_beside_floats);
    UNIT_RUN(transposed_halves);
    UNIT_RUN(bytes_whose_channels_come_last);
    UNIT_RUN(what_is_left_out_is_refused);
    cpu_built_close();
    return unit_end();
}
