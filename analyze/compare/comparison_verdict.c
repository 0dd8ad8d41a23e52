/* Owns what a change of approach or priority means: one table of rules, the first that applies. */
#include "analyze/compare/comparison.h"

#include "common/plain.h"

const char *const comparison_verdict_names[COMPARISON_VERDICTS] = {"same", "worse", "better", "other"};

static int rank(const char *priority) {
    static const char *const priorities[] = {"NONE", "LOW", "MEDIUM", "HIGH"};
    int k = 3;
    while (k > 0 && !plain_alike(priority, priorities[k])) k--;
    return k;
}

static bool proven(const study_report *r) { return r->verdict.proven_gain_us > 0; }
static bool unmeasured(const study_report *r) { return plain_alike(r->verdict.approach, "UNMEASURED"); }
static int rise(const comparison_row *r) {
    return rank(r->after->verdict.priority) - rank(r->before->verdict.priority);
}

static bool kept(const comparison_row *r) {
    return plain_alike(r->before->verdict.approach, r->after->verdict.approach) && rise(r) == 0;
}
static bool borderline(const comparison_row *r) {
    return r->before->verdict.borderline || r->after->verdict.borderline;
}
static bool broken(const comparison_row *r) {
    static const char *const bad[] = {"WRONG", "CRASHED", "TIMEOUT", "ERROR"};
    if (!unmeasured(r->after)) return false;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (plain_alike(r->after->status, bad[k])) return true;
    return false;
}
static bool not_known(const comparison_row *r) { return unmeasured(r->before) || unmeasured(r->after); }
static bool gained(const comparison_row *r) { return !proven(r->before) && proven(r->after); }
static bool lost(const comparison_row *r) { return proven(r->before) && !proven(r->after); }
static bool lost_but_as_fast(const comparison_row *r) {
    return lost(r) && (r->best.state == DRIFT_SAME || r->best.state == DRIFT_FASTER);
}
static bool still_proven(const comparison_row *r) { return proven(r->after); }
/* What is left are shares of the model's time, and one of the two has not all of it. */
static bool by_share(const comparison_row *r) { return r->partial; }
static bool rose(const comparison_row *r) { return rise(r) > 0; }
static bool fell(const comparison_row *r) { return rise(r) < 0; }
static bool always(const comparison_row *r) { return r != NULL; }

static const struct {
    bool (*applies)(const comparison_row *r);
    comparison_verdict verdict;
} rules[] = {
    {kept, COMPARISON_KEPT},
    {broken, COMPARISON_WORSE}, /* WRONG, CRASHED, …: it ran before */
    {borderline, COMPARISON_KEPT},
    {not_known, COMPARISON_OTHER}, /* without a figure in one of the nights: neither good nor bad */
    {gained, COMPARISON_BETTER},
    {lost_but_as_fast, COMPARISON_OTHER}, /* the library is as good as the alternative was */
    {lost, COMPARISON_WORSE},
    {still_proven, COMPARISON_OTHER}, /* by another one, or another share of the model's time */
    {by_share, COMPARISON_OTHER},
    {rose, COMPARISON_WORSE}, /* more is lost to the ceiling, and nothing is known that gets it back */
    {fell, COMPARISON_BETTER},
    {always, COMPARISON_OTHER},
};

comparison_verdict comparison_verdict_of(const comparison_row *row) {
    size_t n = 0;
    while (!rules[n].applies(row)) n++;
    return rules[n].verdict;
}
