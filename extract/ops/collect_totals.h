/* Sums over a catalog whose entries are complete; collect.c calls them in this order. */
#ifndef EXTRACT_OPS_COLLECT_TOTALS_H
#define EXTRACT_OPS_COLLECT_TOTALS_H

#include "common/map.h"
#include "extract/ops/collect.h"

void collect_totals(catalog *c, const map *regions); /* regions: place in model->graphs, plus 1 */
void collect_parameters(catalog *c, const worklist *list);
void collect_coverage(catalog *c);

#endif
