/* Data types, and operation records with their keys and ids. */
#include "common/oprec.h"
#include "tests/unit/unit.h"

#include <math.h>

static guard g;
static arena a;

static void start(void) {
    guard_init(&g);
    arena_init(&a, &g, (size_t)16 << 20);
}

static void every_dtype_is_named(void) {
    for (int k = 1; k < DTYPE_COUNT; k++) {
        const dtype_info *d = dtype_get((dtype)k);
        UNIT_CHECK(d->name != NULL && d->onnx != NULL && d->cls != DTYPE_CLASS_NONE);
        UNIT_INT(dtype_from_name(d->name), k);
        UNIT_INT(dtype_from_name(d->onnx), k);
        UNIT_CHECK(dtype_known(k));
    }
    UNIT_TEXT(dtype_get((dtype)0)->name, "none");
    UNIT_TEXT(dtype_get((dtype)27)->name, "none");
    UNIT_TEXT(dtype_get((dtype)-5)->name, "none");
    UNIT_CHECK(!dtype_known(0) && !dtype_known(27) && !dtype_known(-1) && !dtype_known(INT64_MAX));
    UNIT_INT(dtype_from_name("float"), DTYPE_NONE);
}

static void packed_sizes(void) {
    UNIT_INT(dtype_bytes(DTYPE_FP32, 3), 12);
    UNIT_INT(dtype_bytes(DTYPE_INT4, 3), 2);
    UNIT_INT(dtype_bytes(DTYPE_UINT2, 5), 2);
    UNIT_INT(dtype_bytes(DTYPE_BOOL, 5), 5);
    UNIT_INT(dtype_bytes(DTYPE_STRING, 5), 0);
    UNIT_INT(dtype_bytes(DTYPE_FP16, 0), 0);
    UNIT_INT(dtype_bytes(DTYPE_FP16, -3), 0);
    UNIT_INT(dtype_bytes(DTYPE_COMPLEX128, INT64_MAX / 2), INT64_MAX);
    UNIT_INT(dtype_bytes(DTYPE_INT4, INT64_MAX), INT64_MAX / 2 + 1);
}

static void kinds_have_names_and_aliases(void) {
    for (int k = 0; k < OP_KIND_COUNT; k++) {
        op_kind kind = OP_UNKNOWN;
        UNIT_CHECK(oprec_kind_from_name(oprec_kind_name((op_kind)k), &kind));
        UNIT_INT(kind, k);
    }
    op_kind kind;
    UNIT_CHECK(oprec_kind_from_name("layernorm", &kind) && kind == OP_NORM);
    UNIT_CHECK(oprec_kind_from_name("rmsnorm", &kind) && kind == OP_NORM);
    UNIT_CHECK(oprec_kind_from_name("conv2d", &kind) && kind == OP_CONV);
    UNIT_CHECK(!oprec_kind_from_name("Gemm", &kind));
    UNIT_TEXT(oprec_kind_name((op_kind)99), "unknown");
}

static oprec sample(void) {
    oprec r = {.kind = OP_GEMM, .layout = "nt", .type = DTYPE_FP16, .weight_type = DTYPE_FP16, .out_type = DTYPE_FP16};
    oprec_set_shape(&r, &a, 3, (int64_t[]){128, 768, 3072});
    return r;
}

static void fields_are_sorted_and_replaced(void) {
    start();
    oprec r = sample();
    oprec_set_int(&r, "stride", 2);
    oprec_set_text(&r, "activation", "relu");
    oprec_set_ints(&r, &a, "pads", 2, (int64_t[]){1, 2});
    oprec_set_real(&r, "alpha", 0.1);
    oprec_set_int(&r, "stride", 3);
    UNIT_INT(r.field_count, 4);
    for (int k = 1; k < r.field_count; k++) UNIT_CHECK(strcmp(r.fields[k - 1].name, r.fields[k].name) < 0);
    UNIT_INT(oprec_int(&r, "stride", 9), 3);
    UNIT_INT(oprec_int(&r, "alpha", 9), 9); /* not an integer */
    UNIT_INT(oprec_int(&r, "none", 9), 9);
    UNIT_CHECK(oprec_field(&r, "none") == NULL);
    arena_free(&a);
}

/* Written down, so that a change of the key is seen: stored caches and tables depend on it. */
static void key_is_stable(void) {
    start();
    oprec r = sample();
    oprec_set_int(&r, "batch", 12);
    oprec_set_text(&r, "activation", "x;y=z %");
    oprec_set_ints(&r, &a, "pads", 3, (int64_t[]){0, -1, 2});
    oprec_set_real(&r, "alpha", 0.1);
    UNIT_TEXT(oprec_key(&r, &a), "gemm;shape=128,768,3072;layout=nt;type=fp16;weight=fp16;out=fp16;"
                                 "activation=x%3by%3dz%20%25;alpha=0.1;batch=12;pads=0,-1,2");
    UNIT_TEXT(oprec_id(&r, &a), "gemm_128x768x3072_fp16_0624ed53a3");
    arena_free(&a);
}

static void key_follows_everything_but_costs(void) {
    start();
    oprec r = sample();
    const char *key = oprec_key(&r, &a);
    oprec other = r;
    other.macs = other.flops = other.bytes_read = 5;
    UNIT_TEXT(oprec_key(&other, &a), key);
    other = r, other.what = "x";
    UNIT_CHECK(strcmp(oprec_key(&other, &a), key) != 0);
    other = r, other.layout = "nn";
    UNIT_CHECK(strcmp(oprec_key(&other, &a), key) != 0);
    other = r, other.out_type = DTYPE_FP32;
    UNIT_CHECK(strcmp(oprec_key(&other, &a), key) != 0);
    other = r, other.weight_type = DTYPE_NONE;
    UNIT_CHECK(strcmp(oprec_key(&other, &a), key) != 0);
    other = r, oprec_set_int(&other, "batch", 1);
    UNIT_CHECK(strcmp(oprec_key(&other, &a), key) != 0);
    UNIT_CHECK(strcmp(oprec_id(&other, &a), oprec_id(&r, &a)) != 0);
    arena_free(&a);
}

static void order_of_setting_does_not_matter(void) {
    start();
    oprec r = sample(), s = sample();
    oprec_set_int(&r, "a", 1), oprec_set_int(&r, "b", 2), oprec_set_int(&r, "c", 3);
    oprec_set_int(&s, "c", 3), oprec_set_int(&s, "a", 1), oprec_set_int(&s, "b", 2);
    UNIT_TEXT(oprec_key(&r, &a), oprec_key(&s, &a));
    arena_free(&a);
}

static void reals_are_short_and_exact(void) {
    start();
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        {0.1, "0.1"}, {1, "1"}, {1e-5, "1e-05"}, {0.1f, "0.10000000149011612"}, {1.0 / 3, "0.3333333333333333"}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        oprec r = {.kind = OP_NORM};
        oprec_set_real(&r, "epsilon", cases[k].x);
        UNIT_TEXT(strstr(oprec_key(&r, &a), "epsilon=") + 8, cases[k].text);
    }
    oprec r = {.kind = OP_NORM};
    oprec_set_real(&r, "epsilon", NAN);
    UNIT_CHECK(strstr(oprec_key(&r, &a), "nan") != NULL);
    arena_free(&a);
}

static void id_is_a_file_name(void) {
    start();
    oprec r = {.kind = OP_RECURRENT, .type = DTYPE_FP8E4M3FNUZ, .what = "../../x"};
    int64_t dims[64];
    for (int k = 0; k < 64; k++) dims[k] = INT64_MAX - k;
    oprec_set_shape(&r, &a, 64, dims);
    oprec_set_text(&r, "name", "a/b\n");
    const char *id = oprec_id(&r, &a);
    UNIT_CHECK(strlen(id) <= 120);
    UNIT_INT(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(id));
    oprec scalar = {.kind = OP_ELEMENTWISE, .type = DTYPE_FP32};
    UNIT_CHECK(strncmp(oprec_id(&scalar, &a), "elementwise_scalar_fp32_", 24) == 0);
    arena_free(&a);
}

int main(void) {
    UNIT_RUN(every_dtype_is_named);
    UNIT_RUN(packed_sizes);
    UNIT_RUN(kinds_have_names_and_aliases);
    UNIT_RUN(fields_are_sorted_and_replaced);
    UNIT_RUN(key_is_stable);
    UNIT_RUN(key_follows_everything_but_costs);
    UNIT_RUN(order_of_setting_does_not_matter);
    UNIT_RUN(reals_are_short_and_exact);
    UNIT_RUN(id_is_a_file_name);
    return unit_end();
}
