/* What a number becomes when it is stored in an element type: rounded, wrapped, truncated. */
#ifndef EXTRACT_INFER_VALUE_NUMBER_H
#define EXTRACT_INFER_VALUE_NUMBER_H

#include "extract/graph/info.h"

bool value_number_tracked(dtype t);            /* values of this type are propagated */
double value_number_round(dtype t, double x);  /* to the nearest of a floating type */
int64_t value_number_wrap(dtype t, int64_t x); /* to the bits of an integer type; booleans to 0 and 1 */
/* Values as another type; NULL where that type's values are not tracked (or v is NULL). */
const value *value_number_cast(arena *a, const value *v, dtype from, dtype to);

#endif
