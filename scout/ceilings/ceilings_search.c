/* The search for a peak: a list of shapes, each for milliseconds beside a common one; the best dozen for longer; their
 * relatives beside them; the best few in longer blocks; the last three in blocks of a tenth of a second, and the winner
 * alone, whose rate is the figure. Whatever is compared ran in alternating blocks, so that the clock cancels. Under a
 * power cap short blocks tell the flops per cycle and long ones what a shape's own load leaves of the clock. */
#include "scout/ceilings/ceilings_search.h"

#include "scout/timing/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 1024, GROUP = 8, HOST_GROUP = 4, DOZEN = 20, FEW = 16, FINALISTS = 3, PARENTS = 3, DUELS = 5 };
enum { RELATIVES = 40, STARTS = 40, LONG_PASSES = 5, TIMES = 2 };

/* Parts of the budget by which stages end, and what a shape gets in them, in seconds of a budget of usual_s. */
static const double usual_s = 6;
static const double burst_screen_until = 0.28; /* bursts have rests between them, which are most of their time */
static const double screen_until = 0.2, dozen_before = 0.23, near_until = 0.35, few_before = 0.42;
static const double screen_s = 1.5e-3, dozen_s = 8e-3, few_s = 0.06, final_s = 0.2, alone_s = 0.18;
/* A controller of power looks at a second: a device has the one before its long run comes to rest. */
static const double steered_alone_s = 0.35, steered_load_s = 0.3;
static const double clock_falls = 0.25; /* under its own load, at most; what a shape loses beyond was taken from it */
static const double short_block_s = 3e-3, long_block_s = 0.1, duel_s = 0.15;

typedef struct entry {
    ceilings_search_point p;
    double score; /* its rate over that of one that all with a score have in common; 0: not known */
    double seen;  /* the greatest of its rates in long blocks; 0: it had none */
    bool dead;
} entry;

typedef struct field {
    const ceilings_search *s;
    entry *entries;
    int count;
    double start_s, scale, best; /* scale: of seconds; best: flop/s */
} field;

static bool late(const field *x, double part) {
    return ceilings_lab_now(x->s->lab) - x->start_s > part * x->s->budget_s;
}

static void tell(const field *x, const char *what) {
    ceilings_lab_say(x->s->lab, "%s: %s, %d shapes, best %.4g TFLOP/s", x->s->name, what, x->count, x->best / 1e12);
}

/* ---- entries ---- */

/* NULL: looked at already, or no room. */
static entry *add(field *x, const ceilings_search_point *p) {
    if (x->count == ENTRIES) return NULL;
    for (int k = 0; k < x->count; k++)
        if (memcmp(&x->entries[k].p, p, sizeof *p) == 0) return NULL;
    x->entries[x->count] = (entry){.p = *p};
    return &x->entries[x->count++];
}

static int by_score(const void *a, const void *b) {
    const entry *const *x = a, *const *y = b;
    return ((*x)->score < (*y)->score) - ((*x)->score > (*y)->score);
}

/* Those that live and have a score, best first. */
static int best_of(field *x, entry **out, int most) {
    static const size_t each = sizeof(entry *);
    entry **all = calloc((size_t)x->count + 1, each);
    int count = 0;
    for (int k = 0; all && k < x->count; k++)
        if (!x->entries[k].dead && x->entries[k].score > 0) all[count++] = &x->entries[k];
    if (all) qsort(all, (size_t)count, each, by_score);
    if (count > most) count = most;
    for (int k = 0; k < count; k++) out[k] = all[k];
    free(all);
    return count;
}

/* ---- timing ---- */

/* One pass of them all; flop/s into rates, 0 where there is none. An entry that fails is dead; SCOUT_LOST ends the
 * search. */
static scout_answer together(field *x, entry **list, int count, double seconds, double block_s, double *rates,
                             scout_why *why) {
    const ceilings_search_bench *bench = &x->s->bench;
    lanes_lane *lanes = calloc((size_t)count + 1, sizeof *lanes);
    scout_answer answer = lanes ? SCOUT_OK : scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    int opened = 0, at[GROUP + DOZEN];
    for (int k = 0; k < count; k++) rates[k] = 0;
    for (int k = 0; answer == SCOUT_OK && k < count; k++) {
        const scout_answer one = bench->open(bench->context, &list[k]->p, &lanes[opened].subject, why);
        if (one == SCOUT_OK) at[opened++] = k;
        list[k]->dead = one != SCOUT_OK;
        if (one == SCOUT_LOST) answer = one;
    }
    if (answer == SCOUT_OK && opened > 0)
        answer = ceilings_lab_pass(x->s->lab, seconds * x->scale, block_s * fmin(x->scale, 1), lanes, opened, why);
    for (int k = 0; k < opened; k++) {
        const double launch_s = ceilings_lab_launch_s(x->s->lab, &lanes[k]);
        entry *e = list[at[k]];
        bench->close(bench->context, &lanes[k].subject);
        e->dead = !(launch_s > 0);
        if (e->dead) continue;
        rates[at[k]] = ceilings_search_flops(&e->p) / launch_s;
        x->best = fmax(x->best, rates[at[k]]);
    }
    free(lanes);
    return answer;
}

/* Scores of a few entries that have none, from blocks beside one that has. */
static scout_answer beside(field *x, entry *base, entry **list, int count, scout_why *why) {
    entry *all[GROUP + 1] = {base};
    double rates[GROUP + 1];
    memcpy(all + 1, list, (size_t)count * sizeof *list);
    const scout_answer answer = together(x, all, count + 1, screen_s, short_block_s, rates, why);
    for (int k = 0; k < count && rates[0] > 0; k++) list[k]->score = base->score * rates[k + 1] / rates[0];
    return answer;
}

/* Repeats the best shapes in alternating blocks, for longer; afterwards only these have scores. */
static scout_answer again(field *x, int most, double seconds, double block_s, scout_why *why) {
    entry *list[DOZEN];
    double rates[DOZEN];
    const int count = best_of(x, list, most);
    if (count < 2) return SCOUT_OK;
    const scout_answer answer = together(x, list, count, seconds, block_s, rates, why);
    for (int k = 0; k < x->count; k++) x->entries[k].score = 0;
    for (int k = 0; k < count; k++) {
        list[k]->score = rates[k];
        if (seconds >= few_s) list[k]->seen = fmax(list[k]->seen, rates[k]);
    }
    return answer;
}

/* ---- stages ---- */

/* The first shape that can be timed is what the others of the list are held against. */
static scout_answer begin(field *x, const ceilings_search *s, scout_why *why) {
    uint64_t seed = s->space.seed;
    *x = (field){.s = s, .start_s = ceilings_lab_now(s->lab), .scale = fmin(s->budget_s / usual_s, 2)};
    x->entries = calloc(ENTRIES, sizeof *x->entries);
    if (!x->entries) return scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    for (int k = 0; k < STARTS; k++) {
        const ceilings_search_point p = ceilings_points_try(&s->space, k, &seed);
        entry *e = add(x, &p);
        double rate = 0;
        const scout_answer answer = e ? together(x, &e, 1, screen_s, short_block_s, &rate, why) : SCOUT_OK;
        if (answer != SCOUT_OK) return answer;
        if (e && rate > 0) {
            e->score = 1;
            return SCOUT_OK;
        }
    }
    if (!why->text[0]) scout_say(why, SCOUT_NO, "shape", "no shape could be timed");
    return SCOUT_FAILED;
}

typedef struct source {
    ceilings_search_point (*next)(const ceilings_search_space *space, int index, uint64_t *seed);
    uint64_t seed;
    int index;
} source;

static ceilings_search_point random_point(const ceilings_search_space *space, int index, uint64_t *seed) {
    (void)index;
    return ceilings_points_random(space, seed);
}

/* A first look at what comes from there, until so many were seen. */
static scout_answer screen(field *x, source from, int limit, double until, scout_why *why) {
    const int each = x->s->lab->host ? HOST_GROUP : GROUP;
    scout_answer answer = SCOUT_OK;
    for (int looked = 0, idle = 0; answer == SCOUT_OK && looked < limit && idle < 100;) {
        entry *base = NULL, *list[GROUP];
        int count = 0;
        for (idle = 0; count < each && looked + count < limit && idle < 100; idle++) {
            const ceilings_search_point p = from.next(&x->s->space, from.index++, &from.seed);
            entry *e = add(x, &p);
            if (!e) continue;
            list[count++] = e;
            idle = 0;
        }
        if (best_of(x, &base, 1) == 0) break;
        if (count > 0) answer = beside(x, base, list, count, why);
        looked += count;
        if (looked / each % 4 == 0) tell(x, "first look");
        if (late(x, until)) break;
    }
    return answer;
}

/* Other layouts and variants of a shape, and its neighbours. */
static int relatives_of(const field *x, const entry *parent, bool variants, ceilings_search_point *out) {
    int count = 0;
    if (!variants) return ceilings_points_near(&x->s->space, &parent->p, out, RELATIVES);
    for (int32_t layout = 0; layout < x->s->bench.layouts; layout++)
        for (int32_t variant = 0; variant < x->s->bench.variants && count < RELATIVES; variant++) {
            out[count] = parent->p;
            out[count].layout = layout;
            out[count++].variant = variant;
        }
    return count;
}

static scout_answer near(field *x, bool variants, double until, scout_why *why) {
    const int each = x->s->lab->host ? HOST_GROUP : GROUP;
    entry *parents[PARENTS], *list[GROUP];
    const int some = best_of(x, parents, PARENTS);
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < some; k++) {
        ceilings_search_point points[RELATIVES];
        const int many = relatives_of(x, parents[k], variants, points);
        for (int at = 0; at < many && answer == SCOUT_OK && !late(x, until);) {
            int count = 0;
            for (; at < many && count < each; at++)
                if ((list[count] = add(x, &points[at]))) count++;
            if (count > 0) answer = beside(x, parents[k], list, count, why);
        }
    }
    return answer;
}

/* From a list of many to scores of the best few. */
static scout_answer narrow(field *x, bool relatives, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    if (!relatives || !late(x, dozen_before)) answer = again(x, DOZEN, dozen_s, short_block_s, why);
    if (answer == SCOUT_OK && relatives) answer = near(x, true, near_until, why);
    if (answer == SCOUT_OK && relatives) answer = near(x, false, near_until, why);
    if (answer == SCOUT_OK && (!relatives || !late(x, few_before))) answer = again(x, FEW, few_s, 0.5 * few_s, why);
    tell(x, "the best few");
    return answer;
}

/* ---- the figure ---- */

/* The last three beside each other, then the winner alone: its long run, which had no part in the choice. */
static scout_answer confirm(field *x, ceilings_search_best *out, scout_why *why) {
    const ceilings_search *s = x->s;
    entry *winner = NULL;
    timing_subject subject;
    scout_answer answer = again(x, FINALISTS, final_s, long_block_s, why);
    if (answer != SCOUT_OK) return answer;
    answer = SCOUT_NO; /* a plan may fail that was made before: then it is the next one's turn */
    while ((answer == SCOUT_NO || answer == SCOUT_FAILED) && best_of(x, &winner, 1) > 0) {
        answer = s->bench.open(s->bench.context, &winner->p, &subject, why);
        winner->dead = answer != SCOUT_OK;
    }
    if (!winner) return scout_say(why, SCOUT_FAILED, "error", "no shape could be confirmed");
    if (answer != SCOUT_OK) return answer;
    const bool host = s->lab->host || s->lab->regime.load == REGIME_BURST;
    if (!host) answer = ceilings_lab_long(s->lab, &subject, true, steered_load_s * x->scale, 2, &out->figure, why);
    if (answer == SCOUT_OK)
        answer = ceilings_lab_long(s->lab, &subject, true, (host ? alone_s : steered_alone_s) * x->scale, LONG_PASSES,
                                   &out->figure, why);
    s->bench.close(s->bench.context, &subject);
    if (answer != SCOUT_OK) return answer;
    const double rate = ceilings_search_flops(&winner->p) / out->figure.launch_s;
    const double apart = winner->seen > 0 ? fabs(winner->seen / rate - 1) : 0;
    out->point = winner->p;
    out->tflops = rate / 1e12;
    out->disturbed = apart > clock_falls || !(out->figure.rel_ci95 <= CEILINGS_LAB_WIDE);
    if (out->disturbed) out->figure.rel_ci95 = fmax(out->figure.rel_ci95, apart); /* it reaches to what was seen */
    return SCOUT_OK;
}

/* What was disturbed is confirmed once more: something else may have used the device meanwhile. */
static scout_answer confirm_twice(field *x, ceilings_search_best *out, scout_why *why) {
    ceilings_search_best other = {.disturbed = true};
    scout_answer answer = confirm(x, out, why);
    for (int k = 1; k < TIMES && answer == SCOUT_OK && out->disturbed && !ceilings_lab_late(x->s->lab); k++) {
        tell(x, "disturbed, confirmed once more");
        answer = confirm(x, &other, why);
        if (answer == SCOUT_OK && (!other.disturbed || other.tflops > out->tflops)) *out = other;
    }
    return answer;
}

static ceilings_search_point designed(const ceilings_search_space *space, int index, uint64_t *seed) {
    ceilings_search_point known[16];
    const int some = ceilings_points_known(space, known, 16);
    return index < some ? known[index] : ceilings_points_try(space, index - some + 1, seed);
}

scout_answer ceilings_search_run(const ceilings_search *s, ceilings_search_best *out, scout_why *why) {
    field x;
    memset(out, 0, sizeof *out);
    scout_answer answer = begin(&x, s, why);
    if (answer == SCOUT_OK)
        answer = screen(&x, (source){designed, s->space.seed, 0}, ENTRIES / 2,
                        s->lab->regime.load == REGIME_BURST ? burst_screen_until : screen_until, why);
    if (answer == SCOUT_OK) answer = narrow(&x, true, why);
    if (answer == SCOUT_OK) answer = confirm_twice(&x, out, why);
    out->tried = x.count;
    free(x.entries);
    return answer;
}

/* ---- the audit ---- */

/* Passes of `found` and the best random ones, list[0] first; the best one by all of them, against the first. */
static scout_answer duel(field *x, entry **list, int count, ceilings_search_verdict *out, scout_why *why) {
    double rates[FINALISTS + 1][DUELS], ratios[DUELS];
    scout_answer answer = SCOUT_OK;
    int best = 1;
    if (count < 2) return scout_say(why, SCOUT_FAILED, "error", "no random shape could be timed");
    for (int pass = 0; pass < DUELS && answer == SCOUT_OK; pass++) {
        double now[FINALISTS + 1];
        answer = together(x, list, count, 2 * duel_s, duel_s, now, why);
        for (int k = 0; k < count; k++) rates[k][pass] = now[k];
    }
    if (answer != SCOUT_OK) return answer;
    for (int k = 2; k < count; k++)
        if (estimate_of(rates[k], DUELS).x > estimate_of(rates[best], DUELS).x) best = k;
    for (int pass = 0; pass < DUELS; pass++)
        ratios[pass] = rates[best][pass] > 0 ? rates[0][pass] / rates[best][pass] : 0;
    const estimate ratio = estimate_of(ratios, DUELS);
    if (!(ratio.x > 0))
        return scout_say(why, SCOUT_FAILED, "error", "no random shape could be confirmed beside the one found");
    out->best = list[best]->p;
    out->best_tflops = estimate_of(rates[best], DUELS).x / 1e12;
    out->found_tflops = estimate_of(rates[0], DUELS).x / 1e12;
    out->ratio = ratio.x, out->rel_ci95 = fmin(ratio.ci, 1);
    return SCOUT_OK;
}

scout_answer ceilings_search_audit(const ceilings_search *s, const ceilings_search_point *found, int32_t count,
                                   ceilings_search_verdict *out, scout_why *why) {
    const source from = {random_point, s->space.seed ^ UINT64_C(0xa5a5a5a5), 0};
    entry subject = {.p = *found}, *list[FINALISTS + 1] = {&subject};
    field x;
    memset(out, 0, sizeof *out);
    scout_answer answer = begin(&x, s, why);
    const int others = x.count;
    if (answer == SCOUT_OK) answer = screen(&x, from, count, INFINITY, why);
    out->random_shapes = x.count - others;
    for (int k = 0; answer == SCOUT_OK && k < others; k++) x.entries[k].score = 0; /* that is none of the random ones */
    if (answer == SCOUT_OK) answer = narrow(&x, false, why);
    if (answer == SCOUT_OK) answer = duel(&x, list, 1 + best_of(&x, list + 1, FINALISTS), out, why);
    out->seconds = ceilings_lab_now(s->lab) - x.start_s;
    free(x.entries);
    return answer;
}
