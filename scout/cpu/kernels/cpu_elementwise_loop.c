/* Elementwise operations by an own loop: blocks of 512 elements are converted to fp32 (or int64), computed step by step
 * in L1, and converted to the output's type, so that each tensor passes memory once, however many operators there are.
 * fp32 is read and written in place. */
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/kernels/cpu_elementwise_steps.h"

#include <stdlib.h>

enum { FEW = 4096, STEP = 64 }; /* below this one thread is faster than waking others; a line of output */

struct scout_plan {
    elementwise_walk walk;
    cpu_elementwise_steps run;
    int output; /* its tensor */
    char what[24];
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
    const cpu_blocks *how = &l->plan->run.in[k];
    const char *const data = l->tensors[l->plan->walk.source[k]];
    if (l->plan->walk.strides[k][0] == 0) return same_for_all(b, how, data + (size_t)at * how->size, count);
    if (how->plain) return data + (size_t)at * how->size;
    how->load(data, at, count, b->data);
    return b->data;
}

/* What a share works in: each operand's block, and two for the value, which steps write in turn. */
typedef struct scratch {
    block operands[ELEMENTWISE_MAX_OPERANDS], values[2];
} scratch;

/* `count` elements from output element `at`, with operands at `offsets`. */
static void compute_block(const launching *l, scratch *r, const int64_t *offsets, int64_t at, int64_t count) {
    const cpu_elementwise_steps *run = &l->plan->run;
    char *const out = (char *)l->tensors[l->plan->output] + (size_t)at * run->out.size;
    const void *in[ELEMENTWISE_MAX_OPERANDS], *value = NULL;
    for (int k = 0; k < l->plan->walk.inputs; k++) in[k] = operand(l, k, offsets[k], count, &r->operands[k]);
    for (int s = 0; s < run->count; s++) {
        const cpu_elementwise_step *step = &run->steps[s];
        cpu_elementwise_call call = step->call;
        const bool last = s + 1 == run->count;
        call.count = count;
        call.out = last && run->out.plain ? (void *)out : (void *)r->values[s & 1].data;
        for (int k = 0; k < call.operands; k++) call.in[k] = step->from[k] < 0 ? value : in[step->from[k]];
        step->kernel(&call);
        value = call.out;
    }
    if (!run->out.plain) run->out.store(value, count, out, 0);
}

/* Elements [from, to) of the output. */
static void compute(const launching *l, int64_t from, int64_t to) {
    const elementwise_walk *w = &l->plan->walk;
    scratch r;
    for (int k = 0; k < w->inputs; k++) r.operands[k].of = NULL, r.operands[k].filled = 0;
    while (from < to) {
        int64_t offsets[ELEMENTWISE_MAX_OPERANDS] = {0}, run = elementwise_walk_to(w, from, offsets);
        if (run > to - from) run = to - from;
        while (run > 0) {
            const int64_t count = run < CPU_BLOCKS_MOST ? run : CPU_BLOCKS_MOST;
            compute_block(l, &r, offsets, from, count);
            for (int k = 0; k < w->inputs; k++) offsets[k] += w->strides[k][0] * count;
            from += count, run -= count;
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

static bool plan_of(const scout_op *op, scout_plan *p, scout_why *why) {
    memset(p, 0, sizeof *p);
    if (!cpu_elementwise_steps_of(op, &p->run, why)) return false;
    p->walk = elementwise_walk_of(op);
    p->output = (int)op->tensor_count - 1;
    snprintf(p->what, sizeof p->what, "%s", op->what); /* one of the table, or chain */
    return true;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    return plan_of(op, &p, why) ? SCOUT_OK : SCOUT_NO;
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)values, (void)needs;
    return plan_of(op, *out, why) ? SCOUT_OK : SCOUT_NO;
}

static int describe(const scout_plan *plan, char *json, size_t room) {
    return snprintf(json, room, "{\"kernel\": \"elementwise_loop\", \"what\": \"%s\", \"threads\": \"%s\"}", plan->what,
                    plan->walk.count <= FEW ? "1 thread" : cpu_team_about());
}

const scout_candidate cpu_elementwise_loop = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_ELEMENTWISE,
    .flags = SCOUT_OWN | SCOUT_BASELINE, /* the baseline where no library has one */
    .priority = 50,
    .name = "cpu_elementwise",
    .about = "own vector loop over blocks, every operator and type, chains in one pass",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int64", "int32", "int8", "uint8", "bool", NULL},
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
