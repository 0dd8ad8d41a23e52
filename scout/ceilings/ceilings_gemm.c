/* Peaks by products: how large the space of shapes is on this device, the search over it, its audit, the K sweep. */
#include "scout/ceilings/ceilings_points.h"
#include "scout/ceilings/ceilings_product.h"

#include "scout/terms/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIDE = 128, WIDE = 2048, LAST_SIDE = 16384, AUDITED = 500, SEED = 20251121 };
enum { SWEEP_FIRST = 65536, SWEEP_LAST = 262144, SWEEP_STEP = 16384 };
enum { SWEEP_POINTS = 1 + (SWEEP_LAST - SWEEP_FIRST) / SWEEP_STEP };
#define QUEUED_S       1.5e-3 /* a product in the middle of the space, where launches are queued */
#define CALLED_S       6e-3   /* the same where they are calls of a host's library */
#define MOST_INPUT     536870912.0
#define MEMORY_PART    0.4
#define HOST_PART      0.5 /* of the budget, on a host that also says its peak in registers */
#define LEAST_SEARCH_S 0.1 /* where others have used up the time */
#define SWEEP_POINT_S  0.15
#define SWEEP_LONGEST  0.5 /* a product of the sweep takes no longer */

static scout_answer time_cube(ceilings_product_pool *p, int64_t side, double *seconds, scout_why *why) {
    const ceilings_search_point point = {.m = side, .n = side, .k = side};
    timing_subject subject;
    double each[3] = {0};
    scout_answer answer = ceilings_product_room(p, (double)side * (double)side, (double)side * (double)side, why);
    if (answer == SCOUT_OK) answer = ceilings_product_open(p, &point, &subject, why);
    if (answer != SCOUT_OK) return answer;
    answer = subject.run(subject.context, 1, 3, each, why);
    ceilings_product_close(p, &subject);
    *seconds = fmax(stats_median(each, 3), 1e-9);
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
    double middle = (double)side * cbrt(target / seconds);
    memset(space, 0, sizeof *space);
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
                    const ceilings_figure *figure, ceilings_peak *peak) {
    memset(peak, 0, sizeof *peak);
    snprintf(peak->precision, sizeof peak->precision, "%s", p->precision->name);
    peak->tflops = tflops;
    peak->shape[0] = point->m, peak->shape[1] = point->n, peak->shape[2] = point->k;
    ceilings_product_how(p, point, peak->how, sizeof peak->how);
    snprintf(peak->layout, sizeof peak->layout, "%s", p->layouts[point->layout] ? p->layouts[point->layout] : "nn");
    peak->clock_mhz = figure->clock_mhz, peak->power_w = figure->power_w, peak->rel_ci95 = figure->rel_ci95;
    peak->disturbed = !(figure->rel_ci95 <= CEILINGS_LAB_WIDE);
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
        const ceilings_figure figure = {.rel_ci95 = verdict.rel_ci95, .clock_mhz = NAN, .power_w = NAN};
        peak_of(p, &verdict.best, verdict.best_tflops, &figure, &peak);
        peak.tried = verdict.random_shapes; /* `seconds` stay those of the search */
        ceilings_peak_offer(c, &peak);
    }
    return SCOUT_OK;
}

scout_answer ceilings_gemm_measure(ceilings_lab *lab, const char *precision, double budget_s, ceilings *c,
                                   json_builder *b, json_t *audit, scout_why *why) {
    ceilings_product_pool pool;
    ceilings_search search = {.lab = lab};
    ceilings_search_best best;
    ceilings_peak peak;
    const double start = ceilings_lab_now(lab);
    const ceilings_peak *registers = lab->host ? ceilings_find_peak(c, precision) : NULL;
    scout_answer answer = ceilings_product_begin(&pool, lab, precision, why);
    if (answer == SCOUT_OK) answer = space_of(&pool, &search.space, why);
    if (answer != SCOUT_OK) goto done;
    search.bench =
        (ceilings_search_bench){&pool, ceilings_product_open, ceilings_product_close, pool.layout_count, pool.variants};
    search.name = pool.precision->name;
    if (registers) budget_s *= HOST_PART;
    budget_s -= ceilings_lab_now(lab) - start;
    search.budget_s = fmax(fmin(budget_s, ceilings_lab_left(lab)), LEAST_SEARCH_S);
    answer = ceilings_search_run(&search, &best, why);
    if (answer != SCOUT_OK) goto done;
    peak_of(&pool, &best.point, best.tflops, &best.figure, &peak);
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

/* The deepest K of the sweep whose inputs fit; 0: not even the first. */
static int64_t deepest_that_fits(ceilings_product_pool *p, int64_t m, int64_t n) {
    double free_bytes = (double)ceilings_lab_free_bytes(p->lab);
    for (int64_t k = SWEEP_LAST; k >= SWEEP_FIRST; k -= SWEEP_STEP) {
        double inputs = 2.0 * (double)(m > n ? m : n) * (double)k * p->precision->in_bytes;
        if (inputs + (double)m * (double)n * p->precision->out_bytes < 0.8 * free_bytes || free_bytes <= 0) return k;
    }
    return 0;
}

/* The lanes of a sweep: its depths, and the product of the peak, whose long run is known and puts them on its scale. */
typedef struct sweep {
    ceilings_search_point points[SWEEP_POINTS + 1];
    lanes_lane lanes[SWEEP_POINTS + 1];
    int count;
} sweep;

static scout_answer sweep_open(sweep *x, ceilings_product_pool *p, const ceilings_search_point *point, scout_why *why) {
    lanes_lane *lane = &x->lanes[x->count];
    const scout_answer answer = ceilings_product_open(p, point, &lane->subject, why);
    if (answer == SCOUT_OK) x->points[x->count++] = *point;
    if (answer == SCOUT_NO || answer == SCOUT_FAILED) {
        ceilings_lab_say(p->lab, "%s: K %lld left out: %s", p->precision->name, (long long)point->k, why->text);
        return SCOUT_OK; /* this K only */
    }
    return answer;
}

static double sweep_rate(const sweep *x, const ceilings_lab *lab, int k) {
    const double launch_s = ceilings_lab_launch_s(lab, &x->lanes[k]);
    return launch_s > 0 ? ceilings_search_flops(&x->points[k]) / launch_s / 1e12 : 0;
}

static void sweep_read(const sweep *x, const ceilings_product_pool *p, bool scaled, ceilings *c) {
    const ceilings_peak *known = ceilings_find_peak(c, p->precision->name);
    const double scale = scaled && sweep_rate(x, p->lab, 0) > 0 ? known->tflops / sweep_rate(x, p->lab, 0) : 1;
    scout_telemetry t = {.size = sizeof t, .clock_mhz = (double)NAN, .power_w = (double)NAN};
    p->lab->clock->telemetry(p->lab->clock->context, &t);
    for (int k = scaled; k < x->count && c->sweep_count < CEILINGS_MAX_SWEEP; k++) {
        const ceilings_search_point *point = &x->points[k];
        const double tflops = scale * sweep_rate(x, p->lab, k);
        const double ci = 2 * hypot(x->lanes[k].error, scaled ? x->lanes[0].error : 0);
        if (!(tflops > 0)) continue;
        ceilings_point *at = &c->sweep[c->sweep_count++];
        *at = (ceilings_point){.shape = {point->m, point->n, point->k}, .tflops = tflops, .clock_mhz = t.clock_mhz};
        at->rel_ci95 = isfinite(ci) ? fmin(ci, 1) : 1;
        ceilings_lab_say(p->lab, "%s: K %lld %.4g TFLOP/s", p->precision->name, (long long)point->k, tflops);
        const ceilings_figure figure = {.rel_ci95 = at->rel_ci95, .clock_mhz = t.clock_mhz, .power_w = t.power_w};
        ceilings_peak peak;
        peak_of(p, point, tflops, &figure, &peak);
        peak.tried = 1;                           /* `seconds` stay those of the search */
        if (known) ceilings_peak_offer(c, &peak); /* a sweep alone is no search */
    }
}

/* Where the peak is a product of one of today's layouts and variants. */
static bool point_of(const ceilings_product_pool *p, const ceilings_peak *peak, ceilings_search_point *out) {
    if (!peak || peak->shape[0] < 1) return false;
    *out = (ceilings_search_point){.m = peak->shape[0], .n = peak->shape[1], .k = peak->shape[2]};
    for (out->layout = 0; out->layout < p->layout_count; out->layout++)
        for (out->variant = 0; out->variant < p->variants; out->variant++) {
            char how[64];
            ceilings_product_how(p, out, how, sizeof how);
            if (strcmp(how, peak->how) == 0 && strcmp(p->layouts[out->layout], peak->layout) == 0) return true;
        }
    return false;
}

/* Room for the deepest, and for the product of the peak. */
static double sweep_inputs(int64_t m, int64_t n, int64_t deepest, const ceilings_peak *known) {
    const double own = (double)(m > n ? m : n) * (double)deepest;
    if (!known) return own;
    return fmax(own, (double)known->shape[2] * fmax((double)known->shape[0], (double)known->shape[1]));
}
static double sweep_outputs(int64_t m, int64_t n, const ceilings_peak *known) {
    return fmax((double)m * (double)n, known ? (double)known->shape[0] * (double)known->shape[1] : 0);
}

static scout_answer sweep_run(ceilings_product_pool *p, const ceilings_peak *known, int64_t m, int64_t n,
                              int64_t deepest, sweep *x, bool *scaled, scout_why *why) {
    const ceilings_lab *lab = p->lab;
    ceilings_search_point peak;
    scout_answer answer = SCOUT_OK;
    if (point_of(p, known, &peak)) answer = sweep_open(x, p, &peak, why);
    *scaled = x->count > 0;
    for (int64_t k = SWEEP_FIRST; k <= deepest && answer == SCOUT_OK; k += SWEEP_STEP) {
        const ceilings_search_point point = {.m = m, .n = n, .k = k};
        answer = sweep_open(x, p, &point, why);
    }
    const double each_s = fmin(SWEEP_POINT_S, ceilings_lab_left(lab) / SWEEP_POINTS);
    if (answer == SCOUT_OK) answer = ceilings_lab_pass(lab, each_s, each_s / 3, x->lanes, x->count, why);
    for (int k = 0; k < x->count; k++) ceilings_product_close(p, &x->lanes[k].subject);
    return answer;
}

scout_answer ceilings_gemm_sweep(ceilings_lab *lab, const char *precision, int64_t m, int64_t n, ceilings *c,
                                 scout_why *why) {
    ceilings_product_pool pool;
    bool scaled = false;
    scout_answer answer = ceilings_product_begin(&pool, lab, precision, why);
    if (answer != SCOUT_OK) return answer;
    const ceilings_peak *known = ceilings_find_peak(c, pool.precision->name);
    const int64_t deepest = deepest_that_fits(&pool, m, n);
    const double shortest_s = known ? 2.0 * (double)m * (double)n * SWEEP_FIRST / (known->tflops * 1e12) : 0;
    c->sweep_count = 0;
    snprintf(c->sweep_precision, sizeof c->sweep_precision, "%s", pool.precision->name);
    if (deepest == 0 || shortest_s > SWEEP_LONGEST) {
        ceilings_lab_say(lab, "%s: no K sweep at %lld x %lld: %s", pool.precision->name, (long long)m, (long long)n,
                         deepest == 0 ? "its inputs do not fit into memory" : "one product takes too long");
        ceilings_product_end(&pool);
        return SCOUT_OK;
    }
    sweep *x = calloc(1, sizeof *x);
    if (!x)
        answer = scout_say(why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    else
        answer = ceilings_product_room(&pool, sweep_inputs(m, n, deepest, known), sweep_outputs(m, n, known), why);
    if (x && answer == SCOUT_OK) answer = sweep_run(&pool, known, m, n, deepest, x, &scaled, why);
    if (x && answer == SCOUT_OK) sweep_read(x, &pool, scaled, c);
    free(x);
    ceilings_product_end(&pool);
    return answer;
}
