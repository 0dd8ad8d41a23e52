/* A bounded reader of the protobuf wire format over bytes in memory. It never reads outside what it was given, and
 * whatever is wrong ends the run through the guard with the offset of the byte at fault. Groups are refused: ONNX has
 * none. */
#pragma once

#include "common/guard.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct wire_span { /* bytes of the file */
    uint64_t offset, size;
} wire_span;

typedef struct wire {
    const uint8_t *base; /* byte 0 of the file */
    uint64_t pos, end;   /* what is left of this message; end is never past the file */
    guard *guard;
    uint64_t *steps; /* fields read, counted for a limit; NULL: there is none */
} wire;

typedef enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } wire_type;

typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t start;    /* offset of the tag */
    uint64_t value;    /* of a varint or fixed field */
    wire_span payload; /* of a length-delimited field; of the others the bytes of the value */
} wire_field;

/* Reads the next field and steps over it; false at the end of the message. */
bool wire_next(wire *w, wire_field *f);
uint64_t wire_varint(wire *w);
/* The values of a packed field, or one value of a repeated field that is not packed: a reader over them. */
wire wire_inside(const wire *w, wire_span span);
uint32_t wire_fixed32(wire *w);
uint64_t wire_fixed64(wire *w);
__attribute__((format(printf, 3, 4))) _Noreturn void wire_fail(const wire *w, uint64_t at, const char *format, ...);
