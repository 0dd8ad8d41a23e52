/* Several things that can be timed, beside each other: each is a lane, and a round gives every lane one short block of
 * launches. What the clock does is common to neighbouring blocks and cancels in their ratio. One call is one pass: one
 * allocation of memory, one place in the order of a run. The passes' figures meet in scout/timing/estimate.h.
 *
 * It knows no device: a lane has a `run`, a clock tells what passes, and in the tests both are scripted. */
#pragma once

#include "scout/timing/timing.h"

enum { LANES_RACE_ROUNDS = 2, LANES_BLOCKS = 1024 /* of a lane, that a pass keeps */ };
#define LANES_WHOLE_S 1.3

typedef struct lanes_learned {
    double steady_hz; /* loads at this clock or a higher one hold it; 0: not known yet, as of */
    double most_hz;   /* the highest clock; infinite: the device does not tell */
    double hold_s;    /* so long the last pass ran its baseline alone */
} lanes_learned;

/* All that the method fixes for one pass. */
typedef struct lanes_rules {
    bool burst;
    double block_s;    /* of one lane in one round; at least one launch */
    double interval_s; /* a block is made of intervals so long at least, each timed alone */
    double look_s;     /* a launch that takes longer is looked at once */
    double quick_s;    /* a block of the race */
    int rounds;        /* full rounds at least; with fewer undisturbed blocks a figure says so */
    int most_rounds;
    double precise;         /* rounds end when every lane's ratio is known to this within the pass (standard error) */
    double fall;            /* rounds count from where two take no more than so much longer than the two before */
    double settle_s;        /* so long they may fall, and no longer */
    double most_s;          /* of all full rounds; the least is run whatever they take, if a round fits */
    double least_s;         /* they go on so long, however precise they are, as far as LANES_BLOCKS reach */
    double disturbed;       /* a block of which other work took more than this part is dropped */
    int finalists;          /* lanes that are left by the race beside those that are kept */
    double beside;          /* and only those that are no further behind the best than this factor */
    double idle_s, burst_s; /* burst: a pause, and the work after it */
    double hold_s;          /* so long the baseline may run alone until its clock holds; 0: that is not asked. Where
                             * power is capped, LANES_WHOLE_S or more ask for the mean of whole seconds */
    bool hold_low;          /* asked only where the clock is far from the highest */
    double clock_fall;      /* by how much a capped clock lies below what stands, over whole seconds; 0: not known */
    bool believe;           /* what other loads have shown is not asked for again */
    lanes_learned *learned; /* of the device, by all passes; wanted where hold_s is */
} lanes_rules;
/* A later pass needs fewer rounds: what passes differ by is more. */
lanes_rules lanes_rules_of(const regime *r, bool host, bool first);

typedef struct lanes_sample { /* a block */
    double seconds;           /* of a launch */
    double launches, hz;      /* in it; 0: the device does not tell its clock */
    bool counts;              /* not disturbed, and not far from the others */
} lanes_sample;

typedef struct lanes_lane {
    timing_subject subject;
    lanes_sample *samples; /* room for LANES_BLOCKS; NULL: they are not asked for */
    bool own;              /* the baseline is the best of these, where none was named */
    int side;              /* the fastest of a side is never left out, whatever others take; 0: of none */
    bool keep;             /* the race leaves it in: the baseline, a yardstick, one that an earlier pass has chosen */
    /* Out. */
    scout_answer answer; /* not SCOUT_OK: it failed, `why` says how; SCOUT_LOST: the device is gone, for all */
    scout_why why;
    bool raced_out;    /* it has figures of the race alone */
    double launch_s;   /* roughly */
    uint32_t launches; /* of an interval */
    double time_s;     /* of a launch: the mean of logarithms over the blocks that count; 0: it never ran */
    double mean_s, min_s, p05_s, p25_s, p50_s, p75_s, p95_s;
    uint32_t outliers; /* of its blocks that count: beyond the quartiles by more than 1.5 times their distance */
    uint32_t sample_count;
    double error;             /* standard error of time_s within this pass, relative */
    uint32_t blocks, dropped; /* that count, and that other work disturbed */
    bool disturbed;           /* hardly a block was undisturbed: time_s is the lower quarter of all */
    double
        missed; /* then: how much of these blocks other work disturbed, and time_s may be too long by that; at most 1 */
    uint64_t total; /* launches in blocks that count */
    /* Where the device tells its clock: the mean of its logarithm over the blocks that count, in Hz, 0: not known; and
     * how the time goes with it, as sums over blocks about their means: of the clock's logarithm squared, times
     * the time's, and of the time's squared; n: of so many. */
    double clock_hz, clock_xx, clock_xy, clock_yy, clock_n;
    /* Of the baseline, where it was held: what stood (0: nothing did), what its own load holds over whole seconds, and
     * how far a time at that may be from the long run's, relative. */
    double still_hz, held_hz, held_error;
} lanes_lane;

/* Runs a pass. `baseline`: the lane that is to be beaten, -1: none. The best of its rivals is never dropped, so that
 * it is known how far behind it is. `end_s` (on the clock, or infinite): when the race is to be over; full rounds come
 * after it. False: the device is lost, one lane says how. */
bool lanes_run(const timing_clock *clock, const lanes_rules *rules, lanes_lane *lanes, int count, int baseline,
               double end_s);
