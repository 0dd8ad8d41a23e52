/* Every algorithm that cuBLASLt would run for an operation, beyond what its heuristic offers: the fields that its
 * interface names, combined, and kept where the library says that it can. For exhaustive searches only; where there are
 * more than there is room for, an even selection of them is taken. */
#include "scout/cuda/lt/lt.h"

#include <stdlib.h>
#include <string.h>

enum { ENUM_IDS = 64, ENUM_VALUES = 128, ENUM_FOUND = 8192, ENUM_PARTS = 16, ENUM_DIVIDED = 8 };

/* The library refuses slowly; each of its algorithms gets an equal part of this. */
static const double enum_seconds = 1.5;

typedef struct enum_values {
    int count;
    uint32_t values[ENUM_VALUES];
} enum_values;

typedef struct enumeration {
    const lt_table *lt;
    cublasLtHandle_t handle;
    const lt_setup *setup;
    uint64_t workspace;
    double deadline; /* of the algorithm at hand */
    int count;
    cublasLtMatmulHeuristicResult_t *found; /* ENUM_FOUND of them */
} enumeration;

static enum_values enum_capability(const enumeration *e, const cublasLtMatmulAlgo_t *algo,
                                   cublasLtMatmulAlgoCapAttributes_t which) {
    enum_values v = {0, {0}};
    size_t written = 0;
    if (e->lt->cublasLtMatmulAlgoCapGetAttribute(algo, which, v.values, sizeof v.values, &written) ==
        CUBLAS_STATUS_SUCCESS)
        v.count = (int)(written / sizeof v.values[0]);
    if (v.count == 0) v.count = 1; /* "undefined" is 0 for all of these */
    return v;
}

/* 0 up to a largest value that is a capability of its own. */
static enum_values enum_range(const enumeration *e, const cublasLtMatmulAlgo_t *algo,
                              cublasLtMatmulAlgoCapAttributes_t which) {
    const enum_values most = enum_capability(e, algo, which);
    enum_values v = {0, {0}};
    for (uint32_t k = 0; k <= most.values[0] && v.count < ENUM_VALUES; k++) v.values[v.count++] = k;
    return v;
}

static void enum_set(const enumeration *e, cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t which,
                     uint32_t value, size_t size) {
    /* a refused one stays unchanged, and the check below decides */
    (void)e->lt->cublasLtMatmulAlgoConfigSetAttribute(algo, which, &value, size);
}

static void enum_try(enumeration *e, const cublasLtMatmulAlgo_t *algo) {
    const lt_setup *const s = e->setup;
    if (e->count >= ENUM_FOUND) return;
    cublasLtMatmulHeuristicResult_t *const r = &e->found[e->count];
    memset(r, 0, sizeof *r);
    r->algo = *algo;
    if (e->lt->cublasLtMatmulAlgoCheck(e->handle, s->product, s->a, s->b, s->c, s->c, algo, r) !=
            CUBLAS_STATUS_SUCCESS ||
        r->state != CUBLAS_STATUS_SUCCESS || r->workspaceSize > e->workspace)
        return;
    r->algo = *algo;
    e->count++;
}

static void enum_whole(enumeration *e, cublasLtMatmulAlgo_t *algo) {
    enum_set(e, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 1, 4);
    enum_set(e, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_REDUCTION_SCHEME_NONE, 4);
    enum_try(e, algo);
}

/* K in up to so many parts; 0: it cannot be divided. That only pays where there are few tiles. */
static void enum_divided(enumeration *e, cublasLtMatmulAlgo_t *algo, uint32_t parts, uint32_t schemes) {
    static const uint32_t numbers[] = {2, 3, 4, 6, 8, 16};
    const uint32_t scheme = schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                                                             : CUBLASLT_REDUCTION_SCHEME_INPLACE;
    if (!(schemes & scheme)) return;
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0] && numbers[k] <= parts; k++) {
        enum_set(e, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, numbers[k], 4);
        enum_set(e, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, scheme, 4);
        enum_try(e, algo);
    }
}

/* 0 where it cannot divide K. */
static uint32_t enum_parts(const enumeration *e, const cublasLtMatmulAlgo_t *algo, uint32_t most) {
    return enum_capability(e, algo, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT).values[0] ? most : 0;
}

static uint32_t enum_schemes(const enumeration *e, const cublasLtMatmulAlgo_t *algo) {
    return enum_capability(e, algo, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK).values[0] & lt_setup_schemes(e->setup);
}

static void enum_algo(enumeration *e, const cublasLtMatmulAlgo_t *first) {
    static const uint32_t clusters[] = {CUBLASLT_CLUSTER_SHAPE_AUTO, CUBLASLT_CLUSTER_SHAPE_1x1x1,
                                        CUBLASLT_CLUSTER_SHAPE_2x1x1, CUBLASLT_CLUSTER_SHAPE_1x2x1};
    const enum_values tiles = enum_capability(e, first, CUBLASLT_ALGO_CAP_TILE_IDS);
    const enum_values stages = enum_capability(e, first, CUBLASLT_ALGO_CAP_STAGES_IDS);
    const enum_values custom = enum_range(e, first, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX);
    const enum_values swizzle = enum_range(e, first, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT);
    const uint32_t parts = enum_parts(e, first, ENUM_PARTS), schemes = enum_schemes(e, first);
    const int64_t combinations = (int64_t)tiles.count * stages.count * custom.count * swizzle.count * 4;
    for (int64_t k = 0; k < combinations && cuda_device_now(NULL) < e->deadline; k++) {
        cublasLtMatmulAlgo_t algo = *first;
        int64_t rest = k;
        enum_set(e, &algo, CUBLASLT_ALGO_CONFIG_TILE_ID, tiles.values[rest % tiles.count], 4);
        rest /= tiles.count;
        enum_set(e, &algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, stages.values[rest % stages.count], 4);
        rest /= stages.count;
        enum_set(e, &algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, custom.values[rest % custom.count], 4);
        rest /= custom.count;
        enum_set(e, &algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, swizzle.values[rest % swizzle.count], 4);
        rest /= swizzle.count;
        enum_set(e, &algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, clusters[rest], 2);
        enum_whole(e, &algo);
        enum_divided(e, &algo, parts, schemes);
    }
}

/* Those that are new, spread evenly over all that were found. */
static int enum_select(const enumeration *e, cublasLtMatmulHeuristicResult_t *results, int count, int room) {
    const int known = count, step = room > known && e->count > room - known ? e->count / (room - known) + 1 : 1;
    for (int k = 0; k < e->count && count < room; k += step) {
        bool seen = false;
        for (int j = 0; j < known && !seen; j++)
            seen = memcmp(&results[j].algo, &e->found[k].algo, sizeof results[j].algo) == 0;
        if (!seen) results[count++] = e->found[k];
    }
    return count;
}

int lt_enumerate(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                 cublasLtMatmulHeuristicResult_t *results, int count, int room) {
    int ids[ENUM_IDS], id_count = 0;
    enumeration e = {lt, handle, setup, workspace, 0, 0, NULL};
    const double start = cuda_device_now(NULL);
    if (lt->cublasLtMatmulAlgoGetIds(handle, setup->compute, setup->scale, setup->type_a, setup->type_b, setup->type_c,
                                     setup->type_c, ENUM_IDS, ids, &id_count) != CUBLAS_STATUS_SUCCESS)
        return count;
    e.found = calloc(ENUM_FOUND, sizeof *e.found);
    for (int k = 0; e.found && k < id_count && k < ENUM_IDS; k++) {
        cublasLtMatmulAlgo_t algo;
        e.deadline = start + enum_seconds * (k + 1) / id_count; /* unused time goes to the next */
        if (lt->cublasLtMatmulAlgoInit(handle, setup->compute, setup->scale, setup->type_a, setup->type_b,
                                       setup->type_c, setup->type_c, ids[k], &algo) == CUBLAS_STATUS_SUCCESS)
            enum_algo(&e, &algo);
    }
    if (e.found) count = enum_select(&e, results, count, room);
    free(e.found);
    return count;
}

double lt_enumerate_fill(const lt_table *lt, const cublasLtMatmulHeuristicResult_t *result) {
    int32_t parts = 1;
    size_t got = 0;
    if (lt->cublasLtMatmulAlgoConfigGetAttribute(&result->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts,
                                                 &got) != CUBLAS_STATUS_SUCCESS)
        parts = 1;
    return (double)result->wavesCount / (parts > 1 ? parts : 1);
}

int lt_enumerate_splits(const lt_table *lt, cublasLtHandle_t handle, const lt_setup *setup, uint64_t workspace,
                        cublasLtMatmulHeuristicResult_t *results, int count, int room) {
    enumeration e = {lt, handle, setup, workspace, 0, 0, calloc(ENUM_FOUND, sizeof *e.found)};
    for (int k = 0; e.found && k < count && k < ENUM_DIVIDED; k++) {
        const double fill = lt_enumerate_fill(lt, &results[k]);
        cublasLtMatmulAlgo_t algo = results[k].algo;
        if (!(fill > 0 && fill < 1)) continue;
        const double most = 2 / fill < ENUM_PARTS ? 2 / fill : ENUM_PARTS;
        enum_divided(&e, &algo, enum_parts(&e, &algo, (uint32_t)most), enum_schemes(&e, &algo));
    }
    if (e.found) count = enum_select(&e, results, count, room);
    free(e.found);
    return count;
}
