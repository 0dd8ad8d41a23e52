/* Jobs that need a device: measuring and qualifying candidates, measuring ceilings. Each reads its request as if a
 * stranger had sent it, opens the device on first need, and tells the supervisor before each step of foreign code. */
#include "scout/worker/worker_jobs.h"

#include "common/json.h"

#include "scout/device/identity.h"
#include "scout/measure/device_lanes.h"
#include "scout/measure/measure.h"
#include "scout/worker/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_SECONDS = 120 };

/* ---- the device ---- */

bool worker_jobs_open(worker *w, worker_end *end) {
    if (w->device) return true;
    if (!w->api) {
        end->answer = SCOUT_FAILED;
        return status_fail(&end->st, STATUS_ENVIRONMENT, "a worker was given a job before a device");
    }
    worker_step(w, NULL, NULL, WORKER_STEP_OPEN, OPEN_SECONDS);
    end->answer = w->api->open(w->ordinal, &w->device, &end->why);
    if (end->answer == SCOUT_OK) return true;
    w->device = NULL;
    /* without opening the device this process cannot use it */
    end->answer = SCOUT_LOST;
    return false;
}

/* ---- passes ---- */

/* An operation that is being measured in passes: its plans stay, whatever else is measured meanwhile. */
struct worker_session {
    int64_t id;
    worker_request *request; /* owned, as the measurement */
    struct measurement *measurement;
    uint64_t used; /* when it was used last */
    worker_session *next;
};

static void session_free(worker_session *s) {
    if (!s) return;
    measure_close(s->measurement);
    worker_request_free(s->request);
    free(s);
}

void worker_jobs_rest(worker *w) {
    if (w->resting) measure_rest(w->resting);
    w->resting = NULL;
}

void worker_jobs_forget(worker *w) {
    worker_replay_forget(w);
    json_decref(w->ceilings);
    w->ceilings = NULL;
    while (w->sessions) {
        worker_session *s = w->sessions;
        w->sessions = s->next;
        session_free(s);
    }
}

static void drop_session(worker *w, worker_session *s) {
    for (worker_session **at = &w->sessions; *at; at = &(*at)->next) {
        if (*at != s) continue;
        *at = s->next;
        break;
    }
    session_free(s);
}

/* Plans hold memory of the device: of many operations those that waited longest are made anew. */
static void make_room(worker *w) {
    enum { MOST_SESSIONS = 192 };
    worker_session *oldest = NULL;
    int count = 0;
    for (worker_session *s = w->sessions; s; s = s->next, count++)
        if (!oldest || s->used < oldest->used) oldest = s;
    if (count >= MOST_SESSIONS) drop_session(w, oldest);
}

static worker_session *session_of(worker *w, const json_t *body, double *waited_s, worker_end *end) {
    const int64_t id = json_integer_value(json_object_get(body, "session"));
    const bool first = json_integer_value(json_object_get(body, "pass")) <= 1;
    for (worker_session *s = w->sessions; s; s = s->next) {
        if (s->id != id) continue;
        if (!first) return s;
        drop_session(w, s);
        break;
    }
    make_room(w);
    worker_session *s = calloc(1, sizeof *s);
    if (!s) {
        status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
        return NULL;
    }
    s->measurement = worker_ahead_take(w, body, &s->request, waited_s);
    if (!s->measurement) s->request = worker_request_new(body, &end->st);
    if (!s->measurement && s->request) {
        s->measurement = measure_open(w->api, w->device, &w->identity, &s->request->measure, &w->watcher);
        if (!s->measurement) status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
    }
    if (!s->measurement) {
        session_free(s);
        return NULL;
    }
    s->id = id;
    s->next = w->sessions;
    w->sessions = s;
    return s;
}

/* Rows are borrowed from the body. */
static measure_pass read_pass(const json_t *body, measure_choice *rows, int room) {
    const json_t *list = json_object_get(body, "rows");
    measure_pass p = {.number = (int)fmax(worker_request_number(body, "pass", 1), 1),
                      .seed = (uint64_t)json_integer_value(json_object_get(body, "seed")),
                      .budget_s = worker_request_number(body, "budget_s", 20),
                      .cut = json_is_true(json_object_get(body, "cut")),
                      .start_s = worker_request_number(body, "start_s", 0),
                      .least_s = worker_request_number(body, "least_s", 0),
                      .samples = json_is_true(json_object_get(body, "samples")),
                      .fetch = json_is_true(json_object_get(body, "fetch")),
                      .hold_s = worker_request_number(body, "hold_s", 0),
                      .rows = rows};
    for (size_t k = 0; k < json_array_size(list) && p.row_count < room; k++) {
        const json_t *one = json_array_get(list, k);
        rows[p.row_count++] = (measure_choice){json_get_text(one, "name"), json_get_text(one, "variant")};
    }
    return p;
}

static void tell_ready(worker *w) {
    json_t *const ready = worker_ahead_ready(w);
    json_t *const body = json_array_size(ready) > 0 ? json_pack("{s:O}", "ready", ready) : NULL;
    json_decref(ready);
    if (body) worker_send(w, FRAMES_PART, body);
}

static json_t *job_measure(worker *w, const json_t *body, worker_end *end) {
    enum { MOST_ROWS = 16 };
    measure_choice rows[MOST_ROWS];
    w->watcher = (measure_watcher){.context = w, .step = worker_step};
    if (!worker_jobs_open(w, end)) return NULL;
    double waited_s = 0;
    worker_ahead_hear(w, json_object_get(body, "ahead"));
    worker_session *s = session_of(w, body, &waited_s, end);
    if (!s) return NULL;
    measure_pass pass = read_pass(body, rows, MOST_ROWS);
    pass.waited_s = waited_s;
    s->used = ++w->jobs;
    json_t *result = measure_run(s->measurement, &pass, &end->answer, &end->why);
    tell_ready(w);
    if (!result) {
        drop_session(w, s);
        return NULL;
    }
    w->resting = s->measurement;
    if (!w->rests_later) worker_jobs_rest(w); /* else while the supervisor chooses the next job */
    return result;
}

static json_t *job_qualify(worker *w, const json_t *body, worker_end *end) {
    const measure_watcher watcher = {.context = w, .step = worker_step};
    const char *candidate = json_get_text(body, "candidate");
    json_t *result = NULL;
    worker_request *r = worker_request_new(body, &end->st);
    if (r && worker_jobs_open(w, end))
        result = measure_qualify(w->api, w->device, &r->measure, candidate, &watcher, &end->answer, &end->why);
    worker_request_free(r);
    return result;
}

/* ---- ceilings ---- */

static void beat(void *context, double seconds) { worker_step(context, NULL, NULL, "measuring ceilings", seconds); }

static void say(void *context, const char *text) {
    json_t *body = json_pack("{s:s}", "text", text);
    if (body) worker_send(context, FRAMES_SAY, body);
}

typedef struct ceilings_job {
    worker *worker;
    json_t *parts; /* names of those that are done, owned */
    regime regime;
    ceilings_request request;
    ceilings ceilings;
} ceilings_job;

static void send_part(void *context, const ceilings *c, const char *name) {
    const ceilings_job *j = context;
    json_builder b = {0};
    status ignored; /* what cannot be sent now is sent with the whole */
    json_t *body = json_new_object(&b);
    json_push_text(&b, j->parts, name);
    json_put(&b, body, "ceilings", ceilings_to_json(c, &b));
    json_put(&b, body, "parts", json_incref(j->parts));
    body = json_finish(&b, body, &ignored);
    if (body) worker_send(j->worker, FRAMES_PART, body);
}

static bool read_ceilings_job(worker *w, const json_t *body, ceilings_job *j, status *st) {
    const json_t *known = json_object_get(body, "ceilings"), *list = json_object_get(body, "precisions");
    const json_t *sweep = json_object_get(body, "sweep");
    char instance[sizeof j->ceilings.instance];
    identity_instance(&w->identity, instance, sizeof instance);
    if (!regime_from_key(json_get_text(body, "regime"), &j->regime))
        return status_fail(st, STATUS_ENVIRONMENT, "a job of an unknown regime \"%s\"", json_get_text(body, "regime"));
    if (json_is_object(known) && !ceilings_from_json(known, &j->ceilings, st)) return false;
    /* what was measured on another device or under other conditions is none of this one's */
    const bool ours = json_is_object(known) && strcmp(j->ceilings.instance, instance) == 0 &&
                      j->ceilings.load == j->regime.load && j->ceilings.launch == j->regime.launch;
    if (!ours) memset(&j->ceilings, 0, sizeof j->ceilings);
    snprintf(j->ceilings.instance, sizeof j->ceilings.instance, "%s", instance);
    j->ceilings.load = j->regime.load;
    j->ceilings.launch = j->regime.launch;
    for (size_t k = 0, n = 0; k < json_array_size(list) && n + 1 < CEILINGS_MAX_PEAKS; k++)
        if (json_is_string(json_array_get(list, k)))
            j->request.precisions[n++] = json_string_value(json_array_get(list, k));
    j->request.bandwidth = json_is_true(json_object_get(body, "bandwidth"));
    j->request.again = json_is_true(json_object_get(body, "again"));
    j->request.audit = json_is_true(json_object_get(body, "audit"));
    j->request.identity = &w->identity;
    j->request.part = send_part, j->request.part_context = j;
    j->worker = w, j->parts = json_array();
    j->request.budget_s = worker_request_number(body, "budget_s", 4);
    j->request.within_s = worker_request_number(body, "within_s", 0);
    if (json_is_object(sweep)) {
        j->request.sweep_precision = json_string_value(json_object_get(sweep, "precision"));
        j->request.sweep_m = (int64_t)worker_request_number(sweep, "m", 8192);
        j->request.sweep_n = (int64_t)worker_request_number(sweep, "n", 8192);
    }
    return true;
}

static json_t *job_ceilings(worker *w, const json_t *body, worker_end *end) {
    ceilings_job *j = calloc(1, sizeof *j);
    json_builder b = {0};
    json_t *audit = json_new_object(&b), *result = NULL;
    if (!j) {
        status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
    } else if (read_ceilings_job(w, body, j, &end->st) && worker_jobs_open(w, end)) {
        device_lanes on = {.api = w->api, .device = w->device, .context = w, .beat = beat};
        const timing_clock clock = device_lanes_clock(&on);
        end->answer = ceilings_measure(w->api, w->device, &clock, &j->regime, &j->request, say, w, &j->ceilings, &b,
                                       audit, &end->why);
        if (end->answer == SCOUT_OK && !isfinite(clock.now(clock.context)))
            end->answer = scout_say(&end->why, SCOUT_FAILED, "error", "the device's clock says that it is %g s",
                                    clock.now(clock.context));
        if (end->answer == SCOUT_OK) {
            result = json_new_object(&b);
            json_put(&b, result, "ceilings", ceilings_to_json(&j->ceilings, &b));
            json_put(&b, result, "audit", j->request.audit ? json_incref(audit) : json_null());
            result = json_finish(&b, result, &end->st);
        }
    }
    json_decref(audit);
    if (j) json_decref(j->parts);
    free(j);
    return result;
}

static const struct {
    const char *what;
    worker_job *job;
} jobs[] = {
    {"measure", job_measure},       {"qualify", job_qualify},         {"ceilings", job_ceilings},
    {"replay", worker_jobs_replay}, {"devices", worker_jobs_devices}, {"candidates", worker_jobs_candidates},
};

worker_job *worker_jobs_find(const char *what) {
    for (size_t k = 0; k < sizeof jobs / sizeof jobs[0]; k++)
        if (strcmp(jobs[k].what, what) == 0) return jobs[k].job;
    return NULL;
}
