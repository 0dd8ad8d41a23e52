/* Owns what differs between the two devices: the members of their identities ("name=…;driver=…;cublaslt=…;uuid=…"),
 * one by one, and the driver in full. */
#include "analyze/compare/comparison.h"

#include <string.h>

enum { MOST = 64 }; /* members that are looked at: identities have a dozen */

typedef struct member {
    const char *name, *value;
} member;

static size_t split(comparison *c, const char *identity, member members[MOST]) {
    size_t n = 0;
    for (const char *at = identity ? identity : ""; *at && n < MOST;) {
        const size_t length = strcspn(at, ";");
        char *text = arena_strndup(&c->arena, at, length), *equals = strchr(text, '=');
        if (equals) *equals = 0;
        members[n++] = (member){text, equals ? equals + 1 : ""};
        at += length + (at[length] == ';');
    }
    return n;
}

static const char *value_of(const member *members, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (strcmp(members[k].name, name) == 0) return members[k].value;
    return "";
}

static void differ(comparison *c, const char *what, const char *before, const char *after) {
    if (strcmp(before, after) != 0)
        c->differences[c->difference_count++] = (comparison_difference){what, before, after};
}

void comparison_differ(comparison *c) {
    const study_group *b = c->before, *a = c->after;
    const bool instances = b->device_instance && a->device_instance, drivers = b->driver && a->driver;
    member before[MOST], after[MOST];
    const size_t n = split(c, instances ? b->device_instance : b->device_class, before);
    const size_t m = split(c, instances ? a->device_instance : a->device_class, after);
    c->differences = arena_array(&c->arena, comparison_difference, n + m + 1);
    if (drivers) differ(c, "driver", b->driver, a->driver);
    for (size_t k = 0; k < n; k++)
        if (!drivers || strcmp(before[k].name, "driver") != 0)
            differ(c, before[k].name, before[k].value, value_of(after, m, before[k].name));
    for (size_t k = 0; k < m; k++)
        if (*value_of(before, n, after[k].name) == 0 && (!drivers || strcmp(after[k].name, "driver") != 0))
            differ(c, after[k].name, "", after[k].value);
}
