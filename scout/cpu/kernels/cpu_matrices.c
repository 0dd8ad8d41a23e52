/* Determinants and inverses of small matrices by elimination with pivots, in fp64, a matrix for each thread at a time.
 * No library in use has them in batches, so this is the baseline. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/matrix.h"

#include <math.h>

struct scout_plan {
    matrix_problem p;
};

static void swap_rows(double *a, int n, int k, int with) {
    for (int c = 0; c < n; c++) {
        const double x = a[k * n + c];
        a[k * n + c] = a[with * n + c], a[with * n + c] = x;
    }
}

static int pivot_of(const double *a, int n, int k) {
    int best = k;
    for (int r = k + 1; r < n; r++)
        if (fabs(a[r * n + k]) > fabs(a[best * n + k])) best = r;
    return best;
}

static double determinant(double *a, int n) {
    double product = 1;
    for (int k = 0; k < n; k++) {
        const int from = pivot_of(a, n, k);
        if (from != k) swap_rows(a, n, k, from), product = -product;
        const double pivot = a[k * n + k];
        product *= pivot;
        for (int r = k + 1; r < n && pivot != 0; r++) {
            const double factor = a[r * n + k] / pivot;
            for (int c = k + 1; c < n; c++) a[r * n + c] -= factor * a[k * n + c];
        }
    }
    return product;
}

/* In place: column k of the unit matrix stands where column k has become one. */
static void invert(double *a, int n) {
    int from[MATRIX_MOST];
    for (int k = 0; k < n; k++) {
        from[k] = pivot_of(a, n, k);
        swap_rows(a, n, k, from[k]);
        const double scale = 1 / a[k * n + k];
        a[k * n + k] = 1;
        for (int c = 0; c < n; c++) a[k * n + c] *= scale;
        for (int r = 0; r < n; r++) {
            const double factor = a[r * n + k];
            if (r == k) continue;
            a[r * n + k] = 0;
            for (int c = 0; c < n; c++) a[r * n + c] -= factor * a[k * n + c];
        }
    }
    for (int k = n - 1; k >= 0; k--)
        for (int r = 0; r < n && from[k] != k; r++) {
            const double x = a[r * n + k];
            a[r * n + k] = a[r * n + from[k]], a[r * n + from[k]] = x;
        }
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const matrix_problem *p = &j->plan->p;
    const int64_t each = p->n * p->n;
    void *const y = j->args->tensors[MATRIX_Y];
    double a[MATRIX_MOST * MATRIX_MOST];
    int64_t from, to;
    cpu_team_share(p->count, thread, threads, &from, &to);
    for (int64_t k = from; k < to; k++) {
        cpu_number_load(p->type, j->args->tensors[MATRIX_X], k * each, 1, each, a);
        if (!p->inverts) {
            cpu_number_store(p->type, y, k, determinant(a, (int)p->n));
            continue;
        }
        invert(a, (int)p->n);
        for (int64_t i = 0; i < each; i++) cpu_number_store(p->type, y, k * each + i, a[i]);
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!matrix_is(op)) return scout_say(why, SCOUT_NO, "feature", "only determinants and inverses are its work");
    if (matrix_problem_of(op).n <= MATRIX_MOST) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "matrices have at most %d rows", (int)MATRIX_MOST);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    plan->p = matrix_problem_of(op);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"matrices\", \"rows\": %lld, \"threads\": \"%s\"}", (long long)plan->p.n,
                    cpu_team_about());
}

const scout_candidate cpu_matrices = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "small_matrices",
    .about = "determinants and inverses of small matrices, by elimination in fp64, a matrix for each thread",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp64", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
