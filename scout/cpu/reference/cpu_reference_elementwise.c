/* The reference of elementwise operations: every operator in fp64 from the C library's functions, and on integers in 64
 * bits, wrapped to the type. */
#include "scout/cpu/reference/cpu_reference_operators.h"
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/elementwise_chain.h"
#include "scout/op/random.h"
#include "scout/op/requantize.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* A chain in fp64, beside it a bound of its error (docs/tolerances.md): what came in may be off by e, so the
 * step is computed at v - e and v + e as well, and to the larger of both distances comes what the step itself rounds.
 * So no operator needs a slope, and where one jumps (a comparison, a sign) either side is right just as far as the
 * values before it cannot tell on which side they are. */

typedef struct reference_chain {
    elementwise_chain chain;
    double tolerance; /* of all of it */
    double step_tolerance[ELEMENTWISE_CHAIN_STEPS];
    double step_smallest[ELEMENTWISE_CHAIN_STEPS]; /* normal number of its result's type */
} reference_chain;

/* Both ways to hold it: of integers `real` is the nearest double, of truth both are 0 or 1, of floats `whole` is 0. */
typedef struct value {
    double real;
    int64_t whole;
} value;

/* The smallest normal number of a type of floats, 0 of others: below it a type is coarse. */
static double smallest_of(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_BF16 ? 0x1p-126 : type == SCOUT_FP16 ? 0x1p-14 : 0;
}

/* As a type of integers keeps it: modulo its range. */
static int64_t kept(uint32_t type, int64_t x) {
    switch (type) {
    case SCOUT_INT32: return (int32_t)(uint32_t)(uint64_t)x;
    case SCOUT_INT16: return (int16_t)(uint16_t)(uint64_t)x;
    case SCOUT_INT8: return (int8_t)(uint8_t)(uint64_t)x;
    case SCOUT_UINT32: return (uint32_t)(uint64_t)x;
    case SCOUT_UINT16: return (uint16_t)(uint64_t)x;
    case SCOUT_UINT8: return (uint8_t)(uint64_t)x;
    default: return x;
    }
}

/* The same as a number. Operands of uint64 are below 2^63 here, but results may not be. */
static double kept_number(uint32_t type, int64_t x) {
    return type == SCOUT_UINT64 ? (double)(uint64_t)x : (double)kept(type, x);
}

static bool is_whole(uint32_t type) { return elementwise_in_wholes(type); }

static value of_whole(int64_t x) { return (value){(double)x, x}; }

/* The fraction is truncated; beyond 64 bits a cast is undefined. */
static value cut(double x) { return of_whole(fabs(x) < 0x1p63 ? (int64_t)x : 0); }

static value operand_of(uint32_t type, double x) {
    if (!is_whole(type) && type != SCOUT_BOOL) return (value){x, 0};
    return cut(x);
}

static value cast(const elementwise_step *s, value x) {
    if (s->result == SCOUT_BOOL) return of_whole(is_whole(s->type) ? x.whole != 0 : x.real != 0);
    if (!is_whole(s->result)) return (value){x.real, 0};
    return of_whole(kept(s->result, is_whole(s->type) ? x.whole : cut(x.real).whole));
}

static value evaluate(const elementwise_step *s, const value *in) {
    double reals[ELEMENTWISE_MAX_INPUTS];
    int64_t wholes[ELEMENTWISE_MAX_INPUTS];
    if (s->id == ELEMENTWISE_COUNT) return cast(s, in[0]);
    for (int k = 0; k < s->inputs; k++) reals[k] = in[k].real, wholes[k] = in[k].whole;
    if (is_whole(s->type)) {
        const int64_t y = cpu_reference_operators_wholes(s->id, wholes, s->inputs, &s->numbers);
        return of_whole(s->result == SCOUT_BOOL ? y != 0 : kept(s->result, y));
    }
    const double y = cpu_reference_operators_floats(s->id, reals, s->inputs, &s->numbers);
    return s->result == SCOUT_BOOL ? of_whole(y != 0) : (value){y, 0};
}

/* The step's result where its value is another one; how far it is from `y`. */
static double distance(const elementwise_step *s, const value *in, value other, value y) {
    value moved[ELEMENTWISE_MAX_INPUTS] = {other};
    for (int k = 0; k < s->inputs; k++) moved[k] = s->from[k] == ELEMENTWISE_CHAIN_VALUE ? other : in[k];
    return fabs(evaluate(s, moved).real - y.real);
}

/* What an error before the step becomes behind it. Where there is no number at one end (a root of what may be just
 * below 0) the other one tells. */
static double carried(const elementwise_step *s, const value *in, value v, double error, value y) {
    const int64_t whole_error = error < 0x1p62 ? (int64_t)ceil(error) : 0;
    const value above = {v.real + error, (int64_t)((uint64_t)v.whole + (uint64_t)whole_error)},
                below = {v.real - error, (int64_t)((uint64_t)v.whole - (uint64_t)whole_error)};
    double most = fmax(distance(s, in, above, y), distance(s, in, below, y));
    if (below.real < 0 && above.real > 0) most = fmax(most, distance(s, in, (value){0, 0}, y));
    return isnan(most) ? INFINITY : most;
}

static bool chain_of(const scout_op *op, reference_chain *out, scout_why *why) {
    if (!elementwise_chain_of(op, &out->chain, why)) return false;
    out->tolerance = elementwise_chain_tolerance(&out->chain);
    for (int k = 0; k < out->chain.count; k++) {
        const elementwise_step *s = &out->chain.steps[k];
        out->step_tolerance[k] = elementwise_step_tolerance(s);
        out->step_smallest[k] = smallest_of(s->result);
        if (s->id != ELEMENTWISE_COUNT && !cpu_reference_operators_has(s->id, is_whole(s->type))) {
            (void)scout_say(why, SCOUT_NO, "type", "no reference for step %d of the chain in this type", k + 1);
            return false;
        }
    }
    return true;
}

static double rounded(const reference_chain *c, int k, const value *in, value y) {
    const elementwise_step *s = &c->chain.steps[k];
    double reals[ELEMENTWISE_MAX_INPUTS], spread = c->step_smallest[k];
    if (c->step_tolerance[k] == 0) return 0;
    for (int i = 0; i < s->inputs; i++) reals[i] = in[i].real;
    if (s->id != ELEMENTWISE_COUNT) spread += cpu_reference_operators_spread(s->id, reals, s->inputs);
    return c->step_tolerance[k] * (fabs(y.real) + spread);
}

/* `x`: the operands. tolerance * (|want| + spread) is what an element may be off by. */
static void chain_element(const reference_chain *c, const double *x, double *want, double *spread) {
    value v = {0, 0};
    double error = 0;
    for (int k = 0; k < c->chain.count; k++) {
        const elementwise_step *s = &c->chain.steps[k];
        value in[ELEMENTWISE_MAX_INPUTS] = {v}; /* a step has an operand at least */
        for (int i = 0; i < s->inputs; i++)
            in[i] = s->from[i] < 0 ? v : operand_of(c->chain.operand[s->from[i]].type, x[s->from[i]]);
        const value y = evaluate(s, in);
        error = (error > 0 ? carried(s, in, v, error, y) : 0) + rounded(c, k, in, y);
        v = y;
    }
    *want = v.real, *spread = 0;
    if (c->tolerance == 0) return;
    /* whole numbers that are less than 1 apart are equal, but for how well a spread can be told in fp32 */
    if (c->step_smallest[c->chain.count - 1] == 0) error += 0.25;
    *spread = isfinite(v.real) ? fmin(error / c->tolerance - fabs(v.real), FLT_MAX / 2) : 0;
}

typedef struct state {
    elementwise_walk walk;
    bool chain;
    reference_chain steps; /* of one operator: one step */
    uint32_t type;         /* of the output */
    bool wholes;           /* one operator that is computed in integers */
    double largest;        /* beyond it the output is infinite */
    requantize quant;
    op_activation activation; /* of a quantised one */
} state;

static double largest_of(uint32_t type) {
    return type == SCOUT_FP32   ? 0x1.ffffffp127
           : type == SCOUT_BF16 ? 0x1.ffp127
           : type == SCOUT_FP16 ? 0x1.ffep15
                                : INFINITY;
}

static scout_answer open(const scout_op *op, void **out, scout_why *why) {
    state *s = calloc(1, sizeof *s);
    if (!s) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory for the reference");
    *out = s;
    if (random_how_of(op) != RANDOM_HOWS) return SCOUT_OK;
    if (!chain_of(op, &s->steps, why)) {
        free(s);
        return SCOUT_NO;
    }
    s->walk = elementwise_walk_of(op);
    s->chain = op_is(op, "chain");
    s->type = op->output;
    s->wholes = elementwise_in_wholes(op->input);
    s->largest = largest_of(op->output);
    s->quant = requantize_elements(op), s->activation = activation_of(op);
    return SCOUT_OK;
}

static int64_t grain(const void *context, const scout_op *op, uint32_t output) {
    (void)context, (void)op, (void)output;
    return 1;
}

enum { RUN = 256 };
static size_t scratch(const void *context, const scout_op *op) {
    (void)context, (void)op;
    return (size_t)RUN * ELEMENTWISE_MAX_OPERANDS;
}

static void one_operator(const state *s, const double *x, double *want, double *spread) {
    const elementwise_step *one = &s->steps.chain.steps[0];
    int64_t whole[ELEMENTWISE_MAX_INPUTS];
    *spread = cpu_reference_operators_spread(one->id, x, one->inputs) + s->steps.step_smallest[0];
    if (!s->wholes) {
        *want = cpu_reference_operators_floats(one->id, x, one->inputs, &one->numbers);
        return;
    }
    for (int k = 0; k < one->inputs; k++) whole[k] = (int64_t)x[k];
    *want = kept_number(s->type, cpu_reference_operators_wholes(one->id, whole, one->inputs, &one->numbers));
}

static void quantised(const state *s, const double *x, double *want, double *spread) {
    const elementwise_step *one = &s->steps.chain.steps[0];
    double above[ELEMENTWISE_MAX_INPUTS] = {0}; /* the zero point */
    for (int k = 0; k < one->inputs; k++) above[k] = x[k] - s->quant.zero_in;
    *want = requantize_apply(&s->quant, &s->activation,
                             cpu_reference_operators_floats(one->id, above, one->inputs, &one->numbers));
    *spread = requantize_spread(&s->quant, *want);
}

static scout_answer compute(const void *context, const scout_op *op, void *const *tensors, uint32_t output,
                            int64_t from, int64_t count, double *want, double *spread, double *room) {
    const state *s = context;
    const elementwise_walk *w = &s->walk;
    (void)output;
    if (random_how_of(op) != RANDOM_HOWS) {
        cpu_reference_random(op, tensors, from, count, want, spread);
        return SCOUT_OK;
    }
    for (int64_t at = 0; at < count;) {
        int64_t offsets[ELEMENTWISE_MAX_OPERANDS], run = elementwise_walk_to(w, from + at, offsets);
        if (run > count - at) run = count - at;
        if (run > RUN) run = RUN;
        for (int k = 0; k < w->inputs; k++)
            cpu_number_load(op->tensors[w->source[k]].type, tensors[w->source[k]], offsets[k], w->strides[k][0], run,
                            room + (size_t)k * RUN);
        for (int64_t i = 0; i < run; i++, at++) {
            double x[ELEMENTWISE_MAX_OPERANDS] = {0};
            for (int k = 0; k < w->inputs; k++) x[k] = room[k * RUN + i];
            if (s->quant.is)
                quantised(s, x, &want[at], &spread[at]);
            else if (s->chain)
                chain_element(&s->steps, x, &want[at], &spread[at]);
            else
                one_operator(s, x, &want[at], &spread[at]);
            if (fabs(want[at]) >= s->largest) want[at] = copysign(INFINITY, want[at]), spread[at] = 0;
        }
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {.open = open, .grain = grain, .compute = compute, .scratch = scratch};
CPU_WHOLE_REFERENCE(cpu_reference_elementwise, SCOUT_ELEMENTWISE, whole);
