/* Products of fp32, fp16 and bf16 with a weight of 4 or 8 bits, quantised in blocks along K with a scale each, and a
 * zero point where it has one. The weight stays so in memory and is widened on the way, a column at a time (K floats,
 * which stay in a core's cache), and multiplied with rows of A that were widened before. One that is stored by rows is
 * packed by columns. Such weights are for few rows, where reading them takes most of the time. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#include <stdlib.h>

enum { LANES = 16, ROWS = 4, PIECE = 256 };

/* Codes count from 0: those of numbers with a sign have its bit turned, and begin at 8 or 128. */
typedef struct codes {
    int32_t turned, zero;
    float scale;
} codes;

/* Widens so many codes of 4 bits, or of 8; multiplies `rows` rows of A with one column. */
typedef void widen_fn(const uint8_t *from, int64_t count, const codes *c, float *to);
typedef void dot_fn(const float *a, int64_t stride, int64_t k, const float *column, float *sums);

typedef struct kernels {
    widen_fn *widen4, *widen8;
    dot_fn *four, *one;
    const char *name;
} kernels;

struct scout_plan {
    gemm_problem p;
    cpu_gemm_tail tail; /* where there is an epilogue */
    kernels k;
    int scales;     /* the tensor */
    int64_t blocks; /* of a column */
    int64_t column_bytes, bits;
    int64_t rows_at_once; /* of A, widened in the workspace */
};

FAST_BODY void widen4_body(const uint8_t *from, int64_t count, const codes *c, float *to) {
    const int32_t turned = c->turned, zero = c->zero;
    const float scale = c->scale;
    for (int64_t k = 0; k < count / 2; k++) {
        const int32_t low = ((from[k] & 15) ^ turned) - zero, high = ((from[k] >> 4) ^ turned) - zero;
        to[2 * k] = (float)low * scale;
        to[2 * k + 1] = (float)high * scale;
    }
}

FAST_BODY void widen8_body(const uint8_t *from, int64_t count, const codes *c, float *to) {
    const int32_t turned = c->turned, zero = c->zero;
    const float scale = c->scale;
    for (int64_t k = 0; k < count; k++) to[k] = (float)((from[k] ^ turned) - zero) * scale;
}

/* Sums in lanes, so that compilers may use vectors without changing the order of additions. */
FAST_BODY void dot_body(int rows, const float *a, int64_t stride, int64_t count, const float *column, float *sums) {
    float lanes[ROWS][LANES] = {{0}};
    int64_t k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int r = 0; r < rows; r++)
            for (int u = 0; u < LANES; u++) lanes[r][u] += a[r * stride + k + u] * column[k + u];
    for (int r = 0; r < rows; r++) {
        float sum = 0;
        for (int u = 0; u < LANES; u++) sum += lanes[r][u];
        for (int64_t rest = k; rest < count; rest++) sum += a[r * stride + rest] * column[rest];
        sums[r] = sum;
    }
}

#define WIDTH(NAME, TARGET)                                                                                            \
    FAST TARGET static void widen4_##NAME(const uint8_t *from, int64_t count, const codes *c, float *to) {             \
        widen4_body(from, count, c, to);                                                                               \
    }                                                                                                                  \
    FAST TARGET static void widen8_##NAME(const uint8_t *from, int64_t count, const codes *c, float *to) {             \
        widen8_body(from, count, c, to);                                                                               \
    }                                                                                                                  \
    FAST TARGET static void four_##NAME(const float *a, int64_t stride, int64_t k, const float *column, float *sums) { \
        dot_body(ROWS, a, stride, k, column, sums);                                                                    \
    }                                                                                                                  \
    FAST TARGET static void one_##NAME(const float *a, int64_t stride, int64_t k, const float *column, float *sums) {  \
        dot_body(1, a, stride, k, column, sums);                                                                       \
    }
#define NO_TARGET
WIDTH(portable, NO_TARGET)
WIDTH(avx2, WIDE_AVX2)
WIDTH(avx512, WIDE_AVX512)

static kernels best_kernels(void) {
    const cpu_info *c = cpu_info_get();
    if (c->avx512) return (kernels){widen4_avx512, widen8_avx512, four_avx512, one_avx512, "avx512"};
    if (c->avx2) return (kernels){widen4_avx2, widen8_avx2, four_avx2, one_avx2, "avx2"};
    return (kernels){widen4_portable, widen8_portable, four_portable, one_portable, "portable"};
}

static bool is_signed(uint32_t type) { return type == SCOUT_INT4 || type == SCOUT_INT8; }
static int64_t bits_of(uint32_t type) { return (int64_t)cpu_number_bits(type); }

/* --- the work --- */

typedef struct blocks_job {
    const scout_plan *plan;
    const scout_args *args;
    int64_t row, rows; /* the part of A that is at work */
    float *a;          /* [rows][k] */
    float *columns;    /* one for every thread */
} blocks_job;

static void widen_rows(void *context, int thread, int threads) {
    const blocks_job *j = context;
    const gemm_problem *p = &j->plan->p;
    double some[PIECE];
    int64_t from, to;
    cpu_team_share(j->rows, thread, threads, &from, &to);
    for (int64_t i = from; i < to; i++)
        for (int64_t k = 0; k < p->k; k += PIECE) {
            const int64_t row = j->row + i, here = p->k - k < PIECE ? p->k - k : PIECE;
            const int64_t at = p->trans_a ? k * p->lda + row : row * p->lda + k;
            cpu_number_load(p->type_a, j->args->tensors[GEMM_A], at, p->trans_a ? p->lda : 1, here, some);
            for (int64_t u = 0; u < here; u++) j->a[i * p->k + k + u] = (float)some[u];
        }
}

static void widen_column(const blocks_job *j, int64_t column, float *out) {
    const scout_plan *plan = j->plan;
    const gemm_problem *p = &plan->p;
    const uint8_t *from = (const uint8_t *)j->args->tensors[GEMM_B] + column * plan->column_bytes;
    const int32_t half = 1 << (plan->bits - 1), turned = is_signed(p->type_b) ? half : 0;
    for (int64_t block = 0; block < plan->blocks; block++) {
        const int64_t k = block * p->block_size, left = p->k - k, at = column * plan->blocks + block;
        const int64_t here = left < p->block_size ? left : p->block_size;
        double scale, zero = 0;
        cpu_number_load(p->type_a, j->args->tensors[plan->scales], at, 1, 1, &scale);
        if (p->b_zero >= 0) cpu_number_load(p->type_b, j->args->tensors[p->b_zero], at, 1, 1, &zero);
        const codes c = {turned, turned + (int32_t)zero, (float)scale};
        (plan->bits == 4 ? plan->k.widen4 : plan->k.widen8)(from + k * plan->bits / 8, here, &c, out + k);
    }
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const gemm_problem *p = &plan->p;
    double some[PIECE];
    (void)stream, (void)why;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < p->k; k += PIECE) {
            const int64_t here = p->k - k < PIECE ? p->k - k : PIECE;
            cpu_number_load(p->type_b, weight, k * p->ldb + n, p->ldb, here, some);
            for (int64_t u = 0; u < here; u++)
                cpu_number_store(p->type_b, (char *)packed + n * plan->column_bytes, k + u, some[u]);
        }
    return SCOUT_OK;
}

static void multiply_columns(void *context, int thread, int threads) {
    const blocks_job *j = context;
    const gemm_problem *p = &j->plan->p;
    float *column = j->columns + thread * p->k, sums[ROWS];
    int64_t from, to;
    cpu_team_share(p->n, thread, threads, &from, &to);
    for (int64_t n = from; n < to; n++) {
        widen_column(j, n, column);
        for (int64_t i = 0, together; i < j->rows; i += together) {
            together = j->rows - i >= ROWS ? ROWS : 1;
            (together == ROWS ? j->plan->k.four : j->plan->k.one)(j->a + i * p->k, p->k, p->k, column, sums);
            for (int r = 0; r < together; r++)
                cpu_number_store(p->type_c, j->args->tensors[GEMM_C], (j->row + i + r) * p->ldc + n, (double)sums[r]);
        }
    }
}

/* --- the candidate --- */

static int64_t rows_that_fit(const gemm_problem *p, uint64_t limit) {
    const int64_t fit = (int64_t)(limit / sizeof(float)) / p->k - cpu_team_size();
    return fit < p->m ? fit : p->m;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    const int scales = op_tensor(op, "scales");
    if (!gemm_widens(p.type_a, p.type_b) || p.type_c != p.type_a ||
        (scales >= 0 && op->tensors[scales].type != p.type_a))
        return scout_say(why, SCOUT_NO, "type", "multiplies fp32, fp16 and bf16 with 4 or 8 bits, into the same type");
    if (p.batch != 1) return scout_say(why, SCOUT_NO, "shape", "no batches");
    const bool even = p.block_size % 2 == 0 && (!p.trans_b || p.ldb % 2 == 0) && p.k % 2 == 0;
    if (p.block_size < 1 || (bits_of(p.type_b) == 4 && !even) || scales < 0)
        return scout_say(why, SCOUT_NO, "feature", "reads blocks of an even number of weights, with a scale each");
    if (rows_that_fit(&p, op->workspace_limit) < 1)
        return scout_say(why, SCOUT_NO, "memory", "a row of %lld numbers and one for each thread exceed the workspace",
                         (long long)p.k);
    cpu_gemm_tail tail;
    return gemm_has_epilogue(&p) ? cpu_gemm_tail_of(op, &tail, why) : SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values;
    plan->p = gemm_problem_of(op);
    plan->k = best_kernels();
    plan->scales = op_tensor(op, "scales");
    plan->blocks = plan->p.block_size > 0 ? (plan->p.k + plan->p.block_size - 1) / plan->p.block_size : 0;
    plan->bits = bits_of(plan->p.type_b);
    plan->column_bytes = (plan->p.trans_b ? plan->p.ldb : plan->p.k) * plan->bits / 8;
    plan->rows_at_once = rows_that_fit(&plan->p, op->workspace_limit);
    if (gemm_has_epilogue(&plan->p) && cpu_gemm_tail_of(op, &plan->tail, why) != SCOUT_OK) return SCOUT_NO;
    needs->packs = plan->p.trans_b ? 0 : GEMM_B + 1;
    needs->pack_bytes = plan->p.trans_b ? 0 : (uint64_t)(plan->p.n * plan->column_bytes);
    needs->workspace_bytes = (uint64_t)((plan->rows_at_once + cpu_team_size()) * plan->p.k) * sizeof(float);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->p;
    blocks_job job = {.plan = plan, .args = args, .a = args->workspace};
    (void)why;
    job.columns = job.a + plan->rows_at_once * p->k;
    for (; job.row < p->m; job.row += job.rows) {
        job.rows = p->m - job.row < plan->rows_at_once ? p->m - job.row : plan->rows_at_once;
        cpu_team_run(widen_rows, &job);
        cpu_team_run(multiply_columns, &job);
    }
    if (gemm_has_epilogue(p)) cpu_gemm_tail_run(&plan->tail, args->tensors);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\": \"blocks\", \"vectors\": \"%s\", \"rows_at_once\": %lld, \"threads\": \"%s\"}",
                    plan->k.name, (long long)plan->rows_at_once, cpu_team_about());
}

const scout_candidate cpu_gemm_blocks = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 50,
    .name = "cpu_blocks",
    .about = "own product of floats with weights of 4 or 8 bits in blocks, widened on the way, with zero points; bias, "
             "residual and activation in a second pass",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"int4", "fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
