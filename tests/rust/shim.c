/* What the comparison of rust/scout-dispatch with the C library cannot call, because it is inline: keys, and the
 * lookups of a generated header (table.h, prefix made). Entries are told by their numbers, -1: none. */
#include "dispatch/scout_dispatch.h"
#include "table.h"

int shim_parse(scout_dispatch_key *key, const char *text, size_t length);
int shim_place(const scout_dispatch_key *key, const char *member, int which);
size_t shim_write(const scout_dispatch_op *op, char *text, size_t room);
int64_t shim_find(const scout_dispatch_key *key);
int64_t shim_near(const scout_dispatch_key *key, int64_t *upper);

int shim_parse(scout_dispatch_key *key, const char *text, size_t length) {
    return scout_dispatch_key_parse(key, text, length);
}

int shim_place(const scout_dispatch_key *key, const char *member, int which) {
    return scout_dispatch_key_place(key, member, which);
}

size_t shim_write(const scout_dispatch_op *op, char *text, size_t room) {
    return scout_dispatch_key_write(op, text, room);
}

int64_t shim_find(const scout_dispatch_key *key) {
    const scout_dispatch_entry *e = made_find(key);
    return e ? e - made_index.entries : -1;
}

int64_t shim_near(const scout_dispatch_key *key, int64_t *upper) {
    const scout_dispatch_range *range = made_near(key);
    if (range) *upper = range->upper;
    return range ? (int64_t)range->lower : -1;
}
