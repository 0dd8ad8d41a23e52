/* The fields of onnx.proto that a model without weights needs, by their numbers. */
#include "extract/config/config_onnx.h"

#include <string.h>

enum { IR_VERSION = 11, OPSET = 23, MS_OPSET = 1 };

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };
enum { ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_INTS = 7 };

static void put_bytes(arena *a, onnx_bytes *b, const void *bytes, size_t size) {
    if (size > b->room - b->used) {
        size_t room = b->room ? b->room : 256;
        while (room - b->used < size) room *= 2; /* the arena's limit comes long before this wraps */
        uint8_t *moved = arena_alloc(a, room);
        if (b->used) memcpy(moved, b->bytes, b->used);
        b->bytes = moved;
        b->room = room;
    }
    if (size) memcpy(b->bytes + b->used, bytes, size);
    b->used += size;
}

static void put_varint(arena *a, onnx_bytes *b, uint64_t x) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; x >= 0x80; x >>= 7) bytes[n++] = (uint8_t)(x | 0x80);
    bytes[n++] = (uint8_t)x;
    put_bytes(a, b, bytes, n);
}

static void put_int(arena *a, onnx_bytes *b, unsigned field, int64_t x) {
    put_varint(a, b, field << 3 | WIRE_VARINT);
    put_varint(a, b, (uint64_t)x);
}

static void put_span(arena *a, onnx_bytes *b, unsigned field, const void *bytes, size_t size) {
    put_varint(a, b, field << 3 | WIRE_BYTES);
    put_varint(a, b, size);
    put_bytes(a, b, bytes, size);
}

static void put_text(arena *a, onnx_bytes *b, unsigned field, const char *text) {
    put_span(a, b, field, text, strlen(text));
}

static void put_message(arena *a, onnx_bytes *b, unsigned field, const onnx_bytes *inner) {
    put_span(a, b, field, inner->bytes, inner->used);
}

/* ---- nodes ---- */

void onnx_begin(onnx_writer *o, arena *a) {
    *o = (onnx_writer){.arena = a};
    map_init(&o->known, a);
    put_text(a, &o->graph, 2, "main");
}

void onnx_node(onnx_writer *o, const char *domain, const char *op_type, const char *name) {
    o->node.used = 0;
    put_text(o->arena, &o->node, 3, name);
    put_text(o->arena, &o->node, 4, op_type);
    put_text(o->arena, &o->node, 7, domain);
}

void onnx_in(onnx_writer *o, const char *name) { put_text(o->arena, &o->node, 1, name); }
void onnx_out(onnx_writer *o, const char *name) { put_text(o->arena, &o->node, 2, name); }

static void put_attribute(onnx_writer *o, const char *name, int type, onnx_bytes *a) {
    put_text(o->arena, a, 1, name);
    put_int(o->arena, a, 20, type);
    put_message(o->arena, &o->node, 5, a);
}

void onnx_int(onnx_writer *o, const char *name, int64_t x) {
    onnx_bytes a = {0};
    put_int(o->arena, &a, 3, x);
    put_attribute(o, name, ATTRIBUTE_INT, &a);
}

void onnx_ints(onnx_writer *o, const char *name, const int64_t *x, int n) {
    onnx_bytes a = {0};
    for (int k = 0; k < n; k++) put_int(o->arena, &a, 8, x[k]);
    put_attribute(o, name, ATTRIBUTE_INTS, &a);
}

void onnx_text(onnx_writer *o, const char *name, const char *text) {
    onnx_bytes a = {0};
    put_text(o->arena, &a, 4, text);
    put_attribute(o, name, ATTRIBUTE_STRING, &a);
}

void onnx_close(onnx_writer *o) { put_message(o->arena, &o->graph, 1, &o->node); }

/* ---- tensors ---- */

static bool is_new(onnx_writer *o, const char *name) {
    void **place = map_put(&o->known, name);
    const bool added = *place == NULL;
    *place = o;
    return added;
}

/* In onnx.proto a tensor of which nothing but type and shape is told holds no data, and counts as a weight out of
 * reach. */
void onnx_weight(onnx_writer *o, const char *name, dtype type, const int64_t *dims, int rank) {
    onnx_bytes t = {0};
    if (!is_new(o, name)) return;
    for (int k = 0; k < rank; k++) put_int(o->arena, &t, 1, dims[k]);
    put_int(o->arena, &t, 2, type);
    put_text(o->arena, &t, 8, name);
    put_message(o->arena, &o->graph, 5, &t);
}

/* rank 1, or 0 with one number. */
static void constant(onnx_writer *o, const char *name, const int64_t *x, int n, int rank) {
    onnx_bytes t = {0};
    if (!is_new(o, name)) return;
    if (rank > 0) put_int(o->arena, &t, 1, n);
    put_int(o->arena, &t, 2, DTYPE_INT64);
    for (int k = 0; k < n; k++) put_int(o->arena, &t, 7, x[k]);
    put_text(o->arena, &t, 8, name);
    put_message(o->arena, &o->graph, 5, &t);
}

void onnx_vector(onnx_writer *o, const char *name, const int64_t *x, int n) { constant(o, name, x, n, 1); }
void onnx_scalar(onnx_writer *o, const char *name, int64_t x) { constant(o, name, &x, 1, 0); }

void onnx_input(onnx_writer *o, const char *name, dtype type, const int64_t *dims, int rank) {
    onnx_bytes shape = {0}, tensor = {0}, about = {0}, value = {0};
    for (int k = 0; k < rank; k++) {
        onnx_bytes dim = {0};
        put_int(o->arena, &dim, 1, dims[k]);
        put_message(o->arena, &shape, 1, &dim);
    }
    put_int(o->arena, &tensor, 1, type);
    put_message(o->arena, &tensor, 2, &shape);
    put_message(o->arena, &about, 1, &tensor);
    put_text(o->arena, &value, 1, name);
    put_message(o->arena, &value, 2, &about);
    put_message(o->arena, &o->graph, 11, &value);
}

void onnx_output(onnx_writer *o, const char *name) {
    onnx_bytes value = {0};
    put_text(o->arena, &value, 1, name);
    put_message(o->arena, &o->graph, 12, &value);
}

static void put_opset(arena *a, onnx_bytes *model, const char *domain, int64_t version) {
    onnx_bytes opset = {0};
    put_text(a, &opset, 1, domain);
    put_int(a, &opset, 2, version);
    put_message(a, model, 8, &opset);
}

onnx_bytes onnx_finish(onnx_writer *o, const char *producer) {
    onnx_bytes model = {0};
    put_int(o->arena, &model, 1, IR_VERSION);
    put_text(o->arena, &model, 2, producer);
    put_opset(o->arena, &model, "", OPSET);
    put_opset(o->arena, &model, "com.microsoft", MS_OPSET);
    put_message(o->arena, &model, 7, &o->graph);
    return model;
}
