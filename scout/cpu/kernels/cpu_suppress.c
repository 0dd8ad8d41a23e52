/* Boxes that overlap better ones are given up: an image's class is a thread's. What is left of its boxes lies together,
 * and each one that is kept leaves fewer. No library here has such a call, so this is the baseline. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/op/suppress.h"

typedef struct left {
    suppress_box box;
    float score;
    int32_t at;
} left;

struct scout_plan {
    suppress_problem p;
};

/* The workspace: how many each list keeps, which, and for each thread what is left of one. */
static int64_t lists_of(const suppress_problem *p) { return p->images * p->classes; }
static int32_t *counts_of(const cpu_job *j) { return j->args->workspace; }
static int32_t *kept_of(const cpu_job *j, int64_t list) {
    const suppress_problem *p = &j->plan->p;
    return counts_of(j) + lists_of(p) + list * p->most;
}
static uint64_t bytes_before(const suppress_problem *p) {
    const uint64_t bytes = sizeof(int32_t) * (uint64_t)(lists_of(p) * (1 + p->most));
    return (bytes + 63) / 64 * 64;
}
static uint64_t bytes_each(const suppress_problem *p) { return (sizeof(left) * (uint64_t)p->boxes + 63) / 64 * 64; }

/* What is no number is above no threshold. */
static int64_t gather(const cpu_job *j, int64_t list, left *to) {
    const suppress_problem *p = &j->plan->p;
    const float *boxes = (const float *)j->args->tensors[SUPPRESS_BOXES] + list / p->classes * p->boxes * 4;
    const float *scores = (const float *)j->args->tensors[SUPPRESS_SCORES] + list * p->boxes;
    int64_t count = 0;
    for (int64_t k = 0; k < p->boxes; k++)
        if (scores[k] > p->threshold)
            to[count++] = (left){suppress_box_of(boxes + 4 * k, p->centred), scores[k], (int32_t)k};
    return count;
}

static void choose(const cpu_job *j, int64_t list, left *of) {
    const suppress_problem *p = &j->plan->p;
    int32_t *const kept = kept_of(j, list), taken = 0;
    int64_t count = gather(j, list, of);
    while (taken < p->most && count > 0) {
        int64_t best = 0, stay = 0;
        for (int64_t k = 1; k < count; k++)
            if (of[k].score > of[best].score) best = k;
        const left its = of[best];
        kept[taken++] = its.at;
        for (int64_t k = 0; k < count; k++)
            if (k != best && !suppress_overlaps(&its.box, &of[k].box, p->overlap)) of[stay++] = of[k];
        count = stay;
    }
    counts_of(j)[list] = taken;
}

static void share(void *context, int thread, int threads) {
    const cpu_job *j = context;
    const suppress_problem *p = &j->plan->p;
    left *const of = (left *)((char *)j->args->workspace + bytes_before(p) + (uint64_t)thread * bytes_each(p));
    for (int64_t list = thread; list < lists_of(p); list += threads) choose(j, list, of);
}

/* One list behind the other, and zeros behind the last. */
static void put(const cpu_job *j) {
    const suppress_problem *p = &j->plan->p;
    int64_t *y = j->args->tensors[SUPPRESS_Y], *const end = y + 3 * lists_of(p) * p->most;
    for (int64_t list = 0; list < lists_of(p); list++)
        for (int32_t k = 0; k < counts_of(j)[list]; k++, y += 3)
            y[0] = list / p->classes, y[1] = list % p->classes, y[2] = kept_of(j, list)[k];
    memset(y, 0, (size_t)(end - y) * sizeof *y);
}

static uint64_t workspace_of(const suppress_problem *p) {
    return bytes_before(p) + (uint64_t)cpu_team_size() * bytes_each(p);
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    (void)device;
    if (!suppress_is(op)) return scout_say(why, SCOUT_NO, "feature", "only the suppression of boxes is its work");
    const suppress_problem p = suppress_problem_of(op);
    return cpu_team_room(workspace_of(&p), op->workspace_limit, why);
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const plan = *out;
    (void)device, (void)values, (void)why;
    plan->p = suppress_problem_of(op);
    needs->workspace_bytes = workspace_of(&plan->p);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    cpu_job job = {plan, args};
    (void)why;
    cpu_team_run(share, &job);
    put(&job);
    return SCOUT_OK;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    (void)plan;
    return snprintf(json, room, "{\"kernel\": \"suppress\", \"threads\": \"%s\"}", cpu_team_about());
}

const scout_candidate cpu_suppress = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "suppress_boxes",
    .about = "own loops that keep the best boxes and give up what overlaps them, a class for each thread",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
