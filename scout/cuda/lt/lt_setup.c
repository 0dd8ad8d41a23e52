/* A product as cuBLASLt describes it. Our matrices are row-major and its are column-major, so every matrix is
 * transposed to it and the sides change places: C' = B' A'. A bias along N is then its bias along rows, the only one it
 * has. */
#include "scout/cuda/lt/lt.h"

#include <string.h>

/* The types that it multiplies. A weight of few bits is widened to the input's type by pack(). */
typedef struct lt_types {
    uint32_t a, b, c;
    int tf32;
    cublasComputeType_t compute;
    cudaDataType scale, cuda_a, cuda_b, cuda_c;
} lt_types;

static const lt_types types[] = {
    {SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
    {SCOUT_FP32, SCOUT_FP32, SCOUT_FP32, 1, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
     CUDA_R_32F},
    {SCOUT_FP64, SCOUT_FP64, SCOUT_FP64, 0, CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
    {SCOUT_FP16, SCOUT_FP16, SCOUT_FP16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
    {SCOUT_FP16, SCOUT_FP16, SCOUT_FP32, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},
    {SCOUT_BF16, SCOUT_BF16, SCOUT_BF16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
    {SCOUT_BF16, SCOUT_BF16, SCOUT_FP32, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F},
    {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_BF16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3,
     CUDA_R_16BF},
    {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_FP16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3,
     CUDA_R_16F},
    {SCOUT_FP8E4M3, SCOUT_FP8E4M3, SCOUT_FP32, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3,
     CUDA_R_32F},
    {SCOUT_FP8E4M3, SCOUT_FP8E5M2, SCOUT_BF16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E4M3, CUDA_R_8F_E5M2,
     CUDA_R_16BF},
    {SCOUT_FP8E5M2, SCOUT_FP8E4M3, SCOUT_BF16, 0, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_8F_E5M2, CUDA_R_8F_E4M3,
     CUDA_R_16BF},
    {SCOUT_INT8, SCOUT_INT8, SCOUT_INT32, 0, CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I},
};

static const lt_types *setup_types(const gemm_problem *p) {
    const uint32_t b = gemm_widens(p->type_a, p->type_b) ? p->type_a : p->type_b;
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        if (types[k].a == p->type_a && types[k].b == b && types[k].c == p->type_c && types[k].tf32 == p->tf32)
            return &types[k];
    return NULL;
}

static int setup_element(uint32_t type) {
    static const struct {
        uint32_t type;
        int bytes;
    } sizes[] = {{SCOUT_FP64, 8}, {SCOUT_FP32, 4}, {SCOUT_INT32, 4}, {SCOUT_FP16, 2}, {SCOUT_BF16, 2}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        if (sizes[k].type == type) return sizes[k].bytes;
    return 1;
}

bool lt_setup_fp8(const scout_op *op) { return op->input == SCOUT_FP8E4M3 || op->input == SCOUT_FP8E5M2; }

/* Its epilogue for that of the operation. Its GELU is the tanh approximation: GELU by the error function is another
 * function, even where the tolerance cannot tell them apart. */
static const struct {
    activation_function function;
    cublasLtEpilogue_t plain, with_bias;
} epilogues[] = {
    {ACTIVATION_PLAIN, CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
    {ACTIVATION_RELU, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
    {ACTIVATION_GELU_TANH, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
};

static bool has_bias(const gemm_problem *p, const char *form) { return p->bias && strcmp(p->bias, form) == 0; }

static bool setup_epilogue(const gemm_problem *p, cublasLtEpilogue_t *epilogue) {
    const bool vector = has_bias(p, "n") || has_bias(p, "each");
    for (size_t k = 0; k < sizeof epilogues / sizeof epilogues[0]; k++) {
        if (epilogues[k].function != p->activation.function) continue;
        if (p->activation.function == ACTIVATION_RELU && p->activation.alpha != 0) continue;
        *epilogue = vector ? epilogues[k].with_bias : epilogues[k].plain;
        return true;
    }
    return false;
}

scout_answer lt_setup_covers(const scout_op *op, scout_why *why) {
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (op->kind != SCOUT_GEMM) return scout_say(why, SCOUT_NO, "feature", "only matrix products");
    const gemm_problem p = gemm_problem_of(op);
    const bool scales = op_tensor(op, "scales") >= 0, bias = op_tensor(op, "bias") >= 0;
    const bool widens = gemm_widens(p.type_a, p.type_b);
    if (!setup_types(&p)) return scout_say(why, SCOUT_NO, "type", "cuBLASLt has no product of these types");
    if (gemm_has_zeros(&p) && !widens) return scout_say(why, SCOUT_NO, "feature", "cuBLASLt has no zero points");
    if (p.batch > INT32_MAX) return scout_say(why, SCOUT_NO, "shape", "the batch exceeds cuBLASLt's 32-bit counter");
    if (widens != scales)
        return scout_say(why, SCOUT_NO, "feature", "scales belong to a weight of few bits and to nothing else");
    if (widens && (p.block_size < 1 || p.k % p.block_size || p.weight != GEMM_B))
        return scout_say(why, SCOUT_NO, "layout", "a weight of few bits must be b, in whole blocks along K");
    if (widens && p.batch != 1 && p.stride_b != (p.trans_b ? p.n : p.k) * p.ldb)
        return scout_say(why, SCOUT_NO, "layout", "weights of few bits must lie one behind the other in a batch");
    if (!setup_epilogue(&p, &epilogue))
        return scout_say(why, SCOUT_NO, "epilogue",
                         "cuBLASLt's epilogues are relu and the tanh form of gelu, not %.40s",
                         op_text(op, "activation"));
    if (p.bias && ((!has_bias(&p, "n") && !has_bias(&p, "each") && !has_bias(&p, "full")) || !bias))
        return scout_say(why, SCOUT_NO, "epilogue", "cuBLASLt adds a bias along N or a matrix, not a bias of kind %s",
                         p.bias);
    if (p.bias && p.beta != 1 && !has_bias(&p, "full"))
        return scout_say(why, SCOUT_NO, "epilogue", "cuBLASLt has no factor of a bias, but of a matrix");
    if (has_bias(&p, "full") && p.residual >= 0)
        return scout_say(why, SCOUT_NO, "epilogue", "cuBLASLt adds one matrix, not a bias and a residual");
    if (has_bias(&p, "full") && p.batch != 1)
        return scout_say(why, SCOUT_NO, "epilogue", "a matrix is added only without a batch");
    return SCOUT_OK;
}

bool lt_setup_packing(const scout_op *op, lt_packing *out) {
    const gemm_problem p = gemm_problem_of(op);
    if (p.weight < 0 || gemm_widens(p.type_a, p.type_b)) return false;
    const scout_tensor *const t = &op->tensors[p.weight];
    memset(out, 0, sizeof *out);
    out->element = setup_element(t->type);
    out->rows = t->dims[1], out->cols = t->dims[2];
    out->ld_from = t->strides[1], out->stride_from = t->strides[0];
    out->matrices = t->strides[0] ? t->dims[0] : 1;
    const int64_t line = 16 / out->element; /* rows of the result begin at 16 bytes */
    out->ld_to = (out->rows + line - 1) / line * line;
    out->stride_to = t->strides[0] ? out->cols * out->ld_to : 0;
    out->bytes = (uint64_t)out->matrices * (uint64_t)out->cols * (uint64_t)out->ld_to * (uint64_t)out->element;
    return true;
}

/* --- descriptors --- */

typedef struct setup_matrix { /* as it sees it: by columns */
    cudaDataType type;
    int64_t rows, cols, ld, stride, batch;
} setup_matrix;

static cublasStatus_t setup_layout(const lt_table *lt, const setup_matrix *m, cublasLtMatrixLayout_t *out) {
    const int32_t batch = (int32_t)m->batch;
    cublasStatus_t s = lt->cublasLtMatrixLayoutCreate(out, m->type, (uint64_t)m->rows, (uint64_t)m->cols, m->ld);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    if (s == CUBLAS_STATUS_SUCCESS && batch > 1)
        s = lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->stride,
                                                 sizeof m->stride);
    return s;
}

/* One of our operands: `inner` is K for our a, N for our b (the extent along its rows where it is not transposed). */
static setup_matrix setup_operand(const scout_op *op, const gemm_problem *p, int side, bool transposed, bool *flipped) {
    lt_packing packed;
    const bool stored_t = side == GEMM_A ? p->trans_a : p->trans_b;
    const int64_t rows = side == GEMM_A ? p->m : p->k, cols = side == GEMM_A ? p->k : p->n;
    setup_matrix m = {CUDA_R_32F, 0, 0, side == GEMM_A ? p->lda : p->ldb, side == GEMM_A ? p->stride_a : p->stride_b,
                      p->batch};
    *flipped = stored_t;
    if (transposed && side == p->weight && lt_setup_packing(op, &packed)) {
        *flipped = !stored_t;
        m.ld = packed.ld_to;
        m.stride = packed.stride_to;
    }
    m.rows = *flipped ? rows : cols; /* what lies next to one another */
    m.cols = *flipped ? cols : rows;
    return m;
}

static cublasStatus_t setup_set(const lt_table *lt, lt_setup *s, cublasLtMatmulDescAttributes_t attribute,
                                const void *value, size_t size) {
    return lt->cublasLtMatmulDescSetAttribute(s->product, attribute, value, size);
}

static cublasStatus_t setup_product(const lt_table *lt, const gemm_problem *p, const lt_types *t, bool flip_a,
                                    bool flip_b, lt_setup *out) {
    /* its A is our b: not flipped, our rows of N are its columns of N, which is B' already */
    const cublasOperation_t first = flip_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = flip_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const int32_t bias_type = (int32_t)t->cuda_c;
    setup_epilogue(p, &epilogue);
    cublasStatus_t s = lt->cublasLtMatmulDescCreate(&out->product, t->compute, t->scale);
    if (s == CUBLAS_STATUS_SUCCESS) s = setup_set(lt, out, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (s == CUBLAS_STATUS_SUCCESS) s = setup_set(lt, out, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (s == CUBLAS_STATUS_SUCCESS && epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        s = setup_set(lt, out, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (s == CUBLAS_STATUS_SUCCESS && out->bias >= 0)
        s = setup_set(lt, out, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type);
    if (s == CUBLAS_STATUS_SUCCESS && has_bias(p, "each"))
        s = setup_set(lt, out, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &p->n, sizeof p->n);
    return s;
}

scout_answer lt_setup_make(const lt_table *lt, const scout_op *op, lt_way way, lt_setup *out, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const lt_types *const t = setup_types(&p);
    bool flip_a = false, flip_b = false;
    memset(out, 0, sizeof *out);
    if (!t) return scout_say(why, SCOUT_NO, "type", "cuBLASLt has no product of these types");
    const int bias = op_tensor(op, "bias");
    const bool full = has_bias(&p, "full");
    out->bias = p.bias && !full ? bias : -1;
    out->full = full ? bias : p.residual;
    out->alpha = (float)p.alpha, out->alpha_whole = (int32_t)p.alpha, out->alpha_double = p.alpha;
    out->beta_double = full ? p.beta : p.residual >= 0;
    out->beta = (float)out->beta_double, out->beta_whole = (int32_t)out->beta_double;
    out->scale = t->scale;
    out->compute = t->compute;
    out->type_a = t->cuda_b, out->type_b = t->cuda_a, out->type_c = t->cuda_c;
    setup_matrix a = setup_operand(op, &p, GEMM_A, way.transposed, &flip_a);
    setup_matrix b = setup_operand(op, &p, GEMM_B, way.transposed, &flip_b);
    const setup_matrix c = {t->cuda_c, p.n, p.m, p.ldc, p.stride_c, p.batch};
    a.type = t->cuda_a;
    b.type = t->cuda_b;
    cublasStatus_t s = setup_product(lt, &p, t, flip_a, flip_b, out);
    if (s == CUBLAS_STATUS_SUCCESS) s = setup_layout(lt, &b, &out->a);
    if (s == CUBLAS_STATUS_SUCCESS) s = setup_layout(lt, &a, &out->b);
    if (s == CUBLAS_STATUS_SUCCESS) s = setup_layout(lt, &c, &out->c);
    if (s == CUBLAS_STATUS_SUCCESS) return SCOUT_OK;
    lt_setup_free(lt, out);
    return scout_say(why, SCOUT_FAILED, "error", "cuBLASLt refuses the operation: %s", lt->cublasLtGetStatusString(s));
}

const void *lt_setup_alpha(const lt_setup *s) {
    return s->scale == CUDA_R_32I   ? (const void *)&s->alpha_whole
           : s->scale == CUDA_R_64F ? (const void *)&s->alpha_double
                                    : (const void *)&s->alpha;
}

const void *lt_setup_beta(const lt_setup *s) {
    return s->scale == CUDA_R_32I   ? (const void *)&s->beta_whole
           : s->scale == CUDA_R_64F ? (const void *)&s->beta_double
                                    : (const void *)&s->beta;
}

uint32_t lt_setup_schemes(const lt_setup *setup) {
    const bool half = setup->type_c == CUDA_R_16F || setup->type_c == CUDA_R_16BF;
    return half ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : CUBLASLT_REDUCTION_SCHEME_MASK;
}

void lt_setup_free(const lt_table *lt, lt_setup *setup) {
    if (setup->product) lt->cublasLtMatmulDescDestroy(setup->product);
    if (setup->a) lt->cublasLtMatrixLayoutDestroy(setup->a);
    if (setup->b) lt->cublasLtMatrixLayoutDestroy(setup->b);
    if (setup->c) lt->cublasLtMatrixLayoutDestroy(setup->c);
    memset(setup, 0, sizeof *setup);
}
