/* What a tracer saw of one run of each lane, kernel by kernel. On a device that runs graphs it is given to the steps
 * that launched them, as their times in place. What lies between kernels is not told: a tracer stretches it. */
#include "scout/plan/replay_internal.h"

#include <math.h>
#include <string.h>

enum { MOST_LAUNCHES = 20000, KERNELS_EACH = 4, KERNELS_MORE = 1000 };

typedef struct tracing {
    replay *replay;
    int lane;
    const replay_step **steps; /* by launch */
    uint32_t count;
} tracing;

static scout_answer note_step(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream, scout_why *why) {
    tracing *t = stream;
    (void)r, (void)lane, (void)copy, (void)why;
    t->steps[t->count++] = s;
    return SCOUT_OK;
}

static scout_answer enqueue(void *context, uint32_t launch, void *stream, scout_why *why) {
    const tracing *t = context;
    return replay_launch(t->replay, t->steps[launch], t->lane, 0, stream, why);
}

static void give_to_units(replay *r, int lane, const tracing *t, const replay_trace *of) {
    for (int k = 0; k < r->unit_count; k++) r->units[k].in_place_s[lane] = 0, r->units[k].traced[lane] = 0;
    for (uint32_t k = 0; k < t->count; k++) r->units[t->steps[k]->unit].traced[lane]++;
    double until_s = -INFINITY; /* kernels of one launch may run beside each other */
    for (uint32_t k = 0; k < of->count; k++) {
        const scout_trace_event *e = &of->events[k];
        if (!(e->end_s > until_s)) continue;
        r->units[of->units[k]].in_place_s[lane] += e->end_s - fmax(e->start_s, until_s);
        until_s = e->end_s;
    }
}

/* A launch that has no name of its own has that of its candidate. */
static void name(const replay *r, int lane, const replay_step *s, scout_trace_event *e) {
    const replay_unit *u = &r->units[s->unit];
    if (!e->name[0])
        snprintf(e->name, sizeof e->name, "%s", u->choices[lane == 1 ? u->choice_of[1] : 0].candidate->name);
}

static void trace_lane(replay *r, int lane) {
    replay_trace *to = &r->traces[lane];
    tracing t = {.replay = r, .lane = lane};
    scout_why why = {.code = ""};
    const int64_t launches = r->launches[lane];
    if (launches < 1 || launches > MOST_LAUNCHES) {
        scout_say(&r->untraced, SCOUT_NO, "feature", "%lld launches are more than the %d that are traced",
                  (long long)launches, (int)MOST_LAUNCHES);
        return;
    }
    const uint32_t most = (uint32_t)launches * KERNELS_EACH + KERNELS_MORE;
    t.steps = arena_array(&r->arena, const replay_step *, launches);
    to->events = arena_array(&r->arena, scout_trace_event, most);
    to->units = arena_array(&r->arena, int, most);
    (void)replay_launch_all(r, lane, 0, &t, &why, note_step);
    replay_tell(r, NULL, "trace", fmin(60 + 1000 * r->lanes[lane].launch_s, 3600));
    const scout_answer answer = r->api->trace(r->device, t.count, enqueue, &t, most, to->events, &to->count, &why);
    if (answer == SCOUT_LOST) replay_note(r, answer, &why);
    if (answer != SCOUT_OK) {
        to->count = 0;
        r->untraced = why;
        return;
    }
    for (uint32_t k = 0; k < to->count; k++) {
        const replay_step *s = t.steps[to->events[k].launch];
        to->units[k] = s->unit;
        name(r, lane, s, &to->events[k]);
    }
    if (r->captured) give_to_units(r, lane, &t, to);
}

void replay_trace_launches(replay *r, int lane) {
    if (SCOUT_HAS(r->api, trace) && r->api->trace) trace_lane(r, lane);
}

void replay_trace_lanes(replay *r) {
    scout_why why = {.code = ""};
    if (!r->captured || !SCOUT_HAS(r->api, trace) || !r->api->trace) {
        scout_say(&r->untraced, SCOUT_NO, "feature", "the device has no tracer of graphs");
        return;
    }
    if (replay_note(r, replay_memory_open(r, &why), &why) != SCOUT_OK) return;
    replay_look_at_lanes(r);
    for (int lane = 0; lane < (r->two ? REPLAY_LANES : 1) && r->answer == SCOUT_OK; lane++) trace_lane(r, lane);
}

/* Rows [operation's place among `names`, begin in us, us, kernel]. */
static json_t *lane_json(const replay_trace *t, json_builder *b) {
    json_t *rows = json_new_array(b);
    for (uint32_t k = 0; k < t->count; k++) {
        const scout_trace_event *e = &t->events[k];
        json_t *row = json_new_array(b), *name = json_string(e->name);
        json_push_int(b, row, t->units[k]);
        json_push(b, row, json_real(1e6 * (e->start_s - t->events[0].start_s)));
        json_push(b, row, json_real(1e6 * (e->end_s - e->start_s)));
        json_push(b, row, name ? name : json_string("kernel"));
        json_push(b, rows, row);
    }
    return rows;
}

json_t *replay_trace_json(const replay *r, json_builder *b) {
    json_t *to = json_new_object(b), *names = json_new_array(b);
    for (int k = 0; k < r->unit_count; k++) json_push_text(b, names, r->units[k].of->operation.id);
    json_put(b, to, "names", names);
    json_put(b, to, "default", lane_json(&r->traces[0], b));
    if (r->two) json_put(b, to, "best", lane_json(&r->traces[1], b));
    if (r->untraced.code[0]) json_put_text(b, to, "not", r->untraced.text);
    return to;
}
