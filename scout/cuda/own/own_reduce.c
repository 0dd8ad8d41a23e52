/* reduce_pass as a candidate: every reduction and type of scout/op/reduce.h. */
#include "scout/cuda/own/own.h"
#include "scout/op/reduce.h"

struct scout_plan {
    reduce_pass pass;
    const char *what;
};

static const int operators[REDUCE_COUNT] = {
#define OPERATOR(name, wholes, place, exact, positive) [REDUCE_##name] = REDUCE_PASS_##name,
    REDUCE_OPERATORS(OPERATOR)
#undef OPERATOR
};

_Static_assert((int)SCOUT_MAX_RANK == (int)PASS_RANK, "the pass takes what an operation may have");

static reduce_pass_side side_of(const reduce_side *s) {
    reduce_pass_side side = {.rank = s->rank, .count = s->count};
    memcpy(side.dims, s->dims, sizeof side.dims);
    memcpy(side.strides, s->strides, sizeof side.strides);
    return side;
}

static int plan_of(const scout_op *op, scout_plan *p) {
    reduce_id id = REDUCE_COUNT;
    const reduce_operator *is = reduce_operator_of(op, &id);
    memset(p, 0, sizeof *p);
    if (!is) return 0;
    const reduce_problem r = reduce_problem_of(op);
    p->what = is->what;
    p->pass = (reduce_pass){.what = operators[id],
                            .type = (int)op->input,
                            .last = is->place && r.last,
                            .kept = side_of(&r.kept),
                            .reduced = side_of(&r.reduced)};
    return reduce_pass_fits(&p->pass);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (reduce_goes_along(op)) return scout_say(why, SCOUT_NO, "feature", "running sums and searches are not its work");
    if (!plan_of(op, &p))
        return scout_say(why, SCOUT_NO, "type", "reduce_pass has no %.30s of this type", op->what ? op->what : "this");
    if (reduce_pass_workspace(&p.pass) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "the parts of its outputs do not fit into the workspace");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)why;
    scout_plan *const p = *out;
    (void)plan_of(op, p);
    p->pass.config = own_pass_config(values);
    needs->workspace_bytes = reduce_pass_workspace(&p->pass);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    const int error = reduce_pass_launch(&plan->pass, args->tensors[REDUCE_X], args->tensors[REDUCE_Y], args->workspace,
                                         args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching reduce_pass", why) : SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room,
                    "{\"kernel\":\"reduce_pass\",\"what\":\"%s\",\"mode\":\"%s\",\"threads\":%d,\"resident\":%d}",
                    plan->what, reduce_pass_mode(&plan->pass), plan->pass.config.threads, plan->pass.config.resident);
}

const scout_candidate own_reduce = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "reduce_pass",
    .about = "own kernels along rows or across them, every reduction and type; the baseline, as PyTorch's own are",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
