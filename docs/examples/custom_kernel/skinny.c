/* A custom kernel for the CPU: C[M,N] = A[M,K] * B[K,N] in fp32 for up to 4 rows of A. So few rows reuse nothing of B: the
 * time is that of reading B once, in the order in which it lies. Each thread takes strips of columns and walks down
 * them; its sums stay in the first-level cache. How wide a strip is, is a parameter: scout_batch tries all values. */
#include "scout/op/gemm.h"

enum { MOST_ROWS = 4, MOST_COLUMNS = 1024, DEPTH = 4 };

struct scout_plan {
    gemm_problem problem;
    int64_t columns; /* of a strip */
};

/* Cheap, and honest: whatever is not refused here is measured, and checked. */
static scout_answer skinny_supports(const scout_op *op, scout_device *device, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    (void)device;
    if (p.type_a != SCOUT_FP32 || p.type_b != SCOUT_FP32 || p.type_c != SCOUT_FP32)
        return scout_say(why, SCOUT_NO, "type", "computes in fp32 only");
    if (p.m > MOST_ROWS || p.batch != 1) return scout_say(why, SCOUT_NO, "shape", "for one product of up to 4 rows");
    if (p.trans_a || p.trans_b) return scout_say(why, SCOUT_NO, "layout", "for matrices that lie row by row");
    if (op->tensor_count != 3 || gemm_has_epilogue(&p) || p.alpha != 1)
        return scout_say(why, SCOUT_NO, "epilogue", "a plain product, without bias or activation");
    return SCOUT_OK;
}

static scout_answer skinny_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                  scout_why *why) {
    static const int64_t widths[] = {256, 512, 1024};
    scout_parameter *columns = &out->parameters[0];
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    snprintf(columns->name, sizeof columns->name, "columns");
    columns->count = sizeof widths / sizeof widths[0];
    memcpy(columns->values, widths, sizeof widths);
    columns->labels = NULL;
    return SCOUT_OK;
}

static scout_answer skinny_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                   scout_plan_needs *needs, scout_why *why) {
    scout_plan *p = malloc(sizeof *p);
    (void)device;
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    p->problem = gemm_problem_of(op);
    p->columns = values[0];
    needs->packs = 0; /* B is read as it lies */
    needs->pack_bytes = needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

/* Columns [first, first + width) of all rows. */
static void strip(const gemm_problem *p, const float *a, const float *b, float *c, int64_t first, int64_t width) {
    float sums[MOST_ROWS][MOST_COLUMNS];
    int64_t k = 0;
    memset(sums, 0, sizeof sums);
    for (; k + DEPTH <= p->k; k += DEPTH) {
        const float *b0 = b + k * p->ldb + first, *b1 = b0 + p->ldb, *b2 = b1 + p->ldb, *b3 = b2 + p->ldb;
        for (int64_t i = 0; i < p->m; i++) {
            const float *x = a + i * p->lda + k;
            const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
            float *sum = sums[i];
            for (int64_t j = 0; j < width; j++) sum[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
        }
    }
    for (; k < p->k; k++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < width; j++) sums[i][j] += a[i * p->lda + k] * b[k * p->ldb + first + j];
    for (int64_t i = 0; i < p->m; i++) memcpy(c + i * p->ldc + first, sums[i], (size_t)width * sizeof(float));
}

static scout_answer skinny_launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const gemm_problem *p = &plan->problem;
    const int64_t columns = plan->columns, strips = (p->n + columns - 1) / columns;
    const float *a = args->tensors[GEMM_A], *b = args->tensors[GEMM_B];
    float *c = args->tensors[GEMM_C];
    (void)why;
#pragma omp parallel for schedule(static)
    for (int64_t s = 0; s < strips; s++) {
        const int64_t first = s * columns, left = p->n - first;
        strip(p, a, b, c, first, left < columns ? left : columns);
    }
    return SCOUT_OK;
}

/* What is needed to run this variant again; it goes into the report. */
static int skinny_describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"columns\": %lld}", (long long)plan->columns);
}

static void skinny_destroy(scout_plan *plan) { free(plan); }

scout_plugin_entry_fn scout_plugin_entry;
const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static const char *const precisions[] = {"fp32", NULL};
    static const scout_candidate skinny = {.size = sizeof skinny,
                                           .kind = SCOUT_GEMM,
                                           .flags = SCOUT_OWN,
                                           .priority = 60,
                                           .name = "example_skinny",
                                           .about = "products of up to 4 rows, an example of a custom kernel",
                                           .approach = "CUSTOM_KERNEL",
                                           .precisions = precisions,
                                           .supports = skinny_supports,
                                           .domain = skinny_domain,
                                           .prepare = skinny_prepare,
                                           .launch = skinny_launch,
                                           .describe = skinny_describe,
                                           .destroy = skinny_destroy};
    static const scout_candidate *const list[] = {&skinny};
    static const scout_plugin plugin = {.size = sizeof plugin,
                                        .abi = SCOUT_ABI,
                                        .name = "skinny",
                                        .version = "1",
                                        .for_device = "cpu",
                                        .candidate_count = 1,
                                        .candidates = list};
    return abi == SCOUT_ABI ? &plugin : NULL; /* NULL: built against another version of the interface */
}
