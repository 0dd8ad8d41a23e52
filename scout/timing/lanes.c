/* Lanes in alternating blocks: a look at each, a race that leaves few of many, full rounds there and back. */
#include "scout/timing/lanes.h"

#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 3, RACE_ROUNDS = 3, BLOCKS = 96, INTERVALS = 64 };

static const double hopeless = 3;                           /* one launch against the best one: nothing more is tried */
static const double behind[RACE_ROUNDS] = {1.3, 1.15, 1.1}; /* how far, after each round of the race */
static const double lower_part = 0.25; /* where hardly a block is undisturbed, what disturbs only adds */
static const double beat_s = 30;

lanes_rules lanes_rules_of(const regime *r, bool host) {
    const bool burst = r->load == REGIME_BURST;
    return (lanes_rules){
        .burst = burst,
        .block_s = host ? 1e-3 : 3e-3,
        .interval_s = host ? 0.25e-3 : 1e-3,
        .look_s = 0.02,
        .quick_s = host ? 0.5e-3 : 1e-3,
        .rounds = host ? 6 : 4,
        .most_rounds = host ? 60 : 8,
        .precise = host ? 0.004 : 0.0015,
        .most_s = host ? 0.4 : 0.15,
        .disturbed = 0.02,
        .finalists = 3,
        .beside = 1.05,
        .idle_s = 1,
        .burst_s = 0.01,
    };
}

/* What a lane has been seen to take. */
typedef struct record {
    double seconds[BLOCKS]; /* of a launch, a block each */
    bool bad[BLOCKS];       /* disturbed */
    int count;
} record;

typedef struct course {
    const timing_clock *clock;
    const lanes_rules *rules;
    lanes_lane *lanes;
    record *records;
    int count, baseline;
    double worked_s; /* burst: since the last pause */
    bool lost;
} course;

static double now_of(const course *c) { return c->clock->now(c->clock->context); }
static bool runs(const lanes_lane *l) { return l->answer == SCOUT_OK && !l->raced_out; }
static double stolen_of(const course *c) { return c->clock->stolen ? c->clock->stolen(c->clock->context) : 0; }

static bool fail(course *c, lanes_lane *l, scout_answer answer) {
    l->answer = answer;
    c->lost = c->lost || answer == SCOUT_LOST;
    return false;
}

/* Intervals of so many launches, back to back. */
static bool run(course *c, lanes_lane *l, uint32_t launches, uint32_t intervals, double *seconds) {
    const double about_s = l->launch_s * launches * intervals;
    if (c->clock->beat) c->clock->beat(c->clock->context, beat_s + 10 * about_s);
    if (c->rules->burst && c->worked_s + about_s > c->rules->burst_s) {
        c->clock->pause(c->clock->context, c->rules->idle_s);
        c->worked_s = 0;
    }
    const scout_answer answer = l->subject.run(l->subject.context, launches, intervals, seconds, &l->why);
    if (answer != SCOUT_OK) return fail(c, l, answer);
    for (uint32_t k = 0; k < intervals; k++) {
        if (!(seconds[k] >= 0) || !isfinite(seconds[k])) {
            scout_say(&l->why, SCOUT_FAILED, "error", "the timer says that it took %g s", seconds[k]);
            return fail(c, l, SCOUT_FAILED);
        }
        c->worked_s += seconds[k];
    }
    return true;
}

/* ---- a look ---- */

static bool look(course *c, lanes_lane *l) {
    double seconds[LOOKS];
    if (!run(c, l, 1, 1, seconds)) return false;
    l->launch_s = seconds[0];
    const bool brief = l->launch_s < c->rules->look_s;
    if (brief && !run(c, l, 1, LOOKS, seconds)) return false;
    for (int k = 0; brief && k < LOOKS; k++) l->launch_s = fmin(l->launch_s, seconds[k]);
    l->launch_s = fmax(l->launch_s, fmax(c->clock->resolution_s, 1e-9));
    return true;
}

/* As many launches as make an interval; whole rotations, where the subject has any. */
static void pace(const course *c, lanes_lane *l) {
    const double wanted = fmax(c->rules->interval_s, 20 * c->clock->resolution_s) / l->launch_s;
    const uint32_t whole = l->subject.whole ? l->subject.whole(l->subject.context) : 1;
    l->launches = (uint32_t)fmin(fmax(ceil(wanted), 1), 1 << 20);
    if (whole > 1) l->launches = (l->launches + whole / 2) / whole * whole;
    if (l->launches == 0) l->launches = whole;
}

/* ---- blocks ---- */

static uint32_t intervals_of(const lanes_lane *l, double block_s) {
    const double wanted = block_s / (l->launch_s * l->launches);
    return (uint32_t)fmin(fmax(round(wanted), 1), INTERVALS);
}

/* One block of one lane; `counts`: it goes to the record. */
static void block(course *c, int lane, double block_s, bool counts) {
    lanes_lane *l = &c->lanes[lane];
    record *r = &c->records[lane];
    double seconds[INTERVALS], sum = 0;
    const uint32_t intervals = intervals_of(l, block_s);
    const double stolen = stolen_of(c);
    if (!run(c, l, l->launches, intervals, seconds)) return;
    const double missed = stolen_of(c) - stolen;
    for (uint32_t k = 0; k < intervals; k++) sum += seconds[k];
    const double launch_s = sum / ((double)intervals * l->launches);
    if (!(launch_s > 0)) return;
    l->launch_s = launch_s;
    if (!counts || r->count == BLOCKS) return;
    r->bad[r->count] = missed > c->rules->disturbed * sum;
    r->seconds[r->count++] = launch_s;
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the undisturbed blocks; where these are too few, of the lower part of all. */
static void summarise(const course *c, int lane) {
    lanes_lane *l = &c->lanes[lane];
    const record *r = &c->records[lane];
    double kept[BLOCKS], sum = 0, logs = 0, squares = 0;
    int n = 0;
    for (int k = 0; k < r->count; k++)
        if (!r->bad[k]) kept[n++] = r->seconds[k];
    l->dropped = (uint32_t)(r->count - n);
    l->disturbed = n < r->count && n < c->rules->rounds;
    if (l->disturbed) {
        memcpy(kept, r->seconds, (size_t)r->count * sizeof kept[0]);
        qsort(kept, (size_t)r->count, sizeof kept[0], by_value);
        n = (int)fmax(ceil(lower_part * r->count), 1);
        l->dropped = (uint32_t)(r->count - n);
    }
    l->blocks = (uint32_t)n;
    if (n == 0) return;
    for (int k = 0; k < n; k++) {
        sum += kept[k];
        logs += log(kept[k]);
    }
    l->time_s = exp(logs / n);
    l->mean_s = sum / n;
    for (int k = 0; k < n; k++) squares += pow(log(kept[k]) - logs / n, 2);
    l->error = n > 1 ? sqrt(squares / (n - 1) / n) : INFINITY;
    l->min_s = stats_quantile(kept, (size_t)n, 0);
    l->p05_s = stats_quantile(kept, (size_t)n, 0.05);
    l->p95_s = stats_quantile(kept, (size_t)n, 0.95);
    l->total = (uint64_t)n * l->launches * intervals_of(l, c->rules->block_s);
}

/* ---- the race ---- */

static bool is_rival(const lanes_lane *l) { return runs(l) && !l->keep; }

static lanes_lane *best_of(const course *c) {
    lanes_lane *best = NULL;
    for (int k = 0; k < c->count; k++)
        if (is_rival(&c->lanes[k]) && (!best || c->lanes[k].time_s < best->time_s)) best = &c->lanes[k];
    return best;
}

/* Those that are so many times as slow as the best rival or as the baseline, by what they have shown. */
static void drop_behind(const course *c, double factor) {
    const lanes_lane *best = best_of(c), *base = c->baseline >= 0 ? &c->lanes[c->baseline] : NULL;
    for (int k = 0; k < c->count; k++) {
        lanes_lane *l = &c->lanes[k];
        if (!is_rival(l) || l == best) continue;
        const bool late = base && runs(base) && l->time_s > factor * base->time_s;
        if (late || l->time_s > factor * best->time_s) l->raced_out = true;
    }
}

static int rivals_left(const course *c) {
    int n = 0;
    for (int k = 0; k < c->count; k++) n += is_rival(&c->lanes[k]);
    return n;
}

static void drop_to(const course *c, int most) {
    while (rivals_left(c) > most) {
        lanes_lane *last = NULL;
        for (int k = 0; k < c->count; k++) {
            lanes_lane *l = &c->lanes[k];
            if (is_rival(l) && (!last || l->time_s > last->time_s)) last = l;
        }
        last->raced_out = true;
    }
}

/* In one direction and back: what a neighbour leaves behind in a cache is not always the same neighbour's. */
static void quick_round(course *c, int number) {
    for (int k = 0; k < c->count && !c->lost; k++) {
        const int at = number % 2 ? c->count - 1 - k : k;
        if (!runs(&c->lanes[at])) continue;
        block(c, at, c->rules->quick_s, true);
        summarise(c, at);
    }
}

static void race(course *c, double end_s) {
    for (int k = 0; k < c->count; k++) c->lanes[k].time_s = c->lanes[k].launch_s;
    drop_behind(c, hopeless);
    for (int number = 0; number < RACE_ROUNDS && !c->lost; number++) {
        if (rivals_left(c) <= c->rules->finalists || (number > 0 && now_of(c) > end_s)) break;
        quick_round(c, number);
        drop_behind(c, behind[number]);
    }
    if (rivals_left(c) > c->rules->finalists) drop_behind(c, c->rules->beside);
    drop_to(c, c->rules->finalists);
}

/* ---- full rounds ---- */

static bool precise(const course *c) {
    for (int k = 0; k < c->count; k++) {
        const lanes_lane *l = &c->lanes[k];
        if (runs(l) && ((int)l->blocks < c->rules->rounds || l->disturbed || !(l->error <= c->rules->precise)))
            return false;
    }
    return true;
}

static void full_rounds(course *c) {
    const lanes_rules *rules = c->rules;
    const double began_s = now_of(c);
    double round_s = 0;
    for (int k = 0; k < c->count && !c->lost; k++) {
        if (!runs(&c->lanes[k])) continue;
        c->records[k].count = 0;
        if (c->lanes[k].launch_s < rules->block_s) block(c, k, rules->interval_s, false); /* its memory, its clock */
    }
    for (int number = 0; number < rules->most_rounds && number < BLOCKS && !c->lost; number++) {
        const double start_s = now_of(c);
        if (number > 0 && start_s - began_s + round_s > rules->most_s && number >= rules->rounds) break;
        if (number > 1 && start_s - began_s + round_s > 4 * rules->most_s) break;
        if (number > 0 && round_s > 10 * rules->most_s) break;
        for (int k = 0; k < c->count && !c->lost; k++) {
            const int at = number % 2 ? c->count - 1 - k : k;
            if (runs(&c->lanes[at])) block(c, at, rules->block_s, true);
        }
        round_s = now_of(c) - start_s;
        for (int k = 0; k < c->count; k++)
            if (runs(&c->lanes[k])) summarise(c, k);
        if (number + 1 >= rules->rounds && precise(c)) break;
    }
}

bool lanes_run(const timing_clock *clock, const lanes_rules *rules, lanes_lane *lanes, int count, int baseline,
               double end_s) {
    course c = {.clock = clock, .rules = rules, .lanes = lanes, .count = count, .baseline = baseline};
    c.records = calloc((size_t)count + 1, sizeof *c.records);
    for (int k = 0; k < count; k++) {
        lanes[k].answer = SCOUT_OK;
        if (!c.records) lanes[k].answer = scout_say(&lanes[k].why, SCOUT_NO_MEMORY, "memory", "the host has no memory");
    }
    for (int k = 0; k < count && c.records && !c.lost; k++) (void)look(&c, &lanes[k]);
    for (int k = 0; k < count && c.records && !c.lost; k++)
        if (runs(&lanes[k])) pace(&c, &lanes[k]);
    if (c.records && !c.lost) race(&c, end_s);
    if (c.records && !c.lost) full_rounds(&c);
    free(c.records);
    return !c.lost;
}
