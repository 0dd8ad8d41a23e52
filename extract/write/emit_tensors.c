/* Owns the form of tensors.json: every tensor of the model with its type and shape, to be compared with what a run
 * gives. */
#include "extract/write/emit.h"

#include "common/json_stream.h"

static const char *form_name(info_form form) {
    switch (form) {
    case INFO_TENSOR: return "tensor";
    case INFO_SPARSE: return "sparse";
    case INFO_SEQUENCE: return "sequence";
    case INFO_OPTIONAL: return "optional";
    case INFO_MAP: return "map";
    case INFO_OPAQUE: return "opaque";
    default: return "unknown";
    }
}

/* A sequence is described by what its elements look like. */
static const info *described(const info *i) {
    if (i->form != INFO_SEQUENCE && i->form != INFO_OPTIONAL) return i;
    return i->elem_count > 0 && i->elems ? i->elems[0] : i->elem_like ? i->elem_like : i;
}

static void emit_tensor(json_stream *s, const tensor *t) {
    const info *i = t->info, *of = described(i);
    json_stream_open(s, NULL, '{', true);
    json_stream_text(s, "name", t->name);
    if (of->type != DTYPE_NONE) json_stream_text(s, "dtype", dtype_get(of->type)->name);
    if (of->rank >= 0 && (of->rank == 0 || of->dims)) json_stream_ints(s, "shape", of->rank, of->dims);
    if (t->home && t->home->region[0]) json_stream_text(s, "region", t->home->region);
    if (i->form != INFO_TENSOR) json_stream_text(s, "form", form_name(i->form));
    if (i->form == INFO_SEQUENCE && i->elem_count >= 0) json_stream_int(s, "length", i->elem_count);
    if (i->inexact) json_stream_bool(s, "exact", false);
    json_stream_close(s);
}

status_code emit_tensors(const model *m, const char *path, status *st) {
    json_stream s;
    if (!json_stream_begin(&s, path, st)) return st->code;
    json_stream_open(&s, NULL, '{', false);
    json_stream_text(&s, "schema", "ceiling-scout/tensors/1");
    json_stream_open(&s, "tensors", '[', false);
    for (int64_t k = 0; k < m->tensor_count; k++) emit_tensor(&s, m->tensors[k]);
    json_stream_close(&s);
    json_stream_close(&s);
    return json_stream_commit(&s, st) ? STATUS_OK : st->code;
}
