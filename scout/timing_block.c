/* Running blocks: trains of intervals, the first part thrown away, the telemetry read where it disturbs nothing. What
 * ran before is gone from a block within a tenth of a second, and half as much again is thrown away.
 *
 * A clock that is steered never comes to rest. What disturbed its controller comes back once a second, so a block takes
 * a whole second, by the clock, and shows all of that whatever its phase. */
#include "scout/stats.h"
#include "scout/timing_plan.h"

#include <math.h>

/* More in one block only where a timer is broken: launches that take no time would never end. */
enum { MOST_TRAINS = 4096, MOST_PIECES = 8, LEAST_OF_PIECE = 5, MOST_STRETCH = 100 };

/* A clock that hops from one step to another shows within what a block keeps: pieces of it deviate by more than this.
 */
static const double piece_s = 0.05, hopping = 0.0025;

static void look(const timing_trial *c, timing_entrant *e) {
    e->series.blocks[e->series.block_count - 1].telemetry = timing_pace_telemetry(&c->pace);
}

/* `batches` intervals in one call; those from `from` on count. *worked_s grows by what they took. */
static scout_answer train(timing_trial *c, timing_entrant *e, uint32_t batches, uint32_t from, double *worked_s) {
    double seconds[TIMING_PACE_TRAIN];
    const scout_answer answer = timing_pace_run(&c->pace, e->subject, e->pitch.launches, batches,
                                                batches * timing_plan_interval(e), true, seconds, &e->result->why);
    if (answer != SCOUT_OK) return answer;
    for (uint32_t k = 0; k < batches; k++) {
        *worked_s += seconds[k];
        if (k >= from && !timing_judge_add(&e->series, seconds[k] / e->pitch.launches))
            return scout_say(&e->result->why, SCOUT_NO_MEMORY, "memory", "no memory for more intervals");
    }
    return SCOUT_OK;
}

static uint32_t train_length(const timing_trial *c, const timing_entrant *e, double wanted) {
    const double fit = floor(c->pace.rules->train_s / timing_plan_interval(e));
    return (uint32_t)fmax(fmin(fmin(ceil(wanted), fit), TIMING_PACE_TRAIN), 1);
}

/* Not where intervals are too long to tell. */
static bool clock_hops(const timing_entrant *e) {
    const timing_block *block = &e->series.blocks[e->series.block_count - 1];
    const size_t each = (size_t)fmax(ceil(piece_s / timing_plan_interval(e)), 1);
    double levels[MOST_PIECES];
    size_t n = 0;
    if (each < LEAST_OF_PIECE) return false;
    for (size_t k = 0; n < MOST_PIECES && (k + 1) * each <= block->count; k++)
        levels[n++] = stats_trimmed_mean(e->series.x + block->first + k * each, each);
    return n > 1 && stats_deviation(levels, n) > hopping * levels[0];
}

/* Trains until end_s, and until `least` intervals have been run; `kept`: they count. */
static scout_answer run_until(timing_trial *c, timing_entrant *e, double end_s, uint32_t least, bool kept,
                              double *worked_s, int *trains) {
    const timing_block *block = &e->series.blocks[e->series.block_count - 1];
    scout_answer answer = SCOUT_OK;
    for (double now_s = timing_pace_now(&c->pace); answer == SCOUT_OK && (*trains)++ < MOST_TRAINS;) {
        const double each_s = timing_plan_interval(e) * e->stretch;
        /* Half an interval too early or too late is as near as it gets. */
        if (block->count >= least && end_s - now_s < 0.5 * each_s) break;
        const double missing = fmax((double)least - (double)block->count, (end_s - now_s) / each_s);
        const uint32_t batches = train_length(c, e, missing);
        const double before_s = now_s, worked_before_s = *worked_s;
        answer = train(c, e, batches, kept ? 0 : batches, worked_s);
        now_s = timing_pace_now(&c->pace);
        if (answer == SCOUT_OK && *worked_s > worked_before_s)
            e->stretch = fmin(fmax((now_s - before_s) / (*worked_s - worked_before_s), 1), MOST_STRETCH);
    }
    return answer;
}

/* The telemetry is read when all is done: a reading lets the device idle for a moment, and its clock would rise. */
static scout_answer sustained_block(timing_trial *c, timing_entrant *e) {
    const timing_rules *rules = c->pace.rules;
    timing_block *block = &e->series.blocks[e->series.block_count - 1];
    const double started_s = timing_pace_now(&c->pace);
    const double end_s = started_s + (c->steered ? rules->steered_block_s : rules->block_s);
    const double drop_s = c->steered ? fmin(e->drop_s, rules->steered_drop_s) : e->drop_s;
    double dropped_s = 0;
    int trains = 0;
    scout_answer answer = drop_s > 0 ? run_until(c, e, started_s + drop_s, 0, false, &dropped_s, &trains) : SCOUT_OK;
    const double begun_s = timing_pace_now(&c->pace);
    if (answer == SCOUT_OK) answer = run_until(c, e, end_s, e->keep, true, &block->kept_s, &trains);
    if (answer == SCOUT_OK && !e->brief && !c->steered && (c->hops || clock_hops(e))) {
        c->hops = true; /* for all, for good: a clock that does not happen to hop now will */
        answer = run_until(c, e, started_s + rules->hopping_block_s, e->keep, true, &block->kept_s, &trains);
    }
    block->middle_s = (begun_s + timing_pace_now(&c->pace)) / 2;
    look(c, e);
    timing_plan_steered(c, &block->telemetry);
    e->block_s = timing_pace_now(&c->pace) - started_s;
    if (answer == SCOUT_OK && block->count == 0)
        return scout_say(&e->result->why, SCOUT_FAILED, "error", "%d trains of launches took no time", trains);
    return answer;
}

static scout_answer burst_block(timing_trial *c, timing_entrant *e) {
    timing_block *block = &e->series.blocks[e->series.block_count - 1];
    double worked_s = 0;
    timing_pace_idle(&c->pace);
    const scout_answer answer = train(c, e, e->drop + e->keep, e->drop, &worked_s);
    block->middle_s = timing_pace_now(&c->pace) - worked_s / 2;
    look(c, e);
    /* What turns out slower than it was found to be gets fewer intervals in the next burst. */
    const double interval_s = worked_s / (e->drop + e->keep);
    if (interval_s > timing_plan_interval(e)) {
        e->pitch.launch_s = interval_s / e->pitch.launches;
        const uint32_t rounds = e->rounds;
        timing_plan_shortest(c, e);
        e->rounds = rounds;
    }
    return answer;
}

void timing_block_run(timing_trial *c, timing_entrant *e) {
    if (!timing_judge_block(&e->series)) {
        timing_plan_fail(c, e, scout_say(&e->result->why, SCOUT_NO_MEMORY, "memory", "no memory for more blocks"));
        return;
    }
    const scout_answer answer = c->pace.rules->burst ? burst_block(c, e) : sustained_block(c, e);
    if (answer != SCOUT_OK) {
        timing_plan_fail(c, e, answer);
        return;
    }
    timing_judge_close(&e->series);
    if (!c->pace.rules->burst)
        e->pitch.launch_s = e->series.blocks[e->series.block_count - 1].level_s; /* the clock may have moved */
}
