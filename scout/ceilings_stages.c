/* The stages that every search begins with, and all of those where no power cap makes short slots and long ones
 * disagree. A probe among the shapes takes slow changes of the clock out of the scores. */
#include "scout/ceilings_stages.h"

#include "scout/ceilings_lab.h"
#include "scout/ceilings_points.h"
#include "scout/stats.h"

#include <math.h>

enum { PROBE_EVERY = 8, LEAST_REFINED = 10, NEIGHBOURS = 20, VARIANTS = 64, MOST_KNOWN = 8 };
#define REFINE_S   0.1
#define NEAR_S     0.02
#define BURST_NEAR 8e-3

/* Two rounds of the fewest fit into the stage, however short it is. */
static double refine_s(const ceilings_field *x) { return fmin(REFINE_S, 0.0075 * x->budget_s); }
static double near_s(const ceilings_field *x) { return x->rules.burst ? BURST_NEAR : NEAR_S; }

/* A first look at one shape; its score is relative to the probe. */
static scout_answer first_look(ceilings_field *x, const ceilings_search_point *p, bool known, int *looked,
                               scout_why *why) {
    ceilings_entry *e = ceilings_field_add(x, p);
    scout_answer answer = SCOUT_OK;
    double rate = 0;
    if (!e) return SCOUT_OK;
    e->known = known;
    if (*looked % PROBE_EVERY == 0) answer = ceilings_field_probe(x, why);
    ++*looked;
    if (answer == SCOUT_OK) answer = ceilings_field_try(x, e, ceilings_field_screen_s(x), 0, &rate, why);
    if (!e->dead) e->score = e->brief = rate / x->probe_now;
    ceilings_field_close(x, e);
    return answer;
}

/* At `limit` shapes, or until part of the budget is used. */
static scout_answer screen(ceilings_field *x, int limit, double until, bool random, uint64_t seed, scout_why *why) {
    const ceilings_search_space *space = &x->s->space;
    ceilings_search_point first[MOST_KNOWN];
    scout_answer answer = SCOUT_OK;
    const int some = random ? 0 : ceilings_points_known(space, first, MOST_KNOWN);
    int looked = 0;
    for (int k = 0; answer == SCOUT_OK && k < some; k++) answer = first_look(x, &first[k], true, &looked, why);
    for (int index = 1;
         answer == SCOUT_OK && looked < limit && index < 4 * CEILINGS_FIELD_ENTRIES && !ceilings_field_late(x, until);
         index++) {
        const ceilings_search_point p =
            random ? ceilings_points_random(space, &seed) : ceilings_points_try(space, index, &seed);
        answer = first_look(x, &p, false, &looked, why);
        if (looked % 25 == 0) ceilings_field_tell(x, "shape", looked, limit);
    }
    if (!x->entries[0].dead) x->entries[0].score = x->entries[0].brief = 1;
    return answer;
}

scout_answer ceilings_stages_designed(ceilings_field *x, int most, double until, scout_why *why) {
    return screen(x, most, until, false, x->s->space.seed, why);
}

/* The probe is none of the random shapes. */
scout_answer ceilings_stages_random(ceilings_field *x, int most, double until, scout_why *why) {
    const scout_answer answer = screen(x, most, until, true, x->s->space.seed ^ UINT64_C(0xa5a5a5a5), why);
    x->entries[0].dead = true;
    return answer;
}

/* Interleaved rounds over a list, there and back; afterwards scores are the medians of its rates. Ends when late, but
 * not within a round. */
static scout_answer rounds(ceilings_field *x, ceilings_entry **list, int count, int most, double work_s, double from,
                           double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < count; k++) list[k]->rate_count = 0;
    for (int r = 0;
         r < most && r < CEILINGS_FIELD_RATES && answer == SCOUT_OK && (r == 0 || !ceilings_field_late(x, until)); r++)
        for (int k = 0; k < count && answer == SCOUT_OK; k++) {
            ceilings_entry *e = list[r % 2 ? count - 1 - k : k];
            double rate = 0;
            if (e->dead) continue;
            answer = ceilings_field_try(x, e, work_s, from, &rate, why);
            if (answer == SCOUT_OK && !e->dead) e->rates[e->rate_count++] = rate;
        }
    for (int k = 0; k < x->count; k++) x->entries[k].score = 0; /* those of earlier stages are on another scale */
    for (int k = 0; k < count; k++)
        if (list[k]->rate_count > 0) list[k]->score = stats_median(list[k]->rates, (size_t)list[k]->rate_count);
    return answer;
}

/* Looks at relatives of an entry, each beside it, and scores them on its scale. */
static scout_answer relatives(ceilings_field *x, ceilings_entry *parent, const ceilings_search_point *points, int count,
                              double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    double beside = 0;
    for (int k = 0; k < count && answer == SCOUT_OK && !ceilings_field_late(x, until); k++) {
        ceilings_entry *e = ceilings_field_add(x, &points[k]);
        double rate = 0;
        if (!e) continue;
        if (k % 4 == 0 || !(beside > 0)) answer = ceilings_field_try(x, parent, near_s(x), 0.25, &beside, why);
        if (answer == SCOUT_OK) answer = ceilings_field_try(x, e, near_s(x), 0.25, &rate, why);
        if (answer == SCOUT_OK && !e->dead && beside > 0) {
            e->score = parent->score * rate / beside; /* a lower clock takes half of it back: the order is the same */
            e->brief = parent->brief * rate / beside;
        }
        ceilings_field_close(x, e);
    }
    return answer;
}

scout_answer ceilings_stages_near(ceilings_field *x, int most, double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    ceilings_entry *best[CEILINGS_STAGES_PARENTS];
    for (int generation = 0; generation < 3 && answer == SCOUT_OK && !ceilings_field_late(x, until); generation++) {
        int count = ceilings_field_best(x, best, most);
        for (int k = 0; k < count && answer == SCOUT_OK; k++) {
            ceilings_search_point points[NEIGHBOURS];
            int some = ceilings_points_near(&x->s->space, &best[k]->p, points, NEIGHBOURS);
            answer = relatives(x, best[k], points, some, until, why);
            ceilings_field_tell(x, "neighbours of shape", k + 1, count);
        }
    }
    return answer;
}

scout_answer ceilings_stages_variants(ceilings_field *x, int most, double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    ceilings_entry *best[CEILINGS_STAGES_PARENTS];
    int count = ceilings_field_best(x, best, most);
    for (int k = 0; k < count && answer == SCOUT_OK; k++) {
        ceilings_search_point points[VARIANTS];
        int some = 0;
        for (int32_t layout = 0; layout < x->s->bench.layouts; layout++)
            for (int32_t variant = 0; variant < x->s->bench.variants && some < VARIANTS; variant++) {
                points[some] = best[k]->p;
                points[some].layout = layout;
                points[some++].variant = variant;
            }
        answer = relatives(x, best[k], points, some, until, why);
        ceilings_field_tell(x, "variants of shape", k + 1, count);
    }
    return answer;
}

/* How many can be timed again until then, with some patience. */
static int refined_of(const ceilings_field *x, int most, double until) {
    double slot_s = x->rules.burst ? 4 * x->rules.burst_s : REFINE_S;
    double left_s = x->start + until * x->budget_s - ceilings_field_now(x);
    return (int)fmax(LEAST_REFINED, fmin(most, 1.5 * left_s / slot_s));
}

/* What confirming is to agree with: rates of blocks as long as its own. Shorter slots are no measure where the clock
 * follows the power; elsewhere they are, though the luckiest of many short ones is a little too good. */
static void remember(ceilings_field *x, ceilings_entry *const *list, int count, double trust) {
    for (int k = 0; k < count; k++) x->steady = fmax(x->steady, trust * list[k]->score);
}

scout_answer ceilings_stages_refine(ceilings_field *x, int most, double until, scout_why *why) {
    ceilings_entry *list[CEILINGS_STAGES_REFINED];
    const int count = ceilings_field_best(x, list, refined_of(x, most, until));
    const scout_answer answer = rounds(x, list, count, 2, refine_s(x), 0.5, until, why);
    if (x->s->host) remember(x, list, count, 1 - CEILINGS_LAB_WIDE);
    return answer;
}

/* Few in slots as long as blocks of confirming; they stay open. */
scout_answer ceilings_stages_narrow(ceilings_field *x, int most, double until, scout_why *why) {
    double block_s = fmin(x->rules.block_s, x->budget_s / 100);
    ceilings_entry *list[CEILINGS_STAGES_REFINED];
    const int count = ceilings_field_best(x, list, most);
    const scout_answer answer = rounds(x, list, count, CEILINGS_FIELD_RATES, block_s, x->rules.block_drop, until, why);
    remember(x, list, count, 1);
    return answer;
}
