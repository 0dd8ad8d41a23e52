/* What a replay runs: its operations, and their plans. Where other threads may prepare these, they do so on devices of
 * their own, beside the one that will measure. It prepares once more what failed there: its own word is the reason. */
#include "scout/plan/replay_internal.h"

#include "scout/kinds/kind_tensors.h"
#include "scout/kinds/kinds.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { EACH = 4 };                   /* a thread is for so many plans: it takes a library's time to begin */
static const double prepare_s = 120; /* within which a plan is there */

static const measure_exclusion *excluded(const replay_request *q, const replay_row *row) {
    for (int k = 0; k < q->exclusion_count; k++) {
        const measure_exclusion *e = &q->exclusions[k];
        const bool all = e->variant[0] == 0 || !row->variant || strcmp(e->variant, row->variant) == 0;
        if (strcmp(e->name, row->candidate) == 0 && all) return e;
    }
    return NULL;
}

static scout_answer prepare(const replay *r, replay_unit *u, int row, scout_device *device, scout_why *why) {
    const replay_row *of = &u->of->rows[row];
    choice *c = &u->choices[row];
    const choice_wish wish = {.api = r->api,
                              .op = &u->op,
                              .id = u->of->operation.id,
                              .candidate = of->candidate,
                              .variant = of->variant,
                              .exhaustive = r->request->exhaustive};
    *c = (choice){.candidate = NULL};
    const scout_answer answer = choice_named(&wish, device, c, why);
    if (answer != SCOUT_OK) c->plan = NULL;
    return answer;
}

static void tell_step(const replay *r, const replay_row *of) {
    if (r->watcher && r->watcher->step)
        r->watcher->step(r->watcher->context, of->candidate, of->variant, "prepare", prepare_s);
}

/* False: this one cannot take part, why says so. */
static bool choose(replay *r, replay_unit *u, int row, scout_why *why) {
    const measure_exclusion *e = excluded(r->request, &u->of->rows[row]);
    if (u->choices[row].plan) return true;
    if (e) {
        *why = e->why;
        return false;
    }
    tell_step(r, &u->of->rows[row]);
    const scout_answer answer = prepare(r, u, row, r->device, why);
    if (answer == SCOUT_LOST) replay_note(r, answer, why);
    if (answer == SCOUT_OK) return true;
    (void)bench_status_of(answer, why);
    return false;
}

/* ---- units ---- */

static bool is_same(const replay_row *a, const replay_row *b) {
    return strcmp(a->candidate, b->candidate) == 0 &&
           strcmp(a->variant ? a->variant : "", b->variant ? b->variant : "") == 0;
}

static bool is_asked(const replay *r, const replay_operation *of) {
    bool asked = false;
    for (int k = 0; k < REPLAY_LANES; k++)
        asked = asked || (of->rows[k].candidate && filter_takes(r->request->only, of->rows[k].candidate));
    return asked;
}

static bool has_best(const replay_unit *u) {
    return u->of->rows[1].candidate && !is_same(&u->of->rows[0], &u->of->rows[1]);
}

/* Its operation, as plans are prepared for it. */
static void build(replay *r, replay_unit *u) {
    const operation *o = &u->of->operation;
    const weights_counter counter = {r->api, r->device};
    scout_why why = {.code = ""};
    if (weights_matter(o)) replay_tell(r, NULL, "weights", prepare_s);
    if (!u->of->rows[0].candidate || !is_asked(r, u->of))
        u->out = true;
    else if (!kinds_build(o, r->request->workspace_limit, &r->arena, &u->op, &why) ||
             !weights_make(o, &u->op, 1, &counter, &r->arena, &u->weights, &why))
        replay_leave_out(u, &why);
}

static void open_unit(replay *r, replay_unit *u) {
    const kind *k = kinds_find(u->of->operation.rec.kind);
    scout_why why = {.code = ""};
    if (u->out) return;
    if (!choose(r, u, 0, &why)) {
        replay_leave_out(u, &why);
        return;
    }
    u->tolerance = 2 * (k->tolerance(&u->op) + kind_in_parts(&u->op));
    if (!has_best(u)) return;
    if (choose(r, u, 1, &why))
        u->choice_of[1] = 1;
    else
        u->wanes = why;
}

/* ---- beside ---- */

typedef struct opening { /* one plan */
    replay_unit *unit;
    int row;
    bool begun, over;
} opening;

typedef struct crew {
    replay *replay;
    opening *openings;
    int count;
    pthread_mutex_t mutex; /* guards what follows, how far each opening is, and the replay's list of devices */
    pthread_cond_t changed;
    int next;
} crew;

/* The mutex is held. */
static opening *begin_next(crew *c) {
    opening *const o = c->next < c->count ? &c->openings[c->next++] : NULL;
    if (o) o->begun = true;
    return o;
}

static void open_beside(crew *c, opening *o, scout_device *device) {
    scout_why why;
    pthread_mutex_unlock(&c->mutex);
    const scout_answer answer = prepare(c->replay, o->unit, o->row, device, &why);
    pthread_mutex_lock(&c->mutex);
    o->over = true;
    if (answer == SCOUT_LOST) c->next = c->count;
    (void)replay_note(c->replay, answer == SCOUT_LOST ? answer : SCOUT_OK, &why);
    pthread_cond_broadcast(&c->changed);
}

static void *work(void *context) {
    crew *const c = context;
    replay *const r = c->replay;
    const replay_beside *const how = &r->request->beside;
    scout_device *device = NULL;
    scout_why why;
    sched_setaffinity(0, sizeof how->cores, &how->cores);
    if (r->api->open(how->ordinal, &device, &why) != SCOUT_OK) return NULL;
    pthread_mutex_lock(&c->mutex);
    r->crew[r->crew_count++] = device;
    for (opening *o = begin_next(c); o; o = begin_next(c)) open_beside(c, o, device);
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Those whose zeros are known are for the thread that counted them. */
static void list_openings(replay *r, crew *c) {
    c->openings = arena_array(&r->arena, opening, REPLAY_LANES * r->unit_count);
    for (int k = 0; k < r->unit_count; k++) {
        replay_unit *const u = &r->units[k];
        for (int row = 0; row < REPLAY_LANES && !u->out; row++) {
            if (weights_matter(&u->of->operation) || (row > 0 && !has_best(u))) continue;
            if (!excluded(r->request, &u->of->rows[row])) c->openings[c->count++] = (opening){.unit = u, .row = row};
        }
    }
}

/* Each is told as this thread's own step: it is what is waited for. */
static void wait_for_all(crew *c) {
    pthread_mutex_lock(&c->mutex);
    for (int k = 0; k < c->count; k++) {
        const opening *const o = &c->openings[k];
        if (!o->begun || o->over) continue;
        pthread_mutex_unlock(&c->mutex);
        tell_step(c->replay, &o->unit->of->rows[o->row]);
        pthread_mutex_lock(&c->mutex);
        while (!o->over) pthread_cond_wait(&c->changed, &c->mutex);
    }
    pthread_mutex_unlock(&c->mutex);
}

/* The thread that measures takes its part. */
static void work_here(crew *c) {
    replay *const r = c->replay;
    pthread_mutex_lock(&c->mutex);
    for (opening *o = begin_next(c); o; o = begin_next(c)) {
        pthread_mutex_unlock(&c->mutex);
        tell_step(r, &o->unit->of->rows[o->row]);
        pthread_mutex_lock(&c->mutex);
        open_beside(c, o, r->device);
    }
    pthread_mutex_unlock(&c->mutex);
    wait_for_all(c);
}

static void open_together(replay *r) {
    crew c = {.replay = r};
    pthread_t threads[REPLAY_MOST_BESIDE];
    int count = 0;
    scout_why why;
    if (r->request->beside.threads == 0) return;
    list_openings(r, &c);
    replay_tell(r, NULL, "prepare", prepare_s);
    if (c.count < 2 * EACH || r->api->beside(r->device, &why) != SCOUT_OK) return;
    pthread_mutex_init(&c.mutex, NULL);
    pthread_cond_init(&c.changed, NULL);
    for (; count < r->request->beside.threads && (count + 1) * EACH < c.count; count++)
        if (pthread_create(&threads[count], NULL, work, &c) != 0) break;
    work_here(&c);
    for (int k = 0; k < count; k++) pthread_join(threads[k], NULL);
    pthread_mutex_destroy(&c.mutex);
    pthread_cond_destroy(&c.changed);
}

/* ---- all ---- */

void replay_open_units(replay *r) {
    const replay_request *q = r->request;
    r->unit_count = q->operation_count + q->fusion_count;
    r->units = arena_array(&r->arena, replay_unit, r->unit_count);
    for (int k = 0; k < r->unit_count; k++) {
        r->units[k].of = k < q->operation_count ? &q->operations[k] : &q->fusions[k - q->operation_count].of;
        build(r, &r->units[k]);
    }
    open_together(r);
    for (int k = 0; k < r->unit_count && r->answer == SCOUT_OK; k++) open_unit(r, &r->units[k]);
}
