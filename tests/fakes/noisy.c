/* The scripted device: virtual seconds pass only where its functions say so. */
#include "tests/fakes/noisy.h"

#include <math.h>
#include <stdio.h>

static const double pi = 3.14159265358979323846;
static const double wander_s = 2;
static const double made_up = 0.3; /* of what is owed, by the next hold */

static uint64_t step(uint64_t *random) { /* splitmix64 */
    uint64_t z = *random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double noisy_uniform(uint64_t *random) { return ((double)(step(random) >> 11) + 0.5) / 9007199254740992.0; }

double noisy_normal(uint64_t *random) {
    const double radius = sqrt(-2 * log(noisy_uniform(random)));
    return radius * cos(2 * pi * noisy_uniform(random));
}

noisy noisy_quiet(uint64_t seed) {
    return (noisy){.random = seed * 7919 + 1,
                   .resolution_s = 0.5e-6,
                   .call_s = 40e-6,
                   .record_s = 1e-3,
                   .idle_mhz = 1980,
                   .clock_mhz = 1980,
                   .tau_s = 0.05,
                   .clock_known = true,
                   .clock_grain_mhz = 15,
                   .noise = 0.002,
                   .swing_period_s = 1,
                   .shortest_pause_s = INFINITY,
                   .due_s = -INFINITY};
}

noisy noisy_gpu(uint64_t seed) {
    noisy w = noisy_quiet(seed);
    w.gap_s = 1e-6;
    w.outlier_share = 0.002;
    w.outlier_factor = 3;
    return w;
}

/* Held against traces of a card with a cap of 700 W (docs/results/h200): see test_timing_power.c. */
noisy noisy_hopping(uint64_t seed, bool calm) {
    noisy w = noisy_gpu(seed);
    w.tau_s = 0.02;
    w.gap_s = 1e-6;
    w.step_mhz = calm ? 3 : 7.5;
    w.hold_s = 0.08;
    w.aim = calm ? 0.001 : 0.008;
    w.echo = 0.22;
    w.rest_s = 0.02;
    w.rested_s = 1;
    w.excursion_share = calm ? 0.012 : 0;
    w.excursion = 0.025;
    return w;
}

noisy noisy_shared(uint64_t seed) {
    noisy w = noisy_quiet(seed);
    w.clock_known = false;
    w.noise = 0.03;
    w.outlier_share = 0.02;
    w.outlier_factor = 3;
    w.swing = 0.25;
    w.swing_period_s = 1.7;
    w.swing_phase = noisy_uniform(&w.random);
    return w;
}

noisy_load noisy_load_of(noisy *world, double launch_s) {
    return (noisy_load){.world = world, .launch_s = launch_s, .loaded_mhz = world->idle_mhz};
}

noisy_load noisy_heavy(noisy *world, double launch_s, double loaded_mhz) {
    return (noisy_load){.world = world, .launch_s = launch_s, .compute = 1, .loaded_mhz = loaded_mhz};
}

double noisy_truth(const noisy_load *load) {
    return load->launch_s *
           fmax(1 - load->compute + load->compute * load->world->idle_mhz / load->loaded_mhz, load->least);
}

/* A second after a load began, and every second after that: what is taken then is given back over the rest of it. */
static double echo(const noisy *w) {
    const double period_s = 0.96, begin = 0.8, width = 0.1, second = 0.4, fades = 0.85;
    const double since = (w->now_s - w->loaded_since_s) / period_s, turn = floor(since), phase = since - turn;
    const double amplitude = w->echo * (turn > 0 ? second * pow(fades, turn - 1) : 1);
    return phase >= begin && phase < begin + width ? -amplitude : amplitude * width / (1 - width);
}

/* Where the clock of a steered card is wanted now; nothing is steered below what the load would draw. */
static double steered_mhz(noisy *w, double seconds, double loaded_mhz) {
    if (loaded_mhz >= w->idle_mhz) {
        w->rested_s += seconds;
        return w->idle_mhz;
    }
    if (w->rested_s > w->rest_s) w->loaded_since_s = w->now_s;
    w->rested_s = 0;
    if (w->now_s >= w->held_until_s) {
        w->held_until_s = w->now_s + w->hold_s * (0.5 + noisy_uniform(&w->random));
        if (noisy_uniform(&w->random) < w->excursion_share)
            w->aside = w->now_s + 0.1 + 0.15 * noisy_uniform(&w->random);
        const double error = w->aim * noisy_normal(&w->random) - made_up * w->owed;
        w->level = round(loaded_mhz * (1 + error) / w->step_mhz) * w->step_mhz / loaded_mhz - 1;
    }
    w->owed += w->level * seconds / w->hold_s;
    return loaded_mhz * (1 + w->level + echo(w) + (w->now_s < w->aside ? w->excursion : 0));
}

static void pass(noisy *w, double seconds, double target_mhz) {
    const double kept = exp(-seconds / wander_s);
    if (w->wander > 0) w->wandered = kept * w->wandered + sqrt(1 - kept * kept) * w->wander * noisy_normal(&w->random);
    if (w->step_mhz > 0) target_mhz = steered_mhz(w, seconds, target_mhz);
    w->clock_mhz += (target_mhz - w->clock_mhz) * (1 - exp(-seconds / w->tau_s)) - w->creep_mhz_per_s * seconds;
    w->now_s += seconds;
    if (w->creep_mhz_per_s > 0) w->idle_mhz -= w->creep_mhz_per_s * seconds;
}

/* One interval in pieces short against the clock's own time. */
static double interval(const noisy_load *load, uint32_t launches) {
    noisy *w = load->world;
    double left = launches, seconds = 0, cycles = 0, worked_s = 0;
    const double disturbed = (1 + w->noise * noisy_normal(&w->random)) *
                             (noisy_uniform(&w->random) < w->outlier_share ? w->outlier_factor : 1);
    while (left > 0) {
        const double others = 1 + w->swing * 0.5 * (1 + sin(2 * pi * (w->now_s / w->swing_period_s + w->swing_phase)));
        const double clock = fmax(1 - load->compute + load->compute * 1980 / w->clock_mhz, load->least);
        const double launch_s = load->launch_s * clock * others * disturbed * (1 + w->creep_per_s * w->now_s) *
                                (1 + w->wandered) * (1 + load->place);
        const double piece = fmin(left, fmax(w->tau_s / 10 / launch_s, 1e-6));
        cycles += 1e6 * w->clock_mhz * piece * launch_s;
        worked_s += piece * launch_s;
        pass(w, piece * launch_s, fmin(load->loaded_mhz, w->idle_mhz));
        seconds += piece * launch_s;
        left -= piece;
    }
    if (w->hz_count < sizeof w->hz / sizeof w->hz[0]) w->hz[w->hz_count++] = cycles / worked_s;
    const double taken =
        w->others > 0 && noisy_uniform(&w->random) < w->others ? w->others_s * noisy_uniform(&w->random) * seconds : 0;
    w->stolen_s += taken;
    seconds += w->gap_s + taken;
    w->now_s += w->gap_s + taken;
    /* The timer counts grains; where it begins within one is chance. */
    const double phase = noisy_uniform(&w->random);
    return (floor(seconds / w->resolution_s + phase)) * w->resolution_s;
}

static scout_answer run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    noisy_load *load = context;
    noisy *w = load->world;
    const double begun_s = w->now_s;
    load->runs++;
    w->runs++;
    w->switches += w->last != load;
    w->last = load;
    pass(w, w->call_s + (load->recorded != launches ? w->record_s : 0), w->idle_mhz);
    load->recorded = launches;
    if (load->fails_at && load->runs >= load->fails_at)
        return scout_say(why, load->answer, "error", "scripted to fail at run %u", load->fails_at);
    w->hz_count = 0;
    for (uint32_t k = 0; k < batches; k++) {
        seconds[k] = interval(load, launches);
        w->worked_s += seconds[k];
        w->burst_s += seconds[k];
        if (load->lies_s != 0) seconds[k] = load->lies_s;
    }
    load->launches += (uint64_t)launches * batches;
    w->longest_burst_s = fmax(w->longest_burst_s, w->burst_s);
    w->late += w->now_s > w->due_s || w->due_s < begun_s;
    return SCOUT_OK;
}

void noisy_idle(noisy *world, double seconds) { pass(world, seconds, world->idle_mhz); }

void noisy_place(noisy_load *load, double width, uint64_t seed) { load->place = width * (noisy_uniform(&seed) - 0.5); }

static double stolen(void *context) { return ((noisy *)context)->stolen_s; }
static double now(void *context) { return ((noisy *)context)->now_s; }

static uint32_t clocks(void *context, double *hz, uint32_t most) {
    const noisy *w = context;
    for (uint32_t k = 0; k < most && k < w->hz_count; k++) hz[k] = w->hz[k];
    return most < w->hz_count ? most : w->hz_count;
}

static void pause_for(void *context, double seconds) {
    noisy *w = context;
    pass(w, seconds, w->idle_mhz);
    w->burst_s = 0;
    w->bursts++;
    w->shortest_pause_s = fmin(w->shortest_pause_s, seconds);
    w->late += w->now_s > w->due_s;
}

static void telemetry(void *context, scout_telemetry *out) {
    noisy *w = context;
    pass(w, 0.5e-3, w->idle_mhz);
    out->clock_mhz = w->clock_known ? round(w->clock_mhz / w->clock_grain_mhz) * w->clock_grain_mhz : NAN;
    out->most_clock_mhz = w->clock_known ? w->idle_mhz : NAN;
    out->power_w = w->clock_known ? 695 : NAN;
    out->throttle = w->clock_mhz < 0.97 * w->idle_mhz && w->now_s >= w->silent_until_s ? 4 : 0;
    snprintf(out->throttle_text, sizeof out->throttle_text, "%s", out->throttle ? "power cap" : "");
}

static void beat(void *context, double seconds) {
    noisy *w = context;
    w->late += w->due_s > -INFINITY && w->now_s > w->due_s;
    w->due_s = w->now_s + seconds;
}

timing_clock noisy_clock(noisy *world) {
    return (timing_clock){.context = world,
                          .resolution_s = world->resolution_s,
                          .now = now,
                          .pause = pause_for,
                          .telemetry = telemetry,
                          .beat = beat,
                          .stolen = world->tells ? stolen : NULL,
                          .clocks = world->counts ? clocks : NULL};
}

timing_subject noisy_subject(noisy_load *load) { return (timing_subject){.context = load, .run = run}; }

scout_answer noisy_fresh(void *world, scout_why *why) {
    noisy *w = world;
    pass(w, w->fresh_s, w->idle_mhz);
    w->fresh_calls++;
    if (w->fresh_fails_at && w->fresh_calls >= w->fresh_fails_at)
        return scout_say(why, w->fresh_answer, "memory", "scripted to have no new inputs");
    return SCOUT_OK;
}
