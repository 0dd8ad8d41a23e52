/* The model as a whole: the passes of its replay. At the end of a run over a whole model, or alone by --replay. */
#include "scout/run/run_replay.h"

#include "scout/measure/figures.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_MEMORY = (size_t)2 << 30;
static const int64_t first_seed = 7919;
enum { LEAST_PASSES = 4, IN_PLACE_PASSES = 3, RUN_BYTES = 64 << 20 };
static const double target = 0.01, hold_s = 1.5;
/* Roughly: runs of the model that a first pass takes, and at least; a host's pace of filling weights. */
static const double pass_runs = 25, least_runs = 15, fill_bytes_per_s = 0.5e9;
/* A device fills fast. What it waits for are libraries, plans, and the blocks of each pass. */
static const double device_fill_bytes_per_s = 10e9, libraries_s = 0.8, plan_s = 0.012, plan_alone_s = 0.02,
                    blocks_s = 0.35;

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
        s->fetch_us = f.baseline_fetch_us > 0 ? count * f.baseline_fetch_us : 0;
        s->default_us = count * f.baseline_us + s->fetch_us;
    }
}

static json_t *row_json(const char *name, const char *variant, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "name", name);
    json_put_text(b, to, "variant", variant);
    return to;
}

json_t *run_replay_operations(const replay_run *w, json_builder *b) {
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
json_t *run_replay_fusions(const replay_run *w, json_builder *b) {
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

/* ---- looks ---- */

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

static void add_in_place(replay_run *w, const json_t *list) {
    static const char *const launches[] = {"default_launches", "best_launches"};
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const int at = run_item_of(w->r, json_get_text(one, "operation"));
        const double us[] = {json_get_positive(one, "default_us"), json_get_positive(one, "best_us")};
        for (int lane = 0; at >= 0 && lane < 2; lane++) {
            if (!(us[lane] > 0)) continue;
            w->shares[at].in_place[lane] += us[lane];
            w->shares[at].in_place_passes[lane]++;
            w->shares[at].traced[lane] = fmax(json_get_number(one, launches[lane]), 0);
        }
    }
}

static const char *why_untraced(const replay_run *w, const status *st) {
    const char *not = json_get_text_or_null(w->trace, "not");
    if (not ) return not ;
    if (json_array_size(json_object_get(w->trace, "default")) > 0) return NULL;
    return st->code != STATUS_OK && st->text[0] ? arena_printf(&w->r->arena, "%s", st->text)
                                                : "its tracer saw no kernel";
}

/* A host tells its times in place as it goes. */
static bool wants_trace(const replay_run *w) {
    return run_now() < w->end_s && !json_is_true(json_object_get(w->measurement, "host"));
}

static void take_trace(replay_run *w, const json_t *told, const status *st) {
    add_in_place(w, json_object_get(told, "in_place"));
    w->trace = json_deep_copy(json_object_get(told, "trace"));
    w->untraced = why_untraced(w, st);
}

static bool wants_exact(const replay_run *w) {
    return json_object_get(w->facts, "ends") && (w->alone || run_model_ends_elsewhere(w));
}

static void set_not_exact(replay_run *w, const char *why) {
    json_object_set_new(w->facts, "exact", json_pack("{s:s}", "not", why));
}

static void take_exact(replay_run *w, const json_t *told, const status *st) {
    const json_t *exact = json_object_get(told, "exact");
    if (exact && !w->lost && !is_of_other_plan(w, told))
        json_object_set_new(w->facts, "exact", json_deep_copy(exact));
    else
        set_not_exact(w, w->lost ? w->lost : st->text[0] ? st->text : "it ran as another plan");
}

/* What a run is asked once, in this order, when all is timed: what fails in fp32 is no fault of what was timed, and a
 * tracer may leave launches dearer than they were. The plan is judged by fp32, so that is asked however late it is. */
static const struct {
    const char *title, *asks;
    bool (*wants)(const replay_run *w);
    void (*take)(replay_run *w, const json_t *told, const status *st);
} looks[] = {
    {NULL, NULL, NULL, NULL}, /* a pass */
    {"what fp32 makes of it", "exact", wants_exact, take_exact},
    {"what each kernel takes", "trace", wants_trace, take_trace},
};
enum { LOOKS = sizeof looks / sizeof looks[0] };

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
    json_put_int(&b, to, "seed", w->look > 0 ? first_seed : w->pass * first_seed); /* looks see what pass 1 saw */
    json_put_text(&b, to, "regime", key);
    json_put_bool(&b, to, "exhaustive", r->search.exhaustive);
    json_put_int(&b, to, "workspace_limit", (int64_t)r->search.workspace_limit);
    if (d->ceilings) {
        json_put_real(&b, to, "plateau_bytes", d->ceilings->plateau_bytes);
        json_put_real(&b, to, "clock_fall", d->ceilings->clock_fall);
    }
    if (w->pass == 1 || figures_hold_again(w->measurement)) json_put_real(&b, to, "hold_s", hold_s);
    json_put_bool(&b, to, "in_place", w->pass > 1 && w->pass <= 1 + IN_PLACE_PASSES);
    if (looks[w->look].asks) json_put_bool(&b, to, looks[w->look].asks, true);
    if (w->pass == 1 && w->look == 0 && run_job_is_ahead(r, d))
        json_put_bool(&b, to, "ahead", true); /* it opens its plans */
    json_put(&b, to, "exclusions", run_faults_exclusions(r, &b));
    json_put(&b, to, "flow", operation_flow_to_json(r->list.flow, &b));
    if (w->plan.as) json_put(&b, to, "planned", operation_flow_to_json(w->plan.as->flow, &b));
    if (w->plan.as) json_put(&b, to, "from", from_json(w->plan.as, &b));
    json_put(&b, to, "operations", run_replay_operations(w, &b));
    json_put(&b, to, "fusions", run_replay_fusions(w, &b));
    json_put(&b, to, "plan", plan_to_json(&w->plan.whole, &b));
    return json_finish(&b, to, &w->failure);
}

static bool is_enough(const replay_run *w) {
    const double next_s = w->took_s + (figures_hold_again(w->measurement) ? hold_s : 0);
    const bool more = w->pass > 0 && w->pass < LEAST_PASSES;
    const bool timely = run_now() + next_s < (more ? w->least_end_s : w->end_s) || (w->least && w->pass < LEAST_PASSES);
    const size_t passes = (size_t)w->pass;
    if (!timely && w->pass > 0) return true;
    if (w->pass < LEAST_PASSES) return false;
    return passes >= estimate_last_look() || (estimate_look(passes) && !figures_wide(w->measurement));
}

/* The next one that is wanted; 0: none is. */
static int next_look(const replay_run *w) {
    int k = w->look + 1;
    while (k < LOOKS && !(w->measurement && looks[k].wants(w))) k++;
    return k < LOOKS ? k : 0;
}

static json_t *next(void *context, int device, int *job) {
    replay_run *w = context;
    char what[64];
    *job = 0;
    if (w->over || *w->r->stop || (w->device >= 0 && w->device != device)) return NULL;
    if (is_enough(w)) {
        w->look = next_look(w);
        w->over = w->look == 0;
        if (w->over) return NULL;
    }
    w->device = device;
    if (w->look == 0) w->pass++;
    w->begun_s = run_now();
    if (w->look > 0)
        snprintf(what, sizeof what, "%s", looks[w->look].title);
    else
        snprintf(what, sizeof what, "pass %d", w->pass);
    show_progress_set(&w->r->progress, &(show_progress_state){.part = NAN,
                                                              .left_s = NAN,
                                                              .phases = "the model as a whole",
                                                              .phase = "the model as a whole",
                                                              .what = what});
    return job_of(w, &w->r->devices[device]);
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

/* An occurrence of a turned region, or a conversion, that does not run: both lanes would no longer do the same work. */
static const char *spoilt(const replay_run *w, const json_t *facts) {
    const run *r = w->r;
    const json_t *out = json_object_get(facts, "left_out");
    const layouts_run *as = w->plan.as;
    for (int k = 0; as && json_array_size(out) > 0 && k < as->flow->occurrence_count; k++) {
        const int item = as->flow->occurrences[k].operation, from = as->from[k];
        const int file = from >= 0 ? r->list.flow->occurrences[from].operation : item;
        if (item < 0 || (from >= 0 && item == file)) continue; /* idle, or in both lanes alike */
        if (item >= 0 && run_is_among(out, r->list.items[item].id)) return r->list.items[item].id;
        if (file >= 0 && run_is_among(out, r->list.items[file].id)) return r->list.items[file].id;
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

static void done(void *context, int device, int job, const json_t *result, const status *st) {
    replay_run *w = context;
    const json_t *told = json_object_get(result, "replay");
    (void)device, (void)job;
    if (looks[w->look].take) { /* without it, everything is known but for that */
        looks[w->look].take(w, told, st);
        return;
    }
    w->took_s = run_now() - w->begun_s;
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
    /* Most of a first pass opens what all passes run, and checks it. On a host later ones also time what is in place.
     */
    if (w->pass > 1 || !json_is_true(json_object_get(result, "host")))
        w->took_s = fmin(w->took_s, json_get_number(result, "again_s"));
    add_in_place(w, json_object_get(json_object_get(result, "replay"), "in_place"));
    json_t *const facts = json_deep_copy(json_object_get(result, "replay"));
    if (facts && w->facts && json_get_int(json_object_get(facts, "check"), "compared", 0) == 0)
        json_object_set(facts, "check", json_object_get(w->facts, "check")); /* of the first pass */
    if (facts && json_object_get(w->facts, "ends"))                          /* of the first pass alone */
        json_object_set(facts, "ends", json_object_get(w->facts, "ends"));
    if (facts && json_object_get(facts, "trace")) { /* of a host, which tells it as it goes: the last one */
        json_decref(w->trace);
        w->trace = json_incref(json_object_get(facts, "trace"));
        json_object_del(facts, "trace");
    }
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
    if (w->look > 0) w->lost = arena_printf(&w->r->arena, "%s", text ? text : "its worker was lost");
    run_warn(w->r, "the model as a whole: %s%s%s%s", candidate ? candidate : "", candidate ? " " : "",
             candidate && variant ? variant : "", text ? text : "its worker was lost");
}

/* ---- all of it ---- */

static double seconds_of(const run *r, double model_us, double runs, int passes) {
    const double bytes = (double)r->list.memory.weight_bytes;
    int plans = 0;
    if (run_on_host(r)) return 1e-6 * model_us * runs + bytes / fill_bytes_per_s;
    for (int k = 0; k < r->list.count; k++) plans += r->list.items[k].count > 0 && !r->list.items[k].skip_code;
    const double each_s = run_job_is_ahead(r, &r->devices[0]) ? plan_s : plan_alone_s;
    return libraries_s + each_s * plans +
           passes * (blocks_s + 1e-6 * model_us * runs + bytes / device_fill_bytes_per_s);
}

double run_replay_expected_s(const run *r, double model_us, bool all) {
    return all ? seconds_of(r, model_us, pass_runs, LEAST_PASSES) : seconds_of(r, model_us, least_runs, 1);
}

static double default_us(const replay_run *w) {
    double us = 0;
    for (int k = 0; k < w->r->list.count; k++) us += w->shares[k].default_us;
    return us;
}

bool run_replay(run *r, double end_s, bool alone, status *st) {
    const bool least = alone || r->budget.end == 0; /* without a budget the least of passes is made */
    replay_run w = {.r = r, .end_s = end_s, .least = least, .alone = alone, .device = -1};
    int parts = 0;
    if (run_model_refuse_links(r, st)) return false;
    read_shares(&w);
    for (int k = 0; k < r->list.count; k++) parts += w.shares[k].takes_part;
    if (r->list.flow->occurrence_count > RUN_MOST_OCCURRENCES)
        return status_fail(st, STATUS_INPUT, "its %d occurrences are more than the %d that a replay takes",
                           r->list.flow->occurrence_count, (int)RUN_MOST_OCCURRENCES);
    if (parts == 0)
        return status_fail(st, STATUS_INPUT, "%s",
                           alone ? "no operation has a report to replay; measure them first"
                                 : "none of its operations has a figure; their lines say why");
    if (!r->options->plan)
        run_plan_choose(r, &w.plan);
    else if (!run_plan_read(r, r->options->plan, &w.plan, st))
        return false;
    if (!alone && run_model_is_there(&w)) return true;
    if (!alone) run_replay_forget(r);
    w.least_end_s = end_s + budget_replay_more(&r->budget);
    if (!least && run_now() + seconds_of(r, default_us(&w), least_runs, 1) > w.least_end_s) {
        r->no_whole = "its budget has no time left for that; scout_batch --replay does it alone";
        return true;
    }
    const double waited_s = r->wait.waited_s;
    if (!run_queue_lock(r, st)) return false;
    w.end_s += r->wait.waited_s - waited_s;
    w.least_end_s += r->wait.waited_s - waited_s;
    const bool good = supervisor_run(r->supervisor, next, done, watch, &w, r->stop, st) && *r->stop == 0;
    run_queue_rest(r);
    show_progress_end(&r->progress);
    if (good && !w.measurement) *st = w.failure;
    const bool timed = good || w.look > 0; /* what comes behind the passes takes nothing from them */
    if (!timed && *r->stop != 0) status_set(st, STATUS_INCOMPLETE, "stopped; the model was not measured as a whole");
    if (w.facts && wants_exact(&w) && !json_object_get(w.facts, "exact"))
        set_not_exact(&w, w.failure.code != STATUS_OK ? w.failure.text : "the run ended before it");
    const bool whole =
        timed && w.measurement &&
        json_get_positive(json_object_get(run_replay_row(w.measurement, "default"), "time_us"), "median") > 0;
    const bool saved = whole && run_model_save(&w, st);
    if (whole && w.failure.code != STATUS_OK)
        run_warn(r, "the model as a whole: pass %d failed: %s", w.pass, w.failure.text);
    json_decref(w.measurement);
    json_decref(w.facts);
    json_decref(w.trace);
    return saved;
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
