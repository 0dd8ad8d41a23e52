/* The model as a whole: the passes of its replay, model.json and the plan that it ran beside the defaults, plan.json.
 * At the end of a run over a whole model, or alone by --replay. */
#include "scout/run/run_internal.h"

#include "common/clock.h"
#include "common/version.h"
#include "scout/measure/figures.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static const size_t MOST_MEMORY = (size_t)2 << 30;
enum { LEAST_PASSES = 4, IN_PLACE_PASSES = 3, RUN_BYTES = 64 << 20 };
enum { MODEL_FILE, PLAN_FILE, TRACE_FILE, FILES };
static const char *const files[] = {"model.json", "plan.json", "trace.json"};
static const char *const kinds[] = {"model", "plan", "trace"}; /* of the schemas */
static const double target = 0.01, hold_s = 1.5;
static const double pass_runs = 40, fill_bytes_per_s = 0.5e9; /* what a first pass takes at least, roughly */

typedef struct share { /* of an operation or a fusion, by its report */
    bool takes_part;
    const char *code, *text; /* why it does not; NULL: it needs none */
    double default_us;       /* of all its launches in a run */
    double least_us;         /* of one without a figure; 0: not known */
    double in_place[2];      /* sums over passes */
    int in_place_passes[2];
    double traced[2]; /* launches whose kernels alone that is */
} share;

typedef struct replay_run {
    run *r;
    share *shares; /* by item */
    run_plan plan;
    json_t *measurement, *facts; /* owned */
    double end_s;                /* no pass begins later, but for the least of them; infinite: none is too late */
    bool least;                  /* the least is made whatever it takes */
    int pass, device;            /* device: the one that does all; -1: not known */
    bool over, again;            /* again: it was begun again */
    bool traces;                 /* the job under way, the last one */
    json_t *trace;               /* owned */
    const char *untraced;        /* why the tracer told nothing; NULL: it did, or was not asked */
    status failure;
} replay_run;

/* ---- what runs as what ---- */

static void read_shares(replay_run *w) {
    run *r = w->r;
    w->shares = arena_array(&r->arena, share, r->item_count);
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        const double count = (double)i->operation->count;
        const report_input in = run_input(r, i, -1);
        share *s = &w->shares[k];
        report_figures f;
        report_read(&in, &f);
        if (!f.baseline_row) {
            const bool none = !i->measurement && i->source != RUN_SKIPPED;
            if (count > 0 && !verdict_is_excused(none ? "" : f.code)) {
                s->code = none ? "not_asked" : f.code;
                s->text = none ? "it has no report of this regime and device" : f.text;
                s->least_us = f.estimate_us > 0 ? count * f.estimate_us : 0;
            }
            continue;
        }
        s->takes_part = true;
        s->default_us = count * f.baseline_us;
    }
}

static json_t *row_json(const char *name, const char *variant, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "name", name);
    json_put_text(b, to, "variant", variant);
    return to;
}

static json_t *operations_json(const replay_run *w, json_builder *b) {
    run *r = w->r;
    json_t *list = json_new_array(b);
    const bool *runs = run_plan_items(r, &w->plan);
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        const report_input in = run_input(r, i, -1);
        report_figures f;
        json_t *one = json_new_object(b);
        json_put(b, one, "operation", operation_to_json(i->operation, b));
        if (w->shares[k].takes_part && (k < r->layouts->own || runs[k])) {
            const run_planned *planned = &w->plan.operations[k];
            report_read(&in, &f);
            json_put(b, one, "default",
                     row_json(json_get_text(f.baseline_row, "name"), json_get_text(f.baseline_row, "variant"), b));
            if (planned->name && runs[k]) json_put(b, one, "best", row_json(planned->name, planned->variant, b));
        }
        json_push(b, list, one);
    }
    return list;
}

/* null: the plan does not have it. */
static json_t *fusions_json(const replay_run *w, json_builder *b) {
    run *r = w->r;
    json_t *list = json_new_array(b);
    bool *runs = arena_array(&r->arena, bool, r->fusions.count);
    for (int g = 0; g < w->plan.whole.group_count; g++)
        if (w->plan.whole.groups[g].fusion >= 0) runs[w->plan.whole.groups[g].fusion] = true;
    for (int k = 0; k < r->fusions.count; k++) {
        const fusion *f = &r->fusions.items[k];
        const run_planned *planned = &w->plan.fusions[k];
        json_t *one = runs[k] ? json_new_object(b) : json_null();
        json_push(b, list, one);
        if (!runs[k]) continue;
        json_put(b, one, "operation", operation_to_json(&f->fused, b));
        json_put(b, one, "row", row_json(planned->name, planned->variant, b));
        json_put(b, one, "parts", fusion_to_json(f, b));
    }
    return list;
}

static json_t *from_json(const layouts_run *as, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < as->flow->occurrence_count; k++) json_push_int(b, list, as->from[k]);
    return list;
}

/* ---- passes ---- */

static json_t *job_of(replay_run *w, const run_device *d) {
    const run *r = w->r;
    json_builder b = {0};
    char key[64];
    json_t *to = json_new_object(&b);
    regime_key(&r->options->regime, key, sizeof key);
    json_put_text(&b, to, "what", "replay");
    json_put_int(&b, to, "job", 0);
    json_put_int(&b, to, "session", r->no_layouts ? 2 : 1);
    json_put_int(&b, to, "pass", w->pass);
    json_put_int(&b, to, "seed", (int64_t)w->pass * 7919);
    json_put_text(&b, to, "regime", key);
    json_put_bool(&b, to, "exhaustive", r->search.exhaustive);
    json_put_int(&b, to, "workspace_limit", (int64_t)r->search.workspace_limit);
    if (d->ceilings) {
        json_put_real(&b, to, "plateau_bytes", d->ceilings->plateau_bytes);
        json_put_real(&b, to, "clock_fall", d->ceilings->clock_fall);
    }
    if (w->pass == 1 || figures_hold_again(w->measurement)) json_put_real(&b, to, "hold_s", hold_s);
    json_put_bool(&b, to, "in_place", w->pass > 1 && w->pass <= 1 + IN_PLACE_PASSES);
    if (w->traces) json_put_bool(&b, to, "trace", true);
    json_put(&b, to, "exclusions", run_faults_exclusions(r, &b));
    json_put(&b, to, "flow", operation_flow_to_json(r->list.flow, &b));
    if (w->plan.as) json_put(&b, to, "planned", operation_flow_to_json(w->plan.as->flow, &b));
    if (w->plan.as) json_put(&b, to, "from", from_json(w->plan.as, &b));
    json_put(&b, to, "operations", operations_json(w, &b));
    json_put(&b, to, "fusions", fusions_json(w, &b));
    json_put(&b, to, "plan", plan_to_json(&w->plan.whole, &b));
    return json_finish(&b, to, &w->failure);
}

static bool is_enough(const replay_run *w) {
    const bool timely = run_now() < w->end_s || (w->least && w->pass < LEAST_PASSES);
    const size_t passes = (size_t)w->pass;
    if (!timely && w->pass > 0) return true;
    if (w->pass < LEAST_PASSES) return false;
    return passes >= estimate_last_look() || (estimate_look(passes) && !figures_wide(w->measurement));
}

/* Once, when all is timed: a tracer may leave launches dearer than they were. A host tells its times in place as it
 * goes. */
static bool wants_trace(const replay_run *w) {
    const bool host = json_is_true(json_object_get(w->measurement, "host"));
    return w->measurement && !w->traces && !host && run_now() < w->end_s;
}

static json_t *next(void *context, int device, int *job) {
    replay_run *w = context;
    char what[64];
    *job = 0;
    if (w->over || *w->r->stop || (w->device >= 0 && w->device != device)) return NULL;
    if (is_enough(w) && !wants_trace(w)) return NULL;
    w->traces = is_enough(w);
    w->device = device;
    if (!w->traces) w->pass++;
    snprintf(what, sizeof what, w->traces ? "what each kernel takes" : "pass %d", w->pass);
    show_progress_set(&w->r->progress, &(show_progress_state){.part = NAN,
                                                              .left_s = NAN,
                                                              .phases = "the model as a whole",
                                                              .phase = "the model as a whole",
                                                              .what = what});
    return job_of(w, &w->r->devices[device]);
}

static int item_of(const run *r, const char *id) {
    for (int k = 0; k < r->item_count; k++)
        if (strcmp(r->items[k].operation->id, id) == 0) return k;
    return -1;
}

static void add_in_place(replay_run *w, const json_t *list) {
    static const char *const launches[] = {"default_launches", "best_launches"};
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const int at = item_of(w->r, json_get_text(one, "operation"));
        const double us[] = {json_get_positive(one, "default_us"), json_get_positive(one, "best_us")};
        for (int lane = 0; at >= 0 && lane < 2; lane++) {
            if (!(us[lane] > 0)) continue;
            w->shares[at].in_place[lane] += us[lane];
            w->shares[at].in_place_passes[lane]++;
            w->shares[at].traced[lane] = fmax(json_get_number(one, launches[lane]), 0);
        }
    }
}

/* Operations that take no part, or run by their defaults, and groups that fell apart. */
static bool is_of_other_plan(const replay_run *w, const json_t *facts) {
    static const char *const lists[] = {"left_out", "as_default", "apart"};
    for (size_t k = 0; w->facts && k < sizeof lists / sizeof *lists; k++) {
        const json_t *were = json_object_get(w->facts, lists[k]), *are = json_object_get(facts, lists[k]);
        if (json_array_size(were) != json_array_size(are)) return true;
        for (size_t n = 0; n < json_array_size(are); n++)
            if (strcmp(json_get_text(json_array_get(were, n), "operation"),
                       json_get_text(json_array_get(are, n), "operation")) != 0)
                return true;
    }
    return false;
}

/* Passes of different plans are no passes of one. */
static void begin_again(replay_run *w) {
    json_decref(w->measurement);
    json_decref(w->facts);
    w->measurement = w->facts = NULL;
    w->pass = 0;
    w->again = true;
    for (int k = 0; k < w->r->item_count; k++) {
        share *s = &w->shares[k];
        s->in_place[0] = s->in_place[1] = 0;
        s->in_place_passes[0] = s->in_place_passes[1] = 0;
        s->traced[0] = s->traced[1] = 0;
    }
}

static bool is_in(const json_t *list, const char *id) {
    for (size_t k = 0; k < json_array_size(list); k++)
        if (strcmp(json_get_text(json_array_get(list, k), "operation"), id) == 0) return true;
    return false;
}

/* An occurrence of a turned region, or a conversion, that does not run: both lanes would no longer do the same work. */
static const char *spoilt(const replay_run *w, const json_t *facts) {
    const run *r = w->r;
    const json_t *out = json_object_get(facts, "left_out");
    const layouts_run *as = w->plan.as;
    for (int k = 0; as && json_array_size(out) > 0 && k < as->flow->occurrence_count; k++) {
        const int item = as->flow->occurrences[k].operation, from = as->from[k];
        const int file = from >= 0 ? r->list.flow->occurrences[from].operation : item;
        if (item < 0 || (from >= 0 && item == file)) continue; /* idle, or in both lanes alike */
        if (item >= 0 && is_in(out, r->list.items[item].id)) return r->list.items[item].id;
        if (file >= 0 && is_in(out, r->list.items[file].id)) return r->list.items[file].id;
    }
    return NULL;
}

/* A region that cannot run as planned is planned as the file has it. */
static void unturn(replay_run *w, const char *what) {
    run *r = w->r;
    const bool again = w->again;
    if (r->options->plan) {
        w->over = true;
        status_set(&w->failure, STATUS_INPUT, "%.200s of a region that the given plan turns cannot run here", what);
        return;
    }
    run_warn(r, "the model as a whole: %s cannot run in it, so no region has its channels last", what);
    r->no_layouts = true;
    run_plan_choose(r, &w->plan);
    begin_again(w);
    w->again = again;
}

static const char *why_untraced(const replay_run *w, const status *st) {
    const char *not = json_get_text_or_null(w->trace, "not");
    if (not ) return not ;
    if (json_array_size(json_object_get(w->trace, "default")) > 0) return NULL;
    return st->code != STATUS_OK && st->text[0] ? arena_printf(&w->r->arena, "%s", st->text)
                                                : "its tracer saw no kernel";
}

static void done(void *context, int device, int job, const json_t *result, const status *st) {
    replay_run *w = context;
    const json_t *told = json_object_get(result, "replay");
    (void)device, (void)job;
    if (w->traces) { /* without it, everything is known but for that */
        add_in_place(w, json_object_get(told, "in_place"));
        w->trace = json_deep_copy(json_object_get(told, "trace"));
        w->untraced = why_untraced(w, st);
        w->over = true;
        return;
    }
    if (!json_is_array(json_object_get(result, "candidates"))) {
        w->over = true;
        w->failure = *st;
        if (result) status_set(&w->failure, STATUS_ENVIRONMENT, "the worker's answer is no measurement");
        return;
    }
    const char *const spoils = spoilt(w, told);
    if (spoils) {
        unturn(w, spoils);
        return;
    }
    if (!w->again && is_of_other_plan(w, json_object_get(result, "replay"))) {
        begin_again(w);
        return;
    }
    add_in_place(w, json_object_get(json_object_get(result, "replay"), "in_place"));
    json_t *const facts = json_deep_copy(json_object_get(result, "replay"));
    if (facts && w->facts && json_get_int(json_object_get(facts, "check"), "compared", 0) == 0)
        json_object_set(facts, "check", json_object_get(w->facts, "check")); /* of the first pass */
    if (facts && json_object_get(w->facts, "ends")) json_object_set(facts, "ends", json_object_get(w->facts, "ends"));
    json_decref(w->facts);
    w->facts = facts;
    w->measurement = figures_add(w->measurement, result);
    if (w->measurement && w->pass == 1)
        figures_aim(w->measurement, w->r->options->target_ci > 0 ? w->r->options->target_ci : target);
    w->over = !w->measurement || !facts;
    if (w->over) status_set(&w->failure, STATUS_ENVIRONMENT, "out of memory; free some and run again");
}

static void watch(void *context, supervisor_event_kind event, int device, int job, const char *candidate,
                  const char *variant, const char *text) {
    replay_run *w = context;
    (void)device, (void)job;
    if (event != SUPERVISOR_RESTART) return;
    run_warn(w->r, "the model as a whole: %s%s%s%s", candidate ? candidate : "", candidate ? " " : "",
             candidate && variant ? variant : "", text ? text : "its worker was lost");
}

/* ---- model.json ---- */

static const json_t *row_named(const json_t *m, const char *name) {
    const json_t *rows = json_object_get(m, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (strcmp(json_get_text(json_array_get(rows, k), "name"), name) == 0) return json_array_get(rows, k);
    return NULL;
}

/* Left out by the worker, although it has a report. */
static bool is_out(const replay_run *w, const char *id) { return is_in(json_object_get(w->facts, "left_out"), id); }

static bool runs_default(const replay_run *w, const char *id) {
    return is_in(json_object_get(w->facts, "as_default"), id);
}

/* A group falls with its fusion and with any of its parts. */
static bool is_apart(const replay_run *w, const plan_group *g) {
    const run *r = w->r;
    if (g->fusion < 0 || is_in(json_object_get(w->facts, "apart"), r->fusions.items[g->fusion].id)) return true;
    for (int k = 0; k < g->count; k++)
        if (is_out(w, r->fusions.items[g->fusion].ops[k]->id)) return true;
    return false;
}

/* What the parts of the plan take together: by item, what it takes in a run of the plan's lane. */
static double *planned_us(const replay_run *w) {
    run *r = w->r;
    const plan_run *p = &w->plan.whole;
    double *us = arena_array(&r->arena, double, r->item_count);
    for (int g = 0; g < p->group_count; g++) {
        const plan_group *group = &p->groups[g];
        if (!is_apart(w, group)) {
            us[r->list.count + group->fusion] += run_plan_fused_us(r, &w->plan, group);
            continue;
        }
        for (int k = 0; k < group->count; k++) {
            const operation_occurrence *at = &run_plan_flow(r, &w->plan)->occurrences[p->order[group->first + k]];
            const run_planned *of = at->operation >= 0 ? &w->plan.operations[at->operation] : NULL;
            if (!of || !(of->each_us > 0) || is_out(w, r->list.items[at->operation].id)) continue;
            us[at->operation] +=
                (double)at->times * (runs_default(w, r->list.items[at->operation].id) ? of->default_us : of->each_us);
        }
    }
    return us;
}

static json_t *time_json(const replay_run *w, const json_t *row, bool best, json_builder *b) {
    const json_t *time = json_object_get(row, "time_us");
    const run *r = w->r;
    const double *planned = best ? planned_us(w) : NULL;
    json_t *to = json_new_object(b);
    verdict_sum sum = {0};
    for (int k = 0; k < (best ? r->item_count : r->list.count); k++) {
        const share *s = &w->shares[k];
        const run_planned *of = k < r->list.count ? &w->plan.operations[k] : &w->plan.fusions[k - r->list.count];
        const char *id = r->items[k].operation->id;
        if (best && planned[k] > 0) verdict_sum_add(&sum, planned[k], runs_default(w, id) ? of->default_ci : of->ci);
        if (!best && s->takes_part && !is_out(w, id)) verdict_sum_add(&sum, s->default_us, of->default_ci);
    }
    const double us = json_get_positive(time, "median"), ci = json_get_number(time, "rel_ci95"),
                 sum_ci = verdict_sum_ci(&sum);
    json_put_known(b, to, "time_us", us);
    json_put_known(b, to, "ci", ci);
    json_put_text(b, to, "quality", json_get_text(row, "quality"));
    json_put_real(b, to, "sum_us", sum.us);
    json_put_known(b, to, "sum_ci", sum_ci);
    json_put_known(b, to, "over_sum", us / sum.us);
    json_put_known(b, to, "over_sum_ci", hypot(ci, sum_ci));
    return to;
}

/* What a launch takes beside its kernels: what is left of the run, shared out alike. 0: times hold it already. */
static double between_us(const replay_run *w, int lane) {
    const json_t *best = lane == 0 ? NULL : row_named(w->measurement, "best"); /* NULL: both lanes are the default's */
    const double run_us =
        json_get_positive(json_object_get(best ? best : row_named(w->measurement, "default"), "time_us"), "median");
    double busy_us = 0, launches = 0;
    for (int k = 0; k < w->r->item_count; k++) {
        if (w->shares[k].traced[lane] > 0) busy_us += w->shares[k].in_place[lane];
        launches += w->shares[k].traced[lane];
    }
    return launches > 0 && run_us > busy_us ? (run_us - busy_us) / launches : 0;
}

/* An operation that the plan has in groups alone has no time of its own there, a fusion none by default. */
static json_t *in_place_json(const replay_run *w, json_builder *b) {
    const run *r = w->r;
    const double *planned = planned_us(w), between[] = {between_us(w, 0), between_us(w, 1)};
    json_t *list = json_new_array(b);
    for (int k = 0; k < r->item_count; k++) {
        const share *s = &w->shares[k];
        const char *id = r->items[k].operation->id;
        if ((s->in_place_passes[0] == 0 && s->in_place_passes[1] == 0) || is_out(w, id)) continue;
        json_t *one = json_new_object(b);
        json_put_text(b, one, "operation", id);
        json_put_int(b, one, "count", r->items[k].operation->count);
        if (s->in_place_passes[0] > 0) {
            json_put_real(b, one, "default_us", s->in_place[0] / s->in_place_passes[0] + s->traced[0] * between[0]);
            json_put_real(b, one, "default_sum_us", s->default_us);
        }
        if (s->in_place_passes[1] > 0) {
            json_put_real(b, one, "best_us", s->in_place[1] / s->in_place_passes[1] + s->traced[1] * between[1]);
            json_put_real(b, one, "best_sum_us", planned[k] > 0 ? planned[k] : s->default_us);
        }
        json_push(b, list, one);
    }
    return list;
}

static json_t *left_out_json(const replay_run *w, json_builder *b) {
    json_t *list = json_new_array(b);
    const json_t *of_worker = json_object_get(w->facts, "left_out");
    for (int k = 0; k < w->r->list.count; k++) {
        const share *s = &w->shares[k];
        if (s->takes_part || !s->code) continue;
        json_t *one = json_new_object(b);
        json_put_text(b, one, "operation", w->r->list.items[k].id);
        json_put_text(b, one, "code", s->code);
        json_put_text(b, one, "text", s->text ? s->text : "");
        json_put_int(b, one, "count", w->r->list.items[k].count);
        if (s->least_us > 0) json_put_real(b, one, "least_us", s->least_us);
        json_push(b, list, one);
    }
    for (size_t k = 0; k < json_array_size(of_worker); k++) {
        json_t *one = json_deep_copy(json_array_get(of_worker, k));
        const int at = item_of(w->r, json_get_text(one, "operation"));
        if (at >= 0) json_put_int(b, one, "count", w->r->list.items[at].count);
        if (at >= 0) json_put_real(b, one, "sum_us", w->shares[at].default_us);
        json_push(b, list, one);
    }
    return list;
}

static json_t *passes_json(const json_t *m, json_builder *b) {
    json_t *list = json_new_array(b);
    const json_t *first = json_object_get(row_named(m, "default"), "passes"),
                 *best = json_object_get(row_named(m, "best"), "passes");
    for (size_t k = 0; k < json_array_size(first); k++) {
        json_t *one = json_new_object(b);
        json_put_known(b, one, "default_us", json_get_positive(json_array_get(first, k), "time_us"));
        json_put_known(b, one, "best_us", json_get_positive(json_array_get(best, k), "time_us"));
        json_push(b, list, one);
    }
    return list;
}

/* What runs as what, and on which device: a replay of the same is the same. */
static const char *plan_of(const replay_run *w, int device) {
    run *r = w->r;
    json_builder b = {0};
    status st;
    char key[64];
    regime_key(&r->options->regime, key, sizeof key);
    json_t *both = json_new_array(&b);
    json_push(&b, both, operations_json(w, &b));
    json_push(&b, both, fusions_json(w, &b));
    json_push(&b, both, plan_to_json(&w->plan.whole, &b));
    for (int k = 0; k < r->layouts->region_count; k++) json_push_int(&b, both, w->plan.turned[k]);
    json_t *all = json_finish(&b, both, &st);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    const char *plan = arena_printf(&r->arena, "%s %s %d %s", key, r->devices[device].about->device_instance,
                                    (int)REGIME_METHOD, text ? text : "");
    free(text);
    json_decref(all);
    return arena_printf(&r->arena, "%016llx", (unsigned long long)XXH3_64bits(plan, strlen(plan)));
}

/* Of what, where and how it was measured. */
static json_t *head_json(const replay_run *w, const char *schema, json_builder *b) {
    const run *r = w->r;
    const supervisor_device *d = r->devices[w->device].about;
    char key[64], taken[32];
    json_t *to = json_new_object(b), *device = json_new_object(b);
    regime_key(&r->options->regime, key, sizeof key);
    run_utc(taken, sizeof taken);
    json_put_text(b, to, "schema", schema);
    json_put_text(b, to, "program", version_text);
    json_put_text(b, to, "taken", taken);
    json_put_text(b, to, "model", r->list.model ? r->list.model : "");
    json_put_text(b, device, "name", d->name);
    json_put_text(b, device, "model", d->identity.name);
    json_put_text(b, device, "class", d->device_class);
    json_put_text(b, device, "instance", d->device_instance);
    json_put_text(b, device, "driver", d->identity.driver);
    json_put(b, to, "device", device);
    json_put_text(b, to, "regime", key);
    json_put_int(b, to, "method", REGIME_METHOD);
    if (r->options->plan) json_put_bool(b, to, "given", true);
    return to;
}

/* With what else the plan's groups are of. */
static json_t *groups_json(const replay_run *w, json_builder *b) {
    json_t *to = json_deep_copy(json_object_get(w->facts, "groups"));
    const layouts *l = w->r->layouts;
    int64_t turned = 0;
    for (int n = 0; w->plan.as && n < l->region_count; n++)
        if (w->plan.turned[n]) turned += l->begins[n + 1] - l->begins[n];
    if (to && turned > 0) {
        json_put_int(b, to, "turned", turned);
        json_put_int(b, to, "conversions", w->plan.as->conversions);
    }
    return to;
}

static json_t *model_json(const replay_run *w, json_builder *b) {
    static const char *const copied[] = {"launches", "bound",     "memory",     "check",
                                         "ends",     "nonfinite", "as_default", "apart"};
    static const char *const seen[] = {"clock_mhz", "power_w", "temperature_c", "throttle"};
    const run *r = w->r;
    const json_t *first = row_named(w->measurement, "default"), *best = row_named(w->measurement, "best");
    json_t *to = head_json(w, "ceiling-scout/model/1", b);
    json_put_text(b, to, "plan", plan_of(w, w->device));
    json_put(b, to, "default", time_json(w, first, false, b));
    json_put(b, to, "best", best ? time_json(w, best, true, b) : json_null());
    json_put_known(b, to, "ratio", json_get_positive(best, "ratio"));
    json_put_known(b, to, "ratio_ci", json_get_number(best, "ratio_ci"));
    for (size_t k = 0; k < sizeof seen / sizeof *seen; k++)
        if (json_object_get(first, seen[k])) json_put(b, to, seen[k], json_deep_copy(json_object_get(first, seen[k])));
    json_put_int(b, to, "occurrences", r->list.flow->occurrence_count);
    if (r->list.flow->cuts > 0) json_put_int(b, to, "cuts", r->list.flow->cuts);
    for (size_t k = 0; k < sizeof copied / sizeof *copied; k++)
        if (json_object_get(w->facts, copied[k]))
            json_put(b, to, copied[k], json_deep_copy(json_object_get(w->facts, copied[k])));
    if (json_object_get(w->facts, "groups")) json_put(b, to, "groups", groups_json(w, b));
    json_put(b, to, "left_out", left_out_json(w, b));
    json_put(b, to, "operations", in_place_json(w, b));
    if (between_us(w, 0) > 0) json_put_real(b, to, "between_us", between_us(w, 0));
    if (w->untraced) json_put_text(b, to, "untraced", w->untraced);
    json_put(b, to, "passes", passes_json(w->measurement, b));
    json_put_known(b, to, "seconds", json_get_number(w->measurement, "seconds"));
    return to;
}

static bool path_of(const run *r, const char *name, char *path, size_t room) {
    return r->options->output && !r->options->output_is_file &&
           snprintf(path, room, "%s/%s", r->options->output, name) < (int)room;
}

/* ---- plan.json ---- */

/* What came out wrong, or lost a part, is in no plan: a dispatcher would run it. */
static void settle_plan(replay_run *w) {
    run *r = w->r;
    const json_t *apart = json_object_get(w->facts, "apart");
    const plan_run *p = &w->plan.whole;
    bool *splits = arena_array(&r->arena, bool, p->group_count);
    for (size_t k = 0; k < json_array_size(apart); k++) {
        const json_t *one = json_array_get(apart, k);
        const int at = item_of(r, json_get_text(one, "operation"));
        if (at >= r->list.count)
            run_plan_drop(r, &w->plan, at - r->list.count, json_get_text(one, "code"), json_get_text(one, "text"));
    }
    for (int g = 0; g < p->group_count; g++) {
        splits[g] = p->groups[g].fusion >= 0 && is_apart(w, &p->groups[g]);
        if (splits[g])
            run_plan_drop(r, &w->plan, p->groups[g].fusion, "not_asked", "a part of it took no part in the replay");
    }
    run_plan_split(r, &w->plan, splits);
    for (int k = 0; k < r->list.count; k++) {
        run_planned *of = &w->plan.operations[k];
        if (is_out(w, r->list.items[k].id)) run_plan_leave_out(r, &w->plan, k);
        if (!of->name || !runs_default(w, r->list.items[k].id)) continue;
        of->name = NULL;
        of->each_us = of->default_us;
    }
    run_plan_count(r, &w->plan);
}

/* Rounding apart, which a deep model's made-up weights may make more of. */
static const double most_end_error = 0.25;

static bool ends_elsewhere(const replay_run *w) {
    const json_t *ends = json_object_get(w->facts, "ends");
    return ends && !(json_get_number(ends, "error") <= most_end_error);
}

static json_t *plan_json(replay_run *w, json_builder *b) {
    const json_t *best = row_named(w->measurement, "best");
    const double ratio = json_get_positive(best, "ratio"), ci = json_get_number(best, "ratio_ci");
    json_t *to = head_json(w, "ceiling-scout/plan/1", b), *replayed = json_new_object(b);
    json_put_known(b, replayed, "ratio", ratio);
    json_put_known(b, replayed, "ratio_ci", ci);
    json_put_bool(b, replayed, "proven", ratio * (1 + ci) < 1 && !ends_elsewhere(w));
    json_put(b, to, "replay", replayed);
    run_plan_to_json(w->r, &w->plan, to, b);
    return to;
}

/* One that an earlier run has written. */
static void forget(run *r, int file) {
    const json_limits limits = {.bytes = RUN_BYTES};
    char path[4096];
    status st = {0};
    if (!path_of(r, files[file], path, sizeof path) || access(path, F_OK) != 0 || files_is_link(path)) return;
    json_t *old = json_read(path, &limits, &st);
    if (old && json_check_schema(old, kinds[file], 1, path, &st)) unlink(path);
    if (!old) run_warn_once(r, arena_printf(&r->arena, "%s; it is of an earlier run, so remove it", st.text));
    json_decref(old);
}

/* ---- saving ---- */

/* All of them are made before the first is written, so that none stands beside one of another run. NULL: there is
 * nothing to tell. model.json tells of the plan that ran, plan.json of what stood the test. */
static bool make_files(replay_run *w, json_t *made[FILES], status *st) {
    json_builder b = {0};
    const bool traced = json_array_size(json_object_get(w->trace, "default")) > 0;
    made[MODEL_FILE] = json_finish(&b, model_json(w, &b), st);
    if (!made[MODEL_FILE]) return false;
    settle_plan(w);
    b = (json_builder){0};
    made[PLAN_FILE] = json_finish(&b, plan_json(w, &b), st);
    if (!made[PLAN_FILE] || !traced) return made[PLAN_FILE] != NULL;
    b = (json_builder){0};
    made[TRACE_FILE] = json_finish(&b, run_trace_json(w->trace, w->r->list.model, &b), st);
    return made[TRACE_FILE] != NULL;
}

static bool save_files(replay_run *w, json_t *const made[FILES], status *st) {
    char path[4096];
    for (int k = 0; k < FILES; k++) {
        if (!path_of(w->r, files[k], path, sizeof path)) continue;
        if (!made[k])
            forget(w->r, k);
        else if (!json_save(path, made[k], st))
            return false;
    }
    return true;
}

/* What ran by its report and failed here has no place in a success. */
static void judge(const replay_run *w, status *st) {
    static const char *const lists[] = {"as_default", "apart"};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_t *list = json_object_get(w->facts, lists[k]);
        for (size_t n = 0; n < json_array_size(list); n++) {
            const json_t *one = json_array_get(list, n);
            if (!reason_bad(json_get_text(one, "code"))) continue;
            run_warn(w->r, "the model as a whole: %s failed in it: %s", json_get_text(one, "operation"),
                     json_get_text(one, "text"));
            st->code = STATUS_INCOMPLETE;
        }
    }
}

static bool save(replay_run *w, status *st) {
    run *r = w->r;
    json_t *made[FILES] = {NULL};
    if (!r->options->output || r->options->output_is_file) return true;
    const bool good = make_files(w, made, st) && save_files(w, made, st);
    if (good && !r->options->quiet) {
        show_whole(stdout, &r->arena, made[MODEL_FILE]);
        show_plan(stdout, &r->arena, made[PLAN_FILE]);
    }
    for (int k = 0; k < FILES; k++) json_decref(made[k]);
    if (good) judge(w, st);
    return good;
}

/* ---- all of it ---- */

/* Nothing was measured since, and it is there. */
static bool is_there(const replay_run *w) {
    run *const r = w->r;
    char path[4096];
    const json_limits limits = {.bytes = RUN_BYTES};
    status st = {0};
    for (int k = 0; k < r->item_count; k++)
        if (r->items[k].source == RUN_MEASURED) return false;
    if (!path_of(r, files[MODEL_FILE], path, sizeof path) || access(path, F_OK) != 0) return false;
    json_t *old = json_read(path, &limits, &st);
    const bool whole = old && json_check_schema(old, "model", 1, path, &st);
    bool same = false;
    for (int k = 0; whole && k < r->device_count; k++)
        same = same || strcmp(json_get_text(old, "plan"), plan_of(w, k)) == 0;
    if (same && !r->options->quiet) show_whole(stdout, &r->arena, old);
    json_decref(old);
    return same;
}

/* Seconds that a first pass takes at least. */
static double expected_s(const replay_run *w) {
    double us = 0;
    for (int k = 0; k < w->r->list.count; k++) us += w->shares[k].default_us;
    return 1e-6 * us * pass_runs + (double)w->r->list.memory.weight_bytes / fill_bytes_per_s;
}

bool run_replay(run *r, double end_s, bool alone, status *st) {
    const bool least = alone || r->budget.end == 0; /* without a budget the least of passes is made */
    replay_run w = {.r = r, .end_s = end_s, .least = least, .device = -1};
    char path[4096];
    int parts = 0;
    for (int k = 0; k < FILES; k++)
        if (path_of(r, files[k], path, sizeof path) && run_files_refuse_link(path, st)) return false;
    read_shares(&w);
    for (int k = 0; k < r->list.count; k++) parts += w.shares[k].takes_part;
    if (r->list.flow->occurrence_count > RUN_MOST_OCCURRENCES)
        return status_fail(st, STATUS_INPUT, "its %d occurrences are more than the %d that a replay takes",
                           r->list.flow->occurrence_count, (int)RUN_MOST_OCCURRENCES);
    if (parts == 0) return status_fail(st, STATUS_INPUT, "no operation has a report to replay; measure them first");
    if (!r->options->plan)
        run_plan_choose(r, &w.plan);
    else if (!run_plan_read(r, r->options->plan, &w.plan, st))
        return false;
    if (!alone && is_there(&w)) return true;
    if (!alone) run_replay_forget(r);
    if (!least && run_now() + expected_s(&w) > end_s) {
        r->no_whole = "its budget has no time left for that; scout_batch --replay does it alone";
        return true;
    }
    const double waited_s = r->wait.waited_s;
    if (!run_queue_lock(r, st)) return false;
    w.end_s += r->wait.waited_s - waited_s;
    const bool good = supervisor_run(r->supervisor, next, done, watch, &w, r->stop, st) && *r->stop == 0;
    run_queue_rest(r);
    show_progress_end(&r->progress);
    if (good && !w.measurement) *st = w.failure;
    if (!good && *r->stop != 0) status_set(st, STATUS_INCOMPLETE, "stopped; the model was not measured as a whole");
    const bool whole = good && w.measurement &&
                       json_get_positive(json_object_get(row_named(w.measurement, "default"), "time_us"), "median") > 0;
    const bool saved = whole && save(&w, st);
    if (whole && w.failure.code != STATUS_OK)
        run_warn(r, "the model as a whole: pass %d failed: %s", w.pass, w.failure.text);
    json_decref(w.measurement);
    json_decref(w.facts);
    json_decref(w.trace);
    return saved;
}

void run_replay_forget(run *r) {
    for (int k = 0; k < FILES; k++) forget(r, k);
}

/* ---- --replay ---- */

/* Rows and operations are those of the run that filled the folder, and so are its device and regime. */
static bool read_story(const char *folder, const json_t *story, options *o, char *ops, size_t room, status *st) {
    const json_t *were = json_object_get(story, "options");
    const char *named = json_get_text_or_null(were, "operations");
    if (snprintf(ops, room, "%s/ops.json", folder) >= (int)room)
        return status_fail(st, STATUS_USAGE, "--replay: the folder's name is too long");
    if (access(ops, F_OK) != 0 && named) snprintf(ops, room, "%s", named);
    if (access(ops, F_OK) != 0)
        return status_fail(st, STATUS_INPUT,
                           "%s: has no ops.json, and its run.json names none that is there; give the folder "
                           "of a model that was measured",
                           folder);
    o->mode = OPTIONS_BATCH;
    o->ops_path = ops;
    o->output = folder;
    o->resume = true;
    if (!story) return true;
    const char *under = json_get_text(story, "regime");
    if (!regime_from_key(under, &o->regime))
        return status_fail(st, STATUS_INPUT, "%s/run.json: its regime \"%.40s\" is not known", folder, under);
    if (strcmp(o->devices, "auto") == 0)
        o->devices = json_get_text(json_array_get(json_object_get(story, "devices"), 0), "name");
    o->precision = json_get_text_or_null(were, "precision");
    o->exhaustive = json_is_true(json_object_get(were, "exhaustive"));
    const double threshold = json_get_number(were, "weight_threshold");
    if (threshold > 0) o->weight_threshold = threshold;
    return true;
}

static void work(run *r, status *st) {
    if (!run_set_up(r, st)) return;
    run_files_resume(r);
    if (!r->list.flow) {
        status_set(st, STATUS_INPUT, "%s: tells no dataflow; extract the operations again", r->options->ops_path);
        return;
    }
    (void)run_replay(r, r->budget.end > 0 ? r->budget.end : INFINITY, true, st);
}

status_code run_replay_folder(const options *o, const volatile int *stop, status *st) {
    const json_limits limits = {.bytes = RUN_BYTES};
    char path[4096], ops[4096];
    options of = *o;
    json_t *story = NULL;
    if (snprintf(path, sizeof path, "%s/run.json", o->replay) >= (int)sizeof path)
        return status_set(st, STATUS_USAGE, "--replay: the folder's name is too long");
    if (access(path, F_OK) == 0) {
        story = json_read(path, &limits, st);
        if (!story || !json_check_schema(story, "run", 1, path, st)) {
            json_decref(story);
            return st->code;
        }
    }
    if (read_story(o->replay, story, &of, ops, sizeof ops, st)) (void)run_whole(&of, stop, MOST_MEMORY, work, st);
    json_decref(story);
    return st->code;
}
