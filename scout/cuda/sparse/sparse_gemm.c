/* Products with a weight of blocks by cuSPARSE, seen by columns (sparse_matrices.h): W' as [N,K] is what packing lists.
 * It adds no bias: a kernel of our own writes it to every row of C, which the product is then added to. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/sparse/sparse_matrices.h"
#include "scout/cuda/sparse/sparse_weight.h"

#include <stdlib.h>

typedef struct sparse_format sparse_format;

struct scout_plan {
    const sparse_table *table;
    const sparse_format *format;
    gemm_problem p;
    gemm_sparse_weight weight;
    cudaDataType type;
    int bias;                      /* place in op->tensors; -1: none */
    int64_t side, columns, places; /* of blocks; columns and places: how many across and along K */
    int64_t kept, width;           /* blocks that are not zeros; blocks in a row of one length */
    uint64_t place_at, values_at, bytes;
    size_t workspace_bytes;
};

/* A form of the weight: its packing, and its descriptor for cuSPARSE. */
struct sparse_format {
    const char *name;
    scout_answer (*pack)(scout_plan *plan, void *packed, void *stream, scout_why *why);
    cusparseStatus_t (*describe)(const scout_plan *plan, const char *packed, cusparseConstSpMatDescr_t *out);
};

/* `begins`, then as many places, then numbers. */
static void lay_out(scout_plan *p, int64_t begins, int64_t places, int64_t numbers) {
    p->place_at = sparse_matrices_rounded((uint64_t)begins * sizeof(int32_t));
    p->values_at = p->place_at + sparse_matrices_rounded((uint64_t)places * sizeof(int32_t));
    p->bytes = p->values_at + (uint64_t)numbers * (uint64_t)p->weight.element;
}

/* --- the forms --- */

static scout_answer bsr_pack(scout_plan *p, void *packed, void *stream, scout_why *why) {
    char *const to = packed;
    const int error = gemm_sparse_pack_blocks(&p->weight, (int)p->side, p->kept, packed,
                                              (int32_t *)(void *)(to + p->place_at), to + p->values_at, stream);
    if (error) return cuda_device_answer((cudaError_t)error, "packing for cuSPARSE", why);
    return sparse_matrices_kept((int32_t *)packed + p->columns, p->kept, "blocks", stream, why);
}

static cusparseStatus_t bsr_describe(const scout_plan *p, const char *packed, cusparseConstSpMatDescr_t *out) {
    return p->table->cusparseCreateConstBsr(out, p->columns, p->places, p->kept, p->side, p->side, packed,
                                            packed + p->place_at, packed + p->values_at, CUSPARSE_INDEX_32I,
                                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type, CUSPARSE_ORDER_ROW);
}

/* How long the rows have to be is known only now: there is room for all. */
static scout_answer ell_pack(scout_plan *p, void *packed, void *stream, scout_why *why) {
    char *const to = packed;
    int32_t longest = 0;
    int error = gemm_sparse_pack_longest(&p->weight, (int)p->side, packed, stream);
    if (!error) error = sparse_matrices_download(packed, &longest, stream);
    p->width = longest > 1 ? longest : 1;
    if (!error)
        error = gemm_sparse_pack_rows(&p->weight, (int)p->side, p->width, (int32_t *)(void *)(to + p->place_at),
                                      to + p->values_at, stream);
    return error ? cuda_device_answer((cudaError_t)error, "packing for cuSPARSE", why) : SCOUT_OK;
}

static cusparseStatus_t ell_describe(const scout_plan *p, const char *packed, cusparseConstSpMatDescr_t *out) {
    return p->table->cusparseCreateConstBlockedEll(out, p->p.n, p->p.k, p->side, p->width * p->side,
                                                   packed + p->place_at, packed + p->values_at, CUSPARSE_INDEX_32I,
                                                   CUSPARSE_INDEX_BASE_ZERO, p->type);
}

static const sparse_format bsr = {"bsr", bsr_pack, bsr_describe};
static const sparse_format ell = {"blocked_ell", ell_pack, ell_describe};

/* --- calling it --- */

static const float one = 1, zero = 0;

/* What C is multiplied by before. */
static const float *factor_of(const scout_plan *p) { return p->bias < 0 ? &zero : &one; }

static cusparseStatus_t make_matrices(const scout_plan *p, const void *a, const char *packed, void *c,
                                      sparse_matrices *m) {
    const cusparseStatus_t status = p->format->describe(p, packed, &m->weight);
    if (status != CUSPARSE_STATUS_SUCCESS) return status;
    return sparse_matrices_dense(p->table, &p->p, p->p.m, p->type, a, c, p->type, p->p.ldc, m);
}

/* No number is looked at for this: any address of the device will do. */
static scout_answer ask_workspace(scout_plan *p, void *address, scout_why *why) {
    sparse_matrices m = {0};
    cusparseStatus_t status = make_matrices(p, address, address, address, &m);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->table->cusparseSpMM_bufferSize(sparse_handle(p->table), CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                   sparse_matrices_operation(&p->p), &one, m.weight, m.a, factor_of(p),
                                                   m.c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &p->workspace_bytes);
    sparse_matrices_free(p->table, &m);
    return status == CUSPARSE_STATUS_SUCCESS ? SCOUT_OK
                                             : sparse_answer(p->table, status, "cusparseSpMM_bufferSize", why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *const t = args->tensors;
    sparse_matrices m = {0};
    if (plan->bias >= 0) {
        const cudaError_t error = kernels_repeat_row(t[GEMM_C], t[plan->bias], plan->weight.element, plan->p.m,
                                                     plan->p.n, plan->p.ldc, args->stream);
        if (error) return cuda_device_answer(error, "writing the bias", why);
    }
    cusparseStatus_t status = plan->table->cusparseSetStream(sparse_handle(plan->table), args->stream);
    if (status == CUSPARSE_STATUS_SUCCESS) status = make_matrices(plan, t[GEMM_A], t[GEMM_B], t[GEMM_C], &m);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = plan->table->cusparseSpMM(sparse_handle(plan->table), CUSPARSE_OPERATION_NON_TRANSPOSE,
                                           sparse_matrices_operation(&plan->p), &one, m.weight, m.a, factor_of(plan),
                                           m.c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, args->workspace);
    sparse_matrices_free(plan->table, &m);
    return status == CUSPARSE_STATUS_SUCCESS ? SCOUT_OK : sparse_answer(plan->table, status, "cusparseSpMM", why);
}

/* --- the candidates --- */

/* Without edges: a matrix of blocks has whole ones. */
static int blocks_allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    return p.n % values[0] == 0 && p.k % values[0] == 0 && sparse_weight_has_empty(op, values[0]);
}

static scout_answer blocks_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer answer = sparse_matrices_supports(op, why);
    if (answer != SCOUT_OK) return answer;
    for (int k = 0; k < SPARSE_WEIGHT_SIDES; k++)
        if (blocks_allows(op, device, &sparse_weight_sides[k])) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "pattern", "the weight has no whole blocks of which some are zero");
}

static scout_answer blocks_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                  scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "block", .count = SPARSE_WEIGHT_SIDES};
    for (int k = 0; k < SPARSE_WEIGHT_SIDES; k++) out->parameters[0].values[k] = sparse_weight_sides[k];
    return SCOUT_OK;
}

static scout_answer blocks_prepare(const scout_op *op, scout_device *device, const int64_t *values,
                                   const sparse_format *format, scout_plan *p, scout_plan_needs *needs,
                                   scout_why *why) {
    if (!blocks_allows(op, device, values))
        return scout_say(why, SCOUT_NO, "pattern", "the weight has no whole blocks of this side");
    p->format = format;
    p->p = gemm_problem_of(op);
    p->weight = sparse_weight_of(&p->p);
    p->type = sparse_matrices_type(op->input);
    p->bias = op_tensor(op, "bias");
    p->side = values[0];
    p->columns = p->p.n / p->side;
    p->width = p->places = p->p.k / p->side;
    p->kept = sparse_weight_blocks(op, p->side);
    const int64_t blocks = format == &ell ? p->columns * p->places : p->kept;
    lay_out(p, format == &ell ? 0 : p->columns + 1, blocks, blocks * p->side * p->side);
    p->table = sparse_open(why);
    const scout_answer asked = p->table ? ask_workspace(p, device->scratch, why) : SCOUT_NO;
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = p->bytes;
    needs->workspace_bytes = p->workspace_bytes;
    return asked;
}

static scout_answer bsr_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why) {
    return blocks_prepare(op, device, values, &bsr, *plan, needs, why);
}

/* It rounds them to 19 bits, whatever is said of the arithmetic. */
static scout_answer ell_supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op->input == SCOUT_FP32 && !op->tf32)
        return scout_say(why, SCOUT_NO, "type", "cuSPARSE multiplies blocks of fp32 as tf32");
    return blocks_supports(op, device, why);
}

static scout_answer ell_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                scout_plan_needs *needs, scout_why *why) {
    return blocks_prepare(op, device, values, &ell, *plan, needs, why);
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    (void)sparse_handle(plan->table); /* this thread's, before a launch is captured */
    plan->weight.from = weight;
    return plan->format->pack(plan, packed, stream, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(
        json, room,
        "{\"library\":\"cusparse\",\"version\":\"%s\",\"function\":\"cusparseSpMM\",\"format\":\"%s\","
        "\"algorithm\":%d,\"block\":%lld,\"parts\":%lld,\"width\":%lld,\"bias\":\"%s\",\"workspace_bytes\":%zu}",
        plan->table->version, plan->format->name, (int)CUSPARSE_SPMM_ALG_DEFAULT, (long long)plan->side,
        (long long)plan->kept, (long long)plan->width, plan->bias < 0 ? "none" : "own kernel before",
        plan->workspace_bytes);
}

static const char *const precisions[] = {"fp32", "fp16", "bf16", NULL};
const scout_candidate sparse_gemm_bsr = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 57,
    .name = "cusparse_bsr",
    .about = "cuSPARSE: a sparse weight in BSR",
    .library = "cusparse",
    .approach = "SPARSE_BLOCK",
    .precisions = precisions,
    .supports = blocks_supports,
    .domain = blocks_domain,
    .allows = blocks_allows,
    .prepare = bsr_prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};

const scout_candidate sparse_gemm_ell = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 58,
    .name = "cusparse_ell",
    .about = "cuSPARSE: a sparse weight in Blocked-ELL",
    .library = "cusparse",
    .approach = "SPARSE_BLOCK",
    .precisions = precisions,
    .supports = ell_supports,
    .domain = blocks_domain,
    .allows = blocks_allows,
    .prepare = ell_prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
