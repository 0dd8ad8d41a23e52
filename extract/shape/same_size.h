/* Whether two numbers that depend on data are one: sizes that a model computes in two ways, such as the rows of a
 * result and of what it was made from. */
#pragma once

#include "extract/graph/graph.h"

/* Element k of `asked` is dimension d of x, whatever the data. Where this cannot be told it is false. */
bool same_size(const tensor *asked, int64_t k, const tensor *x, int d);
