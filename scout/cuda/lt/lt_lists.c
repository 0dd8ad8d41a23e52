/* The results of cuBLASLt's heuristic for an operation, best first. A candidate's variants are prepared one after
 * another from the same list, so the device keeps the last few. */
#include "scout/cuda/lt/lt.h"

#include <stdlib.h>
#include <string.h>

enum { LISTS_KEPT = 8 };

struct lt_lists {
    lt_list kept[LISTS_KEPT];
    unsigned next; /* place of the next one */
};

/* Everything that the heuristic depends on. */
static void lists_key(const scout_op *op, lt_way way, char *key, size_t room) {
    const gemm_problem p = gemm_problem_of(op);
    snprintf(key, room,
             "%lld %lld %lld b%lld t%d%d ld%lld %lld %lld s%lld %lld %lld y%u %u %u %u tf%d %s f%d r%d w%d %llu",
             (long long)p.m, (long long)p.n, (long long)p.k, (long long)p.batch, p.trans_a, p.trans_b, (long long)p.lda,
             (long long)p.ldb, (long long)p.ldc, (long long)p.stride_a, (long long)p.stride_b, (long long)p.stride_c,
             p.type_a, p.type_b, p.type_c, p.accumulate, p.tf32, p.bias ? p.bias : "-", (int)p.activation.function,
             p.residual >= 0, way.transposed, (unsigned long long)op->workspace_limit);
}

/* Whether it divides K with a reduction scheme that is not among those. */
static bool lists_rounds(const lt_table *lt, const cublasLtMatmulAlgo_t *algo, uint32_t schemes) {
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    int32_t parts = 1;
    size_t got = 0;
    if (lt->cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &got) !=
            CUBLAS_STATUS_SUCCESS ||
        lt->cublasLtMatmulAlgoConfigGetAttribute(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme, sizeof scheme,
                                                 &got) != CUBLAS_STATUS_SUCCESS)
        return false;
    return parts != 1 && (scheme & ~schemes) != 0;
}

static cublasStatus_t lists_heuristic(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup,
                                      uint64_t workspace, uint32_t schemes, lt_list *list) {
    cublasLtMatmulPreference_t preference = NULL;
    cublasStatus_t s = lt->cublasLtMatmulPreferenceCreate(&preference);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    const int most = list->most < LT_HEURISTIC_ALGOS ? list->most : LT_HEURISTIC_ALGOS;
    s = lt->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                 sizeof workspace);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                     sizeof schemes);
    if (s == CUBLAS_STATUS_SUCCESS)
        s = lt->cublasLtMatmulAlgoGetHeuristic(handle, setup->product, setup->a, setup->b, setup->c, setup->c,
                                               preference, most, list->results, &list->count);
    lt->cublasLtMatmulPreferenceDestroy(preference);
    return s;
}

/* A product that fills the device has enough in its first choices. A smaller one may gain by any tile, and by dividing
 * K. */
static void lists_fit(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                      lt_list *list) {
    const double fill = lt_enumerate_fill(lt, &list->results[0]);
    if (fill > 0 && fill < 1)
        list->count = lt_enumerate_splits(lt, handle, setup, workspace, list->results, list->count,
                                          list->most < LT_RANKED_ALGOS ? list->most : LT_RANKED_ALGOS);
    else if (list->count > LT_FIRST_ALGOS)
        list->count = LT_FIRST_ALGOS;
}

/* Without preferences, so that the first is the library's default. Where that adds up in 16 bits although fp32 sums
 * were asked for, the default is the first with that preference set. */
static cublasStatus_t lists_ask(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                                lt_list *list) {
    const uint32_t schemes = lt_setup_schemes(setup);
    cublasStatus_t s = lists_heuristic(lt, handle, setup, workspace, CUBLASLT_REDUCTION_SCHEME_MASK, list);
    if (s == CUBLAS_STATUS_SUCCESS && list->count > 0 && lists_rounds(lt, &list->results[0].algo, schemes))
        s = lists_heuristic(lt, handle, setup, workspace, schemes, list);
    if (s == CUBLAS_STATUS_SUCCESS && list->count > 0) lists_fit(lt, handle, setup, workspace, list);
    if (s == CUBLAS_STATUS_SUCCESS && list->most > LT_RANKED_ALGOS)
        list->count = lt_enumerate(lt, handle, setup, workspace, list->results, list->count, list->most);
    return s;
}

/* Results that the library marks as unusable go, and those that round between parts of K; the order stays. */
static void lists_clean(const lt_table *lt, lt_list *list, uint64_t workspace, uint32_t schemes) {
    int good = 0;
    for (int k = 0; k < list->count; k++)
        if (list->results[k].state == CUBLAS_STATUS_SUCCESS && list->results[k].workspaceSize <= workspace &&
            !lists_rounds(lt, &list->results[k].algo, schemes))
            list->results[good++] = list->results[k];
    list->count = good;
}

static lt_list *lists_place(scout_device *device, scout_why *why) {
    if (!device->lists && !(device->lists = calloc(1, sizeof *device->lists))) {
        scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory left on the host");
        return NULL;
    }
    lt_list *const list = &device->lists->kept[device->lists->next++ % LISTS_KEPT];
    free(list->results);
    memset(list, 0, sizeof *list);
    return list;
}

const lt_list *lt_lists_get(scout_device *device, const scout_op *op, lt_way way, int most, scout_why *why) {
    cublasLtHandle_t handle = NULL;
    lt_setup setup;
    char key[sizeof(((lt_list *)NULL)->key)];
    lists_key(op, way, key, sizeof key);
    for (int k = 0; device->lists && k < LISTS_KEPT; k++) {
        const lt_list *const l = &device->lists->kept[k];
        if (l->most >= most && strcmp(l->key, key) == 0) return l;
    }
    const lt_table *const lt = lt_ready(&handle, why);
    lt_list *const list = lt ? lists_place(device, why) : NULL;
    if (!list || lt_setup_make(lt, op, way, &setup, why) != SCOUT_OK) return NULL;
    list->results = calloc((size_t)most, sizeof *list->results);
    list->most = most;
    list->status =
        list->results ? lists_ask(lt, handle, &setup, op->workspace_limit, list) : CUBLAS_STATUS_ALLOC_FAILED;
    const uint32_t schemes = lt_setup_schemes(&setup);
    lt_setup_free(lt, &setup);
    if (list->status == CUBLAS_STATUS_ALLOC_FAILED) {
        list->most = list->count = 0; /* not worth keeping */
        scout_say(why, SCOUT_NO_MEMORY, "memory", "cuBLASLt found no memory for its heuristic");
        return NULL;
    }
    if (list->status != CUBLAS_STATUS_SUCCESS) list->count = 0;
    lists_clean(lt, list, op->workspace_limit, schemes);
    snprintf(list->key, sizeof list->key, "%s", key);
    return list;
}

void lt_lists_free(lt_lists *lists) {
    for (int k = 0; lists && k < LISTS_KEPT; k++) free(lists->kept[k].results);
    free(lists);
}
