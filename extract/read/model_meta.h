/* Decoded metadata of single messages, and lists of the messages inside a message. */
#ifndef EXTRACT_READ_MODEL_META_H
#define EXTRACT_READ_MODEL_META_H

#include "extract/read/model_file.h"

/* Unpacks the metadata fields of one message: a pointer to its OnnxMeta__ struct, valid until the next call. */
const void *model_meta_unpack(model_file *f, wire_kind kind, wire_span span);

/* The nested messages of one message by field number, in order; in the arena given. */
typedef struct model_list {
    wire_span *items;
    size_t count;
} model_list;
typedef struct model_index {
    model_list fields[WIRE_SCHEMA_FIELDS];
} model_index;
void model_meta_index(model_file *f, arena *a, wire_kind kind, wire_span span, model_index *index);
/* The same for one field alone. */
model_list model_meta_list(model_file *f, arena *a, wire_span span, uint32_t number);

#endif
