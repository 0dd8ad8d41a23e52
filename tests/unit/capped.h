/* A model of a device that power holds back, whose truth is known, for the shape search. Each shape has flops per cycle
 * and energy per flop; alone, it settles at the clock at which the two meet the cap. Short slots run at the clock that
 * the mixture leaves. Time is virtual. */
#ifndef TESTS_UNIT_CAPPED_H
#define TESTS_UNIT_CAPPED_H

#include "scout/ceilings_search.h"

enum { CAPPED_UNITS = 132, CAPPED_TICKS = 5, CAPPED_ECHOES = 32 };

typedef struct capped {
    double now, clock;
    bool silent; /* its telemetry does not tell of the cap */
    uint64_t seed, state;
    int opened, closed;
    int fail_every,
        lost_at; /* every so many-th shape cannot be opened; the device is gone once so many were; 0: never */
    double fails_from, fails_until; /* seconds in which no shape can be opened or run, as when others have the memory */
    double said;                    /* the last promised sign of life */
    bool late;
    ceilings_search_point favoured; /* takes so many times the energy that it would otherwise; m is 0: there is none */
    double favour;
    /* Of the controller: the clock that this tick's work and that of the last ones asks for; where the work is, in
     * seconds from an even pace, where it will be and when; how far off the clock was, by tenths of a second, and now.
     */
    double wanted, tick_at, asked[CAPPED_TICKS], astray, next_astray, astray_at, next_at, echo[CAPPED_ECHOES], off;
    long ticks, tenth;
} capped;

capped capped_of(uint64_t seed);
timing_clock capped_clock(capped *c);
ceilings_search capped_search(capped *c, const timing_clock *clock, double budget_s);

double capped_flops_per_cycle(const capped *c, const ceilings_search_point *p); /* part of the most */
double capped_truth(const capped *c, const ceilings_search_point *p);           /* flop/s, alone and for long */
void capped_favour(capped *c, const ceilings_search_point *p, double truth);    /* that it becomes this */

#endif
