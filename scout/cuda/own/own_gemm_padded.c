/* Products with unaligned rows, by cuBLASLt on rows padded to 16 bytes: "cublaslt_padded". For a K or an N that is no
 * multiple of 16 bytes the library has only other, slower kernels. The weight is packed once. An input of such a K is
 * copied before the product, within each launch; an output of such an N goes to the workspace and is copied from there.
 * Where these do not fit, the work is done in pieces, which the cache still holds. The padding is zeros, which change
 * no sum. */
#include "kernels/product/padded_rows.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/lt/lt_product.h"
#include "scout/cuda/own/own_gemm_quantised.h"

/* Where sums go: directly to the output; to padded rows, of which N columns are computed; or to all columns of these,
 * for which a bias would be too short. */
enum { DIRECT, EXACT, WHOLE, OUTPUTS };
static const char *const output_names[] = {"direct", "exact", "whole"};

enum { ALGO, OUTPUT }; /* parameters */
enum { LINE = 16, ALIGNMENT = 256 };

typedef struct shape {
    gemm_problem p;
    int64_t rows;                /* of all products of the batch: they share the weight */
    int64_t k_to, n_to;          /* in whole lines */
    int64_t columns;             /* that are computed */
    int element, out_bytes;      /* of an element */
    bool copies, packs, gathers; /* the input; the weight; the output */
    own_gemm_pieces pieces;
    padded_rows pack;
    uint64_t input_bytes, sums_bytes;
} shape;

struct scout_plan {
    shape s;
    int output;
    int bias;             /* place in op->tensors; -1: none */
    scout_plan *multiply; /* of lt_candidate */
    uint64_t input_at, sums_at;
};

/* --- what can be done, and how --- */

static int bytes_of(uint32_t type) {
    static const struct {
        uint32_t type;
        int bytes;
    } rows[] = {{SCOUT_FP32, 4},    {SCOUT_INT32, 4},   {SCOUT_FP16, 2}, {SCOUT_BF16, 2},
                {SCOUT_FP8E4M3, 1}, {SCOUT_FP8E5M2, 1}, {SCOUT_INT8, 1}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) return rows[k].bytes;
    return 0;
}

static int64_t whole(int64_t count, int element) {
    return (count + LINE / element - 1) / (LINE / element) * (LINE / element);
}
static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static scout_answer covers(const gemm_problem *p, scout_why *why) {
    if (p->quant.is || !bytes_of(p->type_a) || bytes_of(p->type_a) != bytes_of(p->type_b) || !bytes_of(p->type_c))
        return scout_say(why, SCOUT_NO, "type", "padded products have one type on both sides, of 1 to 4 bytes");
    if (p->weight != GEMM_B) return scout_say(why, SCOUT_NO, "feature", "the right side must be the weight");
    if (p->residual >= 0 || (p->bias && strcmp(p->bias, "n") != 0))
        return scout_say(why, SCOUT_NO, "epilogue", "padded products have no residual, and a bias along N alone");
    if (gemm_has_factors(p))
        return scout_say(why, SCOUT_NO, "feature", "padded products have no factors of the product or the bias");
    if (p->trans_a) return scout_say(why, SCOUT_NO, "layout", "the input must be stored along K");
    if (p->batch > 1 && (p->stride_b != 0 || p->stride_a != p->m * p->lda || p->stride_c != p->m * p->ldc))
        return scout_say(why, SCOUT_NO, "layout", "a batch must share its weight and be dense");
    return p->ldc == p->n ? SCOUT_OK : scout_say(why, SCOUT_NO, "layout", "the output must be dense");
}

/* Whether this output differs from that of cuBLASLt's own candidate. */
static bool output_exists(const shape *s, int output) {
    const gemm_problem *const p = &s->p;
    const bool odd_n = p->n != s->n_to, odd_k = p->k != s->k_to;
    if (output == DIRECT) return odd_k || (odd_n && !p->trans_b);
    return odd_n && (output == EXACT || !p->bias);
}

/* What all outputs have in common. */
static scout_answer begin(const scout_op *op, shape *s, scout_why *why) {
    *s = (shape){.p = gemm_problem_of(op)};
    const gemm_problem *const p = &s->p;
    const scout_answer answer = covers(p, why);
    if (answer != SCOUT_OK) return answer;
    s->rows = p->m * p->batch;
    s->element = bytes_of(p->type_a), s->out_bytes = bytes_of(p->type_c);
    s->k_to = whole(p->k, s->element);
    s->n_to = whole(p->n, s->element < s->out_bytes ? s->element : s->out_bytes);
    if (p->k == s->k_to && p->n == s->n_to)
        return scout_say(why, SCOUT_NO, "alignment", "all rows begin at 16 bytes: there is nothing to pad");
    return SCOUT_OK;
}

static scout_answer shape_of(const scout_op *op, int output, shape *s, scout_why *why) {
    const gemm_problem *const p = &s->p;
    const scout_answer answer = begin(op, s, why);
    if (answer != SCOUT_OK) return answer;
    if (!output_exists(s, output)) return scout_say(why, SCOUT_NO, "layout", "this output does not fit the product");
    s->copies = p->k != s->k_to;
    s->gathers = output != DIRECT;
    s->columns = output == WHOLE ? s->n_to : p->n;
    s->pack = (padded_rows){s->element, p->k, p->n, p->ldb, s->k_to, s->n_to};
    if (p->trans_b) s->pack = (padded_rows){s->element, p->n, p->k, p->ldb, s->columns, s->k_to};
    s->packs = s->pack.rows != s->pack.rows_to || s->pack.cols != s->pack.cols_to;
    const int64_t row_bytes = (s->copies ? s->k_to * s->element : 0) + (s->gathers ? s->n_to * s->out_bytes : 0);
    const int64_t room = (int64_t)(op->workspace_limit - op->workspace_limit / 4) - 3 * ALIGNMENT;
    s->pieces = own_gemm_pieces_of(s->rows, row_bytes > 0 ? room / row_bytes : s->rows);
    if (room < 0 || s->pieces.count == 0)
        return scout_say(why, SCOUT_NO, "memory", "padded rows of this product do not fit the workspace");
    s->input_bytes = s->copies ? aligned((uint64_t)(s->pieces.size * s->k_to * s->element)) : 0;
    s->sums_bytes = s->gathers ? aligned((uint64_t)(s->pieces.size * s->n_to * s->out_bytes)) : 0;
    return SCOUT_OK;
}

static void product_of(const scout_op *op, const shape *s, lt_product *out) {
    const gemm_problem *const p = &s->p;
    const int64_t sizes[] = {s->pieces.size, s->columns, s->k_to}, ld_b = s->packs ? s->pack.cols_to : p->ldb;
    const lt_product_matrix a = {p->type_a, sizes[0], s->k_to, s->copies ? s->k_to : p->lda, 0};
    const lt_product_matrix b = {p->type_b, p->trans_b ? s->columns : s->k_to, p->trans_b ? s->k_to : s->columns, ld_b,
                                 0};
    const lt_product_matrix c = {p->type_c, sizes[0], s->columns, s->gathers ? s->n_to : p->n, 0};
    lt_product_begin(out, op, p->trans_b ? "nt" : "nn", sizes, 1, op->workspace_limit / 4);
    lt_product_add(out, "a", &a);
    lt_product_add(out, "b", &b);
    lt_product_add(out, "c", &c);
    lt_product_behind(out, op, p->bias, p->n);
}

/* --- the candidate --- */

static scout_answer asks(const scout_op *op, scout_device *device, int output, lt_product *out, scout_why *why) {
    shape s;
    const scout_answer answer = shape_of(op, output, &s, why);
    if (answer != SCOUT_OK) return answer;
    product_of(op, &s, out);
    return lt_candidate.supports(&out->op, device, why);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    shape s;
    lt_product asked;
    if (op->kind != SCOUT_GEMM) return scout_say(why, SCOUT_NO, "feature", "only matrix products");
    const scout_answer answer = begin(op, &s, why);
    if (answer != SCOUT_OK) return answer;
    return asks(op, device, output_exists(&s, DIRECT) ? DIRECT : EXACT, &asked, why);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    uint32_t most = 0, outputs = 0;
    scout_answer answer = SCOUT_NO;
    lt_product each;
    for (int output = 0; output < OUTPUTS; output++) {
        if (asks(op, device, output, &each, NULL) != SCOUT_OK) continue;
        answer = lt_candidate.domain(&each.op, device, exhaustive, out, why);
        if (answer != SCOUT_OK && answer != SCOUT_NO) return answer;
        if (answer == SCOUT_NO) continue;
        if (out->parameters[0].count > most) most = out->parameters[0].count;
        outputs |= 1U << output;
    }
    if (most == 0) return answer; /* why is the library's */
    lt_product_algos(&out->parameters[ALGO], most, exhaustive);
    lt_product_choices(&out->parameters[OUTPUT], "output", output_names, outputs);
    out->count = 2;
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    lt_product asked;
    return asks(op, device, (int)values[OUTPUT], &asked, NULL) == SCOUT_OK &&
           lt_candidate.allows(&asked.op, device, values);
}

static void destroy(scout_plan *plan) {
    if (plan->multiply) scout_destroy(&lt_candidate, plan->multiply);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    lt_product asked;
    scout_plan *const plan = *out;
    shape *const s = &plan->s;
    scout_answer answer = shape_of(op, (int)values[OUTPUT], s, why);
    if (answer == SCOUT_OK) {
        product_of(op, s, &asked);
        answer = scout_prepare(&lt_candidate, &asked.op, device, values, &plan->multiply, needs, why);
    }
    if (answer != SCOUT_OK) return answer;
    plan->output = (int)values[OUTPUT];
    plan->bias = op_tensor(op, "bias");
    plan->input_at = aligned(needs->workspace_bytes);
    plan->sums_at = plan->input_at + s->input_bytes;
    needs->workspace_bytes = plan->sums_at + s->sums_bytes;
    needs->packs = s->packs ? GEMM_B + 1 : 0;
    needs->pack_bytes = s->packs ? (uint64_t)(s->pack.rows_to * s->pack.cols_to * s->element) : 0;
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    return cuda_device_answer((cudaError_t)padded_rows_launch(&plan->s.pack, weight, packed, stream),
                              "packing the weight", why);
}

/* Rows from `row` on. */
static scout_answer compute(const scout_plan *plan, const scout_args *args, int64_t row, scout_why *why) {
    const shape *const s = &plan->s;
    const gemm_problem *const p = &s->p;
    const int64_t rows = s->pieces.size;
    const padded_rows bring = {s->element, rows, p->k, p->lda, rows, s->k_to};
    const padded_rows gather = {s->out_bytes, rows, p->n, s->n_to, rows, p->n};
    uint8_t *const workspace = args->workspace, *const copy = workspace + plan->input_at;
    uint8_t *const a = (uint8_t *)args->tensors[GEMM_A] + row * p->lda * s->element;
    uint8_t *const c = (uint8_t *)args->tensors[GEMM_C] + row * p->n * s->out_bytes;
    void *const sums = s->gathers ? workspace + plan->sums_at : c;
    void *const operands[] = {s->copies ? copy : a, args->tensors[GEMM_B], sums,
                              plan->bias >= 0 ? args->tensors[plan->bias] : NULL};
    const scout_args each = {sizeof each, operands, args->workspace, args->stream};
    int error = s->copies ? padded_rows_launch(&bring, a, copy, args->stream) : 0;
    if (error) return cuda_device_answer((cudaError_t)error, "padding the input", why);
    const scout_answer answer = lt_candidate.launch(plan->multiply, &each, why);
    if (answer != SCOUT_OK) return answer;
    if (s->gathers) error = padded_rows_launch(&gather, sums, c, args->stream);
    return cuda_device_answer((cudaError_t)error, "bringing the output together", why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const own_gemm_pieces *const pieces = &plan->s.pieces;
    scout_answer answer = SCOUT_OK;
    for (int64_t k = 0; k < pieces->count && answer == SCOUT_OK; k++)
        answer = compute(plan, args, own_gemm_pieces_begin(pieces, k), why);
    return answer;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const shape *const s = &plan->s;
    char members[160];
    snprintf(members, sizeof members, "\"output\":\"%s\",\"product\":[%lld,%lld,%lld],\"pieces\":%lld",
             output_names[plan->output], (long long)s->pieces.size, (long long)s->columns, (long long)s->k_to,
             (long long)s->pieces.count);
    return lt_product_describe(plan->multiply, members, json, room);
}

const scout_candidate own_gemm_padded = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .priority = 90,
    .name = "cublaslt_padded",
    .about = "cuBLASLt on padded rows, where N or K is no multiple of 16 bytes",
    .library = "cublaslt",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", "fp8", "int8", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
