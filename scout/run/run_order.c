/* Owns which item is measured next. The first pass gives everything a figure, the heaviest first, but for what is
 * ready. Later passes go where a figure or a decision is open that is worth something to the model, each in another
 * order. */
#include "scout/run/run_internal.h"

#include "common/mix.h"
#include "scout/kinds/kinds.h"
#include "scout/measure/figures.h"
#include "scout/terms/stats.h"
#include "scout/timing/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILLS = 4, /* passes that an operation may have while others are prepared, and that what the plan takes has */
    FEW = 4
};
static const double WORTH = 0.001; /* of the model's time: less than that is left open */
static const double WIDE = 0.04;   /* of the model's time: operations whose times are not known as wanted */
/* Where all that is done, a list of few operations goes on so long for what is known worse than that. */
static const double NARROW_SECONDS = 1, NARROW = 0.004;
static const double FILL_SHARE = 0.02;    /* of a budget, that such a pass may take, by those before it */
static const double AWAITED_SECONDS = 3;  /* so long before the end nothing is waited for that is prepared beside */
static const double AWAITED_SHARE = 0.2;  /* of a budget: so long at most */
static const double LEAST_SECONDS = 0.01; /* of a first pass; of what is cached it is not known */
static const double LATER_ROOT = 0.1;     /* before any was made: a later pass's seconds by the root of a first one's */

/* ---- the budget ---- */

/* What it takes at least, in all of its places: known before it is measured. */
static double expected_us(const run *r, const run_item *i) {
    report_figures f;
    const report_input in = run_input(r, i, -1);
    report_read(&in, &f);
    return f.estimate_us > 0 ? f.estimate_us * fmax(run_search_places(i), 1) : 0;
}

double run_order_share(run *r, const run_item *i) {
    if (r->expected_us == 0)
        for (int k = 0; k < r->list.count; k++)
            if (r->items[k].source != RUN_LEFT && !run_fusion_is_turned(&r->items[k]))
                r->expected_us += expected_us(r, &r->items[k]);
    const double mine = expected_us(r, i);
    return r->expected_us > 0 && mine > 0 ? fmin(mine / r->expected_us, 1) : 0;
}

/* Seconds for preparing and racing in the first pass; 0: there are none left. `early`: its stage has not begun. */
double run_order_seconds(run *r, const run_item *i, bool early) {
    const bool joined = i->stage != RUN_OPERATIONS;
    double weights = 0;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *one = &r->items[k];
        const bool rivals = (one->stage != RUN_OPERATIONS) == joined;
        if (rivals && one->source == RUN_PENDING && !one->started) weights += one->weight;
    }
    const budget_job job = {.fusion = joined,
                            .early = early,
                            .host = run_on_host(r),
                            .fusions_left = run_fusion_left(r),
                            .share = run_order_share(r, i),
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

/* ---- later passes ---- */

static bool is_held_again(run *r, const run_item *i) {
    return figures_hold_again(i->measurement) &&
           budget_hold(&r->budget, run_order_share(r, i), i->budget_s, true, run_now()) > 0;
}

/* Its figures say what is open, once after each pass. False: they say nothing. */
static bool ask(run *r, run_item *i) {
    const int passes = figures_passes(i->measurement);
    const bool known = json_number_value(json_object_get(i->measurement, "baseline_time_us")) > 0;
    if (i->source == RUN_LEFT || i->busy || i->derived || !known || passes == 0) return false;
    if (i->asked == passes) return true;
    i->wide = figures_wide(i->measurement);
    i->guessed = i->wide && figures_guessed(i->measurement) && !is_held_again(r, i);
    /* How long a fusion takes is in no model's time: what it saves follows from the ratio. */
    const bool decides = i->guessed || (i->fusion && passes >= FILLS);
    i->open = fmin(decides ? figures_gain_open(i->measurement) : figures_open(i->measurement), 1);
    i->ci = figures_ci(i->measurement);
    i->asked = passes;
    return true;
}

/* What of the model's time is open in an item, and worth another pass. */
static double open_of(run *r, run_item *i, double model_us) {
    const bool part = i->stage == RUN_PARTS && i->operation->count == 0;
    if (part && !run_fusion_decides(r, i)) return 0;
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

/* What the plan takes by the figures so far. False: nothing more than at the last look. */
static bool look_at_plan(run *r) {
    const arena_mark mark = arena_save(&r->arena);
    run_plan plan;
    bool more = false;
    if (!r->replays || r->late || r->list.flow->occurrence_count > RUN_MOST_OCCURRENCES) return false;
    run_plan_choose(r, &plan);
    const operation_flow *flow = run_plan_flow(r, &plan);
    for (int g = 0; g < plan.whole.group_count; g++) {
        const plan_group *of = &plan.whole.groups[g];
        const int alone = flow->occurrences[plan.whole.order[of->first]].operation;
        const int item = of->fusion >= 0 ? r->list.count + of->fusion : alone;
        if (item < 0 || r->items[item].planned) continue;
        r->items[item].planned = more = true;
    }
    arena_rewind(&r->arena, mark);
    return more;
}

/* Between two looks a row goes on: what would be decided there was decided at the last one. */
static bool wants_pass(run *r, run_item *i, int pass, double model_us, double wide) {
    const int passes = figures_passes(i->measurement);
    if (i->source == RUN_PENDING || passes != pass - 1 || passes == 0) return false;
    if (run_on_host(r) && r->narrow_end > 0) return false; /* all is decided */
    const bool more = r->options->target_ci > 0 || r->options->min_time_s > 0;
    if (i->source == RUN_CACHED && r->budget.end == 0 && !more) return false; /* it had its time */
    const bool under_way = passes > 1 && !estimate_look((size_t)passes) && i->changed;
    if (i->busy || i->again || i->ended || !json_object_get(i->measurement, "baseline_time_us")) return false;
    if (is_short(r, i) || r->late) return is_short(r, i);
    /* What was measured once may be what was best by chance, and a plan is a sum of such choices. */
    if (i->planned && passes < FILLS && run_search_share(r, i, model_us) >= WORTH) return true;
    if (run_fusion_is_turned(i)) return false; /* the replay decides about regions, and not each of its operations */
    return under_way || open_of(r, i, model_us) >= WORTH ||
           (passes < (int)estimate_last_look() && ask(r, i) && i->wide && !i->guessed && i->operation->count > 0 &&
            !i->fusion && run_search_share(r, i, model_us) >= wide);
}

void run_order_look(run *r) {
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    const bool known = r->device_count > 0 && r->devices[0].ceilings && !r->devices[0].flying;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        if (!r->shares_known) i->share = known ? run_order_share(r, i) : 1.0 / r->item_count;
        if (!i->busy) i->wanted = wants_pass(r, i, figures_passes(i->measurement) + 1, model_us, wide);
    }
    r->shares_known = r->shares_known || known;
}

/* Whether an operation goes on when all is decided. A GPU's until they are known well, and a host's to the look that
 * most of them come to, however they look before: its passes differ by where memory lies, and four of them are few. */
static bool may_narrow(run *r, run_item *i, bool host) {
    const int passes = figures_passes(i->measurement);
    if (!i->changed || i->ended || i->guessed || i->operation->count == 0 || !ask(r, i)) return false;
    if (host) return passes < (int)(i->wide ? estimate_last_look() : estimate_decided);
    /* it is looked at no more often than else */
    return passes < (int)estimate_last_look() && !(estimate_look((size_t)passes) && i->ci <= NARROW);
}

/* The one that is known worst, for each of so few may be the one that was asked for; of a host's the one that has had
 * the fewest passes. NULL: there is no time for that. */
static run_item *narrow(run *r, int device) {
    const bool host = run_on_host(r);
    run_item *chosen = NULL;
    if (r->began == 0) return NULL; /* this run has measured nothing */
    if (r->narrow_end == 0) r->narrow_end = run_now() + (host ? budget_spare(run_now() - r->began) : NARROW_SECONDS);
    for (int k = 0; k < r->list.count && run_now() < r->narrow_end; k++) {
        run_item *i = &r->items[k];
        const bool here = i->device == device || r->device_count == 1;
        if (!here || !may_narrow(r, i, host)) continue;
        const bool before = chosen && (host ? figures_passes(i->measurement) < figures_passes(chosen->measurement)
                                            : i->ci > chosen->ci);
        if (!chosen || before) chosen = i;
    }
    return chosen;
}

/* Seconds that this takes at most, of those that are to come. */
double run_order_spare(run *r, double now) {
    bool any = false;
    if (!run_on_host(r) || r->options->target_ci > 0 || r->search.compare || r->late) return 0;
    if (r->narrow_end > 0) return fmax(r->narrow_end - now, 0);
    for (int k = 0; k < r->list.count && !any; k++)
        any = r->items[k].source == RUN_PENDING || may_narrow(r, &r->items[k], true);
    return any ? budget_spare(r->began > 0 ? now - r->began : 0) : 0;
}

/* A later pass searches for nothing, and so goes with the root of what the first one took. */
static double pass_seconds(const run_item *i, double seconds_per_root) {
    return i->passes > 0 ? i->passes_s / i->passes : seconds_per_root * sqrt(fmax(i->first_s, LEAST_SECONDS));
}

static bool is_elsewhere(const run *r, const run_item *i, int device) {
    return i->measurement && i->source != RUN_LEFT && i->device != device && r->device_count > 1;
}

/* What was measured once may be the best by chance: a second pass of what the plan takes comes before a third one of
 * anything. */
static bool is_due(const run_item *i, int passes) { return i->planned && passes == 1; }

/* Before the first look nothing is known of how well a figure is known. Where the time that is left is too short for
 * all of a device to get there: the share of the model's time from which on they do. */
static double least_share(run *r, int device, double model_us, double wide, double left_s) {
    budget_wish *const all = isfinite(left_s) ? malloc((2 * (size_t)r->item_count + 1) * sizeof *all) : NULL;
    double seconds = 0, roots = 0;
    size_t count = 0;
    if (!all) return 0;
    for (int k = 0; k < r->item_count; k++) {
        const run_item *i = &r->items[k];
        seconds += i->passes_s, roots += i->passes * sqrt(fmax(i->first_s, LEAST_SECONDS));
    }
    const double per_root = roots > 0 ? seconds / roots : LATER_ROOT;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        const int passes = figures_passes(i->measurement);
        if (is_elsewhere(r, i, device) || passes >= FILLS || !wants_pass(r, i, passes + 1, model_us, wide)) continue;
        const double each_s = pass_seconds(i, per_root);
        const bool due = is_due(i, passes);
        if (due) all[count++] = (budget_wish){INFINITY, each_s};
        all[count++] = (budget_wish){run_search_share(r, i, model_us), (FILLS - passes - due) * each_s};
    }
    const double least = budget_afforded(all, count, left_s);
    free(all);
    return least;
}

/* Of those that want another pass, one that has had the fewest; in each pass they have another order. */
static run_item *of_passes(run *r, int device, double model_us, double wide, double least) {
    run_item *chosen = NULL;
    int fewest = 0;
    for (int k = 0; k < r->item_count; k++) {
        run_item *i = &r->items[k];
        const int pass = figures_passes(i->measurement) + 1;
        if (is_elsewhere(r, i, device) || !wants_pass(r, i, pass, model_us, wide)) continue;
        if (pass <= FILLS && !is_due(i, pass - 1) && run_search_share(r, i, model_us) < least) continue;
        i->turn = (int)(mix_bits((uint64_t)pass * 65536 + (uint64_t)k) >> 34);
        if (chosen && (pass > fewest || (pass == fewest && i->turn >= chosen->turn))) continue;
        chosen = i, fewest = pass;
    }
    return chosen;
}

/* A second search is done at once: no thread prepares it, or little time is left. */
static bool waits_for_none(const run *r, int device, double left_s) {
    const run_device *d = &r->devices[device];
    return !run_job_is_ahead(r, d) || d->restarted || left_s < AWAITED_SECONDS;
}

/* NULL: nothing is open, or there is no time left. */
static run_item *next_pass(run *r, int device) {
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    const double now = run_now();
    const double end_s = budget_later_end(&r->budget, r->began > 0 ? now - r->began : 0, run_on_host(r), now);
    r->late = now >= end_s;
    if (r->late && (r->budget.end > 0 || !(r->options->min_time_s > 0))) return NULL;
    if (!r->late) run_search_look(r, device, RUN_PARTS, model_us, end_s - now);
    run_item *const again = run_search_next(r, device, waits_for_none(r, device, end_s - now), end_s - now);
    if (again) return again;
    if (!r->looked_at_plan) look_at_plan(r);
    r->looked_at_plan = true;
    do {
        const double least = least_share(r, device, model_us, wide, end_s - now);
        run_item *const chosen = of_passes(r, device, model_us, wide, least);
        if (chosen) return chosen;
    } while (look_at_plan(r));
    run_item *const awaited = run_search_next(r, device, true, end_s - now);
    if (awaited) return awaited;
    const bool enough = r->late || r->options->target_ci > 0;
    return enough || (run_on_host(r) ? r->search.compare : r->list.count > FEW) ? NULL : narrow(r, device);
}

/* ---- while jobs are prepared ---- */

static void bring_forward(run *r, int k, int to) {
    const int chosen = r->order[k];
    memmove(&r->order[to + 1], &r->order[to], (size_t)(k - to) * sizeof *r->order);
    r->order[to] = chosen;
}

/* What is being prepared beside gives way to the next of its stage that is ready. False: none is. Fusions are held
 * against what their parts run as, and wait for what is searched again. */
static bool pass_over(run *r) {
    const run_item *first = &r->items[r->order[r->at]];
    for (int k = r->at; k < r->item_count; k++) {
        const run_item *i = &r->items[r->order[k]];
        if (i->source != RUN_PENDING || i->started || (i->announced && !i->ready)) continue;
        if ((i->stage == RUN_OPERATIONS) != (first->stage == RUN_OPERATIONS)) break;
        if ((!i->announced && k > r->at) || !run_fusion_known(r, i)) continue;
        bring_forward(r, k, r->at);
        return true;
    }
    return false;
}

/* At what first passes took so far a budget ends before all had theirs. The last ones are those that take longest to be
 * prepared: they have a share of it beside. */
static bool is_hurried(const run *r, double now) {
    const double wait_s = fmin(AWAITED_SHARE * r->budget.whole_s, AWAITED_SECONDS);
    double took_s = 0;
    int begun = 0, left = 0;
    for (int k = 0; k < r->list.count; k++) {
        const run_item *i = &r->items[k];
        const bool known = i->stage == RUN_OPERATIONS && i->first_s > 0;
        begun += known;
        took_s += known ? i->first_s : 0;
        left += i->source == RUN_PENDING && !i->started && i->stage == RUN_OPERATIONS;
    }
    if (!(r->budget.end > 0) || begun == 0 || left == 0) return false;
    return left * took_s > begun * (r->budget.end - wait_s - now);
}

/* None is ready, and there is no time to wait: what needs no library, else what was announced last, for no thread is
 * likely to be at it. They begin with what is dear. */
static void take_from_behind(run *r) {
    enum { LIGHT, CHEAP, ANY, CHOICES };
    for (int choice = LIGHT; choice < CHOICES; choice++)
        for (int k = r->item_count - 1; k >= r->at; k--) {
            const run_item *i = &r->items[r->order[k]];
            if (i->source != RUN_PENDING || i->started || i->stage != RUN_OPERATIONS) continue;
            if (choice == LIGHT && !kinds_light(i->operation->rec.kind)) continue;
            if (choice == CHEAP && kinds_dear(&i->operation->rec)) continue;
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
        i->turn = (int)(mix_bits((uint64_t)passes * 65536 + (uint64_t)k) >> 34);
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

/* What is searched again before a stage begins, for it is prepared while that is measured: of the stages before, those
 * that are ready, or (`wait`) any. Fusions are made of what operations run as, and wait for these alone. */
static run_item *before_stage(run *r, int device, run_stage stage, bool wait) {
    const double now = run_now();
    const bool joined = stage > RUN_FUSIONS;
    const double left_s = !joined             ? budget_operations_left(&r->budget, now)
                          : r->budget.end > 0 ? r->budget.end - now
                                              : (double)INFINITY;
    run_search_look(r, device, joined ? stage - 1 : RUN_OPERATIONS, model_time(r), left_s);
    return run_search_next(r, device, (wait && !joined) || waits_for_none(r, device, left_s), left_s);
}

run_item *run_order_next(run *r, int device) {
    const run_device *const d = &r->devices[device];
    const double model_us = model_time(r);
    budget_reserve_for(&r->budget, run_replay_expected_s(r, model_us, false), run_replay_expected_s(r, model_us, true),
                       run_now());
    while (r->at < r->item_count) {
        if (!r->led && run_job_is_ahead(r, d)) lead(r);
        run_item *i = &r->items[r->order[r->at]];
        if (i->source != RUN_PENDING || i->started) {
            r->at++;
            continue;
        }
        const bool joined = i->stage != RUN_OPERATIONS;
        run_item *const again = joined ? before_stage(r, device, i->stage, false) : NULL;
        if (again) return again;
        const bool ready = pass_over(r);
        run_item *const filler = ready ? NULL : fill_in(r);
        run_item *const awaited = ready || filler || !joined ? NULL : before_stage(r, device, i->stage, true);
        if (filler || awaited) return filler ? filler : awaited;
        if (!ready && r->budget.end > 0) take_from_behind(r);
        i = &r->items[r->order[r->at]];
        if (!run_fusion_ready(r, i)) return NULL; /* another device is at one of its parts */
        if (would_wait(r, i) || (i->stage == RUN_TURNED_FUSIONS && !run_plan_may_turn(r, i->fusion))) {
            run_fusion_skip(i);
            continue;
        }
        i->budget_s = run_order_seconds(r, i, false);
        if (i->budget_s == 0) {
            skip_rest(r, i->stage == RUN_OPERATIONS);
            continue;
        }
        if (r->began == 0) r->began = run_now();
        r->at++;
        i->started = true;
        return i;
    }
    return next_pass(r, device);
}

bool run_order_is_open(run *r) {
    const double model_us = model_time(r), wide = wide_share(r, model_us);
    for (int k = 0; k < r->item_count; k++)
        if (wants_pass(r, &r->items[k], figures_passes(r->items[k].measurement) + 1, model_us, wide)) return true;
    return false;
}
