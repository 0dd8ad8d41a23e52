/* What moves data on the CPU device (moves, embeddings, rotations, quantising): every candidate against the reference,
 * references against values written by hand, whole numbers below a bound, and what is refused. */
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/op/embedding.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static void check(const char *text, int least) {
    const int before = cpu_built_failures;
    cpu_built_check(text, least);
    UNIT_INT(cpu_built_failures, before);
}

/* The text goes on with the type. */
static void check_types(const char *start, int least) {
    static const char *const types[] = {"fp32", "fp16", "bf16", "int8", "int64", "bool", "int32", "fp64"};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        char text[512];
        snprintf(text, sizeof text, "%s, \"dtype\": \"%s\"}", start, types[t]);
        check(text, least);
    }
}

static void moves_of_every_type(void) {
    static const char *const texts[] = {
        "{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [65, 129], \"input\": [129, 65], \"perm\": [1, 0]",
        "{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [3, 1, 12, 17, 7], \"input\": [1, 17, 3, 12, 7], "
        "\"perm\": "
        "[2, 0, 3, 1, 4]",
        "{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [2, 63, 127, 5], \"input\": [5, 127, 63, 2], \"perm\": "
        "[3, 2, "
        "1, 0]",
        "{\"op\": \"move\", \"what\": \"concat\", \"shape\": [3, 17, 7], \"axis\": 1, \"inputs\": 3, \"sizes\": [1, 6, "
        "10]",
        "{\"op\": \"move\", \"what\": \"split\", \"shape\": [3, 18, 7], \"axis\": 1, \"outputs\": 3",
        "{\"op\": \"move\", \"what\": \"split\", \"shape\": [129, 7], \"axis\": 0, \"outputs\": 2, \"sizes\": [128, 1]",
        "{\"op\": \"move\", \"what\": \"slice\", \"shape\": [2, 5, 63], \"input\": [2, 9, 127]",
        "{\"op\": \"move\", \"what\": \"slice\", \"shape\": [2, 5, 63], \"input\": [2, 9, 127], \"steps\": [2, 2], "
        "\"axes\": "
        "[1, -1]",
        "{\"op\": \"move\", \"what\": \"expand\", \"shape\": [2, 4, 4, 65, 3], \"input\": [4, 1, 65, 3]",
        "{\"op\": \"move\", \"what\": \"expand\", \"shape\": [7, 1000], \"input\": [7, 1]",
        "{\"op\": \"move\", \"what\": \"tile\", \"shape\": [6, 10], \"input\": [2, 5]",
        "{\"op\": \"move\", \"what\": \"repeat\", \"shape\": [2, 3, 10, 14], \"input\": [2, 3, 5, 7]",
        "{\"op\": \"move\", \"what\": \"repeat\", \"shape\": [3, 33, 65], \"input\": [3, 11, 65]",
        "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [4, 10], \"input\": [2, 5], \"pads\": [1, 2, 1, 3]",
        "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [2, 9, 71], \"input\": [2, 5, 65], \"pads\": [0, 3, 2, 0, 1, "
        "4], \"mode\": "
        "\"reflect\"",
        "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [7, 70], \"input\": [2, 65], \"pads\": [4, 2, 1, 3], "
        "\"mode\": \"edge\"",
        "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [9, 70], \"input\": [3, 65], \"pads\": [2, 5, 4, 0], "
        "\"mode\": \"wrap\"",
        "{\"op\": \"move\", \"what\": \"gather\", \"shape\": [3, 65, 7], \"axis\": 1, \"input\": [3, 17, 7]",
        "{\"op\": \"move\", \"what\": \"gather\", \"shape\": [3, 7], \"axis\": 1, \"input\": [3, 17, 7], "
        "\"index_dtype\": "
        "\"int32\"",
        "{\"op\": \"move\", \"what\": \"gathernd\", \"shape\": [5, 6, 3], \"indices\": [5, 6, 2], \"input\": [9, 8, 3]",
        "{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [1, 1], \"input\": [1, 1], \"perm\": [1, 0]",
        "{\"op\": \"move\", \"what\": \"gatherelements\", \"shape\": [5, 7, 65], \"axis\": 1, \"input\": [5, 9, 65]",
        "{\"op\": \"move\", \"what\": \"gatherelements\", \"shape\": [5, 7, 33], \"axis\": 2, \"input\": [6, 7, 65], "
        "\"index_dtype\": \"int32\"",
        "{\"op\": \"move\", \"what\": \"gatherelements\", \"shape\": [11, 3], \"axis\": 0, \"input\": [4, 3]",
        "{\"op\": \"move\", \"what\": \"gatherelements\", \"shape\": [1000], \"axis\": 0, \"input\": [17]",
        "{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [9, 8, 3], \"indices\": [5, 6, 2], \"updates\": [5, 6, "
        "3]",
        "{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [33, 257], \"indices\": [70, 1], \"updates\": [70, "
        "257]",
        "{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [17, 300], \"axis\": 0, \"updates\": [65, 290]",
        "{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [6, 7, 65], \"axis\": 2, \"updates\": [5, 7, "
        "33], "
        "\"index_dtype\": \"int32\"",
        "{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [5, 19, 3], \"axis\": 1, \"updates\": [5, 40, 2]",
        "{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [17], \"axis\": 0, \"updates\": [1000]",
        "{\"op\": \"move\", \"what\": \"trilu\", \"shape\": [3, 17, 33], \"upper\": 1",
        "{\"op\": \"move\", \"what\": \"trilu\", \"shape\": [33, 17], \"upper\": 0, \"diagonal\": 3",
        "{\"op\": \"move\", \"what\": \"trilu\", \"shape\": [5, 6], \"upper\": 1, \"diagonal\": -9",
        "{\"op\": \"move\", \"what\": \"trilu\", \"shape\": [5, 6], \"upper\": 0, \"diagonal\": -2",
        "{\"op\": \"move\", \"what\": \"depthtospace\", \"shape\": [2, 3, 10, 14], \"input\": [2, 12, 5, 7]",
        "{\"op\": \"move\", \"what\": \"depthtospace\", \"shape\": [1, 3, 12, 21], \"input\": [1, 27, 4, 7], \"mode\": "
        "\"CRD\"",
        "{\"op\": \"move\", \"what\": \"spacetodepth\", \"shape\": [2, 12, 5, 7], \"input\": [2, 3, 10, 14]",
        "{\"op\": \"move\", \"what\": \"spacetodepth\", \"shape\": [1, 27, 4, 7], \"input\": [1, 3, 12, 21], \"mode\": "
        "\"CRD\"",
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) check_types(texts[k], 1);
}

/* Updates that are combined with what is there, in every type of floats. */
static void scatters_that_combine(void) {
    static const char *const forms[] = {
        "\"what\": \"scatternd\", \"shape\": [33, 65], \"indices\": [70, 1], \"updates\": [70, 65]",
        "\"what\": \"scatterelements\", \"shape\": [17, 300], \"axis\": 0, \"updates\": [65, 290]",
        "\"what\": \"scatterelements\", \"shape\": [1000, 1], \"axis\": 0, \"updates\": [4000, 1]",
        "\"what\": \"scatterelements\", \"shape\": [7, 20], \"axis\": 1, \"updates\": [7, 65]"};
    static const char *const types[] = {"fp32", "fp16", "bf16", "fp64"};
    static const char *const ways[] = {"add", "mul", "max", "min"};
    for (size_t k = 0; k < 4 * 4 * 4; k++) {
        char text[512];
        snprintf(text, sizeof text, "{\"op\": \"move\", %s, \"dtype\": \"%s\", \"reduction\": \"%s\"}", forms[k / 16],
                 types[k / 4 % 4], ways[k % 4]);
        check(text, 1);
    }
}

static void check_cast(const char *from, const char *to, const char *fields) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"op\": \"move\", \"what\": \"cast\", \"shape\": [3, 333], \"dtype\": \"%s\", \"out_dtype\": \"%s\"%s}",
             from, to, fields);
    check(text, 1);
}

static void casts(void) {
    static const char *const pairs[][2] = {
        {"fp32", "fp16"},  {"fp16", "fp32"},  {"fp32", "bf16"},      {"bf16", "fp16"},      {"int64", "bool"},
        {"bool", "fp32"},  {"int8", "fp32"},  {"int32", "int64"},    {"int64", "fp32"},     {"fp32", "fp64"},
        {"bool", "int8"},  {"fp32", "int32"}, {"int64", "int32"},    {"int64", "int8"},     {"int32", "uint8"},
        {"int8", "uint8"}, {"fp32", "int8"},  {"fp16", "uint8"},     {"fp64", "int8"},      {"fp64", "fp16"},
        {"int64", "fp16"}, {"int32", "fp16"}, {"fp32", "fp8e4m3fn"}, {"bf16", "fp8e4m3fn"}, {"fp8e4m3fn", "fp16"},
        {"fp64", "int64"}, {"bf16", "int64"}, {"uint8", "bf16"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) check_cast(pairs[k][0], pairs[k][1], "");
}

static void casts_of_few_bits(void) {
    static const char *const few[] = {"int4",    "uint4",       "int2",        "uint2",
                                      "fp4e2m1", "fp8e4m3fnuz", "fp8e5m2fnuz", "fp8e8m0"};
    static const char *const others[] = {"fp32", "fp16", "bf16", "int8", "uint8"};
    for (size_t k = 0; k < 8; k++) {
        for (size_t other = 0; other < 5; other++)
            check_cast(few[k], others[other], ""), check_cast(others[other], few[k], "");
        for (size_t to = 0; to < 8; to++)
            if (to != k) check_cast(few[k], few[to], "");
    }
    check_cast("fp32", "fp8e8m0", ", \"round_mode\": \"down\"");
    check_cast("bf16", "fp8e8m0", ", \"round_mode\": \"nearest\"");
    check_cast("fp32", "fp8e5m2fnuz", ", \"saturate\": 0");
}

static void libraries_move_too(void) {
    check("{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [2, 12, 64, 33], \"input\": [2, 12, 33, 64], "
          "\"perm\": [0, "
          "1, 3, 2]}",
          2);
    check("{\"op\": \"move\", \"what\": \"cast\", \"shape\": [7, 129], \"dtype\": \"int8\", \"out_dtype\": \"fp32\"}",
          2);
    check("{\"op\": \"move\", \"what\": \"cast\", \"shape\": [7, 129], \"dtype\": \"bf16\", \"out_dtype\": \"fp32\"}",
          cpu_onednn_uses(dnnl_cpu_isa_avx512_core) ? 2 : 1);
}

static void embeddings(void) {
    check_types("{\"op\": \"embedding\", \"shape\": [65, 17], \"table\": 1000", 1);
    check("{\"op\": \"embedding\", \"shape\": [1, 768], \"table\": 3, \"index_dtype\": \"int32\"}", 1);
    check("{\"op\": \"embedding\", \"shape\": [1000, 1], \"table\": 1}", 1);
}

/* Tables of few bits, with blocks that begin and end anywhere in rows. */
static void embeddings_in_blocks(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"}, *const stored[] = {"int4", "uint4", "int8", "uint8"};
    static const int cols[] = {1024, 66, 1030}, blocks[] = {32, 16, 7};
    for (int k = 0; k < 3 * 4 * 3 * 2; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"op\": \"embedding\", \"shape\": [17, %d], \"table\": 9, \"dtype\": \"%s\", \"weight_dtype\": "
                 "\"%s\", \"block_size\": %d, \"zero_points\": %d, \"index_dtype\": \"int32\"}",
                 cols[k / 24], types[k % 3], stored[k / 3 % 4], blocks[k / 24], k / 12 % 2);
        check(text, 1);
    }
    check("{\"op\": \"embedding\", \"shape\": [3, 129], \"table\": 5, \"weight_dtype\": \"int8\", \"block_size\": 200}",
          1);
    static const char longer[] = "{\"op\": \"embedding\", \"shape\": [3, 130], \"table\": 5, \"weight_dtype\": "
                                 "\"int4\", \"block_size\": 9223372036854775807}";
    cpu_built b;
    check(longer, 1);
    cpu_built_make(&b, longer, 1 << 20); /* kernels add a row's columns to it */
    UNIT_CHECK(b.built && embedding_problem_of(&b.op).block == 130 && embedding_problem_of(&b.op).blocks == 1);
    cpu_built_end(&b);
}

static void rotations(void) {
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    for (int t = 0; t < 3; t++)
        for (int way = 0; way < 16; way++) {
            char text[256];
            snprintf(text, sizeof text,
                     "{\"op\": \"rotary\", \"shape\": [2, 3, 17, 66], \"dtype\": \"%s\", \"interleaved\": %d, "
                     "\"rotary_dim\": %d, \"angle_dim\": %d, \"angle_batch\": %d}",
                     types[t], way % 2, way / 2 % 2 ? 34 : 66, (way / 2 % 2 ? 34 : 66) / (way / 4 % 2 ? 1 : 2),
                     way / 8 ? 2 : 1);
            check(text, 1);
        }
    check("{\"op\": \"rotary\", \"shape\": [1, 1, 1, 2]}", 1);
}

static void quantising(void) {
    static const char *const floats[] = {"fp32", "fp16", "bf16"}, *const bytes[] = {"int8", "uint8"};
    for (int f = 0; f < 3; f++)
        for (int b = 0; b < 2; b++)
            for (int way = 0; way < 8; way++) {
                char text[320];
                const int back = way & 1;
                snprintf(text, sizeof text,
                         "{\"op\": \"quantize\", \"what\": \"%s\", \"shape\": [3, 5, 1031], \"dtype\": \"%s\", "
                         "\"out_dtype\": \"%s\"%s%s}",
                         back ? "dequantize" : "quantize", back ? bytes[b] : floats[f], back ? floats[f] : bytes[b],
                         way & 2 ? ", \"axis\": 1" : "", way & 4 ? ", \"zero_points\": 1" : "");
                check(text, 1);
            }
    static const char *const few[] = {"int4", "uint4", "int16",   "uint16",      "fp8e4m3fn",   "fp8e5m2",
                                      "int2", "uint2", "fp4e2m1", "fp8e4m3fnuz", "fp8e5m2fnuz", "uint8"};
    enum { FEW = sizeof few / sizeof *few };
    static const char *const ways[] = {"", ", \"axis\": 1", ", \"axis\": 1, \"block_size\": 4",
                                       ", \"axis\": 2, \"block_size\": 16"};
    for (int k = 0; k < FEW * 4 * 4; k++) { /* uint8 by blocks alone */
        char text[320];
        const char *const way = ways[k / FEW % 4], *const f = floats[k / (4 * FEW) % 3];
        const int back = k / (4 * FEW) & 1;
        if (k % FEW == FEW - 1 && !strstr(way, "block")) continue;
        snprintf(text, sizeof text,
                 "{\"op\": \"quantize\", \"what\": \"%s\", \"shape\": [3, 5, 331], \"dtype\": \"%s\", "
                 "\"out_dtype\": \"%s\", \"zero_points\": %d%s}",
                 back ? "dequantize" : "quantize", back ? few[k % FEW] : f, back ? f : few[k % FEW], k % 2, way);
        check(text, 1);
    }
    check("{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [3, 32], \"dtype\": \"fp32\", \"out_dtype\": "
          "\"int8\", \"order_in\": 1, \"order_out\": 1}",
          1);
    check("{\"op\": \"quantize\", \"what\": \"dynamic\", \"shape\": [3, 1031], \"dtype\": \"fp32\", \"out_dtype\": "
          "\"uint8\"}",
          1);
    check("{\"op\": \"quantize\", \"what\": \"dynamic\", \"shape\": [70000], \"dtype\": \"bf16\", \"out_dtype\": "
          "\"uint8\"}",
          1);
    check(
        "{\"op\": \"quantize\", \"what\": \"dynamic\", \"shape\": [1], \"dtype\": \"fp16\", \"out_dtype\": \"uint8\"}",
        1);
}

/* ---- references against what is written here ---- */

static void expect_output(cpu_built *b, const char *output, const double *want, int64_t count, double other) {
    for (int64_t k = 0; k < count; k++) cpu_built_put(b, output, k, want[k]);
    UNIT_CHECK(cpu_built_accepts(b));
    for (int64_t k = 0; k < count; k++) {
        cpu_built_put(b, output, k, want[k] + other);
        UNIT_CHECK(!cpu_built_accepts(b));
        cpu_built_put(b, output, k, want[k]);
    }
}

static void begin(cpu_built *b, const char *text, const char *tensor, int64_t count) {
    cpu_built_make(b, text, 1 << 20);
    UNIT_CHECK(b->built);
    cpu_built_fill(b, 3);
    for (int64_t k = 0; k < count; k++) cpu_built_put(b, tensor, k, (double)k);
}

static void references_by_hand(void) {
    cpu_built b;
    begin(&b, "{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [3, 2], \"input\": [2, 3], \"perm\": [1, 0]}",
          "x", 6);
    expect_output(&b, "y", (const double[]){0, 3, 1, 4, 2, 5}, 6, 1);
    cpu_built_end(&b);
    begin(
        &b,
        "{\"op\": \"move\", \"what\": \"slice\", \"shape\": [2, 2], \"input\": [2, 4], \"steps\": [2], \"axes\": [1]}",
        "x", 8);
    expect_output(&b, "y", (const double[]){0, 2, 4, 6}, 4, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"move\", \"what\": \"tile\", \"shape\": [2, 4], \"input\": [1, 2]}", "x", 2);
    expect_output(&b, "y", (const double[]){0, 1, 0, 1, 0, 1, 0, 1}, 8, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [4], \"input\": [2], \"pads\": [1, 1]}", "x", 2);
    cpu_built_put(&b, "x", 0, 7);
    expect_output(&b, "y", (const double[]){0, 7, 1, 0}, 4, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"move\", \"what\": \"repeat\", \"shape\": [2, 4], \"input\": [1, 2]}", "x", 2);
    expect_output(&b, "y", (const double[]){0, 0, 1, 1, 0, 0, 1, 1}, 8, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [2, 2], \"axis\": 0, \"updates\": [2, 1]}",
          "x", 4);
    for (int k = 0; k < 2; k++) cpu_built_put(&b, "indices", k, 1), cpu_built_put(&b, "updates", k, 7 + k);
    expect_output(&b, "y", (const double[]){0, 1, 8, 3}, 4, 1); /* the last one stays */
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [2, 2], \"indices\": [2, 1], \"updates\": [2, 2], "
          "\"reduction\": \"add\"}",
          "x", 4);
    for (int k = 0; k < 4; k++) cpu_built_put(&b, "indices", k / 2, 1), cpu_built_put(&b, "updates", k, 10 + k);
    expect_output(&b, "y", (const double[]){0, 1, 24, 27}, 4, 1);
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [7], \"input\": [3], \"pads\": [2, 2], \"mode\": "
          "\"reflect\"}",
          "x", 3);
    expect_output(&b, "y", (const double[]){2, 1, 0, 1, 2, 1, 0}, 7, 1);
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"move\", \"what\": \"pad\", \"shape\": [6], \"input\": [3], \"pads\": [2, 1], \"mode\": \"edge\"}",
          "x", 3);
    expect_output(&b, "y", (const double[]){0, 0, 0, 1, 2, 2}, 6, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"move\", \"what\": \"gather\", \"shape\": [2, 2], \"input\": [2, 3], \"axis\": 1}", "x", 6);
    cpu_built_put(&b, "indices", 0, 2), cpu_built_put(&b, "indices", 1, 0);
    expect_output(&b, "y", (const double[]){2, 0, 5, 3}, 4, 1);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"embedding\", \"shape\": [2, 2], \"table\": 3}", "table", 6);
    cpu_built_put(&b, "indices", 0, 2), cpu_built_put(&b, "indices", 1, 1);
    expect_output(&b, "out", (const double[]){4, 5, 2, 3}, 4, 1);
    cpu_built_end(&b);
    begin(&b, /* (code - 5) * scale of row 1, whose blocks have scales 3 and 4 */
          "{\"op\": \"embedding\", \"shape\": [1, 4], \"table\": 2, \"weight_dtype\": \"int4\", \"block_size\": 2, "
          "\"zero_points\": 1}",
          "table", 8);
    cpu_built_put(&b, "indices", 0, 1);
    for (int k = 0; k < 4; k++) cpu_built_put(&b, "scales", k, 1 + k), cpu_built_put(&b, "zero_points", k, 5);
    cpu_built_put(&b, "table", 7, -8);
    expect_output(&b, "out", (const double[]){-3, 0, 4, -52}, 4, 0.01);
    cpu_built_end(&b);
    begin(&b, "{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4]}", "x", 4);
    for (int k = 0; k < 2; k++) cpu_built_put(&b, "cos", k, 2 + k), cpu_built_put(&b, "sin", k, 5 * (1 + k));
    expect_output(&b, "y", (const double[]){-10, -27, 4, 19}, 4, 0.01);
    cpu_built_end(&b);
    static const double turned[2][4] = {{-10, -15, 8, 23}, {-5, 3, -13, 31}}; /* halves, neighbours */
    for (int pairs = 0; pairs < 2; pairs++) {
        begin(&b,
              pairs ? "{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"angle_dim\": 4, \"interleaved\": 1}"
                    : "{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"angle_dim\": 4}",
              "x", 4);
        for (int k = 0; k < 4; k++) cpu_built_put(&b, "cos", k, 2 + k), cpu_built_put(&b, "sin", k, 5 + k);
        expect_output(&b, "y", turned[pairs], 4, 0.01);
        cpu_built_end(&b);
    }
}

static void places_of_marks_and_back(void) {
    static const char *const types[] = {"bool", "fp32", "int64"}, *const outs[] = {"int64", "fp32", "bool"};
    for (int t = 0; t < 3; t++) {
        char text[300];
        snprintf(
            text, sizeof text,
            "{\"op\": \"move\", \"what\": \"nonzero\", \"shape\": [3, 2310], \"input\": [7, 5, 66], \"dtype\": \"%s\", "
            "\"out_dtype\": \"int64\"}",
            types[t]);
        check(text, 1);
        for (int axis = 0; axis < 3; axis++) {
            static const char *const shapes[] = {"[9, 4, 33]", "[4, 9, 33]", "[4, 33, 9]"};
            snprintf(
                text, sizeof text,
                "{\"op\": \"move\", \"what\": \"onehot\", \"shape\": %s, \"input\": [4, 33], \"axis\": %d, \"dtype\": "
                "\"int64\", \"out_dtype\": \"%s\"}",
                shapes[axis], axis, outs[t]);
            check(text, 1);
        }
    }
    cpu_built b;
    begin(&b, "{\"op\": \"move\", \"what\": \"nonzero\", \"shape\": [2, 4], \"input\": [2, 2], \"dtype\": \"int64\"}",
          "x", 4);
    cpu_built_put(&b, "x", 2, 0); /* 0, 1, 0, 3 */
    expect_output(&b, "y", (const double[]){0, 1, 0, 0, 1, 1, 0, 0}, 8, 1);
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"move\", \"what\": \"onehot\", \"shape\": [2, 3], \"input\": [2], \"axis\": 1, \"dtype\": "
          "\"int64\", "
          "\"out_dtype\": \"fp32\"}",
          "indices", 2);
    expect_output(&b, "y", (const double[]){1, 0, 0, 0, 1, 0}, 6, 1);
    cpu_built_end(&b);
}

/* Below the normal numbers of fp16 its steps grow no smaller: the nearest one may be off by a large part of a number.
 */
static void the_least_numbers_are_rounded_to_their_steps(void) {
    const double step = 0x1p-24;
    cpu_built b;
    begin(&b, "{\"op\": \"rotary\", \"shape\": [1, 1, 1, 2], \"dtype\": \"fp16\"}", "x", 2);
    cpu_built_put(&b, "x", 0, 2 * step), cpu_built_put(&b, "x", 1, 0);
    cpu_built_put(&b, "cos", 0, 0.3), cpu_built_put(&b, "sin", 0, 0); /* 0.6 of a step */
    cpu_built_put(&b, "y", 0, step), cpu_built_put(&b, "y", 1, 0);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 0, 4 * step);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void quantised_by_hand(void) {
    cpu_built b;
    begin(
        &b,
        "{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"uint8\", \"zero_points\": 1}",
        "x", 4);
    cpu_built_put(&b, "scales", 0, 0.25), cpu_built_put(&b, "zero_points", 0, 10);
    cpu_built_put(&b, "x", 2, -3), cpu_built_put(&b, "x", 3, 100);
    for (int k = 0; k < 4; k++) cpu_built_put(&b, "y", k, (const double[]){10, 14, 0, 255}[k]);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 1, 13); /* one step off */
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"quantize\", \"what\": \"dequantize\", \"shape\": [2], \"dtype\": \"int8\", \"out_dtype\": "
          "\"fp32\"}",
          "x", 2);
    cpu_built_put(&b, "scales", 0, 0.5), cpu_built_put(&b, "x", 0, -7);
    expect_output(&b, "y", (const double[]){-3.5, 0.5}, 2, 1e-5);
    cpu_built_end(&b);
    begin(&b,
          "{\"op\": \"quantize\", \"what\": \"dequantize\", \"shape\": [1, 4], \"dtype\": \"int16\", \"out_dtype\": "
          "\"fp32\", \"axis\": 1, \"block_size\": 3}",
          "x", 4);
    cpu_built_put(&b, "scales", 0, 0.5), cpu_built_put(&b, "scales", 1, 2), cpu_built_put(&b, "x", 3, -300);
    expect_output(&b, "y", (const double[]){0, 0.5, 1, -600}, 4, 1e-3);
    cpu_built_end(&b);
}

/* ---- whole numbers below a bound ---- */

static void places_are_below_their_bound(void) {
    enum { COUNT = 5000 };
    static int64_t places[COUNT];
    static int32_t lengths[COUNT];
    scout_why why;
    int seen[7] = {0}, high = 0;
    UNIT_CHECK(cpu_fill(places, sizeof places, SCOUT_INT64, SCOUT_FILL_BELOW, SCOUT_FILL_SEED(7, 99), &why) ==
               SCOUT_OK);
    for (int k = 0; k < COUNT; k++)
        if (UNIT_CHECK(places[k] >= 0 && places[k] < 7)) seen[places[k]]++;
    for (int k = 0; k < 7; k++) UNIT_CHECK(seen[k] > COUNT / 7 / 2 && seen[k] < COUNT / 7 * 2);
    UNIT_CHECK(cpu_fill(lengths, sizeof lengths, SCOUT_INT32, SCOUT_FILL_NEAR, SCOUT_FILL_SEED(6400, 5), &why) ==
               SCOUT_OK);
    for (int k = 0; k < COUNT; k++) UNIT_CHECK(lengths[k] >= 6300 && lengths[k] < 6400);
    UNIT_CHECK(cpu_fill(lengths, sizeof lengths, SCOUT_INT32, SCOUT_FILL_NEAR, SCOUT_FILL_SEED(65, 5), &why) ==
               SCOUT_OK);
    for (int k = 0; k < COUNT; k++) high += lengths[k] == 64;
    UNIT_CHECK(high > COUNT / 3 && high < COUNT);
    UNIT_CHECK(cpu_fill(lengths, sizeof lengths, SCOUT_FP64, SCOUT_FILL_BELOW, SCOUT_FILL_SEED(65, 5), &why) ==
               SCOUT_NO);
    UNIT_CHECK(cpu_fill(lengths, sizeof lengths, SCOUT_INT32, SCOUT_FILL_BELOW, 5, &why) == SCOUT_NO);
}

/* Boxes have a corner behind the other one and lie in their square, in the coarsest type too. */
static void boxes_are_boxes(void) {
    enum { COUNT = 4000, SIDE = 1023 };
    static const uint32_t types[] = {SCOUT_FP32, SCOUT_FP16, SCOUT_BF16};
    static float boxes[COUNT];
    for (int t = 0; t < 3; t++) {
        scout_why why;
        double x[COUNT], mean = 0;
        UNIT_CHECK(cpu_fill(boxes, sizeof boxes, types[t], SCOUT_FILL_BELOW, SCOUT_FILL_SEED(SIDE, 9), &why) ==
                   SCOUT_OK);
        cpu_number_load(types[t], boxes, 0, 1, COUNT, x);
        for (int k = 0; k < COUNT; k++)
            if (k % 4 < 2) {
                UNIT_CHECK(x[k] >= 0 && x[k + 2] <= SIDE);
                UNIT_CHECK(x[k + 2] - x[k] >= SIDE * 0.24 && x[k + 2] - x[k] <= SIDE * 0.51);
                mean += x[k] / (COUNT / 2);
            }
        UNIT_CHECK(mean > SIDE * 0.2 && mean < SIDE * 0.24);
    }
}

/* From -1 to 1.55: steps of 0.01, and 0 is 100 of them above the least. */
static void what_a_dynamic_quantiser_finds(void) {
    static const double x[] = {-1, 0, 1.55, 0.104}, y[] = {0, 100, 255, 110};
    cpu_built b;
    cpu_built_make(&b, "{\"op\": \"quantize\", \"what\": \"dynamic\", \"shape\": [4], \"out_dtype\": \"uint8\"}",
                   1 << 20);
    UNIT_CHECK(b.built);
    cpu_built_fill(&b, 3);
    for (int k = 0; k < 4; k++) cpu_built_put(&b, "x", k, x[k]), cpu_built_put(&b, "y", k, y[k]);
    cpu_built_put(&b, "scale", 0, 2.55f / 255), cpu_built_put(&b, "zero", 0, 100);
    UNIT_CHECK(cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 3, 111);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_put(&b, "y", 3, 110), cpu_built_put(&b, "zero", 0, 101);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_put(&b, "zero", 0, 100), cpu_built_put(&b, "scale", 0, 0.010001);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void what_cannot_be_told_is_refused(void) {
    static const char *const rows[][2] = {
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 0}", "shape"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 9223372036854775807}", "shape"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"what\": \"embed_norm\"}", "feature"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"block_size\": 32}", "type"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"block_size\": -1, \"weight_dtype\": \"int4\"}",
         "shape"},
        {"{\"op\": \"embedding\", \"shape\": [4, 5], \"table\": 7, \"block_size\": 2, \"weight_dtype\": \"int4\"}",
         "shape"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"zero_points\": 1}", "feature"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"weight_dtype\": \"int4\"}", "type"},
        {"{\"op\": \"embedding\", \"shape\": [4, 4], \"table\": 7, \"index_dtype\": \"fp32\"}", "type"},
        {"{\"op\": \"rotary\", \"shape\": [1, 1, 1, 3]}", "shape"},
        {"{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"rotary_dim\": 6}", "shape"},
        {"{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"angle_dim\": 3}", "shape"},
        {"{\"op\": \"rotary\", \"shape\": [3, 1, 1, 4], \"angle_batch\": 2}", "shape"},
        {"{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"what\": \"gemma\"}", "feature"},
        {"{\"op\": \"rotary\", \"shape\": [1, 1, 1, 4], \"dtype\": \"int8\"}", "type"},
        {"{\"op\": \"move\", \"what\": \"scatter\", \"shape\": [4]}", "feature"},
        {"{\"op\": \"move\", \"what\": \"nonzero\", \"shape\": [1, 3], \"input\": [4], \"dtype\": \"int64\"}", "shape"},
        {"{\"op\": \"move\", \"what\": \"nonzero\", \"shape\": [1, 4], \"input\": [4]}", "type"},
        {"{\"op\": \"move\", \"what\": \"onehot\", \"shape\": [4, 3], \"input\": [4], \"axis\": 2, \"dtype\": "
         "\"int64\"}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"onehot\", \"shape\": [4, 3], \"input\": [4], \"axis\": 1}", "type"},
        {"{\"op\": \"move\", \"what\": \"repeat\", \"shape\": [5], \"input\": [2]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"repeat\", \"shape\": [2, 4, 4, 4, 4], \"input\": [1, 2, 2, 2, 2]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [4], \"axis\": 0}", "shape"},
        {"{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [4], \"axis\": 1, \"updates\": [2]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"scatterelements\", \"shape\": [4, 2], \"axis\": 0, \"updates\": [9, 3]}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [4, 2], \"indices\": [3, 1], \"updates\": [3, 3]}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [4], \"indices\": [3, 1], \"updates\": [3], "
         "\"reduction\": \"mean\"}",
         "feature"},
        {"{\"op\": \"move\", \"what\": \"scatternd\", \"shape\": [4], \"indices\": [3, 1], \"updates\": [3], "
         "\"reduction\": \"add\", \"dtype\": \"int64\"}",
         "type"},
        {"{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [4, 2], \"input\": [2, 4], \"perm\": [0, 0]}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [4, 2], \"input\": [2, 4], \"perm\": [1, 7]}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"slice\", \"shape\": [4], \"input\": [3]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"slice\", \"shape\": [4], \"input\": [4], \"steps\": [-1]}", "feature"},
        {"{\"op\": \"move\", \"what\": \"expand\", \"shape\": [4], \"input\": [3]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"pad\", \"shape\": [4], \"input\": [2], \"pads\": [1, 2]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"pad\", \"shape\": [4], \"input\": [2], \"pads\": [1, 1], \"mode\": \"other\"}",
         "feature"},
        {"{\"op\": \"move\", \"what\": \"concat\", \"shape\": [4], \"axis\": 0, \"inputs\": 200}", "feature"},
        {"{\"op\": \"move\", \"what\": \"concat\", \"shape\": [4], \"axis\": 3, \"inputs\": 2}", "shape"},
        {"{\"op\": \"move\", \"what\": \"concat\", \"shape\": [4], \"axis\": 0, \"inputs\": 2, \"sizes\": [1, 2]}",
         "shape"},
        {"{\"op\": \"move\", \"what\": \"split\", \"shape\": [5], \"axis\": 0, \"outputs\": 2}", "shape"},
        {"{\"op\": \"move\", \"what\": \"gather\", \"shape\": [4, 5], \"axis\": 0, \"input\": [7, 6]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"gathernd\", \"shape\": [4], \"indices\": [4, 3], \"input\": [7, 6]}", "shape"},
        {"{\"op\": \"move\", \"what\": \"cast\", \"shape\": [4], \"dtype\": \"int64\", \"out_dtype\": \"fp8e4m3fn\"}",
         "type"},
        {"{\"op\": \"move\", \"what\": \"cast\", \"shape\": [4], \"dtype\": \"int64\", \"out_dtype\": \"int4\"}",
         "type"},
        {"{\"op\": \"move\", \"what\": \"cast\", \"shape\": [4], \"dtype\": \"int4\", \"out_dtype\": \"int4\"}",
         "type"},
        {"{\"op\": \"move\", \"what\": \"transpose\", \"shape\": [4], \"input\": [4], \"perm\": [0], \"dtype\": "
         "\"int4\"}",
         "type"},
        {"{\"op\": \"move\", \"what\": \"cast\", \"shape\": [4], \"out_dtype\": \"fp8e8m0\", \"saturate\": 0}",
         "feature"},
        {"{\"op\": \"move\", \"what\": \"cast\", \"shape\": [4], \"out_dtype\": \"fp8e8m0\", \"round_mode\": \"off\"}",
         "feature"},
        {"{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"fp8e8m0\"}", "type"},
        {"{\"op\": \"quantize\", \"what\": \"dynamic\", \"shape\": [4], \"out_dtype\": \"int8\"}", "type"},
        {"{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"fp32\"}", "type"},
        {"{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"int8\", \"axis\": 1}",
         "shape"},
        {"{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"int8\", \"block_size\": 2}",
         "shape"},
        {"{\"op\": \"quantize\", \"what\": \"quantize\", \"shape\": [4], \"out_dtype\": \"int8\", \"order_in\": 1}",
         "feature"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int before = cpu_built_failures;
        cpu_built_refused(rows[k][0], rows[k][1]);
        UNIT_INT(cpu_built_failures, before);
    }
}

int main(void) {
    if (!cpu_built_open()) return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    UNIT_RUN(places_are_below_their_bound);
    UNIT_RUN(boxes_are_boxes);
    UNIT_RUN(references_by_hand);
    UNIT_RUN(the_least_numbers_are_rounded_to_their_steps);
    UNIT_RUN(quantised_by_hand);
    UNIT_RUN(moves_of_every_type);
    UNIT_RUN(libraries_move_too);
    UNIT_RUN(scatters_that_combine);
    UNIT_RUN(places_of_marks_and_back);
    UNIT_RUN(casts);
    UNIT_RUN(casts_of_few_bits);
    UNIT_RUN(embeddings);
    UNIT_RUN(embeddings_in_blocks);
    UNIT_RUN(rotations);
    UNIT_RUN(quantising);
    UNIT_RUN(what_a_dynamic_quantiser_finds);
    UNIT_RUN(what_cannot_be_told_is_refused);
    cpu_built_close();
    return unit_end();
}
