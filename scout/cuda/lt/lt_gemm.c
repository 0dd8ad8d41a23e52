/* The candidate "cublaslt": the library's ranked algorithms for a product as variants, the first of which is its
 * default. Where the operation has a weight, its transpose is an alternative. */
#include "scout/cuda/lt/lt.h"

#include "kernels/harness/kernels.h"

#include <stdlib.h>
#include <string.h>

struct scout_plan {
    const lt_table *lt;
    cublasLtHandle_t handle;
    lt_setup setup;
    lt_way way;
    gemm_problem problem;
    lt_packing packing;
    int scales; /* of a weight of few bits: its place in op->tensors; -1: it is none */
    cublasLtMatmulHeuristicResult_t chosen;
};

/* The candidate's parameters are "algo" and, where the operation has a weight, "weight". */
static bool gemm_has_weight(const scout_op *op) {
    lt_packing packing;
    return lt_setup_packing(op, &packing);
}

static lt_way gemm_way(const scout_op *op, const int64_t *values) {
    const lt_way way = {gemm_has_weight(op) && values[1] == 1};
    return way;
}

/* A list that is long enough for this algorithm; those beyond the ranked ones exist only in an exhaustive search. */
static const lt_list *gemm_list(const scout_op *op, scout_device *device, lt_way way, int64_t algo, scout_why *why) {
    return lt_lists_get(device, op, way, algo < LT_RANKED_ALGOS ? LT_RANKED_ALGOS : LT_MAX_ALGOS, why);
}

static scout_answer gemm_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer covers = lt_setup_covers(op, why);
    if (covers != SCOUT_OK) return covers;
    if (!lt_open(why)) return SCOUT_NO;
    if (device && lt_setup_fp8(op) && device->capability_major * 10 + device->capability_minor < 89)
        return scout_say(why, SCOUT_NO, "hardware", "fp8 products need compute capability 8.9");
    return SCOUT_OK;
}

static void gemm_add(scout_domain *out, const char *name, uint32_t count, const int64_t *values,
                     const char *const *labels) {
    scout_parameter *const p = &out->parameters[out->count++];
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", name);
    p->count = count;
    p->labels = labels;
    for (uint32_t k = 0; k < count; k++) p->values[k] = values ? values[k] : k;
}

static scout_answer gemm_none(const scout_op *op, cublasStatus_t status, const lt_table *lt, scout_why *why) {
    const bool narrow = lt_setup_fp8(op) || op->input == SCOUT_INT8;
    const gemm_problem p = gemm_problem_of(op);
    if (gemm_has_epilogue(&p))
        return scout_say(why, SCOUT_NO, "epilogue", "cuBLASLt has no algorithm for this product with its epilogue (%s)",
                         lt->cublasLtGetStatusString(status));
    return scout_say(why, SCOUT_NO, narrow ? "layout" : "shape", "cuBLASLt has no algorithm for this product%s (%s)",
                     narrow ? " (8-bit types need both sides stored along K, in multiples of 16)" : "",
                     lt->cublasLtGetStatusString(status));
}

static scout_answer gemm_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                scout_why *why) {
    static const char *const weights[] = {"as_is", "transposed"};
    static const int64_t both[] = {0, 1};
    const bool weight = gemm_has_weight(op);
    const lt_table *const lt = lt_open(why);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    int most = 0, ways[2] = {0, 0}; /* how many algorithms a layout of the weight has */
    memset(out, 0, sizeof *out);
    if (!lt) return SCOUT_NO;
    for (int t = 0; t <= weight; t++) {
        const lt_way way = {t};
        const lt_list *const list = lt_lists_get(device, op, way, exhaustive ? LT_MAX_ALGOS : LT_RANKED_ALGOS, why);
        if (!list) return SCOUT_FAILED;
        ways[t] = list->count;
        if (list->count > most) most = list->count;
        if (list->count == 0 && t == 0) status = list->status;
    }
    if (most == 0) return gemm_none(op, status, lt, why);
    if (!exhaustive && most > LT_RANKED_ALGOS) most = LT_RANKED_ALGOS; /* a longer list may be at hand already */
    gemm_add(out, "algo", (uint32_t)most, NULL, NULL);
    if (weight) {
        const int first = ways[0] ? 0 : 1, count = ways[0] && ways[1] ? 2 : 1;
        gemm_add(out, "weight", (uint32_t)count, both + first, weights + first);
    }
    return SCOUT_OK;
}

static int gemm_allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const lt_list *const list = gemm_list(op, device, gemm_way(op, values), values[0], NULL);
    return list && values[0] >= 0 && values[0] < list->count;
}

static scout_answer gemm_choose(scout_plan *p, const scout_op *op, scout_device *device, int64_t algo, scout_why *why) {
    const lt_list *const list = gemm_list(op, device, p->way, algo, why);
    if (!list) return SCOUT_FAILED;
    if (list->count == 0) return gemm_none(op, list->status, p->lt, why);
    if (algo < 0 || algo >= list->count)
        return scout_say(why, SCOUT_NO, "feature", "cuBLASLt offers %d algorithms here, not %lld", list->count,
                         (long long)algo + 1);
    p->chosen = list->results[algo];
    return SCOUT_OK;
}

static void gemm_needs(const scout_plan *p, scout_plan_needs *needs) {
    needs->packs = 0;
    needs->pack_bytes = 0;
    needs->workspace_bytes = p->chosen.workspaceSize;
    if (p->way.transposed) {
        needs->packs = (uint32_t)p->problem.weight + 1;
        needs->pack_bytes = p->packing.bytes;
    }
    if (p->scales >= 0) {
        needs->packs = GEMM_B + 1;
        const gemm_problem *const q = &p->problem;
        needs->pack_bytes =
            (uint64_t)(q->batch * (q->trans_b ? q->n : q->k)) * (uint64_t)q->ldb * (q->type_a == SCOUT_FP32 ? 4 : 2);
    }
}

static void gemm_destroy(scout_plan *plan) { lt_setup_free(plan->lt, &plan->setup); }

static scout_answer gemm_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                 scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    p->way = gemm_way(op, values);
    p->problem = gemm_problem_of(op);
    p->scales = gemm_widens(p->problem.type_a, p->problem.type_b) ? op_tensor(op, "scales") : -1;
    lt_setup_packing(op, &p->packing);
    p->lt = lt_ready(&p->handle, why);
    scout_answer answer = p->lt ? gemm_choose(p, op, device, values[0], why) : SCOUT_NO;
    if (answer == SCOUT_OK) answer = lt_setup_make(p->lt, op, p->way, &p->setup, why);
    if (answer == SCOUT_OK) gemm_needs(p, needs);
    return answer;
}

static scout_answer gemm_widen(const scout_plan *plan, void *const *tensors, void *packed, void *stream,
                               scout_why *why) {
    const gemm_problem *const p = &plan->problem;
    const kernels_blocks weight = {.numbers = tensors[GEMM_B],
                                   .zeros = p->b_zero >= 0 ? tensors[p->b_zero] : NULL,
                                   .scales = tensors[plan->scales],
                                   .type = p->type_b,
                                   .type_scales = p->type_a,
                                   .columns_first = p->trans_b,
                                   .n = p->n,
                                   .k = p->k,
                                   .ld = p->ldb,
                                   .block = p->block_size,
                                   .matrices = p->batch};
    return cuda_device_answer(kernels_widen(packed, p->type_a, &weight, stream), "widening the weight", why);
}

static scout_answer gemm_pack_tensors(scout_plan *plan, void *const *tensors, void *packed, void *stream,
                                      scout_why *why) {
    const gemm_problem *const p = &plan->problem;
    const lt_packing *const k = &plan->packing;
    if (plan->scales >= 0) return gemm_widen(plan, tensors, packed, stream, why);
    if (!plan->way.transposed) return scout_say(why, SCOUT_FAILED, "error", "this plan packs nothing");
    return cuda_device_answer(kernels_transpose(packed, tensors[p->weight], k->element, k->rows, k->cols, k->ld_from,
                                                k->ld_to, k->stride_from, k->stride_to, k->matrices, stream),
                              "transposing the weight", why);
}

static scout_answer gemm_pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    void *tensors[SCOUT_MAX_TENSORS] = {NULL};
    if (plan->scales >= 0)
        return scout_say(why, SCOUT_NO, "feature", "a weight of few bits cannot be widened without its scales");
    memcpy(&tensors[plan->problem.weight < 0 ? 0 : plan->problem.weight], &weight, sizeof weight);
    return gemm_pack_tensors(plan, tensors, packed, stream, why);
}

static scout_answer gemm_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    static const struct {
        cublasStatus_t status;
        scout_answer answer;
        const char *code;
    } meanings[] = {{CUBLAS_STATUS_ALLOC_FAILED, SCOUT_NO_MEMORY, "memory"},
                    {CUBLAS_STATUS_NOT_SUPPORTED, SCOUT_NO, "feature"},
                    {CUBLAS_STATUS_ARCH_MISMATCH, SCOUT_NO, "hardware"}};
    const lt_setup *const s = &plan->setup;
    void *const c = args->tensors[GEMM_C];
    const void *const added = s->full >= 0 ? args->tensors[s->full] : c;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (s->bias >= 0)
        status = plan->lt->cublasLtMatmulDescSetAttribute(s->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                          &args->tensors[s->bias], sizeof(void *));
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            plan->lt->cublasLtMatmul(plan->handle, s->product, lt_setup_alpha(s), args->tensors[GEMM_B], s->a,
                                     args->tensors[GEMM_A], s->b, lt_setup_beta(s), added, s->c, c, s->c,
                                     &plan->chosen.algo, args->workspace, plan->chosen.workspaceSize, args->stream);
    if (status == CUBLAS_STATUS_SUCCESS) return SCOUT_OK;
    const scout_answer lost = cuda_device_answer(cudaGetLastError(), "cublasLtMatmul", why);
    if (lost == SCOUT_LOST) return lost;
    for (size_t k = 0; k < sizeof meanings / sizeof meanings[0]; k++)
        if (meanings[k].status == status)
            return scout_say(why, meanings[k].answer, meanings[k].code, "cublasLtMatmul: %s",
                             plan->lt->cublasLtGetStatusString(status));
    return scout_say(why, SCOUT_FAILED, "error", "cublasLtMatmul: %s", plan->lt->cublasLtGetStatusString(status));
}

static int gemm_describe(const scout_plan *plan, char *json, size_t room) {
    char algo[900];
    lt_describe_algo(plan->lt, &plan->chosen.algo, algo, sizeof algo);
    return snprintf(json, room,
                    "{\"library\":\"cublaslt\",\"version\":\"%s\",%s,\"workspace_bytes\":%zu,\"waves\":%.3f,"
                    "\"weight\":\"%s\"}",
                    plan->lt->version, algo, plan->chosen.workspaceSize, (double)plan->chosen.wavesCount,
                    plan->scales >= 0      ? "unpacked"
                    : plan->way.transposed ? "transposed"
                                           : "as_is");
}

const scout_candidate lt_candidate = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE,
    .priority = 100,
    .name = "cublaslt",
    .about = "cuBLASLt: the heuristic's default, its ranked algorithms, and the pre-transposed weight",
    .library = "cublaslt",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "fp64", "fp16", "bf16", "fp8", "int8", "int4", NULL},
    .supports = gemm_supports,
    .domain = gemm_domain,
    .allows = gemm_allows,
    .prepare = gemm_prepare,
    .pack = gemm_pack,
    .launch = gemm_launch,
    .describe = gemm_describe,
    .destroy = gemm_destroy,
    .plan_bytes = sizeof(scout_plan),
    .pack_tensors = gemm_pack_tensors,
};
