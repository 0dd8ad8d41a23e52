/* What candidates are told of a product, what cannot be told, and how exact they have to be. */
#include "scout/kinds/kinds.h"
#include "scout/op/gemm.h"
#include "tests/unit/unit.h"

#include <math.h>

static guard g;
static arena a;
static operation o;
static scout_op op;
static scout_why why;

/* A product of that precision, before it is built. */
static void begin(const char *shape, const char *precision) {
    operation_list list;
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
    why = (scout_why){.code = ""};
    operation_from_words("gemm", shape, precision, 0, NULL, &a, &list);
    o = list.items[0];
    o.source = NULL;
    operation_list_free(&list);
}

static bool build(void) { return kinds_build(&o, 1000, &a, &op, &why); }
static void end(void) { arena_free(&a); }

static const scout_tensor *tensor(const char *name) {
    const int k = op_tensor(&op, name);
    static const scout_tensor none;
    UNIT_CHECK(k >= 0);
    return k >= 0 ? &op.tensors[k] : &none;
}

static void check_dims(const char *name, int64_t d0, int64_t d1, int64_t d2, int64_t s0, int64_t s1, uint64_t bytes) {
    const scout_tensor *t = tensor(name);
    UNIT_INT(t->rank, 3);
    UNIT_INT(t->dims[0], d0);
    UNIT_INT(t->dims[1], d1);
    UNIT_INT(t->dims[2], d2);
    UNIT_INT(t->strides[0], s0);
    UNIT_INT(t->strides[1], s1);
    UNIT_INT(t->strides[2], 1);
    UNIT_INT(t->bytes, bytes);
}

static void a_plain_product(void) {
    begin("16,24,8", "fp16");
    UNIT_CHECK(build());
    UNIT_INT(op.size, sizeof op);
    UNIT_INT(op.kind, SCOUT_GEMM);
    UNIT_INT(op.tensor_count, 3);
    UNIT_INT(op.workspace_limit, 1000);
    UNIT_INT(op.accumulate, SCOUT_FP32);
    UNIT_CHECK(op.flops == 2 * 16 * 24 * 8 && op.bytes_written == 16 * 24 * 2);
    check_dims("a", 1, 16, 8, 128, 8, 256);
    check_dims("b", 1, 8, 24, 192, 24, 384);
    check_dims("c", 1, 16, 24, 384, 24, 768);
    UNIT_INT(tensor("a")->role, SCOUT_INPUT);
    UNIT_INT(tensor("b")->role, SCOUT_WEIGHT);
    UNIT_INT(tensor("c")->role, SCOUT_OUTPUT);
    const gemm_problem p = gemm_problem_of(&op);
    UNIT_CHECK(p.m == 16 && p.n == 24 && p.k == 8 && p.batch == 1 && p.weight == GEMM_B && !p.trans_a && !p.trans_b);
    end();
}

static void layouts_are_as_stored(void) {
    begin("16,24,8", "fp32");
    o.rec.layout = "tt";
    UNIT_CHECK(build());
    check_dims("a", 1, 8, 16, 128, 16, 512);
    check_dims("b", 1, 24, 8, 192, 8, 768);
    const gemm_problem p = gemm_problem_of(&op);
    UNIT_CHECK(p.trans_a && p.trans_b && p.lda == 16 && p.ldb == 8 && p.ldc == 24);
    end();
}

static void batches_and_shared_sides(void) {
    begin("16,24,8", "fp32");
    oprec_set_int(&o.rec, "batch", 5);
    UNIT_CHECK(build());
    check_dims("a", 5, 16, 8, 128, 8, 5 * 512);
    check_dims("c", 5, 16, 24, 384, 24, 5 * 16 * 24 * 4);
    oprec_set_int(&o.rec, "batch_stride_b", 0);
    UNIT_CHECK(build());
    check_dims("b", 1, 8, 24, 0, 24, 768);
    UNIT_INT(gemm_problem_of(&op).stride_b, 0);
    oprec_set_text(&o.rec, "batch_inside", "a");
    UNIT_CHECK(build());
    check_dims("a", 5, 16, 8, 8, 40, 5 * 512);
    end();
}

static void a_bias_is_a_tensor(void) {
    static const struct {
        const char *bias;
        uint64_t bytes;
        scout_role role;
        int batch;
    } rows[] = {{"n", 48, SCOUT_SIDE, 1},
                {"m", 32, SCOUT_SIDE, 1},
                {"scalar", 2, SCOUT_SIDE, 1},
                {"full", 768, SCOUT_INPUT, 1},
                {"each", 3 * 48, SCOUT_SIDE, 3}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        begin("16,24,8", "fp16");
        oprec_set_int(&o.rec, "batch", rows[k].batch);
        oprec_set_text(&o.rec, "bias", rows[k].bias);
        oprec_set_text(&o.rec, "activation", "gelu");
        UNIT_CHECK(build());
        UNIT_INT(tensor("bias")->bytes, rows[k].bytes);
        UNIT_INT(tensor("bias")->role, rows[k].role);
        UNIT_TEXT(gemm_problem_of(&op).bias, rows[k].bias);
        UNIT_INT(gemm_problem_of(&op).activation.function, ACTIVATION_GELU);
        end();
    }
}

static void a_residual_lies_as_the_output(void) {
    begin("16,24,8", "fp16");
    oprec_set_int(&o.rec, "batch", 3);
    oprec_set_int(&o.rec, "residual", 1);
    UNIT_CHECK(build());
    UNIT_INT(gemm_problem_of(&op).residual, op_tensor(&op, "residual"));
    UNIT_INT(tensor("residual")->role, SCOUT_INPUT);
    UNIT_INT(tensor("residual")->bytes, tensor("c")->bytes);
    UNIT_INT(tensor("residual")->strides[0], tensor("c")->strides[0]);
    UNIT_INT(gemm_has_epilogue(&(gemm_problem){.residual = -1}), 0);
    end();
}

static void activations_have_their_parameters(void) {
    static const struct {
        const char *name, *field;
        double value;
        activation_function function;
        double alpha, beta;
    } rows[] = {{"fastgelu", NULL, 0, ACTIVATION_GELU_TANH, 0, 0},
                {"leakyrelu", NULL, 0, ACTIVATION_RELU, 0.01, 0},
                {"leakyrelu", "activation_alpha", 0.25, ACTIVATION_RELU, 0.25, 0},
                {"quickgelu", NULL, 0, ACTIVATION_SILU, 1.702, 0},
                {"swish", "activation_alpha", 0.5, ACTIVATION_SILU, 0.5, 0},
                {"relu6", NULL, 0, ACTIVATION_CLIP, 0, 6}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin("16,24,8", "fp16");
        oprec_set_text(&o.rec, "activation", rows[k].name);
        if (rows[k].field) oprec_set_real(&o.rec, rows[k].field, rows[k].value);
        UNIT_CHECK(build());
        const op_activation is = gemm_problem_of(&op).activation;
        UNIT_CHECK(is.function == rows[k].function && is.alpha == rows[k].alpha && is.beta == rows[k].beta);
        end();
    }
}

/* So that sums are about 1, where activations bend; of 8 bits nothing is left to make smaller. */
static void a_weight_with_an_activation_behind_it_is_small(void) {
    static const struct {
        const char *shape, *precision, *side, *activation, *tensor;
        int64_t below;
    } rows[] = {{"16,24,4096", "fp16", "b", "gelu", "b", -6}, {"16,24,4096", "bf16", "a", "relu", "a", -6},
                {"16,24,1", "fp32", "b", "gelu", "b", 0},     {"16,24,4096", "fp8", "b", "gelu", "b", 0},
                {"16,24,4096", "fp16", "b", NULL, "b", 0},    {"16,24,262144", "fp16", NULL, "tanh", "b", -9}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin(rows[k].shape, rows[k].precision);
        if (rows[k].side) oprec_set_text(&o.rec, "weight_side", rows[k].side);
        if (rows[k].activation) oprec_set_text(&o.rec, "activation", rows[k].activation);
        UNIT_CHECK(build());
        UNIT_INT(tensor(rows[k].tensor)->below, rows[k].below);
        end();
    }
}

/* A part of a chain may round what the next one reads; and what integers would become is not said. */
static void an_epilogue_has_its_tolerance_and_its_limits(void) {
    static const char *const refused[] = {"erf", "swish"};
    begin("16,24,8", "fp16");
    UNIT_CHECK(build());
    const double plain = kind_gemm.tolerance(&op);
    end();
    begin("16,24,8", "fp16");
    oprec_set_text(&o.rec, "activation", "gelu");
    oprec_set_int(&o.rec, "residual", 1);
    UNIT_CHECK(build());
    UNIT_CHECK(kind_gemm.tolerance(&op) > plain && kind_gemm.tolerance(&op) < 3 * plain);
    UNIT_CHECK(kind_gemm.specials(&op) == 16 * 24);
    end();
    for (size_t k = 0; k < 2; k++) {
        begin("16,24,8", "fp16");
        oprec_set_text(&o.rec, "activation", refused[k]);
        oprec_set_real(&o.rec, "activation_alpha", 99);
        UNIT_CHECK(!build());
        UNIT_TEXT(why.code, "epilogue");
        end();
    }
    begin("16,24,16", "int8");
    oprec_set_int(&o.rec, "residual", 1);
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "epilogue");
    end();
}

static void int4_has_scales(void) {
    begin("16,256,512", "int4");
    UNIT_CHECK(build());
    check_dims("b", 1, 256, 512, 256 * 512, 512, 256 * 512 / 2);
    UNIT_INT(tensor("b")->type, SCOUT_INT4);
    UNIT_INT(tensor("scales")->dims[0], 256);
    UNIT_INT(tensor("scales")->dims[1], 4);
    UNIT_INT(tensor("scales")->type, SCOUT_FP16);
    UNIT_INT(gemm_problem_of(&op).block_size, 128);
    UNIT_INT(gemm_problem_of(&op).b_zero, -1);
    oprec_set_int(&o.rec, "zero_points", 1);
    o.rec.layout = "nn", o.rec.weight_type = DTYPE_UINT4;
    UNIT_CHECK(build());
    check_dims("b", 1, 512, 256, 256 * 512, 256, 256 * 512 / 2);
    UNIT_INT(tensor("b_zero")->type, SCOUT_UINT4);
    UNIT_INT(tensor("b_zero")->dims[1], 4);
    UNIT_INT((int64_t)tensor("b_zero")->bytes, 256 * 4 / 2);
    UNIT_CHECK(gemm_has_zeros(&(gemm_problem){.a_zero = -1, .b_zero = gemm_problem_of(&op).b_zero, .scales = -1}));
    end();
    begin("16,256,512", "int4");
    oprec_set_int(&o.rec, "zero_points", 1);
    oprec_set_int(&o.rec, "batch", 5);
    UNIT_CHECK(build());
    check_dims("b", 5, 256, 512, 256 * 512, 512, 5 * 256 * 512 / 2);
    UNIT_INT(tensor("scales")->dims[0], 5 * 256);
    UNIT_INT(tensor("b_zero")->dims[0], 5 * 256);
    oprec_set_text(&o.rec, "batch_inside", "b");
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "layout");
    oprec_set_text(&o.rec, "batch_inside", "a");
    UNIT_CHECK(build());
    oprec_set_int(&o.rec, "batch_stride_b", 0);
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "layout");
    end();
    begin("16,256,512", "fp16");
    oprec_set_int(&o.rec, "zero_points", 1);
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "feature");
    end();
    begin("16,256,500", "int4");
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "feature");
    end();
}

static void types_that_go_together(void) {
    static const struct {
        const char *precision;
        uint32_t input, weight, output, accumulate, tf32;
    } rows[] = {
        {"fp32", SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 0},
        {"tf32", SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 1},
        {"bf16", SCOUT_BF16, SCOUT_BF16, SCOUT_BF16, SCOUT_FP32, 0},
        {"fp8", SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16, SCOUT_FP32, 0},
        {"int8", SCOUT_INT8, SCOUT_INT8, SCOUT_INT32, SCOUT_INT32, 0},
        {"int4", SCOUT_FP16, SCOUT_INT4, SCOUT_FP16, SCOUT_FP32, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        begin("16,128,128", rows[k].precision);
        UNIT_CHECK(build());
        UNIT_INT(op.input, rows[k].input);
        UNIT_INT(op.weight, rows[k].weight);
        UNIT_INT(op.output, rows[k].output);
        UNIT_INT(op.accumulate, rows[k].accumulate);
        UNIT_INT(op.tf32, rows[k].tf32);
        end();
    }
    begin("16,128,128", "fp32");
    o.rec.weight_type = DTYPE_FP8E4M3FN;
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "type");
    o.rec.weight_type = DTYPE_INT8; /* without blocks: a scale for each column */
    UNIT_CHECK(build());
    UNIT_INT(tensor("scales")->dims[1], 1);
    UNIT_INT(gemm_problem_of(&op).block_size, 128);
    end();
}

static void what_cannot_be_told_is_refused(void) {
    static const char *const texts[] = {"quant", "activation_gamma", "batch_a"};
    static const char *const numbers[] = {"group_index", "weight_rearranged", "batch_stride_a"};
    for (int k = 0; k < 3; k++) {
        begin("16,24,8", "fp16");
        oprec_set_text(&o.rec, texts[k], "x");
        UNIT_CHECK(!build());
        UNIT_TEXT(why.code, "feature");
        end();
    }
    for (int k = 0; k < 3; k++) {
        begin("16,24,8", "fp16");
        oprec_set_int(&o.rec, numbers[k], k == 2 ? 7 : 1);
        UNIT_INT(build(), k == 1); /* how a weight lies in the file is nothing to a candidate */
        end();
    }
    begin("16,24,8", "fp16");
    oprec_set_real(&o.rec, "alpha", 0.125);
    UNIT_CHECK(build());
    end();
    begin("16,24,8", "fp16");
    o.rec.type = o.rec.weight_type = DTYPE_INT8, o.rec.out_type = DTYPE_INT32;
    UNIT_CHECK(build());
    oprec_set_real(&o.rec, "alpha", 0.125);
    UNIT_CHECK(!build());
    UNIT_TEXT(why.code, "feature");
    end();
    begin("16,24,8", "fp16");
    o.rec.what = "moe";
    UNIT_CHECK(!build());
    UNIT_CHECK(strstr(why.text, "moe") != NULL);
    end();
    begin("16,24,8", "fp16");
    o.rec.kind = OP_UNKNOWN;
    UNIT_CHECK(!build() && kinds_find(OP_UNKNOWN) == NULL);
    UNIT_TEXT(why.code, "no_candidate");
    end();
}

static void fractions_and_lists_become_text(void) {
    begin("16,24,8", "fp16");
    oprec_set_real(&o.rec, "scale", 0.5);
    oprec_set_ints(&o.rec, &a, "pads", 2, (int64_t[]){1, 2});
    UNIT_CHECK(build());
    UNIT_TEXT(op_field(&op, "scale")->text, "0.5");
    UNIT_TEXT(op_field(&op, "pads")->text, "1,2");
    end();
}

static double tolerance_of(const char *precision, const char *shape) {
    begin(shape, precision);
    UNIT_CHECK(build());
    const double t = kind_gemm.tolerance(&op);
    end();
    return t;
}

/* Loose enough for what the types lose, and tight enough that one wrong element among 256 that are projected together
 * shows: it is off by its spread, 1/16 of theirs, of which about half is left beside |want|. */
static void tolerances_hold_both_ways(void) {
    static const char *const depths[] = {"64,64,64", "64,64,4096", "64,64,147456"};
    static const char *const precisions[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "int4"};
    static const double unit[] = {0x1p-24, 0x1p-11, 0x1p-11, 0x1p-9, 0x1p-9, 0x1p-11};
    for (int p = 0; p < 6; p++) {
        double before = 0;
        for (int d = p == 5 ? 1 : 0; d < 3; d++) {
            const double t = tolerance_of(precisions[p], depths[d]);
            UNIT_CHECK(t > unit[p] && t < 1.0 / 32);
            UNIT_CHECK(t >= before);
            before = t;
        }
    }
    UNIT_CHECK(tolerance_of("int8", depths[1]) == 0);
    UNIT_CHECK(tolerance_of("fp32", depths[2]) < 1e-3);
}

/* Sums in single precision, in an order that no library would choose, stay within. */
static void a_sequential_sum_is_within(void) {
    const int64_t k = 16384;
    const double allowed = tolerance_of("fp32", "64,64,16384");
    uint64_t state = 1;
    double worst = 0;
    for (int run = 0; run < 64; run++) {
        float sum = 0;
        double exact = 0, squares = 0;
        for (int64_t i = 0; i < k; i++) {
            double x[2];
            for (int j = 0; j < 2; j++) {
                x[j] = -6;
                for (int n = 0; n < 12; n++) {
                    state = state * 6364136223846793005u + 1442695040888963407u;
                    x[j] += (double)(state >> 11) * 0x1p-53;
                }
            }
            sum += (float)x[0] * (float)x[1];
            const double term = (double)(float)x[0] * (double)(float)x[1];
            exact += term;
            squares += term * term;
        }
        worst = fmax(worst, fabs((double)sum - exact) / (fabs(exact) + sqrt(squares)));
    }
    UNIT_CHECK(worst < allowed);
    UNIT_CHECK(worst > allowed / 100); /* and the table is no barn door */
}

static void a_table_is_a_weight_where_it_is_stored(void) {
    begin("16,24,8", "fp16");
    o.rec = (oprec){.kind = OP_EMBEDDING, .type = DTYPE_FP16, .weight_type = DTYPE_FP16};
    oprec_set_shape(&o.rec, &a, 2, (const int64_t[]){16, 24});
    oprec_set_int(&o.rec, "table", 100);
    UNIT_CHECK(build());
    UNIT_INT(tensor("table")->role, SCOUT_WEIGHT);
    o.rec.weight_type = DTYPE_NONE;
    UNIT_CHECK(build());
    UNIT_INT(tensor("table")->role, SCOUT_INPUT);
    end();
}

static scout_answer takes_wide_fp16(const scout_op *asked, scout_device *device, scout_why *reason) {
    if (asked->input == SCOUT_FP16 && asked->shape[2] >= 256 && !device) return SCOUT_OK;
    return scout_say(reason, SCOUT_NO, "type", "fp16 alone");
}

static void a_candidate_offers_what_it_supports(void) {
    scout_candidate c = {.size = sizeof c, .kind = SCOUT_GEMM, .supports = takes_wide_fp16};
    UNIT_CHECK(kinds_offers(&c, "fp16"));
    UNIT_CHECK(kinds_offers(&c, "int4")); /* whose input is fp16 */
    UNIT_CHECK(!kinds_offers(&c, "bf16"));
    UNIT_CHECK(!kinds_offers(&c, "fp32"));
    UNIT_CHECK(!kinds_offers(&c, "no such precision"));
    c.kind = SCOUT_CONV;
    UNIT_CHECK(kinds_offers(&c, "bf16"));
}

int main(void) {
    UNIT_RUN(a_plain_product);
    UNIT_RUN(a_table_is_a_weight_where_it_is_stored);
    UNIT_RUN(layouts_are_as_stored);
    UNIT_RUN(batches_and_shared_sides);
    UNIT_RUN(a_bias_is_a_tensor);
    UNIT_RUN(a_residual_lies_as_the_output);
    UNIT_RUN(activations_have_their_parameters);
    UNIT_RUN(a_weight_with_an_activation_behind_it_is_small);
    UNIT_RUN(an_epilogue_has_its_tolerance_and_its_limits);
    UNIT_RUN(int4_has_scales);
    UNIT_RUN(types_that_go_together);
    UNIT_RUN(what_cannot_be_told_is_refused);
    UNIT_RUN(fractions_and_lists_become_text);
    UNIT_RUN(a_candidate_offers_what_it_supports);
    UNIT_RUN(tolerances_hold_both_ways);
    UNIT_RUN(a_sequential_sum_is_within);
    return unit_end();
}
