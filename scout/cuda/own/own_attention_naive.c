/* attention_naive as a candidate: a reference for the build, and the baseline where no library computes it. */
#include "scout/cuda/own/own.h"
#include "scout/op/attention.h"

struct scout_plan {
    attention_shape shape;
    const scout_op *op;
    uint32_t *blocks; /* owned, on the device; NULL: it has no block mask */
};

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    const scout_answer plain = own_attention_plain(op, why);
    (void)device;
    if (plain != SCOUT_OK) return plain;
    const attention_problem p = attention_problem_of(op);
    if (p.dim > ATTENTION_NAIVE_DIM || p.v_dim > ATTENTION_NAIVE_DIM)
        return scout_say(why, SCOUT_NO, "shape", "attention_naive is for heads of at most %d",
                         (int)ATTENTION_NAIVE_DIM);
    if ((double)p.batch * (double)p.heads * (double)p.queries > 8.0 * INT32_MAX)
        return scout_say(why, SCOUT_NO, "shape", "attention_naive is for fewer queries");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,
                            scout_plan_needs *needs, scout_why *why) {
    (void)values, (void)needs;
    scout_plan *const p = *plan;
    p->shape = own_attention_shape(op);
    p->op = op;
    return own_attention_blocks(op, device, &p->blocks, why);
}

static void destroy(scout_plan *plan) { cuda_device_release(NULL, plan->blocks); }

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const attention_tensors tensors = own_attention_tensors(plan->op, args->tensors, plan->blocks);
    const int error = attention_naive_launch(&plan->shape, &tensors, args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching attention_naive", why) : SCOUT_OK;
}

const scout_candidate own_attention_naive = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ATTENTION,
    .flags = SCOUT_OWN | SCOUT_BASELINE | SCOUT_LAST,
    .priority = -100,
    .name = "attention_naive",
    .about = "own attention, one warp for each query: a reference for the build, the baseline where there is no other",
    .approach = "CUSTOM_ATTENTION",
    .precisions = (const char *const[]){"fp32", "tf32", "fp16", "bf16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .plan_bytes = sizeof(scout_plan),
};
