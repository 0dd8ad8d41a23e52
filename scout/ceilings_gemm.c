/* Peaks by products: how large the space of shapes is on this device, the search over it, its audit, the K sweep. */
#include "scout/ceilings_points.h"
#include "scout/ceilings_product.h"

#include "scout/stats.h"

#include <math.h>
#include <string.h>

enum { FIRST_SIDE = 128, WIDE = 2048, LAST_SIDE = 16384, AUDITED = 500, SEED = 20251121 };
enum { SWEEP_FIRST = 65536, SWEEP_LAST = 262144, SWEEP_STEP = 16384 };
#define QUEUED_S       1.5e-3 /* a product in the middle of the space, where launches are queued */
#define CALLED_S       6e-3   /* the same where they are calls of a host's library */
#define MOST_INPUT     536870912.0
#define MEMORY_PART    0.4
#define HOST_LEAST_S   5.0
#define HOST_PART      0.25 /* of the budget, on a device that also says its peak in registers */
#define LEAST_SEARCH_S 0.1  /* where others have used up the time */
#define BUDGET_PART    0.92 /* planned with; confirming may take longer than it was given */

static scout_answer time_cube(ceilings_product_pool *p, int64_t side, double *seconds, scout_why *why) {
    const ceilings_search_point point = {.m = side, .n = side, .k = side};
    timing_subject subject;
    ceilings_figure figure = {0, 0};
    scout_answer answer = ceilings_product_room(p, (double)side * (double)side, (double)side * (double)side, why);
    if (answer == SCOUT_OK) answer = ceilings_product_open(p, &point, &subject, why);
    if (answer != SCOUT_OK) return answer;
    answer = ceilings_lab_meter(p->lab, &subject, 1, 0, 3, &figure, why);
    ceilings_product_close(p, &subject);
    *seconds = figure.median_s;
    return answer;
}

/* The size of products that take long enough to be timed and short enough that hundreds can be, and memory for them. */
static scout_answer space_of(ceilings_product_pool *p, ceilings_search_space *space, scout_why *why) {
    const ceilings_lab *lab = p->lab;
    double target = lab->api->has_graphs ? QUEUED_S : CALLED_S, seconds = 0;
    int64_t side = FIRST_SIDE;
    for (;; side *= 2) {
        scout_answer answer = time_cube(p, side, &seconds, why);
        if (answer != SCOUT_OK) return answer;
        if (seconds >= target / 8 || side * 2 > LAST_SIDE / 2) break;
    }
    double flops = 2.0 * (double)side * (double)side * (double)side;
    double middle = (double)side * cbrt(target / seconds);
    memset(space, 0, sizeof *space);
    space->flop_per_s = flops / seconds;
    space->most = (int64_t)fmin(LAST_SIDE, ceil(middle / 64) * 128);
    if (space->most > WIDE) space->most = (space->most + WIDE / 2) / WIDE * WIDE; /* the same shapes every time */
    space->least = space->most / 16 > 64 ? space->most / 16 : 64;
    space->units = lab->identity && lab->identity->units > 0 ? lab->identity->units : 1;
    space->seed = SEED;
    double free_bytes = (double)ceilings_lab_free_bytes(lab), side_most = (double)space->most;
    double inputs = fmin(2 * side_most * side_most, MOST_INPUT), outputs = side_most * side_most;
    double bytes = 2 * inputs * p->precision->in_bytes + outputs * p->precision->out_bytes;
    double part = free_bytes > 0 ? fmin(1, MEMORY_PART * free_bytes / bytes) : 1;
    space->input_elements = inputs * part, space->output_elements = outputs * part;
    space->deepest = space->most >= 4096 ? 8 * space->most / 2 : 0;
    return ceilings_product_room(p, space->input_elements, space->output_elements, why);
}

static void peak_of(const ceilings_product_pool *p, const ceilings_search_point *point, double tflops,
                    const timing_result *timing, ceilings_peak *peak) {
    memset(peak, 0, sizeof *peak);
    snprintf(peak->precision, sizeof peak->precision, "%s", p->precision->name);
    peak->tflops = tflops;
    peak->shape[0] = point->m, peak->shape[1] = point->n, peak->shape[2] = point->k;
    ceilings_product_how(p, point, peak->how, sizeof peak->how);
    snprintf(peak->layout, sizeof peak->layout, "%s", p->layouts[point->layout] ? p->layouts[point->layout] : "nn");
    peak->clock_mhz = timing->clock_mhz, peak->power_w = timing->power_w, peak->rel_ci95 = timing->rel_ci95;
    peak->disturbed = !(timing->rel_ci95 <= CEILINGS_LAB_WIDE);
}

static void audit_to_json(const char *precision, const ceilings_search_verdict *v, const ceilings_search_point *found,
                          json_builder *b, json_t *audit) {
    json_t *o = json_new_object(b);
    const int64_t best[3] = {v->best.m, v->best.n, v->best.k}, was[3] = {found->m, found->n, found->k};
    json_put_int(b, o, "random_shapes", v->random_shapes);
    json_put(b, o, "best_random_shape", json_new_ints(b, 3, best));
    json_put_real(b, o, "best_random_tflops", v->best_tflops);
    json_put(b, o, "found_shape", json_new_ints(b, 3, was));
    json_put_real(b, o, "found_tflops", v->found_tflops);
    json_put_real(b, o, "ratio", v->ratio);
    json_put_real(b, o, "rel_ci95", v->rel_ci95 >= 0 && v->rel_ci95 < 1 ? v->rel_ci95 : 1);
    json_put_real(b, o, "seconds", v->seconds);
    json_put(b, audit, precision, o);
}

static scout_answer run_audit(ceilings_product_pool *p, const ceilings_search *search,
                              const ceilings_search_point *found, ceilings *c, json_builder *b, json_t *audit,
                              scout_why *why) {
    ceilings_search_verdict verdict;
    scout_answer answer = ceilings_search_audit(search, found, AUDITED, &verdict, why);
    if (answer != SCOUT_OK) return answer;
    ceilings_lab_say(p->lab, "%s: found %.4g TFLOP/s, best of %d random shapes %.4g: ratio %.4f", p->precision->name,
                     verdict.found_tflops, (int)verdict.random_shapes, verdict.best_tflops, verdict.ratio);
    audit_to_json(p->precision->name, &verdict, found, b, audit);
    if (verdict.ratio < 1) { /* what a random shape reached, the device can do */
        ceilings_peak peak;
        peak_of(p, &verdict.best, verdict.best_tflops, &verdict.timing, &peak);
        peak.tried = verdict.random_shapes; /* `seconds` stay those of the search */
        ceilings_peak_offer(c, &peak);
    }
    return SCOUT_OK;
}

scout_answer ceilings_gemm_measure(ceilings_lab *lab, const char *precision, double budget_s, ceilings *c,
                                   json_builder *b, json_t *audit, scout_why *why) {
    ceilings_product_pool pool;
    ceilings_search search = {.clock = lab->clock, .rules = lab->rules, .say = lab->say};
    ceilings_search_best best;
    ceilings_peak peak;
    double start = ceilings_lab_now(lab);
    scout_answer answer = ceilings_product_begin(&pool, lab, precision, why);
    if (answer == SCOUT_OK) answer = space_of(&pool, &search.space, why);
    if (answer != SCOUT_OK) goto done;
    search.bench =
        (ceilings_search_bench){&pool, ceilings_product_open, ceilings_product_close, pool.layout_count, pool.variants};
    search.say_context = lab->say_context;
    search.name = pool.precision->name;
    if (!lab->api->has_graphs && ceilings_find_peak(c, precision))
        budget_s = fmax(HOST_PART * budget_s, fmin(budget_s, HOST_LEAST_S));
    search.host = !lab->api->has_graphs;
    search.strict = isfinite(lab->part_s);
    search.budget_s = fmax(BUDGET_PART * budget_s - (ceilings_lab_now(lab) - start), 0.5 * budget_s);
    if (search.strict)
        search.budget_s = fmax(fmin(search.budget_s, BUDGET_PART * ceilings_lab_left(lab)), LEAST_SEARCH_S);
    answer = ceilings_search_run(&search, &best, why);
    if (answer != SCOUT_OK) goto done;
    peak_of(&pool, &best.point, best.tflops, &best.timing, &peak);
    peak.tried = best.tried;
    peak.disturbed = best.disturbed;
    peak.seconds = ceilings_lab_now(lab) - start;
    ceilings_peak_offer(c, &peak);
    ceilings_lab_say(lab, "%s: %.4g TFLOP/s at %lld x %lld x %lld (%s), %d tried in %.1f s", peak.precision,
                     peak.tflops, (long long)peak.shape[0], (long long)peak.shape[1], (long long)peak.shape[2],
                     peak.how, (int)peak.tried, peak.seconds);
    if (audit) answer = run_audit(&pool, &search, &best.point, c, b, audit, why);
done:
    ceilings_product_end(&pool);
    return answer;
}

/* ---- the K sweep ---- */

static scout_answer sweep_point(ceilings_product_pool *p, const ceilings_search_point *point, double budget_s,
                                bool warm, timing_state *state, ceilings_point *out, timing_result *result,
                                scout_why *why) {
    const ceilings_lab *lab = p->lab;
    timing_rules rules = lab->rules;
    timing_subject subject;
    double ratio = 0, ratio_ci = 0;
    scout_why ignored;
    scout_answer answer = ceilings_product_open(p, point, &subject, why);
    if (answer != SCOUT_OK) return answer;
    rules.budget_s = budget_s;
    rules.race_share = 0; /* nothing races here */
    rules.state = state;
    if (!warm && !rules.burst) (void)timing_settle(lab->clock, &rules, &subject, &ignored);
    timing_confirm(lab->clock, &rules, &subject, 1, NULL, NULL, result, &ratio, &ratio_ci);
    ceilings_product_close(p, &subject);
    if (result->answer != SCOUT_OK) {
        *why = result->why;
        return result->answer;
    }
    *out = (ceilings_point){.shape = {point->m, point->n, point->k}, .rel_ci95 = result->rel_ci95};
    out->tflops = ceilings_search_flops(point) / result->median_s / 1e12;
    out->clock_mhz = result->clock_mhz;
    return SCOUT_OK;
}

/* The deepest K of the sweep whose inputs fit; 0: not even the first. */
static int64_t deepest_that_fits(ceilings_product_pool *p, int64_t m, int64_t n) {
    double free_bytes = (double)ceilings_lab_free_bytes(p->lab);
    for (int64_t k = SWEEP_LAST; k >= SWEEP_FIRST; k -= SWEEP_STEP) {
        double inputs = 2.0 * (double)(m > n ? m : n) * (double)k * p->precision->in_bytes;
        if (inputs + (double)m * (double)n * p->precision->out_bytes < 0.8 * free_bytes || free_bytes <= 0) return k;
    }
    return 0;
}

scout_answer ceilings_gemm_sweep(ceilings_lab *lab, const char *precision, int64_t m, int64_t n, double budget_s,
                                 ceilings *c, scout_why *why) {
    ceilings_product_pool pool;
    const ceilings_peak *known = ceilings_find_peak(c, precision);
    scout_answer answer = ceilings_product_begin(&pool, lab, precision, why);
    if (answer != SCOUT_OK) return answer;
    int64_t deepest = deepest_that_fits(&pool, m, n);
    double shortest_s = known ? 2.0 * (double)m * (double)n * SWEEP_FIRST / (known->tflops * 1e12) : 0;
    timing_state state = {.steered = false};
    c->sweep_count = 0;
    snprintf(c->sweep_precision, sizeof c->sweep_precision, "%s", pool.precision->name);
    if (deepest == 0 || shortest_s * 8 > budget_s) {
        ceilings_lab_say(lab, "%s: no K sweep at %lld x %lld: %s", pool.precision->name, (long long)m, (long long)n,
                         deepest == 0 ? "its inputs do not fit into memory" : "one product takes too long");
        ceilings_product_end(&pool);
        return SCOUT_OK;
    }
    answer = ceilings_product_room(&pool, (double)(m > n ? m : n) * (double)deepest, (double)m * (double)n, why);
    const bool strict = isfinite(lab->part_s); /* what a budget leaves is for others */
    const double share_s = budget_s / (1 + (double)(SWEEP_LAST - SWEEP_FIRST) / SWEEP_STEP);
    const double each_s = strict ? share_s : fmax(1, share_s);
    for (int64_t k = SWEEP_FIRST; k <= deepest && answer == SCOUT_OK && c->sweep_count < CEILINGS_MAX_SWEEP;
         k += SWEEP_STEP) {
        if (strict && ceilings_lab_left(lab) <= 0) {
            ceilings_lab_say(lab, "%s: K %lld and more left out: the budget's part for ceilings is used up",
                             pool.precision->name, (long long)k);
            break;
        }
        const ceilings_search_point point = {.m = m, .n = n, .k = k};
        timing_result result;
        ceilings_peak peak;
        ceilings_point *at = &c->sweep[c->sweep_count];
        answer = sweep_point(&pool, &point, each_s, c->sweep_count > 0, &state, at, &result, why);
        if (answer == SCOUT_NO || answer == SCOUT_FAILED) { /* this K only */
            ceilings_lab_say(lab, "%s: K %lld left out: %s", pool.precision->name, (long long)k, why->text);
            answer = SCOUT_OK;
            continue;
        }
        if (answer != SCOUT_OK) break;
        c->sweep_count++;
        ceilings_lab_say(lab, "%s: K %lld %.4g TFLOP/s", pool.precision->name, (long long)k, at->tflops);
        peak_of(&pool, &point, at->tflops, &result, &peak);
        peak.tried = 1;                           /* `seconds` stay those of the search */
        if (known) ceilings_peak_offer(c, &peak); /* a sweep alone is no search */
    }
    ceilings_product_end(&pool);
    return answer;
}
