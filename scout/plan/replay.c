/* A replay from its request to its figures: plans, steps, lanes that take turns. */
#include "scout/plan/replay_internal.h"

#include "scout/terms/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAUNCHES = 100000 }; /* of a run */
static const size_t arena_bytes = (size_t)1 << 30;

void replay_tell(replay *r, const choice *c, const char *what, double seconds) {
    if (r->watcher && r->watcher->step)
        r->watcher->step(r->watcher->context, c ? c->candidate->name : NULL, c ? c->variant : "", what, seconds);
}

scout_answer replay_note(replay *r, scout_answer answer, const scout_why *why) {
    if (answer == SCOUT_OK || r->answer == SCOUT_LOST) return answer;
    r->answer = answer;
    r->why = *why;
    return answer;
}

void replay_leave_out(replay_unit *u, const scout_why *why) {
    u->out = true;
    u->why = *why;
}

/* ---- steps ---- */

const operation_flow *replay_flow(const replay *r, int which) {
    return which > 0 && r->request->planned ? r->request->planned : r->request->flow;
}

bool replay_turns(const replay *r) { return r->request->planned != NULL; }

int replay_alone(const replay *r, const replay_step *s) {
    const bool plans = s->flow > 0 || replay_group_of(r, s);
    return plans && replay_turns(r) ? REPLAY_ALONE : 0;
}

/* The same operation on the same tensors. */
static bool is_as_it_was(const replay *r, int k) {
    const operation_flow *f = replay_flow(r, 0), *planned = replay_flow(r, 1);
    const int from = r->request->from[k];
    if (from < 0) return false;
    const operation_occurrence *was = &f->occurrences[from], *is = &planned->occurrences[k];
    return was->operation == is->operation && was->after - was->read == is->after - is->read &&
           memcmp(&f->edges[was->read], &planned->edges[is->read], (size_t)(is->after - is->read) * sizeof *f->edges) ==
               0;
}

static void add_steps(replay *r, int which) {
    const operation_flow *f = replay_flow(r, which);
    const scout_why long_loop = {"feature", "it stands in loops of more launches than a replay makes"};
    int64_t all = 0;
    r->step_of[which] = arena_array(&r->arena, int, f->occurrence_count);
    for (int k = 0; k < f->occurrence_count; k++) {
        const operation_occurrence *at = &f->occurrences[k];
        r->step_of[which][k] = -1;
        if (at->operation < 0 || r->units[at->operation].out) continue;
        if (at->times > 1 && all > MOST_LAUNCHES - at->times) {
            replay_leave_out(&r->units[at->operation], &long_loop);
            continue;
        }
        all += at->times;
        if (which > 0 && is_as_it_was(r, k)) {
            r->step_of[which][k] = r->step_of[0][r->request->from[k]];
            continue;
        }
        r->step_of[which][k] = r->step_count;
        r->steps[r->step_count++] =
            (replay_step){.unit = at->operation, .occurrence = k, .flow = which, .times = at->times};
    }
}

static void add_all_steps(replay *r) {
    const plan_run *p = r->request->plan;
    r->steps = arena_array(&r->arena, replay_step,
                           replay_flow(r, 0)->occurrence_count + replay_flow(r, 1)->occurrence_count +
                               (p ? p->group_count : 0));
    add_steps(r, 0);
    r->step_of[1] = r->step_of[0];
    if (replay_turns(r)) add_steps(r, 1);
}

scout_answer replay_launch(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream, scout_why *why) {
    const replay_unit *u = &r->units[s->unit];
    const int which = u->choice_of[lane];
    const choice *c = &u->choices[which];
    void *tensors[SCOUT_MAX_TENSORS];
    replay_memory_tensors(r, s, lane, c, copy, tensors);
    return replay_launch_on(r, c, tensors, stream, why);
}

scout_answer replay_launch_on(const replay *r, const choice *c, void *const *tensors, void *stream, scout_why *why) {
    const scout_args args = {.size = sizeof args,
                             .tensors = tensors,
                             .workspace = c->needs.workspace_bytes > 0 ? r->memory.base[REPLAY_WORKSPACE] : NULL,
                             .stream = stream};
    return c->candidate->launch(c->plan, &args, why);
}

/* The operation goes on by its default, or is left out if that failed. */
static void blame(replay_unit *u, int lane, const scout_why *why) {
    if (u->choice_of[lane] == 0) {
        replay_leave_out(u, why);
        return;
    }
    u->choice_of[1] = 0;
    u->wanes = *why;
}

scout_answer replay_each(replay *r, int order, replay_visit *visit, void *context, const replay_step **at) {
    const replay_course *c = &r->courses[order];
    for (int k = 0, end; k < c->count; k = end) { /* neighbours that run as often are the body of a loop */
        const int64_t times = r->steps[c->steps[k]].times;
        for (end = k + 1; times > 1 && end < c->count && r->steps[c->steps[end]].times == times;) end++;
        for (int64_t n = 0; n < times; n++)
            for (int which = k; which < end; which++) {
                *at = &r->steps[c->steps[which]];
                if (!replay_takes_part(r, *at)) continue;
                const scout_answer answer = visit(context, *at);
                if (answer != SCOUT_OK) return answer;
            }
    }
    return SCOUT_OK;
}

typedef struct launching {
    replay *replay;
    int lane;
    uint32_t copy;
    void *stream;
    scout_why *why;
    replay_launcher *launch;
} launching;

static scout_answer launch_one(void *context, const replay_step *s) {
    const launching *l = context;
    return l->launch(l->replay, s, l->lane, l->copy, l->stream, l->why);
}

/* A launch that failed names its operation. */
scout_answer replay_launch_all(replay *r, int lane, uint32_t copy, void *stream, scout_why *why,
                               replay_launcher *launch) {
    launching l = {r, lane, copy, stream, why, launch};
    const replay_step *at = NULL;
    const scout_answer answer = replay_each(r, lane, launch_one, &l, &at);
    if (answer != SCOUT_OK) blame(&r->units[at->unit], lane, why);
    return answer;
}

/* ---- lanes ---- */

static scout_answer enqueue(void *context, uint32_t launch, void *stream, scout_why *why) {
    replay_lane *l = context;
    replay *r = l->replay;
    const uint32_t copy = (r->captured ? l->first + launch : l->turn++) % r->memory.copies;
    return replay_launch_all(r, l->lane, copy, stream, why, l->in_pieces ? replay_pieces_launch : replay_launch);
}

static scout_answer sequence_of(replay_lane *l, uint32_t launches, uint32_t first, scout_sequence **out,
                                scout_why *why) {
    enum { ROOM = sizeof l->sequences / sizeof l->sequences[0] };
    replay *r = l->replay;
    for (int k = 0; k < l->sequence_count; k++)
        if (l->sequences[k].launches == launches && l->sequences[k].first == first) {
            *out = l->sequences[k].recorded;
            return SCOUT_OK;
        }
    if (l->sequence_count == ROOM) r->api->drop(r->device, l->sequences[--l->sequence_count].recorded);
    l->first = first;
    const scout_answer answer = r->api->record(r->device, r->captured, launches, enqueue, l, out, why);
    if (answer == SCOUT_OK) l->sequences[l->sequence_count++] = (replay_sequence){launches, first, *out};
    return answer;
}

static uint32_t whole(void *context) {
    const replay *r = ((replay_lane *)context)->replay;
    return r->captured ? r->memory.copies : 1;
}

typedef struct whole_run {
    replay *replay;
    scout_sequence *sequence;
} whole_run;

static scout_answer play_whole(void *context, double *seconds, scout_why *why) {
    const whole_run *w = context;
    return w->replay->api->run(w->replay->device, w->sequence, 1, seconds, why);
}

static scout_answer run(void *context, uint32_t launches, uint32_t batches, double *seconds, scout_why *why) {
    replay_lane *l = context;
    replay *r = l->replay;
    whole_run w = {.replay = r};
    const double each_s = l->launch_s > 0 ? l->launch_s : 60;
    replay_tell(r, NULL, "replay", fmin(30 + 20 * each_s * launches * batches, 3600));
    scout_answer answer = sequence_of(l, launches, 0, &w.sequence, why);
    const bool pieces = replay_pieces_serve(l, launches);
    for (uint32_t k = 0; pieces && k < batches && answer == SCOUT_OK; k++)
        answer = replay_pieces_run(l, play_whole, &w, &seconds[k], why);
    if (!pieces && answer == SCOUT_OK) answer = r->api->run(r->device, w.sequence, batches, seconds, why);
    if (answer == SCOUT_OK) l->launch_s = seconds[0] / launches;
    return answer;
}

/* Parts of a rotation follow each other. */
static scout_answer record(void *context, uint32_t launches, scout_sequence **out, scout_why *why) {
    replay_lane *l = context;
    const uint32_t copies = l->replay->memory.copies, first = launches < copies ? l->turn % copies : 0;
    l->turn = first + launches;
    return sequence_of(l, launches, first, out, why);
}

static void drop_sequences(replay *r) {
    for (int lane = 0; lane < REPLAY_LANES; lane++) {
        replay_lane *l = &r->lanes[lane];
        for (int k = 0; k < l->sequence_count && r->answer != SCOUT_LOST; k++)
            r->api->drop(r->device, l->sequences[k].recorded);
        l->sequence_count = 0;
    }
}

static void beat(void *context, double seconds) { replay_tell(context, NULL, "replay", fmin(seconds, 3600)); }

void replay_look_at_lanes(replay *r) {
    r->two = replay_groups_standing(r) > 0 || replay_turns(r);
    for (int k = 0; k < r->request->operation_count; k++)
        r->two = r->two || (!r->units[k].out && r->units[k].planned && r->units[k].choice_of[1] == 1);
    for (int lane = 0; lane < REPLAY_LANES; lane++) {
        r->launches[lane] = 0;
        for (int k = 0; k < r->courses[lane].count; k++) {
            const replay_step *s = &r->steps[r->courses[lane].steps[k]];
            if (replay_takes_part(r, s)) r->launches[lane] += s->times;
        }
    }
}

/* What fails here has failed in both lanes: one memory, one stream. It is timed again without what is to blame. */
static bool time_lanes(replay *r) {
    const int count = r->two ? REPLAY_LANES : 1;
    lanes_rules rules = lanes_rules_of(&r->request->regime, !r->api->has_graphs, r->pass.number == 1);
    rules.hold_s = r->request->regime.load != REGIME_BURST ? r->pass.hold_s : 0;
    rules.clock_fall = r->request->clock_fall;
    rules.believe = r->pass.number == 1;
    rules.learned = &r->learned;
    for (int k = 0; k < REPLAY_LANES; k++) {
        r->lanes[k] = (replay_lane){.replay = r, .lane = k};
        r->figures[k] = (lanes_lane){.subject = {.context = &r->lanes[k], .run = run, .whole = whole, .record = record},
                                     .keep = true};
    }
    (void)lanes_run(&r->clock, &rules, r->figures, count, 0, INFINITY);
    r->clock.telemetry(r->clock.context, &r->telemetry);
    for (int k = 0; k < count; k++)
        if (r->figures[k].answer != SCOUT_OK) {
            if (r->figures[k].answer == SCOUT_LOST) replay_note(r, SCOUT_LOST, &r->figures[k].why);
            drop_sequences(r);
            return false;
        }
    return true;
}

/* Choices that can still be timed. */
static int choices_left(const replay *r) {
    int left = 0;
    for (int k = 0; k < r->unit_count; k++)
        if (!r->units[k].out) left += 1 + (r->units[k].choice_of[1] == 1);
    return left;
}

/* Memory is laid out for those groups that stood. */
static bool is_as_laid_out(const replay *r) { return replay_groups_standing(r) == r->standing; }

static void time_all(replay *r) {
    for (int left = choices_left(r), before = left + 1; left > 0 && left < before && r->answer == SCOUT_OK;) {
        replay_look_at_lanes(r);
        if (time_lanes(r)) return;
        before = left;
        left = choices_left(r); /* as many as before: none was to blame */
        if (!is_as_laid_out(r)) return;
    }
    for (int k = 0; k < REPLAY_LANES && r->answer == SCOUT_OK; k++)
        if (r->figures[k].answer != SCOUT_OK) replay_note(r, r->figures[k].answer, &r->figures[k].why);
    if (r->answer == SCOUT_OK) {
        const scout_why why = {"error", "no operation could be replayed"};
        replay_note(r, SCOUT_NO, &why);
    }
}

/* Both lanes from the same weights on. */
static bool run_to_end(replay *r, int lane) {
    replay_lane *l = &r->lanes[lane];
    scout_sequence *sequence = NULL;
    double seconds = 0;
    scout_why why;
    replay_tell(r, NULL, "replay", fmin(30 + 20 * l->launch_s, 3600));
    scout_answer answer = sequence_of(l, whole(l), 0, &sequence, &why);
    l->turn = 0;
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, &seconds, &why);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    return answer == SCOUT_OK;
}

/* The first one's ends are held, the second one's lie where it made them; false: nothing to hold against each other. */
static bool run_both(replay *r, replay_held *first) {
    return run_to_end(r, 0) && replay_check_hold_ends(r, first) && run_to_end(r, 1);
}

/* Deep models may end in infinities, and kernels may treat these in other times: a run by default, and what it ends in.
 * That of the plan is held against it once, where both compute with the same numbers. */
static void look_at_end(replay *r) {
    const replay_course *c = &r->courses[0];
    if (r->pass.number == 1) r->ends.compared = 0;
    int last = c->count - 1;
    while (last >= 0 && !replay_takes_part(r, &r->steps[c->steps[last]])) last--;
    if (last < 0 || r->answer != SCOUT_OK || !run_to_end(r, 0)) return;
    replay_count_nonfinite(r, &r->steps[c->steps[last]]);
    if (r->pass.number > 1 || !r->two || r->own_numbers) return;
    replay_held first = {.at = NULL};
    if (run_both(r, &first)) replay_check_end(r, &first);
    replay_hold_close(r, &first);
}

/* What fails in it tells nothing of the lanes, so it comes when these are known. */
static void look_exactly(replay *r) {
    replay_held first = {.at = NULL};
    scout_why why = {"error", "no pass of this worker's came before it"};
    r->exact.known = false;
    r->exact.why = (scout_why){"error", "a run of it did not get to its end"};
    if (!r->checked || !r->two || r->own_numbers) replay_note(r, SCOUT_NO, &why);
    if (r->answer != SCOUT_OK || !replay_exact_wanted(r)) return;
    if (replay_note(r, replay_memory_open(r, &why), &why) != SCOUT_OK || !is_as_laid_out(r)) return;
    replay_look_at_lanes(r);
    if (run_both(r, &first)) replay_exact(r, whole(&r->lanes[0]) - 1, &first);
    replay_hold_close(r, &first);
}

/* ---- in place ---- */

static scout_answer launch_timed(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream,
                                 scout_why *why) {
    const double from = r->api->now(r->device);
    const scout_answer answer = replay_launch(r, s, lane, copy, stream, why);
    r->timing[s - r->steps] += r->api->now(r->device) - from;
    return answer;
}

static scout_answer enqueue_timed(void *context, uint32_t launch, void *stream, scout_why *why) {
    replay_lane *l = context;
    (void)launch;
    return replay_launch_all(l->replay, l->lane, l->turn++ % l->replay->memory.copies, stream, why, launch_timed);
}

enum { IN_PLACE_TIMES = 9 };

/* One run; false: it failed. */
static bool run_in_place(replay *r, replay_lane *l, double *seconds) {
    scout_sequence *sequence = NULL;
    scout_why why;
    replay_tell(r, NULL, "replay", fmin(60 + 100 * l->launch_s, 3600));
    scout_answer answer = r->api->record(r->device, 0, 1, enqueue_timed, l, &sequence, &why);
    memset(r->timing, 0, (size_t)r->step_count * sizeof *r->timing); /* of what was launched to record it */
    if (answer == SCOUT_OK) answer = r->api->run(r->device, sequence, 1, seconds, &why);
    if (sequence && answer != SCOUT_LOST) r->api->drop(r->device, sequence);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    return answer == SCOUT_OK;
}

static double median_at(const double *x, int stride) {
    double sorted[IN_PLACE_TIMES];
    for (int n = 0; n < IN_PLACE_TIMES; n++) sorted[n] = x[n * stride];
    return stats_median(sorted, IN_PLACE_TIMES);
}

/* A device that launches directly has done a launch when it returns, or does it later: then launches take a small part
 * of the run's time, and nothing is said of them. */
static void time_in_place(replay *r, int lane) {
    const arena_mark mark = arena_save(&r->arena);
    const int n = r->step_count;
    double *all = arena_array(&r->arena, double, (int64_t)IN_PLACE_TIMES *(n + 1)), parts[IN_PLACE_TIMES];
    int done = 0;
    for (int k = 0; k < r->unit_count; k++) r->units[k].in_place_s[lane] = 0;
    for (double seconds = 0; done < IN_PLACE_TIMES; done++) {
        r->timing = &all[done * n];
        if (!run_in_place(r, &r->lanes[lane], &seconds)) break;
        parts[done] = 0;
        for (int k = 0; k < n; k++) parts[done] += r->timing[k] / seconds;
    }
    for (int k = 0; done == IN_PLACE_TIMES && median_at(parts, 1) > 0.5 && k < n; k++)
        r->units[r->steps[k].unit].in_place_s[lane] += median_at(&all[k], n);
    arena_rewind(&r->arena, mark);
}

/* ---- passes ---- */

/* What has passed since the last call went there. */
static void spend(replay *r, replay_phase on) {
    const double now_s = r->api->now(r->device);
    r->spent_s[on] += now_s - r->spent_until_s;
    r->spent_until_s = now_s;
}

static void lay_out(replay *r) {
    replay_tell(r, NULL, "place", 300);
    replay_courses(r);
    replay_memory_plan(r);
}

static void open_all(replay *r) {
    r->opened = true;
    replay_open_units(r);
    if (r->answer != SCOUT_OK) return;
    add_all_steps(r);
    replay_groups_open(r);
    lay_out(r);
}

/* Where a group falls, its parts take its place, and everything is laid out anew. */
static bool time_as_laid_out(replay *r) {
    scout_why why = {.code = ""};
    const bool filled = replay_note(r, replay_memory_open(r, &why), &why) == SCOUT_OK;
    spend(r, REPLAY_FILLING);
    if (!filled) return true;
    if (!r->checked && is_as_laid_out(r)) replay_check(r);
    spend(r, REPLAY_CHECKING);
    if (r->answer != SCOUT_OK) return true;
    r->checked = is_as_laid_out(r);
    if (r->checked) time_all(r);
    spend(r, REPLAY_TIMING);
    if (r->answer != SCOUT_OK || is_as_laid_out(r)) return true;
    r->checked = false;
    drop_sequences(r);
    replay_memory_close(r);
    lay_out(r);
    return false;
}

static void pass_work(replay *r) {
    if (r->pass.exact) {
        look_exactly(r);
        return;
    }
    if (!r->opened) open_all(r);
    if (r->answer != SCOUT_OK) return;
    if (r->pass.trace && r->checked) {
        replay_trace_lanes(r);
        return;
    }
    spend(r, REPLAY_PREPARING);
    while (!time_as_laid_out(r)) spend(r, REPLAY_PREPARING);
    if (r->answer != SCOUT_OK) return;
    replay_look_at_lanes(r);
    look_at_end(r);
    spend(r, r->pass.number > 1 ? REPLAY_TIMING : REPLAY_CHECKING); /* later it is a run, and no more */
    for (int k = 0; r->pass.in_place && !r->api->has_graphs && k < (r->two ? 2 : 1) && r->answer == SCOUT_OK; k++) {
        time_in_place(r, k);
        replay_trace_launches(r, k);
    }
}

static void run_guarded(replay *r) {
    if (guard_enter(&r->guard)) {
        pass_work(r);
    } else if (r->answer == SCOUT_OK) {
        scout_say(&r->why, SCOUT_NO_MEMORY, "memory", "%.200s", r->guard.st.text);
        r->answer = SCOUT_NO_MEMORY;
    }
}

replay *replay_open(const scout_device_api *api, scout_device *device, const scout_identity *identity,
                    const replay_request *request, const measure_watcher *watcher) {
    replay *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->api = api;
    r->device = device;
    r->identity = identity;
    r->request = request;
    r->watcher = watcher;
    r->captured = request->regime.launch == REGIME_GRAPH && api->has_graphs;
    r->on = (device_lanes){.api = api, .device = device, .context = r, .beat = beat, .play = beat};
    r->clock = device_lanes_clock(&r->on);
    if (r->clock.stolen) r->clock.stolen = replay_pieces_stolen;
    guard_init(&r->guard);
    arena_init(&r->arena, &r->guard, arena_bytes);
    return r;
}

json_t *replay_run(replay *r, const replay_pass *pass, scout_answer *answer, scout_why *why) {
    r->pass = *pass;
    memset(r->spent_s, 0, sizeof r->spent_s);
    r->spent_until_s = r->api->now(r->device);
    if (r->answer != SCOUT_LOST) r->answer = SCOUT_OK;
    if (r->answer == SCOUT_OK) run_guarded(r);
    spend(r, REPLAY_TIMING); /* in place */
    json_t *result = r->answer == SCOUT_OK ? replay_json(r) : NULL;
    if (!result && r->answer == SCOUT_OK)
        r->answer = scout_say(&r->why, SCOUT_NO_MEMORY, "memory", "the host has no memory left");
    *answer = r->answer;
    *why = r->why;
    drop_sequences(r);
    replay_memory_close(r);
    return result;
}

void replay_close(replay *r) {
    if (!r) return;
    drop_sequences(r);
    replay_memory_close(r);
    for (int k = 0; r->units && k < r->unit_count; k++) {
        for (int c = 0; c < REPLAY_LANES; c++) {
            const choice *of = &r->units[k].choices[c];
            if (of->plan && r->answer != SCOUT_LOST) scout_destroy(of->candidate, of->plan);
        }
        weights_free(&r->units[k].weights);
    }
    for (int k = 0; k < r->crew_count; k++) /* plans leaned on them */
        if (r->answer != SCOUT_LOST) r->api->close(r->crew[k]);
    arena_free(&r->arena);
    free(r);
}
