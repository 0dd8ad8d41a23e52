/* The job `replay`: a pass over the whole model. What it asks for is read once, and kept with the plans between passes.
 */
#include "scout/worker/worker_jobs.h"

#include "scout/plan/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERATIONS = 100000 };
static const size_t arena_bytes = (size_t)1 << 30;

struct worker_replay {
    int64_t session;
    json_t *body; /* owned: texts are borrowed from it */
    guard guard;
    arena arena;
    replay_request request;
    replay *replay;
};

static const char *text_or_null(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

static replay_row read_row(const json_t *o) {
    return (replay_row){text_or_null(o, "name"), text_or_null(o, "variant")};
}

static void read_operations(worker_replay *w, const json_t *list) {
    const size_t n = json_array_size(list);
    if (n > MOST_OPERATIONS) guard_fail(&w->guard, STATUS_ENVIRONMENT, "a replay of %zu operations", n);
    replay_operation *to = arena_array(&w->arena, replay_operation, n);
    for (size_t k = 0; k < n; k++) {
        const json_t *one = json_array_get(list, k);
        operation_from_json(json_object_get(one, "operation"), &w->arena, &to[k].operation);
        to[k].rows[0] = read_row(json_object_get(one, "default"));
        to[k].rows[1] = read_row(json_object_get(one, "best"));
    }
    w->request.operations = to;
    w->request.operation_count = (int)n;
}

static void read_fusions(worker_replay *w, const json_t *list) {
    const size_t n = json_array_size(list);
    if (n > MOST_OPERATIONS) guard_fail(&w->guard, STATUS_ENVIRONMENT, "a replay of %zu fusions", n);
    replay_fusion *to = arena_array(&w->arena, replay_fusion, n);
    for (size_t k = 0; k < n; k++) {
        const json_t *one = json_array_get(list, k);
        if (json_is_null(one)) continue; /* the plan has none of it */
        operation_from_json(json_object_get(one, "operation"), &w->arena, &to[k].of.operation);
        to[k].of.rows[0] = read_row(json_object_get(one, "row"));
        to[k].part_count = fusion_from_json(json_object_get(one, "parts"), &w->arena, &to[k].parts);
    }
    w->request.fusions = to;
    w->request.fusion_count = (int)n;
}

/* By what makes it another one may differ. */
static bool is_same_tensor(const operation_tensor *a, const operation_tensor *b) {
    return a->bytes == b->bytes && a->source == b->source && a->offset == b->offset && a->lie == b->lie &&
           a->constant == b->constant && a->kept == b->kept && a->type == b->type;
}

/* A plan in which some images are turned: it has all tensors of the file's dataflow, and others behind them. */
static const int *read_from(worker_replay *w, const json_t *list) {
    const replay_request *q = &w->request;
    int *from = arena_array(&w->arena, int, q->planned->occurrence_count);
    if (q->planned->tensor_count < q->flow->tensor_count ||
        json_array_size(list) != (size_t)q->planned->occurrence_count || !json_object_get(w->body, "plan"))
        guard_fail(&w->guard, STATUS_ENVIRONMENT, "a replay whose plan is of another model");
    for (int k = 0; k < q->flow->tensor_count; k++)
        if (!is_same_tensor(&q->flow->tensors[k], &q->planned->tensors[k]))
            guard_fail(&w->guard, STATUS_ENVIRONMENT, "a replay whose plan has other tensors than the model");
    for (int k = 0; k < q->planned->occurrence_count; k++) {
        const json_t *one = json_array_get(list, (size_t)k);
        const json_int_t x = json_is_integer(one) ? json_integer_value(one) : -2;
        if (x < -1 || x >= q->flow->occurrence_count ||
            (x >= 0 && q->flow->occurrences[x].times != q->planned->occurrences[k].times))
            guard_fail(&w->guard, STATUS_ENVIRONMENT, "a replay whose plan has an occurrence that the model has not");
        from[k] = (int)x;
    }
    return from;
}

/* Fails through the guard. */
static void read_request(worker_replay *w) {
    const json_t *body = w->body;
    replay_request *q = &w->request;
    if (!regime_from_key(json_get_text(body, "regime"), &q->regime))
        guard_fail(&w->guard, STATUS_ENVIRONMENT, "a job of an unknown regime \"%s\"", json_get_text(body, "regime"));
    read_operations(w, json_object_get(body, "operations"));
    q->flow = operation_flow_from_json(json_object_get(body, "flow"), q->operation_count, &w->arena);
    read_fusions(w, json_object_get(body, "fusions"));
    const json_t *groups = json_object_get(body, "plan");
    const json_t *planned = json_object_get(body, "planned");
    if (planned) q->planned = operation_flow_from_json(planned, q->operation_count, &w->arena);
    if (planned) q->from = read_from(w, json_object_get(body, "from"));
    if (groups) q->plan = plan_from_json(groups, planned ? q->planned : q->flow, q->fusion_count, &w->arena);
    q->workspace_limit = (uint64_t)worker_request_number(body, "workspace_limit", REGIME_WORKSPACE_BYTES);
    q->exhaustive = json_is_true(json_object_get(body, "exhaustive"));
    q->plateau_bytes = worker_request_number(body, "plateau_bytes", 0);
    q->clock_fall = worker_request_number(body, "clock_fall", 0);
    q->only = text_or_null(body, "only");
    q->exclusions = worker_request_exclusions(json_object_get(body, "exclusions"), &w->arena, &q->exclusion_count);
}

static replay_beside beside_of(const worker *w, const json_t *body) {
    const int threads = json_is_true(json_object_get(body, "ahead")) ? worker_ahead_threads(w) : 0;
    return (replay_beside){.threads = threads < REPLAY_MOST_BESIDE ? threads : REPLAY_MOST_BESIDE,
                           .ordinal = w->ordinal,
                           .cores = w->cores};
}

static bool read_guarded(worker_replay *w) {
    if (!guard_enter(&w->guard)) return false;
    read_request(w);
    return true;
}

void worker_replay_forget(worker *w) {
    worker_replay *r = w->replay;
    w->replay = NULL;
    if (!r) return;
    replay_close(r->replay);
    arena_free(&r->arena);
    json_decref(r->body);
    free(r);
}

static worker_replay *replay_of(worker *w, const json_t *body, worker_end *end) {
    const int64_t session = json_integer_value(json_object_get(body, "session"));
    if (w->replay && w->replay->session == session) return w->replay;
    worker_replay_forget(w);
    worker_replay *r = calloc(1, sizeof *r);
    if (!r) {
        status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
        return NULL;
    }
    w->replay = r;
    r->session = session;
    r->body = json_deep_copy(body);
    guard_init(&r->guard);
    arena_init(&r->arena, &r->guard, arena_bytes);
    r->request.beside = beside_of(w, body);
    if (read_guarded(r)) r->replay = replay_open(w->api, w->device, &w->identity, &r->request, &w->watcher);
    if (r->replay) return r;
    if (r->guard.st.code != STATUS_OK)
        end->st = r->guard.st;
    else
        status_set(&end->st, STATUS_ENVIRONMENT, "out of memory");
    worker_replay_forget(w);
    return NULL;
}

json_t *worker_jobs_replay(worker *w, const json_t *body, worker_end *end) {
    w->watcher = (measure_watcher){.context = w, .step = worker_step};
    if (!worker_jobs_open(w, end)) return NULL;
    worker_replay *r = replay_of(w, body, end);
    if (!r) return NULL;
    const replay_pass pass = {.number = (int)fmax(worker_request_number(body, "pass", 1), 1),
                              .seed = (uint64_t)json_integer_value(json_object_get(body, "seed")),
                              .hold_s = worker_request_number(body, "hold_s", 0),
                              .in_place = json_is_true(json_object_get(body, "in_place")),
                              .exact = json_is_true(json_object_get(body, "exact")),
                              .trace = json_is_true(json_object_get(body, "trace"))};
    json_t *result = replay_run(r->replay, &pass, &end->answer, &end->why);
    if (!result) worker_replay_forget(w);
    return result;
}
