/* One dispatch table in memory: read from dispatch.json, checked, indexed, and never changed again. */
#ifndef DISPATCH_TABLE_H
#define DISPATCH_TABLE_H

#include "dispatch/dispatch_json.h"
#include "dispatch/scout_dispatch_device.h"
#include "dispatch/scout_dispatch_index.h"

enum { DISPATCH_TABLE_BYTES = 256 << 20 }; /* of a file, at most */

typedef struct dispatch_table {
    dispatch_memory memory;
    scout_dispatch_index index;
    scout_dispatch_device device; /* its libraries are those that entries need */
    const char *device_class, *regime;
    int64_t method;
} dispatch_table;

/* NULL: `why` has one line. dispatch_table_free. */
dispatch_table *dispatch_table_read(const char *text, size_t size, char *why, size_t room);
void dispatch_table_free(dispatch_table *t);

/* ---- from dispatch_build.c ---- */

/* A range as the file has it: `lower` is the entry that it stands with, the upper one is told by its key. */
typedef struct dispatch_between {
    uint32_t lower;
    const char *upper;
    int64_t from, to, step;
    uint32_t mask;
} dispatch_between;

/* Makes the index over entries (whose keys and figures are read); true, or `why` has a line. */
bool dispatch_build(dispatch_table *t, scout_dispatch_entry *entries, size_t count, const dispatch_between *ranges,
                    size_t range_count, char *why, size_t room);

#endif
