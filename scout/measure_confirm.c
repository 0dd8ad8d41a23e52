/* Second half of a measurement: the finalists beside the baseline and a ceiling probe, verified again on fresh inputs,
 * and the choice of the best. */
#include "scout/measure_internal.h"

#include <math.h>
#include <string.h>

static const double refresh_share = 0.1; /* of the budget: new inputs are given up beyond */
static const double brief_s = 4; /* a host with less is better off with more blocks of one rival than with two */

/* New inputs beside those of the race. */
static scout_answer fresh(void *context, scout_why *why) {
    measurement *m = context;
    if (m->refresh_s > refresh_share * m->request->budget_s) return SCOUT_OK; /* they are new at the end anyway */
    measure_tell(m, &m->refresh_s, NULL, NULL, "fill", 120 + 50 * m->refresh_s);
    const double start = m->api->now(m->device);
    const scout_answer answer = bench_set_refresh(m->set, false, why);
    m->refresh_s = m->api->now(m->device) - start;
    return answer;
}

/* Whether a row may turn out faster than the baseline by the margin, for all that the race says. */
static bool might_win(const measurement *m, const measure_row *row, double margin) {
    if (m->baseline < 0) return true;
    const measure_row *base = &m->rows[m->baseline];
    if (!(row->rough_s > 0) || !(base->rough_s > 0)) return true; /* the race did not come to it */
    return !(row->rough_s * (1 - row->rough_ci) >= (1 - margin) * base->rough_s * (1 + base->rough_ci));
}

/* Next by its place in the race; those that it did not come to are last. */
static bool before(const measure_row *a, const measure_row *b) {
    return (a->rough_s > 0 ? a->rough_s : INFINITY) < (b->rough_s > 0 ? b->rough_s : INFINITY);
}

/* Whether the race leaves open which of the two is faster; of two variants of one candidate, by as much as would make
 * the one replace the other: seconds of confirming are too dear for less. */
static bool beside(const measure_row *row, const measure_row *first, double margin) {
    if (!(row->rough_s > 0) || !(first->rough_s > 0)) return true;
    const double least = row->candidate == first->candidate ? 1 - margin : 1;
    return row->rough_s * (1 - row->rough_ci) <= least * first->rough_s * (1 + first->rough_ci);
}

/* By how much the first of the others has to lead in order to be confirmed. Of another candidate the ratio is worth
 * knowing even if it is none; how near another variant of the same one comes helps nobody. */
static double lead_wanted(const measurement *m, const measure_row *first, double margin) {
    return m->baseline >= 0 && first->candidate == m->rows[m->baseline].candidate ? margin : 0;
}

/* Baseline first, then the others by their place in the race: one unless it is slower than the baseline, so that its
 * ratio is known, more only as long as they might win, over the baseline and over that one. */
static int list_finalists(measurement *m, measure_row **finalists) {
    const double margin = timing_rules_of(&m->request->regime, m->request->budget_s).margin;
    int count = 0;
    if (m->baseline >= 0) finalists[count++] = &m->rows[m->baseline];
    const int first = count;
    const int places = measure_probe_among(m) && m->request->budget_s < brief_s ? 1 : MEASURE_FINALISTS;
    for (int place = 0; place < places; place++) {
        measure_row *next = NULL;
        for (int k = 0; k < m->row_count; k++) {
            measure_row *row = &m->rows[k];
            bool taken = !row->plan;
            for (int j = 0; j < count && !taken; j++) taken = finalists[j] == row;
            if (!taken && (!next || before(row, next))) next = row;
        }
        if (!next || !might_win(m, next, count == first ? lead_wanted(m, next, margin) : margin)) continue;
        if (count == first || beside(next, finalists[first], margin)) finalists[count++] = next;
    }
    return count;
}

static void finish_row(measurement *m, measure_row *row, const timing_result *result, double ratio, double ratio_ci) {
    row->confirmed = true;
    row->result = *result;
    row->ratio = m->baseline >= 0 ? ratio : NAN;
    row->ratio_ci = ratio_ci;
    row->decided = true;
    if (result->answer != SCOUT_OK) {
        if (result->answer == SCOUT_LOST) measure_stop(m, SCOUT_LOST, &result->why);
        row->confirmed = false;
        if (strcmp(result->why.code, "budget") == 0 || strcmp(result->why.code, "outraced") == 0) {
            row->status = ROW_SKIPPED;
            row->why = result->why;
        } else {
            measure_rows_decide(row, result->answer, &result->why);
        }
    } else if (!result->settled) {
        row->status = ROW_UNSTABLE;
        row->why = result->why;
        if (!reason_known(row->why.code)) scout_say(&row->why, SCOUT_NO, "interval", "it would not settle");
    } else {
        row->status = ROW_OK;
    }
}

/* Where the ceiling is that of the same blocks, an efficiency is known as well as their ratio is. */
static void judge_probe(measurement *m, const timing_result *result, double ratio, double ratio_ci) {
    const timing_rules rules = timing_rules_of(&m->request->regime, m->request->budget_s);
    measure_row *baseline = m->baseline >= 0 ? &m->rows[m->baseline] : NULL;
    m->probe.result = *result;
    m->probe.ratio = ratio;
    m->probe.ratio_ci = ratio_ci;
    if (!measure_probe_among(m) || !baseline || baseline->status != ROW_OK || result->answer != SCOUT_OK) return;
    const double efficiency = fmin(ratio * measure_probe_scale(m), 1), half = efficiency * ratio_ci;
    if (!(half > rules.among_last)) return;
    baseline->status = ROW_UNSTABLE;
    scout_say(&baseline->why, SCOUT_NO, "interval",
              "about %.4g us, but its ceiling beside it leaves %.1f +- %.1f %% of efficiency; +- %.1f were wanted",
              1e6 * baseline->result.median_s, 100 * efficiency, 100 * half, 100 * rules.among_last);
}

static void confirm(measurement *m, measure_row **finalists, int count) {
    timing_subject subjects[MEASURE_SUBJECTS];
    timing_result results[MEASURE_SUBJECTS];
    double ratios[MEASURE_SUBJECTS], ratio_ci[MEASURE_SUBJECTS];
    memset(results, 0, sizeof results);
    for (int k = 0; k < MEASURE_SUBJECTS; k++) ratios[k] = ratio_ci[k] = NAN;
    for (int k = 0; k < count; k++) subjects[k] = measure_race_subject(finalists[k]);
    measure_probe_open(m);
    const int all = count + m->probe.ready;
    if (m->probe.ready) subjects[count] = measure_probe_subject(&m->probe);
    timing_rules rules = measure_race_rules(m);
    rules.race_share = 0;               /* what is left is for confirming alone */
    rules.brief_from = (uint32_t)count; /* the probe is no row of a report */
    rules.among = measure_probe_among(m);
    if (rules.among) timing_rules_hasten(&rules, all);
    if (rules.among && m->probe.ready) rules.among_scale = measure_probe_scale(m);
    rules.contest = m->baseline >= 0;
    rules.steered_rounds = 2;
    timing_confirm(&m->clock, &rules, subjects, all, fresh, m, results, ratios, ratio_ci);
    for (int k = 0; k < count; k++) finish_row(m, finalists[k], &results[k], ratios[k], ratio_ci[k]);
    if (m->probe.ready) judge_probe(m, &results[count], ratios[count], ratio_ci[count]);
    if (!measure_stopped(m)) measure_probe_close(&m->probe);
}

/* Once more on inputs that no one has seen; a wrong result takes the time away. */
static void verify_again(measurement *m, measure_row **finalists, int count) {
    scout_why why = {.code = ""};
    m->at_it = NULL;
    measure_tell(m, m->set, NULL, NULL, "reference", 120 + 50 * m->refresh_s + 10 * m->patience_s);
    scout_answer answer = bench_set_refresh(m->set, true, &why);
    if (answer == SCOUT_OK) answer = bench_need_check(m->set, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    for (int k = 0; k < count && !measure_stopped(m); k++) {
        measure_row *row = finalists[k];
        if (row->status != ROW_OK && row->status != ROW_UNSTABLE) continue;
        measure_tell_row(row, "verify", m->patience_s);
        bench_verdict verdict = bench_plan_verify(row->plan);
        if (answer != SCOUT_OK) verdict = (bench_verdict){.status = ROW_ERROR, .why = why};
        if (verdict.status == ROW_OK) {
            row->worst = fmax(row->worst, verdict.worst);
        } else {
            row->status = verdict.status;
            row->why = verdict.why;
            row->confirmed = false;
        }
        if (verdict.lost) measure_stop(m, SCOUT_LOST, &verdict.why);
    }
}

/* The baseline, unless another one wins by more than the margin and more than its interval. */
static void choose(measurement *m) {
    const double margin = timing_rules_of(&m->request->regime, m->request->budget_s).margin;
    const bool baseline = m->baseline >= 0 && m->rows[m->baseline].status == ROW_OK;
    double least = INFINITY;
    m->best = baseline ? m->baseline : -1;
    for (int k = 0; k < m->row_count; k++) {
        const measure_row *row = &m->rows[k];
        if (row->status != ROW_OK || !row->confirmed || k == m->baseline) continue;
        const double rank = baseline ? row->ratio : row->result.median_s;
        const bool wins = !baseline || (1 - row->ratio > margin && 1 - row->ratio > row->ratio * row->ratio_ci);
        if (!wins || !(rank < least)) continue;
        least = rank;
        m->best = k;
    }
}

static void say_outraced(const measurement *m, measure_row *row) {
    const double base_s = m->baseline >= 0 ? m->rows[m->baseline].rough_s : 0, by = 100 * (row->rough_s / base_s - 1);
    const double margin = timing_rules_of(&m->request->regime, m->request->budget_s).margin;
    if (row->rough_s > 0 && base_s > 0)
        scout_say(&row->why, SCOUT_NO, "outraced", "%.1f %% %s than the baseline in the race, %s", fabs(by),
                  by > 0 ? "slower" : "faster",
                  by < -100 * margin ? "not likely to be the fastest" : "not likely to win by the margin");
    else
        scout_say(&row->why, SCOUT_NO, "outraced", "not the first in the race, nor likely to beat the baseline");
}

void measure_confirm_run(measurement *m) {
    measure_row *finalists[MEASURE_SUBJECTS];
    const int count = measure_stopped(m) ? 0 : list_finalists(m, finalists);
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        measure_row *row = &m->rows[k];
        bool stays = false;
        for (int j = 0; j < count; j++) stays = stays || finalists[j] == row;
        if (stays || !row->plan) continue;
        row->decided = true;
        row->status = ROW_SKIPPED;
        say_outraced(m, row);
        bench_plan_free(row->plan);
        row->plan = NULL;
    }
    if (count == 0) return;
    confirm(m, finalists, count);
    measure_spend(m, MEASURE_CONFIRMING);
    if (!measure_stopped(m)) verify_again(m, finalists, count);
    measure_spend(m, MEASURE_CHECKING);
    choose(m);
}
