/* Reductions on the CPU device: what candidates are told, both candidates on every reduction, type and axes against the
 * reference, the reference against plain values, and that one wrong element is found. */
#include "scout/cpu/onednn/cpu_onednn.h"
#include "scout/op/reduce.h"
#include "tests/unit/cpu/cpu_element.h"
#include "tests/unit/unit.h"

#include <math.h>

static element_want want(const char *what, dtype type, int64_t rows, int64_t cols) {
    return (element_want){.kind = OP_REDUCE, .what = what, .type = type, .rank = 2, .shape = {rows, cols}};
}

static element_want along(element_want w, int rank, const int64_t *input, int axes, const int64_t *which) {
    w.input_rank = rank, w.axis_count = axes;
    memcpy(w.input, input, (size_t)rank * sizeof *input);
    memcpy(w.axes, which, (size_t)axes * sizeof *which);
    w.shape[0] = w.shape[1] = 1;
    for (int d = 0; d < rank; d++) {
        bool reduced = false;
        for (int k = 0; k < axes; k++) reduced = reduced || which[k] == d;
        w.shape[reduced] *= input[d];
    }
    return w;
}

#define ROW(name, wholes, place, exact, positive) {#name, wholes, place, exact, positive},
static const reduce_operator operators[] = {REDUCE_OPERATORS(ROW)};
static const dtype types[] = {DTYPE_FP32, DTYPE_BF16, DTYPE_FP16, DTYPE_INT64, DTYPE_INT32, DTYPE_INT8, DTYPE_UINT8};

static void rows_of_every_type_and_length(void) {
    static const int64_t shapes[][2] = {{1, 1},   {7, 1},      {1, 7},    {17, 63},  {65, 127},
                                        {3, 129}, {129, 1000}, {2, 4097}, {960, 49}, {1, 100003}};
    int ran[2] = {0, 0}, asked = 0;
    for (size_t o = 0; o < REDUCE_COUNT; o++)
        for (size_t t = 0; t < (operators[o].wholes ? 7 : 3); t++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                const element_want w = want(operators[o].what, types[t], shapes[s][0], shapes[s][1]);
                element_run_all(&w, 10 * o + s, ran);
                asked++;
            }
    printf("  %d reductions, oneDNN has %d\n", asked, ran[0]);
    UNIT_INT(ran[1], asked);
    UNIT_CHECK(ran[0] >= (cpu_onednn_uses(dnnl_cpu_isa_avx512_core) ? 51 : 40)); /* bf16 needs the former */
    UNIT_INT(element_failures, 0);
}

static void any_axes(void) {
    static const int64_t inputs[][4] = {{2, 3, 5, 37}, {3, 1, 700, 2}, {1, 17, 1, 65}, {4, 9, 3, 600}};
    int ran[2] = {0, 0}, asked = 0;
    for (size_t o = 0; o < REDUCE_COUNT; o++)
        for (size_t t = 0; t < (operators[o].wholes ? 4 : 3); t++)
            for (size_t s = 0; s < 4; s++)
                for (int set = 1; set < 16; set++) { /* every set of axes */
                    int64_t axes[4];
                    int count = 0;
                    for (int d = 0; d < 4; d++)
                        if (set & 1 << d) axes[count++] = d;
                    const element_want w = along(want(operators[o].what, types[t], 0, 0), 4, inputs[s], count, axes);
                    element_run_all(&w, 10 * o + s, ran);
                    asked++;
                }
    printf("  %d sets of axes, oneDNN has %d\n", asked, ran[0]);
    UNIT_INT(ran[1], asked);
    UNIT_INT(element_failures, 0);
}

/* The last of equal places, fp64, and truth: what is not in the vector loops. Bytes are equal often. */
static void what_is_seldom(void) {
    static const int64_t input[] = {5, 33, 7};
    int ran[2] = {0, 0}, asked = 0;
    for (size_t o = 0; o < REDUCE_COUNT; o++)
        for (int64_t axis = 0; axis < 3; axis++) {
            element_want w = along(want(operators[o].what, DTYPE_FP64, 0, 0), 3, input, 1, &axis);
            element_run_all(&w, o, ran), asked++;
            w.type = DTYPE_BOOL;
            if (operators[o].exact && !operators[o].place) element_run_all(&w, o, ran), asked++;
            w.numbers[0] = (element_number){"select_last_index", 1};
            for (size_t t = 0; operators[o].place && t < sizeof types / sizeof types[0]; t++) {
                w.type = types[t];
                if (types[t] != DTYPE_INT64) element_run_all(&w, o, ran), asked++;
            }
        }
    UNIT_INT(ran[1], asked);
    UNIT_INT(element_failures, 0);
}

static void the_last_place_is_told(void) {
    static const float x[6] = {1, -2, 3, 0.5F, 3, -2};
    for (int k = 0; k < 2; k++) {
        element e;
        element_want w = want(k ? "argmin" : "argmax", DTYPE_FP32, 1, 6);
        w.numbers[0] = (element_number){"select_last_index", 1};
        element_build(&e, &w);
        element_fill(&e, 1);
        memcpy(e.data[REDUCE_X], x, sizeof x);
        element_again(&e);
        *(int64_t *)e.data[REDUCE_Y] = 77;
        UNIT_INT((long long)element_judge(&e).want, k ? 5 : 4);
        element_drop(&e);
    }
}

static void the_reference_knows_plain_values(void) {
    static const float x[6] = {1, -2, 3, 0.5F, 3, -2};
    static const struct {
        const char *what;
        double is;
    } rows[] = {{"sum", 3.5},
                {"mean", 3.5 / 6},
                {"max", 3},
                {"min", -2},
                {"prod", 18},
                {"l1", 11.5},
                {"l2", 5.220153254455275},
                {"sumsquare", 27.25},
                {"logsum", 1.252762968495368},
                {"argmax", 2},
                {"argmin", 1},
                {"logsumexp", 3.8024033773252381}};
    UNIT_INT(sizeof rows / sizeof rows[0], REDUCE_COUNT);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        element e;
        const element_want w = want(rows[k].what, DTYPE_FP32, 1, 6);
        element_build(&e, &w);
        element_fill(&e, 1);
        memcpy(e.data[REDUCE_X], x, sizeof x);
        element_again(&e);
        memset(e.data[REDUCE_Y], 0x3c, e.op.tensors[REDUCE_Y].bytes); /* some other number */
        const scout_verdict v = element_judge(&e);
        UNIT_INT(v.wrong, 1);
        if (!UNIT_CHECK(fabs(v.want - rows[k].is) < 1e-12)) printf("  %s is %.17g\n", rows[k].what, v.want);
        UNIT_INT(element_run(&e, "cpu_reduce") + element_run(&e, "cpu_reduce_any"), 1);
        element_drop(&e);
    }
    UNIT_INT(element_failures, 0);
}

static void one_wrong_element_is_found(void) {
    static const struct {
        const char *what;
        dtype type;
    } rows[] = {{"mean", DTYPE_FP32}, {"sum", DTYPE_BF16},    {"max", DTYPE_FP16},
                {"l2", DTYPE_FP32},   {"argmax", DTYPE_BF16}, {"sum", DTYPE_INT64}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        element e;
        const element_want w = want(rows[k].what, rows[k].type, 300, 129);
        element_build(&e, &w);
        element_fill(&e, k);
        UNIT_INT(element_run(&e, "cpu_reduce"), 1);
        element_finds_wrong(&e);
        element_drop(&e);
    }
    UNIT_INT(element_failures, 0);
}

/* A candidate that skips one element of a long row, or takes one twice, is found as well. */
static void one_left_out_is_found(void) {
    element e;
    const element_want w = want("mean", DTYPE_FP32, 4, 8192);
    element_build(&e, &w);
    element_fill(&e, 5);
    UNIT_INT(element_run(&e, "cpu_reduce"), 1);
    float *const y = e.data[REDUCE_Y];
    for (int64_t k = 0; k < 4; k++) {
        const float right = y[k];
        y[k] -= 0.1F / 8192;
        UNIT_INT(element_judge(&e).wrong, 1);
        y[k] = right;
    }
    element_drop(&e);
}

static void tensors_of_rows_and_axes(void) {
    element e;
    element_want w = want("argmax", DTYPE_FP16, 6, 20);
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    UNIT_INT(e.op.output, SCOUT_INT64);
    UNIT_CHECK(e.op.tensors[0].dims[0] == 6 && e.op.tensors[0].dims[1] == 20 && e.op.tensors[0].bytes == 240);
    UNIT_CHECK(e.op.tensors[1].dims[0] == 6 && e.op.tensors[1].dims[1] == 1 && e.op.tensors[1].bytes == 48);
    UNIT_CHECK(e.op.bytes_read == 240 && e.op.bytes_written == 48 && e.tolerance == 0);
    element_drop(&e);
    w = along(want("mean", DTYPE_FP32, 0, 0), 4, (int64_t[]){2, 3, 4, 5}, 2, (int64_t[]){1, 2});
    element_build(&e, &w);
    if (!UNIT_CHECK(e.built)) return;
    UNIT_INT(e.op.tensors[1].dims[0], 2);
    UNIT_INT(e.op.tensors[1].dims[1], 1);
    UNIT_INT(e.op.tensors[1].dims[3], 5);
    const reduce_problem p = reduce_problem_of(&e.op);
    UNIT_CHECK(p.reduced.rank == 1 && p.reduced.dims[0] == 12 && p.reduced.strides[0] == 5);
    UNIT_CHECK(p.kept.rank == 2 && p.kept.dims[0] == 5 && p.kept.dims[1] == 2 && p.kept.strides[1] == 60);
    element_drop(&e);
}

static void is_refused(const element_want *w, const char *code) {
    element e;
    element_build(&e, w);
    if (UNIT_CHECK(!e.built)) UNIT_TEXT(e.why.code, code);
    UNIT_CHECK(e.why.text[0]);
    element_drop(&e);
}

static void what_is_refused(void) {
    static const int64_t dims[] = {2, 3, 4};
    element_want w = want(NULL, DTYPE_FP32, 4, 6);
    is_refused(&w, "feature");
    w = want("dft", DTYPE_FP32, 4, 6);
    is_refused(&w, "feature");
    w = want("l2", DTYPE_INT64, 4, 6);
    is_refused(&w, "type");
    w = want("sum", DTYPE_FP32, 4, 6), w.out = DTYPE_FP16;
    is_refused(&w, "type");
    w = want("sum", DTYPE_STRING, 4, 6);
    is_refused(&w, "type");
    w = want("sum", DTYPE_FP32, 4, 0);
    is_refused(&w, "shape");
    w = want("sum", DTYPE_FP32, INT64_MAX, INT64_MAX);
    is_refused(&w, "shape");
    w = want("sum", DTYPE_BOOL, 4, 6);
    is_refused(&w, "type");
    w = along(want("sum", DTYPE_FP32, 0, 0), 3, dims, 1, (int64_t[]){1});
    w.axes[0] = 3;
    is_refused(&w, "shape");
    w.axes[0] = -1;
    is_refused(&w, "shape");
    w.axes[0] = 1, w.shape[0] = 7;
    is_refused(&w, "shape");
    w = want("sum", DTYPE_FP32, 4, 6), w.rank = 1;
    is_refused(&w, "shape");
}

int main(void) {
    if (!element_open()) return 1;
    UNIT_RUN(tensors_of_rows_and_axes);
    UNIT_RUN(what_is_refused);
    UNIT_RUN(the_reference_knows_plain_values);
    UNIT_RUN(what_is_seldom);
    UNIT_RUN(the_last_place_is_told);
    UNIT_RUN(rows_of_every_type_and_length);
    UNIT_RUN(any_axes);
    UNIT_RUN(one_wrong_element_is_found);
    UNIT_RUN(one_left_out_is_found);
    element_close();
    return unit_end();
}
