/* Recurrent layers on the CPU device: the reference against what onnxruntime computes, every candidate against the
 * reference, and one wrong element that must be found. */
#include "scout/op/recurrent.h"
#include "tests/unit/cpu/cpu_built.h"
#include "tests/unit/cpu/recurrent_values.h"
#include "tests/unit/unit.h"

#include <math.h>

/* A check of the lab's that fails is one of the test that runs. */
static void nothing_failed(void) {
    UNIT_INT(cpu_built_failures, 0);
    cpu_built_failures = 0;
}

/* The formula that the values were made with. */
static void fill(cpu_built *b) {
    static const char *const salted[] = {"", "x", "w", "r", "bias", "h0", "c0", "peephole"};
    static const double lengths[] = {4, 1, 3};
    for (int64_t salt = 1; salt < 8; salt++) {
        const int t = op_tensor(&b->op, salted[salt]);
        const bool small = salt == 2 || salt == 3 || salt == 7;
        for (int64_t k = 0; t >= 0 && k < op_elements(&b->op.tensors[t]); k++)
            cpu_built_put(b, salted[salt], k, (double)((k * 29 + salt * 17) % 41 - 20) / (small ? 64 : 16));
    }
    for (int k = 0; k < 3; k++) cpu_built_put(b, "lengths", k, lengths[k]);
}

static void put(cpu_built *b, const char *output, const float *values) {
    const int t = op_tensor(&b->op, output);
    for (int64_t k = 0; t >= 0 && k < op_elements(&b->op.tensors[t]); k++)
        cpu_built_put(b, output, k, (double)values[k]);
}

static void the_reference_is_onnxruntime(void) {
    for (size_t k = 0; k < sizeof recurrent_cases / sizeof recurrent_cases[0]; k++) {
        const struct recurrent_case *c = &recurrent_cases[k];
        cpu_built b;
        cpu_built_make(&b, c->text, 32 << 20);
        if (UNIT_CHECK(b.built)) {
            cpu_built_fill(&b, 1);
            fill(&b);
            put(&b, "y", c->y);
            put(&b, "y_h", c->y_h);
            put(&b, "y_c", c->y_c);
            if (!UNIT_CHECK(cpu_built_accepts(&b))) printf("  %s\n", c->text);
            const double right = cpu_built_at(&b, op_tensor(&b.op, "y") >= 0 ? "y" : "y_h", 3);
            cpu_built_put(&b, op_tensor(&b.op, "y") >= 0 ? "y" : "y_h", 3, right + 0.001);
            UNIT_CHECK(!cpu_built_accepts(&b));
            UNIT_CHECK(cpu_built_run(&b, c->text) >= 2);
            if (op_tensor(&b.op, "lengths") >= 0) { /* more steps than there are, and fewer than none */
                cpu_built_put(&b, op_tensor(&b.op, "y") >= 0 ? "y" : "y_h", 3, right);
                cpu_built_put(&b, "lengths", 0, 99);
                UNIT_CHECK(cpu_built_accepts(&b));
                cpu_built_put(&b, "lengths", 1, -1000000);
                UNIT_CHECK(!cpu_built_accepts(&b));
                UNIT_CHECK(cpu_built_run(&b, c->text) >= 2);
            }
        } else {
            printf("  %s: %s\n", c->text, b.why.text);
        }
        cpu_built_end(&b);
    }
    nothing_failed();
}

static void candidates_are_right(void) {
    static const char *const texts[] = {
        "{\"op\": \"lstm\", \"shape\": [1, 1, 1, 1]}",
        "{\"op\": \"lstm\", \"shape\": [17, 7, 63, 65], \"bias\": 1, \"directions\": 2, \"returns\": \"y,y_h,y_c\"}",
        "{\"op\": \"lstm\", \"shape\": [65, 1, 127, 33], \"bias\": 1, \"directions\": 2, \"initial_state\": 1}",
        "{\"op\": \"lstm\", \"shape\": [3, 5, 1, 129], \"direction\": \"reverse\", \"returns\": \"y_c\"}",
        "{\"op\": \"lstm\", \"shape\": [33, 6, 17, 40], \"lengths\": 1, \"directions\": 2, \"peephole\": 1, \"clip\": "
        "0.9, "
        "\"input_forget\": 1, \"bias\": 1, \"order\": \"batch_first\", \"returns\": \"y,y_h,y_c\"}",
        "{\"op\": \"gru\", \"shape\": [129, 3, 31, 65], \"bias\": 1, \"linear_before_reset\": 1, \"returns\": "
        "\"y,y_h\"}",
        "{\"op\": \"gru\", \"shape\": [20, 9, 65, 17], \"linear_before_reset\": 1, \"directions\": 2}",
        "{\"op\": \"gru\", \"shape\": [20, 9, 65, 17], \"order\": \"batch_first\", \"initial_state\": 1, \"bias\": 1, "
        "\"returns\": \"y,y_h\"}",
        "{\"op\": \"gru\", \"shape\": [40, 4, 10, 100], \"lengths\": 1, \"direction\": \"reverse\", \"returns\": "
        "\"y,y_h\"}",
        "{\"op\": \"rnn\", \"shape\": [200, 2, 127, 65], \"bias\": 1, \"directions\": 2, \"returns\": \"y,y_h\"}",
        "{\"op\": \"rnn\", \"shape\": [50, 3, 7, 31], \"activations\": \"softplus\", \"returns\": \"y_h\"}",
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) cpu_built_check(texts[k], 2);
    nothing_failed();
}

static void half_types(void) {
    static const char *const texts[] = {
        "{\"op\": \"lstm\", \"shape\": [19, 5, 64, 48], \"bias\": 1, \"dtype\": \"bf16\", \"returns\": \"y,y_h,y_c\"}",
        "{\"op\": \"lstm\", \"shape\": [19, 5, 63, 47], \"bias\": 1, \"dtype\": \"fp16\", \"returns\": \"y,y_h,y_c\"}",
        "{\"op\": \"gru\", \"shape\": [64, 3, 64, 65], \"directions\": 2, \"bias\": 1, \"dtype\": \"fp16\"}",
        "{\"op\": \"rnn\", \"shape\": [64, 3, 64, 65], \"lengths\": 1, \"dtype\": \"bf16\", \"returns\": \"y_h\"}",
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) cpu_built_check(texts[k], 2);
    nothing_failed();
}

/* Chunks of steps where not all of them fit into the workspace. */
static void little_workspace(void) {
    const char *text =
        "{\"op\": \"lstm\", \"shape\": [37, 4, 32, 64], \"bias\": 1, \"directions\": 2, \"returns\": \"y,y_c\"}";
    cpu_built b;
    cpu_built_make(&b, text, 64 << 10);
    UNIT_INT(b.op.workspace_limit, (64 << 10) * RECURRENT_WORKSPACES);
    cpu_built_fill(&b, 5);
    UNIT_CHECK(cpu_built_run(&b, text) >= 2);
    cpu_built_end(&b);
    nothing_failed();
}

/* Long layers: what a step is off by adds up, and the reference must neither take it for an error nor lose its sight.
 */
static void many_steps(void) {
    static const char *const texts[] = {
        "{\"op\": \"lstm\", \"shape\": [500, 2, 64, 256], \"bias\": 1, \"peephole\": 1, \"returns\": \"y,y_c\"}",
        "{\"op\": \"gru\", \"shape\": [500, 2, 64, 200], \"bias\": 1, \"dtype\": \"fp16\"}",
        "{\"op\": \"rnn\", \"shape\": [1000, 1, 64, 256], \"activations\": \"relu\"}",
    };
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) cpu_built_check(texts[k], 1);
    nothing_failed();
}

/* Of a state without bounds nothing could be checked after some hundred steps, and it is said. */
static void what_grows_without_bound_has_no_reference(void) {
    cpu_built b;
    cpu_built_make(&b,
                   "{\"op\": \"lstm\", \"shape\": [400, 1, 512, 64], \"activations\": \"hardsigmoid,relu,relu\", "
                   "\"bias\": 1}",
                   32 << 20);
    cpu_built_fill(&b, 3);
    UNIT_CHECK(!cpu_built_accepts(&b));
    cpu_built_end(&b);
}

static void costs_are_those_of_a_model(void) {
    cpu_built b;
    cpu_built_make(
        &b, "{\"op\": \"lstm\", \"shape\": [1, 1, 256, 512], \"bias\": 1, \"directions\": 2, \"initial_state\": 1}",
        1 << 20);
    UNIT_CHECK(b.op.flops == 6340608 && b.op.bytes_read == 12624896 && b.op.bytes_written == 4096);
    UNIT_CHECK(kinds_find(OP_RECURRENT)->specials(&b.op) == 512.0 * 2 * 5);
    cpu_built_end(&b);
}

static void what_is_refused(void) {
    cpu_built_refused("{\"op\": \"lstm\", \"shape\": [2, 2, 2, 2], \"quant\": \"dynamic\"}", "feature");
    cpu_built_refused("{\"op\": \"lstm\", \"shape\": [2, 2, 2, 2], \"returns\": \"z\"}", "feature");
    cpu_built_refused("{\"op\": \"gru\", \"shape\": [2, 2, 2, 2], \"returns\": \"y_c\"}", "feature");
    cpu_built_refused("{\"op\": \"gru\", \"shape\": [2, 2, 2, 2], \"peephole\": 1}", "feature");
    cpu_built_refused("{\"op\": \"rnn\", \"shape\": [2, 2, 2, 2], \"activations\": \"thresholdedrelu\"}", "feature");
    cpu_built_refused("{\"op\": \"rnn\", \"shape\": [2, 2, 2, 2], \"activations\": \"tanh,tanh\"}", "feature");
    cpu_built_refused(
        "{\"op\": \"rnn\", \"shape\": [2, 2, 2, 2], \"activations\": \"affine\", \"activation_alpha\": \"2\"}",
        "feature");
    cpu_built_refused("{\"op\": \"rnn\", \"shape\": [2, 2, 2, 2], \"activations\": \"elu\", \"activation_alpha\": 2}",
                      "feature");
    cpu_built_refused("{\"op\": \"lstm\", \"shape\": [2, 2, 2, 2], \"dtype\": \"int8\"}", "type");
    cpu_built_refused("{\"op\": \"lstm\", \"shape\": [2, 2, 2, 2], \"order\": \"tnc\"}", "layout");
    cpu_built_refused("{\"op\": \"recurrent\", \"what\": \"lru\", \"shape\": [2, 2, 2, 2]}", "feature");
    nothing_failed();
}

int main(void) {
    if (!UNIT_CHECK(cpu_built_open())) return unit_end();
    UNIT_RUN(the_reference_is_onnxruntime);
    UNIT_RUN(candidates_are_right);
    UNIT_RUN(half_types);
    UNIT_RUN(little_workspace);
    UNIT_RUN(many_steps);
    UNIT_RUN(what_grows_without_bound_has_no_reference);
    UNIT_RUN(costs_are_those_of_a_model);
    UNIT_RUN(what_is_refused);
    cpu_built_close();
    return unit_end();
}
