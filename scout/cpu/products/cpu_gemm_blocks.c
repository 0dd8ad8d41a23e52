/* Products of fp32, fp16 and bf16 with a weight of 4 or 8 bits, quantised in blocks along K with a scale each, and a
 * zero point where it has one. The weight stays so in memory and is widened on the way, in registers, and multiplied
 * with rows of A that were widened before. One that is stored by rows is packed by columns. Such weights are for few
 * rows, where reading them takes most of the time. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#include <stdlib.h>

enum { LANES = 16, ROWS = 4, PIECE = 256 };

typedef float floats __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

/* A column of the weight. Codes count from 0: those of numbers with a sign have its bit turned, and begin at 8 or 128.
 */
typedef struct column {
    const uint8_t *codes;
    int64_t k, block; /* numbers */
    int32_t turned;
    const float *scales;
    const int32_t *zeros;
} column;

/* `rows` rows of A, each `stride` behind the other, times a column. Of 4 bits A has its numbers at even places first,
 * so that neither it nor the codes are interleaved on the way. */
typedef void dot_fn(const column *c, const float *a, int64_t stride, float *sums);

/* Scales of the input's type, from one of them on. */
typedef void read_fn(uint32_t type, const void *from, int64_t at, int64_t count, float *to);

typedef struct kernels {
    dot_fn *four_of_4, *one_of_4, *four_of_8, *one_of_8;
    read_fn *read;
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

/* A loop, of which compilers make vectors: they take conversions of vectors apart. */
FAST_BODY void widen(const uint8_t *codes, int shift, int32_t mask, const column *c, int32_t zero, float scale,
                     float *to) {
    const int32_t turned = c->turned;
    for (int u = 0; u < LANES; u++) to[u] = (float)((((codes[u] >> shift) & mask) ^ turned) - zero) * scale;
}

FAST_BODY float widen_one(uint8_t code, int shift, int32_t mask, const column *c, int32_t zero, float scale) {
    return (float)((((code >> shift) & mask) ^ c->turned) - zero) * scale;
}

/* Sums in lanes: so many rows of A times the numbers that so many bytes hold at that place of theirs. */
FAST_BODY void add(int rows, const float *w, const float *a, int64_t stride, floats *lanes) {
    for (int r = 0; r < rows; r++)
        lanes[r] += *(const floats *)(const void *)w * *(const floats *)(const void *)(a + r * stride);
}

FAST_BODY void dot_body(int rows, int bits, const column *c, const float *a, int64_t stride, float *sums) {
    const int each = 8 / bits; /* codes of a byte */
    const int32_t mask = (1 << bits) - 1;
    const float *const odd = a + c->k / 2;
    floats low[ROWS] = {{0}, {0}, {0}, {0}}, high[ROWS] = {{0}, {0}, {0}, {0}};
    float rest[ROWS] = {0}, w[LANES];
    for (int64_t block = 0; block * c->block < c->k; block++) {
        const float scale = c->scales[block];
        const int32_t zero = c->zeros[block];
        const int64_t left = c->k - block * c->block;
        int64_t at = block * c->block / each;
        const int64_t end = at + (left < c->block ? left : c->block) / each;
        for (; at + LANES <= end; at += LANES) {
            widen(c->codes + at, 0, mask, c, zero, scale, w);
            add(rows, w, a + at, stride, low);
            if (bits == 8) continue;
            widen(c->codes + at, 4, mask, c, zero, scale, w);
            add(rows, w, odd + at, stride, high);
        }
        for (; at < end; at++)
            for (int half = 0; half < each; half++) {
                const float one = widen_one(c->codes[at], half * bits, mask, c, zero, scale);
                for (int r = 0; r < rows; r++) rest[r] += one * (half ? odd : a)[r * stride + at];
            }
    }
    for (int r = 0; r < rows; r++) {
        sums[r] = rest[r];
        for (int u = 0; u < LANES; u++) sums[r] += low[r][u] + high[r][u];
    }
}

FAST_BODY void read_body(uint32_t type, const void *from, int64_t at, int64_t count, float *to) {
    const uint16_t *const halves = (const uint16_t *)from + at;
    if (type == SCOUT_FP32)
        memcpy(to, (const float *)from + at, (size_t)count * sizeof *to);
    else if (type == SCOUT_FP16)
        for (int64_t k = 0; k < count; k++) to[k] = cpu_convert_widen(halves[k]);
    else
        for (int64_t k = 0; k < count; k++) to[k] = cpu_convert_float((uint32_t)halves[k] << 16);
}

#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")))
#else
#define FUSED
#endif
#define DOT(NAME, TARGET, ROWS_, BITS)                                                                                 \
    FUSED TARGET static void NAME(const column *c, const float *a, int64_t stride, float *sums) {                      \
        dot_body(ROWS_, BITS, c, a, stride, sums);                                                                     \
    }
#define WIDTH(NAME, TARGET)                                                                                            \
    DOT(four_of_4_##NAME, TARGET, ROWS, 4)                                                                             \
    DOT(one_of_4_##NAME, TARGET, 1, 4)                                                                                 \
    DOT(four_of_8_##NAME, TARGET, ROWS, 8)                                                                             \
    DOT(one_of_8_##NAME, TARGET, 1, 8)                                                                                 \
    FAST TARGET static void read_##NAME(uint32_t type, const void *from, int64_t at, int64_t count, float *to) {       \
        read_body(type, from, at, count, to);                                                                          \
    }                                                                                                                  \
    static const kernels NAME = {four_of_4_##NAME, one_of_4_##NAME, four_of_8_##NAME,                                  \
                                 one_of_8_##NAME,  read_##NAME,     #NAME};
#define NO_TARGET
WIDTH(portable, NO_TARGET)
WIDTH(avx2, WIDE_AVX2)
WIDTH(avx512, WIDE_AVX512)

static kernels best_kernels(void) {
    const cpu_info *c = cpu_info_get();
    return c->avx512 ? avx512 : c->avx2 ? avx2 : portable;
}

static bool is_signed(uint32_t type) { return type == SCOUT_INT4 || type == SCOUT_INT8; }
static int64_t bits_of(uint32_t type) { return (int64_t)cpu_number_bits(type); }

/* --- the work --- */

typedef struct blocks_job {
    const scout_plan *plan;
    const scout_args *args;
    int64_t product, products; /* those of the batch that are at work: all rows of several, or some rows of one */
    int64_t row, rows;         /* of each */
    float *a;                  /* [products][rows][k] */
    float *scales;             /* of a column, and its zero points: one after the other for every thread */
} blocks_job;

/* Where a number of a row goes. */
static int64_t place_of(const scout_plan *plan, int64_t k) {
    return plan->bits == 8 ? k : (k % 2) * (plan->p.k / 2) + k / 2;
}

static void widen_rows(void *context, int thread, int threads) {
    const blocks_job *j = context;
    const gemm_problem *p = &j->plan->p;
    double some[PIECE];
    int64_t from, to;
    cpu_team_share(j->products * j->rows, thread, threads, &from, &to);
    for (int64_t i = from; i < to; i++)
        for (int64_t k = 0; k < p->k; k += PIECE) {
            const int64_t row = j->row + i % j->rows, here = p->k - k < PIECE ? p->k - k : PIECE;
            const int64_t at =
                (j->product + i / j->rows) * p->stride_a + (p->trans_a ? k * p->lda + row : row * p->lda + k);
            cpu_number_load(p->type_a, j->args->tensors[GEMM_A], at, p->trans_a ? p->lda : 1, here, some);
            for (int64_t u = 0; u < here; u++) j->a[i * p->k + place_of(j->plan, k + u)] = (float)some[u];
        }
}

/* Of a column of all products. */
static void read_scales(const blocks_job *j, int64_t n, float *scales, int32_t *zeros) {
    const scout_plan *plan = j->plan;
    const gemm_problem *p = &plan->p;
    const int32_t begin = is_signed(p->type_b) ? 1 << (plan->bits - 1) : 0, mask = (1 << plan->bits) - 1;
    const uint8_t *const codes = p->b_zero >= 0 ? j->args->tensors[p->b_zero] : NULL;
    plan->k.read(p->type_a, j->args->tensors[plan->scales], n * plan->blocks, plan->blocks, scales);
    for (int64_t block = 0; block < plan->blocks; block++) {
        const int64_t at = (n * plan->blocks + block) * plan->bits;
        zeros[block] = codes ? ((codes[at / 8] >> at % 8) & mask) ^ begin : begin; /* as codes are */
    }
}

static void multiply_columns(void *context, int thread, int threads) {
    const blocks_job *j = context;
    const scout_plan *plan = j->plan;
    const gemm_problem *p = &plan->p;
    float *const scales = j->scales + 2 * thread * plan->blocks, sums[ROWS];
    int32_t *const zeros = (int32_t *)(void *)(scales + plan->blocks);
    dot_fn *const four = plan->bits == 4 ? plan->k.four_of_4 : plan->k.four_of_8;
    dot_fn *const one = plan->bits == 4 ? plan->k.one_of_4 : plan->k.one_of_8;
    column c = {.k = p->k, .block = p->block_size, .scales = scales, .zeros = zeros};
    c.turned = is_signed(p->type_b) ? 1 << (plan->bits - 1) : 0;
    int64_t from, to;
    cpu_team_share(j->products * p->n, thread, threads, &from, &to);
    for (int64_t at = from; at < to; at++) {
        const int64_t product = j->product + at / p->n, n = at % p->n, of_all = product * p->n + n;
        const float *const a = j->a + at / p->n * j->rows * p->k;
        c.codes = (const uint8_t *)j->args->tensors[GEMM_B] + of_all * plan->column_bytes;
        read_scales(j, of_all, scales, zeros);
        for (int64_t i = 0, together; i < j->rows; i += together) {
            together = j->rows - i >= ROWS ? ROWS : 1;
            (together == ROWS ? four : one)(&c, a + i * p->k, p->k, sums);
            for (int r = 0; r < together; r++)
                cpu_number_store(p->type_c, j->args->tensors[GEMM_C],
                                 product * p->stride_c + (j->row + i + r) * p->ldc + n, (double)sums[r]);
        }
    }
}

typedef struct packing {
    const scout_plan *plan;
    const void *weight;
    char *packed;
} packing;

/* Neighbouring columns lie in the same lines of the cache. */
static void pack_columns(void *context, int thread, int threads) {
    const packing *j = context;
    const gemm_problem *p = &j->plan->p;
    double some[PIECE];
    int64_t from, to;
    cpu_team_share(p->batch * p->n, thread, threads, &from, &to);
    for (int64_t k = 0; k < p->k; k += PIECE)
        for (int64_t n = from; n < to; n++) {
            const int64_t here = p->k - k < PIECE ? p->k - k : PIECE;
            cpu_number_load(p->type_b, j->weight, n / p->n * p->stride_b + k * p->ldb + n % p->n, p->ldb, here, some);
            for (int64_t u = 0; u < here; u++)
                cpu_number_store(p->type_b, j->packed + n * j->plan->column_bytes, k + u, some[u]);
        }
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    packing job = {plan, weight, packed};
    (void)stream, (void)why;
    cpu_team_run(pack_columns, &job);
    return SCOUT_OK;
}

/* --- the candidate --- */

/* Scales and zero points of a column, for every thread. */
static int64_t scales_of(const gemm_problem *p) {
    return p->block_size > 0 ? 2 * cpu_team_size() * ((p->k + p->block_size - 1) / p->block_size) : 0;
}

static int64_t rows_that_fit(const gemm_problem *p, uint64_t limit) {
    const int64_t fit = ((int64_t)(limit / sizeof(float)) - scales_of(p)) / p->k;
    return fit < p->batch * p->m ? fit : p->batch * p->m;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    const int scales = op_tensor(op, "scales");
    if (!gemm_widens(p.type_a, p.type_b) || p.type_c != p.type_a ||
        (scales >= 0 && op->tensors[scales].type != p.type_a))
        return scout_say(why, SCOUT_NO, "type", "multiplies fp32, fp16 and bf16 with 4 or 8 bits, into the same type");
    if (p.batch != 1 && p.stride_b != (p.trans_b ? p.n : p.k) * p.ldb)
        return scout_say(why, SCOUT_NO, "layout", "reads weights that lie one behind the other in a batch");
    const bool even = p.block_size % 2 == 0 && (!p.trans_b || p.ldb % 2 == 0) && p.k % 2 == 0;
    if (p.block_size < 1 || (bits_of(p.type_b) == 4 && !even) || scales < 0)
        return scout_say(why, SCOUT_NO, "feature", "reads blocks of an even number of weights, with a scale each");
    if (rows_that_fit(&p, op->workspace_limit) < 1)
        return scout_say(why, SCOUT_NO, "memory",
                         "a row of %lld numbers and scales for each thread exceed the workspace", (long long)p.k);
    cpu_gemm_tail tail;
    return cpu_gemm_tail_wanted(&p) ? cpu_gemm_tail_of(op, &tail, why) : SCOUT_OK;
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
    if (cpu_gemm_tail_wanted(&plan->p) && cpu_gemm_tail_of(op, &plan->tail, why) != SCOUT_OK) return SCOUT_NO;
    needs->packs = plan->p.trans_b ? 0 : GEMM_B + 1;
    needs->pack_bytes = plan->p.trans_b ? 0 : (uint64_t)(plan->p.batch * plan->p.n * plan->column_bytes);
    needs->workspace_bytes = (uint64_t)(plan->rows_at_once * plan->p.k + scales_of(&plan->p)) * sizeof(float);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->p;
    blocks_job job = {.plan = plan, .args = args, .a = args->workspace};
    (void)why;
    const int64_t together = plan->rows_at_once > p->m ? plan->rows_at_once / p->m : 1;
    job.scales = job.a + plan->rows_at_once * p->k;
    for (; job.product < p->batch; job.product += job.products) {
        job.products = p->batch - job.product < together ? p->batch - job.product : together;
        for (job.row = 0; job.row < p->m; job.row += job.rows) {
            job.rows = p->m - job.row < plan->rows_at_once ? p->m - job.row : plan->rows_at_once;
            cpu_team_run(widen_rows, &job);
            cpu_team_run(multiply_columns, &job);
        }
    }
    if (cpu_gemm_tail_wanted(p)) cpu_gemm_tail_run(&plan->tail, args->tensors);
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
