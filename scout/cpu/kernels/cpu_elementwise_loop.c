/* Elementwise operations by an own loop: blocks of 512 elements are converted to fp32 (or int64), computed step by step
 * in L1, and converted to the output's type, so that each tensor passes memory once, however many operators there are.
 * fp32 is read and written in place. */
#include "common/checked.h"
#include "scout/cpu/device/cpu_blocks.h"
#include "scout/cpu/device/cpu_candidates.h"
#include "scout/cpu/device/cpu_team.h"
#include "scout/cpu/device/cpu_vector.h"
#include "scout/cpu/kernels/cpu_elementwise_kernels.h"
#include "scout/op/elementwise_chain.h"
#include "scout/op/requantize.h"

#include <stdlib.h>

/* The calls of an elementwise operation. Floats and truth are fp32 between steps, never rounded to their type; integers
 * are int64, kept within their type after every step; fp64 is of single operators. Quantised bytes are fp32 as well. */

typedef struct cpu_elementwise_step {
    cpu_elementwise_kernel *kernel;
    int from[ELEMENTWISE_MAX_INPUTS]; /* operand of the operation, or ELEMENTWISE_CHAIN_VALUE */
    cpu_elementwise_call call;        /* its numbers, and how many operands; the rest is the caller's */
} cpu_elementwise_step;

/* A step is a change of its value, an operator, and a change of its result at the most. */
enum { CPU_ELEMENTWISE_MOST_STEPS = 3 * ELEMENTWISE_CHAIN_STEPS };

typedef struct cpu_elementwise_steps {
    int count; /* at least 1 */
    cpu_elementwise_step steps[CPU_ELEMENTWISE_MOST_STEPS];
    cpu_blocks in[ELEMENTWISE_MAX_OPERANDS], out; /* how operands are read, and the last value is written */
} cpu_elementwise_steps;

typedef struct builder {
    cpu_elementwise_steps *to;
    cpu_blocks_in in; /* what the value is in now */
    bool quantised;   /* bytes are numbers in fp32 (scout/op/requantize.h) */
} builder;

static bool whole(uint32_t type) { return elementwise_in_wholes(type); }

static cpu_blocks_in blocks_in(int class) {
    return class & ELEMENTWISE_WHOLES    ? CPU_BLOCKS_WHOLES
           : class == ELEMENTWISE_DOUBLE ? CPU_BLOCKS_DOUBLES
                                         : CPU_BLOCKS_FLOATS;
}

static cpu_elementwise_step *add(builder *b, cpu_elementwise_kernel *kernel, int from) {
    cpu_elementwise_step *s = &b->to->steps[b->to->count++];
    memset(s, 0, sizeof *s);
    s->kernel = kernel;
    s->from[0] = from;
    s->call.operands = 1;
    return s;
}

static void change(builder *b, cpu_elementwise_change change, int from) {
    (void)add(b, cpu_elementwise_change_of(change), from);
}

static void keep(builder *b, uint32_t type) {
    static const struct {
        uint32_t type;
        cpu_elementwise_change change;
    } rows[] = {{SCOUT_INT32, CPU_ELEMENTWISE_KEEP_INT32},
                {SCOUT_INT8, CPU_ELEMENTWISE_KEEP_INT8},
                {SCOUT_UINT8, CPU_ELEMENTWISE_KEEP_UINT8}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (rows[k].type == type) change(b, rows[k].change, ELEMENTWISE_CHAIN_VALUE);
}

static bool set_in(builder *b, const elementwise_chain *c, int operand, cpu_blocks_in in) {
    return operand < 0 || cpu_blocks_of(c->operand[operand].type, in, &b->to->in[operand]);
}

/* Between floats there is nothing to do but to bring the first operand to where values are; likewise among integers,
 * where the clip that keeps everything is the copy. */
static bool add_cast(builder *b, const elementwise_chain *c, const elementwise_step *s) {
    const int from = s->from[0];
    const bool to_whole = whole(s->result);
    if (from >= 0) b->in = blocks_in(elementwise_class_of(s->type));
    if (!set_in(b, c, from, b->in)) return false;
    const bool wholes = b->in == CPU_BLOCKS_WHOLES;
    if (s->result == SCOUT_BOOL) {
        change(b, wholes ? CPU_ELEMENTWISE_WHOLE_TRUTH : CPU_ELEMENTWISE_TRUTH, from);
    } else if (to_whole != wholes) {
        change(b, to_whole ? CPU_ELEMENTWISE_TO_WHOLES : CPU_ELEMENTWISE_TO_FLOATS, from);
        b->in = to_whole ? CPU_BLOCKS_WHOLES : CPU_BLOCKS_FLOATS;
    } else if (from >= 0 && wholes) {
        cpu_elementwise_step *copy = add(b, cpu_elementwise_kernel_of(ELEMENTWISE_clip, ELEMENTWISE_WHOLE), from);
        copy->call.low = INT64_MIN, copy->call.high = INT64_MAX;
    } else if (from >= 0) {
        change(b, CPU_ELEMENTWISE_COPY, from);
    }
    keep(b, s->result);
    return true;
}

static bool add_operator(builder *b, const elementwise_chain *c, const elementwise_step *s, bool last) {
    const int class = elementwise_class_of(s->type);
    const int computed = b->quantised || class == ELEMENTWISE_BOOL ? ELEMENTWISE_FLOAT : class;
    const cpu_blocks_in in = blocks_in(computed);
    const bool wholes = in == CPU_BLOCKS_WHOLES;
    cpu_elementwise_kernel *const kernel = cpu_elementwise_kernel_of(s->id, computed);
    bool reads = false;
    if (!kernel) return false;
    for (int k = 0; k < s->inputs; k++) {
        reads = reads || s->from[k] < 0;
        if (!set_in(b, c, s->from[k], in)) return false;
    }
    if (reads && b->in != in)
        change(b, wholes ? CPU_ELEMENTWISE_TO_WHOLES : CPU_ELEMENTWISE_TO_FLOATS, ELEMENTWISE_CHAIN_VALUE);
    cpu_elementwise_step *to = add(b, kernel, 0);
    memcpy(to->from, s->from, sizeof to->from);
    to->call.operands = s->inputs;
    to->call.alpha = s->numbers.alpha, to->call.beta = s->numbers.beta;
    to->call.low = checked_from_double(s->numbers.alpha), to->call.high = checked_from_double(s->numbers.beta);
    b->in = in;
    if (wholes && !last) keep(b, s->result); /* a store keeps it as well */
    return true;
}

/* After the one operator; the store rounds and adds the zero point. */
static void requantise(builder *b, const scout_op *op, const requantize *quant) {
    const op_activation a = activation_of(op);
    double least, most;
    if (quant->factor != 1) {
        cpu_elementwise_step *const s =
            add(b, cpu_elementwise_change_of(CPU_ELEMENTWISE_SCALE), ELEMENTWISE_CHAIN_VALUE);
        s->call.alpha = quant->factor;
    }
    if (a.function == ACTIVATION_PLAIN) return;
    requantize_bounds(quant, &a, &least, &most);
    cpu_elementwise_step *const s =
        add(b, cpu_elementwise_kernel_of(ELEMENTWISE_clip, ELEMENTWISE_FLOAT), ELEMENTWISE_CHAIN_VALUE);
    s->call.alpha = least, s->call.beta = most;
}

/* false: there is no kernel of that operator in that type (why says so). */
static bool cpu_elementwise_steps_of(const scout_op *op, cpu_elementwise_steps *out, scout_why *why) {
    const requantize quant = requantize_elements(op);
    builder b = {.to = out, .quantised = quant.is != 0};
    elementwise_chain c;
    memset(out, 0, sizeof *out);
    if (!elementwise_chain_of(op, &c, why)) return false;
    for (int k = 0; k < c.count; k++) {
        const elementwise_step *s = &c.steps[k];
        if (s->id == ELEMENTWISE_COUNT ? add_cast(&b, &c, s) : add_operator(&b, &c, s, k + 1 == c.count)) continue;
        const elementwise_operator *is = elementwise_operator_at(s->id);
        (void)scout_say(why, SCOUT_NO, "type", "there is no loop for %.30s of this type", is ? is->what : "a cast");
        return false;
    }
    if (quant.is) requantise(&b, op, &quant);
    if (cpu_blocks_of(op->output, b.in, &out->out)) return true;
    (void)scout_say(why, SCOUT_NO, "type", "there is no loop for an output of this type");
    return false;
}

enum { STEP = 64 }; /* a line of output */

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

FAST static void repeat_wholes(int64_t *to, int64_t value, int64_t count) {
    for (int64_t k = 0; k < count; k++) to[k] = value;
}

FAST static void repeat_floats(float *to, float value, int64_t count) {
    for (int64_t k = 0; k < count; k++) to[k] = value;
}

static const void *same_for_all(block *b, const cpu_blocks *how, const char *element, int64_t count) {
    if (b->of == element && b->filled >= count) return b->data;
    how->load(element, 0, 1, b->data);
    float *const values = (float *)(void *)b->data;
    if (how->in_block == sizeof(int64_t))
        repeat_wholes(b->data, b->data[0], count);
    else
        repeat_floats(values, values[0], count);
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
                    cpu_team_about());
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
