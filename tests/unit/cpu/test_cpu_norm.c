/* Norms on the CPU device: the reference against plain loops in other words, every candidate against the reference. */
#include "scout/op/norm.h"
#include "tests/unit/cpu/cpu_norm_fixture.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <math.h>

/* --- the reference against plain loops, which know the dimensions as they are --- */

static double at(const cpu_norm_lab *lab, const char *tensor, int64_t place) {
    return cpu_norm_lab_at(lab, op_tensor(&lab->op, tensor), place);
}

/* Rows of a tensor with up to four dimensions: those with a bit in `reduced` belong to the row. */
static void plain_rows(const cpu_norm_lab *lab, const int *dims, unsigned reduced, const char *what, double epsilon) {
    const int all = dims[0] * dims[1] * dims[2] * dims[3], rms = strcmp(what, "rms") == 0;
    for (int e = 0; e < all; e++) {
        double mean = 0, square = 0, length = 0;
        int count = 0, column = 0;
        for (int round = 0; round < 2; round++) {
            count = 0, square = 0, length = 0;
            for (int o = 0; o < all; o++) {
                bool same = true;
                for (int d = 0, left = all; d < 4; d++) {
                    left /= dims[d];
                    if (!(reduced >> d & 1) && e / left % dims[d] != o / left % dims[d]) same = false;
                }
                if (!same) continue;
                const double x = at(lab, "x", o);
                if (o == e) column = count;
                count++, square += (x - mean) * (x - mean), length += fabs(x);
            }
            for (int o = 0; round == 0 && o < all; o++) {
                bool same = true;
                for (int d = 0, left = all; d < 4; d++) {
                    left /= dims[d];
                    if (!(reduced >> d & 1) && e / left % dims[d] != o / left % dims[d]) same = false;
                }
                if (same && strcmp(what, "lp") != 0 && strcmp(what, "l2") != 0 && !rms) mean += at(lab, "x", o) / count;
            }
        }
        double y = at(lab, "x", e) - mean;
        if (strcmp(what, "l2") == 0)
            y /= sqrt(square);
        else if (strcmp(what, "lp") == 0)
            y /= length;
        else
            y /= sqrt(square / count + epsilon);
        if (op_tensor(&lab->op, "scale") >= 0) y *= at(lab, "scale", column);
        if (op_tensor(&lab->op, "bias") >= 0) y += at(lab, "bias", column);
        cpu_norm_lab_set(lab, NORM_Y, e, y);
    }
}

static void the_reference_of_rows(void) {
    static const struct {
        const char *what, *shape, *fields, *weight;
        int dims[4];
        unsigned reduced;
    } cases[] = {
        {"layer", "6,5", "bias=1", "fp32", {6, 5, 1, 1}, 2},
        {"rms", "6,5", NULL, "fp32", {6, 5, 1, 1}, 2},
        {"l2", "6,5", NULL, NULL, {6, 5, 1, 1}, 2},
        {"lp", "6,5", "p=1", NULL, {6, 5, 1, 1}, 2},
        {"layer", "6,4", "input=2,4,3 axes=1 bias=1", "fp32", {2, 4, 3, 1}, 2},
        {"layer", "4,6", "input=2,4,3 axes=0,2 bias=1", "fp32", {2, 4, 3, 1}, 5},
        {"mvn", "3,40", "input=2,3,4,5 axes=0,2,3", NULL, {2, 3, 4, 5}, 13},
        {"mvn", "10,12", "input=2,3,4,5 axes=1,2", NULL, {2, 3, 4, 5}, 6},
        {"rms", "8,15", "input=2,3,4,5 axes=3,1", "fp32", {2, 3, 4, 5}, 10},
        {"lp", "10,12", "input=2,3,4,5 axes=2,1 p=1", NULL, {2, 3, 4, 5}, 6},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const cpu_norm_want want = {.kind = "norm",
                                    .what = cases[k].what,
                                    .shape = cases[k].shape,
                                    .weight = cases[k].weight,
                                    .fields = cases[k].fields};
        cpu_norm_lab lab;
        if (!UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, k))) continue;
        plain_rows(&lab, cases[k].dims, cases[k].reduced, cases[k].what, strcmp(cases[k].what, "mvn") == 0 ? 0 : 1e-5);
        UNIT_CHECK(cpu_norm_lab_refer(&lab));
        scout_verdict v = cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-22);
        if (!UNIT_CHECK(v.wrong == 0)) printf("  case %zu: %g instead of %g\n", k, v.got, v.want);
        cpu_norm_lab_set(&lab, NORM_Y, 7, cpu_norm_lab_at(&lab, NORM_Y, 7) + 0.001);
        v = cpu_norm_lab_judge(&lab, NORM_Y, lab.tolerance);
        UNIT_CHECK(v.wrong == 1 && v.at == 7);
        cpu_norm_lab_end(&lab);
    }
}

/* [2 images, 4 channels, 3 places] or [2, 3, 4], in 1, 2 or 4 groups; instance norms have as many as channels. */
static void the_reference_of_groups(void) {
    static const struct {
        const char *what, *shape, *fields;
        int images, groups, last;
    } cases[] = {{"group", "1,12", "channels=4 bias=1", 1, 1, 0},
                 {"group", "2,6", "channels=4 bias=1", 1, 2, 0},
                 {"group", "8,3", "channels=4", 2, 4, 0},
                 {"group", "2,6", "channels=4 bias=1 layout=nhwc", 1, 2, 1},
                 {"instance", "8,3", "channels=4 bias=1", 2, 4, 0},
                 {"group", "8,3", "channels=4 activation=silu layout=nhwc", 2, 4, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const cpu_norm_want want = {.kind = "norm",
                                    .what = cases[k].what,
                                    .shape = cases[k].shape,
                                    .weight = "fp32",
                                    .fields = cases[k].fields};
        cpu_norm_lab lab;
        if (!UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, k))) continue;
        const int each = 4 / cases[k].groups;
        for (int e = 0; e < cases[k].images * 12; e++) {
            const int channel = cases[k].last ? e % 4 : e / 3 % 4;
            double mean = 0, square = 0;
            for (int round = 0; round < 2; round++)
                for (int o = e / 12 * 12; o < e / 12 * 12 + 12; o++) {
                    const int other = cases[k].last ? o % 4 : o / 3 % 4;
                    const double x = at(&lab, "x", o);
                    if (other / each != channel / each) continue;
                    if (round == 0)
                        mean += x / (3 * each);
                    else
                        square += (x - mean) * (x - mean) / (3 * each);
                }
            double y = (at(&lab, "x", e) - mean) / sqrt(square + 1e-5) * at(&lab, "scale", channel);
            if (op_tensor(&lab.op, "bias") >= 0) y += at(&lab, "bias", channel);
            if (op_field(&lab.op, "activation")) y /= 1 + exp(-y);
            cpu_norm_lab_set(&lab, NORM_Y, e, y);
        }
        UNIT_CHECK(cpu_norm_lab_refer(&lab));
        if (!UNIT_CHECK(cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-22).wrong == 0)) printf("  case %zu\n", k);
        cpu_norm_lab_end(&lab);
    }
}

static void the_reference_of_batches(void) {
    for (int space = 1; space < 4; space += 2) {
        const cpu_norm_want want = {.kind = "norm",
                                    .what = "batch",
                                    .shape = space == 1 ? "10,1" : "10,3",
                                    .weight = "fp32",
                                    .fields = "channels=5 bias=1 activation=relu"};
        cpu_norm_lab lab;
        if (!UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 3))) continue;
        for (int e = 0; e < 10 * space; e++) {
            const int c = e / space % 5;
            const double y =
                (at(&lab, "x", e) - at(&lab, "mean", c)) / sqrt(at(&lab, "variance", c) + 1e-5) * at(&lab, "scale", c) +
                at(&lab, "bias", c);
            cpu_norm_lab_set(&lab, NORM_Y, e, y > 0 ? y : 0);
        }
        UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-22).wrong == 0);
        cpu_norm_lab_end(&lab);
    }
}

static void the_reference_of_neighbouring_channels(void) {
    for (int size = 1; size < 6; size++) {
        char fields[64];
        snprintf(fields, sizeof fields, "size=%d alpha=0.5 beta=0.75 offset=2.0", size);
        const cpu_norm_want want = {.kind = "norm", .what = "lrn", .shape = "3,7", .fields = fields};
        cpu_norm_lab lab;
        if (!UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 3))) continue;
        for (int c = 0; c < 7; c++)
            for (int place = 0; place < 3; place++) {
                double sum = 0;
                for (int other = 0; other < 7; other++)
                    if (other >= c - (int)floor((size - 1) / 2.0) && other <= c + (int)ceil((size - 1) / 2.0))
                        sum += pow(at(&lab, "x", other * 3 + place), 2);
                cpu_norm_lab_set(&lab, NORM_Y, c * 3 + place,
                                 at(&lab, "x", c * 3 + place) / pow(2 + 0.5 / size * sum, 0.75));
            }
        UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-22).wrong == 0);
        cpu_norm_lab_end(&lab);
    }
}

static void the_reference_of_a_residual(void) {
    const cpu_norm_want want = {.kind = "norm",
                                .what = "rms",
                                .shape = "3,4",
                                .weight = "fp32",
                                .fields = "residual=1 input_bias=1 residual_out=1"};
    cpu_norm_lab lab;
    UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 3));
    const int sum = op_tensor(&lab.op, "sum");
    for (int e = 0; e < 12; e++)
        cpu_norm_lab_set(&lab, sum, e, at(&lab, "x", e) + at(&lab, "residual", e) + at(&lab, "input_bias", e % 4));
    for (int e = 0; e < 12; e++) {
        double square = 0;
        for (int k = 0; k < 4; k++) square += pow(at(&lab, "sum", e / 4 * 4 + k), 2) / 4;
        cpu_norm_lab_set(&lab, NORM_Y, e, at(&lab, "sum", e) / sqrt(square + 1e-5) * at(&lab, "scale", e % 4));
    }
    UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-21).wrong == 0);
    UNIT_CHECK(cpu_norm_lab_judge(&lab, (uint32_t)sum, 0x1p-22).wrong == 0);
    cpu_norm_lab_set(&lab, sum, 5, at(&lab, "sum", 5) * 1.01);
    UNIT_CHECK(cpu_norm_lab_judge(&lab, (uint32_t)sum, lab.tolerance).at == 5);
    UNIT_CHECK(cpu_norm_lab_judge(&lab, NORM_Y, 0x1p-21).wrong == 0);
    cpu_norm_lab_end(&lab);
}

/* --- candidates --- */

static const struct {
    const char *x, *weight;
} types[] = {{"fp32", "fp32"}, {"bf16", "bf16"}, {"bf16", "fp32"}, {"fp16", "fp16"}, {"fp16", "fp32"}, {"fp32", NULL}};
enum { TYPES = sizeof types / sizeof types[0] };

typedef struct norm_case {
    const char *what, *shape, *fields;
} norm_case;

static void run_cases(const char *name, const norm_case *cases, size_t count, int *ran) {
    for (int type = 0; type < TYPES; type++)
        for (size_t k = 0; k < count; k++) {
            const cpu_norm_want want = {.kind = "norm",
                                        .what = cases[k].what,
                                        .shape = cases[k].shape,
                                        .precision = types[type].x,
                                        .weight = types[type].weight,
                                        .fields = cases[k].fields};
            cpu_norm_lab_all(&want, k + 1000 * (uint64_t)type, ran);
        }
    printf("  %s: own %d, library %d\n", name, ran[cpu_norm_lab_place("cpu_norm")],
           ran[cpu_norm_lab_place("onednn_norm")]);
}

static void rows_of_any_length(void) {
    static const char *const whats[] = {"layer", "rms", "l2", "lp"};
    static const char *const shapes[] = {"1,1",   "1,7",    "7,2",    "17,63",  "3,65",   "127,129",
                                         "5,768", "2,1000", "1,4096", "1,4097", "33,4095"};
    static const char *const fields[] = {NULL, "bias=1"};
    const int own = cpu_norm_lab_place("cpu_norm"), library = cpu_norm_lab_place("onednn_norm");
    norm_case cases[4 * 11 * 2];
    size_t count = 0;
    int ran[64] = {0};
    for (size_t w = 0; w < 4; w++)
        for (size_t s = 0; s < 11; s++)
            for (size_t f = 0; f < 2; f++) cases[count++] = (norm_case){whats[w], shapes[s], fields[f]};
    run_cases("rows", cases, count, ran);
    UNIT_INT(ran[own], 88 * TYPES);
    UNIT_CHECK(ran[library] >= 22); /* layer norms of fp32 at least */
}

static void residuals_and_activations(void) {
    static const norm_case cases[] = {
        {"layer", "7,65", "residual=1 bias=1"},
        {"layer", "17,768", "residual=1 residual_out=1 bias=1 input_bias=1"},
        {"rms", "5,1000", "residual=1 residual_out=1"},
        {"rms", "1,4096", "residual=1"},
        {"layer", "3,129", "input_bias=1"},
        {"layer", "3,129", "activation=relu"},
        {"rms", "3,129", "activation=silu"},
        {"group", "4,640", "channels=8 residual=1 residual_out=1 input_bias=1 bias=1 activation=silu"},
        {"group", "4,640", "channels=8 residual=1 residual_out=1 input_bias=1 bias=1 activation=silu layout=nhwc"},
    };
    int ran[64] = {0};
    run_cases("residuals", cases, sizeof cases / sizeof cases[0], ran);
    UNIT_INT(ran[cpu_norm_lab_place("cpu_norm")], TYPES * (int)(sizeof cases / sizeof cases[0]));
}

static void rows_that_lie_apart(void) {
    static const norm_case cases[] = {
        {"layer", "14,65", "input=2,65,7 axes=1 bias=1"},
        {"layer", "4000,17", "input=4,17,1000 axes=1"},
        {"rms", "514,63", "input=2,63,257 axes=1"},
        {"mvn", "3,315", "input=7,3,9,5 axes=0,2,3"},
        {"mvn", "45,21", "input=7,3,9,5 axes=1,0"},
        {"lp", "65,127", "input=127,65 axes=0 p=1"},
        {"l2", "129,1", "input=1,129 axes=0"},
        {"lp", "10,12", "input=2,3,4,5 axes=1,2 p=2"},
        {"layer", "8,15", "input=2,3,4,5 axes=1,3 bias=1"},
        {"mvn", "16,3", "input=4,3,4 axes=1"},
        {"layer", "300,6", "input=300,1,2,3 axes=2,3 bias=1"},
        {"mvn", "20,6", "input=2,1,20,3 axes=0,3 activation=relu"},
    };
    int ran[64] = {0};
    run_cases("apart", cases, sizeof cases / sizeof cases[0], ran);
    UNIT_INT(ran[cpu_norm_lab_place("cpu_norm")], TYPES * (int)(sizeof cases / sizeof cases[0]));
}

static void norms_of_channels(void) {
    static const norm_case cases[] = {
        {"group", "32,630", "channels=320 bias=1"},
        {"group", "32,630", "channels=320 bias=1 layout=nhwc"},
        {"group", "64,49", "channels=64"},
        {"instance", "21,127", "channels=7 bias=1"},
        {"instance", "1,4097", "channels=1"},
        {"batch", "30,49", "channels=15 bias=1"},
        {"batch", "30,1", "channels=15 bias=1"},
        {"batch", "30,1", "channels=15"},
        {"batch", "7,1000", "channels=7"},
        {"batch", "64,3136", "channels=64 bias=1"},
        {"batch", "12,65", "channels=4 activation=relu"},
        {"batch", "2000,1", "channels=1000 activation=silu bias=1"},
    };
    int ran[64] = {0};
    run_cases("channels", cases, sizeof cases / sizeof cases[0], ran);
    UNIT_INT(ran[cpu_norm_lab_place("cpu_norm")], TYPES * (int)(sizeof cases / sizeof cases[0]));
    UNIT_CHECK(ran[cpu_norm_lab_place("onednn_norm")] >= 10);
}

static void norms_over_neighbouring_channels(void) {
    static const char *const fields[] = {"size=5", "size=1 alpha=0.5", "size=3 alpha=0.001 beta=0.75 offset=2.0",
                                         "size=4"};
    int ran[64] = {0};
    for (size_t k = 0; k < 4; k++) {
        const cpu_norm_want want = {.kind = "norm", .what = "lrn", .shape = "63,33", .fields = fields[k]};
        cpu_norm_lab_all(&want, k, ran);
    }
    UNIT_INT(ran[cpu_norm_lab_place("onednn_norm")], 3);
}

static void other_types_come_out(void) {
    static const norm_case cases[] = {{"layer", "7,65", "out_dtype=bf16 bias=1"},
                                      {"rms", "7,65", "out_dtype=fp32 residual=1 residual_out=1"},
                                      {"batch", "30,49", "channels=15 out_dtype=fp16"},
                                      {"layer", "14,65", "input=2,65,7 axes=1 out_dtype=fp16"}};
    int ran[64] = {0};
    run_cases("types", cases, 4, ran);
    UNIT_INT(ran[cpu_norm_lab_place("cpu_norm")], 4 * TYPES);
}

/* Whichever element of whichever output is wrong, it is found, and told. */
static void one_wrong_element_anywhere_is_found(void) {
    static const char *const fields[] = {"residual=1 residual_out=1 bias=1", "input=5,65 axes=0", "channels=13"};
    static const char *const whats[] = {"layer", "rms", "batch"};
    static const char *const shapes[] = {"5,65", "65,5", "65,5"};
    for (int k = 0; k < 3; k++)
        for (int type = 0; type < TYPES; type++) {
            const cpu_norm_want want = {.kind = "norm",
                                        .what = whats[k],
                                        .shape = shapes[k],
                                        .precision = types[type].x,
                                        .weight = types[type].weight,
                                        .fields = fields[k]};
            cpu_norm_lab lab;
            UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 3) && cpu_norm_lab_refer(&lab));
            UNIT_CHECK(cpu_norm_lab_run(&lab, cpu_products_api->candidates[cpu_norm_lab_place("cpu_norm")]));
            for (uint32_t t = 0; t < lab.op.tensor_count; t++)
                for (int e = 0; lab.op.tensors[t].role == SCOUT_OUTPUT && e < 325; e++) {
                    const double right = cpu_norm_lab_at(&lab, (int)t, e);
                    cpu_norm_lab_set(&lab, (int)t, e, right + (e % 2 ? 0.25 : -0.25) * (fabs(right) + 1));
                    const scout_verdict v = cpu_norm_lab_judge(&lab, t, lab.tolerance);
                    UNIT_CHECK(v.wrong == 1 && v.at == (uint64_t)e);
                    cpu_norm_lab_set(&lab, (int)t, e, right);
                }
            cpu_norm_lab_end(&lab);
        }
}

static void what_no_candidate_takes_is_said(void) {
    static const cpu_norm_want wants[] = {
        {.kind = "norm", .what = "rms", .shape = "1,4096", .precision = "fp16", .workspace = 64},
        {.kind = "norm", .what = "layer", .shape = "14,65", .fields = "input=2,65,7 axes=1 residual=1"},
        {.kind = "norm", .what = "batch", .shape = "14,65", .fields = "channels=7 residual=1"},
    };
    int ran[64] = {0};
    for (size_t k = 0; k < sizeof wants / sizeof wants[0]; k++) cpu_norm_lab_all(&wants[k], k, ran);
    for (int k = 0; k < 64; k++) UNIT_INT(ran[k], 0);
}

static void nothing_was_wrong_with_any_candidate(void) { UNIT_INT(cpu_norm_lab_wrong, 0); }

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(the_reference_of_rows);
    UNIT_RUN(the_reference_of_groups);
    UNIT_RUN(the_reference_of_batches);
    UNIT_RUN(the_reference_of_neighbouring_channels);
    UNIT_RUN(the_reference_of_a_residual);
    UNIT_RUN(rows_of_any_length);
    UNIT_RUN(residuals_and_activations);
    UNIT_RUN(rows_that_lie_apart);
    UNIT_RUN(norms_of_channels);
    UNIT_RUN(norms_over_neighbouring_channels);
    UNIT_RUN(other_types_come_out);
    UNIT_RUN(one_wrong_element_anywhere_is_found);
    UNIT_RUN(what_no_candidate_takes_is_said);
    UNIT_RUN(nothing_was_wrong_with_any_candidate);
    cpu_products_close();
    return unit_end();
}
