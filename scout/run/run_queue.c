/* Owns the order of a run's jobs: ceilings before operations, what is cached not at all, and then pass after pass. The
 * first pass gives everything a figure, the heaviest first, but for what is ready. Later passes go where a figure or a
 * decision is open that is worth something to the model, each in another order. One queue for all devices. */
#include "scout/run/run_internal.h"

#include "scout/kinds/kinds.h"
#include "scout/measure/figures.h"
#include "scout/measure/measure_key.h"
#include "scout/terms/stats.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CEILINGS_JOB = 1 << 24, AHEAD = 64, FILLS = 4, FEW = 16, FIRST_LOOK = 4 };
/* AHEAD: jobs that are announced before their turn; FILLS: passes that an operation may have until then; FIRST_LOOK: of
 * the passes, over which --min-time is divided */
static const double BUSY_SECONDS = 0.2; /* a look at what else runs */
/* Of the model's time: less than that is left open. A device's passes take milliseconds; a host's, which repacks and
 * checks on the cores that it measures, tenths of a second. */
static const double WORTH = 0.0003, HOST_WORTH = 0.001;
static const double WIDE = 0.04; /* of the model's time: operations whose times are not known as wanted */
/* Where all that is done, a list of few operations goes on so long for what is known worse than that. */
static const double NARROW_SECONDS = 1, NARROW = 0.004;
static const double FILL_SHARE = 0.02;   /* of a budget, that such a pass may take, by those before it */
static const double AWAITED_SECONDS = 3; /* so long before the end nothing is waited for that is prepared beside */
static const double LOAD_SECONDS = 1, LOAD_SHARE = 0.05; /* what the first job may load beside its budget */

/* ---- the cache ---- */

static const char *card_of(run *r, int device) {
    return measure_key_card(r->devices[device].about->device_instance, &r->arena);
}

/* Of one card; NULL: of any of its class. left: of a run whose dataflow is known. */
static char *key_of(run *r, const run_item *i, bool cut, bool left, const char *card) {
    const measure_key key = {.operation = i->key,
                             .left = left,
                             .written = i->operation->written,
                             .distant = i->operation->distant,
                             .handed = i->operation->handed,
                             .crowd_written = i->operation->crowd_written,
                             .regime = r->options->regime,
                             .candidates = r->devices[0].about->candidates_hash,
                             .exhaustive = r->search.exhaustive,
                             .candidate = r->search.candidate,
                             .early_exit = r->search.early_exit,
                             .workspace_limit = r->search.workspace_limit,
                             .cut = cut,
                             .compare = !r->search.compare ? NULL
                                        : r->search.before ? r->search.before
                                                           : "",
                             .card = card};
    return measure_key_text(&key, &r->arena);
}

static json_t *look_up(run *r, const run_item *i, bool cut, const char *card) {
    char note[256];
    json_t *entry = cache_get(&r->cache, key_of(r, i, cut, r->left_known, card), note, sizeof note);
    if (note[0]) run_warn_once(r, note);
    if (entry && report_may_serve(entry, true)) return entry;
    json_decref(entry);
    return NULL;
}

/* It ends sooner than usual: its figures are for those alone that want no better ones. */
static bool is_cut(const run *r) {
    return r->budget.whole_s > 0 || r->options->target_ci > figures_usual_target(run_on_host(r));
}

/* This card's own figures before those of another one of its class. */
static void find_cached(run *r, run_item *i) {
    const bool cuts = is_cut(r);
    if (r->options->no_cache || r->options->samples) return; /* a cache has no blocks */
    for (int cut = 0; cut <= cuts && !i->measurement; cut++)
        for (int k = 0; k <= r->device_count && !i->measurement; k++)
            i->measurement = look_up(r, i, cut, k < r->device_count ? card_of(r, k) : NULL);
    if (!i->measurement) return;
    i->source = RUN_CACHED;
    figures_aim(i->measurement, r->options->target_ci);
    const char *card = json_string_value(json_object_get(i->measurement, "card"));
    bool own = !card;
    for (int k = 0; k < r->device_count; k++) own = own || strcmp(card, card_of(r, k)) == 0;
    r->of_other_cards += !own;
}

/* At the end, with all of its passes: a pass takes less time than a file. Of a run whose dataflow is known also for
 * those that know none: what a launch takes more in this model is nothing to them. */
static void store(run *r) {
    const bool cut = is_cut(r) || *r->stop || r->failure.code != STATUS_OK;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        status st = {0};
        if (!i->changed || !report_may_serve(i->measurement, true)) continue;
        const char *cards[] = {json_string_value(json_object_get(i->measurement, "card")), NULL};
        json_t *plain = r->left_known ? figures_without_fetch(i->measurement) : NULL;
        for (int n = 0; n < 2 && st.code == STATUS_OK; n++)
            if (!cache_put(&r->cache, key_of(r, i, cut, r->left_known, cards[n]), i->measurement, &st) ||
                (plain && !cache_put(&r->cache, key_of(r, i, cut, false, cards[n]), plain, &st)))
                run_warn(r, "%s", st.text);
        json_decref(plain);
        i->changed = false;
    }
}

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
        if (i->source == RUN_PENDING) find_cached(r, i);
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

/* ---- the budget ---- */

/* What it takes at least, in all of its places: known before it is measured. */
static double expected_us(const run *r, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    return f.estimate_us > 0 ? f.estimate_us * fmax(run_search_places(i), 1) : 0;
}

static double expected_share(run *r, const run_item *i) {
    if (r->expected_us == 0)
        for (int k = 0; k < r->list.count; k++)
            if (r->items[k].source != RUN_LEFT && !run_fusion_is_turned(&r->items[k]))
                r->expected_us += expected_us(r, &r->items[k]);
    const double mine = expected_us(r, i);
    return r->expected_us > 0 && mine > 0 ? fmin(mine / r->expected_us, 1) : 0;
}

/* Seconds for preparing and racing in the first pass; 0: there are none left. `early`: its stage has not begun. */
static double seconds_for(run *r, const run_item *i, bool early) {
    const bool joined = i->stage != RUN_OPERATIONS;
    double weights = 0;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *one = &r->items[k];
        const bool rivals = (one->stage != RUN_OPERATIONS) == joined;
        if (rivals && one->source == RUN_PENDING && !one->started) weights += one->weight;
    }
    const budget_job job = {.fusion = joined,
                            .early = early,
                            .fusions_left = run_fusion_left(r),
                            .share = expected_share(r, i),
                            .part = weights > 0 ? r->device_count * i->weight / weights : 0};
    return budget_search(&r->budget, &job, run_now());
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
        snprintf(i->text, sizeof i->text, "the budget of %g s was used up; run again with a larger one%s",
                 r->budget.whole_s, r->options->ops_path ? ", or with --resume" : "");
    }
}

/* ---- jobs ---- */

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

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
static bool is_ahead(const run *r, const run_device *d) { return d->about->ahead && r->device_count == 1; }

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
        i->budget_s = seconds_for(r, i, i->stage != RUN_OPERATIONS && now->stage == RUN_OPERATIONS);
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

static int pass_of(const run_item *i) { return i->again ? 1 : figures_passes(i->measurement) + 1; }

static json_t *measure_job(run *r, const run_device *d, run_item *i) {
    const int pass = pass_of(i);
    const uint64_t job = (uint64_t)(i - r->items);
    json_builder b = {0};
    status st = {0};
    json_t *to = measure_body(r, i, pass, &b);
    json_put(&b, to, "ceilings", d->json ? json_incref(d->json) : json_null());
    if (pass <= 2 && !r->search.compare) json_put_bool(&b, to, "fetch", true); /* one of these tells it */
    if (pass == 1 && budget_cuts(&r->budget, expected_share(r, i), i->budget_s)) json_put_bool(&b, to, "cut", true);
    if (pass > 1) json_put(&b, to, "rows", figures_choose(i->measurement, r->search.candidate, is_beside(r)));
    if (pass == 1 || figures_hold_again(i->measurement))
        json_put_real(&b, to, "hold_s",
                      budget_hold(&r->budget, expected_share(r, i), i->budget_s, pass > 1, run_now()));
    if (r->devices[i->device].jobs++ == 0)
        json_put_real(&b, to, "start_s",
                      r->budget.end > 0 ? fmin(LOAD_SHARE * r->budget.whole_s, LOAD_SECONDS) : LOAD_SECONDS);
    if (r->options->min_time_s > 0) json_put_real(&b, to, "least_s", r->options->min_time_s / FIRST_LOOK);
    if (r->options->samples) json_put_bool(&b, to, "samples", true);
    json_put_int(&b, to, "seed", (int64_t)(mix(job * 64 + (uint64_t)pass) >> 12));
    if (is_ahead(r, d)) {
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

/* For output without a progress bar. */
static void add_left(char *what, size_t room, double left_s) {
    char left[32];
    const size_t n = strlen(what);
    if (*show_left(left_s, left, sizeof left)) snprintf(what + n, room - n, ", %s at most", left);
}

/* ---- later passes ---- */

static bool is_held_again(run *r, const run_item *i) {
    return figures_hold_again(i->measurement) &&
           budget_hold(&r->budget, expected_share(r, i), i->budget_s, true, run_now()) > 0;
}

/* Its figures say what is open, once after each pass. False: they say nothing. */
static bool ask(run *r, run_item *i) {
    const int passes = figures_passes(i->measurement);
    const bool known = json_number_value(json_object_get(i->measurement, "baseline_time_us")) > 0;
    if (i->source == RUN_LEFT || i->busy || i->derived || !known || passes == 0) return false;
    if (i->asked == passes) return true;
    i->wide = figures_wide(i->measurement);
    i->guessed = i->wide && figures_guessed(i->measurement) && !is_held_again(r, i);
    i->open = fmin(i->guessed ? figures_gain_open(i->measurement) : figures_open(i->measurement), 1);
    i->ci = figures_ci(i->measurement);
    i->asked = passes;
    return true;
}

/* What of the model's time is open in an item, and worth another pass. */
static double open_of(run *r, run_item *i, double model_us) {
    return ask(r, i) ? i->open * run_search_share(r, i, model_us) : 0;
}

/* Operations whose times are not known as wanted may be a small part of the model's time. The least share of one that
 * goes on: all below it are such a part together. */
static double wide_share(run *r, double model_us) {
    double *const shares = malloc(((size_t)r->list.count + 1) * sizeof *shares), sum = 0; /* of what goes no further */
    size_t count = 0, k = 0;
    if (!shares || !(model_us > 0) || run_on_host(r)) {
        free(shares);
        return INFINITY;
    }
    for (int n = 0; n < r->list.count; n++) {
        run_item *i = &r->items[n];
        if (!ask(r, i) || !i->wide || i->operation->count == 0) continue;
        if (!i->guessed && figures_passes(i->measurement) < (int)estimate_last_look())
            shares[count++] = run_search_share(r, i, model_us);
        else
            sum += run_search_share(r, i, model_us);
    }
    stats_sort(shares, count);
    while (k < count && (sum += shares[k]) <= WIDE) k++;
    const double least = k < count ? shares[k] : (double)INFINITY;
    free(shares);
    return least;
}

static double model_time(const run *r) {
    double us = 0;
    for (int k = 0; k < r->list.count; k++)
        us += (double)r->items[k].operation->count *
              json_number_value(json_object_get(r->items[k].measurement, "baseline_time_us"));
    return us;
}

/* --min-time: its blocks have not run so long. */
static bool is_short(const run *r, const run_item *i) {
    return !i->fusion && r->options->min_time_s > 0 && figures_passes(i->measurement) < (int)estimate_last_look() &&
           figures_timed_s(i->measurement) < r->options->min_time_s;
}

/* Between two looks a row goes on: what would be decided there was decided at the last one. */
static bool wants_pass(run *r, run_item *i, int pass, double model_us, double wide) {
    const int passes = figures_passes(i->measurement);
    if (i->source == RUN_PENDING || passes != pass - 1 || passes == 0) return false;
    const bool more = r->options->target_ci > 0 || r->options->min_time_s > 0;
    if (i->source == RUN_CACHED && r->budget.end == 0 && !more) return false; /* it had its time */
    const bool under_way = passes > 1 && !estimate_look((size_t)passes) && i->changed;
    if (i->busy || i->again || i->ended || !json_object_get(i->measurement, "baseline_time_us")) return false;
    if (is_short(r, i) || r->late) return is_short(r, i);
    if (run_fusion_is_turned(i)) return false; /* the replay decides about regions, and not each of its operations */
    const bool host = json_is_true(json_object_get(i->measurement, "host"));
    return under_way || open_of(r, i, model_us) >= (host ? HOST_WORTH : WORTH) ||
           (passes < (int)estimate_last_look() && ask(r, i) && i->wide && !i->guessed && i->operation->count > 0 &&
            !i->fusion && run_search_share(r, i, model_us) >= wide);
}

void run_queue_look(run *r) {
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    budget_reserve_for(&r->budget, run_replay_expected_s(r, model_us));
    const bool known = r->device_count > 0 && r->devices[0].ceilings && !r->devices[0].flying;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (!r->shares_known) i->share = known ? expected_share(r, i) : 1.0 / r->item_count;
        if (!i->busy) i->wanted = wants_pass(r, i, figures_passes(i->measurement) + 1, model_us, wide);
    }
    r->shares_known = r->shares_known || known;
}

/* The least pass that is wanted of anything: what was left out may be wanted once others go no further. */
static int least_wanted(run *r, double model_us, double wide) {
    int least = (int)estimate_last_look() + 1;
    for (int k = 0; k < r->item_count; k++) {
        const int pass = figures_passes(r->items[k].measurement) + 1;
        if (pass < least && wants_pass(r, &r->items[k], pass, model_us, wide)) least = pass;
    }
    return least;
}

/* Of the operations, the one that is known worst: each of so few may be the one that was asked for. NULL: there is no
 * time for that. */
static run_item *narrow(run *r, int device) {
    run_item *chosen = NULL;
    if (r->narrow_end == 0) r->narrow_end = run_now() + NARROW_SECONDS;
    for (int k = 0; k < r->list.count && run_now() < r->narrow_end; k++) {
        run_item *i = &r->items[k];
        const int passes = figures_passes(i->measurement);
        const bool here = i->device == device || r->device_count == 1;
        if (!here || !i->changed || i->ended || i->guessed || i->operation->count == 0 || !ask(r, i)) continue;
        if (passes >= (int)estimate_last_look()) continue;
        if (estimate_look((size_t)passes) && i->ci <= NARROW) continue; /* it is looked at no more often than else */
        if (!chosen || i->ci > chosen->ci) chosen = i;
    }
    return chosen;
}

/* Of those that want the pass whose turn it is; in each pass they have another order. */
static run_item *of_pass(run *r, int device, double model_us, double wide, bool *busy) {
    run_item *chosen = NULL;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        *busy = *busy || i->busy;
        if (i->measurement && i->source != RUN_LEFT && i->device != device && r->device_count > 1) continue;
        if (!wants_pass(r, i, r->pass, model_us, wide)) continue;
        i->turn = (int)(mix((uint64_t)r->pass * 65536 + (uint64_t)k) >> 34);
        if (!chosen || i->turn < chosen->turn) chosen = i;
    }
    return chosen;
}

/* A second search is done at once: no thread prepares it, or little time is left. */
static bool waits_for_none(const run *r, int device, double left_s) {
    const run_device *d = &r->devices[device];
    return !is_ahead(r, d) || d->restarted || left_s < AWAITED_SECONDS;
}

/* NULL: nothing is open, or there is no time left. */
static run_item *next_pass(run *r, int device) {
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    const double now = run_now();
    bool busy = false;
    const double end_s = budget_later_end(&r->budget, r->began > 0 ? now - r->began : 0, run_on_host(r), now);
    r->late = now >= end_s;
    if (r->late && (r->budget.end > 0 || !(r->options->min_time_s > 0))) return NULL;
    if (!r->late) run_search_look(r, device, RUN_PARTS, model_us, end_s - now);
    run_item *const again = run_search_next(r, device, waits_for_none(r, device, end_s - now), end_s - now);
    if (again) return again;
    for (int turn = 0; turn < 2; turn++) { /* what was left out before */
        for (; r->pass <= (int)estimate_last_look(); r->pass++) {
            run_item *const chosen = of_pass(r, device, model_us, wide, &busy);
            if (chosen || (busy && r->device_count > 1)) return chosen;
        }
        r->pass = least_wanted(r, model_us, wide);
    }
    run_item *const awaited = run_search_next(r, device, true, end_s - now);
    if (awaited) return awaited;
    const bool enough = r->late || r->options->target_ci > 0;
    return enough || run_on_host(r) || r->list.count > FEW ? NULL : narrow(r, device);
}

/* ---- while jobs are prepared ---- */

static void bring_forward(run *r, int k, int to) {
    const int chosen = r->order[k];
    memmove(&r->order[to + 1], &r->order[to], (size_t)(k - to) * sizeof *r->order);
    r->order[to] = chosen;
}

/* What is being prepared beside gives way to the next of its stage that is ready. False: none is. */
static bool pass_over(run *r) {
    const run_item *first = &r->items[r->order[r->at]];
    for (int k = r->at; k < r->item_count; k++) {
        const run_item *i = &r->items[r->order[k]];
        if (i->source != RUN_PENDING || i->started || (i->announced && !i->ready)) continue;
        if ((i->stage == RUN_OPERATIONS) != (first->stage == RUN_OPERATIONS)) break;
        if (!i->announced && k > r->at) continue;
        bring_forward(r, k, r->at);
        return true;
    }
    return false;
}

/* At the pace of the first pass so far a budget ends before it does. */
static bool is_hurried(const run *r, double now) {
    int begun = 0, left = 0;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        begun += i->started;
        left += i->source == RUN_PENDING && !i->started && i->stage == RUN_OPERATIONS;
    }
    return r->budget.end > 0 && r->began > 0 && left * (now - r->began) > begun * (r->budget.end - now);
}

/* None is ready, and there is no time to wait: what needs no library, else what was announced last, for no thread is
 * likely to be at it. */
static void take_from_behind(run *r) {
    for (int light = 1; light >= 0; light--)
        for (int k = r->item_count - 1; k >= r->at; k--) {
            const run_item *i = &r->items[r->order[k]];
            if (i->source != RUN_PENDING || i->started || i->stage != RUN_OPERATIONS) continue;
            if (light && !kinds_light(i->operation->rec.kind)) continue;
            bring_forward(r, k, r->at);
            return;
        }
}

/* None is ready: a further pass of what has the fewest. */
static run_item *fill_in(run *r) {
    const double model_us = model_time(r), now = run_now();
    run_item *chosen = NULL;
    const double most_s = r->budget.end > 0 ? FILL_SHARE * r->budget.whole_s : (double)INFINITY;
    if (is_hurried(r, now)) return NULL;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        const int passes = figures_passes(i->measurement), least = chosen ? figures_passes(chosen->measurement) : FILLS;
        if (passes >= FILLS || i->seconds > most_s * passes || !wants_pass(r, i, passes + 1, model_us, INFINITY))
            continue;
        i->turn = (int)(mix((uint64_t)passes * 65536 + (uint64_t)k) >> 34);
        if (!chosen || passes < least || (passes == least && i->turn < chosen->turn)) chosen = i;
    }
    return chosen;
}

/* A fusion that is still being prepared would keep a run waiting beyond the end of its budget. */
static bool would_wait(const run *r, const run_item *i) {
    const double last_s = fmin(0.1 * r->budget.whole_s, 1);
    return i->stage != RUN_OPERATIONS && i->announced && !i->ready && r->budget.end > 0 &&
           run_now() > r->budget.end - last_s;
}

/* ---- jobs, in their order ---- */

static json_t *begin(run *r, int device, run_item *i, int *job) {
    char what[160];
    const int pass = pass_of(i);
    *job = (int)(i - r->items);
    i->busy = true;
    i->device = device;
    i->began_s = run_now();
    snprintf(what, sizeof what, pass > 1 ? "%.120s, pass %d" : "%.120s", i->operation->name, pass);
    run_progress_show(r, what);
    return measure_job(r, &r->devices[device], i);
}

/* Libraries take a second to be loaded, and long to say how. The first few jobs are such as ask none, and are announced
 * first, while the others are prepared beside them; the smallest of them begin, while code is generated for the large
 * ones. None is near a cap on power, after which the clock would have to be waited for. */
static void lead(run *r) {
    enum { LEAD = 16 };
    int count = 0;
    r->led = true;
    for (int k = 0; count < LEAD && k < r->item_count; k++) {
        const run_item *i = &r->items[r->order[k]];
        if (i->stage != RUN_OPERATIONS) break;
        if (i->source == RUN_PENDING && kinds_light(i->operation->rec.kind)) bring_forward(r, k, count++);
    }
    for (int k = 1; k < count; k++) bring_forward(r, k, 0);
}

/* Fusions are held against what their parts run as: what is to be searched again comes first, and while it is prepared
 * what else is open. */
static run_item *before_fusions(run *r, int device) {
    const double left_s = budget_operations_left(&r->budget, run_now());
    run_search_look(r, device, RUN_OPERATIONS, model_time(r), left_s);
    run_item *const again = run_search_next(r, device, waits_for_none(r, device, left_s), left_s);
    run_item *const awaited = again ? again : run_search_next(r, device, true, left_s);
    run_item *const filler = again || !awaited ? NULL : fill_in(r);
    return filler ? filler : awaited;
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
    while (r->at < r->item_count) {
        if (!r->led && is_ahead(r, d)) lead(r);
        run_item *i = &r->items[r->order[r->at]];
        if (i->source != RUN_PENDING || i->started) {
            r->at++;
            continue;
        }
        run_item *const first = i->stage != RUN_OPERATIONS ? before_fusions(r, device) : NULL;
        if (first) return begin(r, device, first, job);
        if (!run_fusion_ready(r, i)) return NULL; /* another device is at one of its parts */
        const bool ready = pass_over(r);
        run_item *const filler = ready ? NULL : fill_in(r);
        if (filler) return begin(r, device, filler, job);
        if (!ready && r->budget.end > 0) take_from_behind(r);
        i = &r->items[r->order[r->at]];
        if (would_wait(r, i) || (i->stage == RUN_TURNED_FUSIONS && !run_plan_may_turn(r, i->fusion))) {
            run_fusion_skip(i);
            continue;
        }
        i->budget_s = seconds_for(r, i, false);
        if (i->budget_s == 0) {
            skip_rest(r, i->stage == RUN_OPERATIONS);
            continue;
        }
        if (r->began == 0) r->began = run_now();
        r->at++;
        i->started = true;
        return begin(r, device, i, job);
    }
    run_item *i = next_pass(r, device);
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
    const int pass = pass_of(i);
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
    json_put_text(&b, i->measurement, "card", card_of(r, i->device));
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
    bool again = false, due = run_queue_pending(r) > 0;
    r->pass = 2;
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    for (int k = 0; k < r->item_count; k++)
        due = due || wants_pass(r, &r->items[k], figures_passes(r->items[k].measurement) + 1, model_us, wide);
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
        if (r->items[k].source == RUN_PENDING) find_cached(r, &r->items[k]);
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
    store(r);
    run_queue_rest(r);
    return good;
}
