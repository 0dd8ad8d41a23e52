/* What a run was told to measure by name: some candidates among all, and in a comparison another baseline than the
 * library's default. Names come from a person, so those of libraries are understood as well. */
#pragma once

#include <stdbool.h>

/* Whether `name` stands in "one,two"; NULL: all were requested. */
bool filter_takes(const char *list, const char *name);

/* Whether a candidate is what stands first in a comparison: the one of that name; or, where `before` names a library
 * ("cublas", "onednn", "library": whichever it is), that library's default. NULL: the device's default. */
bool filter_is_before(const char *before, const char *name, const char *library, bool is_default);
