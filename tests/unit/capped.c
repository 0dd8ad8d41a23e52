/* Held against traces of an H200 at its cap of 700 W: a new load's clock is reached within 0.1 s; what disturbs the
 * power comes back after 0.9 s and again after 1.8 s; the work of a block strays by 1 to 1.9 ms, whatever its length;
 * shapes of like flops per cycle differ by several percent under a load of their own. */
#include "tests/unit/capped.h"

#include "scout/ceilings_points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEAK       950e12
#define TICK_S     0.02   /* the controller sets the clock for what ran in its last few ticks */
#define TYPICAL    0.71   /* the clock of a product that needs as much as most */
#define STEEPNESS  2.3    /* energy per second rises with this power of the clock */
#define STRAY_S    1.2e-3 /* deviation of the work at any moment: 1.7 ms between two */
#define HOLD_S     0.08
#define KEPT       0.6 /* of what is astray, by the next hold */
#define FIRST_ECHO 0.28
#define NEXT_ECHO  0.07
#define MISFIT     0.002 /* of an interval */

enum { DEAD_TICKS = 2 }; /* before it answers: the first tenth of a second mostly shows the load before */

typedef struct shape {
    capped *c;
    ceilings_search_point p;
    double most, clock; /* flop/s at full clock; where it settles */
} shape;

static double uniform(uint64_t *state) { return (double)(ceilings_points_next(state) >> 11) / 9007199254740992.0; }
static double normal(uint64_t *state) {
    double sum = -6;
    for (int k = 0; k < 12; k++) sum += uniform(state);
    return sum;
}

/* In -1..1, always the same for a shape: what no formula says about a kernel. grain: shapes this close are alike. */
static double trait(const capped *c, const ceilings_search_point *p, int64_t grain, uint64_t salt) {
    uint64_t h = c->seed * 77 + salt;
    const int64_t all[] = {p->m / grain, p->n / grain, p->k / (4 * grain), p->layout, p->variant};
    for (int k = 0; k < 5; k++) h = (h ^ (uint64_t)all[k]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
    return 2 * uniform(&h) - 1;
}

void capped_favour(capped *c, const ceilings_search_point *p, double truth) {
    c->favoured = *p;
    c->favour = 1;
    c->favour = pow(capped_truth(c, p) / truth, STEEPNESS);
}

double capped_flops_per_cycle(const capped *c, const ceilings_search_point *p) {
    double tiles = ceil((double)p->m / 128) * ceil((double)p->n / 256);
    double waves = ceil(tiles / CAPPED_UNITS) * CAPPED_UNITS;
    double depth = (double)p->k / ((double)p->k + 250);
    double variant = p->variant == 0 ? 0 : 0.02 * trait(c, p, 256, 3) - 0.015;
    return tiles / waves * depth * (1 + 0.012 * trait(c, p, 256, 1) + variant);
}

/* What moves the inputs and the output, and what kernels differ by: some for whole regions, some for each shape. */
static double energy_per_flop(const capped *c, const ceilings_search_point *p) {
    double inputs = 180 * (1 / (double)p->m + 1 / (double)p->n), output = 50 / (double)p->k;
    const bool favoured = memcmp(p, &c->favoured, sizeof *p) == 0;
    return (favoured ? c->favour : 1) * (0.93 + inputs + output) *
           (1 + 0.02 * trait(c, p, 2048, 4) + 0.015 * trait(c, p, 256, 5));
}

static double settled(const capped *c, const ceilings_search_point *p) {
    double power = capped_flops_per_cycle(c, p) * energy_per_flop(c, p);
    return fmin(1, TYPICAL * pow(power, -1 / STEEPNESS));
}

double capped_truth(const capped *c, const ceilings_search_point *p) {
    return PEAK * capped_flops_per_cycle(c, p) * settled(c, p);
}

/* What its controller adds to the pace at this moment: it brings the work from where it is to where it will be. */
static double swing(capped *c) {
    while (c->now >= c->next_at) {
        c->astray = c->next_astray, c->astray_at = c->next_at;
        c->next_astray = KEPT * c->astray + sqrt(1 - KEPT * KEPT) * STRAY_S * normal(&c->state);
        c->next_at += HOLD_S * (0.5 + uniform(&c->state));
    }
    return (c->next_astray - c->astray) / (c->next_at - c->astray_at);
}

static double echoed(const capped *c) {
    const long first = c->tenth - 9, next = c->tenth - 18;
    double sum = 0;
    if (first >= 0) sum += FIRST_ECHO * c->echo[first % CAPPED_ECHOES];
    if (next >= 0) sum += NEXT_ECHO * c->echo[next % CAPPED_ECHOES];
    return sum;
}

/* Seconds pass, of one tick at most; wanted: the clock that what runs would settle at. */
static void piece(capped *c, double seconds, double wanted) {
    c->wanted += wanted * seconds;
    c->off += (c->clock / wanted - 1) * seconds;
    c->now += seconds;
    if (c->now < c->tick_at) return;
    c->asked[c->ticks % CAPPED_TICKS] = c->wanted / TICK_S;
    c->clock = 0;
    for (long age = DEAD_TICKS; age < CAPPED_TICKS; age++)
        c->clock += c->asked[(c->ticks + CAPPED_TICKS - age) % CAPPED_TICKS] / (CAPPED_TICKS - DEAD_TICKS);
    c->wanted = 0;
    c->tick_at += TICK_S;
    if (++c->ticks % CAPPED_TICKS != 0) return;
    c->echo[c->tenth++ % CAPPED_ECHOES] = c->off / (CAPPED_TICKS * TICK_S);
    c->off = 0;
}

static void pass(capped *c, double seconds, double wanted) {
    while (seconds > 0) {
        const double some_s = fmin(seconds, fmax(c->tick_at - c->now, 1e-9));
        piece(c, some_s, wanted);
        seconds -= some_s;
    }
    if (c->said > 0 && c->now > c->said) c->late = true;
}

static double now_of(void *context) { return ((capped *)context)->now; }
static void pause_for(void *context, double seconds) { pass(context, seconds, 1); }
static void beat(void *context, double seconds) { ((capped *)context)->said = ((capped *)context)->now + seconds; }
static void telemetry(void *context, scout_telemetry *out) {
    const capped *c = context;
    *out = (scout_telemetry){.size = sizeof *out, .clock_mhz = 1980 * c->clock, .power_w = 695};
    out->memory_clock_mhz = out->temperature_c = NAN;
    out->throttle = !c->silent && c->clock < 0.97 ? 4 : 0;
    snprintf(out->throttle_text, sizeof out->throttle_text, "%s", out->throttle ? "power cap" : "");
}

static bool fails(const capped *c) { return c->now >= c->fails_from && c->now < c->fails_until; }

static scout_answer run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    shape *s = context;
    capped *c = s->c;
    if (fails(c)) return scout_say(why, SCOUT_FAILED, "memory", "others have it");
    if (c->lost_at > 0 && c->opened >= c->lost_at) return scout_say(why, SCOUT_LOST, "lost", "the device is gone");
    pass(c, 20e-6, c->clock); /* what it takes to launch a graph */
    for (uint32_t k = 0; k < batches; k++) {
        double left = launches * ceilings_search_flops(&s->p);
        seconds[k] = 0;
        while (left > 0) {
            const double rate = s->most * c->clock * (1 + swing(c) - echoed(c));
            const double ends_s = fmin(c->tick_at, c->next_at) - c->now;
            const double some_s = fmin(left / rate, fmax(ends_s, 1e-9));
            pass(c, some_s, s->clock);
            left = some_s < left / rate ? left - some_s * rate : 0;
            seconds[k] += some_s;
        }
        seconds[k] = (seconds[k] + 2e-6) * (1 + MISFIT * normal(&c->state));
    }
    return SCOUT_OK;
}

static scout_answer open_shape(void *context, const ceilings_search_point *p, timing_subject *out, scout_why *why) {
    capped *c = context;
    pass(c, 1e-3, 1); /* a plan, and its graph */
    c->opened++;
    if (fails(c) || (c->fail_every > 0 && c->opened % c->fail_every == 0)) {
        c->closed++;
        return scout_say(why, c->opened % 2 ? SCOUT_NO : SCOUT_FAILED, "shape", "not this one");
    }
    shape *s = calloc(1, sizeof *s);
    if (!s) return scout_say(why, SCOUT_FAILED, "memory", "none");
    *s = (shape){c, *p, PEAK * capped_flops_per_cycle(c, p), settled(c, p)};
    *out = (timing_subject){.context = s, .run = run};
    return SCOUT_OK;
}

static void close_shape(void *context, timing_subject *subject) {
    ((capped *)context)->closed++;
    free(subject->context);
}

capped capped_of(uint64_t seed) {
    capped c = {.clock = 1, .seed = seed, .state = seed * 31 + 7, .tick_at = TICK_S};
    for (int k = 0; k < CAPPED_TICKS; k++) c.asked[k] = 1;
    return c;
}

timing_clock capped_clock(capped *c) { return (timing_clock){c, 1e-6, now_of, pause_for, telemetry, beat}; }

ceilings_search capped_search(capped *c, const timing_clock *clock, double budget_s) {
    const regime r = {REGIME_SUSTAINED, REGIME_COLD, REGIME_GRAPH};
    ceilings_search s = {.budget_s = budget_s, .name = "bf16", .clock = clock, .rules = timing_rules_of(&r, budget_s)};
    s.bench = (ceilings_search_bench){c, open_shape, close_shape, 1, 8};
    s.space = (ceilings_search_space){.least = 1024, .most = 16384, .deepest = 65536, .units = CAPPED_UNITS};
    s.space.input_elements = 536870912, s.space.output_elements = 268435456;
    s.space.flop_per_s = 500e12, s.space.seed = c->seed;
    return s;
}
