/* random_pass as a candidate: random numbers by counting (scout/op/random.h). */
#include "kernels/pass/random_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/random.h"

_Static_assert((int)RANDOM_PASS_NORMAL == (int)RANDOM_NORMAL && (int)RANDOM_PASS_BERNOULLI == (int)RANDOM_BERNOULLI,
               "the pass numbers as operations do");

struct scout_plan {
    random_pass pass;
    int y; /* tensor */
};

/* false: no random numbers, or not of this type. */
static int plan_of(const scout_op *op, scout_plan *p) {
    if (random_how_of(op) == RANDOM_HOWS) return 0;
    const random_problem r = random_problem_of(op);
    p->pass = (random_pass){.how = (int)r.how,
                            .from = (int)r.from,
                            .to = (int)r.to,
                            .count = r.count,
                            .alpha = r.alpha,
                            .beta = r.beta,
                            .key = RANDOM_KEY};
    p->y = r.how == RANDOM_BERNOULLI;
    return random_pass_fits(&p->pass);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (plan_of(op, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "only random numbers, in types of whole bytes, are its work");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *out;
    (void)device, (void)needs;
    if (!plan_of(op, p)) return scout_say(why, SCOUT_NO, "feature", "random_pass does not support this operation");
    p->pass.config = own_pass_config(values);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = random_pass_launch(&p->pass, p->y ? t[0] : NULL, t[p->y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching random_pass", why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"random_pass\",\"generator\":\"philox4x32-10\",\"threads\":%d}",
                    p->pass.config.threads);
}

const scout_candidate own_random = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "random_pass",
    .about = "own generator that counts (Philox4x32-10); the baseline, as no library in use has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "fp64", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
