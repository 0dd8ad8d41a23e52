/* Custom kernels for the scripted device that are right, and of known speed: what comes out of comparing them with its
 * library (a factor of 1.5) is known beforehand. */
#include "tests/fakes/scripted/scripted.h"

struct scout_plan {
    const scout_op *op;
    gemm_problem problem;
    double factor;
    uint64_t random;
};

static void compute(void *plan, void *const *tensors, void *workspace) {
    const scout_plan *p = plan;
    (void)workspace;
    scripted_multiply(&p->problem, tensors[GEMM_A], tensors[GEMM_B], tensors[GEMM_C]);
}

static scout_answer prepare(double factor, const scout_op *op, scout_plan **plan, scout_why *why) {
    scout_plan *p = calloc(1, sizeof *p);
    if (!p) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    *p = (scout_plan){op, gemm_problem_of(op), factor, 12345};
    *plan = p;
    return SCOUT_OK;
}

/* prepare is not told which candidate it is: one function each. */
#define PREPARE(name, factor)                                                                                          \
    static scout_answer name(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **plan,       \
                             scout_plan_needs *needs, scout_why *why) {                                                \
        (void)device, (void)values, (void)needs;                                                                       \
        return prepare(factor, op, plan, why);                                                                         \
    }
PREPARE(prepare_better, 1.1)
PREPARE(prepare_slower, 2.0)
PREPARE(prepare_same, 1.5)
PREPARE(prepare_near, 1.4624)

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    scripted_stream *s = args->stream;
    scripted_work w = scripted_work_of(plan->op, args);
    w.compute = compute;
    w.plan = plan;
    w.factor = plan->factor;
    w.noise = 0.002;
    w.random = &plan->random;
    return s->push(s, &w, why);
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"factor\": %.2f}", plan->factor);
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", NULL};
#define CUSTOM(its_name, says, make)                                                                                   \
    {                                                                                                                  \
        .size = sizeof(scout_candidate), .kind = SCOUT_GEMM, .flags = SCOUT_OWN, .priority = 60, .name = (its_name),   \
        .about = (says), .approach = "CUSTOM_KERNEL", .precisions = precisions, .supports = scripted_supports,         \
        .prepare = (make), .launch = launch, .describe = describe, .destroy = destroy                                  \
    }
static const scout_candidate better = CUSTOM("custom_better", "a quarter faster", prepare_better);
static const scout_candidate slower = CUSTOM("custom_slower", "a third slower", prepare_slower);
static const scout_candidate same = CUSTOM("custom_same", "no faster", prepare_same);
static const scout_candidate near = CUSTOM("custom_near", "at 64 x 64 x 64 faster by the margin", prepare_near);

scout_plugin_entry_fn scout_plugin_entry;
const scout_plugin *scout_plugin_entry(uint32_t abi) {
    static const scout_candidate *const list[] = {&better, &slower, &same, &near};
    static const scout_plugin plugin = {.size = sizeof plugin,
                                        .abi = SCOUT_ABI,
                                        .name = "custom",
                                        .version = "1",
                                        .for_device = "scripted",
                                        .candidate_count = sizeof list / sizeof list[0],
                                        .candidates = list};
    return abi == SCOUT_ABI ? &plugin : NULL;
}
