/* Writes an ONNX model (protobuf) into memory: nodes, constants, weights of which only the shape is told, inputs and
 * outputs. Names are borrowed until they are written. */
#pragma once

#include "common/arena.h"
#include "common/dtype.h"
#include "common/map.h"

typedef struct onnx_bytes {
    uint8_t *bytes;
    size_t used, room;
} onnx_bytes;

typedef struct onnx_writer {
    arena *arena;
    onnx_bytes graph, node; /* node: the one that is open */
    map known;              /* names of weights and constants that are written */
} onnx_writer;

void onnx_begin(onnx_writer *o, arena *a);

/* A node is open from here to onnx_close. domain "" is ai.onnx. */
void onnx_node(onnx_writer *o, const char *domain, const char *op_type, const char *name);
void onnx_in(onnx_writer *o, const char *name); /* "": left out */
void onnx_out(onnx_writer *o, const char *name);
void onnx_int(onnx_writer *o, const char *name, int64_t x);
void onnx_ints(onnx_writer *o, const char *name, const int64_t *x, int n);
void onnx_text(onnx_writer *o, const char *name, const char *text);
void onnx_close(onnx_writer *o);

/* Each of these once by its name; written again they are the same. */
void onnx_weight(onnx_writer *o, const char *name, dtype type, const int64_t *dims, int rank);
void onnx_vector(onnx_writer *o, const char *name, const int64_t *x, int n); /* of int64 */
void onnx_scalar(onnx_writer *o, const char *name, int64_t x);

void onnx_input(onnx_writer *o, const char *name, dtype type, const int64_t *dims, int rank);
void onnx_output(onnx_writer *o, const char *name);

/* The whole model, in the arena. */
onnx_bytes onnx_finish(onnx_writer *o, const char *producer);
