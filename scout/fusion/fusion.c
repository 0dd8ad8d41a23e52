/* Owns the list of fusions: reads it from ops.json, names each, and carries the parts from process to process. What a
 * pattern means is in fusion_make.c. */
#include "scout/fusion/fusion.h"

#include "common/checked.h"
#include "scout/input/operation_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* ---- reading ---- */

/* Entries that were split by their weights stand there several times: the first one that is dense is the part. */
static const operation *find(const operation_list *list, map *ids, const char *id) {
    const operation *const first = map_get(ids, id);
    for (const operation *o = first; o && o < list->items + list->count && o->source == first->source; o++)
        if (o->sparsity == 0) return o;
    return first;
}

static void read_ops(const operation_reader *r, const json_t *from, const operation_list *list, map *ids, fusion *out) {
    const json_t *ops = json_object_get(from, "ops");
    const size_t count = json_array_size(ops);
    if (!json_is_array(ops) || count < 2) operation_fail(r, "a fusion must join 2 operations at least (\"ops\")");
    if (count > FUSION_PARTS) {
        out->skip_code = "feature";
        out->skip_text = arena_printf(r->arena, "it joins %zu operations, %d at most can be", count, (int)FUSION_PARTS);
        return;
    }
    for (size_t k = 0; k < count; k++) {
        const char *id = json_string_value(json_array_get(ops, k));
        if (!id) operation_fail(r, "\"ops\" of a fusion must be ids of operations");
        const operation *const o = find(list, ids, id);
        if (!o) operation_fail(r, "a fusion joins %.200s, which is no operation of this file", id);
        out->ops[out->op_count++] = o;
    }
    out->parts = arena_array(r->arena, fusion_part, out->op_count);
}

/* An operation that was split by its weights has its occurrences under several items of the same entry. */
static int read_occurrence(const operation_reader *r, const json_t *from, const operation_list *list, const fusion *f,
                           int part) {
    const int64_t at = json_is_integer(from) ? json_integer_value(from) : -1;
    const operation_flow *flow = list->flow;
    if (at < 0 || at >= flow->occurrence_count)
        operation_fail(r, "a site of the fusion %.60s of %.200s names what is no occurrence of graph", f->pattern,
                       f->ops[0]->id);
    const operation *is = &list->items[flow->occurrences[at].operation];
    if (is->source != f->ops[part]->source)
        operation_fail(r, "a site of the fusion %.60s names occurrence %" PRId64 " as %.200s, which it is not",
                       f->pattern, at, f->ops[part]->id);
    return (int)at;
}

static void read_site(const operation_reader *r, const json_t *from, const operation_list *list, fusion *f) {
    int *to = &f->sites[(int64_t)f->site_count++ * f->op_count];
    const operation_occurrence *all = list->flow->occurrences;
    if (json_array_size(from) != (size_t)f->op_count)
        operation_fail(r, "a site of the fusion %.60s of %.200s names %zu occurrences, not %d", f->pattern,
                       f->ops[0]->id, json_array_size(from), f->op_count);
    for (int k = 0; k < f->op_count; k++) {
        to[k] = read_occurrence(r, json_array_get(from, (size_t)k), list, f, k);
        for (int before = 0; before < k; before++)
            if (to[before] == to[k])
                operation_fail(r, "a site of the fusion %.60s names occurrence %d twice", f->pattern, to[k]);
        if (all[to[k]].times != all[to[0]].times)
            operation_fail(r, "a site of the fusion %.60s names occurrences %d and %d, which run unequally often",
                           f->pattern, to[0], to[k]);
    }
}

/* Without a dataflow there is nothing that they could name. */
static void read_sites(const operation_reader *r, const json_t *from, const operation_list *list, fusion *f) {
    const json_t *sites = json_object_get(from, "sites");
    const size_t count = json_array_size(sites);
    int64_t runs = 0;
    if (sites && !json_is_array(sites)) operation_fail(r, "\"sites\" of a fusion must be a list");
    if (!list->flow || f->op_count == 0) return;
    f->sites = arena_array(r->arena, int, checked_mul((int64_t)count, f->op_count));
    for (size_t k = 0; k < count; k++) {
        read_site(r, json_array_get(sites, k), list, f);
        runs = checked_add(runs, list->flow->occurrences[f->sites[k * (size_t)f->op_count]].times);
    }
    if (runs > f->count)
        operation_fail(r, "the fusion %.60s of %.200s occurs %" PRId64 " times, and its sites run %" PRId64 " times",
                       f->pattern, f->ops[0]->id, f->count, runs);
}

/* "gemm+bias" becomes "gemm_bias". */
static char *slug_of(arena *a, const char *pattern) {
    char *slug = arena_printf(a, "%.60s", pattern);
    for (char *c = slug; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
    return slug;
}

static const char *id_of(const fusion *f, arena *a) {
    const oprec *rec = f->op_count > 0 ? &f->ops[0]->rec : NULL;
    const char *key = arena_printf(a, "%s;%" PRId64, f->pattern, f->saved_bytes), *shape = "";
    for (int k = 0; k < f->op_count; k++) key = arena_printf(a, "%s;%s", key, f->ops[k]->id);
    if (f->how != FUSION_SKIPPED) rec = f->recognised ? &f->recognised->rec : &f->fused.rec;
    for (int d = 0; rec && d < rec->rank && d < 8; d++)
        shape = arena_printf(a, "%s%s%" PRId64, shape, d > 0 ? "x" : "_", rec->shape[d]);
    const char *type = rec && rec->type != DTYPE_NONE ? dtype_get(rec->type)->name : "";
    return arena_printf(a, "%s%.100s%s%s_%010" PRIx64, slug_of(a, f->pattern), shape, *type ? "_" : "", type,
                        (uint64_t)XXH3_64bits(key, strlen(key)) >> 24);
}

void fusion_finish(fusion *f, const map *by_parts, arena *a) {
    fusion_make(f, by_parts, a);
    f->id = id_of(f, a);
    f->fused.id = f->fused.name = f->id;
}

static void read_fusion(operation_reader *r, const json_t *from, const operation_list *list, map *ids,
                        const map *by_parts, fusion *out) {
    if (!json_is_object(from)) operation_fail(r, "an entry of fusions must be an object");
    out->pattern = operation_text(r, from, "pattern");
    if (!out->pattern || !*out->pattern) operation_fail(r, "a fusion says no pattern");
    out->count = operation_number(r, from, "count", 0, INT64_MAX, 0);
    out->selected = operation_number(r, from, "selected", 0, INT64_MAX, 0);
    out->saved_bytes = operation_number(r, from, "saved_bytes", 0, INT64_MAX, 0);
    read_ops(r, from, list, ids, out);
    read_sites(r, from, list, out);
    fusion_finish(out, by_parts, r->arena);
    out->fused.count = out->count;
}

void fusion_read(const operation_list *list, const char *path, arena *a, fusion_list *out) {
    operation_reader r = {.arena = a, .where = path, .entry = "", .code = STATUS_INPUT};
    const json_t *all = json_object_get(list->root, "fusions");
    map ids, own, by_parts;
    *out = (fusion_list){.count = 0};
    if (!json_object_get(list->root, "schema") || !all || json_is_null(all)) return;
    if (!json_is_array(all)) operation_fail(&r, "\"fusions\" must be a list");
    map_init(&ids, a);
    map_init(&own, a);
    map_init(&by_parts, a);
    for (int k = list->count - 1; k >= 0; k--) {
        const char *id = json_string_value(json_object_get(list->items[k].source, "id"));
        if (id) *map_put(&ids, id) = &list->items[k];
    }
    fusion_recognised(list, &ids, &by_parts);
    out->items = arena_array(a, fusion, json_array_size(all) + 1);
    for (size_t k = 0; k < json_array_size(all); k++) {
        fusion *f = &out->items[out->count++];
        read_fusion(&r, json_array_get(all, k), list, &ids, &by_parts, f);
        void **place = map_put(&own, f->id);
        if (*place) operation_fail(&r, "the fusion %.200s is given twice", f->id);
        *place = f;
    }
}

char *fusion_key(const fusion *f, arena *a) {
    const operation *fused = f->recognised ? f->recognised : &f->fused;
    char *key = arena_printf(a, "%s|%s", f->how == FUSION_SEQUENCE ? "parts" : "sum", operation_key(fused, a));
    for (int k = 0; k < f->op_count; k++) key = arena_printf(a, "%s|%s", key, operation_key(f->ops[k], a));
    return key;
}

/* ---- between processes ---- */

static json_t *place_to_json(const fusion_place *p, json_builder *b) {
    json_t *to = json_new_object(b);
    json_put_text(b, to, "tensor", p->tensor);
    json_put_text(b, to, "of", p->of);
    if (p->offset) json_put_int(b, to, "offset", p->offset);
    if (p->stride) json_put_int(b, to, "stride", p->stride);
    return to;
}

json_t *fusion_to_json(const fusion *f, json_builder *b) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < f->op_count; k++) {
        const fusion_part *p = &f->parts[k];
        json_t *to = json_new_object(b), *places = json_new_array(b);
        json_put(b, to, "operation", operation_to_json(p->operation, b));
        json_put_text(b, to, "candidate", p->candidate);
        json_put_text(b, to, "variant", p->variant);
        for (int n = 0; n < p->place_count; n++) json_push(b, places, place_to_json(&p->places[n], b));
        json_put(b, to, "places", places);
        json_push(b, list, to);
    }
    return list;
}

/* Elements, which may be as many as dimensions make together; whether they fit is found where they are laid out. */
static void place_from_json(const operation_reader *r, const json_t *from, fusion_part *p) {
    fusion_place *to = &p->places[p->place_count++];
    to->tensor = operation_text(r, from, "tensor");
    to->of = operation_text(r, from, "of");
    to->offset = operation_number(r, from, "offset", 0, INT64_MAX, 0);
    to->stride = operation_number(r, from, "stride", 0, INT64_MAX, 0);
    if (!to->tensor || !to->of) operation_fail(r, "a part's tensor has no place");
}

int fusion_from_json(const json_t *from, arena *a, fusion_part **to) {
    const operation_reader r = {.arena = a, .where = "job", .entry = "", .code = STATUS_INPUT};
    const size_t count = json_array_size(from);
    if (count > FUSION_PARTS) operation_fail(&r, "a fusion of %zu parts", count);
    fusion_part *parts = *to = arena_array(a, fusion_part, count);
    for (size_t k = 0; k < count; k++) {
        const json_t *one = json_array_get(from, k), *places = json_object_get(one, "places");
        operation *o = arena_array(a, operation, 1);
        operation_from_json(json_object_get(one, "operation"), a, o);
        parts[k] = (fusion_part){.operation = o,
                                 .candidate = operation_text(&r, one, "candidate"),
                                 .variant = operation_text(&r, one, "variant")};
        if (json_array_size(places) > SCOUT_MAX_TENSORS)
            operation_fail(&r, "a part with %zu tensors", json_array_size(places));
        parts[k].places = arena_array(a, fusion_place, json_array_size(places));
        for (size_t n = 0; n < json_array_size(places); n++) place_from_json(&r, json_array_get(places, n), &parts[k]);
    }
    return (int)count;
}
