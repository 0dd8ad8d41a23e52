/* How subjects are run: signs of life before everything that takes time, bursts with their idling, and how many
 * launches make an interval that the timer can be trusted with. For the timing_*.c alone. */
#ifndef SCOUT_TIMING_PACE_H
#define SCOUT_TIMING_PACE_H

#include "scout/timing.h"

enum { TIMING_PACE_TRAIN = 256 }; /* most intervals of one call of a subject's run */

typedef struct timing_pace {
    const timing_clock *clock;
    const timing_rules *rules;
    double burst_used_s; /* burst: work since the last idling */
    timing_state own;    /* where the rules have none */
} timing_pace;

timing_pace timing_pace_of(const timing_clock *clock, const timing_rules *rules);
timing_state *timing_pace_state(timing_pace *p); /* that of the rules, or its own */
double timing_pace_now(const timing_pace *p);
void timing_pace_beat(const timing_pace *p, double expected_s);
void timing_pace_idle(timing_pace *p); /* burst: the pause before a burst */

/* One call of the subject's run. expected_s: of all its intervals together; 0: nobody knows. Burst: idles before, where
 * this would not fit into the burst that is under way. What it returns is checked: a timer that answers with what is
 * no duration is a failure of the subject; `zero`: nothing at all is one too. */
scout_answer timing_pace_run(timing_pace *p, const timing_subject *subject, uint32_t launches, uint32_t batches,
                             double expected_s, bool zero, double *seconds, scout_why *why);

typedef struct timing_pitch {
    uint32_t launches;  /* of one interval */
    double launch_s;    /* of one launch, roughly */
    double single_s;    /* of a single launch between two events: more than launch_s where launches are short */
    double single_at_s; /* when it was */
    bool far;           /* a single launch took longer than far_s, and nothing more was tried */
} timing_pitch;

typedef struct timing_pitch_wish {
    double interval_s; /* wanted at least; never below what the timer's resolution asks for */
    uint32_t repeats;  /* intervals timed to know launch_s */
    double patience_s; /* most that warm-ups may cost; no more of them are run */
    double guess_s;    /* what a launch may take, from what others took; 0: nobody knows */
    double far_s;      /* give up on what is slower; 0: never */
} timing_pitch_wish;

/* Finds the pitch and warms up on the way: rules->warmups launches at least, where they are short. */
scout_answer timing_pace_find(timing_pace *p, const timing_subject *subject, const timing_pitch_wish *wish,
                              timing_pitch *pitch, scout_why *why);

scout_telemetry timing_pace_telemetry(const timing_pace *p);
bool timing_pace_steered(const scout_telemetry *t); /* power holds the clock back */

/* timing_settle.c: loads a device that was warm and then idled for a moment, until it is steady again, but no longer
 * than most_s; one that is steered, until it has not rested for `part` of what the rules ask. Not where launches are
 * too long for that, and not in bursts. Failures show in the blocks that follow. */
void timing_settle_again(timing_pace *p, const timing_subject *load, const timing_pitch *pitch, double most_s,
                         double part);

#endif
