/* The scripted device's products: right ones of known speed, and the reference that they are held against. */
#include "tests/fakes/scripted/device.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SMALL_M = 16, FLAWED_M = 8 };

struct scout_plan {
    const scout_op *op;
    gemm_problem problem;
    double factor, noise;
    uint64_t random;
};

/* Relative times; what stands at 4 swings, and is there only where CEILING_SCOUT_SCRIPTED_NOISY is set. */
static const struct {
    double factor, noise;
} algorithms[] = {{1.5, 0.002}, {1.2, 0.002}, {2, 0.002}, {3, 0.002}, {1.25, 0.6}};

static scout_answer blas_domain(const scout_op *op, scout_device *device, int exhaustive, scout_domain *out,
                                scout_why *why) {
    (void)op, (void)device, (void)exhaustive, (void)why;
    out->count = 1;
    snprintf(out->parameters[0].name, sizeof out->parameters[0].name, "algo");
    out->parameters[0].labels = NULL;
    out->parameters[0].count = getenv("CEILING_SCOUT_SCRIPTED_NOISY") ? 5 : 4;
    for (uint32_t k = 0; k < out->parameters[0].count; k++) out->parameters[0].values[k] = k;
    return SCOUT_OK;
}

/* CEILING_SCOUT_SCRIPTED_HEAVY: products with so many rows take this many times what their size lets expect. */
static double weight_of(const scout_op *op) {
    const char *rows = getenv("CEILING_SCOUT_SCRIPTED_HEAVY");
    return rows && op->shape[0] == strtol(rows, NULL, 10) ? 20000 : 1;
}

static scout_answer make_plan(const scout_op *op, double factor, double noise, scout_plan **plan,
                              scout_plan_needs *needs, scout_why *why) {
    scripted_prepares(op);
    scout_plan *p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
    *p = (scout_plan){op, gemm_problem_of(op), factor * weight_of(op), noise, 12345};
    needs->packs = 0;
    needs->pack_bytes = needs->workspace_bytes = 0;
    *plan = p;
    return SCOUT_OK;
}

/* The file that the variable names is there. */
static bool is_set(const char *variable) {
    const char *const file = getenv(variable);
    return file && access(file, F_OK) == 0;
}

static scout_answer blas_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                 scout_plan_needs *needs, scout_why *why) {
    const int64_t algo = values ? values[0] : 0;
    (void)device;
    if (is_set("CEILING_SCOUT_SCRIPTED_FULL")) return scout_say(why, SCOUT_NO_MEMORY, "memory", "it is full");
    if (is_set("CEILING_SCOUT_SCRIPTED_REFUSES")) return scout_say(why, SCOUT_NO, "feature", "not any more");
    if (algo < 0 || algo >= (int64_t)(sizeof algorithms / sizeof algorithms[0]))
        return scout_say(why, SCOUT_FAILED, "error", "no algorithm %lld", (long long)algo);
    return make_plan(op, algorithms[algo].factor, algorithms[algo].noise, plan, needs, why);
}

static void compute(void *plan, void *const *tensors, void *workspace) {
    const scout_plan *p = plan;
    (void)workspace;
    scripted_multiply(&p->problem, tensors[GEMM_A], tensors[GEMM_B], tensors[GEMM_C]);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scripted_stream *s = args->stream;
    scripted_work w = scripted_work_of(plan->op, args);
    w.compute = compute;
    w.plan = plan;
    w.factor = plan->factor;
    w.noise = plan->noise;
    w.random = &plan->random;
    return s->push(s, &w, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"factor\": %.2f}", plan->factor);
}

static void destroy(scout_plan *plan) { free(plan); }

static scout_answer stream_supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op->shape[0] > SMALL_M) return scout_say(why, SCOUT_NO, "shape", "for M of at most %d", SMALL_M);
    return scripted_supports(op, device, why);
}

/* CEILING_SCOUT_SCRIPTED_FLAW: how preparing it for FLAWED_M rows ends. */
static void fail_as(const char *how) {
    if (how && strcmp(how, "crash") == 0) raise(SIGSEGV);
    while (how && strcmp(how, "hang") == 0) pause();
}

static scout_answer stream_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                   scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values;
    if (op->shape[0] == FLAWED_M) fail_as(getenv("CEILING_SCOUT_SCRIPTED_FLAW"));
    return make_plan(op, 1.02, 0.002, plan, needs, why);
}

/* Four times as slow as the library for each number, so that it wins from three quarters of zeros on. */
static scout_answer sparse_supports(const scout_op *op, scout_device *device, scout_why *why) {
    if (op_number(op, "weight_nonzeros", -1) < 0) return scout_say(why, SCOUT_NO, "pattern", "the weight is dense");
    return scripted_supports(op, device, why);
}

static scout_answer sparse_prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                                   scout_plan_needs *needs, scout_why *why) {
    const double all = (double)op->shape[1] * (double)op->shape[2];
    (void)device, (void)values;
    return make_plan(op, 4 * algorithms[0].factor * (double)op_number(op, "weight_nonzeros", 0) / all, 0.002, plan,
                     needs, why);
}

static scout_answer absent_supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)op, (void)device;
    return scout_say(why, SCOUT_NO, "hardware", "this device has nothing of the kind");
}

static const char *const precisions[] = {"fp32", NULL};

#define PRODUCT(its_name, says, its_flags, rank, from, wins, can, variants, make)                                      \
    {                                                                                                                  \
        .size = sizeof(scout_candidate), .kind = SCOUT_GEMM, .flags = (its_flags), .priority = (rank),                 \
        .name = (its_name), .about = (says), .library = (from), .approach = (wins), .precisions = precisions,          \
        .supports = (can), .domain = (variants), .prepare = (make), .launch = launch, .describe = describe,            \
        .destroy = destroy                                                                                             \
    }

const scout_candidate scripted_blas =
    PRODUCT("scripted_blas", "the library of the scripted device", SCOUT_BASELINE, 100, "scriptlib", "LIBRARY_TUNE",
            scripted_supports, blas_domain, blas_prepare);
const scout_candidate scripted_stream_k = PRODUCT("scripted_stream", "for few rows", SCOUT_OWN, 50, NULL,
                                                  "CUSTOM_KERNEL", stream_supports, NULL, stream_prepare);
const scout_candidate scripted_absent = PRODUCT("scripted_absent", "needs hardware that is not there", SCOUT_OWN, 40,
                                                NULL, "CUSTOM_KERNEL", absent_supports, NULL, stream_prepare);

const scout_candidate scripted_sparse = PRODUCT("scripted_sparse", "leaves zeros out", SCOUT_OWN, 45, NULL,
                                                "SPARSE_CSR", sparse_supports, NULL, sparse_prepare);

/* ---- the reference: every output, in fp64 ---- */

struct scout_check {
    gemm_problem problem;
    double *want, *spread; /* owned, [batch][m][n] */
};

static void end(scout_check *check) {
    if (!check) return;
    free(check->want);
    free(check->spread);
    free(check);
}

static void compute_right(scout_check *c, const float *a, const float *b) {
    const gemm_problem *p = &c->problem;
    size_t at = 0;
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t n = 0; n < p->n; n++, at++) {
                const float *x = a + i * p->stride_a + (p->trans_a ? m : m * p->lda);
                const float *y = b + i * p->stride_b + (p->trans_b ? n * p->ldb : n);
                double sum = 0, squares = 0;
                for (int64_t k = 0; k < p->k; k++) {
                    const double term = (double)x[k * (p->trans_a ? p->lda : 1)] * y[k * (p->trans_b ? 1 : p->ldb)];
                    sum += term;
                    squares += term * term;
                }
                c->want[at] = sum;
                c->spread[at] = sqrt(squares);
            }
}

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    const gemm_problem p = gemm_problem_of(op);
    const size_t outputs = (size_t)(p.batch * p.m * p.n);
    (void)device, (void)seed;
    if (scripted_too_large(&p))
        return scout_say(why, SCOUT_NO, "shape", "too large for the scripted device's reference");
    scout_check *c = calloc(1, sizeof *c);
    if (c) *c = (scout_check){p, calloc(outputs + 1, sizeof(double)), calloc(outputs + 1, sizeof(double))};
    if (!c || !c->want || !c->spread) {
        end(c);
        return scout_say(why, SCOUT_NO_MEMORY, "memory", "out of memory");
    }
    compute_right(c, tensors[GEMM_A], tensors[GEMM_B]);
    *check = c;
    return SCOUT_OK;
}

static scout_answer compare(scout_check *c, const void *output, double tolerance, scout_verdict *v, scout_why *why) {
    const gemm_problem *p = &c->problem;
    const float *got = output;
    size_t at = 0;
    (void)why;
    v->worst = v->worst_projected = 0;
    v->compared = v->wrong = 0;
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t n = 0; n < p->n; n++, at++) {
                const double x = got[i * p->stride_c + m * p->ldc + n];
                double error = fabs(x - c->want[at]) / (fabs(c->want[at]) + c->spread[at]);
                if (isnan(error)) error = x == c->want[at] ? 0 : INFINITY;
                v->compared++;
                v->wrong += error > tolerance;
                if (at > 0 && error <= v->worst) continue;
                v->worst = error, v->at = at, v->got = x, v->want = c->want[at];
            }
    return SCOUT_OK;
}

const scout_reference scripted_reference = {
    .size = sizeof(scout_reference), .kind = SCOUT_GEMM, .begin = begin, .compare = compare, .end = end};

scout_plugin_entry_fn scout_plugin_entry;
const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static const scout_plugin plugin = {
        .size = sizeof plugin, .abi = SCOUT_ABI, .name = "scripted", .version = "1", .device = &scripted_device};
    if (!getenv("CEILING_SCOUT_SCRIPTED_BESIDE")) scripted_device.beside = NULL;
    return abi == SCOUT_ABI ? &plugin : NULL;
}
