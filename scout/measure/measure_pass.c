/* One pass over an operation. The first: prepare and verify each variant, let all of them race, time what is left in
 * alternating blocks beside the yardstick, verify on inputs that no candidate has seen. Later ones time those that are
 * still of interest. Candidates of the last resort run only where the others stay away from the ceiling. */
#include "scout/measure/measure_internal.h"

#include "common/verdict.h"
#include "scout/terms/variants.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <string.h>

static const double prepare_share = 0.7; /* of the budget: what is not prepared by then is skipped */
/* An own kernel that is prepared and checked in no more always has a turn, where the operation is small. */
static const double brief_s = 0.03, brief_flops = 2e8, brief_bytes = 2e7;
static const double hurry_s = 0.06;      /* with less for a pass, a figure is all that there is time for */
static const double dear_check_s = 0.05; /* later passes leave out a check that takes longer */

static lanes_learned learned; /* of the one device that this process measures */

/* The least that a baseline takes: a check, a look, a round. It is measured whatever the budget, unless that would
 * overrun it by minutes. */
static const double least_launches = 4, overrun = 2, overrun_s = 5;

/* ---- subjects ---- */

/* A row's plan, which says what it is before it runs. */
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

static scout_answer row_record(void *context, uint32_t launches, scout_sequence **out, scout_why *why) {
    return bench_plan_recorded(((const measure_row *)context)->plan, launches, out, why);
}

timing_subject measure_pass_subject(measure_row *row) {
    return (timing_subject){.context = row, .run = row_run, .whole = row_whole, .record = row_record};
}

static bool is_last(const measure_row *row) { return (row->candidate->flags & SCOUT_LAST) != 0; }
static bool is_own(const measure_row *row) { return (row->candidate->flags & SCOUT_OWN) != 0; }

/* ---- preparing ---- */

static void find_baseline(measurement *m) {
    m->baseline = -1;
    for (int k = 0; k < m->row_count && m->baseline < 0; k++) {
        const measure_row *row = &m->rows[k];
        if (row->plan && row->first && measure_rows_is_baseline(m, row->candidate)) m->baseline = k;
    }
}

/* Seconds that preparing has taken in this pass, and may take. */
static double prepared_s(const measurement *m) {
    return m->spent_s[MEASURE_PREPARING] + measure_elapsed(m) - m->spent_until_s;
}
static double prepare_until(const measurement *m) { return prepare_share * m->pass.budget_s + m->pass.start_s; }

/* One of the last resort that was made ahead takes part at once: all that is dear of it is done. */
static bool waits(const measure_row *row, bool last) {
    return !row->decided && !row->plan && (is_last(row) && !row->kept.plan) == last;
}

/* When the variants of row k's candidate have had their share of the time that is left: as much as each other candidate
 * that waits behind it, so that a library whose plans take long does not keep the others out. */
static double share_until(const measurement *m, int k, bool last) {
    const double now = prepared_s(m), until = prepare_until(m);
    int waiting = 1;
    for (int other = k + 1; other < m->row_count; other++)
        if (m->rows[other].candidate != m->rows[other - 1].candidate && waits(&m->rows[other], last) &&
            !m->rows[other].kept.plan)
            waiting++;
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

static bool prepare_checked(measure_row *row) { return measure_rows_prepare(row, true); }

static bool is_due(const measure_row *row) {
    return row->first && measure_rows_is_baseline(row->owner, row->candidate);
}

/* The right result, which every check needs, may have taken all the time there was: what takes next to none beside that
 * is not left out for it. */
static bool is_brief(const measure_row *row) {
    const measurement *m = row->owner;
    const bool small = m->op.flops <= brief_flops && m->op.bytes_read + m->op.bytes_written <= brief_bytes;
    return is_own(row) && small && m->pass.budget_s >= hurry_s && !measure_rows_dear(row->candidate, brief_s);
}

/* The baseline and own kernels, or all others: how long a library takes differs between runs, and is to leave out no
 * kernel that is ready in no time. */
static void prepare_some(measurement *m, bool last, bool own, bool (*prepare)(measure_row *row)) {
    const scout_candidate *of = NULL, *skipped = NULL, *met = NULL;
    double share_s = 0;
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        measure_row *row = &m->rows[k];
        const bool due = is_due(row);
        if (due && !own) met = row->candidate;
        if (!waits(row, last) || (is_own(row) || due) != own) continue;
        const bool begins = row->candidate != of && row->candidate != met;
        if (row->candidate != of) share_s = share_until(m, k, last);
        of = row->candidate;
        const bool made = row->kept.plan != NULL; /* ahead */
        const bool dear = begins && !due && !made && !m->parts && !m->request->exhaustive && !m->request->only &&
                          measure_rows_dear(row->candidate, prepare_until(m));
        if (dear) skipped = of;
        const bool late = prepared_s(m) > (begins || made ? prepare_until(m) : share_s);
        if ((late && !due && !(begins && is_brief(row))) || skipped == of) {
            measure_rows_skip(row, "budget",
                              "the operation's share of time for preparing and checking was used up after %.2f s; "
                              "--exhaustive tries it",
                              prepared_s(m));
            continue;
        }
        const double before_s = prepared_s(m);
        if (!prepare(row)) measure_stop(m, SCOUT_LOST, &row->why);
        if (begins && !made) measure_rows_took(row->candidate, prepared_s(m) - before_s);
        row->chosen = row->plan != NULL;
        pass_on(m, k);
    }
}

static void prepare_rows(measurement *m, bool last, bool (*prepare)(measure_row *row)) {
    prepare_some(m, last, true, prepare);
    prepare_some(m, last, false, prepare);
    measure_spend(m, MEASURE_PREPARING);
}

static void prepare_all(measurement *m, bool last) {
    prepare_rows(m, last, prepare_checked);
    find_baseline(m);
}

void measure_pass_prepare(measurement *m) {
    prepare_rows(m, false, measure_rows_prepare_ahead);
    if (!measure_stopped(m)) prepare_rows(m, true, measure_rows_prepare_ahead);
}

static bool is_named(const measure_row *row, const measure_choice *choice) {
    return strcmp(row->candidate->name, choice->name) == 0 && strcmp(row->variant, choice->variant) == 0;
}

/* The first one that is named is the baseline. */
static void prepare_chosen(measurement *m) {
    m->baseline = -1;
    for (int c = 0; c < m->pass.row_count; c++)
        for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
            measure_row *row = &m->rows[k];
            if (row->chosen || row->decided || !is_named(row, &m->pass.rows[c])) continue;
            row->chosen = true;
            if (!measure_rows_prepare(row, !row->compared)) measure_stop(m, SCOUT_LOST, &row->why);
            if (c == 0 && row->plan) m->baseline = k;
        }
    measure_spend(m, MEASURE_PREPARING);
}

/* ---- timing ---- */

/* Where the library has no such kernel, the best own one is what others are held against, not the first. */
static bool baseline_is_own(const measurement *m) {
    return m->baseline >= 0 && is_own(&m->rows[m->baseline]) && m->pass.number == 1 && !m->request->before;
}

/* A plan whose launch failed is of no further use. */
static void finish_row(measurement *m, measure_row *row, const lanes_lane *lane) {
    row->lane = *lane;
    row->timed = lane->answer == SCOUT_OK && lane->time_s > 0;
    if (lane->answer == SCOUT_LOST) measure_stop(m, SCOUT_LOST, &lane->why);
    if (lane->answer == SCOUT_OK)
        row->status = ROW_OK;
    else
        measure_rows_decide(row, lane->answer, &lane->why);
    if (!row->decided || measure_stopped(m)) return;
    bench_plan_free(row->plan);
    row->plan = NULL;
}

/* The clock that an operation's own load holds is looked for where it is worth that, a hundredth of the model, and
 * where power is capped: there it lies far below what the first blocks see. */
static void ask_to_hold(const measurement *m, lanes_rules *rules) {
    static const double worth_s = 0.15; /* of a first pass's budget */
    const bool sustained = m->request->regime.load != REGIME_BURST, first = m->pass.number == 1;
    rules->hold_s = sustained && !(first && m->parts) ? m->pass.hold_s : 0;
    rules->hold_low = first && m->pass.budget_s < worth_s;
    rules->clock_fall = m->request->ceilings ? m->request->ceilings->clock_fall : 0;
    rules->believe = first;
    rules->learned = &learned;
}

/* It takes as long as a later pass itself, and a driver renews it every tenth of a second: less of a load is not seen
 * in it. What a device counts of its clock is known with each block. */
static void read_telemetry(measurement *m, const lanes_lane *lane) {
    static const double renewed_s = 0.1, often_s = 1;
    static double last_s = -INFINITY;
    const double unknown = (double)NAN, now_s = m->api->now(m->device);
    if (!(lane->clock_hz > 0) || learned.hold_s >= renewed_s || now_s >= last_s + often_s) {
        last_s = now_s;
        m->clock.telemetry(m->clock.context, &m->telemetry);
        return;
    }
    m->telemetry = (scout_telemetry){.size = sizeof m->telemetry,
                                     .clock_mhz = unknown,
                                     .memory_clock_mhz = unknown,
                                     .power_w = unknown,
                                     .temperature_c = unknown,
                                     .most_clock_mhz = unknown};
}

/* Those that were asked for by name, beside each other: the number of its candidate's first row. Else, where the
 * baseline is the best of the own kernels, these are a side: it is that one, however far ahead a library's is. */
static int side_of(const measurement *m, int row, bool own) {
    const scout_candidate *const c = m->rows[row].candidate;
    int first = 0;
    while (m->rows[first].candidate != c) first++;
    if (m->request->beside && filter_takes(m->request->only, c->name)) return first + 1;
    return own && is_own(&m->rows[row]) ? m->row_count + 1 : 0;
}

static bool is_hurried(const measurement *m) { return m->pass.number == 1 && m->pass.budget_s < hurry_s; }

/* `whole`: nothing comes behind it in this pass. */
static void time_rows(measurement *m, bool whole) {
    lanes_lane *lanes = arena_array(&m->arena, lanes_lane, m->row_count + 1);
    measure_row **rows = arena_array(&m->arena, measure_row *, m->row_count + 1);
    const bool own = baseline_is_own(m);
    const bool hurried = is_hurried(m);
    lanes_rules rules = lanes_rules_of(&m->request->regime, !m->api->has_graphs, m->pass.number == 1);
    int count = 0, baseline = -1;
    rules.least_s = hurried ? 0 : m->pass.least_s;
    if (hurried) rules.rounds = 2;
    if (hurried || m->pass.cut) rules.most_s = fmin(rules.most_s, m->pass.budget_s / 3);
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        if (!row->plan || row->decided || row->lane.raced_out) continue;
        if (k == m->baseline && !own) baseline = count;
        rows[count] = row;
        lanes[count++] =
            (lanes_lane){.subject = measure_pass_subject(row),
                         .samples = m->pass.samples ? arena_array(&m->arena, lanes_sample, LANES_BLOCKS) : NULL,
                         .side = side_of(m, k, own),
                         .own = is_own(row),
                         .keep = m->pass.number > 1 || (k == m->baseline && !own)};
    }
    if (count == 0) return;
    if (whole) ask_to_hold(m, &rules);
    if (whole && !hurried) measure_probe_open(m);
    const int all = count + m->probe.ready;
    if (m->probe.ready) lanes[count] = (lanes_lane){.subject = measure_probe_subject(&m->probe), .keep = true};
    const double race_s = (1 - prepare_share) * m->pass.budget_s; /* at least, however long preparing took */
    const double end_s = fmax(m->started_s + m->pass.budget_s, m->api->now(m->device) + race_s);
    (void)lanes_run(&m->clock, &rules, lanes, all, baseline, end_s);
    read_telemetry(m, &lanes[0]);
    for (int k = 0; k < count; k++) finish_row(m, rows[k], &lanes[k]);
    if (m->probe.ready) m->probe.lane = lanes[count];
    if (m->probe.ready && lanes[count].answer == SCOUT_LOST) measure_stop(m, SCOUT_LOST, &lanes[count].why);
    for (int k = 0; k < m->row_count && own; k++) {
        const measure_row *row = &m->rows[k];
        const measure_row *base = &m->rows[m->baseline];
        if (!row->timed || !is_own(row) || row->lane.raced_out) continue;
        if (!base->timed || base->lane.raced_out || row->lane.time_s < base->lane.time_s) m->baseline = k;
    }
    measure_spend(m, MEASURE_TIMING);
}

/* ---- the last resort ---- */

/* Whether what was seen is so near to the ceiling that candidates of the last resort need not run. A ceiling that
 * decides no verdict leaves none of them out. */
static bool near_ceiling(const measurement *m) {
    double best = INFINITY;
    if (m->ceiling.rel_ci95 > verdict_defaults.ceiling_ci) return false;
    double hz = 0;
    for (int k = 0; k < m->row_count; k++) {
        const lanes_lane *l = &m->rows[k].lane;
        if (m->rows[k].timed && l->time_s < best) best = l->time_s, hz = l->clock_hz;
    }
    const ceilings_time at =
        ceilings_time_at(m->ceiling, m->request->ceilings, operation_precision(m->request->operation), 1e-6 * hz);
    return isfinite(best) && at.seconds >= m->request->early_exit * best;
}

static bool any(const measurement *m, bool (*is)(const measure_row *row)) {
    for (int k = 0; k < m->row_count; k++)
        if (is(&m->rows[k])) return true;
    return false;
}
static bool waits_last(const measure_row *row) { return waits(row, true); }
static bool is_ready(const measure_row *row) { return row->plan != NULL; }

static void skip_last(measurement *m) {
    for (int k = 0; k < m->row_count; k++)
        if (waits(&m->rows[k], true))
            measure_rows_skip(&m->rows[k], "early_exit", "the best so far is within %.3g %% of the ceiling",
                              100 * (1 - m->request->early_exit));
}

/* ---- the end ---- */

/* Where a budget's end is waited for, an operation of whose launches it has no room for a few is left out. */
static bool leave_out(measurement *m, double launch_s, const char *how) {
    const double budget_s = m->pass.budget_s;
    if (!(least_launches * launch_s > overrun * budget_s + overrun_s)) return false;
    for (int k = 0; k < m->row_count; k++) {
        measure_row *row = &m->rows[k];
        if (row->decided) continue;
        bench_plan_free(row->plan);
        row->plan = NULL;
        measure_rows_skip(row, "budget", "a launch takes %.3g s%s: no time for %d of them in %.1f s", launch_s, how,
                          (int)least_launches, budget_s);
    }
    return true;
}

/* Once more on inputs that no candidate has seen; a wrong result takes the time away. A later pass has new inputs
 * anyway, and is checked where figures are looked at. */
static void verify_again(measurement *m) {
    scout_why why = {.code = ""};
    scout_answer answer = SCOUT_OK;
    const bool due = m->pass.number == 1 || (estimate_look((size_t)m->pass.number) && m->check_s <= dear_check_s);
    if (!due) return;
    m->at_it = NULL;
    measure_tell(m, m->set, NULL, NULL, "reference", 120 + 50 * m->refresh_s + 10 * m->patience_s);
    if (m->pass.number == 1) answer = bench_set_refresh(m->set, true, &why);
    if (answer == SCOUT_OK) answer = bench_need_check(m->set, &why);
    if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        measure_row *row = &m->rows[k];
        if (!row->plan || !row->timed || row->lane.raced_out) continue;
        measure_tell_row(row, "verify", m->patience_s);
        bench_verdict found = bench_plan_verify(row->plan);
        if (answer != SCOUT_OK) found = (bench_verdict){.status = ROW_ERROR, .why = why};
        if (found.status == ROW_OK) {
            row->worst = fmax(row->worst, found.worst);
        } else {
            row->status = found.status;
            row->why = found.why;
            row->decided = true;
            row->timed = false;
        }
        if (found.lost) measure_stop(m, SCOUT_LOST, &found.why);
    }
    measure_spend(m, MEASURE_CHECKING);
    m->check_s = m->spent_s[MEASURE_CHECKING];
}

static void first_pass(measurement *m) {
    if (leave_out(m, m->ceiling.seconds, " at the ceiling alone")) return;
    prepare_all(m, false);
    if (m->request->exhaustive) prepare_all(m, true);
    const bool last = !measure_stopped(m) && any(m, waits_last);
    if (!last || !any(m, is_ready)) {
        if (last) prepare_all(m, true);
        if (!measure_stopped(m)) time_rows(m, true);
        return;
    }
    time_rows(m, false);
    if (measure_stopped(m)) return;
    if (near_ceiling(m))
        skip_last(m);
    else
        prepare_all(m, true);
    if (!measure_stopped(m)) time_rows(m, true);
}

void measure_pass_run(measurement *m) {
    if (m->pass.number == 1) {
        first_pass(m);
    } else {
        prepare_chosen(m);
        if (!measure_stopped(m)) time_rows(m, true);
    }
    if (!measure_stopped(m) && !is_hurried(m)) measure_fetch(m);
    if (!measure_stopped(m)) verify_again(m);
}
