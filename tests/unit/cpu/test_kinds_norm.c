/* What candidates are told of norms and softmax, what cannot be told, and how exact they have to be. */
#include "scout/op/norm.h"
#include "scout/op/softmax.h"
#include "tests/unit/cpu/cpu_norm_fixture.h"
#include "tests/unit/unit.h"

#include <math.h>

static cpu_norm_lab lab;

static bool build(const char *kind_name, const char *what, const char *shape, const char *weight, const char *fields) {
    const cpu_norm_want want = {.kind = kind_name, .what = what, .shape = shape, .weight = weight, .fields = fields};
    memset(&lab, 0, sizeof lab);
    return cpu_norm_lab_build(&lab, &want);
}

static void end(void) { arena_free(&lab.a); }

/* "x in fp32 6x5": name, role, type and dimensions of a tensor. */
static void check(int tensor, const char *name, uint32_t role, uint32_t type, int rank, const int64_t *dims) {
    if (!UNIT_CHECK(tensor >= 0 && tensor < (int)lab.op.tensor_count)) return;
    const scout_tensor *t = &lab.op.tensors[tensor];
    UNIT_TEXT(t->name, name);
    UNIT_INT(t->role, role);
    UNIT_INT(t->type, type);
    UNIT_INT(t->rank, rank);
    for (int d = 0; d < rank; d++) UNIT_INT(t->dims[d], dims[d]);
}

static void a_layer_norm(void) {
    const cpu_norm_want want = {
        .kind = "norm", .what = "layer", .shape = "6,5", .precision = "fp16", .weight = "fp32", .fields = "bias=1"};
    UNIT_CHECK(cpu_norm_lab_build(&lab, &want));
    UNIT_INT(lab.op.tensor_count, 4);
    check(0, "x", SCOUT_INPUT, SCOUT_FP16, 2, (int64_t[]){6, 5});
    check(1, "y", SCOUT_OUTPUT, SCOUT_FP16, 2, (int64_t[]){6, 5});
    check(2, "scale", SCOUT_SIDE, SCOUT_FP32, 1, (int64_t[]){5});
    check(3, "bias", SCOUT_SIDE, SCOUT_FP32, 1, (int64_t[]){5});
    const norm_problem p = norm_problem_of(&lab.op);
    UNIT_CHECK(p.form == NORM_CENTRED && p.k0 == 6 && p.r0 == 1 && p.k1 == 1 && p.r1 == 5 && p.k2 == 1);
    UNIT_CHECK(p.scale == 2 && p.bias == 3 && p.residual == -1 && p.sum == -1 && p.epsilon == 1e-5);
    UNIT_CHECK(norm_side(&p, 3, 0, 0, 4) == 4);
    end();
}

static void everything_that_goes_with_it(void) {
    UNIT_CHECK(build("norm", "rms", "6,5", "fp32", "residual=1 residual_out=1 input_bias=1 activation=silu"));
    UNIT_INT(lab.op.tensor_count, 6);
    check(3, "residual", SCOUT_INPUT, SCOUT_FP32, 2, (int64_t[]){6, 5});
    check(4, "input_bias", SCOUT_SIDE, SCOUT_FP32, 1, (int64_t[]){5});
    check(5, "sum", SCOUT_OUTPUT, SCOUT_FP32, 2, (int64_t[]){6, 5});
    UNIT_INT(norm_problem_of(&lab.op).activation, NORM_SILU);
    end();
    UNIT_CHECK(build("norm", "batch", "30,49", "fp32", "channels=15 bias=1"));
    UNIT_INT(lab.op.tensor_count, 6);
    check(0, "x", SCOUT_INPUT, SCOUT_FP32, 3, (int64_t[]){2, 15, 49});
    check(4, "mean", SCOUT_SIDE, SCOUT_FP32, 1, (int64_t[]){15});
    check(5, "variance", SCOUT_SIDE, SCOUT_FP32, 1, (int64_t[]){15});
    end();
}

static void levels_of_axes(void) {
    static const struct {
        const char *shape, *fields;
        int64_t levels[5];
    } cases[] = {
        {"6,4", "input=2,4,3 axes=1", {2, 1, 1, 4, 3}},         {"4,6", "input=2,4,3 axes=0,2", {1, 2, 4, 3, 1}},
        {"6,4", "input=2,3,4 axes=2", {6, 1, 1, 4, 1}},         {"4,6", "input=2,3,4 axes=1,0", {1, 1, 1, 6, 4}},
        {"3,40", "input=2,3,4,5 axes=0,2,3", {1, 2, 3, 20, 1}}, {"1,24", "input=2,3,4 axes=0,1,2", {1, 1, 1, 24, 1}},
        {"8,15", "input=2,3,4,5 axes=1,3", {2, 3, 4, 5, 1}},    {"4,2", "input=2,1,4 axes=0,1", {1, 1, 1, 2, 4}}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (!UNIT_CHECK(build("norm", "mvn", cases[k].shape, NULL, cases[k].fields))) continue;
        const norm_problem p = norm_problem_of(&lab.op);
        const int64_t got[] = {p.k0, p.r0, p.k1, p.r1, p.k2};
        for (int l = 0; l < 5; l++) UNIT_INT(got[l], cases[k].levels[l]);
        end();
    }
}

static void groups_are_found(void) {
    UNIT_INT(norm_groups(32, 630, 320), 32); /* one image */
    UNIT_INT(norm_groups(2, 6, 4), 2);
    UNIT_INT(norm_groups(8, 3, 4), 4);  /* two images */
    UNIT_INT(norm_groups(6, 12, 4), 2); /* three */
    UNIT_INT(norm_groups(7, 5, 4), 0);  /* one group of all channels does not fit 5 */
    UNIT_INT(norm_groups((int64_t)1 << 40, 1, ((int64_t)1 << 40) - 1), 0);
    UNIT_CHECK(build("norm", "group", "32,630", "fp32", "channels=320 layout=nhwc"));
    check(0, "x", SCOUT_INPUT, SCOUT_FP32, 3, (int64_t[]){1, 63, 320});
    const norm_problem p = norm_problem_of(&lab.op);
    UNIT_CHECK(p.k0 == 1 && p.r0 == 63 && p.k1 == 32 && p.r1 == 10 && p.k2 == 1);
    UNIT_INT(norm_side(&p, 0, 5, 2, 3), 23);
    end();
}

static void what_cannot_be_told_is_refused(void) {
    static const struct {
        const char *what, *shape, *fields, *code;
    } cases[] = {
        {"strange", "6,5", NULL, "feature"},
        {NULL, "6,5", NULL, "feature"},
        {"layer", "6,5", "training=1", "feature"},
        {"batch", "6,5", "channels=3 training=1", "feature"},
        {"layer", "6,5", "stash_type=10", "feature"},
        {"layer", "6,5", "bias=full", "feature"},
        {"layer", "6,5", "activation=gelu", "feature"},
        {"lp", "6,5", "p=3", "feature"},
        {"lrn", "6,5", "size=0", "shape"},
        {"lrn", "6,5", "size=6", "shape"},
        {"lrn", "6,5", "size=3 bias=1", "feature"},
        {"batch", "6,5", NULL, "shape"},
        {"batch", "6,5", "channels=4", "shape"},
        {"batch", "6,5", "channels=3 layout=nhwc", "layout"},
        {"group", "7,5", "channels=4", "shape"},
        {"group", "8,5", "channels=4 layout=nchw16c", "layout"},
        {"group", "8,5", "channels=0", "shape"},
        {"group", "8,5", "channels=-4", "shape"},
        {"instance", "8,5", "channels=4 input=2,4,5 axes=2", "layout"},
        {"layer", "6,4", "input=2,4,3", "layout"},
        {"layer", "6,4", "axes=1", "layout"},
        {"layer", "6,4", "input=2,4,3 axes=3", "shape"},
        {"layer", "6,4", "input=2,4,3 axes=-1", "shape"},
        {"layer", "6,4", "input=2,4,3 axes=1,1", "shape"},
        {"layer", "6,4", "input=2,4,4 axes=1", "shape"},
        {"layer", "6,4", "input=2,0,3 axes=1", "shape"},
        {"layer", "8,8", "input=2,2,2,2,2,2 axes=0,2,4", "layout"},
        {"layer", "1,1", "input=1,1,1,1,1,1,1,1,1 axes=0", "layout"},
        {"layer", "1099511627776,1099511627776", NULL, "shape"},
        {"layer", "1099511627776,1024", NULL, "shape"},
        {"layer", "4,4", "input=9223372036854775807,9223372036854775807,2 axes=1", "shape"},
        {"mvn", "6,5", "out_dtype=int8", "type"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (!UNIT_CHECK(!build("norm", cases[k].what, cases[k].shape, NULL, cases[k].fields)))
            printf("  case %zu\n", k);
        UNIT_TEXT(lab.why.code, cases[k].code);
        UNIT_CHECK(lab.why.text[0]);
        end();
    }
}

static void a_softmax(void) {
    UNIT_CHECK(build("softmax", NULL, "14,65", NULL, "inner=7"));
    UNIT_INT(lab.op.tensor_count, 2);
    check(0, "x", SCOUT_INPUT, SCOUT_FP32, 3, (int64_t[]){2, 65, 7});
    check(1, "y", SCOUT_OUTPUT, SCOUT_FP32, 3, (int64_t[]){2, 65, 7});
    const softmax_problem p = softmax_problem_of(&lab.op);
    UNIT_CHECK(p.outer == 2 && p.inner == 7 && p.cols == 65 && !p.logarithm && p.bias == -1);
    UNIT_CHECK(kinds_find(OP_SOFTMAX)->specials(&lab.op) == 14 * 65);
    end();
    UNIT_CHECK(build("softmax", "log", "6,5", NULL, "bias=1"));
    check(2, "bias", SCOUT_INPUT, SCOUT_FP32, 2, (int64_t[]){6, 5});
    UNIT_CHECK(lab.op.bytes_read == 2 * 6 * 5 * 4); /* the bias is read, too */
    UNIT_CHECK(kinds_find(OP_SOFTMAX)->specials(&lab.op) == 6 * 5 + 6);
    end();
    UNIT_CHECK(build("softmax", NULL, "6,5", NULL, "bias=1 bytes_read=180 inner_broadcast=1"));
    check(2, "bias", SCOUT_INPUT, SCOUT_FP32, 2, (int64_t[]){3, 5});
    const softmax_problem b = softmax_problem_of(&lab.op);
    UNIT_CHECK(softmax_bias_row(&b, 0) == 0 && softmax_bias_row(&b, 1) == 0 && softmax_bias_row(&b, 5) == 2);
    end();
}

static void a_softmax_that_cannot_be_told_is_refused(void) {
    static const struct {
        const char *what, *shape, *fields, *code;
    } cases[] = {
        {"hard", "6,5", NULL, "feature"},
        {NULL, "6,5", "quant=qdq", "feature"},
        {NULL, "6,5", "inner=4", "shape"},
        {NULL, "6,5", "inner=0", "shape"},
        {NULL, "6,5", "inner=-2", "shape"},
        {NULL, "6,5", "bias=1 inner=2", "feature"},
        {NULL, "6,5", "bias=1 bytes_read=132", "feature"},
        {NULL, "6,5", "bias=1 bytes_read=180 inner_broadcast=2", "feature"},
        {NULL, "6,5", "scale=3", "feature"},
        {NULL, "6,5", "bias=1 bytes_read=200", "feature"},
        {NULL, "6,5", "out_dtype=uint8", "type"},
        {NULL, "6,5", "axis=1", "feature"},
        {NULL, "1099511627776,1099511627776", NULL, "shape"},
        {NULL, "1099511627776,1024", "bias=1", "shape"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (!UNIT_CHECK(!build("softmax", cases[k].what, cases[k].shape, NULL, cases[k].fields)))
            printf("  case %zu\n", k);
        UNIT_TEXT(lab.why.code, cases[k].code);
        end();
    }
}

/* Loose enough for what the types lose, tight enough that one wrong element shows. */
static void tolerances_hold_both_ways(void) {
    static const char *const shapes[] = {"8,64", "8,4096", "8,1048576"};
    static const char *const precisions[] = {"fp32", "fp16", "bf16"};
    static const double unit[] = {0x1p-24, 0x1p-11, 0x1p-8};
    for (int kind_of = 0; kind_of < 2; kind_of++)
        for (int p = 0; p < 3; p++) {
            double before = 0;
            for (int s = 0; s < 3; s++) {
                const cpu_norm_want want = {.kind = kind_of ? "softmax" : "norm",
                                            .what = kind_of ? NULL : "layer",
                                            .shape = shapes[s],
                                            .precision = precisions[p]};
                UNIT_CHECK(cpu_norm_lab_build(&lab, &want));
                UNIT_CHECK(lab.tolerance > unit[p] && lab.tolerance < 1.0 / 64 && lab.tolerance > before);
                before = lab.tolerance;
                end();
            }
        }
}

/* The short form says no more than it must: a norm has its scale, and what it reads is counted. */
static void a_norm_of_the_command_line_has_its_scale(void) {
    static const struct {
        const char *name;
        dtype weight;
        int64_t read;
    } cases[] = {{"layernorm", DTYPE_FP32, 6 * 5 * 4 + 5 * 4}, {"rmsnorm", DTYPE_FP32, 6 * 5 * 4 + 5 * 4}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        operation_list list;
        guard_init(&lab.g);
        arena_init(&lab.a, &lab.g, (size_t)16 << 20);
        operation_from_words(cases[k].name, "6,5", "fp32", 0, NULL, &lab.a, &list);
        UNIT_INT(list.items[0].rec.weight_type, cases[k].weight);
        UNIT_INT(list.items[0].rec.bytes_read, cases[k].read);
        UNIT_INT(list.items[0].rec.bytes_written, 6 * 5 * 4);
        operation_list_free(&list);
        end();
    }
}

int main(void) {
    UNIT_RUN(a_layer_norm);
    UNIT_RUN(everything_that_goes_with_it);
    UNIT_RUN(levels_of_axes);
    UNIT_RUN(groups_are_found);
    UNIT_RUN(what_cannot_be_told_is_refused);
    UNIT_RUN(a_softmax);
    UNIT_RUN(a_softmax_that_cannot_be_told_is_refused);
    UNIT_RUN(tolerances_hold_both_ways);
    UNIT_RUN(a_norm_of_the_command_line_has_its_scale);
    return unit_end();
}
