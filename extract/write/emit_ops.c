/* Owns the form of ops.json (docs/formats.md, docs/schema/ops.schema.json). Everything that may fail through the guard
 * is done before the file is begun, so that no half-written file can be left behind. */
#include "extract/write/emit.h"

#include "common/files.h"
#include "common/json_stream.h"
#include "common/plain.h"
#include "extract/ops/dataflow.h"

#include <string.h>

typedef struct emit {
    json_stream json;
    const catalog *catalog;
    const char *path, *name, *producer; /* of the model, as valid text */
    const char *file;                   /* the model's own file, relative to its folder */
    const char **external;              /* the other files, likewise */
} emit;

static void emit_model(emit *e) {
    const model *m = e->catalog->model;
    json_stream *s = &e->json;
    json_stream_open(s, "model", '{', false);
    json_stream_text(s, "name", e->name);
    json_stream_text(s, "path", e->path);
    json_stream_int(s, "ir_version", m->ir_version);
    json_stream_int(s, "opset", m->opset);
    json_stream_text(s, "producer", e->producer);
    if (m->external_count > 0) {
        json_stream_open(s, "external", '[', false);
        for (size_t k = 0; k < m->external_count; k++) json_stream_text(s, NULL, e->external[k]);
        json_stream_close(s);
    }
    json_stream_close(s);
    json_stream_text(s, "precision",
                     e->catalog->precision == DTYPE_NONE ? "model" : dtype_get(e->catalog->precision)->name);
    json_stream_open(s, "dims", '{', false);
    for (int k = 0; k < m->dim_count; k++) json_stream_int(s, m->dims[k].name, m->dims[k].size);
    json_stream_close(s);
}

static void emit_coverage(emit *e) {
    const catalog *c = e->catalog;
    json_stream *s = &e->json;
    json_stream_open(s, "coverage", '{', false);
    json_stream_int(s, "nodes", c->nodes);
    json_stream_int(s, "resolved", c->resolved);
    json_stream_open(s, "unresolved", '[', false);
    for (int64_t k = 0; k < c->nodes - c->resolved; k++) {
        const node *n = c->unresolved[k];
        json_stream_open(s, NULL, '{', true);
        json_stream_text(s, "node", n->name);
        json_stream_text(s, "op_type", graph_operator(c->arena, n));
        json_stream_text(s, "why",
                         n->unresolved ? n->unresolved
                         : n->def      ? "its shapes are known, its work is not modelled"
                                       : "the operator is not known");
        json_stream_close(s);
    }
    json_stream_close(s);
    json_stream_open(s, "unknown", '{', false);
    for (size_t k = 0; k < c->unknown_count; k++) json_stream_int(s, c->unknown[k].op_type, c->unknown[k].count);
    json_stream_close(s);
    json_stream_close(s);
    json_stream_open(s, "totals", '{', false);
    json_stream_int(s, "macs", c->totals.macs);
    json_stream_int(s, "flops", c->totals.flops);
    json_stream_int(s, "bytes", collect_bytes(&c->totals));
    json_stream_int(s, "parameters", c->parameters);
    json_stream_close(s);
}

static void emit_dtype(json_stream *s, const char *key, dtype type) {
    if (type != DTYPE_NONE) json_stream_text(s, key, dtype_get(type)->name);
}

static void emit_field(json_stream *s, const opfield *f) {
    switch (f->kind) {
    case OPFIELD_INT: json_stream_int(s, f->name, f->i); break;
    case OPFIELD_INTS: json_stream_ints(s, f->name, f->n, f->ints); break;
    case OPFIELD_TEXT: json_stream_text(s, f->name, f->text); break;
    case OPFIELD_REAL: json_stream_real(s, f->name, f->real); break;
    }
}

static void emit_record(json_stream *s, const oprec *r) {
    json_stream_text(s, "op", oprec_kind_name(r->kind));
    if (r->what) json_stream_text(s, "what", r->what);
    if (r->shape) json_stream_ints(s, "shape", r->rank, r->shape);
    if (r->layout) json_stream_text(s, "layout", r->layout);
    if (r->mask) json_stream_text(s, "mask", r->mask);
    emit_dtype(s, "dtype", r->type);
    emit_dtype(s, "weight_dtype", r->weight_type);
    emit_dtype(s, "out_dtype", r->out_type);
    for (int k = 0; k < r->field_count; k++) emit_field(s, &r->fields[k]);
}

static void emit_constant(emit *e, const tensor *t) {
    json_stream *s = &e->json;
    json_stream_text(s, "name", t->name);
    const blob *b = t->blob;
    const char *why = !b ? "it is computed from constants when the model is loaded" : b->why_unreachable;
    if (why) {
        json_stream_text(s, "unreachable", why);
    } else {
        json_stream_text(s, "file", b->file ? b->file : e->file);
        json_stream_int(s, "offset", b->offset);
        json_stream_int(s, "length", b->length);
        if (!b->raw) json_stream_text(s, "encoding", "tensor_proto");
    }
    if (info_shaped(t->info)) json_stream_ints(s, "dims", t->info->rank, t->info->dims);
    emit_dtype(s, "dtype", t->info->type);
}

static void emit_weight(emit *e, const work *w) {
    json_stream *s = &e->json;
    if (!w->weight) {
        json_stream_null(s, NULL);
        return;
    }
    json_stream_open(s, NULL, '{', true);
    emit_constant(e, w->weight);
    const work *holder = work_weights(w);
    if (holder->more_count > 0) {
        json_stream_open(s, "more", '[', true);
        for (int k = 0; k < holder->more_count; k++) {
            json_stream_open(s, NULL, '{', true);
            json_stream_text(s, "role", holder->more[k].role);
            emit_constant(e, holder->more[k].t);
            json_stream_close(s);
        }
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void emit_occurrences(emit *e, const catalog_entry *entry) {
    json_stream *s = &e->json;
    bool weighted = false;
    json_stream_open(s, "nodes", '[', true);
    for (const work *w = entry->first; w; w = w->next_same) {
        for (int k = 0; k < w->node_count; k++) json_stream_text(s, NULL, w->nodes[k]->name);
        weighted = weighted || w->weight;
    }
    json_stream_close(s);
    if (!weighted) return;
    json_stream_open(s, "weights", '[', false);
    for (const work *w = entry->first; w; w = w->next_same) emit_weight(e, w);
    json_stream_close(s);
}

static void emit_region(json_stream *s, const graph *home) {
    if (!home->region[0]) return;
    json_stream_text(s, "region", home->region);
    if (home->times_known)
        json_stream_real(s, "times", home->times);
    else
        json_stream_text(s, "times", "unknown");
}

static void emit_entry(emit *e, const catalog_entry *entry) {
    json_stream *s = &e->json;
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "id", entry->id);
    emit_record(s, entry->rec);
    emit_region(s, entry->home);
    json_stream_int(s, "count", entry->count);
    json_stream_int(s, "occurrences", entry->occurrences);
    json_stream_int(s, "macs", entry->rec->macs);
    json_stream_int(s, "flops", entry->rec->flops);
    json_stream_int(s, "bytes_read", entry->rec->bytes_read);
    json_stream_int(s, "bytes_written", entry->rec->bytes_written);
    if (entry->part_count > 0) {
        json_stream_open(s, "parts", '[', true);
        for (int k = 0; k < entry->part_count; k++) json_stream_text(s, NULL, entry->parts[k]->id);
        json_stream_close(s);
    }
    emit_occurrences(e, entry);
    json_stream_close(s);
}

static bool stands_in_graph(const dataflow *d, const catalog_fusion *f, const catalog_site *site) {
    for (int k = 0; k < f->op_count; k++)
        if (dataflow_occurrence_of(d, site->works[k]) < 0) return false;
    return true;
}

static void emit_sites(json_stream *s, const dataflow *d, const catalog_fusion *f) {
    json_stream_open(s, "sites", '[', true);
    for (const catalog_site *site = f->sites; site; site = site->next) {
        if (!stands_in_graph(d, f, site)) continue;
        json_stream_open(s, NULL, '[', true);
        for (int k = 0; k < f->op_count; k++) json_stream_int(s, NULL, dataflow_occurrence_of(d, site->works[k]));
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void emit_fusion(json_stream *s, const dataflow *d, const catalog_fusion *f) {
    json_stream_open(s, NULL, '{', true);
    json_stream_text(s, "pattern", f->pattern);
    json_stream_open(s, "ops", '[', true);
    for (int k = 0; k < f->op_count; k++) json_stream_text(s, NULL, f->ops[k]->id);
    json_stream_close(s);
    json_stream_int(s, "count", f->count);
    json_stream_int(s, "selected", f->selected);
    json_stream_int(s, "saved_bytes", f->saved_bytes);
    emit_sites(s, d, f);
    json_stream_close(s);
}

static void emit_all(emit *e) {
    const catalog *c = e->catalog;
    json_stream *s = &e->json;
    json_stream_open(s, NULL, '{', false);
    json_stream_text(s, "schema", "ceiling-scout/ops/1");
    emit_model(e);
    emit_coverage(e);
    json_stream_open(s, "ops", '[', false);
    for (size_t k = 0; k < c->entry_count; k++) emit_entry(e, c->entries[k]);
    json_stream_close(s);
    json_stream_open(s, "fusions", '[', false);
    for (size_t k = 0; k < c->fusion_count; k++) emit_fusion(s, c->dataflow, &c->fusions[k]);
    json_stream_close(s);
    emit_graph(s, c);
    json_stream_close(s);
}

status_code emit_ops(const catalog *c, const char *path, status *st) {
    const model *m = c->model;
    emit e = {.catalog = c};
    e.path = plain_utf8(c->arena, m->path);
    e.file = files_base(e.path);
    e.name = plain_utf8(c->arena, m->name);
    e.producer = plain_utf8(c->arena, m->producer ? m->producer : "");
    e.external = arena_array(c->arena, const char *, m->external_count);
    for (size_t k = 0; k < m->external_count; k++) e.external[k] = plain_utf8(c->arena, m->external[k]);
    if (!json_stream_begin(&e.json, path, st)) return st->code;
    emit_all(&e);
    return json_stream_commit(&e.json, st) ? STATUS_OK : st->code;
}
