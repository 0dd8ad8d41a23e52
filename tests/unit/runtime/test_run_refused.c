/* What does not fit is refused with what was expected, and nothing is written. */
#include "tests/unit/runtime/run_fixture.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static scout_run *run;
static scout_run_error error;
static float a_data[64], b_data[64], c_data[64], guard[64];

static scout_run_tensor square(float *data, int64_t rows, int64_t cols) {
    const int64_t dims[2] = {rows, cols};
    return scout_run_dense(data, SCOUT_RUN_FP32, 2, dims);
}

static void expect(int32_t code, const char *text) {
    UNIT_INT(code, SCOUT_RUN_INVALID);
    UNIT_INT(error.status, SCOUT_RUN_INVALID);
    if (!UNIT_CHECK(strstr(error.text, text) != NULL)) printf("  it says: %s\n", error.text);
    UNIT_CHECK(memcmp(c_data, guard, sizeof guard) == 0);
}

typedef struct tensors {
    scout_run_tensor a, b, c;
    scout_run_gemm_more more;
} tensors;

static tensors good(void) {
    return (tensors){
        square(a_data, 4, 6), square(b_data, 6, 5), square(c_data, 4, 5), {.size = sizeof(scout_run_gemm_more)}};
}

static int32_t gemm(const tensors *t) { return scout_run_gemm(run, &t->a, &t->b, &t->c, &t->more, NULL, &error); }

static void products(void) {
    tensors t = good();
    t.b.type = SCOUT_RUN_FP16;
    expect(gemm(&t), "expected the type of a");
    t = good(), t.a.type = 77;
    expect(gemm(&t), "a: expected a scout_run_type, got 77");
    t = good(), t.a.rank = 99;
    expect(gemm(&t), "a: expected 0 to 8 dimensions, got 99");
    t = good(), t.a.dims[1] = -3;
    expect(gemm(&t), "a: expected sizes from 1");
    t = good(), t.a.dims[0] = (int64_t)1 << 60;
    expect(gemm(&t), "a: expected sizes from 1");
    t = good(), t.b = square(b_data, 7, 5);
    expect(gemm(&t), "b: expected 6 rows");
    t = good(), t.c = square(c_data, 5, 5);
    expect(gemm(&t), "c: expected 1 x 4 x 5");
    t = good(), t.a.strides[0] = 7;
    expect(gemm(&t), "a: expected rows or columns side by side");
    t = good(), t.a.strides[0] = 0;
    expect(gemm(&t), "a: expected rows or columns side by side");
    t = good(), t.c.strides[0] = 6;
    expect(gemm(&t), "c: expected");
    t = good(), t.a.data = NULL;
    expect(gemm(&t), "a: its data is NULL");
    t = good(), t.a.data = (char *)a_data + 2;
    expect(gemm(&t), "a: expected data that begins at a multiple of 4 bytes");
    t = good(), t.a.data = c_data + 10;
    expect(gemm(&t), "c: expected memory of its own");
    t = good(), t.more.weight = 'x';
    expect(gemm(&t), "weight: expected 'a', 'b' or 0");
    t = good(), t.more.activation = "frobnicate";
    expect(gemm(&t), "activation is not covered");
    t = good(), t.more.bias = &t.b;
    expect(gemm(&t), "bias: expected [N]");
    t = good(), t.more.residual = &t.b;
    expect(gemm(&t), "residual: expected the sizes of c");
    t = good(), t.more.scales = &t.b, t.more.weight = 'b';
    expect(gemm(&t), "scales: expected");
    t = good(), t.more.size = 1;
    expect(gemm(&t), "expected size to be the size of the struct, got 1");
    expect(scout_run_gemm(run, NULL, &t.b, &t.c, NULL, NULL, &error), "a of gemm is missing");
    t = good(), t.a.type = t.b.type = t.c.type = SCOUT_RUN_UINT64;
    expect(gemm(&t), "no product of uint64");
}

static void other_fronts(void) {
    const int64_t four[4] = {1, 2, 3, 4}, wide[4] = {1, 2, 5, 4};
    scout_run_tensor q = scout_run_dense(a_data, SCOUT_RUN_FP32, 4, four),
                     k = scout_run_dense(b_data, SCOUT_RUN_FP32, 4, wide),
                     out = scout_run_dense(c_data, SCOUT_RUN_FP32, 4, four), matrix = square(a_data, 4, 6),
                     y = square(c_data, 4, 6), row = square(b_data, 1, 5);
    const scout_run_tensor *inputs[2] = {&matrix, &row};
    scout_run_attention_more more = {.size = sizeof more, .mask = &matrix};
    scout_run_norm_more norm = {.size = sizeof norm, .scale = &row};
    scout_run_conv_more conv = {.size = sizeof conv, .group = 3};
    expect(scout_run_attention(run, &q, &k, &q, &out, NULL, NULL, &error), "v: expected 1 x 2 x 5 x 4");
    expect(scout_run_attention(run, &q, &k, &k, &matrix, NULL, NULL, &error), "out: expected 4 dimensions");
    expect(scout_run_attention(run, &q, &k, &k, &out, &more, NULL, &error), "mask: expected 1 x 2 x 3 x 5");
    more = (scout_run_attention_more){.size = sizeof more, .causal = 1, .window = -1};
    expect(scout_run_attention(run, &q, &k, &k, &out, &more, NULL, &error), "a window of -1 keys");
    expect(scout_run_conv(run, &q, &k, &out, &conv, NULL, &error), "weight: expected");
    expect(scout_run_conv(run, &matrix, &k, &out, NULL, NULL, &error), "expected 3 to 5 dimensions");
    expect(scout_run_norm(run, "batch", &matrix, &y, NULL, NULL, &error), "what: expected layer, rms or l2");
    expect(scout_run_norm(run, "layer", &matrix, &y, &norm, NULL, &error), "scale: expected 6 numbers");
    norm = (scout_run_norm_more){.size = sizeof norm, .epsilon = -1};
    expect(scout_run_norm(run, "layer", &matrix, &y, &norm, NULL, &error), "epsilon: expected");
    expect(scout_run_softmax(run, &matrix, &y, 2, 0, NULL, &error), "axis: expected one of 2 dimensions, got 2");
    expect(scout_run_elementwise(run, "add", inputs, 2, &y, NULL, &error), "input 1: expected sizes that broadcast");
    expect(scout_run_elementwise(run, "frobnicate", inputs, 1, &y, NULL, &error), "frobnicate is not covered");
    expect(scout_run_elementwise(run, NULL, inputs, 1, &y, NULL, &error), "expected an operator");
    expect(scout_run_elementwise(run, "add", inputs, 99, &y, NULL, &error), "1 to 8 inputs, got 99");
}

static void keys(void) {
    static const struct {
        const char *key, *text;
    } rows[] = {
        {"", "its kind is not known"},
        {"gemm", "shape"},
        {"frobnicate;shape=1", "its kind is not known"},
        {"gemm;shape=4,5,6;layout=nn;type=fp99", "type fp99 is not known"},
        {"gemm;shape=4,0,6;layout=nn;type=fp32", "a dimension of shape is 0"},
        {"gemm;shape=4,x,6;layout=nn;type=fp32", "not a list of whole numbers"},
        {"gemm;layout=nn;shape=4,5,6;type=fp32", "it is not canonical"},
        {"gemm;shape=4,5,6;layout=nn;type=fp32;frobnicate=1", "is no dimension"},
        {"gemm;shape=4,5,6;layout=nn;type=fp32;batch=02", "it is not canonical"},
        {"gemm;shape=4,5,6;layout=nn;type=fp32;", "is not NAME=VALUE"},
        {"gemm;shape=4,5,6;layout=zz;type=fp32", "layout zz is not one of"},
    };
    const scout_run_op *op;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        expect(scout_run_find(run, rows[k].key, &op, &error), rows[k].text);
        UNIT_CHECK(op == NULL);
    }
}

static void opening(void) {
    scout_run_options options = {.size = sizeof options, .device = "toaster"};
    scout_run *none;
    UNIT_INT(scout_run_open(&none, &options, &error), SCOUT_RUN_NO_DEVICE);
    UNIT_CHECK(none == NULL && strstr(error.text, "there is no device toaster") != NULL);
    options.device = "cpu:7";
    UNIT_INT(scout_run_open(&none, &options, &error), SCOUT_RUN_NO_DEVICE);
    UNIT_CHECK(none == NULL && error.text[0]);
    struct {
        scout_run_options known;
        uint64_t later;
    } newer = {.known = {.size = sizeof newer, .device = "toaster"}};
    UNIT_INT(scout_run_open(&none, &newer.known, &error), SCOUT_RUN_NO_DEVICE); /* what is not set is as usual */
    newer.later = 1;
    UNIT_INT(scout_run_open(&none, &newer.known, &error), SCOUT_RUN_INVALID);
    UNIT_CHECK(strstr(error.text, "no options that this library does not know") != NULL);
    options.size = 3;
    UNIT_INT(scout_run_open(&none, &options, &error), SCOUT_RUN_INVALID);
    UNIT_INT(scout_run_open(&none, &options, NULL), SCOUT_RUN_INVALID);
    scout_run_close(NULL);
    scout_run_weight_free(NULL);
}

/* So what was refused was refused for what was changed of it. */
static void what_fits_runs(void) {
    const tensors t = good();
    UNIT_INT(gemm(&t), SCOUT_RUN_OK);
    UNIT_TEXT(error.text, "");
    UNIT_CHECK(c_data[0] == 0 + 1 + 2 + 3 + 4 + 5);
}

int main(void) {
    run = run_open(NULL, NULL);
    for (int k = 0; k < 64; k++) a_data[k] = (float)k, b_data[k] = 1, c_data[k] = guard[k] = -7;
    UNIT_RUN(products);
    UNIT_RUN(other_fronts);
    UNIT_RUN(keys);
    UNIT_RUN(opening);
    UNIT_RUN(what_fits_runs);
    scout_run_close(run);
    return unit_end();
}
