/* Stages of a search. Each begins with scores that can be compared, looks at `most` shapes (or relatives of so many)
 * until so much of the budget is used (infinite: until it is done), and leaves scores that can be compared. Only for
 * scout/ceilings_search.c. */
#ifndef SCOUT_CEILINGS_STAGES_H
#define SCOUT_CEILINGS_STAGES_H

#include "scout/ceilings_field.h"

/* Greatest `most`: of refine and narrow; of near and variants. */
enum { CEILINGS_STAGES_REFINED = 64, CEILINGS_STAGES_PARENTS = 4 };

/* A first look, for milliseconds each. Random: the probe is none of them. */
scout_answer ceilings_stages_designed(ceilings_field *x, int most, double until, scout_why *why);
scout_answer ceilings_stages_random(ceilings_field *x, int most, double until, scout_why *why);
/* The better ones again, for longer. */
scout_answer ceilings_stages_refine(ceilings_field *x, int most, double until, scout_why *why);
/* Neighbours, and other variants, of the best. */
scout_answer ceilings_stages_near(ceilings_field *x, int most, double until, scout_why *why);
scout_answer ceilings_stages_variants(ceilings_field *x, int most, double until, scout_why *why);
/* Few in slots as long as blocks of confirming. Afterwards they stay open. */
scout_answer ceilings_stages_narrow(ceilings_field *x, int most, double until, scout_why *why);

#endif
