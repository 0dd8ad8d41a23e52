/* What a fusion of ops.json becomes: one operation, and places for its parts' tensors in it; or a reason why not. */
#include "tests/unit/scout/fusion_fixture.h"

static const fusion *one(const char *asked) {
    if (!UNIT_CHECK(fusion_make_of("fp32", 4, asked))) printf("%s\n", g.st.text);
    return fusions.count == 1 ? &fusions.items[0] : NULL;
}

static const fusion_place *place(const fusion *f, int part, const char *tensor) {
    for (int k = 0; k < f->parts[part].place_count; k++)
        if (strcmp(f->parts[part].places[k].tensor, tensor) == 0) return &f->parts[part].places[k];
    return NULL;
}

static void lies(const fusion *f, int part, const char *tensor, const char *of, int64_t offset, int64_t stride) {
    const fusion_place *p = place(f, part, tensor);
    if (!UNIT_CHECK(p != NULL)) return;
    UNIT_TEXT(p->of, of);
    UNIT_INT(p->offset, offset);
    UNIT_INT(p->stride, stride);
}

static const char *text_field(const fusion *f, const char *name) {
    const opfield *x = oprec_field(&f->fused.rec, name);
    return x && x->kind == OPFIELD_TEXT ? x->text : NULL;
}

/* ---- what follows a product ---- */

static void a_product_takes_what_follows(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gelu\",\"ops\":[\"g\",\"bias\",\"gelu\"],\"count\":3,\"selected\":2,"
                          "\"saved_bytes\":7680}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(f->fused.rec.kind, OP_GEMM);
    UNIT_TEXT(text_field(f, "bias"), "n");
    UNIT_TEXT(text_field(f, "activation"), "gelu");
    UNIT_INT(f->fused.count, 3);
    UNIT_INT(f->selected, 2);
    UNIT_INT(f->fused.rec.flops, 23040);
    UNIT_INT(f->fused.rec.bytes_written, 4 * 480);
    UNIT_INT(f->fused.rec.bytes_read, 4 * (1248 + 40));
    lies(f, 0, "a", "a", 0, 0);
    lies(f, 0, "c", "@0", 0, 0);
    lies(f, 1, "a", "@0", 0, 0);
    lies(f, 1, "b", "bias", 0, 0);
    lies(f, 1, "y", "@1", 0, 0);
    lies(f, 2, "a", "@1", 0, 0);
    lies(f, 2, "y", "c", 0, 0);
    UNIT_CHECK(strncmp(f->id, "gemm_gelu_12x40x24_fp32_", 24) == 0);
    end();
}

static void a_bias_may_come_with_its_activation(void) {
    const fusion *f =
        one("{\"pattern\":\"gemm+gelu\",\"ops\":[\"g\",\"biasgelu\"],\"count\":1,\"selected\":1,\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(text_field(f, "bias"), "n");
    UNIT_TEXT(text_field(f, "activation"), "gelu");
    lies(f, 1, "b", "bias", 0, 0);
    end();
}

static void a_residual_is_a_tensor(void) {
    const fusion *f = one("{\"pattern\":\"gemm+residual\",\"ops\":[\"g\",\"bias\",\"res\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":7680}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "residual", 0), 1);
    UNIT_TEXT(text_field(f, "bias"), "n");
    lies(f, 2, "b", "residual", 0, 0);
    end();
}

/* With one row the pattern cannot tell a bias from a residual; the operands do. */
static void one_row_has_a_bias(void) {
    const fusion *f = one("{\"pattern\":\"gemm+residual\",\"ops\":[\"g1\",\"add1\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":320}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(text_field(f, "bias"), "n");
    UNIT_CHECK(!oprec_field(&f->fused.rec, "residual"));
    end();
}

static void parameters_go_along(void) {
    const fusion *f = one("{\"pattern\":\"conv+activation\",\"ops\":[\"c\",\"hard\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":4608}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(text_field(f, "activation"), "hardsigmoid");
    UNIT_CHECK(oprec_field(&f->fused.rec, "activation_alpha") != NULL);
    UNIT_CHECK(!oprec_field(&f->fused.rec, "activation_beta"));
    end();
}

/* ---- batch norms ---- */

static void a_batch_norm_becomes_a_bias(void) {
    const fusion *f = one("{\"pattern\":\"conv+bn+activation\",\"ops\":[\"cb\",\"bn\",\"crelu\"],\"count\":1,"
                          "\"selected\":1,\"saved_bytes\":9216}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(text_field(f, "bias"), "channel");
    UNIT_TEXT(text_field(f, "activation"), "relu");
    lies(f, 0, "bias", "=0", 0, 0);
    lies(f, 1, "scale", "=1", 0, 0);
    lies(f, 1, "mean", "=0", 0, 0);
    lies(f, 1, "variance", "=variance", 0, 0);
    lies(f, 1, "bias", "bias", 0, 0);
    lies(f, 2, "y", "output", 0, 0);
    end();
}

/* ---- side by side ---- */

static void equal_products_are_a_batch(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gq\",\"gq\"],\"count\":1,"
                          "\"selected\":1,\"saved_bytes\":2304}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(f->fused.rec.shape[1], 128);
    UNIT_INT(oprec_int(&f->fused.rec, "batch", 1), 3);
    UNIT_INT(oprec_int(&f->fused.rec, "batch_stride_a", -1), 0);
    UNIT_INT(f->fused.rec.bytes_written, 3 * 4 * 1536);
    UNIT_INT(f->fused.rec.flops, 3 * 73728);
    lies(f, 2, "a", "a", 0, 0);
    lies(f, 2, "b", "b", 2 * 128 * 24, 0);
    lies(f, 2, "c", "c", 2 * 12 * 128, 0);
    end();
}

/* What a record says of a batch means nothing of one product, and would of several. */
static void products_that_speak_of_batches_are_none(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"gi\",\"gi\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":1152}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_CHECK(!oprec_field(&f->fused.rec, "batch"));
    UNIT_INT(f->fused.rec.shape[1], 256);
    end();
}

static void products_of_other_widths_lie_side_by_side(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gv\"],\"count\":1,"
                          "\"selected\":1,\"saved_bytes\":1152}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(f->fused.rec.shape[1], 192);
    UNIT_CHECK(!oprec_field(&f->fused.rec, "batch"));
    lies(f, 1, "b", "b", 128, 192); /* columns of rows of 192 */
    lies(f, 1, "c", "c", 128, 192);
    end();
}

static void weights_of_whole_rows_are_slices(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"gt\",\"gu\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":1152}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(f->fused.rec.shape[1], 144);
    lies(f, 1, "b", "b", 128 * 24, 0);
    lies(f, 1, "c", "c", 128, 144);
    end();
}

/* Candidates count on where a tensor begins. */
static void slices_that_are_not_aligned_are_a_sum(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"g\",\"g\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":1152}");
    UNIT_CHECK(f && f->how == FUSION_SUM && !f->recognised);
    end();
}

/* Passes write densely: where rows of the wide result lie apart, the parts' own times are added up. */
static void biases_into_slices_are_a_sum(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input+bias\",\"ops\":[\"gq\",\"gv\",\"addq\",\"addv\"],"
                          "\"count\":1,\"selected\":1,\"saved_bytes\":8832}");
    if (!UNIT_CHECK(f && f->how == FUSION_SUM)) return;
    UNIT_TEXT(text_field(f, "bias"), "n");
    UNIT_CHECK(f->recognised == NULL);
    end();
    f = one("{\"pattern\":\"gemm+gemm shared input+bias\",\"ops\":[\"gq\",\"gq\",\"addq\",\"addq\"],\"count\":1,"
            "\"selected\":1,\"saved_bytes\":8832}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(text_field(f, "bias"), "each");
    lies(f, 3, "a", "@1", 0, 0);
    lies(f, 3, "b", "bias", 128, 0);
    lies(f, 3, "y", "c", 12 * 128, 0);
    end();
    f = one("{\"pattern\":\"gemm+gemm shared input+bias\",\"ops\":[\"g1\",\"g1\",\"add1\",\"add1\"],\"count\":1,"
            "\"selected\":1,\"saved_bytes\":736}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    lies(f, 1, "c", "@1", 0, 0);
    lies(f, 3, "a", "@1", 0, 0);
    lies(f, 3, "b", "bias", 128, 0);
    lies(f, 3, "y", "c", 128, 0);
    end();
}

/* ---- rows ---- */

static void a_sum_is_written_where_others_read_it(void) {
    const fusion *f = one("{\"pattern\":\"norm+residual\",\"ops\":[\"res\",\"ln\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "residual", 0), 1);
    UNIT_INT(oprec_int(&f->fused.rec, "residual_out", 0), 0);
    lies(f, 0, "y", "@0", 0, 0);
    UNIT_INT(f->fused.rec.bytes_read, 4 * (960 + 560 - 480));
    end();
    f = one("{\"pattern\":\"norm+residual\",\"ops\":[\"res\",\"ln\"],\"count\":1,\"selected\":1,\"saved_bytes\":1920}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "residual_out", 0), 1);
    lies(f, 0, "y", "sum", 0, 0);
    lies(f, 1, "x", "sum", 0, 0);
    UNIT_INT(f->fused.rec.bytes_written, 4 * 960);
    end();
}

static void rows_of_a_mask(void) {
    const fusion *f = one("{\"pattern\":\"softmax+mask\",\"ops\":[\"mask\",\"sm\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "bias", 0), 1);
    UNIT_INT(oprec_int(&f->fused.rec, "inner_broadcast", 0), 0); /* they come in turn */
    UNIT_INT(f->fused.rec.bytes_read, 4 * (480 + 80));
    end();
    f = one("{\"pattern\":\"softmax+mask\",\"ops\":[\"pad\",\"sm\"],\"count\":1,\"selected\":1,\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "inner_broadcast", 0), 1); /* each serves neighbours */
    UNIT_INT(f->fused.rec.bytes_read, 4 * (480 + 32));
    end();
    f = one("{\"pattern\":\"softmax+mask\",\"ops\":[\"inside\",\"sm\"],\"count\":1,\"selected\":1,"
            "\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_INT(oprec_int(&f->fused.rec, "inner_broadcast", 0), 5);
    UNIT_INT(f->fused.rec.bytes_read, 4 * (480 + 160));
    end();
}

static void a_factor_before_a_softmax(void) {
    const fusion *f = one("{\"pattern\":\"softmax+mask\",\"ops\":[\"scale\",\"sm\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    const opfield *scale = oprec_field(&f->fused.rec, "scale");
    UNIT_CHECK(scale && scale->kind == OPFIELD_REAL && scale->real == 0.125);
    lies(f, 0, "b", "=0.125", 0, 0);
    end();
}

/* ---- chains, and what was recognised ---- */

static void a_chain_is_one_pass(void) {
    const fusion *f = one("{\"pattern\":\"elementwise chain\",\"ops\":[\"bias\",\"silu\",\"mul\"],\"count\":1,"
                          "\"selected\":1,\"saved_bytes\":7680}");
    if (!UNIT_CHECK(f && f->how == FUSION_SEQUENCE)) return;
    UNIT_TEXT(f->fused.rec.what, "chain");
    lies(f, 0, "a", "#0", 0, 0);
    lies(f, 1, "a", "@0", 0, 0);
    lies(f, 2, "y", "#3", 0, 0);
    end();
}

static void what_was_recognised_is_the_operation(void) {
    const fusion *f =
        one("{\"pattern\":\"swiglu\",\"ops\":[\"silu\",\"mul\"],\"count\":1,\"selected\":1,\"saved_bytes\":3840}");
    if (!UNIT_CHECK(f && f->how == FUSION_SUM && f->recognised)) return;
    UNIT_TEXT(f->recognised->id, "whole");
    UNIT_INT(f->fused.rec.bytes_read, 4 * 960);
    end();
}

/* ---- what cannot be told as one operation ---- */

static void others_have_a_reason(void) {
    static const struct {
        const char *asked, *code;
    } cases[] = {
        {"\"gemm+bias\",\"ops\":[\"g\",\"scalar\"]", "epilogue"},
        {"\"gemm+bias\",\"ops\":[\"g\",\"bias\",\"bias\"]", "epilogue"},
        {"\"gemm+relu\",\"ops\":[\"g\",\"relu\",\"bias\"]", "epilogue"},
        {"\"gemm+bias\",\"ops\":[\"bias\",\"g\"]", "feature"},
        {"\"gemm+silu\",\"ops\":[\"g\",\"mul\",\"mul\"]", "epilogue"},
        {"\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gt\"]", "layout"},
        {"\"gemm+gemm shared input\",\"ops\":[\"g\",\"relu\"]", "feature"},
        {"\"gemm+gemm shared input+bias\",\"ops\":[\"g\",\"g\",\"relu\",\"relu\"]", "epilogue"},
        {"\"norm+residual\",\"ops\":[\"bias\",\"ln\"]", "epilogue"},
        {"\"norm+residual\",\"ops\":[\"res\",\"sm\"]", "feature"},
        {"\"softmax+mask\",\"ops\":[\"odd\",\"sm\"]", "layout"},
        {"\"softmax+mask\",\"ops\":[\"rowwise\",\"sm\"]", "epilogue"},
        {"\"softmax+mask\",\"ops\":[\"crelu\",\"sm\"]", "epilogue"},
        {"\"swiglu\",\"ops\":[\"silu\",\"silu\"]", "feature"},
        {"\"of nobody\",\"ops\":[\"silu\",\"mul\",\"mul\"]", "feature"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char asked[256];
        snprintf(asked, sizeof asked, "{\"pattern\":%s,\"count\":1,\"selected\":1,\"saved_bytes\":8}", cases[k].asked);
        const fusion *f = one(asked);
        if (UNIT_CHECK(f && f->how == FUSION_SKIPPED)) UNIT_TEXT(f->skip_code, cases[k].code);
        if (f && f->how == FUSION_SKIPPED) UNIT_CHECK(f->skip_text && *f->skip_text);
        end();
    }
}

static void files_are_not_trusted(void) {
    static const struct {
        const char *asked, *says;
    } cases[] = {{"7", "must be an object"},
                 {"{\"ops\":[\"g\",\"relu\"]}", "says no pattern"},
                 {"{\"pattern\":\"gemm+relu\",\"ops\":[\"g\"]}", "2 operations at least"},
                 {"{\"pattern\":\"gemm+relu\",\"ops\":[\"g\",3]}", "must be ids"},
                 {"{\"pattern\":\"gemm+relu\",\"ops\":[\"g\",\"nobody\"]}", "no operation of this file"},
                 {"{\"pattern\":\"gemm+relu\",\"ops\":[\"g\",\"relu\"],\"count\":-1}", "at least 0"},
                 {"{\"pattern\":\"gemm+relu\",\"ops\":[\"g\",\"relu\"]},{\"pattern\":\"gemm+relu\",\"ops\":[\"g\","
                  "\"relu\"]}",
                  "twice"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        UNIT_CHECK(!fusion_make_of("fp32", 4, cases[k].asked));
        UNIT_INT(g.st.code, STATUS_INPUT);
        if (!strstr(g.st.text, cases[k].says)) unit_same_text(g.st.text, cases[k].says, __FILE__, __LINE__);
        end();
    }
    const fusion *f = one("{\"pattern\":\"gemm+relu\",\"ops\":[\"g\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\","
                          "\"relu\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\",\"relu\","
                          "\"relu\"]}");
    if (UNIT_CHECK(f && f->how == FUSION_SKIPPED)) UNIT_TEXT(f->skip_code, "feature");
    end();
}

/* ---- between processes ---- */

static fusion_part *back;

static int carry(const json_t *wire) {
    if (!guard_enter(&g)) return -1;
    return fusion_from_json(wire, &a, &back);
}

static void parts_travel(void) {
    const fusion *f = one("{\"pattern\":\"gemm+gemm shared input\",\"ops\":[\"gq\",\"gv\"],\"count\":1,\"selected\":1,"
                          "\"saved_bytes\":1152}");
    json_builder b = {NULL};
    if (!UNIT_CHECK(f != NULL)) return;
    fusions.items[0].parts[1].candidate = "somebody";
    fusions.items[0].parts[1].variant = "algo=3";
    json_t *wire = fusion_to_json(f, &b);
    UNIT_INT(carry(wire), 2);
    UNIT_TEXT(back[1].candidate, "somebody");
    UNIT_TEXT(back[1].variant, "algo=3");
    UNIT_CHECK(back[0].candidate == NULL);
    UNIT_INT(back[1].place_count, 3);
    UNIT_INT(back[1].places[1].offset, 128);
    UNIT_INT(back[1].places[1].stride, 192);
    UNIT_TEXT(back[1].operation->id, "gv");
    const int64_t far = (int64_t)1 << 60; /* a slice behind dimensions of any size that a file may have */
    json_object_set_new(json_array_get(json_object_get(json_array_get(wire, 1), "places"), 1), "offset",
                        json_integer(far));
    UNIT_INT(carry(wire), 2);
    UNIT_CHECK(back && back[1].places[1].offset == far);
    UNIT_INT(carry(NULL), 0); /* an operation that is no fusion */
    json_object_set_new(json_array_get(json_object_get(json_array_get(wire, 0), "places"), 0), "of", json_null());
    UNIT_INT(carry(wire), -1);
    json_decref(wire);
    end();
}

int main(void) {
    UNIT_RUN(a_product_takes_what_follows);
    UNIT_RUN(a_bias_may_come_with_its_activation);
    UNIT_RUN(a_residual_is_a_tensor);
    UNIT_RUN(one_row_has_a_bias);
    UNIT_RUN(parameters_go_along);
    UNIT_RUN(a_batch_norm_becomes_a_bias);
    UNIT_RUN(equal_products_are_a_batch);
    UNIT_RUN(products_that_speak_of_batches_are_none);
    UNIT_RUN(products_of_other_widths_lie_side_by_side);
    UNIT_RUN(weights_of_whole_rows_are_slices);
    UNIT_RUN(slices_that_are_not_aligned_are_a_sum);
    UNIT_RUN(biases_into_slices_are_a_sum);
    UNIT_RUN(a_sum_is_written_where_others_read_it);
    UNIT_RUN(rows_of_a_mask);
    UNIT_RUN(a_factor_before_a_softmax);
    UNIT_RUN(a_chain_is_one_pass);
    UNIT_RUN(what_was_recognised_is_the_operation);
    UNIT_RUN(others_have_a_reason);
    UNIT_RUN(files_are_not_trusted);
    UNIT_RUN(parts_travel);
    return unit_end();
}
