/* How fast a shape is under a load of its own shows only in slots of a fraction of a second: in shorter ones all run at
 * the clock that the mixture leaves them, so that they rank by flops per cycle alone.
 *
 * The work done strays from an even pace by a bounded amount, so the error of a slot falls with its length, not with
 * the root of it: one slot of twice the length is worth four. So nothing is timed twice at one length; the field is
 * made smaller and slots are made longer (0.2 s kept: 0.75 %, a whole second: 0.15 %). With errors like the former the
 * luckiest of many is not the best one, so what is known of similar shapes counts as well (scout/ceilings_guess.c). */
#include "scout/ceilings_long.h"

#include "scout/ceilings_guess.h"

#include <math.h>

enum { MOST_BRIEF = 64, MOST = 32, LEAST_LAST = 3, PROBE_EVERY = 5 };
#define DROP_S  0.1 /* what ran before is gone by then */
#define BRIEF_S 0.01
#define LOOK_S  0.3
#define LAST_S  1.1   /* a whole second of it: what rested comes back once in every second */
#define OPEN_S  0.03  /* a plan, its graph, and the first launch */
#define HALF    0.5   /* of a gain in flops per cycle is left under a cap */
#define NEARLY  0.02  /* of the best: as far off may slots of LOOK_S be */
#define ALIKE   0.003 /* of the best: a whole second cannot tell */

/* How much moving data may cost, of all energy: nobody knows yet, so each of these names candidates in turn. */
static const double costs[] = {0, 0.05, 0.1, 0.2};
enum { COSTS = sizeof costs / sizeof costs[0] };

static scout_answer look(ceilings_field *x, ceilings_entry *e, double work_s, double *rate, scout_why *why) {
    const scout_answer answer = ceilings_field_spare(x, e, ceilings_field_long(x, e, work_s, DROP_S, rate, why));
    if (answer != SCOUT_OK || e->dead || !(*rate > 0)) return answer;
    const double error = ceilings_guess_error(work_s - DROP_S), counts = 1 / (error * error);
    e->level = (e->weight * e->level + counts * log(*rate)) / (e->weight + counts);
    e->weight += counts;
    return SCOUT_OK;
}

/* Short slots again, of those that look best: the best of hundreds of such figures are mostly lucky ones. There and
 * back, so that slow changes of the clock cancel, with the probe among them. All stay open: a device that rests while
 * a plan is made would echo in the long slots that follow. */
static scout_answer sharpen(ceilings_field *x, ceilings_entry **list, int count, scout_why *why) {
    ceilings_entry *probe = &x->entries[0];
    scout_answer answer = SCOUT_OK;
    double rate = 0, sums[MOST_BRIEF] = {0}, reference = 0;
    for (int step = 0; step < 2 * count && answer == SCOUT_OK; step++) {
        const int k = step < count ? step : 2 * count - 1 - step;
        if (step % PROBE_EVERY == 0) {
            answer = ceilings_field_slot(x, probe, BRIEF_S, 0, &rate, why);
            reference += rate;
        }
        if (answer == SCOUT_OK && !list[k]->dead) answer = ceilings_field_try(x, list[k], BRIEF_S, 0, &rate, why);
        sums[k] += rate;
    }
    const double probes = ceil(2.0 * count / PROBE_EVERY);
    for (int k = 0; k < count; k++) {
        if (list[k]->dead || answer != SCOUT_OK) continue;
        list[k]->brief = sums[k] / 2 / (reference / probes);
        list[k]->sure = true;
    }
    return answer;
}

static bool fresh(const ceilings_entry *e) { return !e->dead && e->brief > 0 && !(e->weight > 0); }

/* Flops per cycle, less what moving data may cost. */
static double worth(const ceilings_field *x, const ceilings_entry *e, double cost) {
    const ceilings_guess_moved moved = ceilings_guess_moves(x, &e->p);
    return HALF * log(e->brief) - cost * (moved.inputs + moved.output);
}

/* Known ones first: what they do under their own load is worth a slot, whatever short slots say. */
static bool before(const ceilings_field *x, const ceilings_entry *a, const ceilings_entry *b, double cost) {
    return a->known != b->known ? a->known : worth(x, a, cost) > worth(x, b, cost);
}

/* The best by each cost in turn, of those that are fresh and as sure as that. */
static int pick(ceilings_field *x, bool sure, ceilings_entry **list, int most) {
    int count = 0;
    for (; count < most; count++) {
        ceilings_entry *best = NULL;
        const double cost = costs[count % COSTS];
        for (int k = 0; k < x->count; k++) {
            ceilings_entry *e = &x->entries[k];
            if (!fresh(e) || e->picked || e->sure != sure) continue;
            if (!best || before(x, e, best, cost)) best = e;
        }
        if (!best) break;
        best->picked = true;
        list[count] = best;
    }
    for (int k = 0; k < count; k++) list[k]->picked = false;
    return count;
}

/* At least so many, however late it is. */
static scout_answer look_at(ceilings_field *x, ceilings_entry **list, int count, int least, double until,
                            scout_why *why) {
    scout_answer answer = SCOUT_OK;
    double rate = 0;
    for (int k = 0; k < count && answer == SCOUT_OK && (k < least || !ceilings_field_late(x, until)); k++) {
        answer = look(x, list[k], LOOK_S, &rate, why);
        ceilings_field_close(x, list[k]);
    }
    ceilings_field_tell(x, "shapes under their own load", count, count);
    ceilings_guess_score(x);
    return answer;
}

scout_answer ceilings_long_first(ceilings_field *x, int most, double until, scout_why *why) {
    ceilings_entry *list[MOST_BRIEF];
    const int count = pick(x, false, list, (int)fmin(3 * most, MOST_BRIEF));
    const scout_answer answer = sharpen(x, list, count, why);
    return answer == SCOUT_OK ? look_at(x, list, pick(x, true, list, most), COSTS, until, why) : answer;
}

static int best_fresh(ceilings_field *x, ceilings_entry **list, int most) {
    int count = 0;
    for (; count < most; count++) {
        ceilings_entry *best = NULL;
        for (int k = 0; k < x->count; k++) {
            ceilings_entry *e = &x->entries[k];
            if (fresh(e) && !e->picked && (!best || e->score > best->score)) best = e;
        }
        if (!best) break;
        best->picked = true;
        list[count] = best;
    }
    for (int k = 0; k < count; k++) list[k]->picked = false;
    return count;
}

/* Guessing again after each would let one lucky slot draw the others to its neighbourhood; it is done after all. */
scout_answer ceilings_long_next(ceilings_field *x, int most, double until, scout_why *why) {
    ceilings_entry *list[MOST_BRIEF];
    ceilings_guess_score(x);
    const int count = best_fresh(x, list, (int)fmin(3 * most, MOST_BRIEF));
    const scout_answer answer = sharpen(x, list, count, why);
    ceilings_guess_score(x);
    return answer == SCOUT_OK ? look_at(x, list, best_fresh(x, list, most), 1, until, why) : answer;
}

/* Shapes that do equally well under a cap draw different power, and leave a few tenths of a percent to luck: where that
 * chose among them, efficiencies would differ from process to process by as much. So of those that are within so much
 * of the best one, a known one is as good as it; the first in their table, if there are several. It has a place among
 * the last for the same reason. */
static void prefer_known(ceilings_field *x, double within) {
    double most = 0;
    for (int k = 0; k < x->count; k++)
        if (!x->entries[k].dead) most = fmax(most, x->entries[k].score);
    for (int k = 0; k < x->count; k++) {
        ceilings_entry *e = &x->entries[k];
        if (!e->known || e->dead || !(e->score > 0) || e->score < (1 - within) * most) continue;
        e->score = nextafter(most, INFINITY);
        return;
    }
}

scout_answer ceilings_long_last(ceilings_field *x, int most, double until, scout_why *why) {
    const double left_s = x->start + until * x->budget_s - ceilings_field_now(x);
    const double fit = fmin(fmin(most, MOST), floor(left_s / (LAST_S + OPEN_S)));
    ceilings_entry *list[MOST];
    double rate = 0;
    scout_answer answer = SCOUT_OK;
    prefer_known(x, NEARLY);
    const int count = ceilings_field_best(x, list, (int)fmax(fit, LEAST_LAST));
    /* All are opened before: see above. */
    for (int k = 0; k < count && answer == SCOUT_OK; k++)
        answer = ceilings_field_try(x, list[k], BRIEF_S, 0, &rate, why);
    for (int k = 0; k < count && answer == SCOUT_OK; k++) {
        if (list[k]->dead) continue;
        answer = look(x, list[k], LAST_S, &rate, why);
        list[k]->picked = answer == SCOUT_OK;
        x->steady = fmax(x->steady, rate);
    }
    ceilings_guess_score(x);
    for (int k = 0; k < x->count; k++) {
        if (!x->entries[k].picked) x->entries[k].score = 0;
        x->entries[k].picked = false;
    }
    prefer_known(x, ALIKE);
    return answer;
}
