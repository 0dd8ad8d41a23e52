/* First half of a measurement: prepare and verify each variant, bring the device to rest, race; candidates of the last
 * resort only where the others stay away from the ceiling. */
#include "scout/measure_internal.h"

#include "common/verdict.h"
#include "scout/chosen.h"

#include <math.h>
#include <string.h>

static const double prepare_share = 0.5; /* of the budget: what is not prepared by then is skipped */
static const double settle_share = 0.1;  /* of the budget, over which a host's clock is looked at */
static const double least_timing = 0.3;  /* of the budget, for racing and confirming, however long the rest took */

/* The least that a baseline takes: it is checked, looked at, timed in two rounds, and checked again. It is there
 * whatever the budget, unless that would overrun it by minutes. */
static const double least_launches = 6, overrun = 2, overrun_s = 5;

/* A row's plan, which says who it is before it runs. */
static scout_answer row_run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    measure_row *row = context;
    const double each = row->launch_s > 0 ? row->launch_s : row->owner->patience_s;
    const double all = row->launch_s > 0 ? 20 + 20 * each * launches * batches : 20 + each;
    measure_tell(row->owner, row, row->candidate->name, row->variant, "time", fmin(all, 3600));
    const timing_subject subject = bench_plan_subject(row->plan);
    const scout_answer answer = subject.run(subject.context, launches, batches, seconds, why);
    if (answer == SCOUT_OK && launches > 0) row->launch_s = seconds[0] / launches;
    return answer;
}

static uint32_t row_whole(void *context) { return bench_plan_whole(((const measure_row *)context)->plan); }

timing_subject measure_race_subject(measure_row *row) {
    return (timing_subject){.context = row, .run = row_run, .whole = row_whole};
}

timing_rules measure_race_rules(measurement *m) {
    const double budget = m->request->budget_s, left = budget - measure_elapsed(m);
    const double least = fmax(m->request->timing_s, least_timing * budget);
    timing_rules rules = timing_rules_of(&m->request->regime, fmax(left, least));
    rules.state = &m->state;
    /* A host shares its cores and caches with whatever else runs, and seldom keeps still to half a percent. What it is
     * known to at the end counts while it is less than the margin of a winner; the report has the interval. */
    if (m->api->has_graphs) return rules;
    rules.last = rules.acceptable;
    /* Nor does its clock ever rest where others use it: what is waited for that is missing for the blocks. */
    rules.window_s = fmin(rules.window_s, settle_share * budget);
    rules.settle_s = fmin(rules.settle_s, 2 * settle_share * budget);
    return rules;
}

static bool is_last(const measure_row *row) { return (row->candidate->flags & SCOUT_LAST) != 0; }

static void find_baseline(measurement *m) {
    for (int k = 0; k < m->row_count && m->baseline < 0; k++) {
        const measure_row *row = &m->rows[k];
        if (row->plan && row->first && measure_rows_is_baseline(m, row->candidate)) m->baseline = k;
    }
}

/* What the weight and the tensors took, and a race that was run before, are not the candidates' fault. */
static double prepare_until(const measurement *m) {
    const double filled_s = m->made_s + m->refresh_s, budget_s = m->request->budget_s;
    return filled_s + m->raced_s + prepare_share * fmax(budget_s - filled_s, 0.5 * budget_s);
}

static bool waits(const measure_row *row, bool last) { return !row->decided && !row->plan && is_last(row) == last; }

/* When the variants of row k's candidate have had their share of the time that is left: as much as each other candidate
 * that waits behind it, so that a library whose plans take long does not keep the others out. */
static double share_until(const measurement *m, int k, bool last) {
    const double now = measure_elapsed(m), until = prepare_until(m);
    int waiting = 1;
    for (int other = k + 1; other < m->row_count; other++)
        if (m->rows[other].candidate != m->rows[other - 1].candidate && waits(&m->rows[other], last)) waiting++;
    return until > now ? now + (until - now) / waiting : until;
}

/* A default whose results are too far off is none: the library's next choice takes its place, if there is one in the
 * same form, but for those that an earlier attempt has left out. Its choice is the first parameter, a form the others.
 */
static void pass_on(measurement *m, int k) {
    measure_row *row = &m->rows[k], *next = NULL;
    if (!row->first || (row->status != ROW_WRONG && strcmp(row->why.code, "precision") != 0)) return;
    for (int other = k + 1; other < m->row_count && m->rows[other].candidate == row->candidate; other++) {
        measure_row *const r = &m->rows[other];
        const bool same = memcmp(&r->values[1], &row->values[1], sizeof row->values - sizeof row->values[0]) == 0;
        if (r->decided || (next && !same)) continue;
        next = r;
        if (same) break;
    }
    if (!next) return;
    row->first = false;
    next->first = true;
}

static void prepare_all(measurement *m, bool last) {
    const scout_candidate *of = NULL;
    double share_s = 0;
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        measure_row *row = &m->rows[k];
        if (!waits(row, last)) continue;
        const bool begins = row->candidate != of;
        if (begins) share_s = share_until(m, k, last);
        of = row->candidate;
        const bool due = row->first && measure_rows_is_baseline(m, row->candidate);
        if (!due && measure_elapsed(m) > (begins ? prepare_until(m) : share_s)) {
            row->decided = true;
            row->status = ROW_SKIPPED;
            scout_say(&row->why, SCOUT_NO, "budget",
                      "its candidate's share for preparing and checking was used up after %.1f s of %.1f",
                      measure_elapsed(m), m->request->budget_s);
            continue;
        }
        if (!measure_rows_prepare(row)) measure_stop(m, SCOUT_LOST, &row->why);
        pass_on(m, k);
    }
    find_baseline(m);
    measure_spend(m, MEASURE_PREPARING);
}

static void settle(measurement *m) {
    measure_row *load = NULL;
    for (int k = 0; k < m->row_count && !load; k++)
        if (m->rows[k].plan) load = &m->rows[k];
    if (m->baseline >= 0) load = &m->rows[m->baseline];
    if (!load) return;
    const timing_rules rules = measure_race_rules(m);
    const timing_subject subject = measure_race_subject(load);
    m->settled = timing_settle(&m->clock, &rules, &subject, &m->settle_why);
    measure_spend(m, MEASURE_SETTLING);
}

static void finish_race(measurement *m, const timing_racer *racer, measure_row *row) {
    if (racer->answer == SCOUT_LOST) {
        measure_stop(m, SCOUT_LOST, &racer->why);
        return;
    }
    if (racer->rounds > 0) {
        row->rough_s = racer->median_s;
        row->rough_ci = racer->rel_ci95;
    }
    if (racer->answer != SCOUT_OK) {
        measure_rows_decide(row, racer->answer, &racer->why);
    } else if (!racer->alive && !racer->keep) {
        row->decided = true;
        row->status = ROW_SKIPPED;
        row->why = racer->why;
        if (!reason_known(row->why.code)) scout_say(&row->why, SCOUT_NO, "outraced", "behind the best in the race");
    }
    if (!row->decided) return;
    bench_plan_free(row->plan);
    row->plan = NULL;
}

/* Candidates that were asked for race among themselves: the first is to be known, however far behind it is. So is what
 * does several operations at once, and races without them. */
static bool races(const measurement *m, int k) {
    const char *only = m->request->only;
    if (!m->rows[k].plan || m->rows[k].candidate == m->parts) return false;
    return k != m->baseline || chosen_is(only, m->rows[k].candidate->name);
}

static void race(measurement *m) {
    const double start_s = measure_elapsed(m);
    timing_racer *racers = arena_array(&m->arena, timing_racer, m->row_count + 1);
    measure_row **rows = arena_array(&m->arena, measure_row *, m->row_count + 1);
    int count = 0;
    for (int k = 0; k < m->row_count; k++) {
        if (!races(m, k)) continue;
        rows[count] = &m->rows[k];
        racers[count++] = (timing_racer){.subject = measure_race_subject(&m->rows[k]), .keep = k == m->baseline};
    }
    const timing_rules rules = measure_race_rules(m);
    timing_race(&m->clock, &rules, racers, count, MEASURE_FINALISTS);
    for (int k = 0; k < count; k++) finish_race(m, &racers[k], rows[k]);
    m->raced_s += measure_elapsed(m) - start_s;
    measure_spend(m, MEASURE_RACING);
}

/* Whether what was seen in the race is so near to the ceiling that candidates of the last resort need not run. A
 * ceiling that decides no verdict leaves nobody out either. */
static bool near_ceiling(const measurement *m) {
    double best = INFINITY;
    if (m->ceiling.rel_ci95 > verdict_defaults.ceiling_ci) return false;
    for (int k = 0; k < m->row_count; k++)
        if (m->rows[k].rough_s > 0) best = fmin(best, m->rows[k].rough_s);
    return !m->request->exhaustive && isfinite(best) && m->ceiling.seconds >= m->request->early_exit * best;
}

static void skip_last(measurement *m) {
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        if (row->decided || row->plan || !is_last(row)) continue;
        row->decided = true;
        row->status = ROW_SKIPPED;
        scout_say(&row->why, SCOUT_NO, "early_exit", "the best so far is within %.3g %% of the ceiling",
                  100 * (1 - m->request->early_exit));
    }
}

static bool any_waiting(const measurement *m) {
    for (int k = 0; k < m->row_count; k++)
        if (!m->rows[k].decided && !m->rows[k].plan && is_last(&m->rows[k])) return true;
    return false;
}

static bool any_ready(const measurement *m) {
    for (int k = 0; k < m->row_count; k++)
        if (m->rows[k].plan) return true;
    return false;
}

/* Where somebody waits for a budget's end, an operation of whose launches it has no room for six is left out. */
static bool leave_out(measurement *m, double launch_s, const char *how) {
    const double budget_s = m->request->budget_s;
    if (m->request->timing_s > 0 || !(least_launches * launch_s > overrun * budget_s + overrun_s)) return false;
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        if (row->decided) continue;
        bench_plan_free(row->plan);
        row->plan = NULL;
        row->decided = true;
        row->status = ROW_SKIPPED;
        scout_say(&row->why, SCOUT_NO, "budget", "a launch takes %.3g s%s: no time for %d of them in %.1f s", launch_s,
                  how, (int)least_launches, budget_s);
    }
    return true;
}

void measure_race_run(measurement *m) {
    if (leave_out(m, m->ceiling.seconds, " at the ceiling alone")) return;
    prepare_all(m, false);
    if (m->request->exhaustive) prepare_all(m, true);
    if (measure_stopped(m)) return;
    if (any_ready(m)) {
        settle(m);
        if (m->baseline >= 0 && leave_out(m, m->rows[m->baseline].launch_s, "")) return;
        race(m);
    }
    if (measure_stopped(m) || !any_waiting(m)) return;
    if (near_ceiling(m)) {
        skip_last(m);
        return;
    }
    const bool settled = any_ready(m);
    prepare_all(m, true);
    if (measure_stopped(m) || !any_ready(m)) return;
    if (!settled) settle(m);
    race(m);
}
