/* Owns what a worker is told: one pass of an item, and what to prepare beside it. */
#include "scout/run/run_internal.h"

#include "common/mix.h"
#include "scout/measure/figures.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <string.h>

enum { AHEAD = 64, FIRST_LOOK = 4 };
/* AHEAD: jobs that are announced before their turn; FIRST_LOOK: of the passes, over which --min-time is divided */
static const double LOAD_SECONDS = 1, LOAD_SHARE = 0.05; /* what the first job may load beside its budget */

/* Several candidates by name are wanted side by side, and not the fastest of them. */
static bool is_beside(const run *r) {
    return r->search.candidate && strchr(r->search.candidate, ',') && !r->search.compare;
}

/* What candidates and their plans depend on. */
static json_t *measure_body(run *r, run_item *i, int pass, json_builder *b) {
    const int job = (int)(i - r->items);
    char key[64];
    json_t *to = json_new_object(b);
    regime_key(&r->options->regime, key, sizeof key);
    json_put_text(b, to, "what", "measure");
    json_put_int(b, to, "job", job);
    json_put(b, to, "operation", operation_to_json(i->operation, b));
    json_put_text(b, to, "regime", key);
    json_put_bool(b, to, "exhaustive", r->search.exhaustive);
    json_put_int(b, to, "session", job);
    json_put_int(b, to, "pass", pass);
    json_put_real(b, to, "budget_s", i->budget_s);
    json_put_real(b, to, "early_exit", r->search.early_exit);
    json_put_int(b, to, "workspace_limit", (int64_t)r->search.workspace_limit);
    json_put_text(b, to, "only", r->search.candidate);
    if (is_beside(r)) json_put_bool(b, to, "beside", true);
    json_put_text(b, to, "before", r->search.before);
    json_put_bool(b, to, "again", i->again);
    if (i->fusion && i->fusion->how == FUSION_SEQUENCE) {
        if (pass == 1 && !i->announced) run_fusion_choose(r, i); /* once: plans are made for what was chosen */
        json_put(b, to, "parts", fusion_to_json(i->fusion, b));
    }
    json_put(b, to, "exclusions", run_faults_exclusions(r, b));
    return to;
}

/* Of several devices, none knows what it will be given. */
bool run_job_is_ahead(const run *r, const run_device *d) { return d->about->ahead && r->device_count == 1; }

/* The next ones in the order of this pass that were not announced before. A sequence waits until all of its parts are
 * measured: they decide what it is made of. */
static void announce(run *r, const run_item *now, json_t *list, json_builder *b) {
    int count = 0;
    for (int k = r->at; k < r->item_count && count < AHEAD; k++) {
        run_item *i = &r->items[r->order[k]];
        if (i->source != RUN_PENDING || i->started) continue;
        if (!run_fusion_known(r, i)) continue;
        count++;
        if (i->announced) continue;
        i->budget_s = run_order_seconds(r, i, i->stage != RUN_OPERATIONS && now->stage == RUN_OPERATIONS);
        if (i->budget_s == 0) break;
        json_push(b, list, measure_body(r, i, 1, b));
        i->announced = true;
    }
}

/* What is to be searched again, whatever is measured meanwhile. */
static void announce_again(run *r, json_t *list, json_builder *b) {
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (!i->again || i->announced || i->busy) continue;
        json_push(b, list, measure_body(r, i, 1, b));
        i->announced = true;
    }
}

/* Processes of a host differ by a percent, by where their code and their stacks lie: so passes behind a look have one
 * of their own. With one for each pass, what runs beside them costs more than that tells. */
static bool is_anew(const run *r, run_device *d, run_item *i) {
    const bool due = i->worker == d->worker && estimate_look((size_t)figures_passes(i->measurement));
    const bool anew = run_on_host(r) && d->jobs > 0 && due;
    d->worker += anew || d->worker == 0;
    i->worker = d->worker;
    return anew;
}

int run_job_pass(const run_item *i) { return i->again ? 1 : figures_passes(i->measurement) + 1; }

json_t *run_job(run *r, const run_device *d, run_item *i) {
    const int pass = run_job_pass(i);
    const uint64_t job = (uint64_t)(i - r->items);
    json_builder b = {0};
    status st = {0};
    json_t *to = measure_body(r, i, pass, &b);
    json_put(&b, to, "ceilings", d->json ? json_incref(d->json) : json_null());
    if (pass <= 2 && !r->search.compare) json_put_bool(&b, to, "fetch", true); /* one of these tells it */
    if (pass == 1 && budget_cuts(&r->budget, run_order_share(r, i), i->budget_s)) json_put_bool(&b, to, "cut", true);
    if (pass > 1) json_put(&b, to, "rows", figures_choose(i->measurement, r->search.candidate, is_beside(r)));
    if (pass == 1 || figures_hold_again(i->measurement))
        json_put_real(&b, to, "hold_s",
                      budget_hold(&r->budget, run_order_share(r, i), i->budget_s, pass > 1, run_now()));
    if (is_anew(r, &r->devices[i->device], i)) json_put_bool(&b, to, "anew", true);
    if (r->devices[i->device].jobs++ == 0)
        json_put_real(&b, to, "start_s",
                      r->budget.end > 0 ? fmin(LOAD_SHARE * r->budget.whole_s, LOAD_SECONDS) : LOAD_SECONDS);
    if (r->options->min_time_s > 0) json_put_real(&b, to, "least_s", r->options->min_time_s / FIRST_LOOK);
    if (r->options->samples) json_put_bool(&b, to, "samples", true);
    json_put_int(&b, to, "seed", (int64_t)(mix_bits(job * 64 + (uint64_t)pass) >> 12));
    if (run_job_is_ahead(r, d)) {
        json_t *const list = json_new_array(&b);
        announce_again(r, list, &b);
        if (pass == 1) announce(r, i, list, &b);
        json_put(&b, to, "ahead", list);
    }
    to = json_finish(&b, to, &st);
    if (!to && r->failure.code == STATUS_OK)
        status_set(&r->failure, st.code, "%.120s, pass %d: %.300s", i->operation->name, pass, st.text);
    return to;
}
