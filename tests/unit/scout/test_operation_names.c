/* Members of the hand-written form: those of its kind, and no others. */
#include "tests/unit/scout/operation_fixture.h"

/* What is typed by hand is misspelt by hand. */
static void misspelt_members_are_refused(void) {
    static const struct {
        const char *member, *says;
    } rows[] = {
        {"\"sparcity\": 0.5", "x: \"sparcity\" is not known; did you mean \"sparsity\"?"},
        {"\"dtpye\": \"fp16\"", "did you mean \"dtype\"?"},
        {"\"Dtype\": \"fp16\"", "did you mean \"dtype\"?"},
        {"\"presicion\": \"fp16\"", "did you mean \"precision\"?"},
        {"\"counts\": 3", "did you mean \"count\"?"},
        {"\"casual\": true", "did you mean \"causal\"?"},
        {"\"kv_head\": 8", "did you mean \"kv_heads\"?"},
        {"\"weight_types\": 8", "did you mean \"weight_dtype\"?"},
        {"\"windows\": 8", "did you mean \"window\"?"},
        {"\"layuot\": \"nt\"", "did you mean \"layout\"?"},
        {"\"zzz\": 1",
         "x: \"zzz\" is not known; known are op, shape, dtype, count, sparsity, pattern, causal, comment"},
        {"\"\": 1", "\"\" is not known"},
        {"\"m\": 1", "\"m\" is not known; known are"},
        {"\"a_name_that_is_longer_than_any_that_is_known_here_or_anywhere_else\": 1", "is not known; known are"},
        {"\"causal\": 1", "causal must be true or false"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[512];
        snprintf(text, sizeof text, "{\"x\": {\"op\": \"attention\", \"shape\": [1, 8, 4, 64], %s}}", rows[k].member);
        refused(text, NULL, STATUS_INPUT, rows[k].says);
    }
    refused("{\"x\": {\"opp\": \"gemm\", \"shape\": [1, 2, 3]}}", NULL, STATUS_INPUT, "did you mean \"op\"?");
    refused("{\"x\": {\"op\": \"gemm\", \"shap\": [1, 2, 3]}}", NULL, STATUS_INPUT, "did you mean \"shape\"?");
}

/* A remark, every named dimension, and an entry that was copied from ops.json. */
static void members_that_are_no_mistake(void) {
    if (!UNIT_CHECK(
            read_text("{\"x\": {\"op\": \"gemm\", \"shape\": [8, 8, 8], \"comment\": \"of the first layer\"}}", NULL)))
        return;
    end();
    if (!UNIT_CHECK(read_text("{\"x\": {\"id\": \"gemm_1\", \"op\": \"gemm\", \"shape\": [8, 8, 8], \"layout\": \"nn\","
                              "\"dtype\": \"fp16\", \"count\": 2, \"occurrences\": 2, \"macs\": 512, \"flops\": 1024,"
                              "\"bytes_read\": 1, \"bytes_written\": 1, \"nodes\": [\"a\"], \"weights\": [null],"
                              "\"parts\": [], \"region\": \"r\", \"times\": 1}}",
                              NULL)))
        return;
    UNIT_INT(list.items[0].rec.flops, 1024);
    end();
    for (size_t k = 0; operation_field_name(k); k++) UNIT_CHECK(operation_is_field(operation_field_name(k)));
    /* ops.json may come from a later version, and keeps what is not known here out */
    if (!UNIT_CHECK(read_text("{\"schema\": \"ceiling-scout/ops/1\", \"ops\": [{\"id\": \"a\", \"op\": \"gemm\","
                              "\"shape\": [2, 3, 4], \"dtype\": \"fp16\", \"sparcity\": 0.5}]}",
                              NULL)))
        return;
    end();
}

static void with_member(const char *op, const char *shape, const char *member, const char *says) {
    char text[512];
    snprintf(text, sizeof text, "{\"x\": {\"op\": \"%s\", \"shape\": %s, %s}}", op, shape, member);
    if (says) {
        refused(text, NULL, STATUS_INPUT, says);
        return;
    }
    if (!UNIT_CHECK(read_text(text, NULL))) printf("    %s\n", g.st.text);
    end();
}

/* What another kind has is no less a mistake: a causal product does not exist. */
static void members_of_another_kind_are_refused(void) {
    static const struct {
        const char *op, *shape, *member, *says;
    } rows[] = {
        {"gemm", "[8, 8, 8]", "\"causal\": true", "x: \"causal\" is not a member of gemm: it is a member of attention"},
        {"linear", "[8, 8, 8]", "\"kv_len\": 7", "x: \"kv_len\" is not a member of gemm: it is a member of attention"},
        {"gemm", "[8, 8, 8]", "\"kernel\": [3, 3]", "it is a member of conv, pool, move"},
        {"gemm", "[8, 8, 8]", "\"mask\": \"causal\"", "it is a member of attention"},
        {"gemm", "[8, 8, 8]", "\"scale\": 0.5", "it is a member of attention, softmax, rotary"},
        {"attention", "[1, 8, 4, 64]", "\"batch\": 2", "it is a member of gemm"},
        {"attention", "[1, 8, 4, 64]", "\"weight_side\": \"a\"", "it is a member of gemm"},
        {"softmax", "[8, 8]", "\"layout\": \"nt\"", "it is a member of gemm, conv, attention, norm, pool"},
        {"layernorm", "[8, 8]", "\"causal\": true", "\"causal\" is not a member of norm"},
        {"lstm", "[8, 8, 8, 8]", "\"table\": 3", "\"table\" is not a member of recurrent: it is a member of embedding"},
        {"conv", "[1, 8, 4, 4]", "\"sink\": 1", "\"sink\" is not a member of conv"},
        {"gemm", "[8, 8, 8]", "\"casual\": true",
         "is not known; known are op, shape, dtype, count, sparsity, pattern, comment"},
        {"gemm", "[8, 8, 8]", "\"kv_head\": 3", "is not known; known are"},
        {"gemm", "[8, 8, 8]", "\"batchs\": 3", "did you mean \"batch\"?"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        with_member(rows[k].op, rows[k].shape, rows[k].member, rows[k].says);
}

static void names_of_other_programs(void) {
    static const char *const right[] = {"transpose_b", "trans_b", "transB"}, *const left[] = {"transpose_a", "transA"};
    char member[64];
    for (size_t k = 0; k < sizeof right / sizeof *right; k++) {
        snprintf(member, sizeof member, "\"%s\": true", right[k]);
        with_member("matmul", "[8, 8, 8]", member, "is not known; did you mean \"layout\": \"nt\"?");
    }
    for (size_t k = 0; k < sizeof left / sizeof *left; k++) {
        snprintf(member, sizeof member, "\"%s\": 1", left[k]);
        with_member("gemm", "[8, 8, 8]", member, "is not known; did you mean \"layout\": \"tn\"?");
    }
    with_member("conv", "[1, 8, 4, 4]", "\"transpose_b\": true", "\"transpose_b\" is not known");
    with_member("gemm", "[8, 8, 8]", "\"layout\": \"nt\"", NULL);
}

static bool may_stand(const json_t *entry) {
    const operation_reader r = {.arena = &a, .where = "a copy", .entry = "", .code = STATUS_INPUT};
    if (!guard_enter(&g)) return false;
    operation_check_names(&r, entry);
    return true;
}

/* What extraction writes of a kind is that kind's: every entry of the stored files, copied into the other form. */
static void every_extracted_entry_may_be_copied(void) {
    static const char *const files[] = {"tests/golden/transformer_block.ops.json",
                                        "tests/golden/quantised_mlp.ops.json", "tests/golden/small_conv.ops.json",
                                        "tests/golden/control_flow.ops.json"};
    size_t copied = 0;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        status st;
        json_t *root = json_read(files[f], NULL, &st), *ops = json_object_get(root, "ops");
        for (size_t k = 0; k < json_array_size(ops); k++, copied++) {
            begin();
            if (!UNIT_CHECK(may_stand(json_array_get(ops, k)))) printf("    %s\n", g.st.text);
            end();
        }
        json_decref(root);
    }
    UNIT_CHECK(copied > 60);
}

/* An entry that lacks what its kind cannot do without: said at once, and what it would be. */
static void members_that_are_missing(void) {
    static const struct {
        const char *op, *shape, *member, *says; /* NULL: nothing is missing */
    } rows[] = {
        {"conv2d", "[1, 8, 14, 14]", "\"kernel\": [3, 3]",
         "x: conv2d needs \"input\": the dimensions of what it reads"},
        {"conv", "[1, 8, 14, 14]", "\"input\": [1, 4, 16, 16]", "x: conv needs \"kernel\": the sides of its filter"},
        {"pool", "[1, 8, 7, 7]", "\"input\": [1, 8, 14, 14]", "x: pool needs \"what\": max or average"},
        {"maxpool", "[1, 8, 7, 7]", "\"kernel\": [2, 2]", "maxpool needs \"input\""},
        {"maxpool", "[1, 8, 7, 7]", "\"input\": [1, 8, 14, 14]", "maxpool needs \"kernel\""},
        {"avgpool", "[1, 8, 1, 1]", "\"input\": [1, 8, 14, 14], \"global\": true", NULL},
        {"pool", "[1, 8, 28, 28]", "\"what\": \"resize\", \"input\": [1, 8, 14, 14]", NULL},
        {"groupnorm", "[8, 64]", "\"bias\": 1", "groupnorm needs \"channels\""},
        {"norm", "[8, 64]", "\"what\": \"batch\"", "norm needs \"channels\""},
        {"instancenorm", "[8, 64]", "\"count\": 1", "instancenorm needs \"channels\""},
        {"layernorm", "[8, 64]", "\"count\": 1", NULL},
        {"embedding", "[8, 64]", "\"count\": 1", "embedding needs \"table\": the number of rows"},
        {"recurrent", "[8, 2, 32, 64]", "\"count\": 1", "recurrent needs \"what\": lstm, gru or rnn"},
        {"gru", "[8, 2, 32, 64]", "\"count\": 1", NULL},
        {"elementwise", "[8, 64]", "\"count\": 1", "elementwise needs \"what\""},
        {"reduce", "[8, 64]", "\"count\": 1", "reduce needs \"what\""},
        {"move", "[8, 64]", "\"count\": 1", "move needs \"what\""},
        {"transpose", "[64, 32]", "\"perm\": [1, 0]", "transpose needs \"input\""},
        {"transpose", "[64, 32]", "\"input\": [32, 64]", "transpose needs \"perm\""},
        {"transpose", "[64, 32]", "\"input\": [32, 64], \"perm\": [1, 0]", NULL},
        {"move", "[64, 32]", "\"what\": \"cast\"", "move needs \"out_dtype\""},
        {"quantize", "[64, 32]", "\"out_dtype\": \"int8\"", "quantize needs \"what\": quantize or dequantize"},
        {"quantize", "[64, 32]", "\"what\": \"quantize\"", "quantize needs \"out_dtype\""},
        {"quantize", "[64, 32]", "\"what\": \"dequantize\", \"dtype\": \"int8\"", "quantize needs \"out_dtype\""},
        {"quantize", "[64, 32]", "\"what\": \"dynamic\"", NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        with_member(rows[k].op, rows[k].shape, rows[k].member, rows[k].says);
}

int main(void) {
    UNIT_RUN(misspelt_members_are_refused);
    UNIT_RUN(members_that_are_no_mistake);
    UNIT_RUN(members_of_another_kind_are_refused);
    UNIT_RUN(members_that_are_missing);
    UNIT_RUN(names_of_other_programs);
    UNIT_RUN(every_extracted_entry_may_be_copied);
    return unit_end();
}
