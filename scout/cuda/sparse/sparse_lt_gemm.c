/* The candidate "cusparselt": products with a 2:4 sparse weight along K. The library is shown everything by columns, as
 * which it sees what we store by rows: C = A B becomes C' = B' A', without a copy, and either side of it may be the
 * sparse one. The weight is compressed as it is, after the library has agreed that no number of it would be lost. Where
 * a bias lies is part of the library's plan, but pointers change from launch to launch: there is a plan for each, which
 * is host work alone. The other way is a variant: a kernel of our own writes the bias to every row of C, which the
 * product is then added to. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/sparse/sparse_lt.h"
#include "scout/cuda/sparse/sparse_weight.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, TILE = 128 };      /* of all tensors, bytes; of what most algorithms multiply at a time */
enum { ALGO, SPLIT_K, BIAS, PARAMETERS }; /* BIAS where there is one */
enum { INSIDE, BEFORE, PLACES };

/* What the library multiplies, and what the sides of its matrices must be multiples of. */
static const struct lt_type {
    uint32_t input, output;
    cudaDataType in, out;
    int compute, sparse_step, dense_step;
} types[] = {
    {SCOUT_FP16, SCOUT_FP16, CUDA_R_16F, CUDA_R_16F, SPARSE_LT_SUM_FP32, 16, 8},
    {SCOUT_BF16, SCOUT_BF16, CUDA_R_16BF, CUDA_R_16BF, SPARSE_LT_SUM_FP32, 16, 8},
    {SCOUT_INT8, SCOUT_INT32, CUDA_R_8I, CUDA_R_32I, SPARSE_LT_SUM_INT32, 32, 16},
    {SCOUT_FP8E4M3, SCOUT_FP16, CUDA_R_8F_E4M3, CUDA_R_16F, SPARSE_LT_SUM_FP32, 32, 16},
    {SCOUT_FP8E4M3, SCOUT_BF16, CUDA_R_8F_E4M3, CUDA_R_16BF, SPARSE_LT_SUM_FP32, 32, 16},
    {SCOUT_FP8E4M3, SCOUT_FP32, CUDA_R_8F_E4M3, CUDA_R_32F, SPARSE_LT_SUM_FP32, 32, 16},
};

/* The library's objects for one product; they refer to each other, so they stay where they are made. */
typedef struct setup {
    const sparse_lt_table *table;
    const sparse_lt_object *handle;
    int matrices, selected, planned; /* how much of it there is */
    sparse_lt_object matrix[3], product, selection, plan;
} setup;

/* The library's plan for a bias that lies there. All of them are kept: recorded launches may still need them. */
typedef struct placed {
    struct placed *next;
    const void *bias;
    sparse_lt_object plan;
} placed;

struct scout_plan {
    setup s;
    placed *places;
    gemm_problem p;
    int bias, element;  /* place in op->tensors, -1: none; bytes of an output */
    const void *inside; /* where the library last heard that the bias is; NULL: it is written before */
    int algo, split_k;
    uint64_t buffer_at, packed_bytes; /* of what packing writes: what it needs itself lies behind the weight */
    size_t compressed_bytes, workspace_bytes;
};

static const struct lt_type *type_of(const gemm_problem *p) {
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k].input == p->type_a && types[k].input == p->type_b && types[k].output == p->type_c)
            return &types[k];
    return NULL;
}

/* --- the library's objects --- */

static void setup_free(setup *s) {
    if (s->planned) s->table->cusparseLtMatmulPlanDestroy(&s->plan);
    if (s->selected) s->table->cusparseLtMatmulAlgSelectionDestroy(&s->selection);
    while (s->matrices > 0) s->table->cusparseLtMatDescriptorDestroy(&s->matrix[--s->matrices]);
    s->planned = s->selected = 0;
}

static cusparseStatus_t setup_matrix(setup *s, bool sparse, int64_t rows, int64_t cols, int64_t ld, cudaDataType type) {
    sparse_lt_object *const to = &s->matrix[s->matrices];
    const cusparseStatus_t status =
        sparse ? s->table->cusparseLtStructuredDescriptorInit(s->handle, to, rows, cols, ld, ALIGNMENT, type,
                                                              CUSPARSE_ORDER_COL, SPARSE_LT_HALF_ZEROS)
               : s->table->cusparseLtDenseDescriptorInit(s->handle, to, rows, cols, ld, ALIGNMENT, type,
                                                         CUSPARSE_ORDER_COL);
    s->matrices += status == CUSPARSE_STATUS_SUCCESS;
    return status;
}

static cusparseOperation_t operation_of(int transposed) {
    return transposed ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
}

/* It has one number for each row of the library's sparse matrix, which is our B: for each column of C. */
static cusparseStatus_t setup_bias(setup *s, const void *bias) {
    return s->table->cusparseLtMatmulDescSetAttribute(s->handle, &s->product, SPARSE_LT_BIAS_POINTER, &bias,
                                                      sizeof bias);
}

/* Our right side is the library's left one: by columns [N,K], or [K,N] where it is stored transposed. */
static cusparseStatus_t setup_product(setup *s, const gemm_problem *p, const void *bias) {
    const struct lt_type *const t = type_of(p);
    cusparseStatus_t status =
        setup_matrix(s, p->weight == GEMM_B, p->trans_b ? p->k : p->n, p->trans_b ? p->n : p->k, p->ldb, t->in);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status =
            setup_matrix(s, p->weight == GEMM_A, p->trans_a ? p->m : p->k, p->trans_a ? p->k : p->m, p->lda, t->in);
    if (status == CUSPARSE_STATUS_SUCCESS) status = setup_matrix(s, false, p->n, p->m, p->ldc, t->out);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = s->table->cusparseLtMatmulDescriptorInit(s->handle, &s->product, operation_of(p->trans_b),
                                                          operation_of(p->trans_a), &s->matrix[0], &s->matrix[1],
                                                          &s->matrix[2], &s->matrix[2], t->compute);
    if (status == CUSPARSE_STATUS_SUCCESS && bias) status = setup_bias(s, bias);
    if (status != CUSPARSE_STATUS_SUCCESS) return status;
    status = s->table->cusparseLtMatmulAlgSelectionInit(s->handle, &s->selection, &s->product, SPARSE_LT_DEFAULT);
    s->selected = status == CUSPARSE_STATUS_SUCCESS;
    return status;
}

/* Everything but the plan; bias NULL: the library adds none. What is refused leaves nothing behind. */
static scout_answer setup_make(setup *s, const gemm_problem *p, const void *bias, scout_why *why) {
    memset(s, 0, sizeof *s);
    s->table = sparse_lt_ready(&s->handle, why);
    if (!s->table) return SCOUT_NO;
    const cusparseStatus_t status = setup_product(s, p, bias);
    if (status == CUSPARSE_STATUS_SUCCESS) return SCOUT_OK;
    setup_free(s);
    return sparse_lt_answer(s->table, status, "describing the product to cuSPARSELt", "layout", why);
}

static int setup_number(const setup *s, int attribute) {
    int value = 0;
    const cusparseStatus_t status =
        s->table->cusparseLtMatmulAlgGetAttribute(s->handle, &s->selection, attribute, &value, sizeof value);
    return status == CUSPARSE_STATUS_SUCCESS ? value : 0;
}

static cusparseStatus_t setup_plan(setup *s, int algo, int split_k) {
    cusparseStatus_t status =
        s->table->cusparseLtMatmulAlgSetAttribute(s->handle, &s->selection, SPARSE_LT_ALGO, &algo, sizeof algo);
    if (status == CUSPARSE_STATUS_SUCCESS && split_k != 1)
        status = s->table->cusparseLtMatmulAlgSetAttribute(s->handle, &s->selection, SPARSE_LT_SPLIT_K, &split_k,
                                                           sizeof split_k);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = s->table->cusparseLtMatmulPlanInit(s->handle, &s->plan, &s->product, &s->selection);
    s->planned = status == CUSPARSE_STATUS_SUCCESS;
    return status;
}

/* --- what it takes --- */

static scout_answer check_shape(const gemm_problem *p, const struct lt_type *t, scout_why *why) {
    const int64_t across = p->weight == GEMM_B ? p->n : p->m, other = p->weight == GEMM_B ? p->m : p->n;
    const int64_t row = ALIGNMENT / (t->input == SCOUT_FP16 || t->input == SCOUT_BF16 ? 2 : 1);
    if (across % t->sparse_step != 0 || p->k % t->sparse_step != 0 || other % t->dense_step != 0)
        return scout_say(why, SCOUT_NO, "shape",
                         "cuSPARSELt needs the weight's sides in multiples of %d and the other one of %d here",
                         t->sparse_step, t->dense_step);
    if (p->lda % row != 0 || p->ldb % row != 0 || p->ldc % row != 0)
        return scout_say(why, SCOUT_NO, "alignment", "cuSPARSELt needs rows that begin on 16 bytes");
    return SCOUT_OK;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer answer = sparse_weight_known(op, why);
    if (answer != SCOUT_OK) return answer;
    const gemm_problem p = gemm_problem_of(op);
    const struct lt_type *const t = type_of(&p);
    if (!op_number(op, "weight_24", 0)) return scout_say(why, SCOUT_NO, "pattern", "the weight is not 2:4 along K");
    if (!t)
        return scout_say(why, SCOUT_NO, "type",
                         "cuSPARSELt multiplies fp16 and bf16 into the same, int8 into int32, and fp8 (e4m3)%s",
                         p.type_a == SCOUT_FP32 ? "; of fp32 it wants one of each two to be zero" : "");
    if (device && device->capability_major < 8)
        return scout_say(why, SCOUT_NO, "hardware", "sparse tensor cores need compute capability 8.0");
    if (device && t->input == SCOUT_FP8E4M3 && device->capability_major * 10 + device->capability_minor < 89)
        return scout_say(why, SCOUT_NO, "hardware", "fp8 products need compute capability 8.9");
    const scout_answer shape = check_shape(&p, t, why);
    if (shape != SCOUT_OK) return shape;
    return sparse_lt_open(why) ? SCOUT_OK : SCOUT_NO;
}

/* A bias of the output's own type; of other products it is of another one in the library. It has a number for each row
 * of the library's sparse matrix: where that is our A, for each row of C and not for each column, and what the library
 * then reads behind a shorter one has been NaN. */
static bool adds_bias(const gemm_problem *p) { return p->type_a == p->type_c && p->weight == GEMM_B; }

/* Whether all of the library's algorithms are tried without being asked for. On 9.0 number 36 of 52 (fp16, 0.8.0) ended
 * in an illegal instruction for 264 x 528 x 784, sides that the library allows and makes its plan for; for sides of
 * whole tiles all 52 were right, with a bias and without. Nothing tells which ones mind: for other sides only its own
 * choice is offered, as a lost device would cost what the others have shown. */
static bool tries_all(const gemm_problem *p, const scout_device *device) {
    return device->capability_major < 9 || (p->m | p->n | p->k) % TILE == 0;
}

/* Its algorithms by number, the one that it would take by itself in front; K in one piece, in the library's own pieces
 * (-1, compute capability 9.0) or in some (before). Which algorithms can divide K is nowhere written: preparing tells,
 * for a plan takes the library so long that asking of all of them would be most of an operation's time. */
static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    setup *const s = malloc(sizeof *s);
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    const scout_answer answer = setup_make(s, &p, NULL, why);
    static const char *const places[] = {"inside", "before"};
    if (answer == SCOUT_OK) {
        scout_parameter *const algo = &out->parameters[ALGO], *const split = &out->parameters[SPLIT_K];
        const int most = (int)(sizeof algo->values / sizeof algo->values[0]);
        const int all = setup_number(s, SPARSE_LT_ALGOS), first = setup_number(s, SPARSE_LT_ALGO);
        out->count = p.bias ? PARAMETERS : BIAS;
        const int first_place = adds_bias(&p) ? INSIDE : BEFORE;
        out->parameters[BIAS] = (scout_parameter){.name = "bias",
                                                  .count = (uint32_t)(PLACES - first_place),
                                                  .values = {first_place, BEFORE},
                                                  .labels = places + first_place};
        *algo = (scout_parameter){.name = "algo", .count = 1, .values = {first}};
        const int tried = exhaustive || tries_all(&p, device) ? all : 0;
        for (int k = 0; k < tried && algo->count < (uint32_t)most; k++)
            if (k != first) algo->values[algo->count++] = k;
        *split = (scout_parameter){.name = "split_k", .count = 1, .values = {1}};
        if (exhaustive) { /* some of these end in an illegal instruction, with the process (0.8.0, 9.0) */
            if (device->capability_major == 8) split->count = 3, split->values[1] = 2, split->values[2] = 4;
            if (device->capability_major == 9) split->count = 2, split->values[1] = -1;
        }
        setup_free(s);
    }
    free(s);
    return answer;
}

/* Any device address will do for a bias with an address not known yet. */
static const void *bias_inside(const gemm_problem *p, scout_device *device, const int64_t *values) {
    return p->bias && values[BIAS] == INSIDE ? device->scratch : NULL;
}

/* --- plans --- */

static uint64_t rounded(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

static void destroy(scout_plan *plan) {
    while (plan->places) {
        placed *const first = plan->places;
        plan->places = first->next;
        plan->s.table->cusparseLtMatmulPlanDestroy(&first->plan);
        free(first);
    }
    if (plan->s.table) setup_free(&plan->s);
}

static scout_answer make_plan(scout_plan *p, const scout_op *op, scout_why *why) {
    setup *const s = &p->s;
    size_t buffer_bytes = 0;
    const scout_answer answer = setup_make(s, &p->p, p->inside, why);
    if (answer != SCOUT_OK) return answer;
    cusparseStatus_t status = setup_plan(s, p->algo, p->split_k);
    if (status != CUSPARSE_STATUS_SUCCESS)
        return sparse_lt_answer(s->table, status, "cusparseLtMatmulPlanInit", "feature", why);
    status = s->table->cusparseLtMatmulGetWorkspace(s->handle, &s->plan, &p->workspace_bytes);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = s->table->cusparseLtSpMMACompressedSize(s->handle, &s->plan, &p->compressed_bytes, &buffer_bytes);
    if (status != CUSPARSE_STATUS_SUCCESS)
        return sparse_lt_answer(s->table, status, "asking cuSPARSELt for its sizes", NULL, why);
    if (p->workspace_bytes > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "feature", "this algorithm needs %zu bytes of workspace", p->workspace_bytes);
    p->buffer_at = rounded(p->compressed_bytes), p->packed_bytes = p->buffer_at + rounded(buffer_bytes);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    p->p = gemm_problem_of(op);
    p->bias = op_tensor(op, "bias");
    p->element = op->output == SCOUT_FP16 || op->output == SCOUT_BF16 ? 2 : 4;
    p->inside = bias_inside(&p->p, device, values);
    p->algo = (int)values[ALGO], p->split_k = (int)values[SPLIT_K];
    scout_answer answer = make_plan(p, op, why);
    if (answer != SCOUT_OK) return answer;
    needs->packs = (uint32_t)p->p.weight + 1;
    needs->pack_bytes = p->packed_bytes;
    needs->workspace_bytes = p->workspace_bytes;
    return SCOUT_OK;
}

/* The weight's two forms: numbers that are kept, and which they were. That two of four are zeros is known of it, and
 * what the library makes of it is verified as every candidate's output is. */
static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const setup *const s = &plan->s;
    char *const to = packed;
    const cusparseStatus_t status =
        s->table->cusparseLtSpMMACompress(s->handle, &s->plan, weight, to, to + plan->buffer_at, stream);
    return status == CUSPARSE_STATUS_SUCCESS ? SCOUT_OK
                                             : sparse_lt_answer(s->table, status, "cusparseLtSpMMACompress", NULL, why);
}

/* The library's plan for a bias that lies here: whether it remembers the product's description or looks at it again is
 * nowhere written, so that both are told. NULL: why. */
static const sparse_lt_object *plan_for(scout_plan *plan, const void *bias, scout_why *why) {
    setup *const s = &plan->s;
    cusparseStatus_t status = CUSPARSE_STATUS_SUCCESS;
    placed *at = plan->places;
    if (plan->inside != bias) status = setup_bias(s, bias);
    plan->inside = bias;
    while (at && at->bias != bias) at = at->next;
    if (status == CUSPARSE_STATUS_SUCCESS && at) return &at->plan;
    at = status == CUSPARSE_STATUS_SUCCESS ? calloc(1, sizeof *at) : NULL;
    if (!at && status == CUSPARSE_STATUS_SUCCESS) status = CUSPARSE_STATUS_ALLOC_FAILED;
    if (at) status = s->table->cusparseLtMatmulPlanInit(s->handle, &at->plan, &s->product, &s->selection);
    if (status != CUSPARSE_STATUS_SUCCESS) {
        free(at);
        sparse_lt_answer(s->table, status, "telling cuSPARSELt where the bias is", NULL, why);
        return NULL;
    }
    at->bias = bias;
    at->next = plan->places;
    plan->places = at;
    return &at->plan;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    static const float one = 1, zero = 0; /* whatever is added up in */
    const setup *const s = &plan->s;
    void *const *const t = args->tensors;
    const bool before = plan->bias >= 0 && !plan->inside;
    const sparse_lt_object *const how = plan->inside ? plan_for(plan, t[plan->bias], why) : &s->plan;
    cudaStream_t stream = args->stream;
    if (!how) return SCOUT_FAILED;
    if (before) {
        const cudaError_t error =
            kernels_repeat_row(t[GEMM_C], t[plan->bias], plan->element, plan->p.m, plan->p.n, plan->p.ldc, stream);
        if (error) return cuda_device_answer(error, "writing the bias", why);
    }
    const cusparseStatus_t status =
        s->table->cusparseLtMatmul(s->handle, how, &one, t[GEMM_B], t[GEMM_A], before ? &one : &zero, t[GEMM_C],
                                   t[GEMM_C], args->workspace, &stream, 1);
    return status == CUSPARSE_STATUS_SUCCESS ? SCOUT_OK
                                             : sparse_lt_answer(s->table, status, "cusparseLtMatmul", NULL, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\":\"cusparselt\",\"version\":\"%s\",\"function\":\"cusparseLtMatmul\",\"algorithm\":%d,"
                    "\"split_k\":%d,\"sparse_side\":\"%s\",\"compressed_bytes\":%zu,\"bias\":\"%s\","
                    "\"workspace_bytes\":%zu}",
                    plan->s.table->version, plan->algo, plan->split_k, plan->p.weight == GEMM_B ? "b" : "a",
                    plan->compressed_bytes,
                    plan->bias < 0 ? "none"
                    : plan->inside ? "inside"
                                   : "own kernel before",
                    plan->workspace_bytes);
}

const scout_candidate sparse_lt_gemm = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 59,
    .name = "cusparselt",
    .about = "cuSPARSELt: a 2:4 sparse weight along K",
    .library = "cusparselt",
    .approach = "SPARSE_24",
    .precisions = (const char *const[]){"fp16", "bf16", "fp8", "int8", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
