/* What a launch takes more in a model than alone. Alone it finds its program in the caches of instructions, and its
 * activations where its own last launch has left them. In a model others have run since, and a device's `forget` does
 * as these do. On graphs: launches behind it, beside it alone and beside launches as they are timed, in turn: for
 * the program, for the tensors, and for a change of kernels. On a device that launches directly, for the tensors alone:
 * one behind it and one as usual, in turn. */
#include "scout/measure/measure_internal.h"

#include "scout/terms/stats.h"

#include <math.h>
#include <string.h>

/* A part of a round, in this order. What ran as usual may have thrown the program of FORGET out of the L2 cache: AGAIN
 * is one launch that brings it back. */
enum { AGAIN, FORGET, BEHIND, KINDS };
enum { PARTS = 3, MOST = PARTS * KINDS + 1 };

/* One round more than is counted, for its memory and the clock. */
enum { EACH = 3, ROUNDS = EACH + 1 };

/* Launches in a row; many where neither they nor `forget` take long against the timer. */
enum { FEW = 4, MANY = 10 };

/* Of an operation that takes longer a program is less than a hundredth, and tensors are. */
static const double longest_s[] = {[SCOUT_FORGET_PROGRAM] = 30e-6, [SCOUT_FORGET_TENSORS] = 300e-6};
/* Of a program: more would throw that of FORGET out of the L2 cache in each launch. */
static const double most_bytes = 12e6;
static const double longest_directly_s = 2e-3, pairs_s = 0.01, most_stolen = 0.5;
static const double alike = 1.1; /* intervals of a kind that differ by more were disturbed */

/* Of all that `forget` may touch. */
static double bytes_of(const scout_op *op) {
    double sum = 0;
    for (uint32_t t = 0; t < op->tensor_count; t++) sum += (double)op->tensors[t].bytes;
    return sum;
}

static bool can(const measurement *m) {
    const regime *r = &m->request->regime;
    return SCOUT_HAS(m->api, forget) && m->api->forget && (m->api->play || !m->api->has_graphs) &&
           r->launch == REGIME_GRAPH && r->load != REGIME_BURST &&
           (m->api->has_graphs || bytes_of(&m->op) <= most_bytes);
}

typedef struct part { /* of what is forgotten */
    scout_forget what;
    double share; /* of it, that a model's launches find forgotten */
    uint32_t launches[KINDS];
} part;

/* One play of all rounds; in each there are all parts, and at its end the launches as they are timed. */
typedef struct rounds {
    part parts[PARTS];
    int part_count;
    scout_sequence *list[ROUNDS * MOST];
    double seconds[ROUNDS * MOST];
} rounds;

static int each_round(const rounds *r) { return r->part_count * KINDS + 1; }

static scout_answer record_round(measure_row *row, const rounds *r, scout_sequence **of, scout_why *why) {
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < r->part_count * KINDS && answer == SCOUT_OK; k++) {
        const part *p = &r->parts[k / KINDS];
        const int kind = k % KINDS;
        answer = bench_plan_record_forgotten(row->plan, p->what, p->launches[kind], kind != BEHIND, &of[k], why);
    }
    return answer == SCOUT_OK ? bench_plan_recorded(row->plan, row->lane.launches, &of[r->part_count * KINDS], why)
                              : answer;
}

/* Where copies rotate, each round has its own, which none before it has left in a cache. */
static scout_answer play_rounds(measurement *m, measure_row *row, rounds *r, scout_why *why) {
    const int each = each_round(r), recorded = bench_set_is_cold(m->set) ? ROUNDS : 1;
    scout_answer answer = SCOUT_OK;
    for (int k = 0; k < recorded && answer == SCOUT_OK; k++) answer = record_round(row, r, &r->list[k * each], why);
    for (int k = recorded; k < ROUNDS; k++) memcpy(&r->list[k * each], r->list, (size_t)each * sizeof r->list[0]);
    if (answer == SCOUT_OK) answer = m->api->play(m->device, r->list, (uint32_t)(ROUNDS * each), r->seconds, why);
    for (int k = 0; k < recorded * each && answer != SCOUT_LOST; k++)
        if (r->list[k] && k % each != each - 1) m->api->drop(m->device, r->list[k]); /* that is the plan's */
    return answer;
}

/* Of the launches that lie there in each round; not a number: they differ too much. */
static double middle_at(const rounds *r, int at, uint32_t launches) {
    double each[EACH];
    for (int k = 0; k < EACH; k++) each[k] = r->seconds[(k + 1) * each_round(r) + at] / launches;
    const double middle = stats_median(each, EACH);
    for (int k = 0; k < EACH; k++)
        if (!(each[k] < alike * middle && middle < alike * each[k])) return NAN;
    return middle;
}

static void add_part(rounds *r, scout_forget what, double share, bool is_long) {
    const uint32_t n = is_long || what == SCOUT_FORGET_PROGRAM ? FEW : MANY;
    if (share != 0) r->parts[r->part_count++] = (part){what, share, {[AGAIN] = 1, [FORGET] = n, [BEHIND] = n}};
}

/* Program and tensors are forgotten one by one: what fills the L2 cache in place of distant tensors also throws the
 * program out of it, and a model hardly does that. A change of kernels takes time by itself, which is in both. Not a
 * number: it is not known. */
static double fetch_in_graphs(measurement *m, measure_row *row, scout_answer *answer, scout_why *why) {
    const double launch_s = row->lane.launch_s, handed = m->request->operation->handed;
    const bool is_long = launch_s >= longest_s[SCOUT_FORGET_PROGRAM];
    const bool program = !is_long && m->op.bytes_read + m->op.bytes_written <= most_bytes;
    rounds r = {.part_count = 0};
    double sum_s = 0;
    add_part(&r, SCOUT_FORGET_PROGRAM, program ? 1 : 0, is_long);
    add_part(&r, SCOUT_FORGET_TENSORS, handed, is_long);
    add_part(&r, SCOUT_FORGET_NOTHING, program ? -handed : 0, is_long);
    *answer = SCOUT_OK;
    if (r.part_count > 0) *answer = play_rounds(m, row, &r, why);
    if (r.part_count == 0 || *answer != SCOUT_OK) return NAN;
    const double usual_s = middle_at(&r, r.part_count * KINDS, row->lane.launches);
    for (int k = 0; k < r.part_count; k++) {
        const part *p = &r.parts[k];
        const double forget_s = middle_at(&r, k * KINDS + FORGET, p->launches[FORGET]);
        sum_s += p->share * (middle_at(&r, k * KINDS + BEHIND, p->launches[BEHIND]) - forget_s - usual_s);
    }
    return sum_s;
}

enum { PAIRS = 16, FEWEST_PAIRS = 4 };

/* Most of both kinds lie together, or other work was beside them. */
static bool middle_of(double *x, uint32_t pairs, double *middle) {
    stats_sort(x, pairs);
    *middle = stats_median(x, pairs);
    return x[pairs * 3 / 4] < alike * x[pairs / 4];
}

static double stolen_s(const measurement *m) {
    return SCOUT_HAS(m->api, stolen) && m->api->stolen ? m->api->stolen(m->device) : 0;
}

static double fetch_directly(const measurement *m, measure_row *row, scout_answer *answer, scout_why *why) {
    double behind_s[PAIRS], usual_s[PAIRS], behind, usual;
    const double before_s = stolen_s(m), from_s = m->api->now(m->device);
    const uint32_t pairs = (uint32_t)fmin(fmax(pairs_s / row->lane.launch_s / 2, FEWEST_PAIRS), PAIRS);
    *answer = bench_plan_time_forgotten(row->plan, pairs, behind_s, usual_s, why);
    const double took_s = m->api->now(m->device) - from_s;
    if (*answer != SCOUT_OK || stolen_s(m) - before_s > most_stolen * took_s) return NAN;
    if (!middle_of(behind_s, pairs, &behind) || !middle_of(usual_s, pairs, &usual)) return NAN;
    return usual > 0.5 * row->lane.launch_s ? behind - usual : NAN; /* else it was not done when it returned */
}

static bool is_wanted(const measurement *m, int row, int fastest) {
    const measure_row *r = &m->rows[row];
    const bool timed = r->plan && r->timed && r->status == ROW_OK && !r->lane.raced_out && r->lane.launches > 0;
    return timed && (!r->fetched || !m->api->has_graphs) &&
           r->lane.launch_s < (m->api->has_graphs ? longest_s[SCOUT_FORGET_TENSORS] : longest_directly_s) &&
           (row == m->baseline || row == fastest);
}

/* The baseline's, and of what is fastest beside it. */
void measure_fetch(measurement *m) {
    int fastest = -1;
    if (!m->pass.fetch || !can(m)) return;
    for (int k = 0; k < m->row_count; k++) {
        const measure_row *r = &m->rows[k];
        if (k == m->baseline || !r->timed || r->lane.raced_out) continue;
        if (fastest < 0 || r->lane.time_s < m->rows[fastest].lane.time_s) fastest = k;
    }
    for (int k = 0; k < m->row_count && !measure_stopped(m); k++) {
        scout_answer answer = SCOUT_OK;
        scout_why why = {.code = ""};
        if (!is_wanted(m, k, fastest)) continue;
        measure_tell_row(&m->rows[k], "time",
                         fmin(30 + 100 * m->rows[k].lane.launch_s * m->rows[k].lane.launches, 600));
        m->rows[k].fetch_s = m->api->has_graphs ? fetch_in_graphs(m, &m->rows[k], &answer, &why)
                                                : fetch_directly(m, &m->rows[k], &answer, &why);
        m->rows[k].fetched = isfinite(m->rows[k].fetch_s);
        if (answer == SCOUT_LOST) measure_stop(m, answer, &why);
    }
    measure_spend(m, MEASURE_TIMING);
}
