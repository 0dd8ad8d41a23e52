/* Warming up: a device is measured under load only once its clock has come to rest.
 *
 * A clock that nothing holds back is at rest when its slope is small. One that is throttled is steered: from a cool
 * start it hunts for its place for seconds, once a second or so, and rests for a moment at every turn; later it hops
 * between neighbouring steps for ever. So there spans as long as a period are compared. */
#include "scout/stats.h"
#include "scout/timing.h"
#include "scout/timing_pace.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 256, LEAST_SAMPLES = 5 };

static const double again_share = 0.5;     /* of the window: what idled for a moment comes to rest sooner */
static const double alike = 0.005;         /* levels of a steered clock agree within this */
static const double calm = 0.015;          /* quarters of a span lie this near to each other: it hunts no more */
static const double still_as_wide = 0.9;   /* as the spans before: what is left is no hunting, and will stay */
static const double unsteered_share = 0.5; /* of the longest warm-up, where there is no clock to wait for */

/* What the warm-up has seen, one sample after each train. When it is full the older half is forgotten. */
typedef struct watch {
    double time_s[SAMPLES], clock_mhz[SAMPLES], launch_s[SAMPLES];
    size_t n;
    double throttled_s; /* when it was seen last */
} watch;

static bool throttled(const scout_telemetry *t) {
    return t->throttle && t->throttle_text[0] && strcmp(t->throttle_text, "idle") != 0;
}

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
    if (throttled(t)) w->throttled_s = time_s;
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

enum { QUARTERS = 4 };

typedef struct span {
    double mean_s, range, halves; /* range of the quarters and difference of the halves, relative */
} span;

/* The launches of the time that ends with end_s. False: not all of it was seen. */
static bool span_of(const watch *w, double end_s, double length_s, span *out) {
    double sum[QUARTERS] = {0}, count[QUARTERS] = {0}, least = INFINITY, most = 0;
    for (size_t k = 0; k < w->n; k++) {
        const double quarter = floor(QUARTERS * (1 - (end_s - w->time_s[k]) / length_s - 1e-9));
        if (quarter < 0 || quarter >= QUARTERS) continue;
        sum[(int)quarter] += w->launch_s[k];
        count[(int)quarter]++;
    }
    for (int k = 0; k < QUARTERS; k++) {
        if (count[k] == 0) return false;
        least = fmin(least, sum[k] / count[k]);
        most = fmax(most, sum[k] / count[k]);
    }
    const double first_s = sum[0] / count[0] + sum[1] / count[1], second_s = sum[2] / count[2] + sum[3] / count[3];
    *out = (span){.mean_s = (first_s + second_s) / QUARTERS};
    out->range = (most - least) / out->mean_s;
    out->halves = 2 * fabs(first_s - second_s) / QUARTERS / out->mean_s;
    return true;
}

/* *range: of the last span; infinite: too little was seen. */
static bool steered_to_rest(const watch *w, double hunt_s, double *range) {
    const double end_s = w->time_s[w->n - 1];
    span last, previous, earlier;
    *range = INFINITY;
    if (!span_of(w, end_s, hunt_s, &last)) return false;
    *range = last.range;
    if (last.range <= calm && last.halves <= alike) return true;
    if (!span_of(w, end_s - hunt_s, hunt_s, &previous) || !span_of(w, end_s - 2 * hunt_s, hunt_s, &earlier))
        return false;
    return fabs(last.mean_s / previous.mean_s - 1) <= alike &&
           last.range >= still_as_wide * fmax(previous.range, earlier.range);
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

/* Runs the load until it was steady; begun_s: since when it runs. hunt_s: 0: no steering is waited for. */
static bool until_steady(timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double begun_s,
                         double hunt_s, scout_why *why) {
    const timing_rules *rules = p->rules;
    watch w = {.n = 0, .throttled_s = -INFINITY};
    bool by_clock = false, steered = false;
    double change = INFINITY, launch_s = 0, most_s = rules->settle_s;
    scout_telemetry now = timing_pace_telemetry(p);
    if (!(now.clock_mhz > 0)) most_s *= unsteered_share;
    if (pitch->single_s >= rules->window_s) watch_add(&w, timing_pace_now(p), &now, pitch->single_s);
    while (timing_pace_now(p) - begun_s < most_s) {
        if (one_train(p, load, pitch, &launch_s, why) != SCOUT_OK) return false;
        now = timing_pace_telemetry(p);
        watch_add(&w, timing_pace_now(p), &now, launch_s);
        steered = QUARTERS * pitch->launch_s < hunt_s && w.time_s[w.n - 1] - w.throttled_s < rules->window_s;
        if (steered && steered_to_rest(&w, hunt_s, &change)) return true;
        if (steered) continue;
        change = watch_slope(&w, begun_s, rules->window_s, pitch->launch_s, &by_clock);
        if (change < rules->settle_slope) return true;
    }
    return would_not_settle(change, steered ? hunt_s : rules->window_s, most_s, by_clock || steered, why);
}

bool timing_settle(const timing_clock *clock, const timing_rules *rules, const timing_subject *load, scout_why *why) {
    timing_pace pace = timing_pace_of(clock, rules);
    if (rules->burst) {
        timing_pace_idle(&pace);
        return true;
    }
    timing_pitch pitch;
    const double begun_s = timing_pace_now(&pace);
    /* Warming up is what this does anyway. */
    const timing_pitch_wish wish = {.interval_s = rules->interval_s, .repeats = 1};
    if (timing_pace_find(&pace, load, &wish, &pitch, why) != SCOUT_OK) return false;
    return until_steady(&pace, load, &pitch, begun_s, rules->hunt_s, why);
}

void timing_settle_again(const timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double most_s) {
    timing_rules rules = *p->rules;
    timing_pace pace = *p;
    scout_why ignored;
    pace.rules = &rules;
    rules.window_s *= again_share;
    rules.train_s = fmin(rules.train_s, rules.window_s / LEAST_SAMPLES);
    rules.settle_s = fmin(rules.settle_s, most_s);
    if (rules.burst || LEAST_SAMPLES * pitch->launches * pitch->launch_s > rules.settle_s) return;
    (void)until_steady(&pace, load, pitch, timing_pace_now(p), 0, &ignored);
}
