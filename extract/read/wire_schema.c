/* The table of fields, and the walk that checks a file against it before anything is decoded. What is not in the table
 * (documentation, training, device placement) is stepped over. */
#include "extract/read/wire_schema.h"

#include <stddef.h>

enum { MAX_META_FIELDS = 1 << 18 };      /* of one message: unpacking needs memory for each */
enum { CHECKED_PACKED_BYTES = 1 << 16 }; /* longer packed numbers are data: checked when they are read */

#define META(f)                                                                                                        \
    { WIRE_FORM_##f, WIRE_KIND_NONE, true }
#define DATA(f)                                                                                                        \
    { WIRE_FORM_##f, WIRE_KIND_NONE, false }
#define INSIDE(m)                                                                                                      \
    { WIRE_FORM_MESSAGE, WIRE_##m, false }
#define META_INSIDE(m)                                                                                                 \
    { WIRE_FORM_MESSAGE, WIRE_##m, true }

static const wire_rule rules[WIRE_KIND_COUNT][WIRE_SCHEMA_FIELDS] = {
    [WIRE_MODEL] = {[1] = META(VARINT),
                    [2] = META(BYTES),
                    [3] = META(BYTES),
                    [7] = INSIDE(GRAPH),
                    [8] = INSIDE(OPSET),
                    [25] = INSIDE(FUNCTION)},
    [WIRE_GRAPH] = {[1] = INSIDE(NODE),
                    [5] = INSIDE(TENSOR),
                    [11] = INSIDE(VALUE_INFO),
                    [12] = INSIDE(VALUE_INFO),
                    [13] = INSIDE(VALUE_INFO),
                    [15] = INSIDE(SPARSE)},
    [WIRE_NODE] = {[1] = META(BYTES),
                   [2] = META(BYTES),
                   [3] = META(BYTES),
                   [4] = META(BYTES),
                   [5] = INSIDE(ATTRIBUTE),
                   [7] = META(BYTES),
                   [8] = META(BYTES)},
    [WIRE_ATTRIBUTE] = {[1] = META(BYTES),
                        [2] = META(FLOAT),
                        [3] = META(VARINT),
                        [4] = META(BYTES),
                        [5] = INSIDE(TENSOR),
                        [6] = INSIDE(GRAPH),
                        [7] = DATA(FLOATS),
                        [8] = DATA(VARINTS),
                        [9] = META(BYTES),
                        [10] = INSIDE(TENSOR),
                        [11] = INSIDE(GRAPH),
                        [14] = META_INSIDE(TYPE_PROTO),
                        [15] = INSIDE(TYPE_PROTO),
                        [20] = META(VARINT),
                        [21] = META(BYTES),
                        [22] = INSIDE(SPARSE),
                        [23] = INSIDE(SPARSE)},
    [WIRE_TENSOR] = {[1] = META(VARINTS),
                     [2] = META(VARINT),
                     [3] = META_INSIDE(SEGMENT),
                     [4] = DATA(FLOATS),
                     [5] = DATA(VARINTS),
                     [6] = DATA(BYTES),
                     [7] = DATA(VARINTS),
                     [8] = META(BYTES),
                     [9] = DATA(BYTES),
                     [10] = DATA(DOUBLES),
                     [11] = DATA(VARINTS),
                     [13] = META_INSIDE(ENTRY),
                     [14] = META(VARINT)},
    [WIRE_SPARSE] = {[1] = INSIDE(TENSOR), [2] = INSIDE(TENSOR), [3] = META(VARINTS)},
    [WIRE_VALUE_INFO] = {[1] = META(BYTES), [2] = META_INSIDE(TYPE_PROTO)},
    [WIRE_FUNCTION] = {[1] = META(BYTES),
                       [4] = META(BYTES),
                       [5] = META(BYTES),
                       [6] = META(BYTES),
                       [7] = INSIDE(NODE),
                       [9] = INSIDE(OPSET),
                       [10] = META(BYTES),
                       [11] = INSIDE(ATTRIBUTE),
                       [13] = META(BYTES)},
    [WIRE_OPSET] = {[1] = META(BYTES), [2] = META(VARINT)},
    [WIRE_ENTRY] = {[1] = META(BYTES), [2] = META(BYTES)},
    [WIRE_SEGMENT] = {[1] = META(VARINT), [2] = META(VARINT)},
    [WIRE_SHAPE] = {[1] = META_INSIDE(DIMENSION)},
    [WIRE_DIMENSION] = {[1] = META(VARINT), [2] = META(BYTES)},
    [WIRE_TYPE_PROTO] = {[1] = META_INSIDE(TENSOR_TYPE),
                         [4] = META_INSIDE(ELEMENT_TYPE),
                         [5] = META_INSIDE(MAP_TYPE),
                         [7] = META_INSIDE(OPAQUE_TYPE),
                         [8] = META_INSIDE(TENSOR_TYPE),
                         [9] = META_INSIDE(ELEMENT_TYPE)},
    [WIRE_TENSOR_TYPE] = {[1] = META(VARINT), [2] = META_INSIDE(SHAPE)},
    [WIRE_ELEMENT_TYPE] = {[1] = META_INSIDE(TYPE_PROTO)},
    [WIRE_MAP_TYPE] = {[1] = META(VARINT), [2] = META_INSIDE(TYPE_PROTO)},
    [WIRE_OPAQUE_TYPE] = {[1] = META(BYTES), [2] = META(BYTES)},
};

static const char *const names[WIRE_KIND_COUNT] = {
    "message",    "model",       "graph",        "node",     "attribute",   "tensor", "sparse tensor",
    "value info", "function",    "opset import", "entry",    "segment",     "shape",  "dimension",
    "type",       "tensor type", "element type", "map type", "opaque type",
};

const wire_rule *wire_schema_rule(wire_kind kind, uint32_t number) {
    return &rules[kind][number < WIRE_SCHEMA_FIELDS ? number : 0];
}

const char *wire_schema_name(wire_kind kind) { return names[kind]; }

typedef struct check {
    wire_schema_passed *passed;
    void *context;
} check;

/* Whether a field came with the wire type that its form asks for. */
static bool fits(wire_form form, wire_type type) {
    switch (form) {
    case WIRE_FORM_ANY: return true;
    case WIRE_FORM_VARINT: return type == WIRE_VARINT;
    case WIRE_FORM_FLOAT: return type == WIRE_FIXED32;
    case WIRE_FORM_BYTES:
    case WIRE_FORM_MESSAGE: return type == WIRE_BYTES;
    case WIRE_FORM_VARINTS: return type == WIRE_VARINT || type == WIRE_BYTES;
    case WIRE_FORM_FLOATS: return type == WIRE_FIXED32 || type == WIRE_BYTES;
    case WIRE_FORM_DOUBLES: return type == WIRE_FIXED64 || type == WIRE_BYTES;
    }
    return false;
}

static void check_packed(const wire *w, const wire_field *f, wire_form form, wire_kind kind) {
    const unsigned size = form == WIRE_FORM_FLOATS ? 4 : form == WIRE_FORM_DOUBLES ? 8 : 0;
    if (size && f->payload.size % size) {
        wire_fail(w, f->start, "field %u of a %s has %llu bytes, which is not a multiple of the value size %u",
                  f->number, names[kind], (unsigned long long)f->payload.size, size);
    }
    if (form != WIRE_FORM_VARINTS || f->payload.size > CHECKED_PACKED_BYTES) return;
    wire inner = wire_inside(w, f->payload);
    while (inner.pos < inner.end) wire_varint(&inner);
}

/* Recursion is bounded by the two depth limits, which the caller's stack easily holds. */
static void check_message(const check *c, wire w, wire_kind kind, int depth, int graphs) {
    if (depth > WIRE_SCHEMA_MAX_MESSAGES)
        wire_fail(&w, w.pos, "messages are nested more than %d deep; no real model is", WIRE_SCHEMA_MAX_MESSAGES);
    if (kind == WIRE_GRAPH && ++graphs > WIRE_SCHEMA_MAX_GRAPHS)
        wire_fail(&w, w.pos, "graphs are nested more than %d deep; no real model is", WIRE_SCHEMA_MAX_GRAPHS);
    wire_field f;
    int64_t fields = 0;
    while (wire_next(&w, &f)) {
        const wire_rule *rule = wire_schema_rule(kind, f.number);
        if (rule->meta && ++fields > MAX_META_FIELDS)
            wire_fail(&w, f.start, "a %s has more than %d fields; no real model does", names[kind], MAX_META_FIELDS);
        if (!fits(rule->form, f.type)) {
            wire_fail(&w, f.start, "field %u of a %s has wire type %d; the file is damaged or not an ONNX model",
                      f.number, names[kind], (int)f.type);
        }
        if (rule->form == WIRE_FORM_MESSAGE) {
            check_message(c, wire_inside(&w, f.payload), rule->message, depth + 1, graphs);
        } else if (f.type == WIRE_BYTES && rule->form >= WIRE_FORM_VARINTS) {
            check_packed(&w, &f, rule->form, kind);
        }
        if (c->passed && f.type == WIRE_BYTES && rule->form != WIRE_FORM_MESSAGE) c->passed(c->context, f.payload);
    }
}

void wire_schema_check(const wire *file, wire_schema_passed *passed, void *context) {
    const check c = {passed, context};
    check_message(&c, *file, WIRE_MODEL, 1, 0);
}

void wire_schema_check_message(const wire *message, wire_kind kind) {
    const check c = {NULL, NULL};
    check_message(&c, *message, kind, 1, 0);
}
