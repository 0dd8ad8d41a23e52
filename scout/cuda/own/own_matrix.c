/* matrix_pass as a candidate: determinants and inverses of small matrices (scout/op/matrix.h). */
#include "kernels/rows/matrix_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/matrix.h"

_Static_assert((int)MATRIX_MOST <= (int)MATRIX_PASS_MOST, "the pass takes what an operation may have");

struct scout_plan {
    matrix_pass pass;
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!matrix_is(op)) return scout_say(why, SCOUT_NO, "feature", "only determinants and inverses are its work");
    if (matrix_problem_of(op).n <= MATRIX_MOST) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "shape", "matrices have at most %d rows", (int)MATRIX_MOST);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs;
    scout_plan *const p = *out;
    const matrix_problem m = matrix_problem_of(op);
    p->pass = (matrix_pass){m.inverts, (int)m.type, (int)m.n, m.count};
    if (matrix_pass_fits(&p->pass)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "matrix_pass takes fp32 and fp64");
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = matrix_pass_launch(&p->pass, t[MATRIX_X], t[MATRIX_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching matrix_pass", why) : SCOUT_OK;
}

const scout_candidate own_matrix = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "matrix_pass",
    .about = "own kernel for determinants and inverses, a warp for each matrix in shared memory",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "fp64", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .plan_bytes = sizeof(scout_plan),
};
