/* Reductions that models seldom have, by a plain loop in fp64: those of fp64, the logarithm of a sum of exponentials,
 * and the last of equal places. Threads share the outputs. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_number.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/reduce.h"

#include <math.h>
#include <stdbool.h>

enum { RUN = 512 };

/* The greatest number of what has exponentials, in `more` their sum over its own. */
typedef struct found {
    double value, more;
    int64_t place, count;
} found;

struct scout_plan {
    reduce_problem p;
    reduce_id id;
    uint32_t from, to;
};

static void add(const scout_plan *plan, found *f, double x) {
    const bool first = f->count == 0, greater = first || x > f->value, less = first || x < f->value;
    switch (plan->id) {
    case REDUCE_prod: f->value = first ? x : f->value * x; break;
    case REDUCE_l1: f->value += fabs(x); break;
    case REDUCE_l2:
    case REDUCE_sumsquare: f->value += x * x; break;
    case REDUCE_max:
    case REDUCE_argmax:
        if (greater || (plan->p.last && x == f->value)) f->value = x, f->place = f->count;
        break;
    case REDUCE_min:
    case REDUCE_argmin:
        if (less || (plan->p.last && x == f->value)) f->value = x, f->place = f->count;
        break;
    case REDUCE_logsumexp:
        f->more = greater ? (first ? 0 : f->more * exp(f->value - x)) + 1 : f->more + exp(x - f->value);
        if (greater) f->value = x;
        break;
    default: f->value += x; break;
    }
    f->count++;
}

static double finished(const scout_plan *plan, const found *f) {
    switch (plan->id) {
    case REDUCE_mean: return f->value / (double)f->count;
    case REDUCE_l2: return sqrt(f->value);
    case REDUCE_logsum: return log(f->value);
    case REDUCE_logsumexp: return f->value + log(f->more);
    case REDUCE_argmax:
    case REDUCE_argmin: return (double)f->place;
    default: return f->value;
    }
}

static void reduce_share(void *context, int thread, int threads) {
    const cpu_job *job = context;
    const scout_plan *plan = job->plan;
    const reduce_side *reduced = &plan->p.reduced;
    double block[RUN];
    int64_t from, to;
    cpu_team_share(plan->p.kept.count, thread, threads, &from, &to);
    for (int64_t output = from; output < to; output++) {
        found f = {0, 0, 0, 0};
        int64_t base, offset;
        (void)reduce_to(&plan->p.kept, output, &base);
        for (int64_t at = 0; at < reduced->count;) {
            int64_t run = reduce_to(reduced, at, &offset);
            if (run > RUN) run = RUN;
            cpu_number_load(plan->from, job->args->tensors[REDUCE_X], base + offset, reduced->strides[0], run, block);
            for (int64_t k = 0; k < run; k++) add(plan, &f, block[k]);
            at += run;
        }
        cpu_number_store(plan->to, job->args->tensors[REDUCE_Y], output, finished(plan, &f));
    }
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    reduce_id id = REDUCE_COUNT;
    (void)device;
    if (reduce_goes_along(op) || !reduce_operator_of(op, &id))
        return scout_say(why, SCOUT_NO, "feature", "running sums and searches are not its work");
    if (cpu_number_whole(op->input) && cpu_number_bits(op->input) > 32)
        return scout_say(why, SCOUT_NO, "type", "fp64 does not hold all integers of 64 bits");
    if (op->input == SCOUT_FP64 || id == REDUCE_logsumexp || reduce_problem_of(op).last) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "feature", "only fp64, logsumexp and the last of equal places are its work");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)needs, (void)why;
    *plan = (scout_plan){.p = reduce_problem_of(op), .id = REDUCE_COUNT, .from = op->input, .to = op->output};
    (void)reduce_operator_of(op, &plan->id);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    (void)why;
    return cpu_team_launch(reduce_share, plan, args);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"reduce_any\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_reduce_any = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 40,
    .name = "cpu_reduce_any",
    .about = "fp64, logsumexp and the last of equal places, by a plain loop",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp64", "fp32", "bf16", "fp16", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
