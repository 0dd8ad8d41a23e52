/* Element by element by a loop of the project: blocks of 512 elements are brought to fp32 (or int64), computed, and
 * brought to the output's type, so that memory sees each tensor once. fp32 is read and written where it lies. */
#include "scout/cpu/cpu_blocks.h"
#include "scout/cpu/cpu_candidates.h"
#include "scout/cpu/cpu_elementwise_kernels.h"
#include "scout/cpu/cpu_number.h"
#include "scout/cpu/cpu_team.h"

#include "common/checked.h"

#include <stdlib.h>

enum { FEW = 4096, STEP = 64 }; /* fewer than these are done sooner alone than by waking others; a line of output */

struct scout_plan {
    elementwise_walk walk;
    cpu_elementwise_kernel *kernel;
    cpu_blocks in[ELEMENTWISE_MAX_INPUTS], out;
    cpu_elementwise_call call; /* its numbers */
    const char *what;
    int output; /* its tensor */
};

/* --- running --- */

typedef struct launching {
    const scout_plan *plan;
    void *const *tensors;
} launching;

/* One operand's block: wide enough for int64. */
typedef struct block {
    _Alignas(64) int64_t data[CPU_BLOCKS_MOST];
    const char *of; /* the element that fills it, where it is the same for all of a run */
    int64_t filled;
} block;

static const void *same_for_all(block *b, const cpu_blocks *how, const char *element, int64_t count) {
    if (b->of == element && b->filled >= count) return b->data;
    how->load(element, 0, 1, b->data);
    if (how->in_block == sizeof(int64_t)) {
        for (int64_t k = 1; k < count; k++) b->data[k] = b->data[0];
    } else {
        float *const values = (float *)(void *)b->data;
        for (int64_t k = 1; k < count; k++) values[k] = values[0];
    }
    b->of = element, b->filled = count;
    return b->data;
}

static const void *operand(const launching *l, int k, int64_t at, int64_t count, block *b) {
    const cpu_blocks *how = &l->plan->in[k];
    const char *const data = l->tensors[l->plan->walk.source[k]];
    if (l->plan->walk.strides[k][0] == 0) return same_for_all(b, how, data + (size_t)at * how->size, count);
    if (how->plain) return data + (size_t)at * how->size;
    how->load(data, at, count, b->data);
    return b->data;
}

/* Elements [from, to) of the output. */
static void compute(const launching *l, int64_t from, int64_t to) {
    const scout_plan *p = l->plan;
    const elementwise_walk *w = &p->walk;
    block blocks[ELEMENTWISE_MAX_INPUTS], result;
    cpu_elementwise_call call = p->call;
    char *const out = l->tensors[p->output];
    for (int k = 0; k < w->inputs; k++) blocks[k].of = NULL, blocks[k].filled = 0;
    while (from < to) {
        int64_t offsets[ELEMENTWISE_MAX_INPUTS] = {0}, run = elementwise_walk_to(w, from, offsets);
        if (run > to - from) run = to - from;
        while (run > 0) {
            call.count = run < CPU_BLOCKS_MOST ? run : CPU_BLOCKS_MOST;
            for (int k = 0; k < w->inputs; k++) {
                call.in[k] = operand(l, k, offsets[k], call.count, &blocks[k]);
                offsets[k] += w->strides[k][0] * call.count;
            }
            call.out = p->out.plain ? out + (size_t)from * p->out.size : (void *)result.data;
            p->kernel(&call);
            if (!p->out.plain) p->out.store(result.data, call.count, out, from);
            from += call.count, run -= call.count;
        }
    }
}

static void compute_share(void *context, int thread, int threads) {
    const launching *l = context;
    const int64_t count = l->plan->walk.count;
    int64_t from, to;
    cpu_team_share((count + STEP - 1) / STEP, thread, threads, &from, &to);
    from *= STEP, to *= STEP;
    compute(l, from, to < count ? to : count);
}

static scout_answer launch(scout_plan *plan, const scout_args *args, scout_why *why) {
    launching l = {plan, args->tensors};
    (void)why;
    if (plan->walk.count <= FEW)
        compute(&l, 0, plan->walk.count);
    else
        cpu_team_run(compute_share, &l);
    return SCOUT_OK;
}

/* --- the candidate --- */

static bool plan_of(const scout_op *op, scout_plan *p) {
    const bool wholes = op->input != SCOUT_BOOL && cpu_number_whole(op->input);
    const elementwise_id id = elementwise_id_of(op);
    const elementwise_numbers n = elementwise_numbers_of(op);
    memset(p, 0, sizeof *p);
    p->kernel = cpu_elementwise_kernel_of(id, wholes);
    p->walk = elementwise_walk_of(op);
    p->output = (int)op->tensor_count - 1;
    p->call.operands = p->walk.inputs;
    p->call.alpha = (float)n.alpha, p->call.beta = (float)n.beta;
    p->call.low = checked_from_double(n.alpha), p->call.high = checked_from_double(n.beta);
    bool good = p->kernel && cpu_blocks_of(op->output, wholes, &p->out);
    for (int k = 0; k < p->walk.inputs && good; k++)
        good = cpu_blocks_of(op->tensors[p->walk.source[k]].type, wholes, &p->in[k]);
    return good;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (plan_of(op, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "there is no loop for %.30s of this type", op->what ? op->what : "this");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    const elementwise_operator *is = elementwise_operator_of(op);
    (void)device, (void)values, (void)needs;
    *out = malloc(sizeof **out);
    if (!*out) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for a plan");
    if (is && plan_of(op, *out)) {
        (*out)->what = is->what;
        return SCOUT_OK;
    }
    free(*out);
    *out = NULL;
    return scout_say(why, SCOUT_NO, "type", "there is no loop for this operation");
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"elementwise_loop\", \"what\": \"%s\", \"threads\": \"%s\"}", plan->what,
                    plan->walk.count <= FEW ? "1 thread" : cpu_team_about());
}

static void destroy(scout_plan *plan) { free(plan); }

static const char *const precisions[] = {"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", "bool", NULL};

const scout_candidate cpu_elementwise_loop = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* the baseline of what no library has */
    .priority = 50,
    .name = "cpu_elementwise",
    .about = "own vector loop over blocks, every operator and type",
    .approach = "CUSTOM_KERNEL",
    .precisions = precisions,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .destroy = destroy,
};
