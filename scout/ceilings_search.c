/* The search for a peak: many shapes for a few milliseconds each, the better ones for longer, their neighbours and
 * their other variants, the last few in blocks as long as the method confirms with. The device is loaded all the time
 * (or rests in between, in bursts), and a probe among the shapes takes slow changes of its clock out of the scores. */
#include "scout/ceilings_search.h"

#include "scout/ceilings_field.h"
#include "scout/ceilings_lab.h"
#include "scout/ceilings_points.h"
#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROBE_EVERY = 8,
    REFINED = 64,        /* that are timed again after the first look */
    PARENTS = 4,         /* whose neighbours are looked at */
    TUNED = 4,           /* whose other variants are looked at */
    LONG = 10,           /* that are timed in long slots */
    BURST_FINALISTS = 2, /* a second of idling before each burst leaves time for no more */
    FINALISTS = 3,       /* that are confirmed */
    NEIGHBOURS = 20,
    LEAST_BLOCKS = 8 /* of each finalist, where blocks are shortened to fit */
};
#define REFINE_S       0.1
#define NEAR_S         0.02
#define BURST_NEAR     8e-3
#define HURRY_S        10.0 /* a strict budget below this has time for one finalist */
#define SHORTEST_BLOCK 0.01

/* Parts of the budget by which each stage ends. */
typedef struct schedule {
    double settle, screen, refine, near, tune, lengthy, confirm; /* confirm: how much it gets */
} schedule;
static const schedule sustained = {0.12, 0.28, 0.43, 0.53, 0.62, 0.71, 0.10};
static const schedule bursts = {0, 0.36, 0.46, 0.54, 0.62, 0.70, 0.14};

/* Two rounds of the fewest fit into the stage, however short it is. */
static double refine_s(const ceilings_field *x) { return fmin(REFINE_S, 0.0075 * x->s->budget_s); }
static double near_s(const ceilings_field *x) { return x->s->rules.burst ? BURST_NEAR : NEAR_S; }

static void tell(const ceilings_field *x, const char *what, int done, int of) {
    char text[160];
    if (!x->s->say) return;
    snprintf(text, sizeof text, "%s: %s %d of %d, best %.4g TFLOP/s", x->s->name, what, done, of, x->best_rate / 1e12);
    x->s->say(x->s->say_context, text);
}

/* A first look at `limit` shapes, or until part of the budget is used; scores are relative to the probe. */
static scout_answer screen(ceilings_field *x, int limit, double until, bool random, uint64_t seed, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    int looked = 0;
    for (int index = 1;
         answer == SCOUT_OK && looked < limit && index < 4 * CEILINGS_FIELD_ENTRIES && !ceilings_field_late(x, until);
         index++) {
        ceilings_search_point p =
            random ? ceilings_points_random(&x->s->space, &seed) : ceilings_points_try(&x->s->space, index, &seed);
        ceilings_entry *e = ceilings_field_add(x, &p);
        double rate = 0;
        if (!e) continue;
        if (looked++ % PROBE_EVERY == 0) answer = ceilings_field_probe(x, why);
        if (answer == SCOUT_OK) answer = ceilings_field_try(x, e, ceilings_field_screen_s(x), 0, &rate, why);
        if (!e->dead) e->score = rate / x->probe_now;
        ceilings_field_close(x, e);
        if (looked % 25 == 0) tell(x, "shape", looked, limit);
    }
    x->entries[0].score = 1;
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
        if (answer == SCOUT_OK && !e->dead && beside > 0) e->score = parent->score * rate / beside;
        ceilings_field_close(x, e);
    }
    return answer;
}

static scout_answer search_near(ceilings_field *x, double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    ceilings_entry *best[PARENTS];
    for (int generation = 0; generation < 3 && answer == SCOUT_OK && !ceilings_field_late(x, until); generation++) {
        int count = ceilings_field_best(x, best, PARENTS);
        for (int k = 0; k < count && answer == SCOUT_OK; k++) {
            ceilings_search_point points[NEIGHBOURS];
            int some = ceilings_points_near(&x->s->space, &best[k]->p, points, NEIGHBOURS);
            answer = relatives(x, best[k], points, some, until, why);
            tell(x, "neighbours of shape", k + 1, count);
        }
    }
    return answer;
}

static scout_answer search_variants(ceilings_field *x, double until, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    ceilings_entry *best[TUNED];
    int count = ceilings_field_best(x, best, TUNED);
    for (int k = 0; k < count && answer == SCOUT_OK; k++) {
        ceilings_search_point points[64];
        int some = 0;
        for (int32_t layout = 0; layout < x->s->bench.layouts; layout++)
            for (int32_t variant = 0; variant < x->s->bench.variants && some < 64; variant++) {
                points[some] = best[k]->p;
                points[some].layout = layout;
                points[some++].variant = variant;
            }
        answer = relatives(x, best[k], points, some, until, why);
        tell(x, "variants of shape", k + 1, count);
    }
    return answer;
}

/* ---- from start to end ---- */

/* Loads the device until its clock is steady. That it would not settle is no reason to stop: intervals say how good
 * the figures are. */
static void settle(ceilings_field *x, double part) {
    timing_rules rules = x->s->rules;
    scout_why why;
    rules.settle_s = fmin(rules.settle_s, part * x->s->budget_s);
    if (!rules.burst) (void)timing_settle(x->s->clock, &rules, &x->entries[0].subject, &why);
}

/* How many can be timed again until then, with some patience. */
static int refined_of(const ceilings_field *x, double until) {
    double slot_s = x->s->rules.burst ? 4 * x->s->rules.burst_s : REFINE_S;
    double left_s = x->start + until * x->s->budget_s - ceilings_field_now(x);
    return (int)fmax(LONG, fmin(REFINED, 1.5 * left_s / slot_s));
}

typedef struct confirmed {
    timing_result results[FINALISTS + 1];
    double ratios[FINALISTS + 1], ratio_ci[FINALISTS + 1];
    double tflops[FINALISTS + 1]; /* 0: it could not be confirmed */
    int first;                    /* the fastest; -1: there is none */
} confirmed;

static scout_answer confirm(ceilings_field *x, ceilings_entry **list, int count, double part, confirmed *out,
                            scout_why *why) {
    timing_subject subjects[FINALISTS + 1] = {{NULL, NULL}};
    timing_rules rules = x->s->rules;
    rules.budget_s = part * x->s->budget_s;
    rules.race_share = 0; /* nothing races here */
    if (x->s->strict)
        rules.block_s = fmin(rules.block_s, fmax(rules.budget_s / (LEAST_BLOCKS * count), SHORTEST_BLOCK));
    memset(out, 0, sizeof *out);
    out->first = -1;
    for (int k = 0; k < count; k++) subjects[k] = list[k]->subject;
    timing_confirm(x->s->clock, &rules, subjects, count, NULL, NULL, out->results, out->ratios, out->ratio_ci);
    for (int k = 0; k < count; k++) {
        const timing_result *r = &out->results[k];
        if (r->answer == SCOUT_LOST) {
            *why = r->why;
            return SCOUT_LOST;
        }
        if (r->answer == SCOUT_OK && r->median_s > 0)
            out->tflops[k] = ceilings_search_flops(&list[k]->p) / r->median_s / 1e12;
        if (out->tflops[k] > 0 && (out->first < 0 || out->tflops[k] > out->tflops[out->first])) out->first = k;
    }
    return SCOUT_OK;
}

/* Far below what was seen under the same load, or anywhere within a wide interval. */
static bool is_disturbed(const ceilings_field *x, const confirmed *c) {
    if (c->first < 0) return true;
    return c->tflops[c->first] * 1e12 < (1 - CEILINGS_LAB_WIDE) * x->steady ||
           !(c->results[c->first].rel_ci95 <= CEILINGS_LAB_WIDE);
}

/* What disagrees is timed again: something else may have used the device meanwhile. The undisturbed figure counts, or
 * the largest. */
static scout_answer confirm_patiently(ceilings_field *x, ceilings_entry **list, int count, double part, confirmed *out,
                                      ceilings_search_best *best, scout_why *why) {
    confirmed again;
    scout_answer answer = confirm(x, list, count, part, out, why);
    for (best->confirmed = 1; answer == SCOUT_OK && is_disturbed(x, out); best->confirmed++) {
        if (best->confirmed == CEILINGS_LAB_TIMES || ceilings_field_late(x, 1)) break;
        if (x->s->say) x->s->say(x->s->say_context, "disturbed: its best products are timed again");
        answer = confirm(x, list, count, part, &again, why);
        if (answer != SCOUT_OK || again.first < 0) continue;
        if (out->first < 0 || !is_disturbed(x, &again) || again.tflops[again.first] > out->tflops[out->first])
            *out = again;
    }
    best->disturbed = is_disturbed(x, out);
    return answer;
}

/* What confirming is to agree with: rates of blocks as long as its own. Shorter slots are no measure where the clock
 * follows the power; elsewhere they are, though the luckiest of many short ones is a little too good. */
static void remember(ceilings_field *x, ceilings_entry *const *list, int count, double trust) {
    for (int k = 0; k < count; k++) x->steady = fmax(x->steady, trust * list[k]->score);
}

static int finalists_of(const ceilings_field *x) {
    if (x->s->rules.burst) return BURST_FINALISTS;
    return x->s->strict && x->s->budget_s < HURRY_S ? 1 : FINALISTS;
}

/* The last stages, the same for what was searched and for random shapes: from a list on one scale to few in long slots.
 * All that come back are open. */
static scout_answer narrow(ceilings_field *x, ceilings_entry **list, int *count, double until, scout_why *why) {
    double block_s = fmin(x->s->rules.block_s, x->s->budget_s / 100);
    *count = ceilings_field_best(x, list, LONG);
    scout_answer answer = rounds(x, list, *count, CEILINGS_FIELD_RATES, block_s, x->s->rules.block_drop, until, why);
    remember(x, list, *count, 1);
    *count = ceilings_field_best(x, list, finalists_of(x));
    return answer;
}

scout_answer ceilings_search_run(const ceilings_search *s, ceilings_search_best *out, scout_why *why) {
    const schedule *plan = s->rules.burst ? &bursts : &sustained;
    ceilings_field x;
    ceilings_entry *list[REFINED];
    confirmed last;
    int count = 0;
    memset(out, 0, sizeof *out);
    scout_answer answer = ceilings_field_begin(&x, s, why);
    if (answer != SCOUT_OK) goto done;
    settle(&x, plan->settle);
    answer = screen(&x, CEILINGS_FIELD_ENTRIES / 2, plan->screen, false, s->space.seed, why);
    count = ceilings_field_best(&x, list, refined_of(&x, plan->refine));
    if (answer == SCOUT_OK) answer = rounds(&x, list, count, 2, refine_s(&x), 0.5, plan->refine, why);
    if (s->host) remember(&x, list, count, 1 - CEILINGS_LAB_WIDE);
    if (answer == SCOUT_OK) answer = search_near(&x, plan->near, why);
    if (answer == SCOUT_OK) answer = search_variants(&x, plan->tune, why);
    if (answer == SCOUT_OK) answer = narrow(&x, list, &count, plan->lengthy, why);
    if (answer == SCOUT_OK) answer = confirm_patiently(&x, list, count, plan->confirm, &last, out, why);
    if (answer != SCOUT_OK) goto done;
    if (last.first < 0) {
        answer = scout_say(why, SCOUT_FAILED, "error", "no shape could be confirmed");
        goto done;
    }
    out->point = list[last.first]->p, out->tflops = last.tflops[last.first], out->tried = x.count;
    out->timing = last.results[last.first];
    out->seconds = ceilings_field_now(&x) - x.start;
done:
    ceilings_field_finish(&x);
    return answer;
}

scout_answer ceilings_search_audit(const ceilings_search *s, const ceilings_search_point *found, int32_t count,
                                   ceilings_search_verdict *out, scout_why *why) {
    ceilings_field x;
    ceilings_entry *list[REFINED + 1], *subject = NULL;
    confirmed last;
    int some = 0, best = 0;
    double rate = 0;
    memset(out, 0, sizeof *out);
    scout_answer answer = ceilings_field_begin(&x, s, why);
    if (answer != SCOUT_OK) goto done;
    answer = screen(&x, count, INFINITY, true, s->space.seed ^ UINT64_C(0xa5a5a5a5), why);
    out->random_shapes = x.count - 1;
    x.entries[0].dead = true; /* the probe is none of the random shapes */
    some = ceilings_field_best(&x, list, REFINED);
    if (answer == SCOUT_OK) answer = rounds(&x, list, some, 2, REFINE_S, 0.5, INFINITY, why);
    if (answer == SCOUT_OK) answer = narrow(&x, list + 1, &some, 0, why);
    subject = ceilings_field_add(&x, found);
    for (int k = 0; !subject && k < x.count; k++) /* it may be one of the random shapes */
        if (memcmp(&x.entries[k].p, found, sizeof *found) == 0) subject = &x.entries[k];
    if (!subject) {
        answer = answer == SCOUT_OK ? SCOUT_FAILED : answer;
        scout_say(why, answer, "error", "there is no room for the shape that was found");
        goto done;
    }
    if (answer == SCOUT_OK) answer = ceilings_field_slot(&x, subject, near_s(&x), 0, &rate, why);
    if (answer != SCOUT_OK) goto done;
    list[0] = subject;
    answer = confirm(&x, list, some + 1, s->rules.burst ? bursts.confirm : 2 * sustained.confirm, &last, why);
    for (int k = 1; k <= some; k++)
        if (last.tflops[k] > 0 && (best == 0 || last.tflops[k] > last.tflops[best])) best = k;
    if (answer == SCOUT_OK && (best == 0 || !(last.tflops[0] > 0)))
        answer = scout_say(why, SCOUT_FAILED, "error", "no random shape could be confirmed beside the one found");
    if (answer != SCOUT_OK) goto done;
    out->best = list[best]->p;
    out->best_tflops = last.tflops[best], out->found_tflops = last.tflops[0];
    out->timing = last.results[best];
    /* times of neighbouring blocks: time of the random one over that of the found one, each for its own work */
    out->ratio = last.ratios[best] * ceilings_search_flops(found) / ceilings_search_flops(&out->best);
    out->rel_ci95 = last.ratio_ci[best];
    if (!(out->ratio > 0)) out->ratio = out->found_tflops / out->best_tflops;
    out->seconds = ceilings_field_now(&x) - x.start;
done:
    ceilings_field_finish(&x);
    return answer;
}
