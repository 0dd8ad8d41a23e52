/* A chain in fp64, beside it a bound of its error (docs/tolerances.md): what came in may be off by e, so the
 * step is computed at v - e and v + e as well, and to the larger of both distances comes what the step itself rounds.
 * So no operator needs a slope, and where one jumps (a comparison, a sign) either side is right just as far as the
 * values before it cannot tell on which side they are. */
#include "scout/cpu/reference/cpu_reference_chain.h"

#include "scout/cpu/reference/cpu_reference_operators.h"

#include <float.h>
#include <math.h>

/* Both ways to hold it: of integers `real` is the nearest double, of truth both are 0 or 1, of floats `whole` is 0. */
typedef struct value {
    double real;
    int64_t whole;
} value;

double cpu_reference_chain_smallest(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_BF16 ? 0x1p-126 : type == SCOUT_FP16 ? 0x1p-14 : 0;
}

int64_t cpu_reference_chain_kept(uint32_t type, int64_t x) {
    switch (type) {
    case SCOUT_INT32: return (int32_t)(uint32_t)(uint64_t)x;
    case SCOUT_INT8: return (int8_t)(uint8_t)(uint64_t)x;
    case SCOUT_UINT8: return (uint8_t)(uint64_t)x;
    default: return x;
    }
}

static bool whole(uint32_t type) { return elementwise_class_of(type) == ELEMENTWISE_WHOLE; }

static value of_whole(int64_t x) { return (value){(double)x, x}; }

/* The fraction is truncated; beyond 64 bits a cast is undefined. */
static value cut(double x) { return of_whole(fabs(x) < 0x1p63 ? (int64_t)x : 0); }

static value operand_of(uint32_t type, double x) {
    if (elementwise_class_of(type) == ELEMENTWISE_FLOAT) return (value){x, 0};
    return cut(x);
}

static value cast(const elementwise_step *s, value x) {
    if (s->result == SCOUT_BOOL) return of_whole(whole(s->type) ? x.whole != 0 : x.real != 0);
    if (!whole(s->result)) return (value){x.real, 0};
    return of_whole(cpu_reference_chain_kept(s->result, whole(s->type) ? x.whole : cut(x.real).whole));
}

static value evaluate(const elementwise_step *s, const value *in) {
    double reals[ELEMENTWISE_MAX_INPUTS];
    int64_t wholes[ELEMENTWISE_MAX_INPUTS];
    if (s->id == ELEMENTWISE_COUNT) return cast(s, in[0]);
    for (int k = 0; k < s->inputs; k++) reals[k] = in[k].real, wholes[k] = in[k].whole;
    if (whole(s->type)) {
        const int64_t y = cpu_reference_operators_wholes(s->id, wholes, s->inputs, &s->numbers);
        return of_whole(s->result == SCOUT_BOOL ? y != 0 : cpu_reference_chain_kept(s->result, y));
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

bool cpu_reference_chain_of(const scout_op *op, cpu_reference_chain *out, scout_why *why) {
    if (!elementwise_chain_of(op, &out->chain, why)) return false;
    out->tolerance = elementwise_chain_tolerance(&out->chain);
    for (int k = 0; k < out->chain.count; k++) {
        const elementwise_step *s = &out->chain.steps[k];
        out->step_tolerance[k] = elementwise_step_tolerance(s);
        out->step_smallest[k] = cpu_reference_chain_smallest(s->result);
        if (s->id != ELEMENTWISE_COUNT && !cpu_reference_operators_has(s->id, whole(s->type))) {
            (void)scout_say(why, SCOUT_NO, "type", "no reference for step %d of the chain in this type", k + 1);
            return false;
        }
    }
    return true;
}

static double rounded(const cpu_reference_chain *c, int k, const value *in, value y) {
    const elementwise_step *s = &c->chain.steps[k];
    double reals[ELEMENTWISE_MAX_INPUTS], spread = c->step_smallest[k];
    if (c->step_tolerance[k] == 0) return 0;
    for (int i = 0; i < s->inputs; i++) reals[i] = in[i].real;
    if (s->id != ELEMENTWISE_COUNT) spread += cpu_reference_operators_spread(s->id, reals, s->inputs);
    return c->step_tolerance[k] * (fabs(y.real) + spread);
}

void cpu_reference_chain_element(const cpu_reference_chain *c, const double *x, double *want, double *spread) {
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
