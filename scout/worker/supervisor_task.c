/* Tasks. Blame is kept in the request itself, so that the worker that does the job next knows. Plugins' candidates are
 * measured in a worker of their own, beside the baseline that is measured there again: what they do to the memory that
 * they are given, they do to themselves. */
#include "scout/worker/supervisor_internal.h"

#include "common/json.h"

#include "scout/terms/variants.h"

#include <stdlib.h>
#include <string.h>

static bool is_for(const json_t *candidate, const char *kind, const char *device, const char *only) {
    const char *of = json_get_text(candidate, "device"), *name = json_get_text(candidate, "name");
    const size_t n = strcspn(device, ":");
    if (!json_is_string(json_object_get(candidate, "plugin"))) return false;
    if (strcmp(json_get_text(candidate, "kind"), kind) != 0) return false;
    if (!filter_takes(only, name)) return false;
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

static bool names_row(const json_t *rows, const char *name) {
    for (size_t k = 0; k < json_array_size(rows); k++)
        if (strcmp(json_get_text(json_array_get(rows, k), "name"), name) == 0) return true;
    return false;
}

/* What stands in the baseline's place is measured with the rest. */
static json_t *find_apart(const json_t *body, const json_t *candidates, const char *device) {
    json_t *names = json_array();
    const char *kind = json_get_text(json_object_get(body, "operation"), "op");
    const char *only = json_string_value(json_object_get(body, "only"));
    const char *before = json_get_text(body, "before");
    const bool later = json_integer_value(json_object_get(body, "pass")) > 1;
    if (strcmp(json_get_text(body, "what"), "measure") != 0) return names;
    for (size_t k = 0; k < json_array_size(candidates); k++) {
        const json_t *candidate = json_array_get(candidates, k);
        const char *name = json_get_text(candidate, "name");
        if (is_excluded(body, name) || strcmp(before, name) == 0) continue; /* known from before */
        if (later && !names_row(json_object_get(body, "rows"), name)) continue;
        if (is_for(candidate, kind, device, only)) json_array_append(names, json_object_get(candidate, "name"));
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
    t->apart = find_apart(body, candidates, device);
    t->failures = json_object();
    if (!json_is_array(json_object_get(body, "exclusions"))) json_object_set_new(body, "exclusions", json_array());
    if (t->apart && t->failures && json_object_get(body, "exclusions")) return t;
    supervisor_task_free(t);
    return NULL;
}

void supervisor_task_free(supervisor_task *t) {
    if (!t) return;
    json_decref(t->body);
    json_decref(t->apart);
    json_decref(t->result);
    json_decref(t->failures);
    free(t);
}

void supervisor_task_announce_nothing(supervisor_task *t) { json_object_del(t->body, "ahead"); }

const char *supervisor_task_alone(const supervisor_task *t) {
    if (t->trial[0]) return t->trial;
    return t->result ? json_string_value(json_array_get(t->apart, t->next_apart)) : NULL;
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

static json_t *find_row(const json_t *result, const char *name, const char *variant) {
    return find_entry(json_object_get(result, "candidates"), name, variant);
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
    json_object_del(t->failures, name);
    if (before) {
        json_object_set_new(before, "variant", json_string(""));
        t->fresh = NULL; /* twice: it was not the device */
    } else {
        t->fresh = add_entry(list, name, variant, row, code, text);
    }
    json_t *seen = find_row(t->result, name, NULL); /* stands there for what is measured apart */
    if (!seen) return;
    json_object_set_new(seen, "status", json_string(reason_status_name(row)));
    json_object_set_new(seen, "reason", json_pack("{s:s, s:o}", "code", code, "text", short_text(text)));
}

/* ---- requests ---- */

static bool is_apart(const supervisor_task *t, const char *name) {
    for (size_t k = 0; k < json_array_size(t->apart); k++)
        if (strcmp(json_string_value(json_array_get(t->apart, k)), name) == 0) return true;
    return false;
}

/* Of a later pass: the baseline, which is first, and those of one candidate or (NULL) of all that are not apart. */
static json_t *some_rows(const supervisor_task *t, const char *name) {
    const json_t *rows = json_object_get(t->body, "rows");
    json_t *some = json_array();
    for (size_t k = 0; k < json_array_size(rows); k++) {
        json_t *row = json_array_get(rows, k);
        const char *of = json_get_text(row, "name");
        if (k == 0 || (name ? strcmp(of, name) == 0 : !is_apart(t, of))) json_array_append(some, row);
    }
    return some;
}

/* In the place of each that is measured apart stands a row until it was. */
static json_t *all_but_apart(const supervisor_task *t, const json_t *exclusions) {
    json_t *list = json_copy((json_t *)(uintptr_t)exclusions);
    for (size_t k = 0; list && k < json_array_size(t->apart); k++)
        if (!find_entry(list, json_string_value(json_array_get(t->apart, k)), NULL))
            add_entry(list, json_string_value(json_array_get(t->apart, k)), "", ROW_SKIPPED, "not_asked",
                      "it is measured in a worker of its own");
    return list;
}

/* A baseline that is not its library's first choice is found among all of them, as it was before. */
static json_t *names_alone(const supervisor_task *t, const char *name) {
    const char *base = json_get_text(t->result, "baseline"), *variant = json_get_text(t->result, "baseline_variant");
    const json_t *first = find_row(t->result, base, NULL);
    const bool chosen = json_is_true(json_object_get(t->result, "baseline_own")) ||
                        (first && strcmp(json_get_text(first, "variant"), variant) != 0);
    return chosen ? json_sprintf("%s,%s", name, base) : json_string(name);
}

json_t *supervisor_task_request(const supervisor_task *t) {
    const char *alone = supervisor_task_alone(t);
    if (!alone && json_array_size(t->apart) == 0) return json_incref(t->body);
    json_t *request = json_copy(t->body); /* members are shared: nothing changes them before it is sent */
    if (!request) return NULL;
    if (json_object_get(request, "rows")) json_object_set_new(request, "rows", some_rows(t, alone));
    if (alone) {
        json_object_set_new(request, "start_s",
                            json_real(1)); /* for what it loads, which is not the candidate's time */
        json_object_del(request, "ahead");
        json_object_del(request, "fetch"); /* the baseline's is known */
        json_object_set_new(request, "only", names_alone(t, alone));
    } else {
        json_object_set_new(request, "exclusions", all_but_apart(t, json_object_get(t->body, "exclusions")));
    }
    return request;
}

/* ---- results ---- */

static bool is_ok(const json_t *row) { return strcmp(json_get_text(row, "status"), "OK") == 0; }

static double time_of(const json_t *row) { return json_get_positive(json_object_get(row, "pass"), "time_us"); }

/* Beside it the baseline came out otherwise than it does without it. */
static void spoil(json_t *row, const json_t *beside) {
    const json_t *reason = json_object_get(beside, "reason");
    const char *code = json_get_text(reason, "code");
    char text[256];
    snprintf(text, sizeof text, "beside it the default %s, unlike when measured alone: %.150s",
             strcmp(json_get_text(beside, "status"), "WRONG") == 0 ? "came out wrong" : "was not measured",
             json_get_text(reason, "text"));
    json_object_set_new(row, "status", json_string(beside ? json_get_text(beside, "status") : "ERROR"));
    json_object_set_new(row, "reason",
                        json_pack("{s:s, s:o}", "code", code[0] ? code : "error", "text", short_text(text)));
    json_object_del(row, "pass");
}

/* What was timed beside the baseline there is told beside the one here: what is known of both is their ratio. */
static void rescale(json_t *row, double factor) {
    static const char *const times[] = {"time_us", "mean_us", "min_us", "p05_us", "p95_us"};
    json_t *pass = json_object_get(row, "pass");
    for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
        const double us = json_get_positive(pass, times[k]);
        if (us > 0 && factor > 0) json_object_set_new(pass, times[k], json_real(us * factor));
    }
}

static void add_number(json_t *to, const json_t *from, const char *key) {
    const double sum = json_number_value(json_object_get(to, key)) + json_number_value(json_object_get(from, key));
    json_object_set_new(to, key, json_real(sum));
}

static void add_time(json_t *to, const json_t *from) {
    const char *key;
    json_t *spent = json_object_get(to, "spent_s"), *value;
    add_number(to, from, "seconds");
    json_object_foreach(json_object_get(from, "spent_s"), key, value) if (spent)
        add_number(spent, json_object_get(from, "spent_s"), key);
}

void supervisor_task_join(supervisor_task *t, const char *name, const json_t *result) {
    json_t *rows = json_object_get(t->result, "candidates");
    const json_t *measured = json_object_get(result, "candidates");
    const char *variant = json_get_text(t->result, "baseline_variant");
    const json_t *base = find_row(t->result, json_get_text(t->result, "baseline"), variant);
    const json_t *beside = base ? find_row(result, json_get_text(base, "name"), variant) : NULL;
    const bool spoiled = base && is_ok(base) && !(beside && is_ok(beside));
    const double factor = time_of(base) / time_of(beside);
    size_t at = 0;
    while (at < json_array_size(rows) && strcmp(json_get_text(json_array_get(rows, at), "name"), name) != 0) at++;
    if (at < json_array_size(rows) && names_row(measured, name)) json_array_remove(rows, at);
    for (size_t k = 0; k < json_array_size(measured); k++) {
        json_t *row = json_array_get(measured, k);
        if (strcmp(json_get_text(row, "name"), name) != 0) continue;
        if (spoiled && is_ok(row)) spoil(row, beside);
        rescale(row, factor);
        if (json_array_insert(rows, at, row) == 0) at++;
    }
    add_time(t->result, result);
}

/* ---- blame ---- */

int supervisor_task_count_failure(supervisor_task *t, const char *name) {
    const json_int_t n = json_integer_value(json_object_get(t->failures, name)) + 1;
    json_object_set_new(t->failures, name, json_integer(n));
    return (int)n;
}

int supervisor_task_count_end(supervisor_task *t, const char *candidate, const char *variant) {
    const bool same = strcmp(t->ended.candidate, candidate) == 0 && strcmp(t->ended.variant, variant) == 0;
    snprintf(t->ended.candidate, sizeof t->ended.candidate, "%s", candidate);
    snprintf(t->ended.variant, sizeof t->ended.variant, "%s", variant);
    t->ended.ends = same ? t->ended.ends + 1 : 1;
    return t->ended.ends;
}

void supervisor_task_acquit(supervisor_task *t) {
    json_decref(t->result);
    t->result = NULL;
    t->next_apart = 0;
    t->trial[0] = 0;
    json_t *list = json_object_get(t->body, "exclusions");
    for (size_t k = 0; t->fresh && k < json_array_size(list); k++) {
        if (json_array_get(list, k) != t->fresh) continue;
        json_array_remove(list, k);
        t->fresh = NULL;
    }
}
