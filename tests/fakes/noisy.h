/* A scripted device with a clock of its own, so that timing can be tried without time: it runs loads whose true
 * duration is known, and disturbs them as real devices do. Nothing here reads a real clock. */
#ifndef TESTS_FAKES_NOISY_H
#define TESTS_FAKES_NOISY_H

#include "scout/timing/timing.h"

typedef struct noisy {
    double now_s;
    uint64_t random;
    /* The timer: its grain, and what it sees besides the launches of an interval. */
    double resolution_s, gap_s;
    double call_s;   /* between two calls of run, the device idling */
    double record_s; /* a launch count that was not run before costs so much */
    /* The clock: high when idle, and under load on its way to what the load leaves it. */
    double idle_mhz, clock_mhz, tau_s;
    bool clock_known; /* by the telemetry */
    double clock_grain_mhz;
    /* Or, where step_mhz is given, a controller that hops between steps: each is held for about hold_s, aimed at what
     * the load leaves with a relative error of `aim`, and what one missed the next ones make up for. Whatever rested
     * for rest_s comes back as an echo once a second: the clock falls by `echo` for a tenth of it, later by less. A
     * rare excursion lifts the clock for some holds. */
    double step_mhz, hold_s, aim, echo, rest_s, excursion_share, excursion;
    double level, owed, held_until_s, aside, rested_s, loaded_since_s;
    double silent_until_s; /* its telemetry does not tell before that it is held back */
    /* Disturbances: of an interval (relative deviation), by others on the machine, and what never ends. */
    double noise, outlier_share, outlier_factor;
    double swing, swing_period_s, swing_phase;
    double wander, wandered; /* a slow random walk about the truth: its relative deviation, and where it is */
    double creep_per_s;      /* launches become slower for ever */
    double others, others_s; /* part of the intervals in which other work runs, and how much of it at most, relative */
    bool tells;              /* the clock says how much of the time other work has taken */
    double stolen_s;
    bool counts; /* the device counts its cycles: the mean clock of each interval */
    double hz[128];
    uint32_t hz_count;
    double creep_mhz_per_s; /* the clock falls for ever */
    /* What was seen. */
    double worked_s, burst_s, longest_burst_s, shortest_pause_s;
    uint32_t bursts, runs, late, switches;
    double due_s;
    const void *last;
    double fresh_s; /* what new inputs take */
    uint32_t fresh_calls, fresh_fails_at;
    scout_answer fresh_answer;
} noisy;

typedef struct noisy_load {
    noisy *world;
    double launch_s;   /* at the idle clock */
    double compute;    /* part of it that goes with the clock; the rest does not care */
    double least;      /* memory takes so many times launch_s at any clock; a launch takes as long as what is slower */
    double loaded_mhz; /* the clock that this load leaves */
    double place;      /* how much longer a launch takes where its memory lies, relative: noisy_place */
    uint32_t fails_at; /* run number, from 1; 0: never */
    scout_answer answer;
    double lies_s; /* not 0: what the timer says instead */
    uint32_t runs;
    uint64_t launches;
    uint32_t recorded; /* the launch count of the last run */
} noisy_load;

noisy noisy_quiet(uint64_t seed);              /* resolution 0.5 us, noise 0.2 %, no other disturbance */
noisy noisy_gpu(uint64_t seed);                /* and the clock of a card at its power limit */
noisy noisy_hopping(uint64_t seed, bool calm); /* a card at its power limit, as one was seen; calm: long kernels */
noisy noisy_shared(uint64_t seed); /* a CPU among others: 3 % noise, outliers, slow swings by a quarter, no clock */

noisy_load noisy_load_of(noisy *world, double launch_s);                  /* does not care about the clock */
noisy_load noisy_heavy(noisy *world, double launch_s, double loaded_mhz); /* does, and pulls it down */
double noisy_truth(const noisy_load *load);                               /* once its own load has settled the clock */

void noisy_place(noisy_load *load, double width, uint64_t seed); /* another place: a draw from so wide a range */
void noisy_idle(noisy *world, double seconds);                   /* nothing of ours runs */

timing_clock noisy_clock(noisy *world);
timing_subject noisy_subject(noisy_load *load);
scout_answer noisy_fresh(void *world, scout_why *why);

double noisy_uniform(uint64_t *random);
double noisy_normal(uint64_t *random);

#endif
