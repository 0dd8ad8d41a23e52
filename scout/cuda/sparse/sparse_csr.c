/* Products with a weight as lists of its numbers, by cuSPARSE; seen by columns as in sparse_gemm.c. In 16 bits its
 * outputs were found off by hundredths of themselves (cuSPARSE 12.6): parts of a sum seem to be added up in the
 * output's own type. So sums go to a workspace in fp32, as many rows at a time as fit, and a kernel of our own rounds
 * them and adds the bias. In fp32 they go straight to the output, which the bias was written to before. */
#include "kernels/harness/kernels.h"
#include "scout/cuda/sparse/sparse_matrices.h"
#include "scout/cuda/sparse/sparse_weight.h"

#include <stdlib.h>

enum { ROWS_STEP = 64 }; /* rows at a time are a multiple of it, so that every part begins on a whole line */

struct scout_plan {
    const sparse_table *table;
    gemm_problem p;
    gemm_sparse_weight weight;
    cudaDataType type;
    cusparseSpMMAlg_t algorithm;
    int bias;                                 /* place in op->tensors; -1: none */
    int64_t kept, rows;                       /* numbers that are not zero; rows of the product at a time */
    uint64_t place_at, values_at, pack_bytes; /* packed: begins, then places, then numbers */
    uint64_t sums_bytes;                      /* of the workspace, in front of the library's; 0: none is needed */
    size_t library_bytes;
};

static const cusparseSpMMAlg_t algorithms[] = {CUSPARSE_SPMM_ALG_DEFAULT, CUSPARSE_SPMM_CSR_ALG1,
                                               CUSPARSE_SPMM_CSR_ALG2, CUSPARSE_SPMM_CSR_ALG3};
enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };
static const float one = 1, zero = 0;

static bool is_wide(const scout_plan *p) { return p->p.type_c == SCOUT_FP32; }

/* --- one part of the product --- */

/* `a` and `c` point to the first of `rows` rows of the product. */
static cusparseStatus_t make_matrices(const scout_plan *p, const char *packed, const void *a, void *c, int64_t rows,
                                      sparse_matrices *m) {
    const cusparseStatus_t status = p->table->cusparseCreateConstCsr(
        &m->weight, p->p.n, p->p.k, p->kept, packed, packed + p->place_at, packed + p->values_at, CUSPARSE_INDEX_32I,
        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->type);
    if (status != CUSPARSE_STATUS_SUCCESS) return status;
    return sparse_matrices_dense(p->table, &p->p, rows, p->type, a, c, CUDA_R_32F, is_wide(p) ? p->p.ldc : p->p.n, m);
}

/* What the output is multiplied by before. */
static const float *factor_of(const scout_plan *p) { return is_wide(p) && p->bias >= 0 ? &one : &zero; }

/* No number is looked at for this: any address of the device will do. */
static cusparseStatus_t ask_workspace(scout_plan *p, void *address, int64_t rows) {
    sparse_matrices m = {0};
    size_t bytes = 0;
    cusparseStatus_t status = make_matrices(p, address, address, address, rows, &m);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->table->cusparseSpMM_bufferSize(sparse_handle(p->table), CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                   sparse_matrices_operation(&p->p), &one, m.weight, m.a, factor_of(p),
                                                   m.c, CUDA_R_32F, p->algorithm, &bytes);
    sparse_matrices_free(p->table, &m);
    if (bytes > p->library_bytes) p->library_bytes = bytes;
    return status;
}

static cusparseStatus_t multiply(const scout_plan *p, const char *packed, const void *a, void *c, int64_t rows,
                                 void *buffer) {
    sparse_matrices m = {0};
    cusparseStatus_t status = make_matrices(p, packed, a, c, rows, &m);
    if (status == CUSPARSE_STATUS_SUCCESS)
        status = p->table->cusparseSpMM(sparse_handle(p->table), CUSPARSE_OPERATION_NON_TRANSPOSE,
                                        sparse_matrices_operation(&p->p), &one, m.weight, m.a, factor_of(p), m.c,
                                        CUDA_R_32F, p->algorithm, buffer);
    sparse_matrices_free(p->table, &m);
    return status;
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    return sparse_matrices_supports(op, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const labels[ALGORITHMS] = {"default", "alg1", "alg2", "alg3"};
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    out->parameters[0] = (scout_parameter){.name = "algo", .count = ALGORITHMS, .labels = labels};
    for (int k = 0; k < ALGORITHMS; k++) out->parameters[0].values[k] = k;
    return SCOUT_OK;
}

/* Half of the workspace for sums: the rest is for the library. */
static void divide(scout_plan *p, uint64_t workspace_limit) {
    const uint64_t row = (uint64_t)p->p.n * sizeof(float);
    const int64_t fit = (int64_t)(workspace_limit / 2 / row / ROWS_STEP) * ROWS_STEP;
    p->rows = is_wide(p) || fit >= p->p.m ? p->p.m : fit < ROWS_STEP ? ROWS_STEP : fit;
    if (p->rows > p->p.m) p->rows = p->p.m;
    p->sums_bytes = is_wide(p) ? 0 : sparse_matrices_rounded((uint64_t)p->rows * row);
}

static scout_answer ask(scout_plan *p, scout_device *device, uint64_t workspace_limit, scout_why *why) {
    p->table = sparse_open(why);
    if (!p->table) return SCOUT_NO;
    cusparseStatus_t status = ask_workspace(p, device->scratch, p->rows);
    if (status == CUSPARSE_STATUS_SUCCESS && p->p.m % p->rows != 0)
        status = ask_workspace(p, device->scratch, p->p.m % p->rows);
    if (status != CUSPARSE_STATUS_SUCCESS) return sparse_answer(p->table, status, "cusparseSpMM_bufferSize", why);
    if (p->sums_bytes + p->library_bytes > workspace_limit)
        return scout_say(why, SCOUT_NO, "shape", "fp32 sums and the library need %.3g MB of workspace",
                         (double)(p->sums_bytes + p->library_bytes) / 1e6);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *plan;
    p->p = gemm_problem_of(op);
    p->weight = sparse_weight_of(&p->p);
    p->type = sparse_matrices_type(op->input);
    p->algorithm = algorithms[values[0]];
    p->bias = op_tensor(op, "bias");
    p->kept = op_number(op, "weight_nonzeros", 0);
    p->place_at = sparse_matrices_rounded((uint64_t)(p->p.n + 1) * sizeof(int32_t));
    p->values_at = p->place_at + sparse_matrices_rounded((uint64_t)p->kept * sizeof(int32_t));
    p->pack_bytes = p->values_at + (uint64_t)p->kept * (uint64_t)p->weight.element;
    divide(p, op->workspace_limit);
    scout_answer answer = ask(p, device, op->workspace_limit, why);
    if (answer != SCOUT_OK) return answer;
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = p->pack_bytes;
    needs->workspace_bytes = p->sums_bytes + p->library_bytes;
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    char *const to = packed;
    (void)sparse_handle(plan->table); /* this thread's, before a launch is captured */
    plan->weight.from = weight;
    const int error = gemm_sparse_pack_numbers(&plan->weight, plan->kept, packed,
                                               (int32_t *)(void *)(to + plan->place_at), to + plan->values_at, stream);
    if (error) return cuda_device_answer((cudaError_t)error, "packing for cuSPARSE", why);
    return sparse_matrices_kept((int32_t *)packed + plan->p.n, plan->kept, "numbers", stream, why);
}

/* In 16 bits, part after part. */
static scout_answer launch_parts(const scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *const p = &plan->p;
    const void *const bias = plan->bias < 0 ? NULL : args->tensors[plan->bias];
    char *const sums = args->workspace;
    for (int64_t m = 0; m < p->m; m += plan->rows) {
        const int64_t rows = p->m - m < plan->rows ? p->m - m : plan->rows;
        const char *const a = (const char *)args->tensors[GEMM_A] + 2 * (p->trans_a ? m : m * p->lda);
        const cusparseStatus_t status = multiply(plan, args->tensors[GEMM_B], a, sums, rows, sums + plan->sums_bytes);
        if (status != CUSPARSE_STATUS_SUCCESS) return sparse_answer(plan->table, status, "cusparseSpMM", why);
        const int error =
            gemm_sparse_narrow((const float *)(const void *)sums, rows, p->n, bias, p->type_c == SCOUT_BF16,
                               (char *)args->tensors[GEMM_C] + 2 * m * p->ldc, p->ldc, args->stream);
        if (error) return cuda_device_answer((cudaError_t)error, "rounding the sums", why);
    }
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    void *const *const t = args->tensors;
    cusparseStatus_t status = plan->table->cusparseSetStream(sparse_handle(plan->table), args->stream);
    if (status != CUSPARSE_STATUS_SUCCESS) return sparse_answer(plan->table, status, "cusparseSetStream", why);
    if (!is_wide(plan)) return launch_parts(plan, args, why);
    if (plan->bias >= 0) {
        const cudaError_t error =
            kernels_repeat_row(t[GEMM_C], t[plan->bias], 4, plan->p.m, plan->p.n, plan->p.ldc, args->stream);
        if (error) return cuda_device_answer(error, "writing the bias", why);
    }
    status = multiply(plan, t[GEMM_B], t[GEMM_A], t[GEMM_C], plan->p.m, args->workspace);
    return status == CUSPARSE_STATUS_SUCCESS ? SCOUT_OK : sparse_answer(plan->table, status, "cusparseSpMM", why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"library\":\"cusparse\",\"version\":\"%s\",\"function\":\"cusparseSpMM\",\"format\":\"csr\","
                    "\"algorithm\":%d,\"numbers\":%lld,\"rows_at_a_time\":%lld,\"sums\":\"%s\",\"bias\":\"%s\","
                    "\"workspace_bytes\":%zu}",
                    plan->table->version, (int)plan->algorithm, (long long)plan->kept, (long long)plan->rows,
                    is_wide(plan) ? "in place" : "fp32, rounded by own kernel",
                    plan->bias < 0  ? "none"
                    : is_wide(plan) ? "own kernel before"
                                    : "own kernel behind",
                    (size_t)plan->sums_bytes + plan->library_bytes);
}

const scout_candidate sparse_csr = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 56,
    .name = "cusparse_csr",
    .about = "cuSPARSE: a sparse weight in CSR; 16-bit outputs through fp32 sums",
    .library = "cusparse",
    .approach = "SPARSE_CSR",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
