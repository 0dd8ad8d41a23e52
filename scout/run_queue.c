/* Owns the order of a run's jobs: ceilings before operations, what is cached not at all, the heaviest first, each with
 * its part of the budget. One queue for all devices. */
#include "scout/run_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATION_SECONDS = 10, EXHAUSTIVE_SECONDS = 120, CEILINGS_JOB = 1 << 24 };
static const double LEAST_SECONDS = 0.2; /* less than that measures nothing */
static const double TIMING_SHARE = 0.8;  /* of the usual seconds, where preparing may go on beyond them */

/* ---- the cache ---- */

/* A measurement that was given less time than usual is kept apart, and serves only those that have no more. */
static char *key_of(run *r, const run_item *i, bool cut) {
    char regime_text[64];
    regime_key(&r->options->regime, regime_text, sizeof regime_text);
    return arena_printf(&r->arena,
                        "measurement|%s|%s|method=%d|candidates=%016" PRIx64 "|exhaustive=%d|candidate=%s|"
                        "early_exit=%.4f|workspace=%" PRIu64 "|cut=%d%s%s",
                        i->key, regime_text, REGIME_METHOD, r->devices[0].about->candidates_hash, r->search.exhaustive,
                        r->search.candidate ? r->search.candidate : "", r->search.early_exit, r->search.workspace_limit,
                        cut, r->search.compare ? "|compare=" : "", r->search.before ? r->search.before : "");
}

static double usual_seconds(const run *r) { return r->search.exhaustive ? EXHAUSTIVE_SECONDS : OPERATION_SECONDS; }

static json_t *look_up(run *r, const run_item *i, bool cut) {
    char note[256];
    json_t *entry = cache_get(&r->cache, key_of(r, i, cut), note, sizeof note);
    if (note[0]) run_warn(r, "%s", note);
    if (entry && report_may_serve(entry, true)) return entry;
    json_decref(entry);
    return NULL;
}

static void find_cached(run *r, run_item *i) {
    if (r->options->no_cache) return;
    i->measurement = look_up(r, i, false);
    if (!i->measurement && r->options->budget_s > 0) i->measurement = look_up(r, i, true);
    if (i->measurement) i->source = RUN_CACHED;
}

static void store(run *r, const run_item *i) {
    status st = {0};
    if (!report_may_serve(i->measurement, true)) return;
    const char *key = key_of(r, i, i->budget_s + 1e-6 < usual_seconds(r));
    if (!cache_put(&r->cache, key, i->measurement, &st)) run_warn(r, "%s", st.text);
}

/* ---- filling ---- */

/* Roughly what an operation is worth to whoever waits: its part of the model's work, damped, for small ones need their
 * launches too. */
static double weight_of(const operation *o) {
    const oprec *r = &o->rec;
    const double work = (double)r->flops / 1e12 + ((double)r->bytes_read + (double)r->bytes_written) / 1e11;
    return sqrt(1e-6 + work * (double)(o->count > 0 ? o->count : 1));
}

static const run_item *sorted; /* what by_weight compares: qsort takes no context, and there is one run in a process */
static int by_weight(const void *a, const void *b) {
    const int x = *(const int *)a, y = *(const int *)b;
    if (sorted[x].stage != sorted[y].stage) return sorted[x].stage < sorted[y].stage ? -1 : 1;
    if (sorted[x].weight != sorted[y].weight) return sorted[x].weight < sorted[y].weight ? 1 : -1;
    return (x > y) - (x < y);
}

/* Half of a budget is shared alike: each operation needs its tensors, its check and its blocks. */
static void level_weights(run *r) {
    double mean = 0;
    for (int k = 0; k < r->list.count; k++) mean += r->items[k].weight / r->list.count;
    for (int k = 0; k < r->list.count; k++) r->items[k].weight += mean;
}

void run_queue_fill(run *r) {
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        r->order[k] = k;
        if (i->stage == RUN_OPERATIONS) i->weight = weight_of(i->operation);
        if (i->source == RUN_PENDING) find_cached(r, i);
        if (i->source != RUN_SKIPPED && i->source != RUN_LEFT)
            r->wanted |= run_precision_bit(operation_precision(i->operation));
    }
    level_weights(r);
    sorted = r->items;
    if (r->item_count > 0) qsort(r->order, (size_t)r->item_count, sizeof *r->order, by_weight);
}

int run_queue_pending(const run *r) {
    int count = 0;
    for (int k = 0; k < r->item_count; k++) count += r->items[k].source == RUN_PENDING;
    return count;
}

/* ---- the budget ---- */

/* Seconds for this operation; 0: there are none left. */
static double seconds_for(run *r, const run_item *i) {
    const double usual = usual_seconds(r), end = run_fusion_stage_end(r, i->stage);
    if (end == 0) return usual;
    double left_s = end - run_now(), weights = 0;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *one = &r->items[k];
        const bool rivals = (one->stage == RUN_OPERATIONS) == (i->stage == RUN_OPERATIONS);
        if (rivals && one->source == RUN_PENDING && !one->started) weights += one->weight;
    }
    if (r->budget_end == 0) /* first come, first served */
        return left_s < LEAST_SECONDS ? 0 : fmin(left_s, usual);
    const double part = weights > 0 ? fmin(r->device_count * i->weight / weights, 1) : 1;
    /* operations use up what is for fusions, rather than have no time */
    if (part * left_s < LEAST_SECONDS && i->stage == RUN_OPERATIONS) left_s = r->budget_end - run_now();
    return left_s < LEAST_SECONDS ? 0 : fmin(fmax(part * left_s, LEAST_SECONDS), usual);
}

/* Where nobody waits for a budget's end, many variants of a large operation do not leave too little for timing them. */
static double least_timing(run *r, const run_item *i) {
    return run_fusion_stage_end(r, i->stage) == 0 ? TIMING_SHARE * usual_seconds(r) : 0;
}

static void skip_rest(run *r, bool operations) {
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (i->source != RUN_PENDING || i->started || (i->stage == RUN_OPERATIONS) != operations) continue;
        if (!operations) {
            run_fusion_skip(i);
            continue;
        }
        i->source = RUN_SKIPPED;
        i->status = ROW_SKIPPED;
        i->code = "budget";
        snprintf(i->text, sizeof i->text, "the budget of %g s was used up; run again with more%s", r->options->budget_s,
                 r->options->ops_path ? ", or with --resume" : "");
    }
}

/* ---- jobs ---- */

static json_t *measure_job(run *r, run_device *d, run_item *i, int job) {
    json_builder b = {0};
    status st = {0};
    char key[64];
    json_t *to = json_new_object(&b);
    regime_key(&r->options->regime, key, sizeof key);
    json_put_text(&b, to, "what", "measure");
    json_put_int(&b, to, "job", job);
    json_put(&b, to, "operation", operation_to_json(i->operation, &b));
    json_put_text(&b, to, "regime", key);
    json_put(&b, to, "ceilings", d->json ? json_deep_copy(d->json) : json_null());
    json_put_bool(&b, to, "exhaustive", r->search.exhaustive);
    json_put_real(&b, to, "budget_s", i->budget_s);
    json_put_real(&b, to, "timing_s", least_timing(r, i));
    json_put_real(&b, to, "early_exit", r->search.early_exit);
    json_put_int(&b, to, "workspace_limit", (int64_t)r->search.workspace_limit);
    json_put_int(&b, to, "seed", job + 1);
    json_put_text(&b, to, "only", r->search.candidate);
    json_put_text(&b, to, "before", r->search.before);
    if (i->fusion && i->fusion->how == FUSION_SEQUENCE) {
        run_fusion_choose(r, i);
        json_put(&b, to, "parts", fusion_to_json(i->fusion, &b));
    }
    json_put(&b, to, "exclusions", run_faults_exclusions(r, &b));
    to = json_finish(&b, to, &st);
    if (!to && r->failure.code == STATUS_OK) r->failure = st;
    return to;
}

/* How much of it is done: one that is being measured has its budget, though most take less. */
static double part_of(const run_item *i) {
    if (i->source != RUN_PENDING) return 1;
    return i->started && i->budget_s > 0 ? fmin(0.95, (run_now() - i->began_s) / i->budget_s) : 0;
}

/* While nothing but ceilings is measured: how far that is, by the device that needs longest. */
static bool show_ceilings_state(run *r, const char *what) {
    double left_s = 0, all_s = 0;
    int part = 0, parts = 0;
    for (int k = 0; k < r->item_count; k++)
        if (r->items[k].started && r->items[k].source == RUN_PENDING) return false;
    for (int k = 0; k < r->device_count; k++) {
        const run_device *d = &r->devices[k];
        if (d->parts == 0) continue;
        part += d->part;
        parts += d->parts;
        left_s = fmax(left_s, run_ceilings_left_s(d));
        all_s = fmax(all_s, d->parts * d->part_s);
    }
    if (parts == 0) return false;
    show_progress_set(&r->progress, all_s > 0 ? 1 - left_s / all_s : 0, left_s, part, parts, what);
    return true;
}

static void show_state(run *r, const char *what) {
    double done = 0, all = 0;
    int finished = 0, count = 0;
    if (!r->progress.terminal || r->progress.quiet || show_ceilings_state(r, what)) return;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        if (!i->started && i->source != RUN_PENDING) continue;
        all += i->weight;
        count++;
        if (i->source != RUN_PENDING) finished++;
        done += i->weight * part_of(i);
    }
    show_progress_set(&r->progress, all > 0 ? done / all : 0, NAN, finished, count, what);
}

/* For those who see no bar. */
static void add_left(char *what, size_t room, double left_s) {
    char left[32];
    const size_t n = strlen(what);
    if (*show_left(left_s, left, sizeof left)) snprintf(what + n, room - n, ", %s at most", left);
}

/* NULL: nobody has to be, or there is no time for it. */
static json_t *once_more(run *r, int device, int *job) {
    char what[160];
    run_item *again = run_again_choose(r, device, usual_seconds(r));
    if (!again) return NULL;
    *job = (int)(again - r->items);
    again->began_s = run_now();
    again->busy = true;
    snprintf(what, sizeof what, "%.120s, once more", again->operation->name);
    show_state(r, what);
    return measure_job(r, &r->devices[device], again, *job);
}

static json_t *next(void *context, int device, int *job) {
    run *r = context;
    run_device *d = &r->devices[device];
    char what[160];
    if (r->failure.code != STATUS_OK || *r->stop) return NULL;
    const bool doubted = (d->suspect & ~d->again) != 0;
    *job = CEILINGS_JOB + device;
    json_t *ceilings_job = run_ceilings_job(r, d, *job);
    if (ceilings_job) {
        snprintf(what, sizeof what, "%s: %s", d->about->name, run_ceilings_words(d, doubted));
        show_state(r, what);
        add_left(what, sizeof what, run_ceilings_left_s(d));
        show_progress_line(&r->progress, what);
        return ceilings_job;
    }
    while (r->at < r->item_count) {
        run_item *i = &r->items[r->order[r->at]];
        if (i->source != RUN_PENDING || i->started) {
            r->at++;
            continue;
        }
        json_t *again = i->stage > RUN_OPERATIONS ? once_more(r, device, job) : NULL;
        if (again) return again;
        if (!run_fusion_ready(r, i)) return NULL; /* another device is at one of its parts */
        i->budget_s = seconds_for(r, i);
        if (i->budget_s == 0) {
            skip_rest(r, i->stage == RUN_OPERATIONS);
            continue;
        }
        *job = r->order[r->at++];
        i->started = i->busy = true;
        i->device = device;
        i->began_s = run_now();
        snprintf(what, sizeof what, "%.120s", i->operation->name);
        show_state(r, what);
        return measure_job(r, d, i, *job);
    }
    return once_more(r, device, job);
}

/* Faster than what the device can do at best: the ceiling is doubted, once. */
static void doubt(run *r, run_device *d, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    if (!f.above_ceiling || strcmp(f.ceiling_from, "probe") == 0) return; /* it was measuring it once more */
    d->suspect |= f.bound && strcmp(f.bound, "compute") == 0 ? run_precision_bit(f.precision) : (unsigned)RUN_BANDWIDTH;
}

static void finish_item(run *r, run_item *i, const json_t *result, const status *st) {
    json_t *earlier = i->measurement; /* of what was measured once more */
    i->seconds += run_now() - i->began_s;
    if (earlier && (!result || !json_is_array(json_object_get(result, "candidates")))) return;
    if (!result || !json_is_array(json_object_get(result, "candidates"))) {
        i->source = RUN_FAILED;
        i->status = ROW_ERROR;
        i->code = "error";
        snprintf(i->text, sizeof i->text, "%.230s", result ? "the worker's answer is no measurement" : st->text);
        run_warn(r, "%s: %s", i->operation->name, i->text);
        return;
    }
    json_builder b = {0};
    char taken[32];
    run_utc(taken, sizeof taken);
    i->source = RUN_MEASURED;
    i->measurement = json_deep_copy(result);
    json_put_real(&b, i->measurement, "budget_s", i->budget_s);
    json_put_text(&b, i->measurement, "taken", taken);
    if (!i->measurement || b.why) {
        json_decref(earlier);
        if (r->failure.code == STATUS_OK)
            status_set(&r->failure, STATUS_ENVIRONMENT, "out of memory; free some and run again");
        return;
    }
    if (earlier && !run_again_keep(r, i, earlier)) return;
    run_faults_note(r, i);
    store(r, i);
    doubt(r, &r->devices[i->device], i);
}

static void done(void *context, int device, int job, const json_t *result, const status *st) {
    run *r = context;
    if (job >= CEILINGS_JOB) {
        if (json_object_get(result, "parts"))
            run_ceilings_part(r, &r->devices[device], result);
        else
            run_ceilings_done(r, &r->devices[device], result, st);
        return;
    }
    if (job < 0 || job >= r->item_count) return;
    run_item *i = &r->items[job];
    i->busy = false;
    if (!result && *r->stop) { /* ended, not failed: --resume measures it */
        i->started = false;
        return;
    }
    finish_item(r, i, result, st);
    run_files_report(r, i, -1);
    report_figures f;
    const report_input in = run_input(r, i, -1);
    char line[256];
    report_read(&in, &f);
    show_result_line(&in, &f, line, sizeof line);
    show_state(r, i->operation->name);
    show_progress_line(&r->progress, line);
}

static void watch(void *context, supervisor_event_kind kind, int device, int job, const char *candidate,
                  const char *variant, const char *text) {
    run *r = context;
    char what[320];
    const bool named = job >= 0 && job < r->item_count;
    const char *subject = named ? r->items[job].operation->name : r->devices[device].about->name;
    if (kind == SUPERVISOR_RESTART) {
        run_warn(r, "%s: %s%s%s%s%s", subject, candidate ? candidate : "", candidate && variant && *variant ? " " : "",
                 candidate && variant ? variant : "", candidate ? ": " : "", text ? text : "its worker was lost");
        return;
    }
    if (kind == SUPERVISOR_SAY) {
        run_device *d = &r->devices[device];
        if (job >= CEILINGS_JOB && text) run_ceilings_hear(d, text);
        snprintf(what, sizeof what, "%.120s: %.150s", subject, text ? text : "");
        const size_t n = strlen(what);
        add_left(what, sizeof what, job >= CEILINGS_JOB ? run_ceilings_left_s(d) : NAN);
        show_progress_hint(&r->progress, what);
        what[n] = 0; /* the bar says it itself */
    } else {
        const char *const words[] = {candidate, variant, text};
        int n = snprintf(what, sizeof what, "%.120s:", subject);
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            if (words[k] && words[k][0]) n += snprintf(what + n, sizeof what - (size_t)n, " %.60s", words[k]);
    }
    show_state(r, what);
}

bool run_queue_work(run *r, status *st) {
    bool again = false, due = run_queue_pending(r) > 0;
    for (int k = 0; k < r->device_count; k++) {
        run_device *d = &r->devices[k];
        due = due || run_ceilings_due(r, d, &again) || (r->sweep_precision && !d->sweep_tried) ||
              r->options->mode == OPTIONS_CEILINGS;
    }
    return !due || supervisor_run(r->supervisor, next, done, watch, r, r->stop, st);
}
