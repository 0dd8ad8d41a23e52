/* Owns which operations become rows, what is counted where they do not, and what happens where two of them are one to
 * the consumer. What replaces a default is decided by analyze/table alone. */
#include "analyze/export/export.h"

#include "analyze/table/table.h"
#include "common/json.h"
#include "common/map.h"
#include "common/plain.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 1200 };

static void leave_out(export_all *x, const char *why, size_t count) {
    int k = 0;
    while (k < EXPORT_REASONS - 1 && x->reasons[k].why && strcmp(x->reasons[k].why, why) != 0) k++;
    x->reasons[k].why = why;
    x->reasons[k].count += count;
    x->left_out += count;
}

/* ---- rows ---- */

typedef struct found {
    export_row row;    /* its value is NULL where the first of them has no row */
    size_t operations; /* that have a row */
    bool differ;       /* two of them were decided differently, or one has no row */
} found;

typedef struct gathered {
    map by_key;
    found *items;
    size_t count, room;
} gathered;

static void gather(gathered *to, export_all *x, const export_row *row) {
    void **const place = map_put(&to->by_key, row->key);
    if (*place) {
        found *const there = &to->items[(size_t)(uintptr_t)*place - 1];
        there->operations += row->value != NULL;
        there->differ |= !plain_same(there->row.value, row->value);
        return;
    }
    void *items = to->items;
    arena_grow(x->a, &items, &to->room, to->count, sizeof *to->items);
    to->items = items;
    to->items[to->count++] = (found){.row = *row, .operations = row->value != NULL, .differ = !row->value};
    *place = (void *)(uintptr_t)to->count; /* places from 1 on, for items move */
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const export_row *)a)->key, ((const export_row *)b)->key);
}

static void settle(const gathered *from, export_all *x) {
    x->rows = arena_array(x->a, export_row, from->count);
    for (size_t k = 0; k < from->count; k++) {
        const found *const f = &from->items[k];
        if (f->differ && f->operations > 0)
            leave_out(x, "decided in two ways under one key of the consumer", f->operations);
        else if (!f->differ)
            x->rows[x->count++] = f->row;
    }
    if (x->count > 0) qsort(x->rows, x->count, sizeof *x->rows, by_key);
}

static const char *make_row(const export_format *f, export_all *x, const study_report *r, const json_t *device,
                            int64_t units, export_row *row) {
    export_entry e = {.report = r, .units = units};
    const char *why;
    status st = {0};
    if (!export_product_read(r->key, &e.product, x->a, &why)) return why;
    json_t *const entry = table_entry_make(r, device, &st);
    if (!entry && st.code != STATUS_INPUT) guard_fail(x->a->guard, st.code, "%s", st.text);
    if (!entry) return "a report that no dispatch table can be made of";
    e.entry = entry;
    e.by_default = plain_same(json_get_text(entry, "choice"), "default");
    why = f->row(x, &e, row); /* its texts are the arena's */
    json_decref(entry);
    return why;
}

static const char *version_of(const json_t *device, const char *library) {
    const json_t *const all = json_object_get(device, "libraries");
    for (size_t k = 0; k < json_array_size(all); k++)
        if (plain_same(json_get_text(json_array_get(all, k), "name"), library))
            return json_get_text(json_array_get(all, k), "version");
    return NULL;
}

static const char *copy(arena *a, const char *text) { return text ? arena_strndup(a, text, strlen(text)) : NULL; }

void export_make(const export_format *f, const study_group *g, const char *consumer, export_all *x, arena *a) {
    status st = {0};
    gathered all = {.count = 0};
    json_t *const device = table_entry_device(g, &st);
    if (!device) guard_fail(a->guard, st.code, "%s", st.text);
    *x = (export_all){.a = a,
                      .device = copy(a, json_get_text(device, "name")),
                      .capability = copy(a, json_get_text(device, "capability")),
                      .cublaslt = copy(a, version_of(device, "cublaslt")),
                      .consumer = consumer,
                      .models = g->model ? g->model : "",
                      .device_class = g->device_class,
                      .regime = g->regime};
    map_init(&all.by_key, a);
    for (size_t k = 0; k < g->count; k++) {
        const study_report *const r = &g->reports[k];
        export_row row = {0};
        if (!table_entry_measured(r)) continue;
        x->operations++;
        const char *const why = make_row(f, x, r, device, g->units, &row);
        if (why) row.value = NULL, leave_out(x, why, 1);
        if (row.key) gather(&all, x, &row);
    }
    json_decref(device);
    settle(&all, x);
}

const char *export_left_out(const export_all *x) {
    char line[LINE];
    size_t used;
    if (x->left_out == 0) return "";
    used = (size_t)snprintf(line, sizeof line, "%zu of %zu operations", x->left_out, x->operations);
    for (int k = 0; k < EXPORT_REASONS && x->reasons[k].why && used < sizeof line; k++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%s %s (%zu)", k == 0 ? ":" : ";", x->reasons[k].why,
                                 x->reasons[k].count);
    return arena_printf(x->a, "%s", line);
}
