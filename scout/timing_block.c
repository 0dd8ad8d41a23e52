/* Running blocks: trains of intervals, the first part thrown away, the telemetry read where it disturbs nothing. */
#include "scout/stats.h"
#include "scout/timing_plan.h"

#include <math.h>
#include <string.h>

/* More in one block only where a timer is broken: launches that take no time would never end. */
enum { MOST_TRAINS = 4096, TRAIL = 1024, LEAST_TRAIL = 8 };

/* After a subject that draws another power a clock may need longer than usual: a half of what is thrown away that
 * differs by more than this from the other half is followed by more of it. Were the clock's own time as long as the
 * part thrown away, what then remains in the median would be three quarters of this. */
static const double notable = 0.0015, beyond = 2; /* relative; and in deviations of what noise makes of it */
static const double most_dropped = 4;             /* times the least */
static const double normal_spread = 3.29;         /* from the 5th to the 95th percentile, in deviations */

/* The intervals that were thrown away last. */
typedef struct trail {
    double x[TRAIL], seconds;
    size_t n;
} trail;

static void trail_add(trail *t, double seconds) {
    if (t->n == TRAIL) {
        t->n = TRAIL / 2;
        memmove(t->x, t->x + TRAIL / 2, t->n * sizeof t->x[0]);
    }
    t->x[t->n++] = seconds;
    t->seconds += seconds;
}

/* The deviation of n <= TRAIL intervals from what they go along with, from the steps between neighbours: neither a
 * trend nor outliers widen it. */
static double noise_of(const double *x, size_t n) {
    double steps[TRAIL];
    for (size_t k = 0; k + 1 < n; k++) steps[k] = fabs(x[k + 1] - x[k]);
    return stats_median(steps, n - 1) / (0.6745 * sqrt(2));
}

/* A restless device is never still: waiting for it would choose the crests and valleys of what moves it. */
static bool still_moving(const trail *t, double window_s, double interval_s) {
    const size_t half = (size_t)(fmin(window_s / interval_s, (double)t->n) / 2);
    if (2 * half < LEAST_TRAIL) return false;
    const double *later = t->x + t->n - half, *earlier = later - half;
    const double at_s = stats_median(later, half), moved_s = fabs(stats_median(earlier, half) - at_s);
    const double noise_s = noise_of(earlier, 2 * half);
    if (normal_spread * noise_s > timing_judge_restless * at_s) return false;
    /* A median's deviation is 1.2533 times that of a mean; there are two of them. */
    return moved_s > fmax(notable * at_s, beyond * 1.2533 * noise_s * sqrt(2 / (double)half));
}

static void look(const timing_trial *c, timing_entrant *e) {
    e->series.blocks[e->series.block_count - 1].telemetry = timing_pace_telemetry(&c->pace);
}

/* `batches` intervals in one call; those from `from` on count and go into the series, the others into the trail (which
 * may be NULL). *worked_s grows by what they took. */
static scout_answer train(timing_trial *c, timing_entrant *e, uint32_t batches, uint32_t from, trail *dropped,
                          double *worked_s) {
    double seconds[TIMING_PACE_TRAIN];
    const scout_answer answer = timing_pace_run(&c->pace, e->subject, e->pitch.launches, batches,
                                                batches * timing_plan_interval(e), true, seconds, &e->result->why);
    if (answer != SCOUT_OK) return answer;
    for (uint32_t k = 0; k < batches; k++) {
        *worked_s += seconds[k];
        if (k < from && dropped) trail_add(dropped, seconds[k]);
        if (k >= from && !timing_judge_add(&e->series, seconds[k] / e->pitch.launches))
            return scout_say(&e->result->why, SCOUT_NO_MEMORY, "memory", "no memory for more intervals");
    }
    return SCOUT_OK;
}

static uint32_t train_length(const timing_trial *c, const timing_entrant *e, double wanted) {
    const double fit = floor(c->pace.rules->train_s / timing_plan_interval(e));
    return (uint32_t)fmax(fmin(fmin(ceil(wanted), fit), TIMING_PACE_TRAIN), 1);
}

/* Runs what is thrown away: drop_s of it, and more while the device is still on its way. */
static scout_answer come_to_rest(timing_trial *c, timing_entrant *e, trail *dropped, int *trains) {
    const double interval_s = timing_plan_interval(e);
    double wanted_s = e->drop_s;
    scout_answer answer = SCOUT_OK;
    for (;;) {
        while (answer == SCOUT_OK && dropped->seconds < wanted_s && (*trains)++ < MOST_TRAINS) {
            const uint32_t batches = train_length(c, e, (wanted_s - dropped->seconds) / interval_s);
            double worked_s = 0;
            answer = train(c, e, batches, batches, dropped, &worked_s);
        }
        const double more_s = e->drop_s / 2;
        if (answer != SCOUT_OK || wanted_s + more_s > most_dropped * e->drop_s || c->spare_s < more_s ||
            !still_moving(dropped, e->drop_s, interval_s))
            return answer;
        wanted_s += more_s;
        c->spare_s -= more_s;
    }
}

/* The telemetry is read when all is done: a reading lets the device idle for a moment, and its clock would rise. */
static scout_answer sustained_block(timing_trial *c, timing_entrant *e) {
    const double count_s = c->pace.rules->block_s - e->drop_s;
    timing_block *block = &e->series.blocks[e->series.block_count - 1];
    const double started_s = timing_pace_now(&c->pace);
    double kept_s = 0;
    trail dropped = {.n = 0};
    int trains = 0;
    scout_answer answer = come_to_rest(c, e, &dropped, &trains);
    const double begun_s = timing_pace_now(&c->pace);
    while (answer == SCOUT_OK && (block->count < e->keep || kept_s < count_s) && trains++ < MOST_TRAINS) {
        const double missing =
            fmax((double)e->keep - (double)block->count, (count_s - kept_s) / timing_plan_interval(e));
        answer = train(c, e, train_length(c, e, missing), 0, NULL, &kept_s);
    }
    block->middle_s = (begun_s + timing_pace_now(&c->pace)) / 2;
    look(c, e);
    e->block_s = timing_pace_now(&c->pace) - started_s;
    if (answer == SCOUT_OK && block->count == 0)
        return scout_say(&e->result->why, SCOUT_FAILED, "error", "%d trains of launches took no time", trains);
    return answer;
}

static scout_answer burst_block(timing_trial *c, timing_entrant *e) {
    timing_block *block = &e->series.blocks[e->series.block_count - 1];
    double worked_s = 0;
    timing_pace_idle(&c->pace);
    const scout_answer answer = train(c, e, e->drop + e->keep, e->drop, NULL, &worked_s);
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

void timing_block_run(timing_trial *c, timing_entrant *e, int round) {
    if (!timing_judge_block(&e->series, round)) {
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
        e->pitch.launch_s = e->series.blocks[e->series.block_count - 1].median_s; /* the clock may have moved */
}
