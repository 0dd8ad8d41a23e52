/* Differences per occurrence, so that the time grows with tensors and occurrences and not with their product. */
#include "common/liveness.h"

#include "common/checked.h"

void liveness_begin(liveness *l, arena *a, int occurrences) {
    *l = (liveness){.count = occurrences};
    l->change = arena_array(a, int64_t, (int64_t)occurrences + 1);
}

/* No sum of some is above the sum of all, so that one look at that is enough. */
void liveness_add(liveness *l, int64_t bytes, int from, int to) {
    if (from > to || from < 0 || to >= l->count) return;
    l->all = checked_add(l->all, bytes);
    if (l->all == INT64_MAX) return;
    l->change[from] += bytes;
    l->change[to + 1] -= bytes;
}

int64_t liveness_peak(const liveness *l, int *at) {
    int64_t now = 0, most = 0;
    *at = 0;
    if (l->all == INT64_MAX) return INT64_MAX;
    for (int k = 0; k < l->count; k++) {
        now += l->change[k];
        if (now <= most) continue;
        most = now;
        *at = k;
    }
    return most;
}
