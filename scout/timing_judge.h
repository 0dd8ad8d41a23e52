/* What blocks of timed intervals say together: the interval of their median, and whether they agree with each other.
 * Pure: no clock, no device. For the timing_*.c alone. */
#ifndef SCOUT_TIMING_JUDGE_H
#define SCOUT_TIMING_JUDGE_H

#include "scout/timing.h"

#include <stddef.h>

/* Intervals that spread more widely than this (see below) are those of a restless device. */
extern const double timing_judge_restless;

typedef struct timing_block {
    size_t first, count;       /* its intervals, of those in the series */
    double middle_s;           /* when, for what lies between two blocks of another series */
    double kept_s;             /* how long its intervals took, in all */
    double level_s;            /* a launch: the middle of its looks */
    double halves;             /* how far its halves are apart, relative */
    scout_telemetry telemetry; /* at its end */
} timing_block;

typedef struct timing_series {
    double *x; /* seconds of a launch, as averages over intervals; in the order in which they were taken */
    size_t n, room;
    timing_block *blocks;
    size_t block_count, block_room;
    size_t per_look; /* intervals, or nearly so many; 0: a block is one look */
    bool steered;    /* the clock is: a block is one observation, its level is the mean of its intervals */
} timing_series;

/* Adds an empty block, or an interval to the last block. False: no memory. */
bool timing_judge_block(timing_series *s);
bool timing_judge_add(timing_series *s, double launch_s);
void timing_judge_close(timing_series *s);   /* the last block is complete: its level */
void timing_judge_steered(timing_series *s); /* from now on it is, and so are the blocks that it has */
void timing_judge_forget(timing_series *s);  /* all blocks */
void timing_judge_free(timing_series *s);

typedef struct timing_opinion {
    size_t first_block; /* earlier ones are left out: they were still warming up */
    size_t looks;
    size_t n;                  /* intervals from there */
    double median_s, rel_ci95; /* the middle of the looks: see timing_judge.c */
    double spread;             /* of intervals, from the 5th to the 95th percentile, over the median */
    double drift; /* change over all looks, relative; beyond what their noise explains where `drifts` is set */
    bool drifts, by_clock;
} timing_opinion;

/* How far blocks deviate where the clock is steered; begins as {0}, and gets all series of a confirmation. See
 * timing_noise.c. */
typedef struct timing_noise {
    double squares; /* of relative deviations, summed over */
    size_t degrees; /* of freedom */
} timing_noise;
void timing_noise_add(timing_noise *noise, const timing_series *s, size_t from);
/* Of the blocks from `from` on: their pace (a launch), and half its 95 % width, relative. */
double timing_noise_pace(const timing_series *s, size_t from);
double timing_noise_half(const timing_noise *noise, const timing_series *s, size_t from);
double timing_noise_ends(void); /* by how much two blocks may differ, relative */

typedef struct timing_look { /* the unit of what is compared */
    double level_s, clock_mhz, moment_s;
} timing_look;
/* timing_drift.c: fills drift, drifts and by_clock. False: no memory. */
bool timing_drift(const timing_series *s, const timing_look *looks, size_t n, timing_opinion *o);

/* The first block that is like the later half of them: what comes before was still warming up. */
size_t timing_judge_first(const timing_series *s);

/* noise: only of a series that is steered; NULL: its own. */
timing_opinion timing_judge(const timing_series *s, const timing_noise *noise);

/* Of a over b, block by block, b taken between its neighbouring blocks; half its 95 % width in
 * *ci, relative. */
double timing_judge_ratio(const timing_series *a, const timing_series *b, const timing_noise *noise, double *ci);

#endif
