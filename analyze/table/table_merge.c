/* Owns what happens where two tables say something of one operation: the better proof stays. Proven beats not proven;
 * of two that are proven, the one that surely saves more; of two defaults, the one whose time is known better; else the
 * one that came first. */
#include "analyze/table/table.h"

#include "common/files.h"
#include "common/json.h"
#include "dispatch/dispatch_table.h"

#include <stdlib.h>
#include <string.h>

enum { NOTES = 20 }; /* conflicts that are told one by one */

static const char *text_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static double proof_of(const json_t *entry, const char *key) {
    return json_number_value(json_object_get(json_object_get(entry, "proof"), key));
}

static bool is_default(const json_t *entry) { return strcmp(text_of(entry, "choice"), "default") == 0; }

/* The most that it may take of the default's time. */
static double surely(const json_t *entry) { return proof_of(entry, "ratio") * (1 + proof_of(entry, "ratio_ci")); }

static bool is_better(const json_t *a, const json_t *b) {
    if (is_default(a) != is_default(b)) return is_default(b);
    if (is_default(a)) return proof_of(a, "expected_ci") < proof_of(b, "expected_ci");
    return surely(a) < surely(b);
}

bool table_merge_alike(const json_t *a, const json_t *b) {
    static const char *const members[] = {"choice", "implementation", "variant", "algo", "config"};
    for (size_t k = 0; k < sizeof members / sizeof members[0]; k++) {
        const json_t *x = json_object_get(a, members[k]), *y = json_object_get(b, members[k]);
        if (x != y && (!x || !y || !json_equal(x, y))) return false;
    }
    return true;
}

static void tell(const table_merge *m, const json_t *there, const json_t *entry, const char *from, bool better) {
    char line[1024];
    if (!m->notes || m->conflicts > NOTES) return;
    snprintf(line, sizeof line,
             "%.300s: %.100s %.100s (%.3f of the default's time) is there, %.100s has %.100s %.100s (%.3f): %s is "
             "kept, its proof is better",
             text_of(entry, "key"), text_of(there, "implementation"), text_of(there, "variant"),
             proof_of(there, "ratio"), from, text_of(entry, "implementation"), text_of(entry, "variant"),
             proof_of(entry, "ratio"), better ? "the latter" : "the former");
    status_print(m->notes, "analyze", "conflict: ", m->conflicts < NOTES ? line : "more of these are not reported");
}

static bool no_memory(status *st) {
    return status_fail(st, STATUS_ENVIRONMENT, "out of memory; free some and run again");
}

bool table_merge_begin(table_merge *m, json_t *root, const char *name, FILE *notes, status *st) {
    *m = (table_merge){.root = root, .by_key = json_object(), .name = name, .notes = notes};
    return m->by_key || no_memory(st);
}

bool table_merge_entry(table_merge *m, json_t *entry, const char *from, status *st) {
    const char *key = text_of(entry, "key");
    json_t *there = json_object_get(m->by_key, key);
    bool better = true;
    if (there) {
        const bool alike = table_merge_alike(there, entry);
        better = is_better(entry, there);
        if (alike)
            m->repeated++;
        else
            tell(m, there, entry, from, better);
        if (!alike) m->conflicts++;
    }
    if (!better) {
        json_decref(entry);
        return true;
    }
    return json_object_set_new(m->by_key, key, entry) == 0 || no_memory(st);
}

/* ---- other tables ---- */

/* By the library's own reader, which is strict, before it is read as a tree. */
static bool is_table(const char *path, status *st) {
    char why[512];
    size_t size;
    char *text = files_read(path, DISPATCH_TABLE_BYTES, &size, st);
    if (!text) return false;
    dispatch_table *t = dispatch_table_read(text, size, why, sizeof why);
    free(text);
    if (!t) status_set(st, STATUS_INPUT, "%.200s: %s", path, why);
    dispatch_table_free(t);
    return t != NULL;
}

static bool is_same(const json_t *all, const char *name, const json_t *root, const char *path, status *st) {
    const char *device = text_of(json_object_get(all, "device"), "class");
    const char *other = text_of(json_object_get(root, "device"), "class");
    const char *regime = text_of(all, "regime"), *other_regime = text_of(root, "regime");
    const json_int_t method = json_integer_value(json_object_get(all, "method"));
    const json_int_t other_method = json_integer_value(json_object_get(root, "method"));
    if (strcmp(device, other) != 0)
        status_set(st, STATUS_INPUT,
                   "%.200s is of %.250s, but %.200s is of %.250s; tables of one device class go together", path, other,
                   name, device);
    else if (strcmp(regime, other_regime) != 0)
        status_set(st, STATUS_INPUT, "%.200s was measured %.60s, but %.200s %.60s; tables of one regime go together",
                   path, other_regime, name, regime);
    else if (method != other_method)
        status_set(st, STATUS_INPUT, "%.200s was measured by method %d, but %.200s by %d; measure the older one again",
                   path, (int)other_method, name, (int)method);
    else
        return true;
    return false;
}

json_t *table_merge_read(const json_t *all, const char *name, const char *path, status *st) {
    const json_limits limits = {.bytes = DISPATCH_TABLE_BYTES};
    json_t *root = is_table(path, st) ? json_read(path, &limits, st) : NULL;
    if (root && is_same(all, name, root, path, st)) return root;
    json_decref(root);
    return NULL;
}

/* Each model once, in the order in which they come. */
static bool add_models(json_t *root, const json_t *other, status *st) {
    json_t *models = json_object_get(root, "models");
    const json_t *more = json_object_get(other, "models");
    for (size_t k = 0; k < json_array_size(more); k++) {
        json_t *name = json_array_get(more, k);
        bool known = !json_is_string(name);
        for (size_t n = 0; !known && n < json_array_size(models); n++)
            known = json_equal(json_array_get(models, n), name);
        if (!known && json_array_append(models, name) != 0) return no_memory(st);
    }
    return true;
}

bool table_merge_file(table_merge *m, const char *path, status *st) {
    json_t *root = table_merge_read(m->root, m->name, path, st);
    bool good = root && add_models(m->root, root, st);
    const json_t *entries = json_object_get(root, "entries");
    for (size_t k = 0; good && k < json_array_size(entries); k++)
        good = table_merge_entry(m, json_incref(json_array_get(entries, k)), path, st);
    json_decref(root);
    return good;
}

static int by_key(const void *a, const void *b) {
    return strcmp(text_of(*(json_t *const *)a, "key"), text_of(*(json_t *const *)b, "key"));
}

bool table_merge_end(table_merge *m, status *st) {
    const size_t count = json_object_size(m->by_key);
    json_t **sorted = calloc(count + 1, sizeof *sorted), *entries = json_array();
    bool good = sorted && entries;
    if (good) {
        size_t used = 0;
        const char *key;
        json_t *entry;
        json_object_foreach(m->by_key, key, entry) sorted[used++] = entry;
        qsort(sorted, used, sizeof *sorted, by_key);
        for (size_t k = 0; good && k < used; k++) good = json_array_append(entries, sorted[k]) == 0;
    }
    free(sorted);
    json_decref(m->by_key);
    m->by_key = NULL;
    good = good && json_object_set(m->root, "entries", entries) == 0;
    json_decref(entries);
    return good || no_memory(st);
}
