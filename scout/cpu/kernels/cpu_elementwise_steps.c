/* The calls of an elementwise operation. Floats and truth are fp32 between steps, never rounded to their type; integers
 * are int64, kept within their type after every step. Quantised bytes are fp32 as well. */
#include "scout/cpu/kernels/cpu_elementwise_steps.h"

#include "common/checked.h"
#include "scout/op/requantize.h"

typedef struct builder {
    cpu_elementwise_steps *to;
    bool wholes;    /* the value is int64 now */
    bool quantised; /* bytes are numbers in fp32 (scout/op/requantize.h) */
} builder;

static bool whole(uint32_t type) { return elementwise_class_of(type) == ELEMENTWISE_WHOLE; }

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

static bool set_in(builder *b, const elementwise_chain *c, int operand, bool wholes) {
    return operand < 0 || cpu_blocks_of(c->operand[operand].type, wholes, &b->to->in[operand]);
}

/* Between floats there is nothing to do but to bring the first operand to where values are; likewise among integers,
 * where the clip that keeps everything is the copy. */
static bool add_cast(builder *b, const elementwise_chain *c, const elementwise_step *s) {
    const int from = s->from[0];
    const bool to_whole = whole(s->result);
    if (from >= 0) b->wholes = whole(s->type);
    if (!set_in(b, c, from, b->wholes)) return false;
    if (s->result == SCOUT_BOOL) {
        change(b, b->wholes ? CPU_ELEMENTWISE_WHOLE_TRUTH : CPU_ELEMENTWISE_TRUTH, from);
    } else if (to_whole != b->wholes) {
        change(b, to_whole ? CPU_ELEMENTWISE_TO_WHOLES : CPU_ELEMENTWISE_TO_FLOATS, from);
        b->wholes = to_whole;
    } else if (from >= 0 && b->wholes) {
        cpu_elementwise_step *copy = add(b, cpu_elementwise_kernel_of(ELEMENTWISE_clip, 1), from);
        copy->call.low = INT64_MIN, copy->call.high = INT64_MAX;
    } else if (from >= 0) {
        change(b, CPU_ELEMENTWISE_COPY, from);
    }
    keep(b, s->result);
    return true;
}

static bool add_operator(builder *b, const elementwise_chain *c, const elementwise_step *s, bool last) {
    const bool wholes = whole(s->type) && !b->quantised;
    cpu_elementwise_kernel *const kernel = cpu_elementwise_kernel_of(s->id, wholes);
    bool reads = false;
    if (!kernel) return false;
    for (int k = 0; k < s->inputs; k++) {
        reads = reads || s->from[k] < 0;
        if (!set_in(b, c, s->from[k], wholes)) return false;
    }
    if (reads && b->wholes != wholes)
        change(b, wholes ? CPU_ELEMENTWISE_TO_WHOLES : CPU_ELEMENTWISE_TO_FLOATS, ELEMENTWISE_CHAIN_VALUE);
    cpu_elementwise_step *to = add(b, kernel, 0);
    memcpy(to->from, s->from, sizeof to->from);
    to->call.operands = s->inputs;
    to->call.alpha = (float)s->numbers.alpha, to->call.beta = (float)s->numbers.beta;
    to->call.low = checked_from_double(s->numbers.alpha), to->call.high = checked_from_double(s->numbers.beta);
    b->wholes = wholes;
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
        s->call.alpha = (float)quant->factor;
    }
    if (a.function == ACTIVATION_PLAIN) return;
    requantize_bounds(quant, &a, &least, &most);
    cpu_elementwise_step *const s = add(b, cpu_elementwise_kernel_of(ELEMENTWISE_clip, 0), ELEMENTWISE_CHAIN_VALUE);
    s->call.alpha = (float)least, s->call.beta = (float)most;
}

bool cpu_elementwise_steps_of(const scout_op *op, cpu_elementwise_steps *out, scout_why *why) {
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
    if (cpu_blocks_of(op->output, b.wholes, &out->out)) return true;
    (void)scout_say(why, SCOUT_NO, "type", "there is no loop for an output of this type");
    return false;
}
