/* The stages of a search in which shapes run alone for so long that a clock held back by power shows what they make of
 * it. Only for scout/ceilings_search.c. All fill their part of the time, with at most `most` shapes. */
#ifndef SCOUT_CEILINGS_LONG_H
#define SCOUT_CEILINGS_LONG_H

#include "scout/ceilings_field.h"

/* Candidates of all kinds; then those that are expected to be the best, of those that were not timed so. */
scout_answer ceilings_long_first(ceilings_field *x, int most, double until, scout_why *why);
scout_answer ceilings_long_next(ceilings_field *x, int most, double until, scout_why *why);
/* The best once more, for longer. Afterwards only these have scores, and they are open. */
scout_answer ceilings_long_last(ceilings_field *x, int most, double until, scout_why *why);

#endif
