/* What elementwise operators do to known values: a table from operator name to scalar function. */
#ifndef EXTRACT_INFER_VALUE_ELEMENTWISE_H
#define EXTRACT_INFER_VALUE_ELEMENTWISE_H

#include "extract/infer/infer.h"

/* A tensor's values with its shape and type. */
typedef struct value_operand {
    const value *v;
    dtype type;
    int rank;
    const int64_t *dims;
} value_operand;

/* All return NULL where the operator has no entry or the result is not defined (division by 0). `name` is an operator's
 * name, or that of a form of it: "FMod", "ShiftLeft", "ShiftRight". */
const value *value_elementwise_unary(const infer *c, const char *name, const value *v, dtype type);
const value *value_elementwise_binary(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                      dtype type, int rank, const int64_t *dims);
const value *value_elementwise_compare(arena *a, const char *name, const value_operand *x, const value_operand *y,
                                       int rank, const int64_t *dims);
const value *value_elementwise_clip(arena *a, const value *v, dtype type, const value *low, const value *high);
/* One step of a running reduction; false where undefined. */
bool value_elementwise_step(const char *name, bool integer, int64_t *i, double *f, int64_t xi, double xf);

#endif
