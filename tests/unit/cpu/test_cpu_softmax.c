/* Softmax on the CPU device: the reference against plain loops, every candidate against the reference. */
#include "scout/op/softmax.h"
#include "tests/unit/cpu/cpu_norm_fixture.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <math.h>

static const char *const shapes[] = {"1,1",   "1,7",    "7,1",    "17,63",  "3,65",   "127,129",
                                     "5,197", "2,1000", "12,512", "1,4097", "65,4095"};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void the_reference_by_hand(void) {
    cpu_norm_lab lab;
    static const double in[] = {0, 1, 2, 3, -1, 5}; /* [1, 3, 2]: rows 0 2 -1 and 1 3 5 */
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        const cpu_norm_want want = {
            .kind = "softmax", .what = logarithm ? "log" : NULL, .shape = "2,3", .fields = "inner=2"};
        UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 1));
        for (int k = 0; k < 6; k++) cpu_norm_lab_set(&lab, SOFTMAX_X, k, in[k]);
        const double sums[] = {1 + exp(2) + exp(-1), exp(1) + exp(3) + exp(5)};
        for (int k = 0; k < 6; k++) {
            const double y = exp(in[k]) / sums[k % 2];
            cpu_norm_lab_set(&lab, SOFTMAX_Y, k, logarithm ? log(y) : y);
        }
        UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, SOFTMAX_Y, 0x1p-23).wrong == 0);
        cpu_norm_lab_set(&lab, SOFTMAX_Y, 3, cpu_norm_lab_at(&lab, SOFTMAX_Y, 3) * 1.001);
        const scout_verdict v = cpu_norm_lab_judge(&lab, SOFTMAX_Y, lab.tolerance);
        UNIT_CHECK(v.wrong == 1 && v.at == 3);
        cpu_norm_lab_end(&lab);
    }
}

static void the_reference_adds_the_bias_of_the_row(void) {
    cpu_norm_lab lab;
    for (int inside = 0; inside < 2; inside++) {
        const cpu_norm_want want = {.kind = "softmax",
                                    .shape = "4,3",
                                    .fields =
                                        inside ? "bias=1 inner_broadcast=1 bytes_read=72" : "bias=1 bytes_read=72"};
        UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 2));
        const int bias = op_tensor(&lab.op, "bias");
        if (!UNIT_CHECK(bias >= 0 && lab.op.tensors[bias].dims[0] == 2 && lab.op.tensors[bias].dims[1] == 3)) return;
        for (int row = 0; row < 4; row++) {
            double e[3], sum = 0;
            for (int k = 0; k < 3; k++) {
                const int of = inside ? row / 2 : row % 2;
                e[k] = exp(cpu_norm_lab_at(&lab, SOFTMAX_X, row * 3 + k) + cpu_norm_lab_at(&lab, bias, of * 3 + k));
                sum += e[k];
            }
            for (int k = 0; k < 3; k++) cpu_norm_lab_set(&lab, SOFTMAX_Y, row * 3 + k, e[k] / sum);
        }
        UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, SOFTMAX_Y, 0x1p-23).wrong == 0);
        cpu_norm_lab_end(&lab);
    }
}

static void candidates_are_right(void) {
    static const char *const types[] = {"fp32", "bf16", "fp16"};
    const int own = cpu_norm_lab_place("cpu_softmax"), library = cpu_norm_lab_place("onednn_softmax");
    int ran[64] = {0};
    for (int type = 0; type < 3; type++)
        for (int shape = 0; shape < SHAPES; shape++)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                const cpu_norm_want want = {.kind = "softmax",
                                            .what = logarithm ? "log" : NULL,
                                            .shape = shapes[shape],
                                            .precision = types[type]};
                cpu_norm_lab_all(&want, 100 * (uint64_t)type + (uint64_t)shape, ran);
            }
    printf("  own %d, library %d\n", ran[own], ran[library]);
    UNIT_INT(ran[own], 6 * SHAPES);
    UNIT_CHECK(ran[library] >= 2 * SHAPES); /* fp32 at least; bf16 where the processor has it */
}

static void candidates_are_right_along_the_middle(void) {
    static const char *const cases[][2] = {{"2,3", "inner=2"},      {"21,65", "inner=7"},     {"1000,7", "inner=1000"},
                                           {"514,17", "inner=257"}, {"127,129", "inner=127"}, {"1024,1", "inner=256"}};
    static const char *const types[] = {"fp32", "bf16", "fp16"};
    const int own = cpu_norm_lab_place("cpu_softmax"), library = cpu_norm_lab_place("onednn_softmax");
    int ran[64] = {0};
    for (int type = 0; type < 3; type++)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                const cpu_norm_want want = {.kind = "softmax",
                                            .what = logarithm ? "log" : NULL,
                                            .shape = cases[k][0],
                                            .precision = types[type],
                                            .fields = cases[k][1]};
                cpu_norm_lab_all(&want, k, ran);
            }
    UNIT_INT(ran[own], 36);
    UNIT_CHECK(ran[library] >= 12);
}

/* Two groups of two rows, of which each serves four: 0 1 0 1 2 3 2 3; and x counts half. */
static void rows_of_a_bias_come_in_turn_within_their_group(void) {
    cpu_norm_lab lab;
    const cpu_norm_want want = {
        .kind = "softmax", .shape = "8,3", .fields = "bias=1 inner_broadcast=2 scale=0.5 bytes_read=144"};
    UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 2));
    const int bias = op_tensor(&lab.op, "bias");
    if (!UNIT_CHECK(bias >= 0 && lab.op.tensors[bias].dims[0] == 4)) return;
    for (int row = 0; row < 8; row++) {
        double e[3], sum = 0;
        for (int k = 0; k < 3; k++) {
            const int of = row / 4 * 2 + row % 2;
            e[k] = exp(cpu_norm_lab_at(&lab, SOFTMAX_X, row * 3 + k) / 2 + cpu_norm_lab_at(&lab, bias, of * 3 + k));
            sum += e[k];
        }
        for (int k = 0; k < 3; k++) cpu_norm_lab_set(&lab, SOFTMAX_Y, row * 3 + k, e[k] / sum);
    }
    UNIT_CHECK(cpu_norm_lab_refer(&lab) && cpu_norm_lab_judge(&lab, SOFTMAX_Y, 0x1p-23).wrong == 0);
    cpu_norm_lab_end(&lab);
}

/* Of a bias that is read, 5 rows serve 30; where nothing is said of its bytes, it is as large as the input. */
static void candidates_are_right_with_a_bias_and_mixed_types(void) {
    static const char *const fields[] = {"bias=1",
                                         "bias=1 bytes_read=27580",
                                         "bias=1 inner_broadcast=1 bytes_read=27580",
                                         "out_dtype=bf16",
                                         "out_dtype=fp16 bias=1",
                                         "scale=0.125",
                                         "scale=-0.5 bias=1",
                                         "bias=1 inner_broadcast=5 bytes_read=31520"};
    const int own = cpu_norm_lab_place("cpu_softmax");
    int ran[64] = {0};
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++)
        for (int logarithm = 0; logarithm < 2; logarithm++) {
            const cpu_norm_want want = {
                .kind = "softmax", .what = logarithm ? "log" : NULL, .shape = "30,197", .fields = fields[k]};
            cpu_norm_lab_all(&want, k, ran);
        }
    UNIT_INT(ran[own], 16);
}

/* Whichever element is wrong, it is found, and told. */
static void one_wrong_element_anywhere_is_found(void) {
    static const char *const types[] = {"fp32", "bf16", "fp16"};
    for (int type = 0; type < 3; type++)
        for (int logarithm = 0; logarithm < 2; logarithm++) {
            const cpu_norm_want want = {
                .kind = "softmax", .what = logarithm ? "log" : NULL, .shape = "7,65", .precision = types[type]};
            cpu_norm_lab lab;
            UNIT_CHECK(cpu_norm_lab_begin(&lab, &want, 3) && cpu_norm_lab_refer(&lab));
            UNIT_CHECK(cpu_norm_lab_run(&lab, cpu_products_api->candidates[cpu_norm_lab_place("cpu_softmax")]));
            for (int at = 0; at < 7 * 65; at++) {
                const double right = cpu_norm_lab_at(&lab, SOFTMAX_Y, at);
                cpu_norm_lab_set(&lab, SOFTMAX_Y, at, at % 2 ? right * 0.9 : right * 1.5);
                const scout_verdict v = cpu_norm_lab_judge(&lab, SOFTMAX_Y, lab.tolerance);
                UNIT_CHECK(v.wrong == 1 && v.at == (uint64_t)at);
                cpu_norm_lab_set(&lab, SOFTMAX_Y, at, right);
            }
            cpu_norm_lab_end(&lab);
        }
}

static void too_little_workspace_is_refused(void) {
    const cpu_norm_want want = {.kind = "softmax", .shape = "4,4096", .precision = "fp16", .workspace = 1024};
    int ran[64] = {0};
    cpu_norm_lab_all(&want, 1, ran);
    UNIT_INT(ran[cpu_norm_lab_place("cpu_softmax")], 0);
}

static void nothing_was_wrong_with_any_candidate(void) { UNIT_INT(cpu_norm_lab_wrong, 0); }

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(the_reference_by_hand);
    UNIT_RUN(the_reference_adds_the_bias_of_the_row);
    UNIT_RUN(rows_of_a_bias_come_in_turn_within_their_group);
    UNIT_RUN(candidates_are_right);
    UNIT_RUN(candidates_are_right_along_the_middle);
    UNIT_RUN(candidates_are_right_with_a_bias_and_mixed_types);
    UNIT_RUN(one_wrong_element_anywhere_is_found);
    UNIT_RUN(too_little_workspace_is_refused);
    UNIT_RUN(nothing_was_wrong_with_any_candidate);
    cpu_products_close();
    return unit_end();
}
