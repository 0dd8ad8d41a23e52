/* From spans of the file to decoded metadata, one message at a time: the metadata fields alone are gathered and given
 * to protobuf-c, which would otherwise copy weights and whole graphs as fields it does not know. */
#include "extract/read/build.h"

#include "onnx_meta.pb-c.h"

#include <string.h>

static const ProtobufCMessageDescriptor *descriptor(wire_kind kind) {
    switch (kind) {
    case WIRE_MODEL: return &onnx_meta__model__descriptor;
    case WIRE_NODE: return &onnx_meta__node__descriptor;
    case WIRE_ATTRIBUTE: return &onnx_meta__attribute__descriptor;
    case WIRE_TENSOR: return &onnx_meta__tensor__descriptor;
    case WIRE_SPARSE: return &onnx_meta__sparse_tensor__descriptor;
    case WIRE_VALUE_INFO: return &onnx_meta__value_info__descriptor;
    case WIRE_FUNCTION: return &onnx_meta__function__descriptor;
    case WIRE_OPSET: return &onnx_meta__opset__descriptor;
    default: return NULL;
    }
}

static void *meta_alloc(void *context, size_t size) { return arena_alloc(context, size); }

static void meta_free(void *context, void *pointer) { /* the arena is rewound as a whole */
    (void)context;
    (void)pointer;
}

/* A copy of all metadata fields, one behind the other. protobuf-c goes over its bytes twice and must find the same ones
 * both times, even if the file is written meanwhile. */
static const uint8_t *gather(model_file *f, wire_kind kind, wire_span span, size_t *length) {
    const wire file = model_file_wire(f);
    wire w = wire_inside(&file, span);
    wire_field field;
    uint64_t first = span.offset, end = span.offset, total = 0;
    bool together = true;
    while (wire_next(&w, &field)) {
        if (!wire_schema_rule(kind, field.number)->meta) continue;
        if (total == 0) first = field.start;
        if (total != 0 && field.start != end) together = false;
        end = w.pos;
        total += w.pos - field.start;
    }
    *length = (size_t)total;
    uint8_t *bytes = arena_alloc(&f->messages, (size_t)total);
    if (together) return memcpy(bytes, f->base + first, (size_t)total);
    size_t at = 0;
    w = wire_inside(&file, span);
    while (wire_next(&w, &field)) {
        if (!wire_schema_rule(kind, field.number)->meta) continue;
        const size_t size = (size_t)(w.pos - field.start);
        if (size > *length - at)
            wire_fail(&w, field.start,
                      "the file was changed while it was read; run again when no program writes to it");
        memcpy(bytes + at, f->base + field.start, size);
        at += size;
    }
    *length = at;
    return bytes;
}

const void *model_meta_unpack(model_file *f, wire_kind kind, wire_span span) {
    if (!f->floor.chunk) {
        arena_alloc(&f->messages, 1); /* keeps the first chunk when rewinding */
        f->floor = arena_save(&f->messages);
    }
    arena_rewind(&f->messages, f->floor);
    size_t length;
    const uint8_t *bytes = gather(f, kind, span, &length);
    ProtobufCAllocator allocator = {meta_alloc, meta_free, &f->messages};
    const wire copy = {.base = bytes, .end = length, .guard = f->guard};
    /* Types may be nested, and protobuf-c has no bound of its own for what these bytes may be by now. */
    if (kind == WIRE_VALUE_INFO || kind == WIRE_ATTRIBUTE) wire_schema_check_message(&copy, kind);
    const void *message = protobuf_c_message_unpack(descriptor(kind), &allocator, length, bytes);
    if (!message) {
        const wire w = model_file_wire(f);
        wire_fail(&w, span.offset, "a %s cannot be decoded; the file is damaged", wire_schema_name(kind));
    }
    return message;
}

model_list model_meta_list(model_file *f, arena *a, wire_span span, uint32_t number) {
    const wire file = model_file_wire(f);
    model_list list = {0};
    wire_field field;
    for (wire w = wire_inside(&file, span); wire_next(&w, &field);)
        list.count += field.number == number && field.type == WIRE_BYTES;
    if (list.count == 0) return list;
    list.items = arena_array(a, wire_span, list.count);
    size_t n = 0;
    for (wire w = wire_inside(&file, span); n < list.count && wire_next(&w, &field);) {
        if (field.number == number && field.type == WIRE_BYTES) list.items[n++] = field.payload;
    }
    return list;
}

void model_meta_index(model_file *f, arena *a, wire_kind kind, wire_span span, model_index *index) {
    const wire file = model_file_wire(f);
    wire_field field;
    size_t filled[WIRE_SCHEMA_FIELDS] = {0};
    memset(index, 0, sizeof *index);
    for (wire w = wire_inside(&file, span); wire_next(&w, &field);) {
        const wire_rule *rule = wire_schema_rule(kind, field.number);
        if (rule->form == WIRE_FORM_MESSAGE && !rule->meta) index->fields[field.number].count++;
        model_file_passed(f, field.payload);
    }
    for (int k = 0; k < WIRE_SCHEMA_FIELDS; k++) {
        if (index->fields[k].count) index->fields[k].items = arena_array(a, wire_span, index->fields[k].count);
    }
    for (wire w = wire_inside(&file, span); wire_next(&w, &field);) {
        const wire_rule *rule = wire_schema_rule(kind, field.number);
        if (rule->form != WIRE_FORM_MESSAGE || rule->meta) continue;
        const size_t n = filled[field.number]++;
        if (n >= index->fields[field.number].count)
            wire_fail(&w, field.start,
                      "the file was changed while it was read; run again when no program writes to it");
        index->fields[field.number].items[n] = field.payload;
        model_file_passed(f, field.payload);
    }
}
