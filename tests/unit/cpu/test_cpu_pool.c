/* Pools on the CPU device: the reference against the plain formula, every candidate against the reference, and one
 * wrong element that must be found. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/op/pool.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/cpu/cpu_windows.h"
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <math.h>

static const windows_case cases[] = {
    {.spatial = 2, .cin = 1, .in = {1, 1}, .kernel = {1, 1}},
    {.spatial = 2, .cin = 65, .in = {17, 19}, .kernel = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}},
    {.spatial = 2, .n = 3, .cin = 63, .in = {7, 7}, .kernel = {7, 7}},
    {.spatial = 2, .cin = 7, .in = {129, 127}, .kernel = {2, 2}, .stride = {2, 2}},
    {.spatial = 2, .cin = 17, .in = {9, 12}, .kernel = {2, 4}, .pads = {0, 2, 1, 1}},
    {.spatial = 2, .cin = 8, .in = {14, 15}, .kernel = {3, 3}, .stride = {2, 3}, .ceil = true},
    {.spatial = 2, .cin = 8, .in = {10, 9}, .kernel = {3, 3}, .stride = {2, 3}, .pads = {1, 1, 1, 1}, .ceil = true},
    {.spatial = 2, .cin = 5, .in = {13, 20}, .kernel = {3, 2}, .dilation = {2, 5}, .pads = {2, 3, 1, 0}},
    {.spatial = 1, .cin = 3, .in = {1000}, .kernel = {5}, .stride = {3}, .pads = {2, 2}},
    {.spatial = 1, .cin = 127, .in = {64}, .kernel = {64}},
    {.spatial = 3, .cin = 16, .in = {5, 6, 7}, .kernel = {3, 2, 3}, .stride = {1, 2, 2}, .pads = {1, 0, 1, 1, 1, 1}},
    {.spatial = 3, .n = 2, .cin = 4, .in = {4, 4, 33}, .kernel = {4, 4, 33}},
    {.spatial = 2, .cin = 3, .in = {40, 41}, .kernel = {31, 33}, .pads = {15, 16, 15, 16}},
};
enum { CASES = sizeof cases / sizeof cases[0], MODES = 3 };

static windows_case mode(size_t k, int how, bool last) {
    windows_case w = cases[k];
    w.what = how == 0 ? "max" : "average", w.padded = how == 2, w.last = last;
    return w;
}

/* --- the plain formula --- */

static int64_t or_one(int64_t x) { return x ? x : 1; }

/* Place of a tap along one dimension; 0: inside, 1: in the padding, 2: beyond it. */
static int place(const windows_case *w, int axis, int64_t out, int64_t tap, int64_t *at) {
    *at = out * or_one(w->stride[axis]) - w->pads[axis] + tap * or_one(w->dilation[axis]);
    return *at < 0 || *at >= w->in[axis] ? *at >= w->in[axis] + w->pads[axis + w->spatial] ? 2 : 1 : 0;
}

static double formula(const windows_run *r, int64_t image, int64_t channel, const int64_t *out) {
    const windows_case *w = &r->w;
    const bool average = strcmp(w->what, "average") == 0;
    int64_t taps = 1, counted = 0, at[3];
    double result = average ? 0 : -INFINITY;
    for (int k = 0; k < w->spatial; k++) taps *= w->kernel[k];
    for (int64_t t = 0; t < taps; t++) {
        int worst = 0;
        int64_t rest = t;
        for (int k = w->spatial - 1; k >= 0; rest /= w->kernel[k], k--) {
            const int is = place(w, k, out[k], rest % w->kernel[k], &at[k]);
            worst = is > worst ? is : worst;
        }
        if (worst == 0 || (worst == 1 && w->padded)) counted++;
        if (worst > 0) continue;
        const double x = cpu_windows_at(r, POOL_INPUT, image, channel, at);
        result = average ? result + x : fmax(result, x);
    }
    return average ? result / (double)counted : result;
}

static void write_formula(windows_run *r) {
    const windows_case *w = &r->w;
    const scout_tensor *t = &r->op.tensors[POOL_OUTPUT];
    int64_t sizes[3], places = 1;
    for (int k = 0; k < w->spatial; k++) places *= sizes[k] = cpu_windows_out(w, k);
    for (int64_t k = 0; k < op_elements(t); k++) {
        const int64_t p = k % places, channel = k / places % w->cin, image = k / places / w->cin;
        int64_t out[3], rest = p, at = image * t->strides[0] + channel * t->strides[w->last ? w->spatial + 1 : 1];
        for (int d = w->spatial - 1; d >= 0; rest /= sizes[d], d--) {
            out[d] = rest % sizes[d];
            at += out[d] * t->strides[(w->last ? 1 : 2) + d];
        }
        cpu_number_store(t->type, r->data[POOL_OUTPUT], at, formula(r, image, channel, out));
    }
}

static void the_reference_is_the_formula(void) {
    for (size_t k = 0; k < CASES; k++)
        for (int how = 0; how < 2 * MODES; how++) {
            const windows_case w = mode(k, how % MODES, how >= MODES);
            windows_run r;
            scout_why why;
            cpu_windows_operation(&r, &w);
            if (!UNIT_CHECK(cpu_windows_build(&r, &why))) printf("  %s\n", why.text);
            cpu_windows_fill(&r, k);
            write_formula(&r);
            scout_check *check = cpu_windows_begin(&r);
            const scout_verdict v = cpu_windows_judge(&r, check, how % MODES == 0 ? 0 : 0x1p-24);
            if (!UNIT_CHECK(v.wrong == 0)) cpu_windows_say(&r, "formula", &v);
            UNIT_INT(v.compared, op_elements(&r.op.tensors[POOL_OUTPUT]));
            cpu_windows_end(&r, check);
            cpu_windows_drop(&r);
        }
}

/* --- candidates --- */

static void candidates_are_right(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < CASES; k++)
        for (int how = 0; how < 2 * MODES; how++) {
            const windows_case w = mode(k, how % MODES, how >= MODES);
            cpu_windows_all(&w, k, &t);
        }
    cpu_windows_report("fp32", &t);
    UNIT_INT(cpu_windows_ran(&t, "cpu_pool"), CASES * 2 * MODES);
    UNIT_CHECK(cpu_windows_ran(&t, "onednn_pool") >=
               CASES * 2 * MODES - 10); /* averages that hang over; places apart */
}

static void candidates_are_right_in_every_type(void) {
    static const dtype types[] = {DTYPE_BF16, DTYPE_FP16, DTYPE_INT8, DTYPE_UINT8};
    windows_tally t = {{0}, {0}, 0};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (size_t k = 0; k < CASES; k++)
            for (int how = 0; how < (i < 2 ? 2 * MODES : 1); how++) {
                windows_case w = mode(k, how % MODES, how >= MODES);
                w.type = types[i];
                cpu_windows_all(&w, k, &t);
            }
    cpu_windows_report("types", &t);
    UNIT_INT(cpu_windows_ran(&t, "cpu_pool"), CASES * (2 * 2 * MODES + 2));
}

static void one_wrong_element_is_found(void) {
    for (int how = 0; how < MODES; how++) {
        const windows_case w = mode(1, how, how == 1);
        windows_run r;
        scout_why why;
        int missed = 0;
        cpu_windows_operation(&r, &w);
        UNIT_CHECK(cpu_windows_build(&r, &why));
        cpu_windows_fill(&r, 9);
        UNIT_CHECK(cpu_windows_compute(&r));
        scout_check *check = cpu_windows_begin(&r);
        float *out = r.data[POOL_OUTPUT];
        for (int64_t k = 0; k < op_elements(&r.op.tensors[POOL_OUTPUT]); k += 7) {
            const float kept = out[k];
            out[k] = kept + (how == 0 ? 1e-6F + fabsf(kept) * 1e-6F : 1e-4F + fabsf(kept) * 1e-4F);
            missed += cpu_windows_judge(&r, check, cpu_windows_tolerance(&r)).wrong != 1;
            out[k] = NAN;
            missed += cpu_windows_judge(&r, check, cpu_windows_tolerance(&r)).wrong != 1;
            out[k] = kept;
        }
        UNIT_INT(missed, 0);
        UNIT_INT(cpu_windows_judge(&r, check, cpu_windows_tolerance(&r)).wrong, 0);
        cpu_windows_end(&r, check);
        cpu_windows_drop(&r);
    }
}

static void little_workspace_is_enough_or_refused(void) {
    windows_tally t = {{0}, {0}, 0};
    for (size_t k = 0; k < CASES; k++) {
        windows_case w = mode(k, (int)(k % MODES), false);
        w.workspace = 1;
        cpu_windows_all(&w, k, &t);
    }
    cpu_windows_report("little workspace", &t);
    UNIT_INT(cpu_windows_ran(&t, "cpu_pool"), 0);
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(the_reference_is_the_formula);
    UNIT_RUN(candidates_are_right);
    UNIT_RUN(candidates_are_right_in_every_type);
    UNIT_RUN(one_wrong_element_is_found);
    UNIT_RUN(little_workspace_is_enough_or_refused);
    cpu_products_close();
    /* oneDNN looks for profilers that are not there; what the loader notes of that looks like a leak to sanitizers */
    while (dlerror()) {
    }
    return unit_end();
}
