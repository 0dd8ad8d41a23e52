/* Convolutions on the CPU device: the reference against the plain formula, every candidate against the reference, and
 * one wrong element that must be found wherever it is. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/op/conv.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/cpu/cpu_windows.h"
#include "tests/unit/unit.h"

static const windows_case cases[] = {
    {.spatial = 2, .cin = 1, .cout = 1, .in = {1, 1}, .kernel = {1, 1}},
    {.spatial = 2, .cin = 3, .cout = 16, .in = {17, 19}, .kernel = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}},
    {.spatial = 2, .cin = 17, .cout = 65, .in = {7, 7}, .kernel = {1, 1}, .bias = true},
    {.spatial = 2, .cin = 64, .cout = 63, .in = {9, 8}, .kernel = {3, 3}, .pads = {1, 1, 1, 1}, .bias = true},
    {.spatial = 2, .n = 3, .cin = 16, .cout = 32, .in = {14, 13}, .kernel = {1, 1}, .stride = {2, 2}},
    {.spatial = 2, .cin = 3, .cout = 64, .in = {33, 30}, .kernel = {7, 7}, .stride = {2, 2}, .pads = {3, 3, 3, 3}},
    {.spatial = 2, .cin = 3, .cout = 127, .in = {32, 32}, .kernel = {16, 16}, .stride = {16, 16}, .bias = true},
    {.spatial = 2, .cin = 8, .cout = 9, .in = {12, 10}, .kernel = {3, 2}, .dilation = {2, 3}, .pads = {2, 0, 1, 3}},
    {.spatial = 2, .group = 4, .cin = 64, .cout = 32, .in = {10, 10}, .kernel = {3, 3}, .pads = {1, 1, 1, 1}},
    {.spatial = 2, .group = 3, .cin = 9, .cout = 21, .in = {6, 11}, .kernel = {2, 5}, .stride = {1, 3}, .bias = true},
    {.spatial = 2, .group = 32, .cin = 32, .cout = 32, .in = {14, 14}, .kernel = {3, 3}, .pads = {1, 1, 1, 1}},
    {.spatial = 2, .group = 17, .cin = 17, .cout = 17, .in = {15, 129}, .kernel = {5, 5}, .pads = {2, 2, 2, 2}},
    {.spatial = 2,
     .group = 24,
     .cin = 24,
     .cout = 24,
     .in = {28, 28},
     .kernel = {5, 5},
     .stride = {2, 2},
     .pads = {2, 2, 2, 2}},
    {.spatial = 2,
     .group = 7,
     .cin = 7,
     .cout = 14,
     .in = {9, 65},
     .kernel = {3, 3},
     .stride = {2, 2},
     .pads = {0, 1, 1, 0},
     .bias = true},
    {.spatial = 2, .group = 5, .cin = 5, .cout = 5, .in = {4, 3}, .kernel = {7, 7}, .pads = {3, 3, 3, 3}},
    {.spatial = 1, .cin = 80, .cout = 33, .in = {1000}, .kernel = {3}, .stride = {2}, .pads = {1, 1}, .bias = true},
    {.spatial = 1, .group = 6, .cin = 6, .cout = 6, .in = {127}, .kernel = {4}, .dilation = {3}, .pads = {9, 0}},
    {.spatial = 3, .cin = 3, .cout = 8, .in = {5, 7, 9}, .kernel = {3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}},
    {.spatial = 3,
     .group = 2,
     .cin = 4,
     .cout = 6,
     .in = {4, 6, 7},
     .kernel = {2, 3, 1},
     .stride = {2, 1, 2},
     .pads = {1, 0, 0, 0, 2, 0},
     .bias = true},
    {.spatial = 2, .cin = 2, .cout = 3, .in = {3, 3}, .kernel = {2, 2}, .pads = {3, 3, 3, 3}}, /* windows of padding */
    /* images that go through a cache in blocks of columns */
    {.spatial = 2, .n = 2, .cin = 2100, .cout = 3, .in = {9, 50}, .kernel = {1, 1}, .bias = true},
    {.spatial = 2, .cin = 2100, .cout = 2, .in = {6, 90}, .kernel = {1, 3}, .stride = {1, 2}, .pads = {0, 1, 0, 1}},
    {.spatial = 1, .group = 2, .cin = 2200, .cout = 4, .in = {300}, .kernel = {3}, .dilation = {2}, .pads = {2, 2}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const windows_case transposed_cases[] = {
    {.spatial = 2, .cin = 8, .cout = 5, .in = {6, 7}, .kernel = {2, 2}, .stride = {2, 2}, .bias = true},
    {.spatial = 1, .cin = 2100, .cout = 2, .in = {300}, .kernel = {4}, .stride = {3}, .pads = {2, 1}}, /* in blocks */
    {.spatial = 2, .cin = 16, .cout = 16, .in = {7, 5}, .kernel = {4, 4}, .stride = {2, 2}, .pads = {1, 1, 1, 1}},
    {.spatial = 2,
     .group = 2,
     .cin = 6,
     .cout = 8,
     .in = {5, 5},
     .kernel = {3, 3},
     .stride = {2, 2},
     .pads = {1, 1, 1, 1},
     .extra = 1},
    {.spatial = 1, .cin = 4, .cout = 3, .in = {63}, .kernel = {5}, .stride = {3}, .dilation = {2}, .pads = {1, 2}},
    {.spatial = 2, .cin = 3, .cout = 4, .in = {4, 4}, .kernel = {3, 3}, .pads = {1, 1, 1, 1}},
};
enum { TRANSPOSED = sizeof transposed_cases / sizeof transposed_cases[0] };

static windows_case as_transposed(size_t k) {
    windows_case w = transposed_cases[k];
    w.transposed = true;
    return w;
}

/* --- the plain formula --- */

static int64_t or_one(int64_t x) { return x ? x : 1; }

/* Where an output sees the input through a tap: all dimensions inside, or none. */
static bool sees(const windows_case *w, const int64_t *out, const int64_t *tap, int64_t *in) {
    for (int k = 0; k < w->spatial; k++) {
        const int64_t stride = or_one(w->stride[k]), reach = tap[k] * or_one(w->dilation[k]);
        if (w->transposed) {
            in[k] = out[k] + w->pads[k] - reach;
            if (in[k] < 0 || in[k] % stride != 0) return false;
            in[k] /= stride;
        } else {
            in[k] = out[k] * stride - w->pads[k] + reach;
        }
        if (in[k] < 0 || in[k] >= w->in[k]) return false;
    }
    return true;
}

static bool next(int n, const int64_t *sizes, int64_t *at) {
    for (int k = n - 1; k >= 0; k--) {
        if (++at[k] < sizes[k]) return true;
        at[k] = 0;
    }
    return false;
}

static double weight_at(const windows_run *r, int64_t output, int64_t input, const int64_t *tap) {
    const windows_case *w = &r->w;
    const int64_t first = w->transposed ? input : output;
    const int64_t second = w->transposed ? output % (w->cout / or_one(w->group)) : input % (w->cin / or_one(w->group));
    int64_t at = first * (w->transposed ? w->cout : w->cin) / or_one(w->group) + second;
    for (int k = 0; k < w->spatial; k++) at = at * w->kernel[k] + tap[k];
    double value;
    cpu_number_load(r->op.tensors[CONV_WEIGHT].type, r->data[CONV_WEIGHT], at, 1, 1, &value);
    return value;
}

static double formula(const windows_run *r, int64_t image, int64_t channel, const int64_t *out) {
    const windows_case *w = &r->w;
    const int64_t group = or_one(w->group), inputs = w->cin / group, first = channel / (w->cout / group) * inputs;
    const int bias = op_tensor(&r->op, "bias"), residual = op_tensor(&r->op, "residual");
    int64_t tap[3] = {0}, in[3];
    double sum = 0, value = 0;
    do
        for (int64_t c = first; sees(w, out, tap, in) && c < first + inputs; c++)
            sum += cpu_windows_at(r, CONV_INPUT, image, c, in) * weight_at(r, channel, c, tap);
    while (next(w->spatial, w->kernel, tap));
    if (bias >= 0) cpu_number_load(r->op.tensors[bias].type, r->data[bias], channel, 1, 1, &value);
    if (residual >= 0) value += cpu_windows_at(r, residual, image, channel, out);
    return sum + value;
}

static void write_formula(windows_run *r, double (*activation)(double)) {
    const windows_case *w = &r->w;
    const scout_tensor *t = &r->op.tensors[CONV_OUTPUT];
    int64_t out[3];
    for (int k = 0; k < w->spatial; k++) out[k] = cpu_windows_out(w, k);
    for (int64_t image = 0; image < or_one(w->n); image++)
        for (int64_t channel = 0; channel < w->cout; channel++) {
            int64_t place[3] = {0};
            do {
                int64_t at = image * t->strides[0] + channel * t->strides[w->last ? w->spatial + 1 : 1];
                for (int k = 0; k < w->spatial; k++) at += place[k] * t->strides[(w->last ? 1 : 2) + k];
                const double x = formula(r, image, channel, place);
                cpu_number_store(t->type, r->data[CONV_OUTPUT], at, activation ? activation(x) : x);
            } while (next(w->spatial, out, place));
        }
}

static void check_formula(const windows_case *w, double (*activation)(double)) {
    windows_run r;
    scout_why why;
    cpu_windows_operation(&r, w);
    if (!UNIT_CHECK(cpu_windows_build(&r, &why))) {
        printf("  %s\n", why.text);
        return;
    }
    cpu_windows_fill(&r, 3);
    write_formula(&r, activation);
    scout_check *check = cpu_windows_begin(&r);
    const scout_verdict v = cpu_windows_judge(&r, check, 0x1p-24); /* nothing but the rounding of the output */
    if (!UNIT_CHECK(v.wrong == 0)) cpu_windows_say(&r, "formula", &v);
    UNIT_INT(v.compared, op_elements(&r.op.tensors[CONV_OUTPUT]));
    cpu_windows_end(&r, check);
    cpu_windows_drop(&r);
}

static void the_reference_is_the_formula(void) {
    for (size_t k = 0; k < CASES; k++)
        for (int last = 0; last < 2; last++) {
            windows_case w = cases[k];
            if (w.in[0] > 100) w.in[0] = 65;
            w.last = last != 0, w.residual = k % 3 == 0;
            check_formula(&w, NULL);
        }
    for (size_t k = 0; k < TRANSPOSED; k++)
        for (int last = 0; last < 2; last++) {
            windows_case w = as_transposed(k);
            w.last = last != 0;
            check_formula(&w, NULL);
        }
}

static double relu(double x) { return x > 0 ? x : 0; }
static double relu6(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
static double clip(double x) { return x < -0.5 ? -0.5 : x > 1.25 ? 1.25 : x; }
static double leaky(double x) { return x > 0 ? x : 0.25 * x; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double hard(double x) { return relu(0.2 * x + 0.5) < 1 ? relu(0.2 * x + 0.5) : 1; }
static double hardswish(double x) { return x * relu6(x + 3) / 6; }

static const struct {
    const char *name, *params;
    double alpha, beta, (*function)(double);
} activations[] = {{"relu", NULL, 0, 0, relu},
                   {"relu6", NULL, 0, 0, relu6},
                   {"clip", NULL, -0.5, 1.25, clip},
                   {"clip", "-0.5,1.25", 0, 0, clip},
                   {"leakyrelu", NULL, 0.25, 0, leaky},
                   {"leakyrelu", "0.25", 0, 0, leaky},
                   {"sigmoid", NULL, 0, 0, sigmoid},
                   {"tanh", NULL, 0, 0, tanh},
                   {"silu", NULL, 0, 0, silu},
                   {"hardsigmoid", NULL, 0, 0, hard},
                   {"hardsigmoid", "0.2,0.5", 0, 0, hard},
                   {"hardswish", NULL, 0, 0, hardswish}};
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

static windows_case with_activation(size_t which, size_t k) {
    windows_case w = cases[which];
    w.activation = activations[k].name, w.params = activations[k].params;
    w.alpha = activations[k].alpha, w.beta = activations[k].beta;
    return w;
}

static void the_reference_knows_activations(void) {
    for (size_t k = 0; k < ACTIVATIONS; k++) {
        windows_case w = with_activation(2 + k % 2 * 8, k);
        w.residual = k % 4 == 1;
        check_formula(&w, activations[k].function);
    }
}

/* --- candidates --- */

static void candidates_are_right_in_every_shape(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < CASES; k++) cpu_windows_all(&cases[k], k, &t);
    cpu_windows_report("nchw", &t);
    UNIT_CHECK(cpu_windows_ran(&t, "onednn_conv") >= CASES);
    UNIT_INT(cpu_windows_ran(&t, "cpu_conv_depthwise"), 7); /* one channel of one is depthwise too */
    UNIT_INT(cpu_windows_ran(&t, "cpu_conv_lowered"), CASES - 6);
    UNIT_CHECK(t.packed > 0);
    t = (windows_tally){{0}, {0}, 0};
    for (size_t k = 0; k < CASES; k++) {
        windows_case w = cases[k];
        w.last = true;
        cpu_windows_all(&w, k, &t);
    }
    cpu_windows_report("nhwc", &t);
    UNIT_CHECK(cpu_windows_ran(&t, "onednn_conv") >= CASES);
}

static void candidates_are_right_in_every_type(void) {
    static const dtype types[][3] = {{DTYPE_BF16, DTYPE_NONE, DTYPE_NONE},
                                     {DTYPE_BF16, DTYPE_NONE, DTYPE_FP32},
                                     {DTYPE_FP16, DTYPE_NONE, DTYPE_NONE},
                                     {DTYPE_INT8, DTYPE_NONE, DTYPE_INT32},
                                     {DTYPE_UINT8, DTYPE_INT8, DTYPE_INT32}};
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (size_t i = 0; i < CASES; i++)
            for (int last = 0; last < 2; last++) {
                windows_case w = cases[i];
                w.type = types[k][0], w.weight = types[k][1], w.out = types[k][2];
                w.last = last != 0, w.bias = w.bias && k < 3;
                cpu_windows_all(&w, k * 100 + i, &t);
            }
    cpu_windows_report("types", &t);
    UNIT_CHECK(cpu_windows_ran(&t, "cpu_conv_widened") >= 2 * CASES);
}

static void candidates_are_right_with_an_epilogue(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < ACTIVATIONS; k++)
        for (size_t i = 2; i < 13; i += 4)
            for (int residual = 0; residual < 2; residual++) {
                windows_case w = with_activation(i, k);
                w.residual = residual != 0, w.bias = true;
                cpu_windows_all(&w, k, &t);
            }
    windows_case w = cases[3];
    w.residual = true;
    cpu_windows_all(&w, 1, &t);
    for (size_t k = 0; k < ACTIVATIONS; k++) {
        w = with_activation(2 + k % 11, k);
        w.residual = k % 2 != 0, w.bias = true, w.type = k % 3 ? DTYPE_FP16 : DTYPE_BF16;
        cpu_windows_all(&w, k, &t);
    }
    cpu_windows_report("epilogues", &t);
    UNIT_CHECK(cpu_windows_ran(&t, "cpu_conv_widened") > 2);
    UNIT_CHECK(cpu_windows_ran(&t, "cpu_conv_lowered") > 20);
    UNIT_CHECK(cpu_windows_ran(&t, "cpu_conv_depthwise") > 10);
}

static void candidates_are_right_transposed(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < TRANSPOSED; k++) {
        const windows_case w = as_transposed(k);
        cpu_windows_all(&w, k, &t);
    }
    cpu_windows_report("transposed", &t);
}

static void little_workspace_is_enough_or_refused(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 1; k < CASES; k += 2)
        for (uint64_t bytes = 1; bytes < 100000; bytes *= 50) {
            windows_case w = cases[k];
            w.workspace = bytes;
            cpu_windows_all(&w, k, &t);
        }
    cpu_windows_report("little workspace", &t);
    UNIT_CHECK(cpu_windows_ran(&t, "cpu_conv_lowered") > 0);
}

/* --- one wrong element --- */

/* Every one of `count` elements, spread over the output, is replaced by what another place has. */
static void find_wrong_ones(windows_run *r, scout_check *check, int64_t count, bool *by_projection) {
    const scout_tensor *t = &r->op.tensors[CONV_OUTPUT];
    const int64_t all = op_elements(t), other = all / 2 + 1;
    const double tolerance = cpu_windows_tolerance(r);
    int missed = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t at = k * (all - 1) / (count > 1 ? count - 1 : 1);
        double kept, foreign, bias = 1;
        cpu_number_load(t->type, r->data[CONV_OUTPUT], at, 1, 1, &kept);
        cpu_number_load(t->type, r->data[CONV_OUTPUT], (at + other) % all, 1, 1, &foreign);
        if (fabs(foreign - kept) < 1 && !r->w.activation) bias = 2 + fabs(kept); /* by chance nearly the same */
        if (r->w.activation && foreign == kept) bias = 1.5;
        cpu_number_store(t->type, r->data[CONV_OUTPUT], at, bias == 1 ? foreign : foreign + bias);
        const scout_verdict v = cpu_windows_judge(r, check, tolerance);
        if (v.wrong == 0) missed++;
        if (by_projection && v.worst <= tolerance && v.worst_projected > tolerance) *by_projection = true;
        cpu_number_store(t->type, r->data[CONV_OUTPUT], at, kept);
    }
    UNIT_INT(missed, 0);
}

static void check_wrong_ones(const windows_case *w, int64_t count, bool projected) {
    windows_run r;
    scout_why why;
    bool by_projection = false;
    cpu_windows_operation(&r, w);
    UNIT_CHECK(cpu_windows_build(&r, &why));
    cpu_windows_fill(&r, 5);
    UNIT_CHECK(cpu_windows_compute(&r));
    scout_check *check = cpu_windows_begin(&r);
    const scout_verdict v = cpu_windows_judge(&r, check, cpu_windows_tolerance(&r));
    if (!UNIT_CHECK(v.wrong == 0)) cpu_windows_say(&r, "right", &v);
    const bool all = v.compared == (uint64_t)op_elements(&r.op.tensors[CONV_OUTPUT]);
    UNIT_CHECK(projected ? v.compared >= 4096 && !all : all);
    find_wrong_ones(&r, check, count, &by_projection);
    UNIT_CHECK(by_projection == projected);
    cpu_windows_end(&r, check);
    cpu_windows_drop(&r);
}

static void one_wrong_element_is_found_in_a_whole(void) {
    static const size_t which[] = {1, 8, 11, 15, 17};
    for (size_t k = 0; k < sizeof which / sizeof which[0]; k++) {
        windows_case w = cases[which[k]];
        check_wrong_ones(&w, 60, false);
        w.activation = "hardsigmoid", w.bias = true;
        check_wrong_ones(&w, 60, false);
    }
}

/* More than a billion products: samples and projections, with what is linear beside the products. */
static void one_wrong_element_is_found_by_projections(void) {
    windows_case w = {.spatial = 2, .cin = 512, .cout = 520, .in = {66, 66}, .kernel = {1, 1}};
    check_wrong_ones(&w, 150, true);
    w = (windows_case){.spatial = 2,
                       .n = 3,
                       .group = 2,
                       .cin = 128,
                       .cout = 320,
                       .in = {40, 57},
                       .kernel = {3, 3},
                       .stride = {1, 1},
                       .pads = {1, 1, 1, 1},
                       .bias = true,
                       .residual = true};
    check_wrong_ones(&w, 150, true);
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(the_reference_is_the_formula);
    UNIT_RUN(the_reference_knows_activations);
    UNIT_RUN(candidates_are_right_in_every_shape);
    UNIT_RUN(candidates_are_right_in_every_type);
    UNIT_RUN(candidates_are_right_with_an_epilogue);
    UNIT_RUN(candidates_are_right_transposed);
    UNIT_RUN(little_workspace_is_enough_or_refused);
    UNIT_RUN(one_wrong_element_is_found_in_a_whole);
    UNIT_RUN(one_wrong_element_is_found_by_projections);
    cpu_products_close();
    return unit_end();
}
