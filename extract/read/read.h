/* From a path to a model: maps the file, indexes and checks the wire format, decodes the metadata, inlines functions,
 * binds symbols to numbers. Weight bytes are not touched. */
#pragma once

#include "extract/graph/graph.h"

typedef struct read_dim { /* one --dim NAME=N */
    const char *name;
    int64_t size;
} read_dim;

typedef struct read_options {
    const read_dim *dims;
    int dim_count;
    int64_t batch, seq; /* 0: not given */
} read_options;

typedef struct model_file model_file; /* the mapped file and what it opened; opaque */

/* Maps `path`. The caller closes it after the arena is freed or before, but not before the last read_values; safe to
 * call with a file that was never opened (NULL). */
model_file *read_open(arena *a, const char *path);
/* The same with a model that was made in memory, from what lies at `path`; the name is borrowed. */
model_file *read_open_made(arena *a, const char *path, const char *name, const uint8_t *bytes, size_t size);
void read_close(model_file *f);

model *read_model(arena *a, model_file *f, const read_options *options);

/* Values of a constant (initializer, Constant output, attribute tensor) of up to `max` elements, whichever way they are
 * stored (raw, typed fields, external file, sparse). NULL where it is larger, unreachable, or not of a numeric type. */
const value *read_values(model *m, const tensor *t, int64_t max);
