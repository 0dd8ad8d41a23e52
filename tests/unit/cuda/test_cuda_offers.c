/* What candidates of the CUDA device make of what libraries offer, on machines without a GPU: tables of functions stand
 * for cuBLASLt, cuSPARSELt and cuDNN (the linker puts the __wrap_ functions here in the place of those that open them).
 * Nothing is launched. Needs the toolkit's headers. */
#include "common/arena.h"
#include "scout/cuda/device/cuda_candidates.h"
#include "scout/cuda/device/cuda_device.h"
#include "scout/cuda/dnn/dnn.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/own/own.h"
#include "scout/cuda/sparse/sparse_lt.h"
#include "scout/input/operation.h"
#include "scout/kinds/kinds.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST = 200 };

static guard lab_guard;
static arena lab_arena;
static operation_list lab_list;

static struct scout_device device;
static scout_op op;
static scout_why why;

/* From a list with this one operation; drop_op is right afterwards in every case. */
static bool make_op(const char *text) {
    char path[] = "/tmp/test_cuda_offers.XXXXXX";
    const int file = mkstemp(path);
    const bool written = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) close(file);
    device = (struct scout_device){.multiprocessors = 132, .capability_major = 9};
    guard_init(&lab_guard);
    arena_init(&lab_arena, &lab_guard, (size_t)64 << 20);
    lab_list = (operation_list){.items = NULL};
    bool good = written && guard_enter(&lab_guard);
    if (good) operation_read(path, "fp16", &lab_arena, &lab_list);
    unlink(path);
    good = good && lab_list.count == 1 && kinds_build(&lab_list.items[0], 32U << 20, &lab_arena, &op, &why);
    if (!UNIT_CHECK(good)) printf("%s: %s %s\n", text, lab_guard.st.text, why.text);
    return good;
}

static void drop_op(void) {
    operation_list_free(&lab_list);
    arena_free(&lab_arena);
}

/* ---- cuBLASLt: a ranked list of algorithms, which the mask of reductions thins ---- */

typedef struct fake_algo {
    int32_t parts; /* of K */
    uint32_t scheme;
    int32_t tile;
} fake_algo;

static fake_algo offered[MOST];
static int offered_count, asked;
static float waves; /* of one part of each; 0: not said */
static uint32_t mask;

static cublasStatus_t make_product(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
    static cublasLtMatmulDescOpaque_t any;
    (void)compute, (void)scale;
    *out = &any;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_product(cublasLtMatmulDesc_t product) {
    (void)product;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_product(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                  const void *value, size_t size) {
    (void)product, (void)attribute, (void)value, (void)size;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make_layout(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t cols,
                                  int64_t ld) {
    static cublasLtMatrixLayoutOpaque_t any;
    (void)type, (void)rows, (void)cols, (void)ld;
    *out = &any;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_layout(cublasLtMatrixLayout_t layout) {
    (void)layout;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t make_preference(cublasLtMatmulPreference_t *out) {
    static cublasLtMatmulPreferenceOpaque_t any;
    *out = &any;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t drop_preference(cublasLtMatmulPreference_t preference) {
    (void)preference;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_preference(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size) {
    (void)preference;
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && UNIT_INT(size, sizeof mask))
        memcpy(&mask, value, sizeof mask);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t rank(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a_layout,
                           cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,
                           cublasLtMatrixLayout_t d_layout, cublasLtMatmulPreference_t preference, int most,
                           cublasLtMatmulHeuristicResult_t results[], int *count) {
    (void)handle, (void)product, (void)a_layout, (void)b_layout, (void)c_layout, (void)d_layout, (void)preference;
    asked++;
    *count = 0;
    for (int k = 0; k < offered_count && *count < most; k++) {
        if (offered[k].parts > 1 && (offered[k].scheme & ~mask)) continue;
        results[*count] = (cublasLtMatmulHeuristicResult_t){.state = CUBLAS_STATUS_SUCCESS,
                                                            .wavesCount = waves * (float)offered[k].parts};
        memcpy(&results[(*count)++].algo, &offered[k], sizeof offered[k]);
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_config(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
                                 void *value, size_t size, size_t *written) {
    fake_algo is;
    memcpy(&is, algo, sizeof is);
    if (size != 4) return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) memcpy(value, &is.parts, size);
    if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) memcpy(value, &is.scheme, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_config(cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t attribute,
                                 const void *value, size_t size) {
    fake_algo is;
    memcpy(&is, algo, sizeof is);
    if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM) memcpy(&is.parts, value, size);
    if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) memcpy(&is.scheme, value, size);
    memcpy(algo, &is, sizeof is);
    return CUBLAS_STATUS_SUCCESS;
}

/* Tiles from 100 on cannot be divided. */
static cublasStatus_t get_capability(const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoCapAttributes_t attribute,
                                     void *value, size_t size, size_t *written) {
    fake_algo is;
    memcpy(&is, algo, sizeof is);
    const uint32_t said =
        attribute == CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK ? CUBLASLT_REDUCTION_SCHEME_MASK : is.tile < 100;
    *written = sizeof said;
    if (size < sizeof said) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &said, sizeof said);
    return CUBLAS_STATUS_SUCCESS;
}

/* No more than six parts. */
static cublasStatus_t check_algo(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a_layout,
                                 cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,
                                 cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                                 cublasLtMatmulHeuristicResult_t *result) {
    fake_algo is;
    (void)handle, (void)product, (void)a_layout, (void)b_layout, (void)c_layout, (void)d_layout;
    memcpy(&is, algo, sizeof is);
    result->state = CUBLAS_STATUS_SUCCESS;
    return is.parts > 6 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

const lt_table *__wrap_lt_ready(cublasLtHandle_t *handle, scout_why *reason);
const lt_table *__wrap_lt_ready(cublasLtHandle_t *handle, scout_why *reason) {
    static const lt_table table = {.cublasLtMatmulDescCreate = make_product,
                                   .cublasLtMatmulDescDestroy = drop_product,
                                   .cublasLtMatmulDescSetAttribute = set_product,
                                   .cublasLtMatrixLayoutCreate = make_layout,
                                   .cublasLtMatrixLayoutDestroy = drop_layout,
                                   .cublasLtMatmulPreferenceCreate = make_preference,
                                   .cublasLtMatmulPreferenceDestroy = drop_preference,
                                   .cublasLtMatmulPreferenceSetAttribute = set_preference,
                                   .cublasLtMatmulAlgoGetHeuristic = rank,
                                   .cublasLtMatmulAlgoConfigSetAttribute = set_config,
                                   .cublasLtMatmulAlgoCapGetAttribute = get_capability,
                                   .cublasLtMatmulAlgoCheck = check_algo,
                                   .cublasLtMatmulAlgoConfigGetAttribute = get_config};
    (void)reason;
    *handle = NULL;
    return &table;
}

/* Which of those that are offered are taken, by their parts of K, for a product of these types. */
static void check_list(const char *types, const fake_algo *algos, int count, const int *wanted, int left, int times) {
    char text[200];
    snprintf(text, sizeof text, "{\"p\": {\"op\": \"gemm\", \"shape\": [64, 64, 4096], %s}}", types);
    memcpy(offered, algos, (size_t)count * sizeof *algos);
    offered_count = count, asked = 0;
    if (make_op(text)) {
        const lt_list *const got = lt_lists_get(&device, &op, (lt_way){false}, LT_RANKED_ALGOS, &why);
        if (UNIT_CHECK(got) && UNIT_INT(got->count, left))
            for (int k = 0; k < left; k++) {
                fake_algo is;
                memcpy(&is, &got->results[k].algo, sizeof is);
                UNIT_INT(is.parts, wanted[k]);
            }
        UNIT_INT(asked, times);
        lt_lists_free(device.lists);
    }
    drop_op();
}

static void parts_of_k_meet_in_fp32(void) {
    enum { PLACE = CUBLASLT_REDUCTION_SCHEME_INPLACE, OUT = CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE };
    enum { WIDE = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE };
    static const fake_algo good_first[] = {{1, OUT, 0}, {2, OUT, 0}, {3, WIDE, 0}, {4, PLACE, 0}},
                           bad_first[] = {{2, PLACE, 0}, {3, WIDE, 0}, {1, 0, 0}, {4, OUT, 0}},
                           all_bad[] = {{2, PLACE, 0}, {3, OUT, 0}};
    static const int whole[] = {1, 3}, wide[] = {3, 1}, every[] = {2, 3, 1, 4};
    static const char *const half[] = {"\"dtype\": \"fp16\"", "\"dtype\": \"bf16\"", "\"dtype\": \"fp8\""};
    for (size_t k = 0; k < sizeof half / sizeof half[0]; k++) {
        check_list(half[k], good_first, 4, whole, 2, 1); /* K in one piece has nothing to bring together */
        check_list(half[k], bad_first, 4, wide, 2, 2);
    }
    check_list(half[0], all_bad, 2, NULL, 0, 2);
    check_list("\"dtype\": \"fp16\", \"out_dtype\": \"fp32\"", bad_first, 4, every, 4, 1);
    check_list("\"dtype\": \"fp32\"", bad_first, 4, every, 4, 1);
    check_list("\"dtype\": \"fp32\", \"weight_dtype\": \"int4\", \"block_size\": 32, \"layout\": \"nt\", "
               "\"weight_side\": \"b\"",
               bad_first, 4, every, 4, 1); /* unpacked before */
}

/* The library has a factor of the product, and of what it adds as a matrix; the kernel behind it one of any bias. */
static void factors_go_where_they_are_taken(void) {
    static const struct {
        const char *fields;
        bool lt, tail, others;
    } cases[] = {
        {"\"shape\": [8, 64, 64]", true, false, true},
        {"\"shape\": [8, 64, 64], \"alpha\": 0.125", true, false, false},
        {"\"shape\": [8, 64, 64], \"alpha\": 0.125, \"bias\": \"n\"", true, true, false},
        {"\"shape\": [8, 64, 64], \"beta\": 0.5, \"bias\": \"n\"", false, true, false},
        {"\"shape\": [8, 64, 64], \"beta\": 0.5, \"bias\": \"full\"", true, true, false},
        {"\"shape\": [8, 64, 64], \"beta\": 0.5, \"bias\": \"scalar\"", false, true, false},
    };
    static const scout_candidate *const others[] = {&own_gemm_stream, &own_gemm_tiled, &own_gemm_naive};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char text[200];
        snprintf(text, sizeof text, "{\"p\": {\"op\": \"gemm\", \"weight_side\": \"b\", %s}}", cases[k].fields);
        if (make_op(text)) {
            UNIT_INT(lt_candidate.supports(&op, &device, &why) == SCOUT_OK, cases[k].lt);
            UNIT_INT(own_gemm_tail.supports(&op, &device, &why) == SCOUT_OK, cases[k].tail);
            for (size_t j = 0; j < sizeof others / sizeof others[0]; j++)
                UNIT_INT(others[j]->supports(&op, &device, &why) == SCOUT_OK, cases[k].others);
            UNIT_INT(dnn_gemm.supports(&op, &device, &why), SCOUT_NO);
        }
        drop_op();
    }
}

/* Few tiles: K of the first algorithms is divided, into as many parts as fill the device up to twice. */
static void few_tiles_have_k_divided(void) {
    enum { WIDE = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE };
    static const fake_algo algos[] = {{1, 0, 1}, {2, WIDE, 2}, {1, 0, 100}};
    static const int as_is[] = {1, 2, 1}, twice[] = {1, 2, 1, 2, 3, 3}, most[] = {1, 2, 1, 2, 3, 4, 6, 3, 4, 6};
    static const char half[] = "\"dtype\": \"fp16\"";
    waves = 1;
    check_list(half, algos, 3, as_is, 3, 1);
    waves = 0.6F;
    check_list(half, algos, 3, twice, 6, 1);
    waves = 0.1F;
    check_list(half, algos, 3, most, 10, 1);
    waves = 0;
    check_list(half, algos, 3, as_is, 3, 1);
}

/* What fills the device has enough in the first ones; what does not has them all. */
static void long_lists_are_cut(void) {
    static fake_algo many[LT_HEURISTIC_ALGOS + 9];
    static int parts[LT_HEURISTIC_ALGOS];
    for (int k = 0; k < LT_HEURISTIC_ALGOS + 9; k++) many[k] = (fake_algo){1, 0, 100 + k};
    for (int k = 0; k < LT_HEURISTIC_ALGOS; k++) parts[k] = 1;
    waves = 2;
    check_list("\"dtype\": \"fp16\"", many, LT_HEURISTIC_ALGOS + 9, parts, LT_FIRST_ALGOS, 1);
    waves = 0.5F;
    check_list("\"dtype\": \"fp16\"", many, LT_HEURISTIC_ALGOS + 9, parts, LT_HEURISTIC_ALGOS, 1);
    waves = 0;
}

/* ---- cuSPARSELt: says yes to everything and has two algorithms ---- */

#define FAKE_YES(name, parameters)                                                                                     \
    static cusparseStatus_t yes_##name parameters { return CUSPARSE_STATUS_SUCCESS; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
SPARSE_LT_FUNCTIONS(FAKE_YES)
#pragma GCC diagnostic pop

static cusparseStatus_t two_algorithms(const sparse_lt_object *handle, const sparse_lt_object *selection, int attribute,
                                       void *value, size_t bytes) {
    const int number = attribute == SPARSE_LT_ALGOS ? 2 : 0;
    (void)handle, (void)selection;
    if (bytes != sizeof number) return CUSPARSE_STATUS_INVALID_VALUE;
    memcpy(value, &number, sizeof number);
    return CUSPARSE_STATUS_SUCCESS;
}

const sparse_lt_table *__wrap_sparse_lt_ready(const sparse_lt_object **handle, scout_why *reason);
const sparse_lt_table *__wrap_sparse_lt_ready(const sparse_lt_object **handle, scout_why *reason) {
    static const sparse_lt_object any;
#define FAKE_MEMBER(name, parameters) .name = yes_##name,
    static sparse_lt_table table = {SPARSE_LT_FUNCTIONS(FAKE_MEMBER)};
#undef FAKE_MEMBER
    table.cusparseLtMatmulAlgGetAttribute = two_algorithms;
    (void)reason;
    *handle = &any;
    return &table;
}

static void check_places(const char *fields, const char *first, uint32_t count) {
    static scout_domain domain;
    char text[240];
    snprintf(text, sizeof text, "{\"p\": {\"op\": \"gemm\", \"shape\": [64, 96, 128], \"bias\": \"n\", %s}}", fields);
    memset(&domain, 0, sizeof domain);
    if (make_op(text) && UNIT_INT(sparse_lt_gemm.domain(&op, &device, 0, &domain, &why), SCOUT_OK) &&
        UNIT_INT(domain.count, 3)) {
        const scout_parameter *const bias = &domain.parameters[2];
        UNIT_TEXT(bias->name, "bias");
        UNIT_INT(bias->count, count);
        UNIT_TEXT(bias->labels[0], first);
        UNIT_TEXT(bias->labels[bias->count - 1], "before");
    }
    drop_op();
}

static void a_bias_runs_along_the_sparse_side(void) {
    static const char *const layouts[] = {"nn", "nt", "tn", "tt"};
    for (size_t k = 0; k < 4; k++) {
        char text[120];
        snprintf(text, sizeof text, "\"dtype\": \"fp16\", \"layout\": \"%s\"", layouts[k]);
        check_places(text, "inside", 2);
        snprintf(text, sizeof text, "\"dtype\": \"bf16\", \"layout\": \"%s\", \"weight_side\": \"a\"", layouts[k]);
        check_places(text, "before", 1);
    }
    check_places("\"dtype\": \"fp8\"", "before", 1); /* its bias would be of another type */
}

/* ---- cuDNN: descriptors that know their type, and three engines ---- */

typedef struct fake_descriptor {
    cudnnBackendDescriptorType_t type;
    int engine;
} fake_descriptor;

static int descriptors;

/* What each engine says of itself; a numerical note of -1: nothing. */
static cudnnBackendBehaviorNote_t behavior[] = {CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER,
                                                CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION,
                                                CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER};
static int numerical[] = {-1, -1, -1};

/* The handle of a descriptor is its address. */
static fake_descriptor *descriptor_of(cudnnBackendDescriptor_t handle) { return (fake_descriptor *)handle; }

static cudnnStatus_t make_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
    fake_descriptor *const d = calloc(1, sizeof *d);
    if (!d) return CUDNN_STATUS_INTERNAL_ERROR;
    d->type = type;
    descriptors++;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t drop_descriptor(cudnnBackendDescriptor_t handle) {
    descriptors -= handle != NULL;
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_descriptor(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    (void)handle, (void)name, (void)type, (void)count, (void)value;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_descriptor(cudnnBackendDescriptor_t handle) {
    (void)handle;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_descriptor(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, int64_t most, int64_t *count, void *value) {
    cudnnBackendDescriptor_t *const to = value;
    const int64_t index = descriptor_of(handle)->engine;
    (void)type;
    *count = name == CUDNN_ATTR_ENGINEHEUR_RESULTS       ? 3
             : name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES ? 0
             : name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE  ? numerical[index] >= 0
                                                         : 1;
    if (*count > most) return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        for (int k = 0; k < 3; k++) descriptor_of(to[k])->engine = k;
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE) descriptor_of(to[0])->engine = (int)index;
    if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) memcpy(value, &index, sizeof index);
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) memcpy(value, &behavior[index], sizeof behavior[index]);
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && *count) memcpy(value, &numerical[index], sizeof numerical[index]);
    return CUDNN_STATUS_SUCCESS;
}

const dnn_table *__wrap_dnn_ready(cudnnHandle_t *handle, scout_why *reason);
const dnn_table *__wrap_dnn_ready(cudnnHandle_t *handle, scout_why *reason) {
    static const dnn_table table = {.cudnnBackendCreateDescriptor = make_descriptor,
                                    .cudnnBackendDestroyDescriptor = drop_descriptor,
                                    .cudnnBackendSetAttribute = set_descriptor,
                                    .cudnnBackendGetAttribute = get_descriptor,
                                    .cudnnBackendFinalize = finish_descriptor};
    (void)reason;
    *handle = NULL;
    return &table;
}

/* The nodes of the graph in order; of the engines only the second one is left. */
static void check_graph(const char *types, dnn_conv_form form, const cudnnBackendDescriptorType_t *nodes, int count) {
    char text[400];
    snprintf(text, sizeof text,
             "{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 8, 16], \"input\": [1, 8, 8, 32], \"kernel\": [3, 3], "
             "\"pads\": [1, 1, 1, 1], \"layout\": \"nhwc\", %s}}",
             types);
    if (make_op(text)) {
        const dnn_offer *const offer = dnn_offer_get(&device, &op, dnn_conv_build, form, &why);
        if (UNIT_CHECK(offer) && UNIT_INT(offer->graph.node_count, count)) {
            for (int k = 0; k < count; k++) UNIT_INT(descriptor_of(offer->graph.nodes[k])->type, nodes[k]);
            UNIT_INT(offer->count, 1);
            UNIT_TEXT(offer->engines[0].name, "\"engine\":1,\"knobs\":[],\"notes\":0");
        }
        dnn_offers_free(device.offers);
        UNIT_INT(descriptors, 0);
    }
    drop_op();
}

static void sums_of_bytes_go_through_a_copy(void) {
    static const cudnnBackendDescriptorType_t nodes[] = {
        CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
        CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR};
    static const char bytes[] = "\"dtype\": \"int8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"int8\", "
                                "\"quant\": \"qdq\", \"bias\": \"channel\"";
    char active[sizeof bytes + 40];
    snprintf(active, sizeof active, "%s, \"activation\": \"relu\"", bytes);
    check_graph(bytes, DNN_CONV_PACKED, nodes, 3); /* bias and factor */
    check_graph(active, DNN_CONV_PACKED, nodes, 4);
    check_graph("\"dtype\": \"int8\", \"weight_dtype\": \"int8\", \"out_dtype\": \"int32\"", DNN_CONV_PACKED, nodes, 2);
    check_graph("\"dtype\": \"fp16\"", DNN_CONV_PACKED, nodes, 1);
    check_graph("\"dtype\": \"fp16\", \"bias\": \"channel\"", DNN_CONV_PACKED, nodes, 2);
}

/* Which engines are left, and which of these are coarse, of three that say this of themselves. */
static void check_notes(const char *types, const int *notes, const int *left, int count, int coarse) {
    char text[200];
    memcpy(numerical, notes, sizeof numerical);
    snprintf(text, sizeof text,
             "{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 8, 8], \"input\": [1, 8, 8, 8], "
             "\"kernel\": [1, 1], %s}}",
             types);
    if (make_op(text)) {
        const dnn_offer *const offer = dnn_offer_get(&device, &op, dnn_conv_build, DNN_CONV_AS_IS, &why);
        if (UNIT_INT(offer ? offer->count : 0, count))
            for (int k = 0; k < count; k++) {
                char name[40];
                snprintf(name, sizeof name, "\"engine\":%d,", left[k]);
                UNIT_CHECK(strncmp(offer->engines[k].name, name, strlen(name)) == 0);
                UNIT_INT(offer->engines[k].coarse, k < coarse);
            }
        dnn_offers_free(device.offers);
        UNIT_INT(descriptors, 0);
    }
    drop_op();
}

/* What the heuristic puts first is taken although its sums are coarse, as frameworks take it; what comes later is not,
 * and never one that frameworks leave out. */
static void a_coarse_first_choice_is_the_default(void) {
    enum { REDUCED = CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, TENSOR = CUDNN_NUMERICAL_NOTE_TENSOR_CORE };
    enum { WINOGRAD = CUDNN_NUMERICAL_NOTE_WINOGRAD };
    static const int first[] = {REDUCED, TENSOR, REDUCED}, two[] = {WINOGRAD, REDUCED, -1}, last[] = {-1, -1, REDUCED};
    static const int every[] = {0, 1, 2}, middle[] = {1}, outer[] = {0, 2};
    cudnnBackendBehaviorNote_t before[3];
    memcpy(before, behavior, sizeof before);
    for (int k = 0; k < 3; k++) behavior[k] = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    check_notes("\"dtype\": \"fp16\"", first, every, 2, 1);
    check_notes("\"dtype\": \"fp16\"", two, every, 3, 2);
    check_notes("\"dtype\": \"fp16\"", last, every, 2, 0);
    check_notes("\"dtype\": \"fp32\"", first, outer, 2, 2);
    check_notes("\"precision\": \"tf32\"", first, every, 2, 1);
    memcpy(behavior, before, sizeof before);
    check_notes("\"dtype\": \"fp32\"", last, middle, 1, 0);
    memcpy(numerical, (const int[]){-1, -1, -1}, sizeof numerical);
}

/* Channels last with a weight that has them elsewhere is nothing that the library says it can do. */
static void the_weight_lies_as_the_input_does(void) {
    static const struct {
        const char *text;
        bool as_is;
    } cases[] = {
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 8, 16], \"input\": [1, 8, 8, 32], \"kernel\": [3, 3], "
         "\"pads\": [1, 1, 1, 1], \"layout\": \"nhwc\", \"dtype\": \"fp16\"}}",
         false},
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 8, 16], \"input\": [1, 8, 8, 32], \"kernel\": [1, 1], "
         "\"layout\": \"nhwc\", \"dtype\": \"fp16\"}}",
         true}, /* one order is the other */
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 32, 8, 8], \"kernel\": [3, 3], "
         "\"pads\": [1, 1, 1, 1], \"dtype\": \"fp16\"}}",
         true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (make_op(cases[k].text)) UNIT_INT(dnn_conv_exists(&op, DNN_CONV_AS_IS), cases[k].as_is);
        drop_op();
    }
}

/* What stands behind a convolution is split off; its constant weight lies with its channels last where the input does.
 */
static void the_rest_is_split_off(void) {
    static const struct {
        const char *text;
        bool exists, packs;
    } cases[] = {
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 32, 8, 8], \"kernel\": [3, 3], "
         "\"pads\": [1, 1, 1, 1], \"dtype\": \"fp16\"}}",
         false, false},
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 32, 8, 8], \"kernel\": [3, 3], "
         "\"pads\": [1, 1, 1, 1], \"bias\": \"channel\", \"dtype\": \"fp16\"}}",
         true, false},
        {"{\"c\": {\"op\": \"conv\", \"shape\": [1, 8, 8, 16], \"input\": [1, 8, 8, 32], \"kernel\": [3, 3], "
         "\"pads\": [1, 1, 1, 1], \"bias\": \"channel\", \"layout\": \"nhwc\", \"dtype\": \"fp16\"}}",
         true, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        if (make_op(cases[k].text)) {
            UNIT_INT(dnn_conv_exists(&op, DNN_CONV_SPLIT), cases[k].exists);
            UNIT_INT(dnn_conv_packs(&op, DNN_CONV_SPLIT), cases[k].packs);
        }
        drop_op();
    }
}

/* One place of space is channels last already: there is nothing to convert. */
static void one_place_is_both_orders(void) {
    static const char *const texts[] = {
        "{\"c\": {\"op\": \"conv\", \"shape\": [8, 40, 1, 1], \"input\": [8, 960, 1, 1], \"kernel\": [1, 1], "
        "\"bias\": \"channel\", \"activation\": \"silu\", \"dtype\": \"fp16\"}}",
        "{\"c\": {\"op\": \"conv\", \"shape\": [8, 40, 1, 2], \"input\": [8, 960, 1, 2], \"kernel\": [1, 1], "
        "\"bias\": \"channel\", \"activation\": \"silu\", \"dtype\": \"fp16\"}}"};
    for (int k = 0; k < 2; k++) {
        if (make_op(texts[k])) UNIT_INT(dnn_conv_exists(&op, DNN_CONV_CONVERTED), k == 1);
        drop_op();
    }
}

static void quantised_sums_have_one_kernel(void) {
    if (make_op("{\"a\": {\"op\": \"elementwise\", \"what\": \"add\", \"shape\": [8, 512, 512], \"dtype\": \"uint8\", "
                "\"inputs\": \"tensor,tensor\", \"quant\": \"qdq\", \"activation\": \"relu\"}}")) {
        UNIT_INT(own_elementwise.supports(&op, &device, &why), SCOUT_OK);
        UNIT_INT(own_generated.supports(&op, &device, &why), SCOUT_NO);
    }
    drop_op();
    if (make_op("{\"p\": {\"op\": \"pool\", \"what\": \"average\", \"shape\": [1, 512, 1, 1], \"input\": [1, 512, 7, "
                "7], \"global\": 1, \"dtype\": \"int8\", \"quant\": \"qdq\"}}")) {
        UNIT_INT(own_pool_direct.supports(&op, &device, &why), SCOUT_OK);
        UNIT_INT(dnn_pool.supports(&op, &device, &why), SCOUT_NO);
    }
    drop_op();
}

/* A weight of int8 beside floats is the library's once it is widened. */
static void scaled_weights_have_one_convolution(void) {
    static const char *const types[] = {"\"weight_dtype\": \"int8\"", "\"weight_dtype\": \"fp32\""};
    for (int k = 0; k < 2; k++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"c\": {\"op\": \"conv\", \"shape\": [1, 16, 8, 8], \"input\": [1, 32, 8, 8], \"kernel\": [1, 1], "
                 "\"dtype\": \"fp32\", %s}}",
                 types[k]);
        if (make_op(text)) {
            const scout_answer whole = dnn_conv.supports(&op, &device, &why);
            UNIT_INT(dnn_conv_scaled.supports(&op, &device, &why), k == 0 ? SCOUT_OK : SCOUT_NO);
            UNIT_INT(whole, k == 0 ? SCOUT_NO : SCOUT_OK);
            UNIT_INT(own_conv_bytes.supports(&op, &device, &why), SCOUT_NO);
        }
        drop_op();
    }
}

/* The library's reduction of nothing fails at its launch; without the library all else fails for another reason. */
static void what_reduces_nothing_is_refused(void) {
    if (make_op("{\"r\": {\"op\": \"reduce\", \"what\": \"mean\", \"shape\": [3, 5, 7], \"input\": [3, 5, 7]}}")) {
        UNIT_INT(dnn_reduce_tensor.supports(&op, &device, &why), SCOUT_NO);
        UNIT_TEXT(why.code, "shape");
    }
    drop_op();
    if (make_op("{\"r\": {\"op\": \"reduce\", \"what\": \"mean\", \"shape\": [15, 7], \"input\": [3, 5, 7], \"axes\": "
                "[2]}}")) {
        const bool taken = dnn_reduce_tensor.supports(&op, &device, &why) == SCOUT_OK;
        UNIT_CHECK(taken || strcmp(why.code, "shape") != 0);
    }
    drop_op();
}

/* ---- what is a baseline ---- */

const scout_plugin *scout_plugin_entry(uint32_t abi);

/* What frameworks call is a baseline, and a kernel of the project's own is told from a library's by its flags. */
static void baselines_are_what_frameworks_call(void) {
    static const char *const none[] = {"cudnn_softmax", "cudnn_norm", "cudnn_reduce", "cudnn_gemm"};
    const scout_device_api *const api = scout_plugin_entry(SCOUT_ABI)->device;
    uint32_t kinds = 0;
    size_t found = 0;
    for (uint32_t k = 0; k < api->candidate_count; k++) {
        const scout_candidate *const c = api->candidates[k];
        const bool baseline = (c->flags & SCOUT_BASELINE) != 0;
        if (!UNIT_CHECK((c->library == NULL) == ((c->flags & SCOUT_OWN) != 0))) printf("%s\n", c->name);
        kinds |= (uint32_t)baseline << c->kind;
        for (size_t j = 0; j < sizeof none / sizeof none[0]; j++)
            if (strcmp(none[j], c->name) == 0 && UNIT_CHECK(!baseline)) found++;
    }
    UNIT_INT(found, sizeof none / sizeof none[0]);
    for (uint32_t k = 0; k < api->reference_count; k++) UNIT_CHECK(kinds >> api->references[k]->kind & 1);
}

int main(void) {
    UNIT_RUN(baselines_are_what_frameworks_call);
    UNIT_RUN(parts_of_k_meet_in_fp32);
    UNIT_RUN(factors_go_where_they_are_taken);
    UNIT_RUN(few_tiles_have_k_divided);
    UNIT_RUN(long_lists_are_cut);
    UNIT_RUN(the_weight_lies_as_the_input_does);
    UNIT_RUN(the_rest_is_split_off);
    UNIT_RUN(one_place_is_both_orders);
    UNIT_RUN(a_bias_runs_along_the_sparse_side);
    UNIT_RUN(a_coarse_first_choice_is_the_default);
    UNIT_RUN(sums_of_bytes_go_through_a_copy);
    UNIT_RUN(quantised_sums_have_one_kernel);
    UNIT_RUN(scaled_weights_have_one_convolution);
    UNIT_RUN(what_reduces_nothing_is_refused);
    return unit_end();
}
