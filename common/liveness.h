/* The memory of a run by liveness: what is made at one occurrence and last needed at another takes its bytes from the
 * one to the other, both included. What both writer and reader of ops.json compute, so that one can check the other. */
#pragma once

#include "common/arena.h"

typedef struct liveness {
    int64_t *change; /* by occurrence: what comes, less what went before it */
    int64_t all;     /* of everything that was added; saturates */
    int count;       /* of occurrences */
} liveness;

void liveness_begin(liveness *l, arena *a, int occurrences);
/* Both are occurrences; nothing where `to` comes before `from`. */
void liveness_add(liveness *l, int64_t bytes, int from, int to);
/* The most that lives at once, and the first occurrence at which it does (0 where nothing lives). Sums that no number
 * holds saturate. */
int64_t liveness_peak(const liveness *l, int *at);
