/* The search for a peak: many shapes for a few milliseconds each, the better ones for longer, their neighbours and
 * their other variants, the last few in blocks as long as the method confirms with. The device is loaded all the time
 * (or rests in between, in bursts). What of this is done when, and for how long, depends on what holds its clock: a
 * plan is a table of stages. */
#include "scout/ceilings_search.h"

#include "scout/ceilings_lab.h"
#include "scout/ceilings_long.h"
#include "scout/ceilings_stages.h"

#include <math.h>
#include <string.h>

enum {
    LONG = 10,       /* that are timed in long slots */
    FINALISTS = 3,   /* that are confirmed, at most */
    LEAST_BLOCKS = 8 /* of each finalist, where blocks are shortened to fit */
};
#define HURRY_S        10.0 /* below this a strict budget has time for one finalist, and none for slots of 0.3 s */
#define STRICT_S       16.0 /* the same of a strict one where the clock is steered, */
#define STRICT_PART    0.85 /* so much of which is planned with there: whole seconds do not end on time */
#define SHORTEST_BLOCK 0.01

/* ---- plans ---- */

typedef struct stage {
    scout_answer (*run)(ceilings_field *x, int most, double until, scout_why *why);
    int most;     /* shapes, or parents of shapes, that it looks at */
    double until; /* by so much of the budget it ends; infinite: whenever it is done */
} stage;

enum { MOST_STAGES = 8 };
typedef struct plan {
    double settle, confirm;     /* parts of the budget, that these get */
    double duel;                /* the same of an audit's last comparison; 0: it is part of confirming */
    int finalists, audited;     /* shapes that are confirmed: of a search, and random ones */
    double target, duel_target; /* relative half width of each one's interval, where the clock is steered */
    stage search[MOST_STAGES], audit[MOST_STAGES];
} plan;

static const plan sustained = {
    .settle = 0.12,
    .confirm = 0.10,
    .finalists = 3,
    .audited = 3,
    .search = {{ceilings_stages_designed, CEILINGS_FIELD_ENTRIES / 2, 0.28},
               {ceilings_stages_refine, CEILINGS_STAGES_REFINED, 0.43},
               {ceilings_stages_near, CEILINGS_STAGES_PARENTS, 0.53},
               {ceilings_stages_variants, CEILINGS_STAGES_PARENTS, 0.62},
               {ceilings_stages_narrow, LONG, 0.71}},
    .audit = {{ceilings_stages_random, 0, INFINITY},
              {ceilings_stages_refine, CEILINGS_STAGES_REFINED, INFINITY},
              {ceilings_stages_narrow, LONG, 0}},
};

static const plan bursts = {
    .settle = 0,
    .confirm = 0.14,
    .audited = 2,
    .finalists = 2, /* a second of idling before each burst leaves time for no more */
    .search = {{ceilings_stages_designed, CEILINGS_FIELD_ENTRIES / 2, 0.36},
               {ceilings_stages_refine, CEILINGS_STAGES_REFINED, 0.46},
               {ceilings_stages_near, CEILINGS_STAGES_PARENTS, 0.54},
               {ceilings_stages_variants, CEILINGS_STAGES_PARENTS, 0.62},
               {ceilings_stages_narrow, LONG, 0.70}},
    .audit = {{ceilings_stages_random, 0, INFINITY},
              {ceilings_stages_refine, CEILINGS_STAGES_REFINED, INFINITY},
              {ceilings_stages_narrow, LONG, 0}},
};

/* Power holds the clock back, and only long slots tell (scout/ceilings_long.c). Of 26 s, 5 go to about 500 shapes,
 * since flops per cycle are half of what decides; 12 to some thirty slots of 0.3 s, with the short ones that choose
 * for them: most of these before anything is concluded from any, as the best of few is mostly a lucky one, and a search
 * in fifteen ended 3 % below the others. 7 go to whole seconds of the best five or six. They name the winner, and
 * blocks that had no part in that say its rate: the best of several noisy figures would flatter it. Two pairs of blocks
 * know it within 0.2 % (deviation), so that two processes agree within 0.5 %. An audit may take longer: its duel goes
 * on until either rate is known so well that the interval of the ratio is within 0.5 %. */
static const plan steered = {
    .settle = 0.12,
    .confirm = 0.16,
    .duel = 0.7,
    .finalists = 1,
    .audited = 3,
    .target = 0.0045,
    .duel_target = 0.0028,
    .search = {{ceilings_stages_designed, CEILINGS_FIELD_ENTRIES / 2, 0.20},
               {ceilings_long_first, 20, 0.45},
               {ceilings_stages_near, 4, 0.50},
               {ceilings_long_next, 7, 0.60},
               {ceilings_stages_variants, 2, 0.63},
               {ceilings_long_next, 6, 0.70},
               {ceilings_long_last, 8, 0.95}},
    .audit = {{ceilings_stages_random, 0, INFINITY},
              {ceilings_long_first, 16, INFINITY},
              {ceilings_long_next, 6, INFINITY},
              {ceilings_long_next, 4, INFINITY},
              {ceilings_long_last, 5, INFINITY}},
};

/* ---- from start to end ---- */

/* Loads the device until its clock is steady. That it would not settle is no reason to stop: intervals say how good
 * the figures are. */
static const plan *settle(ceilings_field *x) {
    timing_rules rules = x->rules;
    scout_why why;
    if (rules.burst) return &bursts;
    rules.settle_s = fmin(rules.settle_s, sustained.settle * x->budget_s);
    (void)timing_settle(x->s->clock, &rules, &x->entries[0].subject, &why);
    x->steered = x->state.steered && !x->s->host && x->budget_s >= (x->s->strict ? STRICT_S : HURRY_S);
    if (x->steered && x->s->strict) x->budget_s *= STRICT_PART;
    return x->steered ? &steered : &sustained;
}

/* most: shapes of the first stage, where it has no figure of its own. */
static scout_answer run_stages(ceilings_field *x, const stage *stages, int most, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (; answer == SCOUT_OK && stages->run; stages++)
        answer = stages->run(x, stages->most ? stages->most : most, stages->until, why);
    return answer;
}

typedef struct confirmed {
    timing_result results[FINALISTS + 1];
    double ratios[FINALISTS + 1], ratio_ci[FINALISTS + 1];
    double tflops[FINALISTS + 1]; /* 0: it could not be confirmed */
    int first;                    /* the fastest; -1: there is none */
    double shortened;             /* how many times shorter its blocks were than the method's */
} confirmed;

typedef struct terms {
    double budget_s, target; /* target: where the clock is steered; 0: as the method has it */
} terms;

static timing_rules rules_of(const ceilings_field *x, const terms *t, int count) {
    timing_rules rules = x->rules;
    rules.budget_s = t->budget_s;
    rules.race_share = 0; /* nothing races here */
    if (t->target > 0) rules.steered_target = t->target;
    if (!x->s->strict) return rules;
    rules.block_s = fmin(rules.block_s, fmax(t->budget_s / (LEAST_BLOCKS * count), SHORTEST_BLOCK));
    if (!x->steered) rules.steered_block_s = fmin(rules.steered_block_s, fmax(t->budget_s / count, 2 * SHORTEST_BLOCK));
    rules.steered_load_s = fmin(rules.steered_load_s, t->budget_s);
    return rules;
}

/* The work of a block strays by as much time as ever, however short the block is (ceilings_guess_error), while what
 * blocks claim is learnt from those of the method's length. */
static void claim(const ceilings_field *x, const timing_rules *rules, int count, confirmed *out) {
    out->shortened = x->state.steered ? fmax(x->rules.steered_block_s / rules->steered_block_s, 1) : 1;
    for (int k = 0; k < count; k++) {
        out->results[k].rel_ci95 *= out->shortened;
        out->ratio_ci[k] *= out->shortened;
    }
}

static scout_answer confirm(ceilings_field *x, ceilings_entry **list, int count, const terms *t, confirmed *out,
                            scout_why *why) {
    timing_subject subjects[FINALISTS + 1] = {{.context = NULL}};
    const timing_rules rules = rules_of(x, t, count);
    memset(out, 0, sizeof *out);
    out->first = -1;
    for (int k = 0; k < count; k++) subjects[k] = list[k]->subject;
    timing_confirm(x->s->clock, &rules, subjects, count, NULL, NULL, out->results, out->ratios, out->ratio_ci);
    claim(x, &rules, count, out);
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

/* Far below what was seen under the same load, or anywhere within an interval that is wide for blocks so long. */
static bool is_disturbed(const ceilings_field *x, const confirmed *c) {
    if (c->first < 0) return true;
    return c->tflops[c->first] * 1e12 < (1 - CEILINGS_LAB_WIDE) * x->steady ||
           !(c->results[c->first].rel_ci95 <= CEILINGS_LAB_WIDE * c->shortened);
}

/* Two figures that disagree are known no better than they are apart. */
static void doubt(const ceilings_field *x, confirmed *c) {
    timing_result *r = &c->results[c->first];
    if (!(x->steady > 0)) return;
    r->rel_ci95 = fmax(r->rel_ci95, fabs(x->steady / (c->tflops[c->first] * 1e12) - 1));
}

/* What disagrees is timed again: something else may have used the device meanwhile. The undisturbed figure counts, or
 * the largest. */
static scout_answer confirm_patiently(ceilings_field *x, ceilings_entry **list, int count, const terms *t,
                                      confirmed *out, ceilings_search_best *best, scout_why *why) {
    confirmed again;
    const double until = x->s->strict ? 1 - t->budget_s / x->budget_s : 1; /* there has to be room for one more */
    scout_answer answer = confirm(x, list, count, t, out, why);
    for (best->confirmed = 1; answer == SCOUT_OK && is_disturbed(x, out); best->confirmed++) {
        if (best->confirmed == CEILINGS_LAB_TIMES || ceilings_field_late(x, until)) break;
        if (x->s->say) x->s->say(x->s->say_context, "disturbed: its best products are timed again");
        answer = confirm(x, list, count, t, &again, why);
        if (answer != SCOUT_OK || again.first < 0) continue;
        if (out->first < 0 || !is_disturbed(x, &again) || again.tflops[again.first] > out->tflops[out->first])
            *out = again;
    }
    best->disturbed = is_disturbed(x, out);
    if (best->disturbed && out->first >= 0) doubt(x, out);
    return answer;
}

static int finalists_of(const ceilings_field *x, const plan *p) {
    const double hurry_s = x->state.steered ? STRICT_S : HURRY_S; /* what is shared out is all the less exact there */
    return x->s->strict && !x->rules.burst && x->s->budget_s < hurry_s ? 1 : p->finalists;
}

scout_answer ceilings_search_run(const ceilings_search *s, ceilings_search_best *out, scout_why *why) {
    ceilings_field x;
    ceilings_entry *list[FINALISTS];
    confirmed last;
    memset(out, 0, sizeof *out);
    scout_answer answer = ceilings_field_begin(&x, s, why);
    if (answer != SCOUT_OK) goto done;
    const plan *p = settle(&x);
    answer = run_stages(&x, p->search, 0, why);
    if (answer != SCOUT_OK) goto done;
    const int count = ceilings_field_best(&x, list, finalists_of(&x, p));
    const terms t = {p->confirm * x.budget_s, p->target};
    answer = confirm_patiently(&x, list, count, &t, &last, out, why);
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

/* ---- the audit ---- */

/* The shape to be audited, open. It may be one of the random ones. */
static scout_answer open_found(ceilings_field *x, const ceilings_search_point *found, ceilings_entry **subject,
                               scout_why *why) {
    double rate = 0;
    *subject = ceilings_field_add(x, found);
    for (int k = 0; !*subject && k < x->count; k++)
        if (memcmp(&x->entries[k].p, found, sizeof *found) == 0) *subject = &x->entries[k];
    if (!*subject) return scout_say(why, SCOUT_FAILED, "error", "there is no room for the shape that was found");
    return ceilings_field_slot(x, *subject, ceilings_field_screen_s(x), 0, &rate, why);
}

static int best_random(const confirmed *c, int from, int count) {
    int best = -1;
    for (int k = from; k < count; k++)
        if (c->tflops[k] > 0 && (best < 0 || c->tflops[k] > c->tflops[best])) best = k;
    return best;
}

/* list[0] was found, the others are the finalists of the random ones. The best of several figures flatters whoever it
 * belongs to; where that matters (a rule of 0.5 %, figures of 0.3 %), the best one is chosen by figures of its own, and
 * compared by the blocks of a duel that had no part in the choice. *best: which one of the list. */
static scout_answer compare(ceilings_field *x, const plan *p, ceilings_entry **list, int *count, confirmed *out,
                            int *best, scout_why *why) {
    const double confirm_s = (p->duel > 0 ? 1 : 2) * p->confirm * x->budget_s;
    terms t = {confirm_s, p->target};
    scout_answer answer = SCOUT_OK;
    if (p->duel > 0 && *count > 2) {
        answer = confirm(x, list + 1, *count - 1, &t, out, why);
        if (answer == SCOUT_OK && out->first >= 0) list[1] = list[1 + out->first];
        *count = 2;
    }
    if (p->duel > 0) t = (terms){p->duel * x->budget_s, p->duel_target};
    if (answer == SCOUT_OK) answer = confirm(x, list, *count, &t, out, why);
    *best = best_random(out, 1, *count);
    if (answer == SCOUT_OK && (*best < 0 || !(out->tflops[0] > 0)))
        answer = scout_say(why, SCOUT_FAILED, "error", "no random shape could be confirmed beside the one found");
    return answer;
}

scout_answer ceilings_search_audit(const ceilings_search *s, const ceilings_search_point *found, int32_t count,
                                   ceilings_search_verdict *out, scout_why *why) {
    ceilings_field x;
    ceilings_entry *list[FINALISTS + 1];
    confirmed last;
    int some = 0, best = 0;
    memset(out, 0, sizeof *out);
    scout_answer answer = ceilings_field_begin(&x, s, why);
    if (answer != SCOUT_OK) goto done;
    const plan *p = settle(&x);
    answer = run_stages(&x, p->audit, count, why);
    out->random_shapes = x.count - 1;
    if (answer != SCOUT_OK) goto done;
    some = 1 + ceilings_field_best(&x, list + 1, p->audited);
    answer = open_found(&x, found, &list[0], why);
    if (answer == SCOUT_OK) answer = compare(&x, p, list, &some, &last, &best, why);
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
