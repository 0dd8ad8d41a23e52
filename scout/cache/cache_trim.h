/* Looking through the cache's folder, and bringing it under its limit. */
#ifndef SCOUT_CACHE_CACHE_TRIM_H
#define SCOUT_CACHE_CACHE_TRIM_H

#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that is being written; what is older than CACHE_TEMP_SECONDS has lost its writer. */
#define CACHE_TEMP_PREFIX ".new."
enum { CACHE_TEMP_SECONDS = 3600, CACHE_MAX_CLASSES = 1024 };

typedef struct cache_item {
    char name[64];
    int class; /* index of its folder */
    bool temp;
    uint64_t bytes;
    int64_t used_ns; /* when last, since 1970 */
} cache_item;

typedef struct cache_scan {
    char *classes[CACHE_MAX_CLASSES]; /* names of folders, owned */
    int class_count;
    cache_item *items; /* owned: cache_scan_free */
    size_t count, room;
} cache_scan;

/* Only files whose names the cache makes; others are none of ours. A folder that is not there has nothing. */
bool cache_scan_folder(const char *folder, cache_scan *out, status *st);
void cache_scan_free(cache_scan *s);

#endif
