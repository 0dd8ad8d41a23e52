/* Jobs that need no device: what is there, and what could compute. */
#include "common/oprec.h"
#include "scout/device/identity.h"
#include "scout/device/plugins.h"
#include "scout/kinds/kinds.h"
#include "scout/worker/worker_jobs.h"

#include <math.h>
#include <string.h>

/* ---- devices ---- */

/* What only an open device tells, or why it cannot be opened. */
static json_t *open_device(json_builder *b, const scout_device_api *api, int32_t ordinal) {
    json_t *o = json_new_object(b);
    scout_device *device = NULL;
    scout_why why = {.code = ""};
    scout_telemetry now = {.size = sizeof now};
    uint64_t left = 0, all = 0;
    if (api->open(ordinal, &device, &why) != SCOUT_OK) {
        json_put_text(b, o, "why", why.text[0] ? why.text : "it does not say why");
        return o;
    }
    if (api->memory(device, &left, &all, &why) == SCOUT_OK) {
        json_put_int(b, o, "memory_free_bytes", (int64_t)(left & INT64_MAX));
        json_put_int(b, o, "memory_bytes", (int64_t)(all & INT64_MAX));
    }
    now.clock_mhz = now.power_w = now.temperature_c = now.most_clock_mhz = NAN;
    api->telemetry(device, &now);
    json_put_known(b, o, "clock_mhz", now.clock_mhz);
    json_put_known(b, o, "most_clock_mhz", now.most_clock_mhz);
    json_put_known(b, o, "power_w", now.power_w);
    json_put_known(b, o, "temperature_c", now.temperature_c);
    for (size_t k = 0; k < sizeof now.throttle_text && now.throttle_text[k]; k++) /* whatever a plugin wrote */
        if (now.throttle_text[k] < 0x20 || now.throttle_text[k] > 0x7e) now.throttle_text[k] = '?';
    now.throttle_text[sizeof now.throttle_text - 1] = 0;
    json_put_text(b, o, "throttle", now.throttle ? now.throttle_text : "");
    api->close(device);
    return o;
}

static void put_device(json_builder *b, json_t *list, const scout_device_api *api, int32_t ordinal, bool open) {
    char text[IDENTITY_INSTANCE_ROOM];
    scout_identity id;
    scout_why why = {.code = ""};
    memset(&id, 0, sizeof id);
    id.size = sizeof id;
    json_t *o = json_new_object(b);
    /* there is one CPU device, which needs no number */
    snprintf(text, sizeof text, strcmp(api->name, "cpu") == 0 ? "%s" : "%s:%d", api->name, (int)ordinal);
    json_put_text(b, o, "device", text);
    const bool good = api->identify(ordinal, &id, &why) == SCOUT_OK;
    if (good) {
        identity_clean(&id);
        json_put_text(b, o, "name", id.name);
        identity_class(&id, text, IDENTITY_CLASS_ROOM);
        json_put_text(b, o, "class", text);
        identity_instance(&id, text, sizeof text);
        json_put_text(b, o, "instance", text);
        identity_class_folder(&id, text, IDENTITY_FOLDER_ROOM);
        json_put_text(b, o, "class_folder", text);
        snprintf(text, sizeof text, "%016llx", (unsigned long long)plugins_candidates_hash(api, &id));
        json_put_text(b, o, "candidates_hash", text);
        json_put(b, o, "identity", identity_to_json(&id, b));
        if (open) json_put(b, o, "opened", open_device(b, api, ordinal));
    } else {
        json_put_text(b, o, "why", why.text[0] ? why.text : "it does not report its identity");
    }
    json_push(b, list, o);
}

static void put_missing(json_builder *b, json_t *list, const char *name, const char *why) {
    json_t *o = json_new_object(b);
    json_put_text(b, o, "device", name);
    json_put_text(b, o, "why", why);
    json_push(b, list, o);
}

json_t *worker_jobs_devices(worker *w, const json_t *body, worker_end *end) {
    json_builder b = {0};
    json_t *list = json_new_array(&b);
    const bool open = json_is_true(json_object_get(body, "open"));
    (void)w;
    for (int k = 0; k < plugins_device_count(); k++) {
        const scout_device_api *api = plugins_device(k);
        scout_why why = {.code = ""};
        const int32_t count = api->count(&why);
        for (int32_t i = 0; i < count && i < 256; i++) put_device(&b, list, api, i, open);
        if (count <= 0) put_missing(&b, list, api->name, why.text[0] ? why.text : "there is none");
    }
    if (!plugins_device_named("cuda")) put_missing(&b, list, "cuda", plugins_device_why("cuda"));
    return json_finish(&b, list, &end->st);
}

/* ---- candidates ---- */

static void put_candidate(json_builder *b, json_t *list, const scout_device_api *api, const plugins_candidate *from) {
    const scout_candidate *c = from->candidate;
    json_t *o = json_new_object(b), *precisions = json_new_array(b);
    json_put_text(b, o, "name", c->name);
    json_put_text(b, o, "kind", c->kind < OP_KIND_COUNT ? oprec_kind_name((op_kind)c->kind) : "unknown");
    json_put_text(b, o, "device", api->name);
    json_put_int(b, o, "priority", c->priority);
    json_put_int(b, o, "flags", c->flags);
    json_put_text(b, o, "about", c->about);
    json_put_text(b, o, "library", c->library);
    json_put_text(b, o, "approach", c->approach);
    for (int k = 0; c->precisions[k] && k < 64; k++) /* a plugin's code is not called before it is qualified */
        if (from->plugin || kinds_offers(c, c->precisions[k])) json_push_text(b, precisions, c->precisions[k]);
    json_put(b, o, "precisions", precisions);
    json_put_text(b, o, "plugin", from->plugin);
    json_push(b, list, o);
}

json_t *worker_jobs_candidates(worker *w, const json_t *body, worker_end *end) {
    static plugins_candidate all[PLUGINS_MAX_CANDIDATES];
    const char *kind_name = json_string_value(json_object_get(body, "kind"));
    op_kind wanted = OP_UNKNOWN;
    json_builder b = {0};
    (void)w;
    if (kind_name && !oprec_kind_from_name(kind_name, &wanted)) {
        status_set(&end->st, STATUS_USAGE, "no kind of operation is called \"%s\"", kind_name);
        return NULL;
    }
    json_t *list = json_new_array(&b);
    for (int d = 0; d < plugins_device_count(); d++) {
        const int n = plugins_candidates(plugins_device(d), (uint32_t)wanted, all, PLUGINS_MAX_CANDIDATES);
        for (int k = 0; k < n; k++) put_candidate(&b, list, plugins_device(d), &all[k]);
    }
    return json_finish(&b, list, &end->st);
}
