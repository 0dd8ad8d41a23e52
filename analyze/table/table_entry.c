/* Owns what replaces the default: only what the verdict calls a proven gain. Everything else that was measured gets an
 * entry too, which says that the default is to be run: so that "measured, nothing better" and "not measured" are two
 * things. What is taken from a report is bounded, because libscout_dispatch and dispatch.h are. */
#include "analyze/table/table.h"

#include "common/plain.h"
#include "dispatch/scout_dispatch_key.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ROOM = 1000, CONFIG_ROOM = 3500, CONFIG_DEPTH = 8, CLASS_ROOM = 2048 };

static const char *text_of(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static bool is_time(double us) { return isfinite(us) && us > 0; }
static double part(double x) { return isfinite(x) && x > 0 ? x : 0; }

bool table_entry_measured(const study_report *r) {
    return plain_same(r->status, "OK") && r->key && r->baseline && is_time(r->baseline_us);
}

/* ---- the device ---- */

static void put_number(json_builder *b, json_t *o, const char *name, const char *text) {
    const long long number = strtoll(text, NULL, 10);
    json_put_int(b, o, name, number > 0 ? number : 0);
}

static void put_library(json_builder *b, json_t *libraries, const char *name, const char *version) {
    json_t *library = json_new_object(b);
    json_put_text(b, library, "name", name);
    json_put_text(b, library, "version", version);
    json_push(b, libraries, library);
}

/* A class is what scout_batch makes of an identity:
 * "name=…;capability=…;units=…;memory_mib=…;power_limit_w=…;driver=…", then libraries. A name may hold anything but
 * what follows it. */
json_t *table_entry_device(const study_group *g, status *st) {
    static const char *const parts[] = {
        "name=", ";capability=", ";units=", ";memory_mib=", ";power_limit_w=", ";driver="};
    enum { NAME, CAPABILITY, UNITS, MEMORY, POWER, DRIVER, PARTS };
    char text[CLASS_ROOM], *at[PARTS], *rest = text;
    json_builder b = {NULL};
    const size_t length = g->device_class ? strlen(g->device_class) : 0;
    bool good = length < sizeof text;
    if (good) memcpy(text, length ? g->device_class : "", length + 1);
    for (int k = 0; good && k < PARTS; k++) {
        char *found = strstr(rest, parts[k]);
        good = found && (k > 0 || found == text);
        if (!good) break;
        *found = 0;
        rest = at[k] = found + strlen(parts[k]);
    }
    if (!good) {
        status_set(st, STATUS_INPUT, "scout_batch does not write the device class \"%.100s\"; measure again",
                   length ? g->device_class : "");
        return NULL;
    }
    json_t *o = json_new_object(&b), *libraries = json_new_array(&b);
    char *library = strchr(at[DRIVER], ';');
    if (library) *library++ = 0;
    while (library) {
        char *next = strchr(library, ';'), *version = strchr(library, '=');
        if (next) *next++ = 0;
        if (version && (!next || version < next)) {
            *version++ = 0;
            if (*library && *version) put_library(&b, libraries, library, version);
        }
        library = next;
    }
    json_put_text(&b, o, "class", g->device_class);
    json_put_text(&b, o, "name", at[NAME]);
    json_put_text(&b, o, "capability", at[CAPABILITY]);
    json_put_text(&b, o, "driver", g->driver && *g->driver ? g->driver : at[DRIVER]);
    put_number(&b, o, "units", at[UNITS]);
    put_number(&b, o, "memory_mib", at[MEMORY]);
    put_number(&b, o, "power_limit_w", at[POWER]);
    json_put(&b, o, "libraries", libraries);
    return json_finish(&b, o, st);
}

static bool is_library_of(const json_t *device, const char *name, const char *version) {
    const json_t *libraries = json_object_get(device, "libraries");
    for (size_t k = 0; k < json_array_size(libraries); k++)
        if (plain_same(text_of(json_array_get(libraries, k), "name"), name))
            return plain_same(text_of(json_array_get(libraries, k), "version"), version);
    return false;
}

/* ---- the parts of an entry ---- */

/* What was chosen, with all that is said of it. */
typedef struct chosen {
    const char *name, *variant;
    double us, ci;
    bool proven;
    const json_t *row, *config; /* borrowed from the report; either may be NULL */
} chosen;

static const json_t *find_row(const json_t *report, const char *name, const char *variant) {
    const json_t *rows = json_object_get(report, "candidates");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        const char *has = text_of(row, "variant");
        if (plain_same(text_of(row, "name"), name) && plain_same(has ? has : "", variant) &&
            plain_same(text_of(row, "status"), "OK"))
            return row;
    }
    return NULL;
}

static chosen choose(const study_report *r, const json_t *report) {
    const bool alike = plain_same(r->baseline, r->best) && plain_same(r->baseline_variant, r->best_variant);
    const bool proven = r->verdict.proven_gain_us > 0 && r->best && is_time(r->best_us) && is_time(r->ratio) && !alike;
    chosen c = {.proven = proven, .name = proven ? r->best : r->baseline};
    const char *variant = proven ? r->best_variant : r->baseline_variant;
    c.variant = variant ? variant : "";
    c.us = proven ? r->best_us : r->baseline_us;
    c.ci = verdict_width(proven ? r->best_ci : r->baseline_ci);
    c.row = find_row(report, c.name, c.variant);
    c.config = json_object_get(c.row, "config");
    /* The report's own configuration is that of the best. */
    if (!json_is_object(c.config) && (proven || alike)) c.config = json_object_get(report, "config");
    if (!json_is_object(c.config)) c.config = NULL;
    return c;
}

static int depth_of(const json_t *x) {
    int deepest = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)x, key, value) {
        const int depth = depth_of(value);
        if (depth > deepest) deepest = depth;
    }
    for (size_t k = 0; k < json_array_size(x); k++) {
        const int depth = depth_of(json_array_get(x, k));
        if (depth > deepest) deepest = depth;
    }
    return deepest + 1;
}

static void put_config(json_builder *b, json_t *entry, const json_t *config) {
    if (config)
        json_put(b, entry, "config", json_incref((json_t *)(uintptr_t)config));
    else
        json_put(b, entry, "config", json_new_object(b));
}

/* How the weight is rearranged: a library says so in its configuration; a kernel that packs says how long it takes. */
static void put_packing(json_builder *b, json_t *entry, const chosen *c) {
    const char *weight = text_of(c->config, "weight");
    const json_t *us = json_object_get(c->row, "pack_us"), *bytes = json_object_get(c->row, "pack_bytes");
    if (plain_same(weight, "as_is") || (!weight && !us && !bytes)) return;
    json_t *packing = json_new_object(b);
    json_put_text(b, packing, "how", weight ? weight : "packed");
    if (json_is_number(us)) json_put_real(b, packing, "us", part(json_number_value(us)));
    if (json_is_integer(bytes) && json_integer_value(bytes) >= 0)
        json_put_int(b, packing, "bytes", json_integer_value(bytes));
    json_put(b, entry, "packing", packing);
}

static void put_plugin(json_builder *b, json_t *entry, const json_t *row) {
    const char *file = text_of(row, "plugin"), *hash = text_of(row, "plugin_hash");
    if (!file) return;
    const char *slash = strrchr(file, '/'); /* the folder on the machine that measured is left out */
    json_t *plugin = json_new_object(b);
    json_put_text(b, plugin, "file", slash ? slash + 1 : file);
    json_put_text(b, plugin, "hash", hash ? hash : "");
    json_put(b, entry, "plugin", plugin);
}

static int64_t whole_of(const json_t *o, const char *key) {
    const json_t *x = json_object_get(o, key);
    return json_is_integer(x) && json_integer_value(x) > 0 ? json_integer_value(x) : 0;
}

static void put_proof(json_builder *b, json_t *entry, const study_report *r, const chosen *c) {
    json_t *proof = json_new_object(b);
    const json_t *time = json_object_get(c->row, "time_us");
    json_put_real(b, proof, "ratio", c->proven ? r->ratio : 1);
    json_put_real(b, proof, "ratio_ci", c->proven ? part(r->ratio_ci) : 0);
    json_put_real(b, proof, "expected_ci", c->ci);
    json_put_real(b, proof, "default_ci", verdict_width(r->baseline_ci));
    json_put_int(b, proof, "batches", whole_of(time, "batches"));
    json_put_int(b, proof, "launches", whole_of(time, "launches"));
    json_put(b, entry, "proof", proof);
}

static bool is_hex(const char *text) {
    const size_t n = text ? strlen(text) : 0;
    return n > 0 && n % 2 == 0 && n <= TEXT_ROOM && strspn(text, "0123456789abcdef") == n;
}

/* ---- the entry ---- */

/* Why it must not stand in a table; NULL: it may. */
static const char *unfit(const study_report *r, const chosen *c, const json_t *device) {
    const char *const texts[] = {r->operation, c->name, c->variant};
    const char *library = text_of(c->config, "library"), *version = text_of(c->config, "version");
    scout_dispatch_key key;
    if (!scout_dispatch_key_parse(&key, r->key, strlen(r->key)))
        return "its key is not canonical, or longer than 1023 bytes";
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (!texts[k] || strlen(texts[k]) > TEXT_ROOM) return "a name in it is missing, or longer than 1000 bytes";
    if (library && !is_library_of(device, library, version))
        return "its choice is of a library, or a version, that its device class does not have";
    if (c->config && depth_of(c->config) > CONFIG_DEPTH) return "its configuration is nested too deep";
    char *text = c->config ? json_dumps(c->config, JSON_COMPACT) : NULL;
    const bool large = text && strlen(text) > CONFIG_ROOM;
    free(text);
    if (large) return "its configuration has more than 3500 bytes";
    return NULL;
}

static json_t *fill(const study_report *r, const chosen *c, status *st) {
    json_builder b = {NULL};
    json_t *entry = json_new_object(&b);
    const char *library = text_of(c->config, "library"), *algo = text_of(c->config, "algo");
    json_put_text(&b, entry, "key", r->key);
    json_put_text(&b, entry, "operation", r->operation);
    /* a kernel may call a library too */
    const bool tuned =
        plain_same(r->best_approach, "LIBRARY_TUNE") || (library && !json_object_get(c->config, "kernel"));
    json_put_text(&b, entry, "choice", !c->proven ? "default" : tuned ? "tuned" : "custom");
    json_put_text(&b, entry, "implementation", c->name);
    json_put_text(&b, entry, "variant", c->variant);
    if (c->proven) json_put_text(&b, entry, "approach", r->verdict.approach);
    if (library) {
        json_t *of = json_new_object(&b);
        json_put_text(&b, of, "name", library);
        json_put_text(&b, of, "version", text_of(c->config, "version"));
        json_put(&b, entry, "library", of);
    }
    if (plain_same(library, "cublaslt") && is_hex(algo)) json_put_text(&b, entry, "algo", algo);
    put_config(&b, entry, c->config);
    put_plugin(&b, entry, c->row);
    put_packing(&b, entry, c);
    json_put_int(&b, entry, "workspace_bytes", whole_of(c->row, "workspace_bytes"));
    json_put_real(&b, entry, "expected_us", c->us);
    json_put_real(&b, entry, "default_us", r->baseline_us);
    if (c->proven) {
        json_t *instead = json_new_object(&b);
        json_put_text(&b, instead, "implementation", r->baseline);
        json_put_text(&b, instead, "variant", r->baseline_variant ? r->baseline_variant : "");
        json_put(&b, entry, "default", instead);
    }
    put_proof(&b, entry, r, c);
    return json_finish(&b, entry, st);
}

json_t *table_entry_make(const study_report *r, const json_t *device, status *st) {
    json_t *report = study_detail(r, st), *entry = NULL;
    if (!report) return NULL;
    const chosen c = choose(r, report);
    const char *why = unfit(r, &c, device);
    if (why)
        status_set(st, STATUS_INPUT, "%.120s: %s", r->operation ? r->operation : r->path, why);
    else
        entry = fill(r, &c, st);
    json_decref(report);
    return entry;
}
