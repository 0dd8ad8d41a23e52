/* Products with a sparse weight, as a list of nonzeros for each column of the product. A single row of A is gathered
 * from; more rows are interleaved by sixteen, so that each nonzero multiplies a vector. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_info.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/products/cpu_gemm_sparse.h"

enum { LANES = 16 };

/* The packed weight: where each column's list begins (and the last one ends), places along K, numbers. */
typedef struct lists {
    int32_t *begin, *place;
    float *value;
} lists;

typedef void column_fn(const float *a, const int32_t *place, const float *value, int64_t count, float *sums);

struct scout_plan {
    gemm_problem p;
    int64_t nonzeros, rows; /* rows: of A at once */
    int bias;
    column_fn *column;
    const char *vectors;
};

static lists lists_in(const scout_plan *plan, void *packed) {
    lists l = {.begin = packed};
    l.place = l.begin + plan->p.n + 1;
    l.value = (float *)(l.place + plan->nonzeros);
    return l;
}

/* --- kernels --- */

FAST_BODY void sixteen_body(const float *a, const int32_t *place, const float *value, int64_t count, float *sums) {
    float s[LANES] = {0};
    for (int64_t k = 0; k < count; k++)
        for (int u = 0; u < LANES; u++) s[u] += value[k] * a[(int64_t)place[k] * LANES + u];
    for (int u = 0; u < LANES; u++) sums[u] = s[u];
}

/* Four sums, so that one addition need not wait for the one before. */
FAST static void one_row(const float *a, const int32_t *place, const float *value, int64_t count, float *sums) {
    float s[4] = {0};
    int64_t k = 0;
    for (; k + 4 <= count; k += 4)
        for (int u = 0; u < 4; u++) s[u] += value[k + u] * a[place[k + u]];
    for (; k < count; k++) s[0] += value[k] * a[place[k]];
    *sums = (s[0] + s[1]) + (s[2] + s[3]);
}

FAST_WIDTHS(sixteen, (const float *a, const int32_t *place, const float *value, int64_t count, float *sums),
            (a, place, value, count, sums))

static void choose_kernel(scout_plan *plan) {
    const cpu_info *c = cpu_info_get();
    plan->rows = plan->p.m == 1 ? 1 : LANES;
    plan->vectors = c->avx512 ? "avx512" : c->avx2 ? "avx2" : "portable";
    plan->column = FAST_WIDEST(sixteen, c);
    if (plan->rows == 1) plan->column = one_row;
}

/* --- the candidate --- */

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    const scout_answer answer = cpu_gemm_sparse_supports(op, why);
    if (answer != SCOUT_OK) return answer;
    if (op_number(op, "weight_nonzeros", 0) > INT32_MAX || p.n >= INT32_MAX || p.k >= INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "the weight's nonzeros exceed 32-bit counters");
    if ((uint64_t)p.k * LANES * sizeof(float) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "rows of %lld numbers exceed the workspace", (long long)p.k);
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    plan->p = gemm_problem_of(op);
    plan->nonzeros = op_number(op, "weight_nonzeros", 0);
    plan->bias = op_tensor(op, "bias");
    choose_kernel(plan);
    needs->packs = GEMM_B + 1;
    needs->pack_bytes = (uint64_t)(plan->p.n + 1 + 2 * plan->nonzeros) * sizeof(int32_t);
    needs->workspace_bytes = (uint64_t)(plan->p.k * plan->rows) * sizeof(float);
    return SCOUT_OK;
}

static scout_answer pack(scout_plan *plan, const void *weight, void *packed, void *stream, scout_why *why) {
    const gemm_problem *p = &plan->p;
    lists l = lists_in(plan, packed);
    int64_t count = 0;
    (void)stream;
    for (int64_t n = 0; n < p->n; n++) {
        l.begin[n] = (int32_t)count;
        for (int64_t k = 0; k < p->k; k++) {
            const float x = cpu_gemm_sparse_weight(p, weight, n, k);
            if (x == 0) continue;
            if (count == plan->nonzeros)
                return scout_say(why, SCOUT_FAILED, "error", "the weight has more than %lld numbers that are not zero",
                                 (long long)plan->nonzeros);
            l.place[count] = (int32_t)k;
            l.value[count++] = x;
        }
    }
    l.begin[p->n] = (int32_t)count;
    return SCOUT_OK;
}

typedef struct csr_job {
    const scout_plan *plan;
    const scout_args *args;
    lists weight;
    int64_t row, count;
} csr_job;

static void multiply(void *context, int thread, int threads) {
    const csr_job *j = context;
    const scout_plan *plan = j->plan;
    const lists *w = &j->weight;
    const void *bias = plan->bias < 0 ? NULL : j->args->tensors[plan->bias];
    float sums[LANES];
    int64_t from, to;
    cpu_team_share(plan->p.n, thread, threads, &from, &to);
    for (int64_t n = from; n < to; n++) {
        const int32_t first = w->begin[n];
        plan->column(j->args->workspace, w->place + first, w->value + first, w->begin[n + 1] - first, sums);
        for (int64_t i = 0; i < j->count; i++)
            cpu_gemm_sparse_store(&plan->p, bias, j->args->tensors[GEMM_C], j->row + i, n, sums[i]);
    }
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->p;
    csr_job job = {.plan = plan, .args = args, .weight = lists_in(plan, args->tensors[GEMM_B])};
    (void)why;
    for (; job.row < p->m; job.row += plan->rows) {
        job.count = p->m - job.row < plan->rows ? p->m - job.row : plan->rows;
        cpu_gemm_sparse_widen(&(cpu_gemm_sparse_rows){.p = p,
                                                      .a = args->tensors[GEMM_A],
                                                      .row = job.row,
                                                      .count = job.count,
                                                      .rows = plan->rows,
                                                      .width = p->k,
                                                      .across = 1,
                                                      .to = args->workspace});
        cpu_team_run(multiply, &job);
    }
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"csr\", \"vectors\": \"%s\", \"nonzeros\": %lld, \"threads\": \"%s\"}",
                    plan->vectors, (long long)plan->nonzeros, cpu_team_about());
}

const scout_candidate cpu_gemm_csr = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_GEMM,
    .flags = SCOUT_OWN,
    .priority = 40,
    .name = "cpu_csr",
    .about = "own product with a sparse weight in CSR",
    .approach = "SPARSE_CSR",
    .precisions = (const char *const[]){"fp32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
