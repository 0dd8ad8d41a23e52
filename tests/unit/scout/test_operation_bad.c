/* Files, entries and words that tell no operation: each gets one clear line. */
#include "tests/unit/scout/operation_fixture.h"

static void bad_files_get_one_clear_line(void) {
    refused("{", NULL, STATUS_INPUT, "line 1");
    refused("[]", NULL, STATUS_INPUT, "object");
    refused("{}", NULL, STATUS_INPUT, "names no operation");
    refused("{\"schema\": \"ceiling-scout/ops/2\"}", NULL, STATUS_INPUT, "ceiling-scout/ops/1 is needed");
    refused("{\"schema\": \"ceiling-scout/ops/1\"}", NULL, STATUS_INPUT, "\"ops\"");
    refused("{\"x\": 5}", NULL, STATUS_INPUT, "x: it must be an object");
    refused("{\"x\": {\"shape\": [1, 1, 1]}}", NULL, STATUS_INPUT, "\"op\" is missing");
    refused("{\"x\": {\"op\": \"gem\", \"shape\": [1, 1, 1]}}", NULL, STATUS_INPUT, "known are: gemm, conv, attention");
    refused("{\"x\": {\"op\": \"gemm\"}}", NULL, STATUS_INPUT, "\"shape\" is missing");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1]}}", NULL, STATUS_INPUT, "M, N, K");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 0, 1]}}", NULL, STATUS_INPUT, "at least 1");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, -5]}}", NULL, STATUS_INPUT, "at least 1");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 2000000000000]}}", NULL, STATUS_INPUT, "at most");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1.5]}}", NULL, STATUS_INPUT, "whole number");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1000000000000, 1000000000000, 1000]}}", NULL, STATUS_INPUT,
            "impossible");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"dtype\": \"fp17\"}}", NULL, STATUS_INPUT, "fp17");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"sparsity\": 1}}", NULL, STATUS_INPUT, "below 1");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"sparsity\": 0.5, \"sparse_block\": 48}}", NULL,
            STATUS_INPUT, "16, 32, 64 or 128");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"sparse_block\": 32}}", NULL, STATUS_INPUT,
            "pattern DENSE has no blocks");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"pattern\": \"STRIPES\"}}", NULL, STATUS_INPUT,
            "BLOCK_SPARSE");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"pattern\": \"BLOCK_SPARSE\"}}", NULL, STATUS_INPUT,
            "needs a sparsity");
    refused("{\"x\": {\"op\": \"softmax\", \"shape\": [8, 8], \"sparsity\": 0.9}}", NULL, STATUS_INPUT,
            "x: sparsity and pattern are for gemm (matmul, linear): softmax has no weight");
    refused("{\"x\": {\"op\": \"layernorm\", \"shape\": [8], \"pattern\": \"STRUCTURED_24\"}}", NULL, STATUS_INPUT,
            "norm has no weight");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"weight_side\": \"none\", \"sparsity\": 0.9}}", NULL,
            STATUS_INPUT, "x: sparsity belongs to a weight, and this gemm has none");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1], \"layout\": \"no\"}}", NULL, STATUS_INPUT,
            "nn, nt, tn, tt");
    refused("{\"x\": {\"op\": \"conv\", \"shape\": [1, 8, 4, 4], \"input\": [1, 3, 4, 4], \"kernel\": [3, -3]}}", NULL,
            STATUS_INPUT, "kernel");
    static const char *const blocks[][2] = {
        {"\"block_mask\": 0.25", "block_mask must be a text"},
        {"\"block_mask\": [64, 2]", "block_mask must be a text"},
        {"\"block_mask\": true", "block_mask must be a text"},
        {"\"block_mask\": \"bigbird,0.2\"", "its pattern is none of local, strided, global and random"},
        {"\"block_mask\": \"local,0\"", "its density must be a number above 0"},
        {"\"block_mask\": \"local,0.5,96\"", "its block must be 64 or 128"},
        {"\"block_mask\": \"local,0.5\", \"mask\": \"additive\", \"mask_shape\": [4, 4]", "not with mask additive"},
        {"\"block_mask\": \"local,0.5\", \"mask\": \"lengths\"", "not with mask lengths"},
        {"\"mask\": \"blocks\"", "block_mask does not say which blocks"},
        {"\"mask\": \"causal+blocks\"", "block_mask does not say which blocks"},
        {"\"block_mask\": \"local,0.5\", \"kv_len\": 131073", "is for 131072 queries and keys at most"},
        {"\"block_mask\": \"local,0.5,128\", \"kv_len\": 262145", "is for 262144 queries and keys at most"},
        {"\"block_mask\": \"local,0.5\", \"kv_len\": -5", "kv_len must be at least 1"},
        {"\"block_mask\": \"local,0.5\", \"v_head\": -9223372036854775807", "v_head must be at least 1"},
        {"\"block_masks\": \"local,0.5\"", "did you mean \"block_mask\""},
    };
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {
        char text[256];
        snprintf(text, sizeof text, "{\"x\": {\"op\": \"attention\", \"shape\": [1, 8, 4, 64], %s}}", blocks[k][0]);
        refused(text, NULL, STATUS_INPUT, blocks[k][1]);
    }
    refused("{\"x\": {\"op\": \"attention\", \"shape\": [1, 8, 4, 64], \"v_head\": -3}}", NULL, STATUS_INPUT, "v_head");
    refused("{\"x\": {\"op\": \"attention\", \"shape\": [1, 8, 4, 64], \"kv_heads\": 3}}", NULL, STATUS_INPUT,
            "kv_heads");
    refused("{\"x\": {\"op\": \"gemm\", \"shape\": [1, 1, 1]}}", "fp12", STATUS_USAGE,
            "fp32, tf32, fp16, bf16, fp8, int8, int4");
}

static void bad_entries_get_one_clear_line(void) {
    static const struct {
        const char *entries, *says;
    } rows[] = {
        {"5", "must be an object"},
        {"{\"op\": \"gemm\"}", "no id"},
        {"{\"id\": \"../x\", \"op\": \"gemm\"}", "file name"},
        {"{\"id\": \"a\", \"op\": \"view\"}", "known are"},
        {"{\"id\": \"a\", \"op\": \"gemm\"}, {\"id\": \"a\", \"op\": \"gemm\"}", "two entries"},
        {"{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"dtype\": \"fp99\"}", "fp99"},
        {"{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"dtype\": \"fp16\", \"count\": -1}", "count"},
        {"{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"dtype\": \"fp16\", \"flops\": \"x\"}", "flops"},
        {"{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"dtype\": \"fp16\", \"batch\": -2}", "batch"},
        {"{\"id\": \"a\", \"op\": \"conv\", \"shape\": [1, 8, 4, 4], \"dtype\": \"fp16\", \"sparsity\": 0.9}",
         "a: sparsity and pattern are for gemm"},
        {"{\"id\": \"a\", \"op\": \"gemm\", \"shape\": [1, 2, 3], \"dtype\": \"fp16\", \"sparsity\": 0.9}",
         "a: sparsity belongs to a weight"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        UNIT_CHECK(!read_entries(rows[k].entries, NULL));
        UNIT_INT(g.st.code, STATUS_INPUT);
        if (!strstr(g.st.text, rows[k].says)) unit_same_text(g.st.text, rows[k].says, __FILE__, __LINE__);
        end();
    }
}

static void bad_words_are_a_usage(void) {
    static const struct {
        const char *kind, *shape, *precision;
        double sparsity;
        const char *says;
    } rows[] = {
        {"gemm", "8,8", NULL, 0, "M, N, K"},
        {"gemm", "8,,8", NULL, 0, "commas"},
        {"gemm", "", NULL, 0, "commas"},
        {"gemm", "8,8,8,", NULL, 0, "commas"},
        {"gemm", "8,8,-8", NULL, 0, "commas"},
        {"gemm", "8,8,0", NULL, 0, "at least 1"},
        {"gemm", "8,8,8k", NULL, 0, "commas"},
        {"gem", "8,8,8", NULL, 0, "known are"},
        {"gemm", "8,8,8", "fp9", 0, "fp8"},
        {"gemm", "8,8,8", NULL, 1.5, "sparsity"},
        {"softmax", "64,64", NULL, 0.9, "--shape 64,64: sparsity and pattern are for gemm"},
        {"gemm", "8,8,99999999999999999999", NULL, 0, "commas"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        UNIT_CHECK(!read_words(rows[k].kind, rows[k].shape, rows[k].precision, rows[k].sparsity, NULL));
        UNIT_INT(g.st.code, STATUS_USAGE);
        if (!strstr(g.st.text, rows[k].says)) unit_same_text(g.st.text, rows[k].says, __FILE__, __LINE__);
        end();
    }
}

int main(void) {
    UNIT_RUN(bad_files_get_one_clear_line);
    UNIT_RUN(bad_entries_get_one_clear_line);
    UNIT_RUN(bad_words_are_a_usage);
    return unit_end();
}
