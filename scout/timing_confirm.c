/* Confirming: blocks of every subject in turn, forwards and backwards, until what they say together is narrow enough.
 * What is slow to change (clock, temperature, a neighbour on a shared machine) moves neighbouring blocks alike, and
 * whatever it does to one subject shows as blocks that disagree. */
#include "scout/stats.h"
#include "scout/timing.h"
#include "scout/timing_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000 };

static const double hopeless = 2, hopeless_from = 0.25; /* of the interval wanted; of the budget */
static const double probe_load = 0.5; /* of what a steered clock needs: the probe's own second is more of it */

/* Probes come first, while a clock that is steered still has to be loaded. */
static void probes(timing_trial *c) {
    for (int k = 0; k < c->count && !c->lost && !c->pace.rules->among; k++) {
        timing_entrant *e = &c->entrants[k];
        if (e->probe && !e->dead) timing_plan_load(c, probe_load);
        for (int round = 0; round < timing_plan_rounds(c) && e->probe && !e->dead; round++) timing_block_run(c, e);
    }
}

static void one_round(timing_trial *c, int round) {
    for (int step = 0; step < c->count && !c->lost; step++) {
        const int k = round % 2 ? c->count - 1 - step : step;
        if (timing_plan_turn(c, k)) timing_block_run(c, &c->entrants[k]);
    }
}

/* --- when to stop --- */

static bool minima_held(const timing_rules *rules, const timing_entrant *e) {
    return e->opinion.n >= rules->batches && timing_plan_launches(e) >= timing_plan_least(rules, e);
}

/* Whether nothing but its own interval would become better by going on. */
static bool cannot_win(const timing_trial *c, const timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    double ci = NAN;
    if (!rules->contest || e == &c->entrants[0] || c->entrants[0].dead) return false;
    const double ratio = timing_judge_ratio(&e->series, &c->entrants[0].series, &c->noise, &ci);
    return e->opinion.rel_ci95 <= rules->acceptable && ratio * (1 - ci) > 1 - rules->margin;
}

/* What counts is how it compares with its neighbour: both may drift, as long as they do it together. */
static void judge_beside(const timing_trial *c, timing_entrant *e) {
    const timing_entrant *first = &c->entrants[0];
    e->opinion = timing_judge(&e->series, &c->noise);
    e->enough = e->relaxed || minima_held(c->pace.rules, e);
    double ci = NAN;
    const double ratio = first->dead ? NAN : timing_judge_ratio(&e->series, &first->series, &c->noise, &ci);
    e->beside = fmin(c->pace.rules->among_scale * ratio, 1) * ci; /* above 1 it is none */
    const bool known = e->beside <= c->pace.rules->among_target && ci <= c->pace.rules->among_ci;
    e->open = !first->dead && !(e->enough && known);
}

static void judge(const timing_trial *c, timing_entrant *e, int rounds) {
    const timing_rules *rules = c->pace.rules;
    const double target = c->steered ? rules->steered_target : rules->target;
    e->opinion = timing_judge(&e->series, &c->noise);
    const timing_opinion *o = &e->opinion;
    const bool calm = c->steered || !(o->spread > timing_judge_restless);
    const bool watched = calm || rounds >= rules->restless_rounds || e->relaxed;
    e->enough = !o->drifts && watched && (e->relaxed || minima_held(rules, e));
    e->brief = e->brief || (e->enough && cannot_win(c, e));
    e->open = !e->brief && !(e->enough && o->rel_ci95 <= target);
}

static bool judge_all(timing_trial *c, int rounds) {
    bool open = false;
    c->noise = (timing_noise){0};
    for (int k = 0; c->steered && k < c->count; k++) {
        if (c->entrants[k].dead) continue;
        timing_series *s = &c->entrants[k].series;
        timing_judge_steered(s);
        timing_noise_add(&c->noise, s, timing_judge_first(s));
    }
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if (!e->dead && e->probe && c->pace.rules->among)
            judge_beside(c, e);
        else if (!e->dead && (e->open || k == 0 || c->steered))
            judge(c, e, rounds);
        open = open || e->open;
    }
    return open;
}

/* Once, before everything: between rounds the device would idle meanwhile, and a clock that has risen makes the
 * blocks that follow others than those before. */
static bool renewed(timing_trial *c, scout_answer (*fresh)(void *context, scout_why *why), void *fresh_context) {
    scout_why why = {.code = ""};
    if (!fresh) return true;
    timing_pace_beat(&c->pace, c->pace.rules->budget_s);
    const scout_answer answer = fresh(fresh_context, &why);
    for (int k = 0; k < c->count && answer != SCOUT_OK; k++) {
        c->entrants[k].result->why = why;
        timing_plan_fail(c, &c->entrants[k], answer);
    }
    return answer == SCOUT_OK;
}

/* The device is gone for all of them; whose run it was keeps its own words. */
static void all_lost(timing_trial *c) {
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if (e->dead && e->result->answer == SCOUT_LOST) continue;
        scout_say(&e->result->why, SCOUT_OK, "device_lost", "the device went away while another one ran");
        timing_plan_fail(c, e, SCOUT_LOST);
    }
}

/* Once it is found that the clock is steered, all that was measured is too short to say anything. */
static bool to_begin_anew(timing_trial *c, bool steered_before) {
    if (steered_before || !c->steered || c->lost) return false;
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if ((e->probe && !c->pace.rules->among) || e->dead) continue;
        timing_judge_forget(&e->series);
        e->open = true;
        e->brief = e->probe;
    }
    timing_plan_anew(c);
    timing_plan_load(c, 1);
    return true;
}

static double limit_of(const timing_trial *c, const timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    return e->relaxed ? rules->acceptable : fmax(c->steered ? rules->steered_target : rules->target, rules->last);
}

/* Intervals narrow as the root of the time: those that would be twice too wide when all of it is used are given up, so
 * that a restless machine costs a part of each budget and not all of it. */
static bool is_hopeless(const timing_trial *c, int rounds) {
    const double part = timing_plan_used(c) / c->budget_s;
    if (rounds < c->pace.rules->restless_rounds || part < hopeless_from) return false;
    for (int k = 0; k < c->count; k++) {
        const timing_entrant *e = &c->entrants[k];
        const bool among = e->probe && c->pace.rules->among;
        const double half = among ? e->beside : e->opinion.rel_ci95;
        const double limit = among ? c->pace.rules->among_last : limit_of(c, e);
        if (!e->dead && e->open && !(half * sqrt(part) > hopeless * limit)) return false;
    }
    return true;
}

/* Where one second of a steered clock was too little, another one is mostly enough. To end there would waste the load
 * before it, which took longer, and the operation would be measured again. */
static bool is_granted(const timing_trial *c, int rounds) {
    const timing_rules *rules = c->pace.rules;
    const double most = 1.5; /* launches that are long against a second have had all the time that there was */
    if (!c->steered || rounds >= rules->steered_rounds) return false;
    for (int k = 0; k < c->count; k++)
        if (timing_plan_turn(c, k) && timing_plan_cost(c, &c->entrants[k]) > most * rules->steered_block_s)
            return false;
    return true;
}

static void rounds(timing_trial *c) {
    probes(c);
    if (!c->lost) timing_plan_load(c, 1);
    for (int round = 0; round < MOST_ROUNDS && !c->lost; round++) {
        const bool steered = c->steered;
        if (round >= timing_plan_rounds(c)) {
            if (!judge_all(c, round) || is_hopeless(c, round)) break;
            if (!is_granted(c, round) && !timing_plan_room(c)) break;
        }
        one_round(c, round);
        if (to_begin_anew(c, steered)) round = -1;
    }
}

static void conclude(timing_trial *c, double *ratios, double *ratio_ci) {
    const timing_rules *rules = c->pace.rules;
    if (c->lost) all_lost(c);
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if (!e->dead) timing_fill(rules, e, e->result);
        if (e->dead || c->entrants[0].dead) continue;
        ratios[k] = 1;
        ratio_ci[k] = 0;
        if (k > 0) ratios[k] = timing_judge_ratio(&e->series, &c->entrants[0].series, &c->noise, &ratio_ci[k]);
    }
}

void timing_confirm(const timing_clock *clock, const timing_rules *rules, const timing_subject *subjects, int count,
                    scout_answer (*fresh)(void *context, scout_why *why), void *fresh_context, timing_result *results,
                    double *ratios, double *ratio_ci) {
    timing_trial c = {
        .pace = timing_pace_of(clock, rules), .count = count, .budget_s = (1 - rules->race_share) * rules->budget_s};
    if (count <= 0) return;
    c.begun_s = timing_pace_now(&c.pace);
    c.entrants = calloc((size_t)count, sizeof *c.entrants);
    for (int k = 0; k < count; k++) {
        results[k] = (timing_result){.answer = SCOUT_OK,
                                     .median_s = NAN,
                                     .mean_s = NAN,
                                     .min_s = NAN,
                                     .p05_s = NAN,
                                     .p95_s = NAN,
                                     .rel_ci95 = NAN,
                                     .clock_mhz = NAN,
                                     .memory_clock_mhz = NAN,
                                     .power_w = NAN,
                                     .temperature_c = NAN};
        ratios[k] = ratio_ci[k] = NAN;
        if (c.entrants)
            c.entrants[k] = (timing_entrant){.subject = &subjects[k],
                                             .result = &results[k],
                                             .open = true,
                                             .probe = rules->brief_from > 0 && k >= (int)rules->brief_from};
        else
            results[k].answer =
                scout_say(&results[k].why, SCOUT_NO_MEMORY, "memory", "no memory for %d subjects", count);
    }
    for (int k = 0; c.entrants && k < count; k++) c.entrants[k].brief = c.entrants[k].probe;
    if (!c.entrants) return;
    if (renewed(&c, fresh, fresh_context)) {
        timing_plan(&c);
        rounds(&c);
    }
    conclude(&c, ratios, ratio_ci);
    for (int k = 0; k < count; k++) timing_judge_free(&c.entrants[k].series);
    free(c.entrants);
}
