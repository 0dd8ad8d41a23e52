/* What each ONNX message may hold, as a table: which wire type a field must have, what a nested message is, and which
 * fields are metadata that protobuf-c unpacks. And the check of a whole file against that table. */
#pragma once

#include "extract/read/wire.h"

enum {
    WIRE_SCHEMA_FIELDS = 32,       /* field numbers that matter are below this */
    WIRE_SCHEMA_MAX_GRAPHS = 64,   /* graphs inside graphs */
    WIRE_SCHEMA_MAX_MESSAGES = 256 /* messages inside messages: a graph is three of them */
};

typedef enum wire_kind {
    WIRE_KIND_NONE,
    WIRE_MODEL,
    WIRE_GRAPH,
    WIRE_NODE,
    WIRE_ATTRIBUTE,
    WIRE_TENSOR,
    WIRE_SPARSE,
    WIRE_VALUE_INFO,
    WIRE_FUNCTION,
    WIRE_OPSET,
    WIRE_ENTRY,
    WIRE_SEGMENT,
    WIRE_SHAPE,
    WIRE_DIMENSION,
    WIRE_TYPE_PROTO,
    WIRE_TENSOR_TYPE,
    WIRE_ELEMENT_TYPE,
    WIRE_MAP_TYPE,
    WIRE_OPAQUE_TYPE,
    WIRE_KIND_COUNT
} wire_kind;

typedef enum wire_form {
    WIRE_FORM_ANY, /* not in the table: stepped over */
    WIRE_FORM_VARINT,
    WIRE_FORM_FLOAT,
    WIRE_FORM_BYTES,
    WIRE_FORM_MESSAGE,
    WIRE_FORM_VARINTS, /* repeated: packed or not */
    WIRE_FORM_FLOATS,
    WIRE_FORM_DOUBLES
} wire_form;

typedef struct wire_rule {
    wire_form form;
    wire_kind message; /* of WIRE_FORM_MESSAGE */
    bool meta;         /* unpacked by protobuf-c together with its message */
} wire_rule;

const wire_rule *wire_schema_rule(wire_kind kind, uint32_t number); /* never NULL */
const char *wire_schema_name(wire_kind kind);

/* Checks the whole file: every field of every message that extract_ops will look at, and how deep they nest. `passed`
 * (may be NULL) is told of every large field that was stepped over. */
typedef void wire_schema_passed(void *context, wire_span field);
void wire_schema_check(const wire *file, wire_schema_passed *passed, void *context);
/* Checks one message alone. */
void wire_schema_check_message(const wire *message, wire_kind kind);
