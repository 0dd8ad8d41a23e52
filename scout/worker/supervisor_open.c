/* Starting the supervisor: one worker per device, and what each of them says that it is. */
#include "common/json.h"
#include "scout/device/identity.h"
#include "scout/worker/supervisor_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ASK_SECONDS = 60 };

json_t *supervisor_open_request(const char *name) { return json_pack("{s:s}", "device", name); }

bool supervisor_read_opened(const json_t *body, supervisor_device *d) {
    const char *class_text = json_string_value(json_object_get(body, "class"));
    const char *instance = json_string_value(json_object_get(body, "instance"));
    const char *folder = json_string_value(json_object_get(body, "class_folder"));
    const char *hash = json_string_value(json_object_get(body, "candidates_hash"));
    if (!class_text || !instance || !folder || !hash) return false;
    if (!identity_from_json(json_object_get(body, "identity"), &d->identity)) return false;
    snprintf(d->device_class, sizeof d->device_class, "%s", class_text);
    snprintf(d->device_instance, sizeof d->device_instance, "%s", instance);
    snprintf(d->class_folder, sizeof d->class_folder, "%s", folder);
    d->candidates_hash = strtoull(hash, NULL, 16);
    d->kinds = (uint32_t)json_integer_value(json_object_get(body, "kinds"));
    d->ahead = json_is_true(json_object_get(body, "ahead"));
    return true;
}

double supervisor_start_seconds(const supervisor_options *o) { return o->start_seconds > 0 ? o->start_seconds : 60; }

/* A worker that was ended from outside is started anew. The body is taken over. */
static json_t *call(const supervisor_options *options, process *p, const char *label, frames_type type, json_t *body,
                    double seconds, status *st) {
    json_t *answer = NULL;
    for (int ends = 0; !answer && ends < SUPERVISOR_MOST_ENDS; ends++) {
        *st = (status){.code = STATUS_OK};
        if (p->state == PROCESS_NONE && !process_start(p, options, label, st)) break;
        answer = process_call(p, type, json_incref(body), seconds, st);
        if (p->state != PROCESS_NONE || !p->ended_by_others) break;
    }
    json_decref(body);
    return answer;
}

static bool open_first_time(supervisor *s, supervisor_slot *at, status *st) {
    json_t *body = call(&s->options, &at->main, at->device.name, FRAMES_OPEN, supervisor_open_request(at->device.name),
                        supervisor_start_seconds(&s->options), st);
    const bool good = body && supervisor_read_opened(body, &at->device);
    if (body && !good) status_set(st, STATUS_ENVIRONMENT, "%s does not report its identity", at->device.name);
    json_decref(body);
    return good;
}

/* Asks the first worker which devices there are and what plugins bring. */
static bool find_devices(supervisor *s, process *first, supervisor_words *words, status *st) {
    const double seconds = supervisor_start_seconds(&s->options);
    json_t *list = call(&s->options, first, "worker", FRAMES_JOB, json_pack("{s:s}", "what", "devices"), seconds, st);
    bool good = list && supervisor_words_resolve(s->options.devices, json_object_get(list, "result"), words, st);
    json_decref(list);
    if (!good || s->options.plugin_count == 0) return good;
    json_t *answer =
        call(&s->options, first, "worker", FRAMES_JOB, json_pack("{s:s}", "what", "candidates"), seconds, st);
    s->candidates = json_incref(json_object_get(answer, "result"));
    json_decref(answer);
    return s->candidates != NULL;
}

supervisor *supervisor_new(const supervisor_options *options, status *st) {
    supervisor *s = calloc(1, sizeof *s);
    supervisor_words words = {.count = 0};
    if (!s) {
        status_set(st, STATUS_ENVIRONMENT, "out of memory");
        return NULL;
    }
    s->options = *options;
    s->count = 1;
    bool good = find_devices(s, &s->slots[0].main, &words, st);
    for (int k = 0; good && k < words.count; k++) {
        supervisor_slot *at = &s->slots[k];
        snprintf(at->device.name, sizeof at->device.name, "%s", words.names[k]);
        if (k > 0) good = process_start(&at->main, options, at->device.name, st);
        if (k > 0 && good) s->count++;
        snprintf(at->main.label, sizeof at->main.label, "%s", words.names[k]);
    }
    for (int k = 0; good && k < s->count; k++) good = open_first_time(s, &s->slots[k], st);
    if (good) return s;
    supervisor_free(s);
    return NULL;
}

int supervisor_processes(supervisor *s, process **list) {
    int n = 0;
    for (int k = 0; k < s->count; k++) {
        if (s->slots[k].main.state != PROCESS_NONE) list[n++] = &s->slots[k].main;
        if (s->slots[k].guest.state != PROCESS_NONE) list[n++] = &s->slots[k].guest;
    }
    return n;
}

void supervisor_drop_tasks(supervisor *s) {
    for (int k = 0; k < s->count; k++) {
        supervisor_task_free(s->slots[k].task);
        s->slots[k].task = NULL;
    }
    while (s->returned) {
        supervisor_task *t = s->returned;
        s->returned = t->next;
        supervisor_task_free(t);
    }
}

void supervisor_free(supervisor *s) {
    process *list[2 * SUPERVISOR_MAX_DEVICES];
    if (!s) return;
    process_end(list, supervisor_processes(s, list));
    supervisor_drop_tasks(s);
    json_decref(s->candidates);
    free(s);
}

int supervisor_device_count(const supervisor *s) { return s->count; }
const supervisor_device *supervisor_device_at(const supervisor *s, int device) { return &s->slots[device].device; }

json_t *supervisor_ask(const supervisor_options *options, const char *what, const json_t *body, status *st) {
    process p = {.state = PROCESS_NONE}, *list = &p;
    json_t *request = body ? json_copy((json_t *)(uintptr_t)body) : json_object(), *result = NULL;
    if (!request || json_object_set_new(request, "what", json_string(what)) != 0) {
        json_decref(request);
        status_set(st, STATUS_ENVIRONMENT, "out of memory");
        return NULL;
    }
    json_t *answer = call(options, &p, "worker", FRAMES_JOB, request, ASK_SECONDS, st);
    result = json_incref(json_object_get(answer, "result"));
    if (answer && !result) status_set(st, STATUS_ENVIRONMENT, "a worker gave no answer to \"%s\"", what);
    json_decref(answer);
    process_end(&list, 1);
    return result;
}

json_t *supervisor_only_named(json_t *list, const char *devices, status *st) {
    supervisor_words words;
    json_t *named = supervisor_words_resolve(devices, list, &words, st) ? json_array() : NULL;
    for (size_t k = 0; named && k < json_array_size(list); k++)
        for (int n = 0; n < words.count; n++)
            if (strcmp(json_get_text(json_array_get(list, k), "device"), words.names[n]) == 0)
                json_array_append(named, json_array_get(list, k));
    json_decref(list);
    return named;
}
