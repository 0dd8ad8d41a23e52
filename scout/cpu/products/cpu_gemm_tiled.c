/* Products in fp32 by an own kernel: the reference for the build, and the baseline without a library; and products of
 * fp16 and bf16, which are widened when they are packed, for processors without library support. C is cut into blocks,
 * each thread does whole blocks; operands are packed into strips that the inner kernel reads in order, which also makes
 * every layout the same to it. The inner kernel keeps a tile of C in registers: 12 x 32 with AVX-512, 6 x 16 with AVX2,
 * 4 x 8 in plain C. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_convert.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/products/cpu_gemm_tail.h"
#include "scout/op/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { DEPTH = 256, BLOCK_M = 96, BLOCK_N = 256, MAX_TILE = 12 * 32 };

/* tile[rows][cols] = sum over depth of a[k][rows] * b[k][cols], added to what is there. */
typedef void tile_kernel(const float *a, const float *b, int64_t depth, float *tile);

typedef struct tile_shape {
    int64_t rows, cols;
    tile_kernel *kernel;
    const char *name;
} tile_shape;

struct scout_plan {
    gemm_problem p;
    const tile_shape *shape;
    int64_t blocks_m, blocks_n;
    bool apart; /* a block's sums are kept in fp32 until the epilogue */
    cpu_gemm_tail tail;
};

static void tile_portable(const float *a, const float *b, int64_t depth, float *tile) {
    for (int64_t k = 0; k < depth; k++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++) tile[i * 8 + j] += a[k * 4 + i] * b[k * 8 + j];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void tile_avx2(const float *a, const float *b, int64_t depth, float *tile) {
    __m256 c[6][2];
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 2; j++) c[i][j] = _mm256_loadu_ps(tile + i * 16 + j * 8);
    for (int64_t k = 0; k < depth; k++, a += 6, b += 16) {
        const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 6
#endif
        for (int i = 0; i < 6; i++) {
            const __m256 ai = _mm256_broadcast_ss(a + i);
            c[i][0] = _mm256_fmadd_ps(ai, b0, c[i][0]);
            c[i][1] = _mm256_fmadd_ps(ai, b1, c[i][1]);
        }
    }
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 2; j++) _mm256_storeu_ps(tile + i * 16 + j * 8, c[i][j]);
}

__attribute__((target("avx512f"))) static void tile_avx512(const float *a, const float *b, int64_t depth, float *tile) {
    __m512 c[12][2];
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 2; j++) c[i][j] = _mm512_loadu_ps(tile + i * 32 + j * 16);
    for (int64_t k = 0; k < depth; k++, a += 12, b += 32) {
        const __m512 b0 = _mm512_loadu_ps(b), b1 = _mm512_loadu_ps(b + 16);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 12
#endif
        for (int i = 0; i < 12; i++) {
            const __m512 ai = _mm512_set1_ps(a[i]);
            c[i][0] = _mm512_fmadd_ps(ai, b0, c[i][0]);
            c[i][1] = _mm512_fmadd_ps(ai, b1, c[i][1]);
        }
    }
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 2; j++) _mm512_storeu_ps(tile + i * 32 + j * 16, c[i][j]);
}
#endif

static const tile_shape *best_shape(void) {
    static const tile_shape shapes[] = {
#if defined(__x86_64__)
        {12, 32, tile_avx512, "avx512"},
        {6, 16, tile_avx2, "avx2"},
#endif
        {4, 8, tile_portable, "portable"},
    };
    const cpu_info *c = cpu_info_get();
    const size_t count = sizeof shapes / sizeof shapes[0];
    return c->avx512 ? &shapes[0] : c->avx2 ? &shapes[count > 1 ? 1 : 0] : &shapes[count - 1];
}

/* --- packing: strips of `width` lines, k by k, zeros beyond the edge --- */

typedef struct source { /* element (line, k) lies at data[line * line_step + k * k_step]; one of both steps is 1 */
    const void *data;
    uint32_t type;
    int64_t line_step, k_step;
    const cpu_gemm_tail_way *way;
} source;

/* Of 16 bits: neighbours are widened together. */
static void widen_strip(const source *s, int64_t line, int64_t lines, int64_t width, int64_t k, int64_t depth,
                        float *out) {
    const uint16_t *from = (const uint16_t *)s->data + line * s->line_step + k * s->k_step;
    float room[DEPTH];
    if (s->k_step == 1)
        for (int64_t i = 0; i < width; i++) {
            if (i < lines) s->way->load(s->type, from + i * s->line_step, depth, room);
            for (int64_t d = 0; d < depth; d++) out[d * width + i] = i < lines ? room[d] : 0;
        }
    else
        for (int64_t d = 0; d < depth; d++) {
            s->way->load(s->type, from + d * s->k_step, lines, out + d * width);
            for (int64_t i = lines; i < width; i++) out[d * width + i] = 0;
        }
}

static void pack_strip(const source *s, int64_t line, int64_t lines, int64_t width, int64_t k, int64_t depth,
                       float *out) {
    if (s->type != SCOUT_FP32) {
        widen_strip(s, line, lines, width, k, depth, out);
        return;
    }
    const float *from = (const float *)s->data + line * s->line_step + k * s->k_step;
    for (int64_t i = 0; i < width; i++) {
        const float *row = from + i * s->line_step;
        if (i < lines)
            for (int64_t d = 0; d < depth; d++) out[d * width + i] = row[d * s->k_step];
        else
            for (int64_t d = 0; d < depth; d++) out[d * width + i] = 0;
    }
}

static void pack_block(const source *s, int64_t line, int64_t lines, int64_t width, int64_t k, int64_t depth,
                       float *out) {
    for (int64_t at = 0; at < lines; at += width, out += width * depth)
        pack_strip(s, line + at, lines - at < width ? lines - at : width, width, k, depth, out);
}

/* --- one block of C --- */

/* The part of a tile that lies inside C, from C or to it. */
static void edge(float *c, int64_t ldc, float *tile, const tile_shape *shape, int64_t rows, int64_t cols, int load) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            if (load)
                tile[i * shape->cols + j] = c[i * ldc + j];
            else
                c[i * ldc + j] = tile[i * shape->cols + j];
        }
}

static void multiply_packed(const tile_shape *shape, const float *a, const float *b, int64_t rows, int64_t cols,
                            int64_t depth, float *c, int64_t ldc, int first) {
    for (int64_t j = 0; j < cols; j += shape->cols)
        for (int64_t i = 0; i < rows; i += shape->rows) {
            float tile[MAX_TILE] = {0};
            const int64_t high = rows - i < shape->rows ? rows - i : shape->rows;
            const int64_t wide = cols - j < shape->cols ? cols - j : shape->cols;
            if (!first) edge(c + i * ldc + j, ldc, tile, shape, high, wide, 1);
            shape->kernel(a + i * depth, b + j * depth, depth, tile);
            edge(c + i * ldc + j, ldc, tile, shape, high, wide, 0);
        }
}

static int64_t packed_floats(void) { return (int64_t)DEPTH * (BLOCK_M + BLOCK_N + 64); }
static int64_t scratch_floats(bool apart) { return packed_floats() + (apart ? (int64_t)BLOCK_M * BLOCK_N : 0); }

/* along: lines lie side by side. */
static source source_of(const scout_plan *plan, const void *data, uint32_t type, int64_t first, bool along,
                        int64_t ld) {
    const char *at = (const char *)data + first * cpu_convert_size(type);
    return (source){at, type, along ? 1 : ld, along ? ld : 1, plan->tail.way};
}

static void do_block(const cpu_job *job, int64_t index, float *scratch) {
    const scout_plan *plan = job->plan;
    const gemm_problem *p = &plan->p;
    const int64_t product = index / (plan->blocks_m * plan->blocks_n), rest = index % (plan->blocks_m * plan->blocks_n);
    const int64_t row = rest % plan->blocks_m * BLOCK_M, column = rest / plan->blocks_m * BLOCK_N;
    const int64_t rows = p->m - row < BLOCK_M ? p->m - row : BLOCK_M;
    const int64_t cols = p->n - column < BLOCK_N ? p->n - column : BLOCK_N;
    void *const *t = job->args->tensors;
    const source a = source_of(plan, t[GEMM_A], p->type_a, product * p->stride_a, p->trans_a != 0, p->lda);
    const source b = source_of(plan, t[GEMM_B], p->type_b, product * p->stride_b, p->trans_b == 0, p->ldb);
    float *c =
        plan->apart ? scratch + packed_floats() : (float *)t[GEMM_C] + product * p->stride_c + row * p->ldc + column;
    const int64_t ldc = plan->apart ? BLOCK_N : p->ldc;
    float *packed_a = scratch, *packed_b = scratch + DEPTH * (BLOCK_M + 32);
    for (int64_t k = 0; k < p->k; k += DEPTH) {
        const int64_t depth = p->k - k < DEPTH ? p->k - k : DEPTH;
        pack_block(&a, row, rows, plan->shape->rows, k, depth, packed_a);
        pack_block(&b, column, cols, plan->shape->cols, k, depth, packed_b);
        multiply_packed(plan->shape, packed_a, packed_b, rows, cols, depth, c, ldc, k == 0);
    }
    for (int64_t i = 0; i < rows && plan->apart; i++)
        cpu_gemm_tail_row(&plan->tail, t, product, row + i, column, cols, c + i * BLOCK_N);
}

static void tiled_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    int64_t from, to;
    cpu_team_share(job->plan->blocks_m * job->plan->blocks_n * job->plan->p.batch, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++)
        do_block(job, k, (float *)job->args->workspace + thread * scratch_floats(job->plan->apart));
}

/* --- the candidate --- */

static bool keeps_apart(const gemm_problem *p) { return p->type_c != SCOUT_FP32 || cpu_gemm_tail_wanted(p); }

static uint64_t workspace_bytes(const gemm_problem *p) {
    return (uint64_t)(cpu_team_size() * scratch_floats(keeps_apart(p))) * sizeof(float);
}

static scout_answer supports(const scout_op *op, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    cpu_gemm_tail tail;
    const scout_answer answer = cpu_team_room(workspace_bytes(&p), op->workspace_limit, why);
    return answer == SCOUT_OK ? cpu_gemm_tail_of(op, &tail, why) : answer;
}

static scout_answer tiled_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    if (p.type_a == SCOUT_FP32 && p.type_b == SCOUT_FP32 && p.type_c == SCOUT_FP32) return supports(op, why);
    return scout_say(why, SCOUT_NO, "type", "multiplies fp32 into fp32");
}

static scout_answer widened_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const bool half = p.type_a == SCOUT_FP16 || p.type_a == SCOUT_BF16;
    (void)device;
    if (half && p.type_b == p.type_a && cpu_convert_known(p.type_c)) return supports(op, why);
    return scout_say(why, SCOUT_NO, "type", "multiplies fp16 with fp16 and bf16 with bf16");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values;
    const scout_answer answer = cpu_gemm_tail_of(op, &plan->tail, why);
    if (answer != SCOUT_OK) return answer;
    plan->p = gemm_problem_of(op);
    plan->apart = keeps_apart(&plan->p);
    plan->shape = best_shape();
    plan->blocks_m = (plan->p.m + BLOCK_M - 1) / BLOCK_M;
    plan->blocks_n = (plan->p.n + BLOCK_N - 1) / BLOCK_N;
    needs->workspace_bytes = workspace_bytes(&plan->p);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(tiled_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\": \"tiled\", \"registers\": \"%lldx%lld %s\", \"block\": \"%dx%dx%d\", "
                    "\"threads\": \"%s\"}",
                    (long long)plan->shape->rows, (long long)plan->shape->cols, plan->shape->name, BLOCK_M, BLOCK_N,
                    DEPTH, cpu_team_about());
}

const scout_candidate cpu_gemm_tiled = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN | SCOUT_LAST,
    .priority = 10,
    .name = "cpu_tiled",
    .about = "own product in fp32, blocked for caches and registers, bias, residual and activation fused",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "tf32", NULL},
    .supports = tiled_supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};

const scout_candidate cpu_gemm_widened = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_BASELINE | SCOUT_OWN, /* the baseline where no library has one */
    .priority = 15,
    .name = "cpu_widened",
    .about = "own product of fp16 and bf16, widened to fp32 on the way, bias, residual and activation fused",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp16", "bf16", NULL},
    .supports = widened_supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
