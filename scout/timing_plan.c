/* Planning blocks: the method's minima where launches are short, what the budget has room for where they are long. */
#include "scout/timing_plan.h"

#include <math.h>

static const double burst_fill = 0.9;  /* of a burst, so that a slower moment stays within it */
static const double warm_share = 0.25; /* of a subject's time, for its warm-ups */
static const double hopeless = 10,
                    brief_s = 2e-5;   /* times the baseline's launch; that is taken for no shorter than this */
enum { HELD_BACK = 2 };               /* blocks: once is an accident */
static const double long_share = 0.1; /* of a second of a steered clock */
static const double again_s = 1, again_share = 0.1; /* most for loading the device again; of the budget */

double timing_plan_used(const timing_trial *c) { return timing_pace_now(&c->pace) - c->begun_s; }

double timing_plan_interval(const timing_entrant *e) { return e->pitch.launches * e->pitch.launch_s; }

uint64_t timing_plan_launches(const timing_entrant *e) { return (uint64_t)e->opinion.n * e->pitch.launches; }

uint32_t timing_plan_least(const timing_rules *rules, const timing_entrant *e) {
    return e->probe && rules->among ? 0 : rules->launches;
}

/* Whole intervals are thrown away. */
static double dropped_s(const timing_entrant *e) {
    return ceil(e->drop_s / timing_plan_interval(e)) * timing_plan_interval(e);
}

double timing_plan_cost(const timing_trial *c, const timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    if (rules->burst) return rules->idle_s + (e->drop + e->keep) * timing_plan_interval(e);
    return fmax(fmax(dropped_s(e) + e->keep * timing_plan_interval(e), rules->block_s), e->block_s);
}

/* Who has settled rests; the baseline goes on, as the neighbour of the others, and so does a probe among them. */
bool timing_plan_turn(const timing_trial *c, int k) {
    const timing_entrant *e = &c->entrants[k];
    if (e->dead) return false;
    return e->probe ? c->pace.rules->among : e->open || k == 0;
}

bool timing_plan_room(const timing_trial *c) {
    double sum_s = 0;
    for (int k = 0; k < c->count; k++)
        if (timing_plan_turn(c, k)) sum_s += timing_plan_cost(c, &c->entrants[k]);
    return timing_plan_used(c) + sum_s <= c->budget_s;
}

void timing_plan_fail(timing_trial *c, timing_entrant *e, scout_answer answer) {
    e->dead = true;
    e->open = false;
    e->result->answer = answer;
    c->lost = c->lost || answer == SCOUT_LOST;
}

/* A race that ran out of time leaves some that it did not look at; what nothing can save from being the slowest is told
 * by its first launch. */
static double far_s(const timing_trial *c, int k) {
    const timing_entrant *first = &c->entrants[0];
    if (k == 0 || first->dead || c->entrants[k].probe) return 0;
    return hopeless * fmax(first->pitch.launch_s, brief_s);
}

static void say_far(timing_trial *c, timing_entrant *e) {
    scout_say(&e->result->why, SCOUT_NO, "outraced", "a single launch takes %.1f times as long as %s",
              e->pitch.single_s / c->entrants[0].pitch.launch_s,
              c->pace.rules->contest ? "the baseline's" : "the first one's");
    timing_plan_fail(c, e, SCOUT_NO);
}

static void find_pitches(timing_trial *c) {
    const timing_rules *rules = c->pace.rules;
    for (int k = 0; k < c->count && !c->lost; k++) {
        timing_entrant *e = &c->entrants[k];
        const timing_pitch_wish wish = {.interval_s = rules->interval_s,
                                        .repeats = 3,
                                        .patience_s = warm_share * c->budget_s / c->count,
                                        .far_s = far_s(c, k)};
        /* Long launches may have used up everything before a later subject's turn. */
        if (k > 0 && timing_plan_used(c) > rules->budget_s) {
            timing_plan_fail(
                c, e,
                scout_say(&e->result->why, SCOUT_NO, "budget", "%.1f s were used up before its turn", rules->budget_s));
            continue;
        }
        const scout_answer answer = timing_pace_find(&c->pace, e->subject, &wish, &e->pitch, &e->result->why);
        if (answer != SCOUT_OK)
            timing_plan_fail(c, e, answer);
        else if (e->pitch.far)
            say_far(c, e);
    }
}

static int living(const timing_trial *c) {
    int count = 0;
    for (int k = 0; k < c->count; k++) count += !c->entrants[k].dead;
    return count;
}

static double round_cost_s(const timing_trial *c) {
    double sum = 0;
    for (int k = 0; k < c->count; k++)
        if (!c->entrants[k].dead) sum += timing_plan_cost(c, &c->entrants[k]);
    return sum;
}

/* Launches that are long against a second show all of it one by one. */
static void find_steered(timing_trial *c) {
    const timing_rules *rules = c->pace.rules;
    double longest_s = 0;
    if (c->steered) return; /* for good: what was measured since then was measured so */
    for (int k = 0; k < c->count; k++)
        if (!c->entrants[k].dead) longest_s = fmax(longest_s, c->entrants[k].pitch.launch_s);
    c->steered =
        !rules->burst && timing_pace_state(&c->pace)->steered && longest_s < long_share * rules->steered_block_s;
}

/* No idle time lies between this and the blocks: a device that rests for a moment is faster for the next. */
void timing_plan_load(timing_trial *c, double part) {
    const timing_entrant *first = &c->entrants[0];
    if (first->dead || first->pitch.launch_s >= c->pace.rules->block_s) return;
    timing_settle_again(&c->pace, first->subject, &first->pitch, fmin(again_s, again_share * c->budget_s), part);
    find_steered(c);
}

void timing_plan_steered(timing_trial *c, const scout_telemetry *t) {
    c->held_back += timing_pace_steered(t);
    if (c->held_back < HELD_BACK) return;
    timing_pace_state(&c->pace)->steered = true;
    find_steered(c);
}

int timing_plan_rounds(const timing_trial *c) { return c->steered ? 1 : TIMING_PLAN_ROUNDS; }

/* The shortest block that is one, then what the minima ask for, spread over two rounds. */
void timing_plan_shortest(const timing_trial *c, timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    const double interval_s = timing_plan_interval(e);
    if (rules->burst) {
        const double fit = floor(burst_fill * rules->burst_s / interval_s);
        e->drop = fit >= 3 ? 1 : 0;
        e->keep = fit >= 2 ? (uint32_t)fmin(fit, TIMING_PACE_TRAIN) - e->drop : 1;
        const double batches = ceil((double)rules->batches / e->keep);
        e->rounds = (uint32_t)fmax(batches, ceil((double)rules->launches / e->keep / e->pitch.launches));
        return;
    }
    /* A launch as long as a block has its transition within itself. */
    e->stretch = 1;
    e->drop_s = e->pitch.launch_s >= rules->block_s ? 0 : rules->block_drop * rules->block_s;
    e->series.per_look = (size_t)fmax(ceil(rules->look_s / interval_s), 1);
    e->keep = (uint32_t)fmax(ceil((rules->block_s - e->drop_s) / interval_s), 1);
}

/* Where the clock is steered one round may be all, and so it has room for everything. */
static int minima_rounds(const timing_trial *c) { return c->steered ? 1 : c->pace.rules->minima_rounds; }

static uint32_t full_block(const timing_trial *c, const timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    const uint32_t rounds = (uint32_t)minima_rounds(c), batches = (rules->batches + rounds - 1) / rounds;
    const uint32_t intervals = (timing_plan_least(rules, e) + e->pitch.launches - 1) / e->pitch.launches;
    const uint32_t wanted = (intervals + rounds - 1) / rounds;
    const uint32_t most = wanted > batches ? wanted : batches;
    return e->keep > most ? e->keep : most;
}

/* Bursts are as long as they are; whether the minima can be met is a question of their number. */
static void plan_bursts(timing_trial *c, double left_s) {
    const double round_s = round_cost_s(c);
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        e->relaxed = e->rounds > TIMING_PLAN_ROUNDS && e->rounds * round_s > left_s;
    }
}

static double full_cost_s(const timing_trial *c, const timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    return fmax(dropped_s(e) + full_block(c, e) * timing_plan_interval(e),
                c->steered ? rules->steered_block_s : rules->block_s);
}

static void plan_blocks(timing_trial *c, double left_s) {
    const int rounds = minima_rounds(c);
    double full_s = 0;
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if (!e->dead) full_s += rounds * full_cost_s(c, e);
    }
    const double share_s = left_s / (rounds * (living(c) ? living(c) : 1));
    for (int k = 0; k < c->count; k++) {
        timing_entrant *e = &c->entrants[k];
        if (e->dead) continue;
        const uint32_t full = full_block(c, e);
        const double fit = full_s <= left_s ? full : floor((share_s - dropped_s(e)) / timing_plan_interval(e));
        e->relaxed = fit < full && e->keep < full;
        e->keep = (uint32_t)fmin(fmax(fit, e->keep), full);
    }
}

/* A launch as long as a block is one; the first look at it is too dear to be thrown away. */
static void count_single(timing_trial *c, timing_entrant *e) {
    if (e->dead || c->pace.rules->burst || e->drop_s > 0) return;
    if (!timing_judge_block(&e->series) || !timing_judge_add(&e->series, e->pitch.single_s)) {
        timing_plan_fail(c, e, scout_say(&e->result->why, SCOUT_NO_MEMORY, "memory", "no memory for its intervals"));
        return;
    }
    e->series.blocks[0].middle_s = e->pitch.single_at_s;
    e->series.blocks[0].kept_s = e->pitch.single_s;
    timing_judge_close(&e->series);
}

/* Two rounds are measured in any case where launches are short; where they are long, as many subjects as the whole
 * budget has room for. */
static void lay_out(timing_trial *c) {
    const timing_rules *rules = c->pace.rules;
    for (int k = 0; k < c->count; k++)
        if (!c->entrants[k].dead) timing_plan_shortest(c, &c->entrants[k]);
    for (int k = c->count - 1; k > 0; k--) {
        timing_entrant *e = &c->entrants[k];
        const double granted_s = 1.2 * (rules->burst ? rules->idle_s + rules->burst_s : rules->block_s);
        const double room_s = fmax(rules->budget_s - timing_plan_used(c), TIMING_PLAN_ROUNDS * living(c) * granted_s);
        if (e->dead || TIMING_PLAN_ROUNDS * round_cost_s(c) <= room_s) continue;
        timing_plan_fail(c, e,
                         scout_say(&e->result->why, SCOUT_NO, "budget", "launches of %.3g s: no time for it in %.1f s",
                                   e->pitch.launch_s, rules->budget_s));
    }
    const double left_s = c->budget_s - timing_plan_used(c);
    if (rules->burst)
        plan_bursts(c, left_s);
    else
        plan_blocks(c, left_s);
    for (int k = 0; k < c->count; k++) count_single(c, &c->entrants[k]);
}

void timing_plan_anew(timing_trial *c) { plan_blocks(c, c->budget_s - timing_plan_used(c)); }

void timing_plan(timing_trial *c) {
    find_pitches(c);
    find_steered(c);
    if (!c->lost) lay_out(c);
}
