/* Peaks by products: how large the space of shapes is on this device, the search over it, its audit, the K sweep. */

#include "scout/ceilings/ceilings_lab.h"
#include "scout/ceilings/ceilings_search.h"
#include "scout/kinds/kinds.h"
#include "scout/terms/stats.h"
#include "scout/terms/variants.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Products on a pool: every shape reads from the start of the same two inputs, so that opening one costs a plan and no
 * memory. Results are not looked at here: measure.c verifies plans of the same candidate before it reports them. */

enum { CEILINGS_PRODUCT_LAYOUTS = 2, CEILINGS_PRODUCT_VARIANTS = 8 };

typedef struct ceilings_product_pool {
    const ceilings_lab *lab;
    const ceilings_precision *precision;
    const scout_candidate *candidate; /* NULL: none yet */
    const char *layouts[CEILINGS_PRODUCT_LAYOUTS];
    int32_t layout_count;
    int32_t varied;   /* the parameter of the candidate's domain whose values are its variants; -1: none */
    int32_t variants; /* at most CEILINGS_PRODUCT_VARIANTS */
    char variant_names[CEILINGS_PRODUCT_VARIANTS][32]; /* "algo=3" */
    void *a, *b, *c, *workspace, *side;                /* of the device */
    uint64_t input_bytes, output_bytes;
} ceilings_product_pool;

#define SIDE_BYTES (UINT64_C(1) << 20)
enum { PRODUCT_ARENA_BYTES = 16 << 20, PROBE_SIDE = 512 };

typedef struct product {
    const ceilings_product_pool *pool;
    arena arena;
    guard guard;
    operation_list list;
    scout_op op;
    scout_plan *plan;
    void *tensors[SCOUT_MAX_TENSORS];
    void *packed;
    uint32_t packs; /* the tensor that `packed` replaces */
    ceilings_work work;
} product;

/* ---- one shape ---- */

/* The operation of a shape, as the command line would make it. */
static scout_answer product_describe(product *x, const ceilings_precision *precision, const int64_t shape[3],
                                     const char *layout, scout_why *why) {
    char text[96];
    snprintf(text, sizeof text, "%" PRId64 ",%" PRId64 ",%" PRId64, shape[0], shape[1], shape[2]);
    guard_init(&x->guard);
    arena_init(&x->arena, &x->guard, PRODUCT_ARENA_BYTES);
    if (!guard_enter(&x->guard)) return scout_say(why, SCOUT_FAILED, "error", "%s", x->guard.st.text);
    operation_from_words("gemm", text, precision->name, 0, NULL, &x->arena, &x->list);
    operation *o = &x->list.items[0];
    if (layout) o->rec.layout = layout;
    return kinds_build(o, REGIME_WORKSPACE_BYTES, &x->arena, &x->op, why) ? SCOUT_OK : SCOUT_NO;
}

/* Tensors by role: inputs and weights lie at the start of the pool's two, small constants in a corner of their own. */
static scout_answer product_place(product *x, scout_why *why) {
    const ceilings_product_pool *pool = x->pool;
    int inputs = 0;
    for (uint32_t k = 0; k < x->op.tensor_count; k++) {
        const scout_tensor *t = &x->op.tensors[k];
        uint64_t room = t->role == SCOUT_OUTPUT ? pool->output_bytes
                        : t->role == SCOUT_SIDE ? SIDE_BYTES
                                                : pool->input_bytes;
        if (t->bytes > room) return scout_say(why, SCOUT_NO, "memory", "the shape is larger than the pool");
        x->tensors[k] = t->role == SCOUT_OUTPUT ? pool->c : t->role == SCOUT_SIDE ? pool->side : pool->b;
        if (t->role != SCOUT_OUTPUT && t->role != SCOUT_SIDE && inputs++ == 0) x->tensors[k] = pool->a;
    }
    return SCOUT_OK;
}

static scout_answer enqueue_product(void *context, uint32_t launch, void *stream, scout_why *why) {
    product *x = context;
    scout_args args = {.size = sizeof args, .tensors = x->tensors, .workspace = x->pool->workspace, .stream = stream};
    (void)launch;
    return x->pool->candidate->launch(x->plan, &args, why);
}

static scout_answer enqueue_pack(void *context, uint32_t launch, void *stream, scout_why *why) {
    product *x = context;
    const scout_candidate *candidate = x->pool->candidate;
    (void)launch;
    if (SCOUT_HAS(candidate, pack_tensors) && candidate->pack_tensors)
        return candidate->pack_tensors(x->plan, x->tensors, x->packed, stream, why);
    if (candidate->pack) return candidate->pack(x->plan, x->tensors[x->packs], x->packed, stream, why);
    return scout_say(why, SCOUT_NO, "feature", "it needs a packed weight and has no function to pack one");
}

/* On the device's own stream, and until it is done: what is timed afterwards reads it. */
static scout_answer product_pack(product *x, uint32_t tensor, uint64_t bytes, scout_why *why) {
    const ceilings_lab *lab = x->pool->lab;
    scout_sequence *sequence = NULL;
    double seconds = 0;
    if (tensor >= x->op.tensor_count)
        return scout_say(why, SCOUT_FAILED, "error", "it packs a tensor that is not there");
    scout_answer answer = lab->api->alloc(lab->device, bytes, &x->packed, why);
    if (answer != SCOUT_OK) return answer == SCOUT_NO_MEMORY ? SCOUT_NO : answer;
    x->packs = tensor;
    answer = lab->api->record(lab->device, 0, 1, enqueue_pack, x, &sequence, why);
    if (answer == SCOUT_OK) answer = lab->api->run(lab->device, sequence, 1, &seconds, why);
    if (sequence && answer != SCOUT_LOST) lab->api->drop(lab->device, sequence);
    x->tensors[tensor] = x->packed;
    return answer;
}

static scout_answer product_prepare(product *x, int32_t variant, scout_why *why) {
    const ceilings_product_pool *pool = x->pool;
    const scout_candidate *candidate = pool->candidate;
    scout_device *device = pool->lab->device;
    int64_t values[SCOUT_MAX_PARAMETERS] = {0};
    scout_plan_needs needs = {.size = sizeof needs};
    scout_answer answer = candidate->supports(&x->op, device, why);
    if (answer != SCOUT_OK) return answer;
    scout_domain *domain = calloc(1, sizeof *domain);
    if (!domain) return scout_say(why, SCOUT_FAILED, "memory", "no memory on the host");
    variants all;
    answer = variants_open(&all, candidate, &x->op, device, false, domain, why);
    for (uint32_t k = 0; k < domain->count; k++) values[k] = domain->parameters[k].values[0];
    if (answer == SCOUT_OK && variant > 0) {
        bool there = pool->varied >= 0 && (uint32_t)pool->varied < domain->count &&
                     (uint32_t)variant < domain->parameters[pool->varied].count;
        if (there) values[pool->varied] = domain->parameters[pool->varied].values[variant];
        if (!there) answer = scout_say(why, SCOUT_NO, "variant", "this shape has no such variant");
    }
    free(domain);
    if (answer == SCOUT_OK && candidate->allows && !candidate->allows(&x->op, device, values))
        answer = scout_say(why, SCOUT_NO, "variant", "this shape does not allow the variant");
    if (answer != SCOUT_OK) return answer;
    answer = scout_prepare(candidate, &x->op, device, values, &x->plan, &needs, why);
    if (answer == SCOUT_OK && needs.workspace_bytes > REGIME_WORKSPACE_BYTES)
        answer = scout_say(why, SCOUT_NO, "memory", "it needs more workspace than is allowed");
    if (answer == SCOUT_OK && needs.packs > 0) answer = product_pack(x, needs.packs - 1, needs.pack_bytes, why);
    return answer;
}

static void product_free(product *x) {
    const ceilings_lab *lab = x->pool->lab;
    ceilings_work_drop(&x->work);
    if (x->plan) scout_destroy(x->pool->candidate, x->plan);
    if (x->packed) lab->api->release(lab->device, x->packed);
    operation_list_free(&x->list);
    arena_free(&x->arena);
    free(x);
}

/* For ceilings_search_bench; context is the pool. */
static scout_answer ceilings_product_open(void *context, const ceilings_search_point *point, timing_subject *out,
                                          scout_why *why) {
    const ceilings_product_pool *pool = context;
    const int64_t shape[3] = {point->m, point->n, point->k};
    if (point->layout >= pool->layout_count) {
        scout_say(why, SCOUT_NO, "layout", "there is no such layout");
        return SCOUT_NO;
    }
    product *x = calloc(1, sizeof *x);
    if (!x) {
        scout_say(why, SCOUT_FAILED, "memory", "no memory on the host");
        return SCOUT_FAILED;
    }
    x->pool = pool;
    x->work = (ceilings_work){.lab = pool->lab, .enqueue = enqueue_product, .context = x};
    scout_answer answer = product_describe(x, pool->precision, shape, pool->layouts[point->layout], why);
    if (answer == SCOUT_OK) answer = product_place(x, why);
    if (answer == SCOUT_OK) answer = product_prepare(x, point->variant, why);
    if (answer != SCOUT_OK) {
        product_free(x);
        /* memory that one shape could not have is that shape's matter */
        return answer == SCOUT_NO_MEMORY ? SCOUT_NO : answer;
    }
    *out = ceilings_work_subject(&x->work);
    return SCOUT_OK;
}

static void ceilings_product_close(void *context, timing_subject *subject) {
    (void)context;
    ceilings_work *work = subject->context;
    product_free(work->context);
}

/* ---- the pool ---- */

/* Whether the candidate multiplies such a layout; its domain is looked at once, for the names of its variants. */
static bool takes_layout(ceilings_product_pool *p, const char *layout, scout_why *why) {
    const int64_t shape[3] = {PROBE_SIDE, PROBE_SIDE, PROBE_SIDE};
    product *x = calloc(1, sizeof *x);
    scout_domain *domain = calloc(1, sizeof *domain);
    bool good = false;
    if (x) x->pool = p, x->work.lab = p->lab;
    if (!x || !domain) goto done;
    good = product_describe(x, p->precision, shape, layout, why) == SCOUT_OK;
    if (good) good = p->candidate->supports(&x->op, p->lab->device, why) == SCOUT_OK;
    if (good && !p->layouts[0]) { /* the default's, by its name */
        const char *const names[] = {"nn", "nt", "tn", "tt"};
        for (int k = 0; k < 4; k++)
            if (x->op.layout && strcmp(names[k], x->op.layout) == 0) p->layouts[0] = names[k];
    }
    variants all;
    if (good && p->varied < 0 &&
        variants_open(&all, p->candidate, &x->op, p->lab->device, false, domain, why) == SCOUT_OK &&
        domain->count > 0) {
        uint32_t at = 0;
        for (uint32_t k = 0; k < domain->count; k++)
            if (strcmp(domain->parameters[k].name, "algo") == 0) at = k;
        const scout_parameter *q = &domain->parameters[at];
        p->varied = (int32_t)at;
        p->variants = q->count < CEILINGS_PRODUCT_VARIANTS ? (int32_t)q->count : CEILINGS_PRODUCT_VARIANTS;
        for (int32_t k = 0; k < p->variants; k++) {
            char number[24];
            snprintf(number, sizeof number, "%" PRId64, q->values[k]);
            snprintf(p->variant_names[k], sizeof p->variant_names[k], "%.16s=%.14s", q->name,
                     q->labels ? q->labels[k] : number);
        }
    }
done:
    if (x) product_free(x);
    free(domain);
    return good;
}

static bool takes_any(ceilings_product_pool *p, scout_why *why) {
    static const char *const others[] = {"nt", "nn", "tn"};
    p->layout_count = 0;
    p->layouts[0] = NULL;
    p->varied = -1, p->variants = 1;
    if (takes_layout(p, NULL, why)) p->layout_count = 1;
    for (size_t k = 0; k < sizeof others / sizeof others[0] && p->layout_count < CEILINGS_PRODUCT_LAYOUTS; k++) {
        if (p->layout_count > 0 && p->layouts[0] && strcmp(p->layouts[0], others[k]) == 0) continue;
        scout_why ignored;
        if (takes_layout(p, others[k], &ignored)) p->layouts[p->layout_count++] = others[k];
    }
    return p->layout_count > 0;
}

/* Finds the candidate and its layouts; no memory yet. SCOUT_NO: nothing here multiplies at that precision. */
static scout_answer ceilings_product_begin(ceilings_product_pool *p, const ceilings_lab *lab, const char *precision,
                                           scout_why *why) {
    memset(p, 0, sizeof *p);
    p->lab = lab;
    p->precision = ceilings_precision_named(precision);
    if (!p->precision) return scout_say(why, SCOUT_NO, "type", "no peak is measured of precision %.40s", precision);
    scout_say(why, SCOUT_NO, "type", "no candidate multiplies %s here", p->precision->name);
    /* the library's default first, then any library; an own kernel is no measure of what a device can do */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < lab->api->candidate_count; k++) {
            const scout_candidate *x = lab->api->candidates[k];
            bool baseline = x->flags & SCOUT_BASELINE;
            if (x->kind != SCOUT_GEMM || (pass == 0) != baseline || (x->flags & SCOUT_OWN && !baseline)) continue;
            p->candidate = x;
            if (takes_any(p, why)) return SCOUT_OK;
        }
    p->candidate = NULL;
    return SCOUT_NO;
}

static void pool_release(ceilings_product_pool *p) {
    void **all[] = {&p->a, &p->b, &p->c, &p->workspace, &p->side};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        if (*all[k]) p->lab->api->release(p->lab->device, *all[k]);
        *all[k] = NULL;
    }
}

static void ceilings_product_end(ceilings_product_pool *p) {
    if (p->lab) pool_release(p);
}

/* Memory for inputs of so many elements each and outputs of so many, inputs filled with normal data. Gives back what
 * was there. */
static scout_answer ceilings_product_room(ceilings_product_pool *p, double input_elements, double output_elements,
                                          scout_why *why) {
    const scout_device_api *api = p->lab->api;
    scout_device *device = p->lab->device;
    scout_answer answer = SCOUT_OK;
    pool_release(p);
    p->input_bytes = (uint64_t)(input_elements * p->precision->in_bytes) + 512;
    p->output_bytes = (uint64_t)(output_elements * p->precision->out_bytes) + 512;
    const struct {
        void **at;
        uint64_t bytes;
        uint32_t type; /* SCOUT_NONE: not filled */
    } parts[] = {{&p->a, p->input_bytes, p->precision->type},
                 {&p->b, p->input_bytes, p->precision->type},
                 {&p->c, p->output_bytes, SCOUT_NONE},
                 {&p->workspace, REGIME_WORKSPACE_BYTES, SCOUT_NONE},
                 {&p->side, SIDE_BYTES, p->precision->type}};
    for (size_t k = 0; k < sizeof parts / sizeof parts[0] && answer == SCOUT_OK; k++) {
        if (p->lab->clock->beat) p->lab->clock->beat(p->lab->clock->context, 60);
        answer = api->alloc(device, parts[k].bytes, parts[k].at, why);
        if (answer == SCOUT_OK && parts[k].type != SCOUT_NONE)
            answer = api->fill(device, *parts[k].at, parts[k].bytes, parts[k].type, SCOUT_FILL_NORMAL, 11 + k, why);
    }
    if (answer != SCOUT_OK) pool_release(p);
    return answer;
}

/* "cublaslt algo=3" */
static void ceilings_product_how(const ceilings_product_pool *p, const ceilings_search_point *point, char *text,
                                 size_t room) {
    const char *variant = point->variant > 0 ? p->variant_names[point->variant] : "";
    snprintf(text, room, "%.24s%s%s", p->candidate->name, variant[0] ? " " : "", variant);
}

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

/* Once for a device: under the load that draws most of what is known. */
static scout_answer find_fall(ceilings_product_pool *p, const ceilings_search_best *best, ceilings *c, scout_why *why) {
    const ceilings_lab *lab = p->lab;
    timing_subject subject;
    if (c->clock_fall > 0 || !lab->clock->clocks || lab->regime.load == REGIME_BURST || ceilings_lab_late(lab))
        return SCOUT_OK;
    if (ceilings_product_open(p, &best->point, &subject, why) != SCOUT_OK) return SCOUT_OK;
    const scout_answer answer = ceilings_lab_fall(lab, &subject, &c->clock_fall, why);
    ceilings_product_close(p, &subject);
    if (c->clock_fall > 0)
        ceilings_lab_say(lab, "a clock that power caps falls by %.1f %% more over whole seconds", 100 * c->clock_fall);
    return answer;
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
    answer = find_fall(&pool, &best, c, why);
    if (audit && answer == SCOUT_OK) answer = run_audit(&pool, &search, &best.point, c, b, audit, why);
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
