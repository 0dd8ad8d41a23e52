/* Owns what is told of a model as a whole: model.json, the plan that it ran beside the defaults, plan.json, and what a
 * tracer saw of both, trace.json. */
#include "scout/run/run_replay.h"

#include "common/version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { RUN_BYTES = 64 << 20 };
enum { MODEL_FILE, PLAN_FILE, TRACE_FILE, FILES };
static const char *const files[] = {"model.json", "plan.json", "trace.json"};
static const char *const kinds[] = {"model", "plan", "trace"}; /* of the schemas */

int run_item_of(const run *r, const char *id) {
    for (int k = 0; k < r->item_count; k++)
        if (strcmp(r->items[k].operation->id, id) == 0) return k;
    return -1;
}

bool run_is_among(const json_t *list, const char *id) {
    for (size_t k = 0; k < json_array_size(list); k++)
        if (strcmp(json_get_text(json_array_get(list, k), "operation"), id) == 0) return true;
    return false;
}

/* ---- model.json ---- */

const json_t *run_replay_row(const json_t *m, const char *name) {
    const json_t *rows = json_object_get(m, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (strcmp(json_get_text(json_array_get(rows, k), "name"), name) == 0) return json_array_get(rows, k);
    return NULL;
}

/* Left out by the worker, although it has a report. */
static bool is_out(const replay_run *w, const char *id) {
    return run_is_among(json_object_get(w->facts, "left_out"), id);
}

static bool runs_default(const replay_run *w, const char *id) {
    return run_is_among(json_object_get(w->facts, "as_default"), id);
}

/* A group falls with its fusion and with any of its parts. */
static bool is_apart(const replay_run *w, const plan_group *g) {
    const run *r = w->r;
    if (g->fusion < 0 || run_is_among(json_object_get(w->facts, "apart"), r->fusions.items[g->fusion].id)) return true;
    for (int k = 0; k < g->count; k++)
        if (is_out(w, r->fusions.items[g->fusion].ops[k]->id)) return true;
    return false;
}

/* What a group takes in a run, by the time of what does all at once: that is nearer to what it takes in place than its
 * ratio times its parts. (A plan is chosen by the latter: what is weighed there is whether to fuse these parts.) */
static double group_us(const run *r, const run_plan *plan, const plan_group *group) {
    const run_planned *of = &plan->fusions[group->fusion];
    const double times = (double)run_plan_flow(r, plan)->occurrences[plan->whole.order[group->first]].times;
    return of->each_us > 0 ? times * run_plan_launch_us(of->each_us, of->fetch_us) : run_plan_fused_us(r, plan, group);
}

/* What the parts of a plan take together: by item, what it takes in a run of the plan's lane. */
static double *planned_us(const replay_run *w, const run_plan *plan) {
    run *r = w->r;
    const plan_run *p = &plan->whole;
    double *us = arena_array(&r->arena, double, r->item_count);
    for (int g = 0; g < p->group_count; g++) {
        const plan_group *group = &p->groups[g];
        if (!is_apart(w, group)) {
            us[r->list.count + group->fusion] += group_us(r, plan, group);
            continue;
        }
        for (int k = 0; k < group->count; k++) {
            const operation_occurrence *at = &run_plan_flow(r, plan)->occurrences[p->order[group->first + k]];
            const run_planned *of = at->operation >= 0 ? &plan->operations[at->operation] : NULL;
            if (!of || !(of->each_us > 0) || is_out(w, r->list.items[at->operation].id)) continue;
            const bool first = runs_default(w, r->list.items[at->operation].id);
            us[at->operation] += (double)at->times * (first ? run_plan_launch_us(of->default_us, of->default_fetch_us)
                                                            : run_plan_launch_us(of->each_us, of->fetch_us));
        }
    }
    return us;
}

/* Each part was timed at the clock of its own load, where the device told that: by this it takes more or less at the
 * clock that the model holds. Fetching does not go with it. */
static double by_clock(const run_item *i, double mhz) {
    const double own_mhz = json_get_positive(i->measurement, "clock_mhz"),
                 slope = json_get_number(i->measurement, "clock_slope");
    return own_mhz > 0 && slope > 0 ? pow(own_mhz / mhz, fmin(slope, 1)) : 1;
}

/* What the parts of a lane take at the clock that the model holds. 0: that is not known. */
static double at_clock_us(const replay_run *w, const json_t *row, bool best) {
    const run *r = w->r;
    const double mhz = json_get_positive(row, "clock_mhz");
    if (!(mhz > 0)) return 0;
    run_planned *scaled = arena_array(&w->r->arena, run_planned, r->item_count);
    run_plan plan = w->plan;
    plan.operations = scaled;
    plan.fusions = scaled + r->list.count;
    double us = 0;
    for (int k = 0; k < r->item_count; k++) {
        const bool alone = k < r->list.count;
        const share *s = &w->shares[k];
        const double by = by_clock(&r->items[k], mhz);
        scaled[k] = alone ? w->plan.operations[k] : w->plan.fusions[k - r->list.count];
        scaled[k].each_us *= by;
        scaled[k].default_us *= by;
        if (!best && alone && s->takes_part && !is_out(w, r->items[k].operation->id))
            us += by * (s->default_us - s->fetch_us) + s->fetch_us;
    }
    const double *planned = best ? planned_us(w, &plan) : NULL;
    for (int k = 0; best && k < r->item_count; k++) us += planned[k];
    return us;
}

/* Two looks at the same differ by no more than this in nine of ten. A host's tells what the operation before does as a
 * rule, and not what this one does. */
static const double fetch_ci = 0.3, fetch_host_ci = 1;

static json_t *time_json(const replay_run *w, const json_t *row, bool best, json_builder *b) {
    const json_t *time = json_object_get(row, "time_us");
    const run *r = w->r;
    const double *planned = best ? planned_us(w, &w->plan) : NULL;
    json_t *to = json_new_object(b);
    verdict_sum sum = {0};
    double fetch_us = 0;
    for (int k = 0; k < (best ? r->item_count : r->list.count); k++) {
        const share *s = &w->shares[k];
        const run_planned *of = k < r->list.count ? &w->plan.operations[k] : &w->plan.fusions[k - r->list.count];
        const char *id = r->items[k].operation->id;
        if (best && planned[k] > 0) verdict_sum_add(&sum, planned[k], runs_default(w, id) ? of->default_ci : of->ci);
        if (best || !s->takes_part || is_out(w, id)) continue;
        verdict_sum_add(&sum, s->default_us - s->fetch_us, of->default_ci);
        if (s->fetch_us > 0) verdict_sum_add(&sum, s->fetch_us, run_on_host(r) ? fetch_host_ci : fetch_ci);
        fetch_us += s->fetch_us;
    }
    const double us = json_get_positive(time, "median"), ci = json_get_number(time, "rel_ci95"),
                 sum_ci = verdict_sum_ci(&sum);
    json_put_known(b, to, "time_us", us);
    json_put_known(b, to, "ci", ci);
    json_put_text(b, to, "quality", json_get_text(row, "quality"));
    json_put_real(b, to, "sum_us", sum.us);
    json_put_known(b, to, "sum_ci", sum_ci);
    json_put_real(b, to, "sum_unknown", verdict_sum_unknown(&sum));
    if (fetch_us > 0) json_put_real(b, to, "fetch_us", fetch_us);
    json_put_known(b, to, "over_sum", us / sum.us);
    json_put_known(b, to, "over_sum_ci", hypot(ci, sum_ci));
    const double at_us = at_clock_us(w, row, best);
    if (at_us > 0) json_put_real(b, to, "at_clock_us", at_us);
    return to;
}

/* What a launch takes beside its kernels: what is left of the run, shared out alike. 0: times hold it already. */
static double between_us(const replay_run *w, int lane) {
    const json_t *best =
        lane == 0 ? NULL : run_replay_row(w->measurement, "best"); /* NULL: both lanes are the default's */
    const double run_us = json_get_positive(
        json_object_get(best ? best : run_replay_row(w->measurement, "default"), "time_us"), "median");
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
    const double *planned = planned_us(w, &w->plan), between[] = {between_us(w, 0), between_us(w, 1)};
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
        const int at = run_item_of(w->r, json_get_text(one, "operation"));
        if (at >= 0) json_put_int(b, one, "count", w->r->list.items[at].count);
        if (at >= 0) json_put_real(b, one, "sum_us", w->shares[at].default_us);
        json_push(b, list, one);
    }
    return list;
}

static json_t *passes_json(const json_t *m, json_builder *b) {
    json_t *list = json_new_array(b);
    const json_t *first = json_object_get(run_replay_row(m, "default"), "passes"),
                 *best = json_object_get(run_replay_row(m, "best"), "passes");
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
    json_push(&b, both, run_replay_operations(w, &b));
    json_push(&b, both, run_replay_fusions(w, &b));
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
    static const char *const copied[] = {"launches", "bound",     "memory",     "check", "ends",
                                         "exact",    "nonfinite", "as_default", "apart"};
    static const char *const seen[] = {"clock_mhz", "power_w", "temperature_c", "throttle"};
    const run *r = w->r;
    const json_t *first = run_replay_row(w->measurement, "default"), *best = run_replay_row(w->measurement, "best");
    json_t *to = head_json(w, "ceiling-scout/model/1", b);
    json_put_text(b, to, "plan", plan_of(w, w->device));
    json_put(b, to, "default", time_json(w, first, false, b));
    json_put(b, to, "best", best ? time_json(w, best, true, b) : json_null());
    json_put_known(b, to, "ratio", json_get_positive(best, "ratio"));
    json_put_known(b, to, "ratio_ci", json_get_number(best, "ratio_ci"));
    if (best && run_model_ends_elsewhere(w)) json_put_bool(b, to, "elsewhere", true);
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
    json_put(b, to, "spent_s", json_deep_copy(json_object_get(w->measurement, "spent_s")));
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
        const int at = run_item_of(r, json_get_text(one, "operation"));
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
        if (of->name && runs_default(w, r->list.items[k].id)) run_plan_by_default(of);
    }
    run_plan_count(r, &w->plan);
}

/* Rounding apart, which a deep model's made-up weights may make more of. How much of it is rounding fp32 tells. */
static const double most_end_error = 0.25;

bool run_model_ends_elsewhere(const replay_run *w) {
    const json_t *ends = json_object_get(w->facts, "ends"), *exact = json_object_get(w->facts, "exact");
    if (json_object_get(exact, "worse")) return json_is_true(json_object_get(exact, "worse"));
    return ends && !(json_get_number(ends, "error") <= most_end_error);
}

static json_t *plan_json(replay_run *w, json_builder *b) {
    const json_t *best = run_replay_row(w->measurement, "best");
    const double ratio = json_get_positive(best, "ratio"), ci = json_get_number(best, "ratio_ci");
    json_t *to = head_json(w, "ceiling-scout/plan/1", b), *replayed = json_new_object(b);
    json_put_known(b, replayed, "ratio", ratio);
    json_put_known(b, replayed, "ratio_ci", ci);
    json_put_bool(b, replayed, "proven", ratio * (1 + ci) < 1 && !run_model_ends_elsewhere(w));
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

bool run_model_save(replay_run *w, status *st) {
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

bool run_model_is_there(const replay_run *w) {
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

bool run_model_refuse_links(const run *r, status *st) {
    char path[4096];
    for (int k = 0; k < FILES; k++)
        if (path_of(r, files[k], path, sizeof path) && run_files_refuse_link(path, st)) return true;
    return false;
}

void run_replay_forget(run *r) {
    for (int k = 0; k < FILES; k++) forget(r, k);
}
