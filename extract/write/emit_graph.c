/* Owns the form of `graph` in ops.json: rows of numbers, one a line, because a large model has as many as nodes. */
#include "extract/write/emit.h"

#include "extract/ops/dataflow.h"

static const char *const kinds[] = {
    [DATAFLOW_INPUT] = "input", [DATAFLOW_WEIGHT] = "weight",         [DATAFLOW_CONSTANT] = "constant",
    [DATAFLOW_STATE] = "state", [DATAFLOW_ACTIVATION] = "activation", [DATAFLOW_OUTPUT] = "output",
};

static void emit_tensor(json_stream *s, const dataflow_tensor *t) {
    const info *i = t->t->info;
    json_stream_open(s, NULL, '[', true);
    json_stream_text(s, NULL, t->t->name);
    json_stream_text(s, NULL, kinds[t->kind]);
    json_stream_text(s, NULL, t->type == DTYPE_NONE ? NULL : dtype_get((dtype)t->type)->name);
    if (i->form == INFO_TENSOR && i->rank >= 0)
        json_stream_ints(s, NULL, i->rank, i->dims);
    else
        json_stream_null(s, NULL);
    json_stream_int(s, NULL, t->producer);
    json_stream_int(s, NULL, t->from);
    json_stream_int(s, NULL, t->to);
    json_stream_int(s, NULL, t->readers);
    if (t->source >= 0) json_stream_int(s, NULL, t->source);
    if (t->view) {
        json_stream_int(s, NULL, t->view->offset);
        json_stream_ints(s, NULL, i->rank, t->view->strides);
    }
    json_stream_close(s);
}

static void emit_rows(json_stream *s, const int *rows, int count) {
    json_stream_open(s, NULL, '[', true);
    for (int k = 0; k < count; k++) json_stream_int(s, NULL, rows[k]);
    json_stream_close(s);
}

static void emit_occurrence(json_stream *s, const dataflow *d, const dataflow_occurrence *o) {
    json_stream_open(s, NULL, '[', true);
    json_stream_int(s, NULL, o->w->entry->place);
    json_stream_int(s, NULL, o->place);
    json_stream_int(s, NULL, o->first_node);
    json_stream_int(s, NULL, o->w->node_count);
    emit_rows(s, d->edges + o->edges, o->reads);
    emit_rows(s, d->edges + o->edges + o->reads, o->makes);
    emit_rows(s, d->operands + o->operands, o->operand_count);
    json_stream_close(s);
}

void emit_graph(json_stream *s, const dataflow *d) {
    json_stream_open(s, "graph", '{', false);
    json_stream_open(s, "memory", '{', true);
    json_stream_int(s, "weights", d->weight_bytes);
    json_stream_int(s, "activations", d->activation_bytes);
    json_stream_int(s, "at", d->peak);
    json_stream_int(s, "unsized", d->unsized);
    json_stream_close(s);
    json_stream_open(s, "tensors", '[', false);
    for (int k = 0; k < d->tensor_count; k++) emit_tensor(s, &d->tensors[k]);
    json_stream_close(s);
    json_stream_open(s, "occurrences", '[', false);
    for (int k = 0; k < d->occurrence_count; k++) emit_occurrence(s, d, &d->occurrences[k]);
    json_stream_close(s);
    json_stream_open(s, "cuts", '[', true);
    for (int k = 0; k < d->occurrence_count; k++)
        if (d->occurrences[k].cut) json_stream_int(s, NULL, k);
    json_stream_close(s);
    json_stream_close(s);
}
