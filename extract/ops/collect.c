/* Owns the merging of works into the entries of a catalog: equal records of one region become one entry with a count.
 * One look-up per work, so that the time grows with the graph and not with its square. */
#include "extract/ops/collect.h"

#include "common/checked.h"
#include "common/map.h"

#include <stdint.h>

/* A part waiting for its entry; `place` is where the joined entry wants it, NULL where it has it from an earlier one.
 */
typedef struct collect_part {
    work *part;
    catalog_entry **place;
} collect_part;

typedef struct collector {
    catalog *catalog;
    map by_key;
    map ids;
    collect_part *queue;
    size_t queue_count, queue_cap;
} collector;

static const char *entry_id(collector *c, const work *w, bool part) {
    arena *a = c->catalog->arena;
    const graph *home = w->node->home;
    const char *id = w->free && w->rec.what ? arena_printf(a, "%s_%s", oprec_kind_name(w->rec.kind), w->rec.what)
                                            : oprec_id(&w->rec, a);
    if (home != c->catalog->model->main) id = arena_printf(a, "%s_r%d", id, home->place);
    if (part) id = arena_printf(a, "%s_part", id);
    return map_unique(&c->ids, id); /* two keys of one hash are rare, and no reason for two entries of one name */
}

static catalog_entry *entry_new(collector *c, work *w, const char *key, bool part) {
    catalog *to = c->catalog;
    catalog_entry *entry = arena_zalloc(to->arena, sizeof *entry);
    entry->key = key;
    entry->rec = &w->rec;
    entry->home = w->node->home;
    entry->part = part;
    entry->free = w->free;
    entry->id = entry_id(c, w, part);
    entry->place = (int)to->entry_count;
    arena_grow(to->arena, (void **)&to->entries, &to->entry_cap, to->entry_count, sizeof *to->entries);
    to->entries[to->entry_count++] = entry;
    return entry;
}

/* The entry that the work belongs to; parts never share one with what counts. */
static catalog_entry *entry_of(collector *c, work *w, bool part, bool *is_new) {
    arena *a = c->catalog->arena;
    const arena_mark before = arena_save(a);
    const char *record = oprec_key(&w->rec, a);
    const char *key = arena_printf(a, "%s;region=%d%s", record, w->node->home->place, part ? ";part" : "");
    catalog_entry *entry = map_get(&c->by_key, key);
    *is_new = !entry;
    if (entry) {
        arena_rewind(a, before);
    } else {
        entry = entry_new(c, w, key, part);
        *map_put(&c->by_key, key) = entry;
    }
    if (entry->last)
        entry->last->next_same = w;
    else
        entry->first = w;
    entry->last = w;
    entry->occurrences++;
    if (!part) entry->count = checked_add(entry->count, checked_from_double(entry->home->times));
    w->entry = entry;
    return entry;
}

static void push_parts(collector *c, const work *w, catalog_entry *entry, bool is_new) {
    arena *a = c->catalog->arena;
    if (is_new) entry->parts = arena_array(a, catalog_entry *, w->part_count);
    for (int k = 0; k < w->part_count; k++) {
        if (w->parts[k]->free) continue; /* a view is no operation that could be measured */
        arena_grow(a, (void **)&c->queue, &c->queue_cap, c->queue_count, sizeof *c->queue);
        c->queue[c->queue_count++] = (collect_part){w->parts[k], is_new ? &entry->parts[entry->part_count++] : NULL};
    }
}

static void collect_work(collector *c, work *top) {
    bool is_new;
    catalog_entry *entry = entry_of(c, top, false, &is_new);
    c->queue_count = 0;
    push_parts(c, top, entry, is_new);
    for (size_t k = 0; k < c->queue_count; k++) {
        work *part = c->queue[k].part;
        catalog_entry **place = c->queue[k].place;
        entry = entry_of(c, part, true, &is_new);
        if (place) *place = entry;
        push_parts(c, part, entry, is_new);
    }
}

catalog *collect(worklist *list) {
    catalog *c = arena_zalloc(list->arena, sizeof *c);
    c->model = list->model;
    c->arena = list->arena;
    c->precision = list->precision;
    collector to = {.catalog = c};
    map_init(&to.by_key, c->arena);
    map_init(&to.ids, c->arena);
    for (int64_t k = 0; k < c->model->node_count; k++) {
        work *top = work_top(list->of_node[k]);
        if (top->node == c->model->nodes[k]) collect_work(&to, top);
    }
    collect_totals(c);
    collect_parameters(c, list);
    collect_coverage(c);
    return c;
}

int64_t collect_bytes(const catalog_totals *t) { return checked_add(t->bytes_read, t->bytes_written); }

bool collect_is_complete(const catalog *c) { return c->resolved == c->nodes && c->unknown_count == 0; }
