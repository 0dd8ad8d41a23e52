/* What the roundings of a fusion's parts come to in fp16, against what kind_in_parts allows: nothing that is right is
 * beyond it, it is not far above what is seen, and what is wrong in one element by half a unit is found. */
#include "common/mix.h"
#include "scout/cpu/device/cpu_fill.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"
#include "scout/op/activation.h"
#include "scout/op/gemm.h"
#include "tests/unit/cpu/cpu_products.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 128, SEEDS = 7, FAULTS = 60 }; /* the reference compares all of 128 x 128 */

static double as_fp16(double x) { return cpu_number_from_fp16(cpu_number_to_fp16((float)x)); }

static double *values(const problem *p, int tensor, int64_t count) {
    double *to = calloc((size_t)(count + 1), sizeof *to);
    if (!to) abort();
    if (tensor >= 0) cpu_number_load(p->op.tensors[tensor].type, p->data[tensor], 0, 1, count, to);
    return to;
}

typedef struct inputs {
    double *a, *b, *bias, *residual; /* [m][k], [n][k], [n], [m][n] */
    op_activation activation;
} inputs;

static inputs inputs_of(const problem *p) {
    return (inputs){values(p, GEMM_A, SIDE * p->w.k), values(p, GEMM_B, SIDE * p->w.k),
                    values(p, op_tensor(&p->op, "bias"), SIDE), values(p, op_tensor(&p->op, "residual"), SIDE * SIDE),
                    gemm_problem_of(&p->op).activation};
}

static void drop(inputs *x) { free(x->a), free(x->b), free(x->bias), free(x->residual); }

typedef enum fault { RIGHT, NO_BIAS, NEXT_BIAS, NO_RESIDUAL, NEXT_RESIDUAL, NO_LAST_TERM, ALL_FAULTS } fault;

/* One after another, each rounding what it writes; the product adds up in fp32. */
static double in_parts(const problem *p, const inputs *x, int64_t i, int64_t j, fault f) {
    const double *a = x->a + i * p->w.k, *b = x->b + j * p->w.k;
    const double bias = f == NO_BIAS ? 0 : x->bias[f == NEXT_BIAS ? (j + 1) % SIDE : j];
    const double residual = f == NO_RESIDUAL ? 0 : x->residual[i * SIDE + (f == NEXT_RESIDUAL ? (j + 1) % SIDE : j)];
    float sum = 0;
    for (int64_t k = 0; k < p->w.k - (f == NO_LAST_TERM); k++) sum += (float)(a[k] * b[k]);
    double value = as_fp16(sum);
    if (p->w.bias) value = as_fp16(value + bias);
    if (p->w.residual) value = as_fp16(value + residual);
    return p->w.activation ? as_fp16(activation_apply(&x->activation, value)) : value;
}

/* One element at a time is as another computation would have it. Faults of half a unit and more are found. */
static void faults_are_found(const problem *p, const inputs *x, scout_check *check, double tolerance, uint64_t seed) {
    int tried = 0;
    for (uint64_t k = 0; k < FAULTS; k++) {
        const int64_t at = (int64_t)(mix_bits(seed + k) % (SIDE * SIDE)), i = at / SIDE, j = at % SIDE;
        const double right = in_parts(p, x, i, j, RIGHT);
        const double wrong = in_parts(p, x, i, j, (fault)(NO_BIAS + k % (ALL_FAULTS - NO_BIAS)));
        if (fabs(wrong - right) < 0.5) continue;
        cpu_number_store(SCOUT_FP16, p->data[GEMM_C], at, wrong);
        const scout_verdict v = cpu_products_judge_within(check, p, tolerance);
        UNIT_CHECK(v.wrong > 0 && v.at == (uint64_t)at);
        cpu_number_store(SCOUT_FP16, p->data[GEMM_C], at, right);
        tried++;
    }
    UNIT_CHECK(tried >= 5);
}

static double worst_of(const product *w, uint64_t seed, double *tolerance, uint64_t *wrong) {
    problem p;
    cpu_products_make(&p, w, seed);
    inputs x = inputs_of(&p);
    for (int64_t at = 0; at < SIDE * SIDE; at++)
        cpu_number_store(SCOUT_FP16, p.data[GEMM_C], at, in_parts(&p, &x, at / SIDE, at % SIDE, RIGHT));
    scout_check *check = cpu_products_begin(&p);
    *tolerance = kind_gemm.tolerance(&p.op) + kind_in_parts(&p.op);
    const scout_verdict v = cpu_products_judge_within(check, &p, *tolerance);
    UNIT_INT(v.compared, SIDE * SIDE);
    UNIT_CHECK(v.worst_projected <= kind_gemm.tolerance(&p.op)); /* many together: the root of their number is enough */
    *wrong += v.wrong;
    if (seed == 1) faults_are_found(&p, &x, check, *tolerance, w->k);
    cpu_products_api->references[0]->end(check);
    drop(&x);
    cpu_products_drop(&p);
    return v.worst;
}

static void roundings_stay_within(void) {
    static const struct {
        int64_t k;
        const char *bias;
        bool residual;
        const char *activation;
    } cases[] = {
        {16, "n", false, NULL},        {16, "n", true, NULL},    {16, NULL, true, "relu"}, {16, "n", true, "gelu"},
        {16, "n", false, "hardswish"}, {768, "n", false, NULL},  {768, NULL, true, NULL},  {768, "n", true, NULL},
        {768, "n", false, "gelu"},     {768, "n", true, "relu"}, {3072, "n", true, NULL},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        product w = {.m = SIDE,
                     .n = SIDE,
                     .k = cases[c].k,
                     .batch = 1,
                     .layout = "nt",
                     .type_a = SCOUT_FP16,
                     .type_b = SCOUT_FP16,
                     .type_c = SCOUT_FP16,
                     .bias = cases[c].bias,
                     .residual = cases[c].residual,
                     .activation = cases[c].activation};
        double worst = 0, tolerance = 0;
        uint64_t wrong = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) worst = fmax(worst, worst_of(&w, seed, &tolerance, &wrong));
        UNIT_INT(wrong, 0);
        /* behind an activation the spread counts twice, and exponentials may be off by one rounding more */
        UNIT_CHECK(tolerance < (w.activation ? 4.5 : 2.5) * worst);
    }
}

int main(void) {
    if (!cpu_products_open()) return 1;
    UNIT_RUN(roundings_stay_within);
    cpu_products_close();
    return unit_end();
}
