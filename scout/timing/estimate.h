/* The one estimator: what repetitions of a figure say together. A repetition is a pass: another place in the order of
 * the run, other memory, other inputs. The mean of the passes' logarithms is the figure, Student's t over passes is its
 * interval (Kalibera and Jones, "Rigorous benchmarking in reasonable time"). Pure numbers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct estimate {
    double x;           /* the figure; not-a-number: there is none */
    double ci;          /* half its 95 % width, relative; infinite: not known, as of one pass */
    double least, most; /* of the passes */
    size_t passes;
} estimate;

/* Of the passes' figures; those that are not positive numbers are left out. */
estimate estimate_of(const double *x, size_t n);

/* What a pass says of a time on a device that tells its clock (scout/timing/lanes.h). */
typedef struct estimate_pass {
    double x, clock, xx, xy, yy, n;
    double held, held_error; /* 0: not known */
} estimate_pass;

typedef struct estimate_clock {
    double clock; /* that the time is for */
    double ci;    /* of the time, for not knowing that clock better */
    double slope; /* at another clock the time is what it is here, by the clocks' ratio to this power */
} estimate_clock;

/* The time at the clock that the operation's own load holds. Where no pass knows that, at the highest one that a pass
 * saw: what ran before a pass can only have taken from it. What it would have been in each, by how it goes with the
 * clock. */
estimate estimate_at_clock(const estimate_pass *passes, size_t n, estimate_clock *at);

/* A host is slow for seconds at a time when its cores are lent to others, in a way that its kernel does not see; what
 * disturbs it only adds. So of a host's passes those count that are near the fastest that two others agree with: those
 * that took no longer than this. Infinite: all of them. Sorts x. */
double estimate_slowest(double *x, size_t n);
extern const double estimate_agreement; /* passes agree that differ by no more than this factor */
extern const double estimate_floor;     /* where some do not count, a time is known to this at best: relative, 0.03 */

/* Whether the passes are enough to look at the interval: a run that stops at the first interval that looks narrow has
 * intervals that are too narrow, so it looks four times and not more often, at 4, 7, 13 and 26 passes. */
bool estimate_look(size_t passes);
size_t estimate_last_look(void);      /* more passes than these decide nothing */
extern const size_t estimate_decided; /* 13: and of a winner, or of a host, none more than these */
