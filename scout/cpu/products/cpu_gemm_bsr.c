/* Products with a block-sparse weight: blocks of zeros are skipped, the others are small dense products. The block's
 * side is a variant. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/products/cpu_gemm_sparse.h"

#include <stdlib.h>

enum { ROWS = 4, LANES = 16, AT_ONCE = 64 /* rows of A */ };

/* sums[r][0..side) += a[r][0..side) * block[side][side], of ROWS rows that are `stride` apart. */
typedef void block_fn(const float *a, int64_t stride, const float *block, int64_t side, float *sums);

struct scout_plan {
    gemm_problem p;
    int64_t side, columns, blocks, width, rows; /* columns: of blocks; width: K in whole blocks; rows: of A at once */
    int bias;
    block_fn *multiply;
    const char *vectors;
};

/* The packed weight: where each column of blocks begins, places along K (in blocks), the blocks as [k][n]. */
typedef struct tiles {
    int32_t *begin, *place;
    float *value;
} tiles;

static tiles tiles_in(const scout_plan *plan, void *packed) {
    tiles t = {.begin = packed};
    t.place = t.begin + plan->columns + 1;
    t.value = (float *)(t.place + plan->blocks);
    return t;
}

/* --- kernels: sixteen columns of four rows stay in registers --- */

FAST_BODY void block_body(const float *a, int64_t stride, const float *block, int64_t side, float *sums) {
    for (int64_t n = 0; n < side; n += LANES) {
        float s[ROWS][LANES];
        for (int r = 0; r < ROWS; r++)
            for (int u = 0; u < LANES; u++) s[r][u] = sums[r * side + n + u];
        for (int64_t k = 0; k < side; k++)
            for (int r = 0; r < ROWS; r++)
                for (int u = 0; u < LANES; u++) s[r][u] += a[r * stride + k] * block[k * side + n + u];
        for (int r = 0; r < ROWS; r++)
            for (int u = 0; u < LANES; u++) sums[r * side + n + u] = s[r][u];
    }
}

FAST_WIDTHS(block, (const float *a, int64_t stride, const float *block, int64_t side, float *sums),
            (a, stride, block, side, sums))

/* --- the candidate --- */

static const struct {
    int64_t side;
    const char *field; /* how many of its blocks are not all zeros */
} sides[] = {{16, "weight_blocks_16"}, {32, "weight_blocks_32"}, {64, "weight_blocks_64"}, {128, "weight_blocks_128"}};
enum { SIDES = sizeof sides / sizeof sides[0] };

static int64_t blocks_of(const scout_op *op, int64_t side) {
    for (int k = 0; k < SIDES; k++)
        if (sides[k].side == side) return op_number(op, sides[k].field, -1);
    return -1;
}

/* Block sides with zero blocks to skip. */
static int64_t all_blocks(const gemm_problem *p, int64_t side) {
    return ((p->n + side - 1) / side) * ((p->k + side - 1) / side);
}

static int allows(const scout_op *op, scout_device *device, const int64_t *values) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    const int64_t blocks = blocks_of(op, values[0]);
    return blocks >= 0 && blocks < all_blocks(&p, values[0]);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const scout_answer answer = cpu_gemm_sparse_supports(op, why);
    if (answer != SCOUT_OK) return answer;
    if ((uint64_t)(p.k + sides[SIDES - 1].side) * ROWS * sizeof(float) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "rows of %lld numbers exceed the workspace", (long long)p.k);
    for (int k = 0; k < SIDES; k++)
        if (allows(op, device, &sides[k].side)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "pattern", "no block of side %lld is all zeros", (long long)sides[0].side);
}

static scout_answer domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                           scout_why *why) {
    scout_parameter *const one = &out->parameters[0];
    (void)device, (void)exhaustive, (void)op, (void)why;
    out->count = 1;
    *one = (scout_parameter){.name = "block", .count = SIDES};
    for (int k = 0; k < SIDES; k++) one->values[k] = sides[k].side;
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const cpu_info *c = cpu_info_get();
    scout_plan *const plan = *out;
    (void)device, (void)why;
    const gemm_problem p = gemm_problem_of(op);
    plan->p = p;
    plan->side = values[0];
    plan->blocks = blocks_of(op, plan->side);
    plan->columns = (p.n + plan->side - 1) / plan->side;
    plan->width = (p.k + plan->side - 1) / plan->side * plan->side;
    plan->bias = op_tensor(op, "bias");
    plan->vectors = c->avx512 ? "avx512" : c->avx2 ? "avx2" : "portable";
    plan->multiply = FAST_WIDEST(block, c);
    const int64_t fit = (int64_t)(op->workspace_limit / sizeof(float)) / plan->width / ROWS * ROWS;
    const int64_t wanted = (p.m + ROWS - 1) / ROWS * ROWS;
    plan->rows = fit < AT_ONCE ? fit : AT_ONCE;
    if (wanted < plan->rows) plan->rows = wanted;
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = (uint64_t)(plan->columns + 1 + plan->blocks + plan->blocks * plan->side * plan->side) * 4;
    needs->workspace_bytes = (uint64_t)(plan->width * plan->rows) * sizeof(float);
    return SCOUT_OK;
}

/* Copies a block as [k][n]; whether it holds anything. Beyond the weight's edges there are zeros. */
static int copy_block(const scout_plan *plan, const void *weight, int64_t column, int64_t place, float *to) {
    const gemm_problem *p = &plan->p;
    int any = 0;
    for (int64_t k = 0; k < plan->side; k++)
        for (int64_t n = 0; n < plan->side; n++) {
            const int64_t at_n = column * plan->side + n, at_k = place * plan->side + k;
            const float x = at_n < p->n && at_k < p->k ? cpu_gemm_sparse_weight(p, weight, at_n, at_k) : 0;
            to[k * plan->side + n] = x;
            any |= x != 0;
        }
    return any;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const int64_t places = plan->width / plan->side, each = plan->side * plan->side;
    tiles t = tiles_in(plan, packed);
    float *block = malloc((size_t)each * sizeof *block);
    int64_t count = 0;
    (void)stream;
    if (!block) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a block");
    for (int64_t column = 0; column < plan->columns; column++) {
        t.begin[column] = (int32_t)count;
        for (int64_t place = 0; place < places; place++) {
            if (!copy_block(plan, weight, column, place, block)) continue;
            if (count == plan->blocks) {
                free(block);
                return scout_say(why, SCOUT_FAILED, "error", "the weight has more than %lld blocks that are not zero",
                                 (long long)plan->blocks);
            }
            t.place[count] = (int32_t)place;
            memcpy(t.value + count++ * each, block, (size_t)each * sizeof *block);
        }
    }
    t.begin[plan->columns] = (int32_t)count;
    free(block);
    return SCOUT_OK;
}

typedef struct bsr_job {
    const scout_plan *plan;
    const scout_args *args;
    tiles weight;
    int64_t row, count; /* of A, that are at work */
} bsr_job;

static void one_column(const bsr_job *j, int64_t column, int64_t row, float *sums) {
    const scout_plan *plan = j->plan;
    const float *a = (const float *)j->args->workspace + row * plan->width;
    memset(sums, 0, (size_t)(ROWS * plan->side) * sizeof *sums);
    for (int32_t k = j->weight.begin[column]; k < j->weight.begin[column + 1]; k++)
        plan->multiply(a + j->weight.place[k] * plan->side, plan->width, j->weight.value + k * plan->side * plan->side,
                       plan->side, sums);
}

static void multiply(void *context, int thread, int threads) {
    const bsr_job *j = context;
    const scout_plan *plan = j->plan;
    const void *bias = plan->bias < 0 ? NULL : j->args->tensors[plan->bias];
    float sums[ROWS * 128];
    int64_t from, to;
    cpu_team_share(plan->columns, thread, threads, &from, &to);
    for (int64_t column = from; column < to; column++)
        for (int64_t row = 0; row < j->count; row += ROWS) {
            one_column(j, column, row, sums);
            for (int64_t r = 0; r < ROWS && row + r < j->count; r++)
                for (int64_t n = column * plan->side; n < (column + 1) * plan->side && n < plan->p.n; n++)
                    cpu_gemm_sparse_store(&plan->p, bias, j->args->tensors[GEMM_C], j->row + row + r, n,
                                          sums[r * plan->side + n - column * plan->side]);
        }
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->p;
    bsr_job job = {.plan = plan, .args = args, .weight = tiles_in(plan, args->tensors[GEMM_B])};
    (void)why;
    for (; job.row < p->m; job.row += plan->rows) {
        job.count = p->m - job.row < plan->rows ? p->m - job.row : plan->rows;
        cpu_gemm_sparse_widen(&(cpu_gemm_sparse_rows){.p = p,
                                                      .a = args->tensors[GEMM_A],
                                                      .row = job.row,
                                                      .count = job.count,
                                                      .rows = plan->rows,
                                                      .width = plan->width,
                                                      .to = args->workspace});
        cpu_team_run(multiply, &job);
    }
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(
        json, room,
        "{\"kernel\": \"bsr\", \"block\": %lld, \"blocks\": %lld, \"vectors\": \"%s\", \"threads\": \"%s\"}",
        (long long)plan->side, (long long)plan->blocks, plan->vectors, cpu_team_about());
}

const scout_candidate cpu_gemm_bsr = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN,
    .priority = 45,
    .name = "cpu_bsr",
    .about = "own product with a block-sparse weight",
    .approach = "SPARSE_BLOCK",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .domain = domain,
    .allows = allows,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
