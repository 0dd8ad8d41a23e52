/* Running subjects: one place that keeps the watchdog informed, the bursts short, and the intervals long enough. */
#include "scout/timing_pace.h"
#include "scout/stats.h"

#include <math.h>
#include <string.h>

/* Deadlines are for what hangs, not for what is slow. */
static const double patience_s = 10, patience_factor = 20;

/* What nobody has timed yet was run before, when it was verified: it is expected to be over in this, or the budget. */
static const double unknown_s = 10;

/* Intervals are aimed at a quarter above the least, and taken as found from a tenth above it: a clock that rises
 * afterwards, or a first guess that was too slow, leaves them long enough. */
static const double aim_factor = 1.25, found_factor = 1.1;

/* Of a burst: what runs slower than expected shall still be within it. */
static const double burst_fill = 0.95;

enum { MOST_LAUNCHES = 1 << 16, MOST_TRIES = 8 };

timing_pace timing_pace_of(const timing_clock *clock, const timing_rules *rules) {
    /* A burst begins with idling, whatever was before. */
    return (timing_pace){.clock = clock, .rules = rules, .burst_used_s = INFINITY};
}

timing_state *timing_pace_state(timing_pace *p) { return p->rules->state ? p->rules->state : &p->own; }

double timing_pace_now(const timing_pace *p) { return p->clock->now(p->clock->context); }

void timing_pace_beat(const timing_pace *p, double expected_s) {
    if (p->clock->beat) p->clock->beat(p->clock->context, patience_s + patience_factor * expected_s);
}

void timing_pace_idle(timing_pace *p) {
    timing_pace_beat(p, p->rules->idle_s);
    p->clock->pause(p->clock->context, p->rules->idle_s);
    p->burst_used_s = 0;
}

scout_answer timing_pace_run(timing_pace *p, const timing_subject *subject, uint32_t launches, uint32_t batches,
                             double expected_s, bool zero, double *seconds, scout_why *why) {
    const bool known = expected_s > 0;
    const double wanted_s = known ? expected_s : p->rules->burst_s;
    if (p->rules->burst && p->burst_used_s > 0 && p->burst_used_s + wanted_s > burst_fill * p->rules->burst_s)
        timing_pace_idle(p);
    timing_pace_beat(p, known ? expected_s : fmin(p->rules->budget_s, unknown_s));
    timing_state *state = timing_pace_state(p);
    const double begun_s = timing_pace_now(p);
    if (begun_s - state->busy_until_s > p->rules->rest_s) state->loaded_since_s = begun_s;
    const scout_answer answer = subject->run(subject->context, launches, batches, seconds, why);
    state->busy_until_s = timing_pace_now(p);
    if (answer != SCOUT_OK) return answer;
    for (uint32_t k = 0; k < batches; k++) {
        p->burst_used_s += seconds[k];
        if (!isfinite(seconds[k]) || seconds[k] < 0 || (zero && seconds[k] == 0))
            return scout_say(why, SCOUT_FAILED, "error", "the device's timer says that %u launches took %g s", launches,
                             seconds[k]);
    }
    return SCOUT_OK;
}

/* Rounded up to three binary digits: near enough, and a count that was recorded as a graph before is met again. */
static uint32_t rounded_up(double launches) {
    if (!(launches < MOST_LAUNCHES)) return MOST_LAUNCHES;
    uint32_t step = 1;
    while (launches > 8.0 * step) step *= 2;
    const uint32_t rounded = (uint32_t)ceil(launches / step) * step;
    return rounded ? rounded : 1;
}

static uint32_t whole_of(const timing_subject *subject) {
    const uint32_t whole = subject->whole ? subject->whole(subject->context) : 1;
    return whole > 1 && whole <= MOST_LAUNCHES ? whole : 1;
}

static uint32_t multiple(uint32_t launches, uint32_t whole) {
    const uint32_t over = launches % whole;
    if (over == 0) return launches;
    return launches + whole - over <= MOST_LAUNCHES ? launches + whole - over : launches - over;
}

/* Warm-ups that are still missing, as many as patience allows: launches of a tenth of a second are warm soon. */
static scout_answer warm_up(timing_pace *p, const timing_subject *subject, const timing_pitch *pitch, double warmed,
                            double patience, scout_why *why) {
    const timing_rules *rules = p->rules;
    const double interval_s = pitch->launches * pitch->launch_s;
    const double room_s = rules->burst ? rules->burst_s : rules->train_s;
    const double fit = fmin(fmax(floor(room_s / interval_s), 1), TIMING_PACE_TRAIN);
    double seconds[TIMING_PACE_TRAIN];
    double missing = ceil((rules->warmups - warmed) / pitch->launches);
    if (rules->burst && missing * interval_s + ceil(missing / fit) * rules->idle_s > patience) return SCOUT_OK;
    missing = fmin(missing, floor(patience / interval_s));
    while (missing > 0) {
        const double batches = fmin(missing, fit);
        const scout_answer answer =
            timing_pace_run(p, subject, pitch->launches, (uint32_t)batches, batches * interval_s, false, seconds, why);
        if (answer != SCOUT_OK) return answer;
        missing -= batches;
    }
    return SCOUT_OK;
}

/* Whether a launch alone looks so slow that its subject may be given up for it, and another one is not dear: a machine
 * that was busy for some milliseconds is no reason. */
static bool is_doubtful(const timing_pitch_wish *wish, double least_s, double single_s) {
    const double slow = 0.2, dear = 10; /* of what is too far behind; times an interval */
    return wish->far_s > 0 && single_s > slow * wish->far_s && single_s <= dear * least_s;
}

/* A launch alone, twice where it is short or doubtful: the first may carry what is done only once. */
static scout_answer find_single(timing_pace *p, const timing_subject *subject, const timing_pitch_wish *wish,
                                double least_s, timing_pitch *pitch, double *warmed, scout_why *why) {
    double seconds[1];
    scout_answer answer = timing_pace_run(p, subject, 1, 1, wish->guess_s, false, seconds, why);
    if (answer != SCOUT_OK) return answer;
    pitch->single_s = seconds[0];
    pitch->single_at_s = timing_pace_now(p) - seconds[0] / 2;
    *warmed = 1;
    if (pitch->single_s <= fmax(least_s, wish->patience_s / 8) || is_doubtful(wish, least_s, pitch->single_s)) {
        const double expected_s = fmax(pitch->single_s, p->clock->resolution_s);
        answer = timing_pace_run(p, subject, 1, 1, expected_s, false, seconds, why);
        if (answer != SCOUT_OK) return answer;
        pitch->single_s = fmin(pitch->single_s, seconds[0]);
        *warmed = 2;
    }
    pitch->launches = 1;
    pitch->launch_s = pitch->single_s;
    pitch->far = wish->far_s > 0 && pitch->single_s > wish->far_s;
    return SCOUT_OK;
}

scout_answer timing_pace_find(timing_pace *p, const timing_subject *subject, const timing_pitch_wish *wish,
                              timing_pitch *pitch, scout_why *why) {
    const double resolution_s = p->clock->resolution_s, finest_s = p->rules->resolutions * resolution_s;
    const double least_s = fmax(wish->interval_s, finest_s);
    double seconds[TIMING_PACE_TRAIN];
    double warmed = 0;
    *pitch = (timing_pitch){.launches = 1};
    scout_answer answer = find_single(p, subject, wish, least_s, pitch, &warmed, why);
    if (answer != SCOUT_OK || pitch->far) return answer;

    const uint32_t whole = whole_of(subject);
    double interval_s = whole > 1 ? 0 : pitch->single_s;
    for (int tries = 0; tries < MOST_TRIES && interval_s < found_factor * least_s; tries++) {
        if (pitch->launches == multiple(MOST_LAUNCHES, whole)) break;
        const double guess_s = fmax(pitch->launch_s, resolution_s / pitch->launches);
        pitch->launches = multiple(rounded_up(aim_factor * least_s / guess_s), whole);
        answer = timing_pace_run(p, subject, pitch->launches, wish->repeats, pitch->launches * wish->repeats * guess_s,
                                 false, seconds, why);
        if (answer != SCOUT_OK) return answer;
        interval_s = stats_median(seconds, wish->repeats);
        pitch->launch_s = interval_s / pitch->launches;
        warmed += (double)pitch->launches * wish->repeats;
    }
    if (interval_s < finest_s || interval_s <= 0)
        return scout_say(why, SCOUT_FAILED, "error", "%u launches take %g s, too short for a timer of %g s",
                         pitch->launches, interval_s, resolution_s);
    return warm_up(p, subject, pitch, warmed, wish->patience_s, why);
}

scout_telemetry timing_pace_telemetry(const timing_pace *p) {
    scout_telemetry t = {
        .size = sizeof t, .clock_mhz = NAN, .memory_clock_mhz = NAN, .power_w = NAN, .temperature_c = NAN};
    if (p->clock->telemetry) p->clock->telemetry(p->clock->context, &t);
    t.throttle_text[sizeof t.throttle_text - 1] = 0;
    return t;
}

bool timing_pace_steered(const scout_telemetry *t) { return t->throttle && strstr(t->throttle_text, "power") != NULL; }
