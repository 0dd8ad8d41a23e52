/* Sums over a catalog whose entries are complete; collect.c calls them in this order. */
#ifndef EXTRACT_OPS_COLLECT_TOTALS_H
#define EXTRACT_OPS_COLLECT_TOTALS_H

#include "extract/ops/collect.h"

void collect_totals(catalog *c);
void collect_parameters(catalog *c, const worklist *list);
void collect_coverage(catalog *c);

#endif
