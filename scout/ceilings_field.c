/* The shapes of a search and what is known of them. A shape is opened when it is first timed and closed when it is no
 * longer among the good ones. */
#include "scout/ceilings_field.h"

#include "scout/ceilings_lab.h"
#include "scout/ceilings_points.h"
#include "scout/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INTERVALS = 512 };
#define INTERVAL_S 3e-4   /* launches are bundled so that an interval takes at least so long */
#define SCREEN_S   4e-3   /* of work at the first look */
#define BURST_S    2.5e-3 /* the same in bursts, where rests cost more than work */
#define HOPELESS   0.5    /* a shape below this part of the best so far gets no more than one interval */
#define OUTLIER    1.5
#define BEAT_S     30.0

double ceilings_field_now(const ceilings_field *x) { return x->s->clock->now(x->s->clock->context); }
bool ceilings_field_late(const ceilings_field *x, double part) {
    return ceilings_field_now(x) - x->start > part * x->budget_s;
}
double ceilings_field_screen_s(const ceilings_field *x) { return x->rules.burst ? BURST_S : SCREEN_S; }

void ceilings_field_tell(const ceilings_field *x, const char *what, int done, int of) {
    char text[160];
    if (!x->s->say) return;
    snprintf(text, sizeof text, "%s: %s %d of %d, best %.4g TFLOP/s", x->s->name, what, done, of, x->best_rate / 1e12);
    x->s->say(x->s->say_context, text);
}

/* ---- entries ---- */

ceilings_entry *ceilings_field_add(ceilings_field *x, const ceilings_search_point *p) {
    if (x->count == CEILINGS_FIELD_ENTRIES) return NULL;
    for (int k = 0; k < x->count; k++)
        if (memcmp(&x->entries[k].p, p, sizeof *p) == 0) return NULL; /* looked at already */
    ceilings_entry *e = &x->entries[x->count++];
    memset(e, 0, sizeof *e);
    e->p = *p;
    return e;
}

void ceilings_field_close(ceilings_field *x, ceilings_entry *e) {
    if (e->open) x->s->bench.close(x->s->bench.context, &e->subject);
    e->open = false;
}

static int by_score(const void *a, const void *b) {
    const ceilings_entry *const *x = a, *const *y = b;
    return ((*x)->score < (*y)->score) - ((*x)->score > (*y)->score);
}

/* The best entries that live, best first; all others are closed. Returns how many there are, at most `most`. */
int ceilings_field_best(ceilings_field *x, ceilings_entry **out, int most) {
    ceilings_entry **all = calloc((size_t)x->count + 1, sizeof *all);
    int count = 0;
    if (!all) return 0;
    for (int k = 0; k < x->count; k++)
        if (!x->entries[k].dead && x->entries[k].score > 0) all[count++] = &x->entries[k];
    qsort(all, (size_t)count, sizeof *all, by_score);
    for (int k = 0; k < count && k < most; k++) out[k] = all[k];
    for (int k = most; k < count; k++)
        if (all[k] != &x->entries[0]) ceilings_field_close(x, all[k]); /* the probe will be wanted again */
    free(all);
    return count < most ? count : most;
}

/* ---- timing ---- */

/* What a failure of one shape means: the shape is out (true), or everything ends. */
static bool only_this_one(scout_answer answer) { return answer == SCOUT_NO || answer == SCOUT_FAILED; }

/* Whoever confirms later asks since when the device has been loaded. */
static scout_answer run(ceilings_field *x, ceilings_entry *e, uint32_t count, double *seconds, double expected_s,
                        scout_why *why) {
    const timing_clock *clock = x->s->clock;
    const double begun_s = ceilings_field_now(x);
    if (clock->beat) clock->beat(clock->context, BEAT_S + 20 * expected_s);
    if (begun_s - x->state.busy_until_s > x->rules.rest_s) x->state.loaded_since_s = begun_s;
    scout_answer answer = e->subject.run(e->subject.context, e->launches, count, seconds, why);
    x->state.busy_until_s = ceilings_field_now(x);
    return answer;
}

/* Opens it, where it is not, and times one interval. */
static scout_answer first_interval(ceilings_field *x, ceilings_entry *e, double work_s, double *first, scout_why *why) {
    const ceilings_search *s = x->s;
    scout_answer answer = SCOUT_OK;
    if (!e->open) {
        answer = s->bench.open(s->bench.context, &e->p, &e->subject, why);
        if (answer != SCOUT_OK) return answer;
        e->open = true;
        double guess = ceilings_search_flops(&e->p) / fmax(x->best_rate, s->space.flop_per_s);
        e->launches = (uint32_t)fmax(1, fmin(256, ceil(INTERVAL_S / guess)));
    }
    answer = run(x, e, 1, first, work_s, why);
    if (answer == SCOUT_OK && !(*first > 0))
        answer = scout_say(why, SCOUT_FAILED, "error", "the device's timer stands still");
    return answer;
}

/* Times an entry for about work_s: flop/s into *rate. from: which part of the intervals is thrown away. */
scout_answer ceilings_field_slot(ceilings_field *x, ceilings_entry *e, double work_s, double from, double *rate,
                                 scout_why *why) {
    const ceilings_search *s = x->s;
    double seconds[MAX_INTERVALS], first = 0, flops = ceilings_search_flops(&e->p);
    *rate = 0;
    scout_answer answer = first_interval(x, e, work_s, &first, why);
    if (answer != SCOUT_OK) return answer;
    *rate = flops * e->launches / first;
    if (x->rules.burst) work_s = fmin(work_s, x->rules.burst_s - first);
    uint32_t count = (uint32_t)fmax(1, fmin(MAX_INTERVALS, work_s / first));
    if (*rate > HOPELESS * x->best_rate) {
        answer = run(x, e, count, seconds, work_s, why);
        if (answer != SCOUT_OK) return answer;
        uint32_t skip = (uint32_t)(from * count);
        *rate = flops * e->launches / stats_median(seconds + skip, count - skip);
        first += first * count;
    }
    if (*rate > x->best_rate) x->best_rate = *rate;
    ceilings_lab_rest(s->clock, &x->rules, first);
    return SCOUT_OK;
}

/* Intervals of more than so many medians are somebody else's; how a steered clock hops is far within it. */
static double work_seconds(double *seconds, uint32_t count) {
    const double most = OUTLIER * stats_median(seconds, count);
    double sum = 0;
    for (uint32_t k = 0; k < count; k++) sum += fmin(seconds[k], most);
    return sum;
}

scout_answer ceilings_field_long(ceilings_field *x, ceilings_entry *e, double work_s, double drop_s, double *rate,
                                 scout_why *why) {
    double seconds[MAX_INTERVALS], done_s = 0, kept_s = 0, kept = 0, first = 0;
    *rate = 0;
    scout_answer answer = first_interval(x, e, work_s, &first, why);
    for (done_s = first; answer == SCOUT_OK && done_s < work_s;) {
        const bool keeps = done_s >= drop_s;
        const double left_s = (keeps ? work_s : drop_s) - done_s;
        const uint32_t count = (uint32_t)fmax(1, fmin(MAX_INTERVALS, ceil(left_s / first)));
        answer = run(x, e, count, seconds, left_s, why);
        if (answer != SCOUT_OK) break;
        const double some_s = work_seconds(seconds, count);
        if (!(some_s > 0)) return scout_say(why, SCOUT_FAILED, "error", "the device's timer stands still");
        done_s += some_s;
        if (!keeps) continue;
        kept_s += some_s;
        kept += count;
    }
    if (answer != SCOUT_OK) return answer;
    if (!(kept > 0)) kept = 1, kept_s = first; /* it is longer than a slot */
    *rate = ceilings_search_flops(&e->p) * e->launches * kept / kept_s;
    if (*rate > x->best_rate) x->best_rate = *rate;
    return SCOUT_OK;
}

scout_answer ceilings_field_spare(ceilings_field *x, ceilings_entry *e, scout_answer answer) {
    if (!only_this_one(answer)) return answer;
    ceilings_field_close(x, e);
    e->dead = true;
    e->score = 0;
    return SCOUT_OK;
}

/* As slot, but a shape that cannot be timed is only marked. */
scout_answer ceilings_field_try(ceilings_field *x, ceilings_entry *e, double work_s, double from, double *rate,
                                scout_why *why) {
    return ceilings_field_spare(x, e, ceilings_field_slot(x, e, work_s, from, rate, why));
}

/* The probe is entry 0. Its figure moves slowly: the median of its last few. */
scout_answer ceilings_field_probe(ceilings_field *x, scout_why *why) {
    double rate;
    scout_answer answer = ceilings_field_slot(x, &x->entries[0], ceilings_field_screen_s(x), 0, &rate, why);
    if (answer != SCOUT_OK) return answer;
    x->probe[x->probes++ % CEILINGS_FIELD_PROBES] = rate;
    x->probe_now =
        stats_median(x->probe, (size_t)(x->probes < CEILINGS_FIELD_PROBES ? x->probes : CEILINGS_FIELD_PROBES));
    return SCOUT_OK;
}

scout_answer ceilings_field_begin(ceilings_field *x, const ceilings_search *s, scout_why *why) {
    memset(x, 0, sizeof *x);
    x->s = s;
    x->start = ceilings_field_now(x);
    x->budget_s = s->budget_s;
    x->rules = s->rules;
    x->state = (timing_state){.loaded_since_s = x->start, .busy_until_s = -INFINITY};
    x->rules.state = &x->state;
    x->entries = calloc(CEILINGS_FIELD_ENTRIES, sizeof *x->entries);
    if (!x->entries) return scout_say(why, SCOUT_NO_MEMORY, "memory", "no memory on the host for the shape search");
    ceilings_search_point cube = ceilings_points_cube(&s->space);
    ceilings_field_add(x, &cube);
    return ceilings_field_probe(x, why);
}

void ceilings_field_finish(ceilings_field *x) {
    for (int k = 0; x->entries && k < x->count; k++) ceilings_field_close(x, &x->entries[k]);
    free(x->entries);
}
