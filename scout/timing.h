/* The timing engine: when a device is warm, who drops out of a race, when to stop measuring. It knows no device: what
 * can be timed is a subject with a `run`, what passes is told by a clock, and in the tests both are scripted.
 *
 * Order of use for one operation: timing_settle (sustained only), timing_race over all variants, timing_confirm over
 * the finalists. Only what timing_confirm returns is ever reported. */
#ifndef SCOUT_TIMING_H
#define SCOUT_TIMING_H

#include "scout/plugin.h"
#include "scout/regime.h"

#include <stdbool.h>

/* One thing that can be timed. `run` does `batches` intervals of `launches` launches each, back to back, and writes the
 * seconds of every interval. What it returns that is not SCOUT_OK ends this subject and nothing else (SCOUT_LOST: all).
 */
typedef struct timing_subject {
    void *context;
    scout_answer (*run)(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why);
    /* Launches of an interval are best a multiple of so many, known once one was run; NULL: any number is good. */
    uint32_t (*whole)(void *context);
    /* The recorded sequence of so many launches, for a clock that plays several subjects without a pause; borrowed. NULL
     * where the subject can only be run. */
    scout_answer (*record)(void *context, uint32_t launches, scout_sequence **out, scout_why *why);
} timing_subject;

typedef struct timing_clock {
    void *context;
    double resolution_s;
    double (*now)(void *context);
    void (*pause)(void *context, double seconds);
    void (*telemetry)(void *context, scout_telemetry *out);
    /* Told before anything that takes time: by when the next sign of life comes at the latest. May be NULL. */
    void (*beat)(void *context, double seconds);
    /* Seconds, ever growing, that the device's threads wanted to run and did not. NULL: nothing is known of it. */
    double (*stolen)(void *context);
    /* Plays recorded sequences one after another and writes the seconds of each; `expected_s`: of all of them. NULL:
     * subjects are run one at a time. */
    scout_answer (*play)(void *context, scout_sequence *const *sequences, uint32_t count, double expected_s,
                         double *seconds, scout_why *why);
} timing_clock;

/* What one call after another learns of the device. timing_settle begins it; whoever measures without a pause hands it
 * on. */
typedef struct timing_state {
    double loaded_since_s, busy_until_s; /* on the clock: since when the device has not rested, and its last work */
    bool steered; /* power holds its clock back: it swings about once a second, and moves for ever */
} timing_state;

/* All that the method fixes, in one place; timing_rules_of gives the values of a regime. */
typedef struct timing_rules {
    timing_state *state; /* NULL: nothing is known, and nothing kept */
    bool burst;
    uint32_t warmups, launches, batches; /* least: 20, 200, 20 */
    int restless_rounds;   /* blocks of a restless device may agree by luck: so many are wanted of it, 6; a host: 4 */
    int minima_rounds;     /* rounds over which the launches and batches are spread: 2 */
    double resolutions;    /* an interval is at least so many times the timer's resolution: 200 */
    double interval_s;     /* and at least so long, against what surrounds a batch */
    double target;         /* relative half width of the median's interval: 0.005 */
    double steered_target; /* the same where the clock is steered: 0.0075 */
    double acceptable;     /* what still counts where launches are too long for the budget: 0.02 */
    double last;           /* what counts when the budget is used up: as `target`, or more on a host */
    double block_s, block_drop; /* confirming blocks: 0.3 s, the first half is thrown away */
    double hopping_block_s;     /* so long where a clock hops that nothing tells to be steered: 0.6 s */
    double steered_block_s;     /* so long where the clock is steered, a period of it: 1 s */
    double steered_drop_s;      /* and so much of them is thrown away: 0.06 s */
    int steered_rounds;         /* so many, if they are needed, whatever the budget: 1; of an operation 2 */
    double look_s;              /* kept time that counts as one observation, at least: 0.15 s */
    uint32_t brief_from;        /* subjects from this one on get the fewest blocks, first of all; 0: none */
    bool among; /* these run in every round instead: an efficiency is wanted, their time over that of subject 0 */
    double among_scale;              /* times this */
    double among_ci;                 /* their ratio itself is known to this at least, or it decides nothing: 0.05 */
    double among_target, among_last; /* rounds go on until it is known to +- 0.0075; 0.015 when the budget ends */
    bool contest;                    /* subject 0 is to be beaten: who cannot win by the margin rests as well */
    double settle_s, settle_slope;   /* longest warm-up; a clock is steady when its slope is under 1 % */
    double steered_load_s;           /* a steered clock is fit for figures after so long under load: 2 s */
    double rest_s;                   /* a device that was idle for longer has rested: 0.01 s */
    double idle_s, burst_s;          /* burst: 1 s of idling, at most 10 ms of work */
    double margin;                   /* a winner wins by more than this: 0.02 */
    double budget_s;                 /* for racing and confirming of one operation together */
    double race_share;               /* of the budget, that racing may use; the rest is for confirming */
    double train_s;                  /* longest work of one call of a subject's `run`, but for a single launch */
    double window_s;                 /* over so long (and five samples) a clock must have been steady */
} timing_rules;
timing_rules timing_rules_of(const regime *r, double budget_s);
/* For so many subjects on a host, which is restless as a rule: shorter blocks rather than fewer rounds than a restless
 * device needs. No shorter than 0.05 s: what another subject leaves in a host's caches
 * is gone in a few milliseconds, and half of it is thrown away. */
void timing_rules_hasten(timing_rules *rules, int subjects);

typedef struct timing_result {
    scout_answer answer;
    scout_why why;                                /* where the answer is not SCOUT_OK, or `settled` is false */
    bool settled;                                 /* false: UNSTABLE, the figures are not to be reported */
    double median_s, mean_s, min_s, p05_s, p95_s; /* per launch; median_s: the middle of the looks (timing_judge.c) */
    double rel_ci95;
    uint32_t batches;
    uint64_t launches;
    double clock_mhz, memory_clock_mhz, power_w, temperature_c; /* medians over its blocks */
    uint64_t throttle;                                          /* all reasons seen */
    char throttle_text[96];
} timing_result;

typedef struct timing_racer {
    timing_subject subject;
    bool keep;                 /* never dropped: the baseline */
    bool alive;                /* out: still in the race at its end */
    uint32_t rounds;           /* 0: never timed (the budget was used up, or it failed) */
    double median_s, rel_ci95; /* rough, for the order of finalists and for the reason of who dropped out; rel_ci95, of
                                * those left at the end, is that of the ratio to the best one (whose own is 0);
                                * infinite after one round, both are not-a-number after none */
    scout_answer answer;       /* not SCOUT_OK: it failed, why says how. SCOUT_LOST: the device is gone, for all */
    scout_why why;             /* of one that is SCOUT_OK and not alive: "outraced" or "budget", and a sentence */
    uint32_t launches;         /* per interval, found in the first round */
} timing_racer;

/* Loads the device with the subject until its clock is steady, or found to be steered (confirming sees to the rest);
 * false: it would not settle within the rules, or the subject failed (said in why), measuring goes on and says so.
 * Burst: idles instead. */
bool timing_settle(const timing_clock *clock, const timing_rules *rules, const timing_subject *load, scout_why *why);

/* Fine interleaving, one interval of each in turn; who is behind the best by more than both intervals drops out. Ends
 * when at most `finalists` are left beside those that are kept, or its part of the budget is used: then the best
 * `finalists` stay alive. Those that are kept are timed at least once, whatever the budget; of the others, earlier ones
 * are timed first, so an order by priority is a good one. */
void timing_race(const timing_clock *clock, const timing_rules *rules, timing_racer *racers, int count, int finalists);

/* Confirms subjects against each other in blocks A B … B A …, of at least block_s, whose first part is thrown away,
 * until all have settled or the budget is used. Blocks are longer where the clock is steered.
 *
 * `fresh` (may be NULL) is called once, before everything else: new inputs beside those of the race. Then the device is
 * loaded with subject 0 until it is steady again (steered: for steered_load_s in all); from there on it never idles.
 * ratios[k]: median of subject k over that of subject 0 in neighbouring blocks, with its interval in ratio_ci[k]
 * (relative half width); not-a-number where either has no figures. Subject 0 is the baseline. A probe of a ceiling is
 * one more subject, from rules->brief_from on: such subjects, and those that rest because they cannot win, count as
 * settled within `acceptable`.
 *
 * Two rounds of blocks are measured whatever the budget, as long as launches are short: 0.6 s for each subject; where
 * the clock is steered one round, of a second each, after two seconds of load, and steered_rounds of them if that was
 * too little. Where launches are so long that not even two of each fit the whole budget, subjects are left out from the
 * last on: SCOUT_NO with the code "budget"; never subject 0. Who is below its target then rests, so a generous budget
 * costs nothing but where the device is restless.
 */
void timing_confirm(const timing_clock *clock, const timing_rules *rules, const timing_subject *subjects, int count,
                    scout_answer (*fresh)(void *context, scout_why *why), void *fresh_context, timing_result *results,
                    double *ratios, double *ratio_ci);

#endif
