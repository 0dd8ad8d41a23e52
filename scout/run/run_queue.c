/* Owns the flow of a run's jobs: ceilings before operations, what is cached not at all, then what run_order.c chooses,
 * until nothing is open. One queue for all devices. */
#include "scout/run/run_internal.h"

#include "scout/measure/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CEILINGS_JOB = 1 << 24 };
static const double BUSY_SECONDS = 0.2; /* a look at what else runs */

/* ---- filling ---- */

/* Roughly what an operation is worth to the waiting user: its part of the model's work, damped, for small ones need
 * their launches too. */
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
    double sum = 0;
    int count = 0;
    for (int k = 0; k < r->list.count; k++) {
        if (r->items[k].stage != RUN_OPERATIONS) continue; /* weighed by bytes, among fusions */
        sum += r->items[k].weight;
        count++;
    }
    for (int k = 0; k < r->list.count; k++)
        if (r->items[k].stage == RUN_OPERATIONS) r->items[k].weight += sum / count;
}

/* Where a byte comes with less than an operation, memory is the bound on every device, and no peak is asked for. */
static bool has_peak(const operation *o) {
    return (double)o->rec.flops >= (double)o->rec.bytes_read + (double)o->rec.bytes_written;
}

void run_queue_fill(run *r) {
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        r->order[k] = k;
        if (i->stage == RUN_OPERATIONS) i->weight = weight_of(i->operation);
        if (i->source == RUN_PENDING) run_cached_find(r, i);
        if (i->source == RUN_SKIPPED || i->source == RUN_LEFT) continue;
        r->wanted |= RUN_BANDWIDTH;
        if (has_peak(i->operation)) r->wanted |= run_precision_bit(operation_precision(i->operation));
    }
    if (r->of_other_cards > 0)
        run_warn(r,
                 "%d operations have figures of another device of the same class; --no-cache measures them on this one",
                 r->of_other_cards);
    level_weights(r);
    sorted = r->items;
    if (r->item_count > 0) qsort(r->order, (size_t)r->item_count, sizeof *r->order, by_weight);
}

int run_queue_pending(const run *r) {
    int count = 0;
    for (int k = 0; k < r->item_count; k++) count += r->items[k].source == RUN_PENDING;
    return count;
}

/* ---- jobs ---- */

/* For output without a progress bar. */
static void add_left(char *what, size_t room, double left_s) {
    char left[32];
    const size_t n = strlen(what);
    if (*show_left(left_s, left, sizeof left)) snprintf(what + n, room - n, ", %s at most", left);
}

static json_t *begin(run *r, int device, run_item *i, int *job) {
    char what[160];
    const int pass = run_job_pass(i);
    *job = (int)(i - r->items);
    i->busy = true;
    i->device = device;
    i->began_s = run_now();
    snprintf(what, sizeof what, pass > 1 ? "%.120s, pass %d" : "%.120s", i->operation->name, pass);
    run_progress_show(r, what);
    return run_job(r, &r->devices[device], i);
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
        run_progress_show(r, what);
        add_left(what, sizeof what, run_ceilings_left_s(d));
        show_progress_line(&r->progress, what);
        return ceilings_job;
    }
    run_item *const i = run_order_next(r, device);
    return i ? begin(r, device, i, job) : NULL;
}

static void fail_item(run *r, run_item *i, const char *text) {
    i->source = RUN_FAILED;
    i->status = ROW_ERROR;
    i->code = "error";
    snprintf(i->text, sizeof i->text, "%.230s", text);
    run_warn(r, "%s: %s", i->operation->name, i->text);
}

/* What a second search finds takes the place of all before it. One that finds no figure takes no more away than a later
 * pass would. */
static void take(run_item *i, const json_t *result, bool again) {
    json_t *const anew = again ? figures_add(NULL, result) : NULL;
    if (json_get_positive(anew, "baseline_time_us") > 0) {
        json_decref(i->measurement);
        i->measurement = anew;
        i->asked = i->judged = 0;
        return;
    }
    json_decref(anew);
    i->measurement = figures_add(i->measurement, result);
}

static void finish_item(run *r, run_item *i, const json_t *result, const status *st) {
    const bool first = !i->measurement, good = json_is_array(json_object_get(result, "candidates"));
    const bool again = i->again;
    const int pass = run_job_pass(i);
    char taken[32];
    const double took_s = run_now() - i->began_s;
    i->seconds += took_s;
    i->again = false;
    if (i->source == RUN_PENDING) {
        i->first_s = took_s;
    } else if (!again) { /* neither tells what others will take */
        i->passes_s += took_s;
        i->passes++;
    }
    const char *const text = result ? "the worker's answer is no measurement" : st->text;
    if (!good && first) fail_item(r, i, text);
    if (!good && !first) { /* it has its figures */
        if (i->source == RUN_PENDING) i->source = RUN_MEASURED;
        i->ended = true;
        run_warn(r, "%s: pass %d failed, its figures are those from before: %s", i->operation->name, pass, text);
    }
    if (!good) return;
    run_samples_add(r, i, result);
    take(i, result, again);
    if (again) run_search_forget(r, i);
    if (!i->measurement) {
        if (r->failure.code == STATUS_OK)
            status_set(&r->failure, STATUS_ENVIRONMENT, "out of memory; free some and run again");
        return;
    }
    if (first || again) figures_aim(i->measurement, r->options->target_ci);
    if (figures_lost(i->measurement)) budget_lose(&r->budget, took_s);
    json_builder b = {0};
    run_utc(taken, sizeof taken);
    i->source = RUN_MEASURED;
    i->changed = true;
    json_put_real(&b, i->measurement, "budget_s", i->budget_s);
    json_put_text(&b, i->measurement, "taken", taken);
    json_put_text(&b, i->measurement, "card", run_cached_card(r, i->device));
    run_faults_note(r, i);
    run_ceilings_hold(r, &r->devices[i->device], i);
}

static void hear_ready(run *r, const json_t *list) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_int_t job = json_integer_value(json_array_get(list, k));
        if (job >= 0 && job < r->item_count) r->items[job].ready = true;
    }
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
    if (json_object_get(result, "ready")) {
        hear_ready(r, json_object_get(result, "ready"));
        return;
    }
    run_item *i = &r->items[job];
    i->busy = false;
    if (!result && *r->stop) { /* ended, not failed: --resume measures it */
        i->started = false;
        return;
    }
    const bool first = !i->measurement || i->again;
    finish_item(r, i, result, st);
    if (!first) return; /* it has a report, which is written again at the end */
    r->looked = 0;
    r->unwritten += !i->unwritten;
    i->unwritten = true;
    report_figures f;
    const report_input in = run_input(r, i, -1);
    char line[256];
    report_read(&in, &f);
    show_result_line(&in, &f, line, sizeof line);
    run_progress_show(r, i->operation->name);
    show_progress_line(&r->progress, line);
}

/* A device measures the next operation while the last one's report goes to disk. */
static void write_reports(run *r) {
    for (int k = 0; k < r->item_count && r->unwritten > 0; k++) {
        if (!r->items[k].unwritten) continue;
        r->items[k].unwritten = false;
        r->unwritten--;
        run_files_report(r, &r->items[k], -1);
    }
}

static void watch(void *context, supervisor_event_kind event, int device, int job, const char *candidate,
                  const char *variant, const char *text) {
    run *r = context;
    char what[320];
    if (event == SUPERVISOR_IDLE) {
        write_reports(r);
        run_progress_show(r, NULL);
        return;
    }
    const bool named = job >= 0 && job < r->item_count;
    const char *subject = named ? r->items[job].operation->name : r->devices[device].about->name;
    if (event == SUPERVISOR_RESTART) {
        for (int k = 0; k < r->item_count; k++) /* what it was preparing is lost with it */
            r->items[k].ready = r->items[k].announced;
        r->devices[device].jobs = 0;
        r->devices[device].restarted = true;
        run_warn(r, "%s: %s%s%s%s%s", subject, candidate ? candidate : "", candidate && variant && *variant ? " " : "",
                 candidate && variant ? variant : "", candidate ? ": " : "", text ? text : "its worker was lost");
        return;
    }
    if (event == SUPERVISOR_SAY) {
        run_device *d = &r->devices[device];
        if (job >= CEILINGS_JOB && text) run_ceilings_hear(d, text);
        if (job >= CEILINGS_JOB) r->looked = 0; /* there is news of how far it is */
        snprintf(what, sizeof what, "%.120s: %.150s", subject, text ? text : "");
    } else {
        const char *const words[] = {candidate, variant, text};
        int n = snprintf(what, sizeof what, "%.120s:", subject);
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            if (words[k] && words[k][0]) n += snprintf(what + n, sizeof what - (size_t)n, " %.60s", words[k]);
    }
    run_progress_show(r, what);
}

/* Other work on the cores that are measured: said once, before anything is. */
static void say_busy(run *r) {
    char text[128];
    if (!run_on_host(r)) return;
    others_wait();
    if (!others_look("/proc", BUSY_SECONDS, &r->beside)) return;
    if (*others_words(&r->beside, text, sizeof text)) run_warn(r, "%s", text);
}

static bool is_due(run *r) {
    bool again = false, due = run_queue_pending(r) > 0 || run_order_is_open(r);
    for (int k = 0; k < r->device_count; k++) {
        run_device *d = &r->devices[k];
        due = due || run_ceilings_due(r, d, &again) || (r->sweep_precision && !d->sweep_tried) ||
              (r->options->mode == OPTIONS_CEILINGS && r->options->exhaustive);
    }
    return due;
}

/* In the order of their identities, for two runs that each had what the other one waits for would wait forever. */
bool run_queue_lock(run *r, status *st) {
    run_device *order[RUN_MOST_DEVICES];
    const int count = r->device_count;
    for (int k = 0; k < count; k++) {
        int at = k;
        for (; at > 0 && strcmp(order[at - 1]->about->identity.uuid, r->devices[k].about->identity.uuid) > 0; at--)
            order[at] = order[at - 1];
        order[at] = &r->devices[k];
    }
    for (int k = 0; k < count; k++)
        if (!run_lock_device(&r->wait, order[k]->about, &order[k]->lock, st)) return false;
    return true;
}

bool run_queue_begin(run *r, status *st) {
    r->due = is_due(r);
    if (r->due && !run_queue_lock(r, st)) return false;
    budget_wait(&r->budget, r->wait.waited_s);
    if (!r->due) return true;
    /* the run that had the devices until now may have measured what this one wants */
    for (int k = 0; k < r->device_count; k++) run_ceilings_load(r, &r->devices[k]);
    for (int k = 0; k < r->item_count; k++)
        if (r->items[k].source == RUN_PENDING) run_cached_find(r, &r->items[k]);
    r->due = is_due(r);
    return true;
}

void run_queue_rest(run *r) {
    supervisor_rest(r->supervisor); /* what one prepares for later would disturb the next run */
    for (int k = 0; k < r->device_count; k++) run_lock_end(&r->devices[k].lock);
}

bool run_queue_work(run *r, status *st) {
    if (r->due) say_busy(r);
    const bool good = !r->due || supervisor_run(r->supervisor, next, done, watch, r, r->stop, st);
    supervisor_quit(r->supervisor); /* a driver takes tenths of a second for that, in which results are written */
    run_cached_store(r);
    return good;
}
