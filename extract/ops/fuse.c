/* Fusions: finds the candidates, chooses among them, and merges equal ones into the catalog's list. */
#include "extract/ops/collect.h"

#include "common/checked.h"
#include "extract/ops/fuse_internal.h"

#include <inttypes.h>
#include <stdio.h>

static void map_units(fuse *f) {
    f->unit_of = arena_array(f->arena, work *, f->catalog->model->node_count);
    for (size_t e = 0; e < f->catalog->entry_count; e++) {
        const catalog_entry *entry = f->catalog->entries[e];
        if (entry->part || entry->free) continue;
        for (work *w = entry->first; w; w = w->next_same)
            for (int k = 0; !w->owner && k < w->node_count; k++) f->unit_of[w->nodes[k]->id] = w;
    }
}

static const char *key_of(const fuse *f, const fuse_candidate *c) {
    const char *key = arena_printf(f->arena, "%s;%" PRId64, c->pattern, c->saved);
    for (int k = 0; k < c->op_count; k++) key = arena_printf(f->arena, "%s;%s", key, c->ops[k]->entry->id);
    return key;
}

static void describe(fuse *f, catalog_fusion *to, const fuse_candidate *c) {
    to->pattern = c->pattern;
    to->op_count = c->op_count;
    to->saved_bytes = c->saved;
    to->ops = arena_array(f->arena, catalog_entry *, c->op_count);
    for (int k = 0; k < c->op_count; k++) to->ops[k] = c->ops[k]->entry;
}

static void add_site(fuse *f, catalog_fusion *to, const fuse_candidate *c) {
    catalog_site *site = arena_alloc(f->arena, sizeof *site);
    *site = (catalog_site){.works = c->ops};
    *(to->last_site ? &to->last_site->next : &to->sites) = site;
    to->last_site = site;
}

static void merge(fuse *f) {
    catalog *c = f->catalog;
    map seen;
    map_init(&seen, f->arena);
    c->fusions = arena_array(f->arena, catalog_fusion, f->count ? f->count : 1);
    for (size_t k = 0; k < f->count; k++) {
        const fuse_candidate *one = &f->found[k];
        void **place = map_put(&seen, key_of(f, one));
        if (!*place) {
            *place = &c->fusions[c->fusion_count++];
            describe(f, *place, one);
        }
        catalog_fusion *to = *place;
        add_site(f, to, one);
        int64_t runs = checked_from_double(one->ops[0]->times);
        to->count = checked_add(to->count, runs);
        if (one->selected) to->selected = checked_add(to->selected, runs);
    }
}

void fuse_all(catalog *c) {
    fuse f = {.catalog = c, .arena = c->arena};
    map_units(&f);
    fuse_find(&f);
    fuse_select(&f);
    merge(&f);
}
