/* Reads what a job asks to be measured, as if a stranger had sent it. */
#include "scout/worker/worker_jobs.h"

#include "common/json.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_EXCLUSIONS = 1024, MOST_LAUNCHES = 1000, ARENA_BYTES = 64 << 20 };

double worker_request_number(const json_t *body, const char *key, double otherwise) {
    const json_t *value = json_object_get(body, key);
    const double x = json_is_number(value) ? json_number_value(value) : otherwise;
    return isfinite(x) ? x : otherwise;
}

const measure_exclusion *worker_request_exclusions(const json_t *list, arena *a, int *count) {
    const size_t n = json_array_size(list);
    if (n > MAX_EXCLUSIONS) guard_fail(a->guard, STATUS_ENVIRONMENT, "a job with %zu exclusions", n);
    measure_exclusion *all = arena_array(a, measure_exclusion, n);
    for (size_t k = 0; k < n; k++) {
        const json_t *one = json_array_get(list, k);
        measure_exclusion *e = &all[k];
        e->name = arena_printf(a, "%s", json_get_text(one, "name"));
        e->variant = arena_printf(a, "%s", json_get_text(one, "variant"));
        if (!reason_status_from_name(json_get_text(one, "status"), &e->status)) e->status = ROW_ERROR;
        snprintf(e->why.code, sizeof e->why.code, "%s", json_get_text(one, "code"));
        snprintf(e->why.text, sizeof e->why.text, "%s", json_get_text(one, "text"));
        if (!reason_known(e->why.code)) snprintf(e->why.code, sizeof e->why.code, "error");
    }
    *count = (int)n;
    return all;
}

bool worker_request_tell_ceilings(worker_request *r, const json_t *body, status *st) {
    const json_t *known = json_object_get(body, "ceilings");
    if (json_is_true(known))
        return status_fail(st, STATUS_ENVIRONMENT, "a job has the ceilings of the last one that had any, and none had");
    if (!json_is_object(known)) return true;
    r->measure.ceilings = &r->ceilings;
    return ceilings_from_json(known, &r->ceilings, st);
}

/* Fails through the guard. */
static void read_request(worker_request *r, const json_t *body) {
    measure_request *m = &r->measure;
    const char *only = json_string_value(json_object_get(body, "only"));
    const char *before = json_string_value(json_object_get(body, "before"));
    status st = {0};
    operation_from_json(json_object_get(body, "operation"), &r->arena, &r->operation);
    m->operation = &r->operation;
    if (!regime_from_key(json_get_text(body, "regime"), &m->regime))
        guard_fail(&r->guard, STATUS_ENVIRONMENT, "a job of an unknown regime \"%s\"", json_get_text(body, "regime"));
    if (!worker_request_tell_ceilings(r, body, &st)) guard_fail(&r->guard, st.code, "%s", st.text);
    m->exhaustive = json_is_true(json_object_get(body, "exhaustive"));
    m->early_exit = worker_request_number(body, "early_exit", 0.97);
    m->workspace_limit = (uint64_t)worker_request_number(body, "workspace_limit", REGIME_WORKSPACE_BYTES);
    m->only = only ? arena_printf(&r->arena, "%s", only) : NULL;
    m->beside = json_is_true(json_object_get(body, "beside"));
    m->before = before ? arena_printf(&r->arena, "%s", before) : NULL;
    m->variant = json_string_value(json_object_get(body, "variant")); /* borrowed from the request */
    m->launches = (uint32_t)fmin(fmax(worker_request_number(body, "launches", 0), 0), MOST_LAUNCHES);
    const int parts = fusion_from_json(json_object_get(body, "parts"), &r->arena, &r->parts);
    m->parts = (parts_request){parts, r->parts, m->exhaustive};
    m->exclusions = worker_request_exclusions(json_object_get(body, "exclusions"), &r->arena, &m->exclusion_count);
}

/* A frame of its own: nothing that is set between guard_enter and a failure is looked at afterwards. */
static bool read_guarded(worker_request *r, const json_t *body) {
    if (!guard_enter(&r->guard)) return false;
    read_request(r, body);
    return true;
}

worker_request *worker_request_new(const json_t *body, status *st) {
    worker_request *r = calloc(1, sizeof *r);
    if (!r) {
        status_set(st, STATUS_ENVIRONMENT, "out of memory");
        return NULL;
    }
    guard_init(&r->guard);
    arena_init(&r->arena, &r->guard, ARENA_BYTES);
    if (read_guarded(r, body)) return r;
    *st = r->guard.st;
    arena_free(&r->arena);
    free(r);
    return NULL;
}

void worker_request_free(worker_request *r) {
    if (!r) return;
    arena_free(&r->arena);
    free(r);
}
