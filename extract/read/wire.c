/* The primitives of the wire format, each bounded by the message it reads from. */
#include "extract/read/wire.h"

#include <stdarg.h>
#include <stdio.h>

void wire_fail(const wire *w, uint64_t at, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    guard_fail(w->guard, STATUS_INPUT, "byte %llu: %s", (unsigned long long)at, text);
}

uint64_t wire_varint(wire *w) {
    const uint64_t start = w->pos;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->pos >= w->end)
            wire_fail(w, start, "a number runs past the end of its message; the file is cut short or damaged");
        const uint8_t byte = w->base[w->pos++];
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    wire_fail(w, start, "a number is longer than 64 bits; the file is damaged or not an ONNX model");
}

static uint64_t wire_fixed(wire *w, int size) {
    if (w->end - w->pos < (uint64_t)size) {
        wire_fail(w, w->pos, "a number of %d bytes runs past the end of its message; the file is cut short or damaged",
                  size);
    }
    uint64_t value = 0;
    for (int i = 0; i < size; i++) value |= (uint64_t)w->base[w->pos + (uint64_t)i] << (8 * i);
    w->pos += (uint64_t)size;
    return value;
}

uint32_t wire_fixed32(wire *w) { return (uint32_t)wire_fixed(w, 4); }

uint64_t wire_fixed64(wire *w) { return wire_fixed(w, 8); }

wire wire_inside(const wire *w, wire_span span) {
    wire inner = *w;
    inner.pos = span.offset;
    inner.end = span.offset + span.size;
    return inner;
}

static void wire_length(wire *w, wire_field *f) {
    const uint64_t at = w->pos;
    const uint64_t size = wire_varint(w);
    if (size > w->end - w->pos) {
        wire_fail(w, at,
                  "a field of %llu bytes runs past the end of its message, which has %llu left; the file is cut short "
                  "or damaged",
                  (unsigned long long)size, (unsigned long long)(w->end - w->pos));
    }
    f->payload = (wire_span){w->pos, size};
    w->pos += size;
}

bool wire_next(wire *w, wire_field *f) {
    if (w->pos >= w->end) return false;
    f->start = w->pos;
    if (w->steps) ++*w->steps;
    const uint64_t tag = wire_varint(w);
    const uint64_t number = tag >> 3;
    if (number == 0 || number > 0x1fffffff)
        wire_fail(w, f->start, "field number %llu does not exist; the file is damaged or not an ONNX model",
                  (unsigned long long)number);
    f->number = (uint32_t)number;
    f->value = 0;
    f->payload = (wire_span){w->pos, 0};
    switch (tag & 7) {
    case WIRE_VARINT: f->value = wire_varint(w); break;
    case WIRE_FIXED64: f->value = wire_fixed64(w); break;
    case WIRE_FIXED32: f->value = wire_fixed32(w); break;
    case WIRE_BYTES:
        f->type = WIRE_BYTES;
        wire_length(w, f);
        return true;
    default:
        wire_fail(w, f->start, "wire type %d is not used by ONNX; the file is damaged or not an ONNX model",
                  (int)(tag & 7));
    }
    f->type = (wire_type)(tag & 7);
    f->payload.size = w->pos - f->payload.offset;
    return true;
}
