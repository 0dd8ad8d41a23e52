/* Tasks. Blame is kept in the request itself, so that whoever does the job next knows. */
#include "scout/supervisor_task.h"

#include "common/json_get.h"

#include "scout/chosen.h"

#include <stdlib.h>
#include <string.h>

static bool is_for(const json_t *candidate, const char *kind, const char *device, const char *only,
                   const char *before) {
    const char *of = json_get_text(candidate, "device"), *name = json_get_text(candidate, "name");
    const size_t n = strcspn(device, ":");
    if (!json_is_string(json_object_get(candidate, "plugin"))) return false;
    if (strcmp(json_get_text(candidate, "kind"), kind) != 0) return false;
    if (!chosen_is(only, name) && !(before && strcmp(before, name) == 0)) return false;
    return strlen(of) == n && strncmp(of, device, n) == 0;
}

static bool is_excluded(const json_t *body, const char *name) {
    const json_t *list = json_object_get(body, "exclusions");
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        if (strcmp(json_get_text(one, "name"), name) == 0 && json_get_text(one, "variant")[0] == 0) return true;
    }
    return false;
}

static json_t *find_to_qualify(const json_t *body, const json_t *candidates, const char *device) {
    json_t *names = json_array();
    const char *kind = json_get_text(json_object_get(body, "operation"), "op");
    const char *only = json_string_value(json_object_get(body, "only"));
    const char *before = json_string_value(json_object_get(body, "before"));
    if (strcmp(json_get_text(body, "what"), "measure") != 0) return names;
    if (json_integer_value(json_object_get(body, "pass")) > 1) return names; /* its candidates were */
    for (size_t k = 0; k < json_array_size(candidates); k++) {
        const json_t *candidate = json_array_get(candidates, k);
        if (is_excluded(body, json_get_text(candidate, "name"))) continue; /* known from before */
        if (is_for(candidate, kind, device, only, before)) json_array_append(names, json_object_get(candidate, "name"));
    }
    return names;
}

supervisor_task *supervisor_task_new(int job, json_t *body, const json_t *candidates, const char *device) {
    supervisor_task *t = calloc(1, sizeof *t);
    if (!t) {
        json_decref(body);
        return NULL;
    }
    t->job = job;
    t->body = body;
    t->to_qualify = find_to_qualify(body, candidates, device);
    if (!json_is_array(json_object_get(body, "exclusions"))) json_object_set_new(body, "exclusions", json_array());
    if (t->to_qualify && json_object_get(body, "exclusions")) return t;
    supervisor_task_free(t);
    return NULL;
}

void supervisor_task_free(supervisor_task *t) {
    if (!t) return;
    json_decref(t->body);
    json_decref(t->to_qualify);
    free(t);
}

void supervisor_task_announce_nothing(supervisor_task *t) { json_object_del(t->body, "ahead"); }

const char *supervisor_task_qualify(const supervisor_task *t) {
    return json_string_value(json_array_get(t->to_qualify, t->next_qualify));
}

json_t *supervisor_task_request(const supervisor_task *t, const char *candidate) {
    if (!candidate) return json_incref(t->body);
    json_t *request = json_copy(t->body); /* members are shared: nobody changes them before it is sent */
    if (request) json_object_del(request, "ahead");
    if (request && json_object_set_new(request, "what", json_string("qualify")) == 0 &&
        json_object_set_new(request, "candidate", json_string(candidate)) == 0)
        return request;
    json_decref(request);
    return NULL;
}

/* Reasons travel in a fixed field of the worker's: what is cut is cut here, between characters. */
static json_t *short_text(const char *text) {
    char cut[sizeof((scout_why *)0)->text];
    snprintf(cut, sizeof cut, "%s", text);
    for (size_t n = strlen(cut); n > 0; cut[--n] = 0) {
        json_t *value = json_string(cut);
        if (value) return value;
    }
    return json_string("");
}

static json_t *find_entry(const json_t *list, const char *name, const char *variant) {
    for (size_t k = 0; k < json_array_size(list); k++) {
        json_t *entry = json_array_get(list, k);
        if (strcmp(json_get_text(entry, "name"), name) != 0) continue;
        if (!variant || strcmp(json_get_text(entry, "variant"), variant) == 0) return entry;
    }
    return NULL;
}

static json_t *add_entry(json_t *list, const char *name, const char *variant, row_status row, const char *code,
                         const char *text) {
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", name, "variant", variant, "status",
                              reason_status_name(row), "code", code, "text", short_text(text));
    if (!entry || json_array_append_new(list, entry) != 0) return NULL;
    return json_array_get(list, json_array_size(list) - 1);
}

void supervisor_task_exclude(supervisor_task *t, const char *name, const char *variant, row_status row,
                             const char *code, const char *text) {
    json_t *list = json_object_get(t->body, "exclusions");
    json_t *before = find_entry(list, name, NULL);
    if (before) {
        json_object_set_new(before, "variant", json_string(""));
        t->fresh = NULL; /* twice: it was not the device */
        return;
    }
    t->fresh = add_entry(list, name, variant, row, code, text);
}

/* A worker takes a limited number of exclusions: of a candidate with very many failures, the first stands for all of
 * it. */
void supervisor_task_exclude_rows(supervisor_task *t, const char *name, const json_t *rows) {
    enum { MOST_EXCLUSIONS = 512 };
    json_t *list = json_object_get(t->body, "exclusions");
    const bool whole = json_array_size(list) + json_array_size(rows) > MOST_EXCLUSIONS;
    for (size_t k = 0; k < (whole ? 1 : json_array_size(rows)); k++) {
        const json_t *failed = json_array_get(rows, k), *reason = json_object_get(failed, "reason");
        row_status row = ROW_ERROR;
        reason_status_from_name(json_get_text(failed, "status"), &row);
        const char *variant = whole ? "" : json_get_text(failed, "variant");
        if (find_entry(list, name, variant)) continue;
        add_entry(list, name, variant, row, json_get_text(reason, "code"), json_get_text(reason, "text"));
    }
}

void supervisor_task_acquit(supervisor_task *t) {
    json_t *list = json_object_get(t->body, "exclusions");
    for (size_t k = 0; t->fresh && k < json_array_size(list); k++) {
        if (json_array_get(list, k) != t->fresh) continue;
        json_array_remove(list, k);
        t->fresh = NULL;
    }
}
