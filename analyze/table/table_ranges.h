/* Between which measured sizes a table may be asked for others. */
#ifndef ANALYZE_TABLE_RANGES_H
#define ANALYZE_TABLE_RANGES_H

#include "common/status.h"

#include <jansson.h>
#include <stdbool.h>

/* Gives each entry of dispatch.json its member `ranges`. Keys are canonical and each is there once. `count`: how many
 * were found. false: out of memory. */
bool table_ranges_add(json_t *entries, size_t *count, status *st);

#endif
