/* The reference of products on the CPU device: against a triple loop in long double, and what it must find. */
#include "scout/cpu/device/cpu_number.h"
#include "scout/kinds/kinds.h"
#include "scout/op/gemm.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

static void reference_agrees_with_a_triple_loop(void) {
    for (size_t t = 0; t < CPU_PRODUCTS_TYPES; t++)
        for (size_t l = 0; l < 4; l++)
            for (size_t s = 0; s < CPU_PRODUCTS_SHAPES; s++) {
                product w = cpu_products_want(s, l, t, 1 + (int64_t)(s % 2) * 2);
                w.shared_a = s == 3, w.shared_b = s == 5;
                cpu_products_check_reference(&w, 100 * t + 10 * l + s);
            }
}

static void reference_reads_biases_and_scaled_weights(void) {
    static const char *const kinds[] = {"n", "m", "scalar", "full", "each"};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        product w = cpu_products_want(7, k % 4, 0, 1);
        w.bias = kinds[k];
        cpu_products_check_reference(&w, k);
        w.batch = 3;
        cpu_products_check_reference(&w, k + 50);
        w.factor = -0.5, w.bias_factor = 3;
        cpu_products_check_reference(&w, k + 70);
    }
    product w = {.m = 33,
                 .n = 300,
                 .k = 256,
                 .batch = 1,
                 .layout = "nt",
                 .type_a = SCOUT_FP16,
                 .type_b = SCOUT_INT4,
                 .type_c = SCOUT_FP16,
                 .block = 32};
    cpu_products_check_reference(&w, 9);
    w.block = 128, w.k = 320;
    cpu_products_check_reference(&w, 10);
    w.zeros = true, w.layout = "nn", w.n = 301;
    cpu_products_check_reference(&w, 11);
    w.type_b = SCOUT_UINT4, w.layout = "tt";
    cpu_products_check_reference(&w, 12);
    w.type_b = SCOUT_UINT8, w.block = 320;
    cpu_products_check_reference(&w, 13);
    w.batch = 3, w.n = 41, w.layout = "nt";
    cpu_products_check_reference(&w, 14);
    w.type_b = SCOUT_INT4, w.block = 64, w.layout = "nn";
    cpu_products_check_reference(&w, 15);
}

/* 210,000 outputs, of which 8,192 are sampled: the others are the projections' to find. */
static void one_wrong_element_is_found_wherever_it_is(void) {
    static const size_t tried[] = {0, 1, 3, 5};
    for (size_t t = 0; t < 4; t++) {
        product w = cpu_products_want(0, 1, tried[t], 1);
        w.m = 300, w.n = 700, w.k = 24;
        problem p;
        cpu_products_make(&p, &w, t);
        cpu_products_triple_loop(&p);
        scout_check *check = cpu_products_begin(&p);
        if (check && UNIT_CHECK(cpu_products_judge(check, &p).wrong == 0)) {
            int missed = 0;
            for (int64_t k = 0; k < 200; k++) {
                const int64_t position = k == 0 ? 0 : k == 1 ? 209999 : k * 7919 * 131 % 210000;
                const double right = cpu_products_at(&p, GEMM_C, position);
                const double off = w.type_c == SCOUT_INT32 ? 1 : 4; /* sums of 24 terms: of the size of one spread */
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right + (k % 2 ? off : -off));
                scout_verdict v = cpu_products_judge(check, &p);
                missed += v.wrong == 0;
                cpu_number_store(w.type_c, p.data[GEMM_C], position, right);
            }
            if (!UNIT_INT(missed, 0)) printf("  of type %u\n", (unsigned)w.type_c);
            UNIT_CHECK(cpu_products_judge(check, &p).wrong == 0);
            cpu_products_api->references[0]->end(check);
        }
        cpu_products_drop(&p);
    }
}

static void what_is_no_number_is_found_and_swapped_rows_too(void) {
    product w = cpu_products_want(0, 0, 0, 2);
    w.m = 200, w.n = 300, w.k = 16;
    problem p;
    cpu_products_make(&p, &w, 3);
    cpu_products_triple_loop(&p);
    scout_check *check = cpu_products_begin(&p);
    float *c = p.data[GEMM_C];
    if (check) {
        for (int64_t k = 0; k < 100; k++) {
            const int64_t position = k * 1201 % 120000;
            const float right = c[position];
            c[position] = k % 2 ? NAN : INFINITY;
            scout_verdict v = cpu_products_judge(check, &p);
            UNIT_CHECK(v.wrong > 0 && isinf(v.worst_projected));
            c[position] = right;
        }
        for (int64_t k = 0; k < 100; k++) { /* neighbours that changed places */
            const int64_t position = k * 1201 % 119998;
            const float one = c[position], other = c[position + 1];
            if (fabsf(one - other) < 0.1F) continue;
            c[position] = other, c[position + 1] = one;
            UNIT_CHECK(cpu_products_judge(check, &p).wrong > 0);
            c[position] = one, c[position + 1] = other;
        }
        memset(c, 0xFF, p.tensors[GEMM_C].bytes); /* never written */
        scout_verdict v = cpu_products_judge(check, &p);
        UNIT_CHECK(v.wrong > 4096 && isinf(v.worst));
        cpu_products_api->references[0]->end(check);
    }
    cpu_products_drop(&p);
}

static void references_refuse_what_they_do_not_know(void) {
    product w = cpu_products_want(1, 0, 0, 1);
    problem p;
    scout_check *check = NULL;
    scout_why why = {"", ""};
    cpu_products_make(&p, &w, 1);
    p.fields[p.op.field_count++] = (scout_field){"bias", 0, "diagonal"};
    UNIT_INT(cpu_products_api->references[0]->begin(cpu_products_device, &p.op, p.data, 1, &check, &why), SCOUT_NO);
    UNIT_TEXT(why.code, "epilogue");
    UNIT_CHECK(check == NULL);
    p.op.field_count = 1;
    p.tensors[GEMM_A].type = 9; /* bool */
    UNIT_INT(cpu_products_api->references[0]->begin(cpu_products_device, &p.op, p.data, 1, &check, &why), SCOUT_NO);
    UNIT_TEXT(why.code, "type");
    p.tensors[GEMM_A].type = SCOUT_FP32;
    cpu_products_drop(&p);
}

/* --- one wrong element, by the program's own tolerances --- */

static uint64_t random_word(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state ^ *state >> 29) * 0xbf58476d1ce4e5b9u;
}

static double tolerance_of_kind(const problem *p) { return kind_gemm.tolerance(&p->op); }

/* The outputs in double, for depths at which the triple loop takes too long; each may then be off by `noise` spreads,
 * as adders with few bits are. `spreads` gets the spread of each. */
static void compute_fast(const problem *p, double noise, uint64_t seed, double *spreads) {
    const product *w = &p->w;
    const int scales = op_tensor(&p->op, "scales");
    double *a = malloc((size_t)(w->m * w->k) * sizeof *a), *b = malloc((size_t)w->k * sizeof *b);
    if (!a || !b) abort();
    cpu_number_load(w->type_a, p->data[GEMM_A], 0, 1, w->m * w->k, a);
    for (int64_t j = 0; j < w->n; j++) {
        cpu_number_load(w->type_b, p->data[GEMM_B], j * w->k, 1, w->k, b);
        for (int64_t k = 0; scales >= 0 && k < w->k; k++)
            b[k] *= cpu_products_at(p, scales, j * (w->k / w->block) + k / w->block);
        for (int64_t i = 0; i < w->m; i++) {
            double sum = 0, squares = 0;
            for (int64_t k = 0; k < w->k; k++) {
                const double term = a[i * w->k + k] * b[k];
                sum += term, squares += term * term;
            }
            spreads[i * w->n + j] = sqrt(squares);
            double off = -6; /* twelve even numbers make one that is nearly normal */
            for (int u = 0; u < 12; u++) off += (double)(random_word(&seed) >> 11) * 0x1p-53;
            cpu_number_store(w->type_c, p->data[GEMM_C], i * w->n + j, sum + noise * off * sqrt(squares));
        }
    }
    free(a);
    free(b);
}

static double faulty(const problem *p, int how, int64_t position, double right, double spread) {
    switch (how) {
    case 0: return right + spread;
    case 1: return right - spread;
    case 2: return NAN;
    case 3: return 0;
    case 4: return cpu_products_at(p, GEMM_C, position + 1);
    default: return cpu_products_at(p, GEMM_C, position > 0 ? position - 1 : 1);
    }
}

/* Whether projections alone find it: samples see everything of so small an output. A zero or a neighbour's value is a
 * fault of one spread only where the right value is that far from it. */
static int try_faults(const problem *p, scout_check *check, const double *spreads, uint64_t seed, int *tried) {
    const double tolerance = tolerance_of_kind(p);
    int missed = 0;
    for (int k = 0; k < 120; k++) {
        const int64_t position = (int64_t)(random_word(&seed) % (uint64_t)(p->w.m * (p->w.n - 1)));
        const double right = cpu_products_at(p, GEMM_C, position);
        const double wrong = faulty(p, k % 6, position, right, spreads[position]);
        if (isnan(wrong) && p->w.type_c == SCOUT_INT32) continue;
        if (fabs(wrong - right) < 0.99 * spreads[position]) continue;
        cpu_number_store(p->w.type_c, p->data[GEMM_C], position, wrong);
        const scout_verdict v = cpu_products_judge_within(check, p, tolerance);
        if (!(v.worst_projected > tolerance)) missed++;
        cpu_number_store(p->w.type_c, p->data[GEMM_C], position, right);
        ++*tried;
    }
    return missed;
}

static void try_depth(const product *w, double noise_of_tolerance, uint64_t seed) {
    problem p;
    int tried = 0;
    cpu_products_make(&p, w, seed);
    double *spreads = malloc((size_t)(w->m * w->n) * sizeof *spreads);
    if (!spreads) abort();
    const double tolerance = tolerance_of_kind(&p);
    compute_fast(&p, noise_of_tolerance * tolerance, seed, spreads);
    scout_check *check = cpu_products_begin(&p);
    if (UNIT_CHECK(check)) {
        const scout_verdict v = cpu_products_judge_within(check, &p, tolerance);
        if (!UNIT_CHECK(v.wrong == 0)) cpu_products_say(&p, "right, but", &v);
        if (!UNIT_INT(try_faults(&p, check, spreads, seed, &tried), 0) || !UNIT_CHECK(tried >= 60))
            printf("  types %u %u %u, K %lld: %d tried\n", w->type_a, w->type_b, w->type_c, (long long)w->k, tried);
        cpu_products_api->references[0]->end(check);
    }
    free(spreads);
    cpu_products_drop(&p);
}

static void a_fault_of_one_spread_is_projected_at_every_depth(void) {
    static const struct {
        uint32_t a, b, c;
        double noise; /* deviation of what sums lose, of the tolerance: the table takes it five times */
    } tried[] = {{SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 0.1},       {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0},
                 {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16, 0},         {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16, 0.1},
                 {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_FP32, 0.2}, {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32, 0},
                 {SCOUT_UINT8, SCOUT_INT8, SCOUT_INT32, 0},       {SCOUT_FP16, SCOUT_INT4, SCOUT_FP16, 0.1},
                 {SCOUT_BF16, SCOUT_INT4, SCOUT_BF16, 0.1}};
    static const int64_t depths[] = {64, 1024, 16384};
    for (size_t t = 0; t < sizeof tried / sizeof tried[0]; t++)
        for (size_t d = 0; d < 3; d++) {
            product w = {.m = 5, .n = 530, .k = depths[d], .batch = 1, .layout = "nt"};
            w.type_a = tried[t].a, w.type_b = tried[t].b, w.type_c = tried[t].c;
            w.block = w.type_b == SCOUT_INT4 ? 64 : 0;
            try_depth(&w, tried[t].noise, 10 * t + d);
        }
}

/* The roundings of an output are all that is wrong: many projections, also of few columns, none beyond. */
static void roundings_are_no_false_alarm(void) {
    static const size_t narrow[] = {2, 3, 4}; /* bf16, fp16, fp8: the others' outputs are finer than their sums */
    static const int64_t widths[] = {1, 2, 3, 5, 9, 17, 270, 1024};
    double nearest = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        product w = cpu_products_want(0, 1, seed % 3 == 0 ? 1 : narrow[seed % 3], 1);
        problem p;
        w.m = 400, w.n = widths[seed % 8], w.k = 64;
        cpu_products_make(&p, &w, seed);
        double *spreads = malloc((size_t)(w.m * w.n) * sizeof *spreads);
        if (!spreads) abort();
        compute_fast(&p, 0, seed, spreads);
        scout_check *check = cpu_products_begin(&p);
        if (UNIT_CHECK(check)) {
            const double tolerance = tolerance_of_kind(&p);
            const scout_verdict v = cpu_products_judge_within(check, &p, tolerance);
            if (!UNIT_CHECK(v.wrong == 0)) cpu_products_say(&p, "rounded", &v);
            nearest = fmax(nearest, v.worst_projected / tolerance);
            cpu_products_api->references[0]->end(check);
        }
        free(spreads);
        cpu_products_drop(&p);
    }
    UNIT_CHECK(nearest > 0.25); /* and the bound is no barn door */
    printf("  nearest to an alarm: %.2f of what is allowed\n", nearest);
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(reference_agrees_with_a_triple_loop);
    UNIT_RUN(reference_reads_biases_and_scaled_weights);
    UNIT_RUN(one_wrong_element_is_found_wherever_it_is);
    UNIT_RUN(what_is_no_number_is_found_and_swapped_rows_too);
    UNIT_RUN(references_refuse_what_they_do_not_know);
    UNIT_RUN(a_fault_of_one_spread_is_projected_at_every_depth);
    UNIT_RUN(roundings_are_no_false_alarm);
    cpu_products_close();
    return unit_end();
}
