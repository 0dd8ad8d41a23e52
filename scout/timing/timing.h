/* What can be timed, and what tells the time: all that timing knows of a device. */
#pragma once

#include "scout/plugin.h"
#include "scout/terms/regime.h"

/* One thing that can be timed. `run` does `batches` intervals of `launches` launches each, back to back, and writes the
 * seconds of every interval. What it returns that is not SCOUT_OK ends this subject and nothing else (SCOUT_LOST: all).
 */
typedef struct timing_subject {
    void *context;
    scout_answer (*run)(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why);
    /* Launches of an interval that runs alone are a multiple of so many, known once one was run; NULL: any number is
     * good. */
    uint32_t (*whole)(void *context);
    /* The recorded sequence of so many launches, for a clock that plays several subjects without a pause; borrowed. One
     * is asked for each interval: it may be a part of a whole, the next one then. NULL where the subject can only be
     * run. */
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
    /* The mean clock, in Hz, of each interval of the last run or play; returns how many are known. NULL: none. */
    uint32_t (*clocks)(void *context, double *hz, uint32_t most);
} timing_clock;
