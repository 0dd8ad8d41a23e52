/* Passes along the lines of one dimension as a candidate: running sums, and the best of each line. */
#include "kernels/pass/line_kernels.h"
#include "scout/cuda/own/own.h"
#include "scout/op/reduce.h"

struct scout_plan {
    int searches;
    running_pass running;
    search_pass search;
};

static int plan_of(const scout_op *op, scout_plan *p) {
    memset(p, 0, sizeof *p);
    const reduce_lines l = reduce_lines_of(op);
    p->searches = l.searches;
    if (l.searches) {
        p->search = (search_pass){.type = (int)op->input,
                                  .largest = l.largest,
                                  .outer = l.outer,
                                  .length = l.length,
                                  .inner = l.inner,
                                  .kept = l.kept};
        return search_pass_fits(&p->search);
    }
    p->running = (running_pass){.type = (int)op->input,
                                .products = l.products,
                                .exclusive = l.exclusive,
                                .backward = l.backward,
                                .outer = l.outer,
                                .length = l.length,
                                .inner = l.inner};
    return running_pass_fits(&p->running);
}

static size_t workspace_of(const scout_plan *p) { return p->searches ? search_pass_workspace(&p->search) : 0; }

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (!reduce_goes_along(op))
        return scout_say(why, SCOUT_NO, "feature", "only running sums and searches are its work");
    if (!plan_of(op, &p)) return scout_say(why, SCOUT_NO, "type", "line_pass has no %.30s of this type", op->what);
    if (workspace_of(&p) > op->workspace_limit)
        return scout_say(why, SCOUT_NO, "memory", "the keys of all lines do not fit into the workspace");
    return SCOUT_OK;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    scout_plan *const p = *out;
    (void)device, (void)values;
    if (!plan_of(op, p)) return scout_say(why, SCOUT_NO, "type", "line_pass does not support this operation");
    needs->workspace_bytes = workspace_of(p);
    return SCOUT_OK;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = p->searches ? search_pass_launch(&p->search, t[REDUCE_X], t[REDUCE_Y], t[REDUCE_PLACES],
                                                       args->workspace, args->stream)
                                  : running_pass_launch(&p->running, t[REDUCE_X], t[REDUCE_Y], args->stream);
    return error ? cuda_device_answer((cudaError_t)error, "launching line_pass", why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\":\"%s\",\"mode\":\"%s\"}", p->searches ? "search_pass" : "running_pass",
                    p->searches ? search_pass_mode(&p->search) : running_pass_mode(&p->running));
}

const scout_candidate own_lines = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_REDUCE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "line_pass",
    .about = "own kernels for running sums and the largest of each line; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
