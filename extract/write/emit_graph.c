/* Owns the form of `graph` in ops.json: rows of numbers, one a line, because a large model has as many as nodes. */
#include "extract/write/emit.h"

#include "extract/ops/cost.h"
#include "extract/ops/dataflow.h"

#include <math.h>
#include <string.h>

enum { MOST_BYTES = 4096 }; /* of a constant whose values are told */

static const char *const kinds[] = {
    [DATAFLOW_INPUT] = "input",   [DATAFLOW_WEIGHT] = "weight",   [DATAFLOW_CONSTANT] = "constant",
    [DATAFLOW_STATE] = "state",   [DATAFLOW_ASSUMED] = "assumed", [DATAFLOW_ACTIVATION] = "activation",
    [DATAFLOW_OUTPUT] = "output",
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

static void emit_rows(json_stream *s, const int *rows, int first, int count) {
    json_stream_open(s, NULL, '[', true);
    for (int k = first; k < first + count; k++) json_stream_int(s, NULL, rows[k]);
    json_stream_close(s);
}

static void emit_occurrence(json_stream *s, const dataflow *d, const dataflow_occurrence *o) {
    json_stream_open(s, NULL, '[', true);
    json_stream_int(s, NULL, o->w->entry->place);
    json_stream_int(s, NULL, o->place);
    json_stream_int(s, NULL, o->first_node);
    json_stream_int(s, NULL, o->w->node_count);
    emit_rows(s, d->edges, o->edges, o->reads);
    emit_rows(s, d->edges, o->edges + o->reads, o->makes);
    emit_rows(s, d->operands, o->operands, o->operand_count);
    json_stream_close(s);
}

/* ---- what a run needs to know beside ---- */

static void emit_numbers(json_stream *s, const dataflow *d) {
    json_stream_open(s, "numbers", '[', false);
    for (int k = 0; k < d->occurrence_count; k++) {
        const work_beside *of = d->occurrences[k].w->beside;
        for (int n = 0; of && n < of->number_count; n++) {
            json_stream_open(s, NULL, '[', true);
            json_stream_int(s, NULL, k);
            json_stream_text(s, NULL, of->numbers[n].name);
            if (of->numbers[n].known)
                json_stream_real(s, NULL, of->numbers[n].x);
            else
                json_stream_null(s, NULL);
            json_stream_close(s);
        }
    }
    json_stream_close(s);
}

/* Behind a tensor, where one is told. */
static void emit_dims(json_stream *s, int row, const info *as) {
    json_stream_open(s, NULL, '[', false);
    if (row >= 0) json_stream_int(s, NULL, row);
    for (int k = 0; k < as->rank; k++) json_stream_int(s, NULL, as->dims[k]);
    json_stream_close(s);
}

static void emit_formed(json_stream *s, const dataflow *d) {
    json_stream_open(s, "formed", '[', false);
    for (size_t k = 0; k < d->formed_count; k++) {
        const dataflow_formed *f = &d->formed[k];
        json_stream_open(s, NULL, '[', true);
        json_stream_int(s, NULL, f->occurrence);
        json_stream_int(s, NULL, f->place);
        json_stream_text(s, NULL, f->what);
        emit_dims(s, -1, f->like);
        for (int n = 0; n < f->count; n++) emit_dims(s, f->tensors[n], f->as[n]);
        json_stream_close(s);
    }
    json_stream_close(s);
}

/* The nearest number of a type of 16 bits, its exponent from `least` on, and `digits` of them behind the point. */
static uint16_t put_half(double x, int digits, int least) {
    const uint16_t sign = signbit(x) ? 0x8000 : 0, infinite = (uint16_t)(0x7fff >> digits << digits);
    if (isnan(x)) return (uint16_t)(infinite | 1 << (digits - 1));
    const double size = fabs(x);
    if (isinf(x)) return sign | infinite;
    const int exponent = size > 0 && ilogb(size) > least ? ilogb(size) : least;
    const double bits = ldexp(exponent - least, digits) + nearbyint(ldexp(size, digits - exponent));
    return sign | (bits < infinite ? (uint16_t)bits : infinite);
}

/* One element as it lies in memory, the lowest byte first; 0: of a type that is not told. */
static size_t put_element(uint8_t *to, dtype type, const value *v, int64_t k) {
    const double real = v->f ? v->f[k] : 0;
    const float single = (float)real;
    const int64_t whole = v->i ? v->i[k] : 0;
    const size_t bytes = (size_t)dtype_get(type)->bits / 8;
    const bool fp16 = type == DTYPE_FP16;
    const uint16_t half = fp16 ? put_half(real, 10, -14) : type == DTYPE_BF16 ? put_half(real, 7, -126) : 0;
    if (dtype_get(type)->cls == DTYPE_CLASS_INT && v->i && bytes >= 1 && bytes <= sizeof whole)
        for (size_t b = 0; b < bytes; b++) to[b] = (uint8_t)((uint64_t)whole >> 8 * b);
    else if ((fp16 || type == DTYPE_BF16) && v->f)
        memcpy(to, &half, sizeof half);
    else if (type == DTYPE_FP32 && v->f)
        memcpy(to, &single, sizeof single);
    else if (type == DTYPE_FP64 && v->f)
        memcpy(to, &real, sizeof real);
    else
        return 0;
    return bytes;
}

/* Of a small constant that is no initializer: as hexadecimal digits. NULL: it is not known. */
static const char *digits_of(const catalog *c, const dataflow_tensor *t) {
    const bool constant = t->kind == DATAFLOW_CONSTANT || t->kind == DATAFLOW_WEIGHT;
    const info *i = t->t->info;
    if (!constant || t->t->source == TENSOR_INITIALIZER || i->form != INFO_TENSOR || i->rank < 0) return NULL;
    const int64_t count = info_count(i);
    const value *v = cost_values(c->dataflow->occurrences[0].w, t->t);
    if (!v || v->n != count || count < 1 || dtype_bytes((dtype)t->type, count) > MOST_BYTES) return NULL;
    char *text = arena_array(c->arena, char, 2 * MOST_BYTES + 1);
    for (int64_t k = 0, at = 0; k < count; k++) {
        uint8_t bytes[8];
        const size_t n = put_element(bytes, (dtype)t->type, v, k);
        if (n == 0) return NULL;
        for (size_t b = 0; b < n; b++, at += 2) snprintf(text + at, 3, "%02x", bytes[b]);
    }
    return text;
}

static void emit_values(json_stream *s, const catalog *c) {
    json_stream_open(s, "values", '[', false);
    for (int k = 0; c->dataflow->occurrence_count > 0 && k < c->dataflow->tensor_count; k++) {
        const char *digits = digits_of(c, &c->dataflow->tensors[k]);
        if (!digits) continue;
        json_stream_open(s, NULL, '[', true);
        json_stream_int(s, NULL, k);
        json_stream_text(s, NULL, digits);
        json_stream_close(s);
    }
    json_stream_close(s);
}

static void emit_unmade(json_stream *s, const dataflow *d) {
    json_stream_open(s, "unmade", '[', true);
    for (int k = 0; k < d->unmade_count; k++) json_stream_text(s, NULL, d->unmade[k]->name);
    json_stream_close(s);
}

void emit_graph(json_stream *s, const catalog *c) {
    const dataflow *d = c->dataflow;
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
    emit_unmade(s, d);
    emit_numbers(s, d);
    emit_formed(s, d);
    emit_values(s, c);
    json_stream_close(s);
}
