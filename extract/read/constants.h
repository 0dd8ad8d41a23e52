/* Constants: where their bytes are and how the few that shapes depend on are read. */
#pragma once

#include "extract/read/external.h"
#include "extract/read/read.h"
#include "extract/read/wire.h"

/* What every blob of a tensor that the reader made really is. */
typedef struct constant {
    blob blob;                      /* first: a tensor points to it */
    const info *info;               /* dtype and dims */
    wire_span message;              /* the tensor message, for typed fields */
    const external_file *external;  /* NULL: inside the model */
    const tensor *values, *indices; /* sparse: both set */
} constant;

/* One element of raw little-endian bytes: integers and booleans. False where the type has none. */
bool constants_int(dtype type, const uint8_t *bytes, int64_t index, int64_t *x);
bool constants_float(dtype type, const uint8_t *bytes, int64_t index, double *x);
