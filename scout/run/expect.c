/* Owns the guess of when a run ends. */
#include "scout/run/expect.h"

#include "scout/timing/estimate.h"

#include <math.h>

/* Before anything is known: what a job takes for each second of its search, how much that is believed (in such
 * seconds), and a later pass: it searches for nothing, and so goes with the root of what the first one took. */
static const double USUAL = 1.2, USUAL_HOST = 0.4, BELIEVED = 0.5, LATER = 0.1, LATER_HOST = 0.28;
/* Of what has a first figure so much wants more passes; of what is looked at once more so much goes on to the next
 * look. Both are believed as if they were seen of so many. */
static const double OPEN = 0.8, ON = 0.5, ON_HOST = 0.75, SEEN = 3;
/* The end is near: so long, and so much of what has gone by. */
static const double NEAR_S = 10, NEAR_PART = 0.2;
static const double OFF_S = 10, OFF_PART = 0.3; /* but what is off by so much is corrected */
static const double RESTLESS = 0.7, CALM_S = 5; /* of its time at most is lost to other work; believed after so long */

void expect_job(expect_work *w, const budget *b, bool fusion, double share, bool done, double took_s, double begun_s) {
    const double usual = budget_usual(b, share);
    w->first[fusion].done += done ? usual : 0;
    w->first[fusion].took_s += done ? took_s : 0;
    w->first[fusion].left += done ? 0 : usual;
    w->to_come += !done;
    w->first[fusion].under_way_s += done ? 0 : begun_s;
}

/* Passes that come up to the next look, to the one behind it, and so on. The last look is for what is neither on a host
 * nor wins: for the half of what comes there. */
static void add_passes(double *ahead, bool host, int passes, double each) {
    int look = 0;
    for (int k = passes + 1; k <= (int)(host ? estimate_decided : estimate_last_look()); k++) {
        ahead[look] += (size_t)k > estimate_decided && passes < (int)estimate_decided ? 0.5 * each : each;
        if (estimate_look((size_t)k) && look + 1 < EXPECT_LOOKS) look++;
    }
}

void expect_passes(expect_work *w, int passes, bool wanted, double first_s, int later, double later_s) {
    w->figures++;
    w->wanting += wanted || passes > 1;
    w->passed_s += later_s;
    w->passed_roots += later * sqrt(first_s);
    if (wanted) add_passes(w->ahead, w->host, passes, sqrt(first_s));
    for (int k = 1; k <= passes; k++) {
        if (!estimate_look((size_t)k) || k == (int)estimate_last_look()) continue;
        w->looks++;
        w->went_on += wanted || k < passes;
    }
}

/* ---- the first pass ---- */

static double first_left(const expect_work *w, const budget *b, double now) {
    double left = 0, scale = w->host ? USUAL_HOST : USUAL;
    for (int k = 0; k < 2; k++) {
        scale = (scale * BELIEVED + w->first[k].took_s) / (BELIEVED + w->first[k].done);
        double s = fmax(w->first[k].left * scale - w->first[k].under_way_s, 0);
        if (k == 1 && w->first[1].left > 0) s = fmin(s, fmax(budget_fusions_end(b, now + left) - now - left, 0));
        left += s;
    }
    return left;
}

/* ---- later passes ---- */

/* Of what has no figure yet as much will want more passes as of what has one. */
static double later_left(const expect_work *w, double first_s) {
    const double usual = w->host ? LATER_HOST : LATER;
    const double ratio = (w->passed_s + usual * BELIEVED) / (w->passed_roots + BELIEVED);
    const double open = (w->wanting + OPEN * SEEN) / (w->figures + SEEN),
                 on = (w->went_on + (w->host ? ON_HOST : ON) * SEEN) / (w->looks + SEEN);
    double ahead[EXPECT_LOOKS], chance = 1, sum = 0;
    for (int k = 0; k < EXPECT_LOOKS; k++) ahead[k] = w->ahead[k];
    add_passes(ahead, w->host, 1, open * sqrt(first_s * w->to_come));
    for (int k = 0; k < EXPECT_LOOKS; k++, chance *= on) sum += chance * ahead[k];
    return ratio * sum;
}

/* When they end at the latest. As much as was disturbed by now will be disturbed again, and is made up for. */
static double latest_end(const expect_work *w, budget b, double first_end) {
    const double first_s = w->began > 0 ? first_end - w->began : first_end - (b.started + w->ceilings_s);
    const double begun = b.later_began, lost_s = b.lost_s;
    const double end = budget_later_end(&b, first_s, w->host, first_end);
    if (b.end > 0 || !(begun > 0)) return end;
    const double rate = fmin(lost_s / (first_end - begun + CALM_S), RESTLESS);
    budget_lose(&b, fmax(rate * (end - lost_s - begun) / (1 - rate) - lost_s, 0));
    return budget_later_end(&b, first_s, w->host, first_end);
}

/* Later passes that would take so long, and may for most_s: whichever is far less. Where both are alike it is less than
 * either, because some of the passes will turn out not to be needed. */
static double sooner(double s, double most_s) {
    if (!(most_s > 0)) return 0;
    return isfinite(most_s) ? most_s * -expm1(-s / most_s) : s;
}

double expect_left(expect *e, const expect_work *w, const budget *b, double now) {
    const double first_s = first_left(w, b, now + w->ceilings_s), first = now + w->ceilings_s + first_s;
    double end = first + sooner(later_left(w, first_s), latest_end(w, *b, first) - first) + w->spare_s;
    if (b->end > 0) end = fmin(end, fmax(b->end, now));
    const double gone_s = now - b->started, said_s = e->end - now;
    const bool near = e->end > 0 && said_s < fmin(NEAR_S, NEAR_PART * gone_s);
    if (near && end > e->end && end - e->end < fmax(OFF_S, OFF_PART * gone_s)) end = e->end;
    e->end = end;
    const double left_s = fmax(end - now, 0);
    if (gone_s > 0) e->part = fmax(e->part, gone_s / (gone_s + left_s));
    return left_s;
}
