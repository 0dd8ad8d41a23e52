/* How far back in a run of the model the memory of each tensor was used last. Pure: a dataflow in, a bit for each
 * tensor out (operation.distant). */
#pragma once

#include "scout/fusion/fusion.h"
#include "scout/plan/layouts.h"

/* Of all operations of the list, turned ones among them, and of all fusions. cache_bytes: what moves that much through
 * a cache leaves half of what was there before. The arena is for scratch memory. */
void distances_find(operation_list *list, const layouts *l, fusion_list *fusions, uint64_t cache_bytes,
                    uint64_t workspace_limit, arena *a);
