/* Warming up: a device is measured under load only once its clock has come to rest.
 *
 * A clock that nothing holds back is at rest when its slope is small. One that power holds back is steered: its
 * controller looks at about a second, so whatever rested for a moment swings once a second from then on, and hops
 * between neighbouring steps for ever. It never rests, but it makes up for what it misses: on the card that was watched
 * whole seconds are much alike but for the first one or two. So there is nothing to wait for but these. */
#include "scout/stats.h"
#include "scout/timing.h"
#include "scout/timing_pace.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 256, LEAST_SAMPLES = 5, HELD_BACK = 3 /* samples that say so: once is an accident */ };

static const double again_share = 0.5;     /* of the window: what idled for a moment comes to rest sooner */
static const double unsteered_share = 0.5; /* of the longest warm-up, where there is no clock to wait for */

/* What the warm-up has seen, one sample after each train. When it is full the older half is forgotten. */
typedef struct watch {
    double time_s[SAMPLES], clock_mhz[SAMPLES], launch_s[SAMPLES];
    size_t n;
} watch;

static void watch_add(watch *w, double time_s, const scout_telemetry *t, double launch_s) {
    if (w->n == SAMPLES) {
        const size_t half = SAMPLES / 2;
        memmove(w->time_s, w->time_s + half, half * sizeof w->time_s[0]);
        memmove(w->clock_mhz, w->clock_mhz + half, half * sizeof w->clock_mhz[0]);
        memmove(w->launch_s, w->launch_s + half, half * sizeof w->launch_s[0]);
        w->n = half;
    }
    w->time_s[w->n] = time_s;
    w->clock_mhz[w->n] = t->clock_mhz;
    w->launch_s[w->n] = launch_s;
    w->n++;
}

/* The change over the last window; infinite while there is too little to say. begun_s: when the load began, so that the
 * first train counts as long as it took. A launch that fills a window alone is its own average: two of them do. */
static double watch_slope(const watch *w, double begun_s, double window_s, double launch_s, bool *by_clock) {
    const size_t least = launch_s >= window_s ? 2 : LEAST_SAMPLES;
    if (w->n < least) return INFINITY;
    size_t first = w->n - least;
    while (first > 0 && w->time_s[w->n - 1] - w->time_s[first - 1] < window_s) first--;
    const double from_s = first > 0 ? w->time_s[first - 1] : begun_s;
    if (w->time_s[w->n - 1] - from_s < window_s) return INFINITY;
    const size_t n = w->n - first;
    *by_clock = true;
    for (size_t k = first; k < w->n; k++) *by_clock = *by_clock && w->clock_mhz[k] > 0;
    return fabs(stats_relative_drift(*by_clock ? w->clock_mhz + first : w->launch_s + first, n));
}

static scout_answer one_train(timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double *launch_s,
                              scout_why *why) {
    const double interval_s = pitch->launches * pitch->launch_s;
    const double fit = fmin(fmax(floor(p->rules->train_s / interval_s), 1), TIMING_PACE_TRAIN);
    double seconds[TIMING_PACE_TRAIN];
    const scout_answer answer =
        timing_pace_run(p, load, pitch->launches, (uint32_t)fit, fit * interval_s, true, seconds, why);
    if (answer == SCOUT_OK) *launch_s = stats_median(seconds, (size_t)fit) / pitch->launches;
    return answer;
}

static bool would_not_settle(double change, double over_s, double after_s, bool by_clock, scout_why *why) {
    const char *const what = by_clock ? "the clock" : "the duration of a launch";
    if (isfinite(change))
        scout_say(why, SCOUT_OK, "clock", "%s still changed by %.1f %% in %.1f s after %.1f s under load", what,
                  100 * change, over_s, after_s);
    else
        scout_say(why, SCOUT_OK, "clock", "launches are too long to see the clock settle within %.1f s", after_s);
    return false;
}

/* Runs the load, which began at begun_s, until it is steady, or has not rested for steered_s where it is steered. */
static bool until_steady(timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double begun_s,
                         double steered_s, scout_why *why) {
    const timing_rules *rules = p->rules;
    timing_state *state = timing_pace_state(p);
    watch w = {.n = 0};
    bool by_clock = false;
    int held_back = 0;
    double change = INFINITY, launch_s = 0, most_s = rules->settle_s;
    scout_telemetry now = timing_pace_telemetry(p);
    if (!(now.clock_mhz > 0)) most_s *= unsteered_share;
    if (pitch->single_s >= rules->window_s) watch_add(&w, timing_pace_now(p), &now, pitch->single_s);
    while (timing_pace_now(p) - begun_s < most_s) {
        if (one_train(p, load, pitch, &launch_s, why) != SCOUT_OK) return false;
        now = timing_pace_telemetry(p);
        held_back += timing_pace_steered(&now);
        state->steered = state->steered || held_back >= HELD_BACK;
        const double at_s = timing_pace_now(p);
        if (state->steered && at_s - state->loaded_since_s >= steered_s) return true;
        if (state->steered) continue;
        watch_add(&w, at_s, &now, launch_s);
        change = watch_slope(&w, begun_s, rules->window_s, pitch->launch_s, &by_clock);
        if (change < rules->settle_slope) return true;
    }
    return state->steered || would_not_settle(change, rules->window_s, most_s, by_clock, why);
}

bool timing_settle(const timing_clock *clock, const timing_rules *rules, const timing_subject *load, scout_why *why) {
    timing_pace pace = timing_pace_of(clock, rules);
    timing_pace_state(&pace)->steered = false; /* this load may need less power than the one before */
    if (rules->burst) {
        timing_pace_idle(&pace);
        return true;
    }
    timing_pitch pitch;
    const double begun_s = timing_pace_now(&pace);
    /* Warming up is what this does anyway. */
    const timing_pitch_wish wish = {.interval_s = rules->interval_s, .repeats = 1};
    if (timing_pace_find(&pace, load, &wish, &pitch, why) != SCOUT_OK) return false;
    return until_steady(&pace, load, &pitch, begun_s, rules->window_s, why);
}

void timing_settle_again(timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double most_s,
                         double part) {
    const timing_rules *whole = p->rules;
    timing_rules rules = *whole;
    scout_why ignored;
    rules.state = timing_pace_state(p);
    rules.window_s *= again_share;
    rules.train_s = fmin(rules.train_s, rules.window_s / LEAST_SAMPLES);
    rules.settle_s = rules.state->steered ? rules.steered_load_s : fmin(rules.settle_s, most_s);
    if (rules.burst || LEAST_SAMPLES * pitch->launches * pitch->launch_s > rules.settle_s) return;
    p->rules = &rules;
    (void)until_steady(p, load, pitch, timing_pace_now(p), part * rules.steered_load_s, &ignored);
    p->rules = whole;
}
