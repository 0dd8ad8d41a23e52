/* Products of bytes between DequantizeLinear and QuantizeLinear (scout/op/requantize.h), or quantised dynamically (zero
 * points and scales are tensors), by cuBLASLt: "cublaslt_quantised". The library multiplies int8 with int8 into int32
 * and has no epilogue for that, so an own kernel adds the bias, scales, applies the activation and rounds. The library
 * needs both sides stored along K, in multiples of 16: the weight is packed so, once. An input of another layout, or of
 * uint8, is converted within each launch. uint8 becomes the int8 that is 128 less. With a zero point of 128, as between
 * quantisers here, that is all. Any other zero point needs a correction of each sum: its product with the sum of the
 * other side's line. Sums of the weight are packed with it; sums of the input's rows are made within each launch where
 * the weight has zero points.
 *
 * Sums take four times the bytes of what they become. Where they are not written to the output itself (fp32), they go
 * to the workspace, in pieces that fit. */
#include "scout/cuda/own/own_gemm_quantised.h"

#include "kernels/harness/kernels.h"
#include "scout/cuda/lt/lt.h"
#include "scout/cuda/lt/lt_product.h"

/* FEW: rows up to which the library may have no kernel; PADDED: what they become then. SQUARE: a side of pieces. */
enum { LINE = 16, ALIGNMENT = 256, FEW = 16, PADDED = 32, SQUARE = 2048 };

typedef struct shape {
    gemm_problem p;
    int64_t m;             /* of all products of the batch: they share the weight */
    int64_t n_to, k_to;    /* in multiples of LINE */
    int64_t product_rows;  /* of one call of the library */
    bool copies, in_place; /* the input; the sums */
    bool packs;            /* the weight */
    bool of_x, of_w;       /* sums of the input's rows, of the weight's columns are needed */
    own_gemm_pieces rows, cols;
    uint64_t copy_bytes, sums_bytes, of_x_bytes;
} shape;

struct scout_plan {
    shape s;
    int bias; /* place in op->tensors; -1: none */
    product_bytes_finish finish;
    scout_plan *multiply;               /* of lt_candidate */
    uint64_t copy_at, sums_at, of_x_at; /* in the workspace, behind the library's */
    uint64_t of_w_at;                   /* behind the packed weight */
};

/* --- what can be done, and how --- */

static bool is_byte(uint32_t type) { return type == SCOUT_INT8 || type == SCOUT_UINT8; }

/* Between quantisers, by convention. */
static scout_answer covers_quantised(const scout_op *op, const gemm_problem *p, scout_why *why) {
    const int bias = op_tensor(op, "bias");
    if (!is_byte(p->type_c) && p->type_c != SCOUT_FP32)
        return scout_say(why, SCOUT_NO, "type", "quantised products come out as int8, uint8 or fp32");
    if (!requantize_activation(&p->activation))
        return scout_say(why, SCOUT_NO, "epilogue", "quantised products have no activation but relu and clip");
    if (p->bias && (strcmp(p->bias, "n") != 0 || bias < 0 || op->tensors[bias].type != SCOUT_INT32))
        return scout_say(why, SCOUT_NO, "epilogue", "a quantised product's bias is int32 along N");
    return SCOUT_OK;
}

/* As tensors tell. */
static scout_answer covers_told(const gemm_problem *p, scout_why *why) {
    const bool is_float = p->type_c == SCOUT_FP32 || p->type_c == SCOUT_FP16 || p->type_c == SCOUT_BF16;
    if (!gemm_has_zeros(p) && p->type_a == SCOUT_INT8 && p->type_b == SCOUT_INT8)
        return scout_say(why, SCOUT_NO, "feature", "this product is not quantised");
    if (p->type_c != SCOUT_INT32 && !(is_float && p->scales >= 0))
        return scout_say(why, SCOUT_NO, "type", "products of bytes come out as int32, or with scales as floats");
    if (p->activation.function != ACTIVATION_PLAIN)
        return scout_say(why, SCOUT_NO, "epilogue", "sums of bytes have no activation");
    if (p->bias && (strcmp(p->bias, "n") != 0 || !is_float))
        return scout_say(why, SCOUT_NO, "epilogue", "the bias must run along N, with a floating-point output");
    return SCOUT_OK;
}

static scout_answer covers(const scout_op *op, const gemm_problem *p, scout_why *why) {
    if (!p->quant.is && !is_byte(p->type_a))
        return scout_say(why, SCOUT_NO, "feature", "this product is not quantised");
    if (!is_byte(p->type_a) || !is_byte(p->type_b))
        return scout_say(why, SCOUT_NO, "type", "quantised products are of bytes");
    const scout_answer behind = p->quant.is ? covers_quantised(op, p, why) : covers_told(p, why);
    if (behind != SCOUT_OK) return behind;
    if (p->weight != GEMM_B) return scout_say(why, SCOUT_NO, "feature", "the right side must be the weight");
    if (p->residual >= 0) return scout_say(why, SCOUT_NO, "epilogue", "quantised products have no residual");
    if (p->trans_a) return scout_say(why, SCOUT_NO, "layout", "the input must be stored along K");
    if (p->batch > 1 && (p->stride_b != 0 || p->stride_a != p->m * p->lda || p->stride_c != p->m * p->ldc))
        return scout_say(why, SCOUT_NO, "layout", "a batch must share its weight and be dense");
    return p->ldc == p->n ? SCOUT_OK : scout_say(why, SCOUT_NO, "layout", "the output must be dense");
}

static int64_t lines(int64_t count) { return (count + LINE - 1) / LINE * LINE; }
static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Half of the workspace is for sums, a quarter for the input, and a quarter for the library. */
static bool divide(const scout_op *op, bool padded, shape *s) {
    const int64_t sums = (int64_t)(op->workspace_limit / 2 / sizeof(int32_t)),
                  copied = (int64_t)(op->workspace_limit / 4) / s->k_to;
    const int64_t wanted = padded ? PADDED : s->m;
    int64_t rows = s->copies && wanted > copied ? copied : wanted, cols = s->n_to;
    if (rows < 1) return false;
    if (!s->in_place && rows > sums / cols) { /* as square as may be: each row of pieces reads the whole weight */
        const int64_t wide = sums / rows > SQUARE ? sums / rows : SQUARE;
        if (cols > wide) cols = wide;
        if (rows > sums / cols) rows = sums / cols;
    }
    if (padded && rows < PADDED) return false;
    s->rows = own_gemm_pieces_of(s->m, rows);
    s->cols = own_gemm_pieces_of(s->n_to, cols);
    s->product_rows = padded ? PADDED : s->rows.size;
    return s->rows.count > 0 && s->cols.count > 0;
}

static scout_answer shape_of(const scout_op *op, bool padded, shape *s, scout_why *why) {
    memset(s, 0, sizeof *s);
    if (op->kind != SCOUT_GEMM) return scout_say(why, SCOUT_NO, "feature", "only matrix products");
    s->p = gemm_problem_of(op);
    const gemm_problem *const p = &s->p;
    const scout_answer answer = covers(op, p, why);
    if (answer != SCOUT_OK) return answer;
    s->m = p->m * p->batch;
    s->n_to = lines(p->n), s->k_to = lines(p->k);
    s->copies = padded || p->type_a == SCOUT_UINT8 || s->k_to != p->k || p->lda != p->k;
    s->in_place = !padded && (p->type_c == SCOUT_FP32 || p->type_c == SCOUT_INT32) && s->n_to == p->n;
    s->of_x = !p->quant.is && (p->b_zero >= 0 || p->type_b == SCOUT_UINT8);
    s->of_w = !p->quant.is && (p->a_zero >= 0 || p->type_a == SCOUT_UINT8);
    s->packs =
        !p->trans_b || s->k_to != p->k || s->n_to != p->n || p->ldb != p->k || p->type_b == SCOUT_UINT8 || s->of_w;
    if (!divide(op, padded, s))
        return scout_say(why, SCOUT_NO, "memory", "the sums of this product do not fit the workspace");
    s->copy_bytes = s->copies ? aligned((uint64_t)s->product_rows * (uint64_t)s->k_to) : 0;
    s->of_x_bytes = s->of_x ? aligned((uint64_t)s->product_rows * sizeof(int32_t)) : 0;
    s->sums_bytes = s->in_place ? 0 : aligned((uint64_t)s->product_rows * (uint64_t)s->cols.size * sizeof(int32_t));
    return SCOUT_OK;
}

/* Of one piece. To the library the weight is an input like the other, already in its layout. */
static void product_of(const scout_op *op, const shape *s, lt_product *out) {
    const int64_t m = s->product_rows, n = s->cols.size, k = s->k_to, sizes[] = {m, n, k};
    const scout_op types = {.input = SCOUT_INT8, .accumulate = SCOUT_INT32, .output = SCOUT_INT32};
    lt_product_begin(out, &types, "nt", sizes, 1, op->workspace_limit / 4);
    lt_product_add(out, "a", &(lt_product_matrix){SCOUT_INT8, m, k, k, 0});
    lt_product_add(out, "b", &(lt_product_matrix){SCOUT_INT8, n, k, k, 0});
    lt_product_add(out, "c", &(lt_product_matrix){SCOUT_INT32, m, n, n, 0});
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    shape s;
    lt_product asked;
    const scout_answer answer = shape_of(op, false, &s, why);
    if (answer != SCOUT_OK) return answer;
    product_of(op, &s, &asked);
    return lt_candidate.supports(&asked.op, device, why);
}

/* "algo", as the library's own candidate has it; for few rows "rows" too: as they are, or filled up with zeros. */
static bool few(const shape *s) { return s->m <= FEW; }

static bool padded_by(const scout_op *op, const int64_t *values) {
    const gemm_problem p = gemm_problem_of(op);
    return p.m * p.batch <= FEW && values[1] == 1;
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    static const char *const ways[] = {"as_is", "padded"};
    shape s;
    lt_product each;
    uint32_t counts[2] = {0, 0};
    scout_answer answer = shape_of(op, false, &s, why);
    if (answer != SCOUT_OK) return answer;
    const bool both = few(&s);
    for (int k = 0; k <= both; k++) {
        answer = shape_of(op, k == 1, &s, why);
        if (answer != SCOUT_OK && counts[0] > 0) break; /* no room for more rows: then as they are */
        if (answer != SCOUT_OK) return answer;
        product_of(op, &s, &each);
        answer = lt_candidate.domain(&each.op, device, exhaustive, out, why);
        if (answer == SCOUT_OK) counts[k] = out->parameters[0].count;
        if (answer != SCOUT_OK && answer != SCOUT_NO) return answer;
    }
    const uint32_t most = counts[0] > counts[1] ? counts[0] : counts[1];
    if (most == 0) return SCOUT_NO; /* why is the library's */
    lt_product_algos(&out->parameters[0], most, exhaustive);
    lt_product_choices(&out->parameters[1], "rows", ways, (uint32_t)(counts[0] > 0) | (uint32_t)(counts[1] > 0) << 1);
    out->count = both ? 2 : 1;
    return SCOUT_OK;
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    shape s;
    lt_product asked;
    if (shape_of(op, padded_by(op, values), &s, NULL) != SCOUT_OK) return 0;
    product_of(op, &s, &asked);
    return lt_candidate.allows(&asked.op, device, values);
}

static void destroy(scout_plan *plan) {
    if (plan->multiply) scout_destroy(&lt_candidate, plan->multiply);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    lt_product asked;
    scout_plan *const plan = *out;
    scout_answer answer = shape_of(op, padded_by(op, values), &plan->s, why);
    if (answer == SCOUT_OK) {
        product_of(op, &plan->s, &asked);
        answer = scout_prepare(&lt_candidate, &asked.op, device, values, &plan->multiply, needs, why);
    }
    if (answer != SCOUT_OK) return answer;
    const shape *const s = &plan->s;
    plan->bias = op_tensor(op, "bias");
    plan->finish = own_gemm_quantised_finish(&s->p);
    plan->copy_at = aligned(needs->workspace_bytes);
    plan->of_x_at = plan->copy_at + s->copy_bytes;
    plan->sums_at = plan->of_x_at + s->of_x_bytes;
    plan->of_w_at = aligned((uint64_t)s->n_to * (uint64_t)s->k_to);
    needs->workspace_bytes = plan->sums_at + s->sums_bytes;
    needs->packs = s->packs ? GEMM_B + 1 : 0;
    needs->pack_bytes = s->packs ? plan->of_w_at + (s->of_w ? (uint64_t)s->n_to * sizeof(int32_t) : 0) : 0;
    return SCOUT_OK;
}

/* Stored along K as int8, with zeros up to multiples of LINE, and behind it the sums of its columns. */
static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const shape *const s = &plan->s;
    const gemm_problem *const p = &s->p;
    product_bytes_input along = {.rows = p->n,
                                 .cols = p->k,
                                 .ld = p->ldb,
                                 .rows_to = s->n_to,
                                 .cols_to = s->k_to,
                                 .flip = p->type_b == SCOUT_UINT8};
    int error = 0;
    if (!p->trans_b) {
        error = cudaMemsetAsync(packed, 0, (size_t)s->n_to * (size_t)s->k_to, stream);
        if (!error) error = kernels_transpose(packed, weight, 1, p->k, p->n, p->ldb, s->k_to, 0, 0, 1, stream);
        along.ld = s->k_to, weight = packed; /* what lies along K is changed where it is */
    }
    if (!error && (p->trans_b || along.flip)) error = product_bytes_input_launch(&along, weight, packed, stream);
    if (!error && s->of_w)
        error = product_bytes_sums_launch(s->n_to, s->k_to, s->k_to, packed, (uint8_t *)packed + plan->of_w_at, stream);
    return cuda_device_answer((cudaError_t)error, "packing the weight", why);
}

/* --- a launch --- */

static scout_answer bring(const scout_plan *plan, const uint8_t *from, uint8_t *to, void *stream, scout_why *why) {
    const shape *const s = &plan->s;
    const product_bytes_input input = {.rows = s->rows.size,
                                       .cols = s->p.k,
                                       .ld = s->p.lda,
                                       .rows_to = s->product_rows,
                                       .cols_to = s->k_to,
                                       .flip = s->p.type_a == SCOUT_UINT8};
    return cuda_device_answer((cudaError_t)product_bytes_input_launch(&input, from, to, stream), "bringing the input",
                              why);
}

static int64_t element_of(uint32_t type) {
    return is_byte(type) ? 1 : type == SCOUT_FP16 || type == SCOUT_BF16 ? 2 : (int64_t)sizeof(float);
}

/* The epilogue of columns `col` to `end`. */
static int finish(const scout_plan *plan, const scout_args *args, int64_t col, int64_t end, const void *sums,
                  void *to) {
    const shape *const s = &plan->s;
    const gemm_problem *const p = &s->p;
    const int64_t cols = (end < p->n ? end : p->n) - col;
    const uint8_t *const bias = plan->bias >= 0 ? args->tensors[plan->bias] : NULL;
    if (p->quant.is) {
        product_bytes_finish f = plan->finish;
        f.rows = s->rows.size, f.cols = cols, f.ld_sums = s->cols.size, f.ld_to = p->n;
        return product_bytes_finish_launch(&f, sums, bias ? bias + col * (int64_t)sizeof(int32_t) : NULL, to,
                                           args->stream);
    }
    const product_bytes_zeros z = {.rows = s->rows.size,
                                   .cols = cols,
                                   .ld_sums = s->cols.size,
                                   .ld_to = p->n,
                                   .k = p->k,
                                   .type = (int)p->type_c,
                                   .shift_a = p->type_a == SCOUT_UINT8 ? 128 : 0,
                                   .shift_b = p->type_b == SCOUT_UINT8 ? 128 : 0,
                                   .b_each = p->b_zero_each,
                                   .scales_each = p->scales_each};
    const uint8_t *const b_zero = p->b_zero >= 0 ? args->tensors[p->b_zero] : NULL;
    const float *const scales = p->scales >= 0 ? args->tensors[p->scales] : NULL;
    const uint8_t *const of_w = (const uint8_t *)args->tensors[GEMM_B] + plan->of_w_at + col * (int64_t)sizeof(int32_t);
    return product_bytes_zeros_launch(&z, sums, s->of_x ? (uint8_t *)args->workspace + plan->of_x_at : NULL,
                                      s->of_w ? of_w : NULL, p->a_zero >= 0 ? args->tensors[p->a_zero] : NULL,
                                      b_zero && p->b_zero_each ? b_zero + col : b_zero,
                                      scales && p->scales_each ? scales + col : scales,
                                      bias ? bias + col * element_of(p->type_c) : NULL, to, args->stream);
}

/* Rows from `row` on, which lie at `a`, and all columns. */
static scout_answer compute(scout_plan *plan, const scout_args *args, int64_t row, const uint8_t *a, scout_why *why) {
    const shape *const s = &plan->s;
    const int64_t element = element_of(s->p.type_c);
    uint8_t *const c = (uint8_t *)args->tensors[GEMM_C] + row * s->p.n * element;
    for (int64_t k = 0; k < s->cols.count; k++) {
        const int64_t col = own_gemm_pieces_begin(&s->cols, k), end = col + s->cols.size;
        uint8_t *const to = c + col * element;
        void *const sums = s->in_place ? (void *)to : (uint8_t *)args->workspace + plan->sums_at;
        void *const operands[] = {(void *)(uintptr_t)a, (uint8_t *)args->tensors[GEMM_B] + col * s->k_to, sums};
        const scout_args each = {sizeof each, operands, args->workspace, args->stream};
        const scout_answer answer = lt_candidate.launch(plan->multiply, &each, why);
        if (answer != SCOUT_OK) return answer;
        const int error = finish(plan, args, col, end, sums, to);
        if (error) return cuda_device_answer((cudaError_t)error, "the epilogue of a product", why);
    }
    return SCOUT_OK;
}

/* Sums of the rows that lie at `a`. */
static scout_answer sum_rows(const scout_plan *plan, const scout_args *args, const uint8_t *a, scout_why *why) {
    const shape *const s = &plan->s;
    void *const to = (uint8_t *)args->workspace + plan->of_x_at;
    return cuda_device_answer(
        (cudaError_t)product_bytes_sums_launch(s->product_rows, s->k_to, s->k_to, a, to, args->stream),
        "adding up the input", why);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const shape *const s = &plan->s;
    uint8_t *const copy = (uint8_t *)args->workspace + plan->copy_at;
    for (int64_t k = 0; k < s->rows.count; k++) {
        const int64_t row = own_gemm_pieces_begin(&s->rows, k);
        const uint8_t *const a = (const uint8_t *)args->tensors[GEMM_A] + row * s->p.lda;
        scout_answer answer = s->copies ? bring(plan, a, copy, args->stream, why) : SCOUT_OK;
        if (answer == SCOUT_OK && s->of_x) answer = sum_rows(plan, args, s->copies ? copy : a, why);
        if (answer == SCOUT_OK) answer = compute(plan, args, row, s->copies ? copy : a, why);
        if (answer != SCOUT_OK) return answer;
    }
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    const shape *const s = &plan->s;
    const int64_t pieces = s->rows.count * s->cols.count;
    char members[200];
    snprintf(members, sizeof members,
             "\"before\":\"%s\",\"behind\":\"product_bytes\",\"product\":[%lld,%lld,%lld],\"pieces\":%lld",
             s->copies ? "product_bytes" : "nothing", (long long)s->product_rows, (long long)s->cols.size,
             (long long)s->k_to, (long long)pieces);
    return lt_product_describe(plan->multiply, members, json, room);
}

const scout_candidate own_gemm_quantised = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE,
    .priority = 80,
    .name = "cublaslt_quantised",
    .about = "cuBLASLt's product of int8 into int32 for quantised products and zero points, and own kernels around it",
    .library = "cublaslt",
    .approach = "LIBRARY_TUNE",
    .precisions = (const char *const[]){"int8", NULL},
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
