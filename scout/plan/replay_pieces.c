/* A run of a model takes longer than other work leaves a machine alone. So where a device tells what was taken from it,
 * a run is put together of pieces of a millisecond or so: each as it was in the first of several runs in which nothing
 * was taken. Every run is a whole one, so that each piece finds the caches as they are. */
#include "scout/plan/replay_internal.h"

#include <math.h>

enum { MOST_RUNS = 8 };
static const double piece_s = 1e-3, long_s = 2e-3; /* shorter runs are left alone often enough */
static const double disturbed = 0.02;              /* of a piece, as of a block in scout/timing/lanes.c */

static double now_of(const replay *r) { return r->api->now(r->device); }

double replay_pieces_stolen(void *context) {
    const device_lanes *on = context;
    const replay *r = on->context;
    return r->api->stolen(r->device) - r->waived_s;
}

bool replay_pieces_serve(const replay_lane *l, uint32_t launches) {
    return launches == 1 && l->launch_s > long_s && l->replay->clock.stolen && !l->replay->captured;
}

/* The first run tells where a piece ends. */
static void cut(replay_pieces *p, double now_s, int64_t all) {
    if (now_s - p->from_s < piece_s && p->launched < all) return;
    p->items[p->count++] = (replay_piece){.end = p->launched};
    p->from_s = now_s;
}

static void take(const replay *r, replay_pieces *p, double now_s) {
    replay_piece *at = &p->items[p->at++];
    const double stolen_s = r->api->stolen(r->device), missed_s = stolen_s - p->stolen_s;
    if (!at->known || (at->missed_s > disturbed * at->seconds && missed_s < at->missed_s)) {
        at->known = true;
        at->seconds = now_s - p->from_s;
        at->missed_s = missed_s;
    }
    p->stolen_s = stolen_s;
    p->from_s = now_of(r); /* looking is in no piece */
}

scout_answer replay_pieces_launch(replay *r, const replay_step *s, int lane, uint32_t copy, void *stream,
                                  scout_why *why) {
    replay_pieces *p = &r->pieces[lane];
    const scout_answer answer = replay_launch(r, s, lane, copy, stream, why);
    const double now_s = now_of(r);
    p->launched++;
    if (p->cutting)
        cut(p, now_s, r->launches[lane]);
    else if (p->at < p->count && p->launched == p->items[p->at].end)
        take(r, p, now_s);
    return answer;
}

/* One run by `play`, in pieces that are cut by it or filled. */
static scout_answer go(replay_lane *l, bool cutting, replay_pieces_play *play, void *context, scout_why *why) {
    replay *r = l->replay;
    replay_pieces *p = &r->pieces[l->lane];
    double seconds = 0;
    p->launched = 0;
    p->at = 0;
    p->cutting = cutting;
    p->stolen_s = r->api->stolen(r->device);
    p->from_s = now_of(r);
    l->in_pieces = true;
    const scout_answer answer = play(context, &seconds, why);
    l->in_pieces = false;
    return answer;
}

static int left_of(const replay_pieces *p) {
    int left = 0;
    for (int k = 0; k < p->count; k++)
        left += !p->items[k].known || p->items[k].missed_s > disturbed * p->items[k].seconds;
    return left;
}

scout_answer replay_pieces_run(replay_lane *l, replay_pieces_play *play, void *context, double *seconds,
                               scout_why *why) {
    replay *r = l->replay;
    replay_pieces *p = &r->pieces[l->lane];
    const double before_s = r->api->stolen(r->device);
    double missed_s = 0;
    scout_answer answer = SCOUT_OK;
    if (p->of != r->launches[l->lane]) { /* another course than was cut */
        *p = (replay_pieces){.items = arena_array(&r->arena, replay_piece, r->launches[l->lane] + 1),
                             .of = r->launches[l->lane]};
        answer = go(l, true, play, context, why);
    }
    for (int k = 0; k < p->count; k++) p->items[k].known = false;
    for (int n = 0; n < MOST_RUNS && answer == SCOUT_OK && left_of(p) > 0; n++)
        answer = go(l, false, play, context, why);
    *seconds = 0;
    for (int k = 0; k < p->count; k++) {
        *seconds += p->items[k].seconds;
        missed_s += p->items[k].missed_s;
    }
    r->waived_s += r->api->stolen(r->device) - before_s - missed_s;
    return answer;
}
