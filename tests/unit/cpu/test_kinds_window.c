/* What candidates are told of convolutions and pools, and what cannot be told: hostile numbers are refused, never
 * computed with. */
#include "scout/kinds/kinds.h"
#include "scout/op/conv.h"
#include "scout/op/pool.h"
#include "tests/unit/cpu/cpu_windows.h"
#include "tests/unit/unit.h"

static windows_run r;
static scout_why why;

static const windows_case plain = {.spatial = 2,
                                   .cin = 6,
                                   .cout = 9,
                                   .group = 3,
                                   .in = {10, 11},
                                   .kernel = {3, 2},
                                   .pads = {1, 0, 1, 1},
                                   .bias = true,
                                   .residual = true};
static const windows_case pool = {
    .spatial = 2, .cin = 6, .in = {10, 11}, .kernel = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}, .what = "max"};

static bool build(const windows_case *w) {
    cpu_windows_operation(&r, w);
    return cpu_windows_build(&r, &why);
}

static void check_tensor(int k, const char *name, scout_role role, int rank, const int64_t *dims) {
    const scout_tensor *t = &r.op.tensors[k];
    UNIT_TEXT(t->name, name);
    UNIT_INT(t->role, role);
    UNIT_INT(t->rank, rank);
    for (int d = 0; d < rank; d++) UNIT_INT(t->dims[d], dims[d]);
}

static void a_convolution(void) {
    UNIT_CHECK(build(&plain));
    UNIT_INT(r.op.tensor_count, 5);
    check_tensor(0, "input", SCOUT_INPUT, 4, (int64_t[]){1, 6, 10, 11});
    check_tensor(1, "weight", SCOUT_WEIGHT, 4, (int64_t[]){9, 2, 3, 2});
    check_tensor(2, "output", SCOUT_OUTPUT, 4, (int64_t[]){1, 9, 10, 11});
    check_tensor(3, "bias", SCOUT_SIDE, 1, (int64_t[]){9});
    check_tensor(4, "residual", SCOUT_INPUT, 4, (int64_t[]){1, 9, 10, 11});
    const conv_problem p = conv_problem_of(&r.op);
    UNIT_CHECK(p.cin == 6 && p.cout == 9 && p.group == 3 && conv_depth(&p) == 12 && p.bias == 3 && p.residual == 4);
    UNIT_CHECK(p.w_g == 36 && p.w_o == 12 && p.w_i == 6);
    UNIT_CHECK(p.w.axes[1].begin == 1 && p.w.axes[2].begin == 0 && p.w.axes[2].end == 1 && p.w.axes[0].out == 1);
    arena_free(&r.a);
}

static void channels_last_and_transposed(void) {
    windows_case w = plain;
    w.last = true, w.transposed = true, w.stride[0] = w.stride[1] = 2, w.extra = 1;
    UNIT_CHECK(build(&w));
    check_tensor(0, "input", SCOUT_INPUT, 4, (int64_t[]){1, 10, 11, 6});
    check_tensor(1, "weight", SCOUT_WEIGHT, 4, (int64_t[]){6, 3, 3, 2});
    check_tensor(2, "output", SCOUT_OUTPUT, 4, (int64_t[]){1, 20, 22, 9});
    const conv_problem p = conv_problem_of(&r.op);
    UNIT_CHECK(p.in_c == 1 && p.in_step == 6 && p.out_step == 9 && p.transposed);
    UNIT_CHECK(p.w_g == 36 && p.w_o == 6 && p.w_i == 18);
    arena_free(&r.a);
}

static void a_pool(void) {
    windows_case w = pool;
    UNIT_CHECK(build(&w));
    UNIT_INT(r.op.tensor_count, 2);
    check_tensor(0, "input", SCOUT_INPUT, 4, (int64_t[]){1, 6, 10, 11});
    check_tensor(1, "output", SCOUT_OUTPUT, 4, (int64_t[]){1, 6, 5, 6});
    UNIT_CHECK(kind_pool.tolerance(&r.op) == 0);
    arena_free(&r.a);
    w.ceil = true, w.what = "average", w.padded = true;
    UNIT_CHECK(build(&w));
    const pool_problem p = pool_problem_of(&r.op);
    UNIT_INT(p.w.axes[1].out, 6);
    UNIT_CHECK(p.average && p.padded);
    UNIT_INT(pool_count(&p, &p.w.axes[1], 0, 2), 3); /* all of the window */
    UNIT_INT(pool_count(&p, &p.w.axes[1], 5, 1), 2); /* the last one hangs over the padding */
    UNIT_CHECK(kind_pool.tolerance(&r.op) > 0x1p-24 && kind_pool.tolerance(&r.op) < 1e-5);
    arena_free(&r.a);
}

static void a_global_pool_needs_no_kernel(void) {
    windows_case w = {.spatial = 2, .cin = 5, .in = {7, 9}, .kernel = {7, 9}, .what = "average"};
    cpu_windows_operation(&r, &w);
    oprec *rec = &r.o.rec;
    for (int k = 0; k < rec->field_count; k++)
        if (strcmp(rec->fields[k].name, "kernel") == 0) rec->fields[k].name = "kernel_type"; /* it has none then */
    UNIT_CHECK(!cpu_windows_build(&r, &why));
    oprec_set_int(rec, "global", 1);
    UNIT_CHECK(cpu_windows_build(&r, &why));
    const pool_problem p = pool_problem_of(&r.op);
    UNIT_CHECK(window_kernel(&p.w) == 63 && window_out(&p.w) == 1);
    arena_free(&r.a);
}

/* --- refusals --- */

static void refused(const windows_case *w, const char *field, const char *text, int64_t number, const char *code) {
    cpu_windows_operation(&r, w);
    if (text)
        oprec_set_text(&r.o.rec, field, text);
    else if (field)
        oprec_set_int(&r.o.rec, field, number);
    if (UNIT_CHECK(!cpu_windows_build(&r, &why))) UNIT_TEXT(why.code, code);
    UNIT_CHECK(why.text[0]);
    arena_free(&r.a);
}

static void what_cannot_be_told_is_refused(void) {
    refused(&plain, "quant", "dynamic", 0, "type");
    refused(&plain, "quant", "qdq", 0, "type"); /* it is of fp32 */
    refused(&plain, "zero_points", NULL, 1, "feature");
    refused(&plain, "weight_scales", "channel", 0, "feature");
    refused(&plain, "activation", "erf", 0, "epilogue");
    refused(&plain, "bias", "full", 0, "feature");
    refused(&pool, "quant", "qdq", 0, "type");
    refused(&pool, "masked", NULL, 1, "feature");
    windows_case w = pool;
    w.type = DTYPE_INT8;
    cpu_windows_operation(&r, &w); /* of bytes a maximum needs no scale */
    oprec_set_text(&r.o.rec, "quant", "qdq");
    UNIT_CHECK(cpu_windows_build(&r, &why));
    arena_free(&r.a);
    w = plain;
    w.what = "deform";
    refused(&w, NULL, NULL, 0, "feature");
    w = pool;
    w.what = "gridsample";
    refused(&w, NULL, NULL, 0, "feature");
    w = plain;
    w.type = DTYPE_FP32, w.weight = DTYPE_INT8; /* dequantised when the model is loaded */
    refused(&w, "zero_points", NULL, 1, "feature");
    w.weight = DTYPE_UINT8; /* without a zero point it would be of no sign */
    refused(&w, NULL, NULL, 0, "type");
    w = plain;
    w.type = DTYPE_INT8, w.out = DTYPE_INT32;
    refused(&w, NULL, NULL, 0, "epilogue");
    w = pool;
    w.what = "average", w.type = DTYPE_INT8;
    refused(&w, NULL, NULL, 0, "type");
}

static void set_list(const char *name, int count, int64_t x) {
    const int64_t list[] = {x, x, x, x, x, x};
    oprec_set_ints(&r.o.rec, &r.a, name, count, list);
}

static void hostile_numbers_are_refused(void) {
    static const int64_t numbers[] = {INT64_MIN, -1, 0, 7, 1000, (int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX};
    static const char *const lists[] = {"input", "kernel", "stride", "dilation", "pads"};
    int built = 0;
    for (int which = 0; which < 2; which++)
        for (size_t l = 0; l < 5; l++)
            for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
                for (int count = 0; count < 7; count++) {
                    cpu_windows_operation(&r, which ? &pool : &plain);
                    set_list(lists[l], count, numbers[k]);
                    const bool good = cpu_windows_build(&r, &why);
                    UNIT_CHECK(good || (why.code[0] && why.text[0]));
                    built += good;
                    arena_free(&r.a);
                }
    UNIT_INT(built, 0);
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        for (int d = 0; d < 4; d++) {
            cpu_windows_operation(&r, k % 2 ? &pool : &plain);
            int64_t dims[4] = {1, k % 2 ? 6 : 9, 10, 11};
            dims[d] = numbers[k];
            oprec_set_shape(&r.o.rec, &r.a, 4, dims);
            UNIT_CHECK(!cpu_windows_build(&r, &why));
            arena_free(&r.a);
        }
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        if (numbers[k] != 0) refused(&plain, "group", NULL, numbers[k], "shape");
    windows_case w = {
        .spatial = 3, .cin = 1 << 20, .cout = 1 << 20, .in = {1 << 20, 1 << 20, 1 << 20}, .kernel = {1, 1, 1}};
    refused(&w, NULL, NULL, 0, "shape"); /* larger than any memory */
}

static void windows_of_padding_alone_are_no_pool(void) {
    windows_case w = pool;
    w.pads[0] = 3;
    refused(&w, NULL, NULL, 0, "shape");
    w = (windows_case){
        .spatial = 1, .cin = 2, .in = {2}, .kernel = {2}, .dilation = {3}, .pads = {1, 1}, .what = "max"};
    refused(&w, NULL, NULL, 0, "shape");
    w = pool;
    w.in[0] = 9, w.kernel[0] = 1, w.pads[0] = w.pads[2] = 0, w.stride[0] = 20, w.ceil = true;
    refused(&w, NULL, NULL, 0, "shape"); /* the last window would begin behind the input */
}

/* As deep a product has the same. */
static void tolerances_are_those_of_products(void) {
    windows_case w = plain;
    UNIT_CHECK(build(&w));
    const double fp32 = kind_conv.tolerance(&r.op);
    UNIT_CHECK(fp32 > 0x1p-24 && fp32 < 1e-5);
    arena_free(&r.a);
    w.cin = 6000, w.cout = 6000;
    UNIT_CHECK(build(&w));
    UNIT_CHECK(kind_conv.tolerance(&r.op) > fp32);
    arena_free(&r.a);
    w = (windows_case){
        .spatial = 2, .cin = 6, .cout = 9, .in = {4, 4}, .kernel = {3, 3}, .type = DTYPE_INT8, .out = DTYPE_INT32};
    UNIT_CHECK(build(&w));
    UNIT_CHECK(kind_conv.tolerance(&r.op) == 0 && kind_conv.specials(&r.op) == 0);
    arena_free(&r.a);
    w.type = DTYPE_NONE, w.out = DTYPE_NONE, w.activation = "silu";
    UNIT_CHECK(build(&w));
    UNIT_CHECK(kind_conv.specials(&r.op) == 9 * 2 * 2);
    arena_free(&r.a);
}

int main(void) {
    UNIT_RUN(a_convolution);
    UNIT_RUN(channels_last_and_transposed);
    UNIT_RUN(a_pool);
    UNIT_RUN(a_global_pool_needs_no_kernel);
    UNIT_RUN(what_cannot_be_told_is_refused);
    UNIT_RUN(hostile_numbers_are_refused);
    UNIT_RUN(windows_of_padding_alone_are_no_pool);
    UNIT_RUN(tolerances_are_those_of_products);
    return unit_end();
}
