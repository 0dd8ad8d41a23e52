/* What a shape is expected to do when it runs alone on a device that power holds back, from the few that were timed so.
 * Only for scout/ceilings_long.c. */
#ifndef SCOUT_CEILINGS_GUESS_H
#define SCOUT_CEILINGS_GUESS_H

#include "scout/ceilings_field.h"

/* Relative error of the work of so many seconds under a steered clock. */
double ceilings_guess_error(double seconds);

/* Of what moves data, as parts of 1: a product's inputs, and its output. Less of either means less energy per flop. */
typedef struct ceilings_guess_moved {
    double inputs, output;
} ceilings_guess_moved;
ceilings_guess_moved ceilings_guess_moves(const ceilings_field *x, const ceilings_search_point *p);

/* Scores all entries whose flops per cycle are known: flop/s under a load of their own, as far as that is known. Their
 * long slots count by how long they were, and what all others say of such a shape counts beside them: so the luckiest
 * of many is not taken at its word. */
void ceilings_guess_score(ceilings_field *x);

#endif
