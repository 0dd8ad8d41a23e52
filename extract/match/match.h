/* Patterns: finds what several nodes spell out together (attention, norms, activations, rotary embedding, quantised
 * products) and joins their works into one. Recognition follows the flow of data, never names or fixed templates. */
#ifndef EXTRACT_MATCH_MATCH_H
#define EXTRACT_MATCH_MATCH_H

#include "extract/ops/work.h"

/* Runs every pattern of the table in match.c over the list, in the table's order. */
void match_all(worklist *list);

#endif
