/* Which thresholds go together. */
#include "analyze/study/thresholds.h"

static bool check(const char *high, double x, const char *medium, double y, status *st) {
    if (x >= y) return true;
    status_set(st, STATUS_USAGE, "--%s %g is below --%s %g: no operation could be MEDIUM", high, x, medium, y);
    return false;
}

bool thresholds_check(const verdict_thresholds *t, status *st) {
    return check("high-proven", t->high_proven, "medium-proven", t->medium_proven, st) &&
           check("high-potential", t->high_potential, "medium-potential", t->medium_potential, st);
}
