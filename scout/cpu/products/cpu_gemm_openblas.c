/* Products by OpenBLAS: sgemm, sbgemm where the build has it, and dgemm, which no other library here has. A batch is
 * one call after the other, as cblas has no batches; the epilogue is a pass of the project's own. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_openblas.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#include <limits.h>
#include <stdlib.h>

struct scout_plan {
    const cpu_openblas *lib;
    gemm_problem p;
    bool more; /* there is an epilogue */
    cpu_gemm_tail tail;
};

static scout_answer counts_fit(const gemm_problem *p, scout_why *why) {
    const int64_t longest[] = {p->m, p->n, p->k, p->lda, p->ldb, p->ldc};
    for (size_t k = 0; k < sizeof longest / sizeof longest[0]; k++)
        if (longest[k] > INT_MAX) return scout_say(why, SCOUT_NO, "shape", "a dimension does not fit cblas's int");
    return SCOUT_OK;
}

static scout_answer supports_double(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    if (!cpu_openblas_get(why)) return SCOUT_NO;
    if (p.type_a != SCOUT_FP64 || p.type_b != SCOUT_FP64 || p.type_c != SCOUT_FP64)
        return scout_say(why, SCOUT_NO, "type", "dgemm multiplies fp64 into fp64");
    if (gemm_has_epilogue(&p))
        return scout_say(why, SCOUT_NO, "epilogue", "nothing stands behind products of fp64 here");
    return counts_fit(&p, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const cpu_openblas *l = cpu_openblas_get(why);
    (void)device;
    if (!l) return SCOUT_NO;
    const bool single = p.type_a == SCOUT_FP32 && p.type_b == SCOUT_FP32;
    const bool half = p.type_a == SCOUT_BF16 && p.type_b == SCOUT_BF16;
    if (half && !l->sbgemm)
        return scout_say(why, SCOUT_NO, "type", "OpenBLAS %s is built without bf16 products (sbgemm)", l->version);
    if ((!single && !half) || p.type_c != SCOUT_FP32 || p.block_size > 0)
        return scout_say(why, SCOUT_NO, "type", "OpenBLAS multiplies fp32 into fp32%s", l->sbgemm ? ", and bf16" : "");
    if (counts_fit(&p, why) != SCOUT_OK) return SCOUT_NO;
    cpu_gemm_tail tail;
    return gemm_has_epilogue(&p) ? cpu_gemm_tail_of(op, &tail, why) : SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs;
    const cpu_openblas *l = cpu_openblas_get(why);
    if (!l) return SCOUT_NO;
    scout_plan *const plan = *out;
    plan->lib = l;
    plan->p = gemm_problem_of(op);
    plan->more = gemm_has_epilogue(&plan->p);
    const scout_answer answer = plan->more ? cpu_gemm_tail_of(op, &plan->tail, why) : SCOUT_OK;
    plan->tail.p.alpha = 1;
    return answer;
}

/* One product of the batch. */
static void multiply_doubles(const scout_plan *plan, const scout_args *args, int64_t product) {
    const gemm_problem *p = &plan->p;
    plan->lib->dgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans, p->trans_b ? CblasTrans : CblasNoTrans,
                     (int)p->m, (int)p->n, (int)p->k, p->alpha,
                     (const double *)args->tensors[GEMM_A] + product * p->stride_a, (int)p->lda,
                     (const double *)args->tensors[GEMM_B] + product * p->stride_b, (int)p->ldb, 0.0,
                     (double *)args->tensors[GEMM_C] + product * p->stride_c, (int)p->ldc);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->p;
    const enum CBLAS_TRANSPOSE ta = p->trans_a ? CblasTrans : CblasNoTrans, tb = p->trans_b ? CblasTrans : CblasNoTrans;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
    (void)why;
    for (int64_t b = 0; b < p->batch && p->type_a == SCOUT_FP64; b++) multiply_doubles(plan, args, b);
    for (int64_t b = 0; b < p->batch && p->type_a != SCOUT_FP64; b++) {
        float *c = (float *)args->tensors[GEMM_C] + b * p->stride_c;
        if (p->type_a == SCOUT_FP32)
            plan->lib->sgemm(CblasRowMajor, ta, tb, m, n, k, (float)p->alpha,
                             (const float *)args->tensors[GEMM_A] + b * p->stride_a, lda,
                             (const float *)args->tensors[GEMM_B] + b * p->stride_b, ldb, 0.0F, c, ldc);
        else
            plan->lib->sbgemm(CblasRowMajor, ta, tb, m, n, k, (float)p->alpha,
                              (const uint16_t *)args->tensors[GEMM_A] + b * p->stride_a, lda,
                              (const uint16_t *)args->tensors[GEMM_B] + b * p->stride_b, ldb, 0.0F, c, ldc);
    }
    if (plan->more) cpu_gemm_tail_run(&plan->tail, args->tensors);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(
        json, room,
        "{\"library\": \"openblas\", \"version\": \"%s\", \"call\": \"%s\", \"passes\": %d, \"threads\": \"%s\"}",
        plan->lib->version,
        plan->p.type_a == SCOUT_FP64   ? "cblas_dgemm"
        : plan->p.type_a == SCOUT_FP32 ? "cblas_sgemm"
                                       : "cblas_sbgemm",
        1 + plan->more, cpu_team_about());
}

const scout_candidate cpu_gemm_openblas = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 90,
    .name = "openblas",
    .about = "OpenBLAS's sgemm (and sbgemm where the build has it), bias, residual and activation in a second pass",
    .library = "openblas",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};

const scout_candidate cpu_gemm_openblas_fp64 = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE,
    .priority = 90,
    .name = "openblas_fp64",
    .about = "OpenBLAS's dgemm",
    .library = "openblas",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp64", NULL},
    .supports = supports_double,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
