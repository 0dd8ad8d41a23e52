/* What changed between two runs beyond what changes anyway: pure statistics of the operations' times.
 *
 * The model. Of operation i, log(after / before) is
 *
 *     machine + change_i + between_i + within_i
 *
 * machine    one factor for all: the clock, the temperature, a driver. Estimated from all operations, removed, told
 * once. change_i   what is looked for; 0 of nearly all. within_i   the noise of both medians: what `rel_ci95` of the
 * two reports tells (half the 95 % width: 1.96 deviations). between_i  what an operation differs by from one run to the
 * next although nothing changed (where its memory came to lie, which step the clock took): no report can tell it, for
 * each saw one run. Its deviation, the spread, is learned from the population: most operations did not change.
 *
 * An operation is SLOWER or FASTER where it lies so far out that among all operations of a comparison without changes
 * one would, by chance, only once in 1 / `alarms` comparisons (each direction for itself). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fewer operations than this teach nothing of their spread: then that of the kind of device counts, which is wide. */
enum { DRIFT_FEW = 8, DRIFT_SHAPES = 9 };

typedef struct drift_prior {
    const char *device;  /* how its name begins; NULL: any other */
    double spread;       /* of the operations of a small population */
    double machine;      /* of a machine of which a small population says nothing */
    double machine_runs; /* of a machine from one run to the next: less is no news */
} drift_prior;
const drift_prior *drift_prior_of(const char *device); /* "cuda:0"; NULL is fine */

typedef struct drift_options {
    double alarms; /* comparisons without change in which anything is said to be SLOWER or FASTER: 0.0005 */
    double margin; /* a change below this is none: 0.01 */
    const drift_prior *prior;
} drift_options;

/* One operation. change: log(after / before); noise: its deviation from both intervals. Not finite: left out. */
typedef struct drift_row {
    double change, noise;
} drift_row;

double drift_noise(double before_ci,
                   double after_ci); /* of the two rel_ci95; one that is not known (or 0) counts as 2 % */

typedef struct drift {
    drift_options options;
    size_t rows;        /* finite ones */
    size_t members;     /* those that moved with the machine */
    bool machine_known; /* three operations or more moved alike */
    double machine;     /* log: positive is slower */
    double machine_sd;  /* how well it is known */
    bool learned;       /* the spread; else it is the prior's */
    double spread;      /* deviation of change + between, in excess of the intervals */
    double trust;       /* below 1: times are steadier than their intervals say, which count that much only */
    double ordinary;    /* ordinary noise; operations with more of it are taken as they are */
    double normal;      /* how likely it is that no tails are heavier than normal ones */
    double limit;       /* deviations that a change has to exceed */
    double machine_limit;
    double typical_sd; /* of an operation in the middle */
} drift;

/* `family`: how many will be judged. false: no memory. */
bool drift_learn(drift *d, const drift_options *options, const drift_row *rows, size_t n, size_t family);

typedef enum drift_state { DRIFT_SAME, DRIFT_FASTER, DRIFT_SLOWER, DRIFT_AMBIGUOUS } drift_state;
const char *drift_state_name(drift_state state); /* "SAME", … */

typedef struct drift_judgement {
    drift_state state;
    double net, sd; /* without the machine; log */
} drift_judgement;

/* SLOWER, FASTER: beyond limit * sd (and `slack`, 0 as a rule), and by the margin at least. SAME: the 95 % interval
 * lies within twice the margin, and it is no outlier (three deviations) of more than the margin. Else AMBIGUOUS. */
drift_judgement drift_judge(const drift *d, drift_row row, double slack);
drift_judgement drift_judge_machine(const drift *d);

/* The slowdown of an ordinary operation that is found in 99 comparisons of 100: 0.02 is 2 %. */
double drift_detectable(const drift *d);
