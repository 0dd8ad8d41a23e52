/* Matching of names that a person typed, in the supervisor (to refuse slips) and in the worker (to list rows). */
#include "scout/terms/filter.h"

#include <stddef.h>
#include <string.h>

/* What people say, and what the library is called in a candidate; NULL: any of them. */
static const struct { const char *said, *library; } aliases[] = {{"cublas", "cublaslt"}, {"library", NULL}};

bool filter_takes(const char *list, const char *name) {
    const size_t length = strlen(name);
    if (!list) return true;
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if (n == length && strncmp(at, name, n) == 0) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

bool filter_is_before(const char *before, const char *name, const char *library, bool is_default) {
    if (!before) return is_default;
    if (strcmp(before, name) == 0) return true;
    if (!is_default) return false;
    for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++) {
        if (strcmp(aliases[k].said, before) != 0) continue;
        return !aliases[k].library || (library && strcmp(aliases[k].library, library) == 0);
    }
    return library && strcmp(before, library) == 0;
}
