/* Results by key, one file per entry, under <folder>/<device class>/. No locks: an entry is written beside its place
 * and renamed, so that readers see all of it or nothing, also on a network folder, and the last of two writers wins. A
 * bad or foreign entry is a miss, with a message. */
#pragma once

#include "common/json.h"

typedef struct cache {
    char *folder;     /* owned; NULL: there is none, everything is a miss */
    char device[128]; /* class folder */
    uint64_t limit;   /* bytes of all entries; the oldest used go first */
    bool off;         /* --no-cache: nothing is found (results are still stored, for the next run) */
    bool read_only;   /* nothing can be stored; cache_open has said so */
} cache;

enum { CACHE_DEFAULT_LIMIT = 256 << 20 };

/* folder NULL: $XDG_CACHE_HOME/ceiling-scout, else ~/.cache/ceiling-scout. limit 0: CACHE_DEFAULT_LIMIT. false: the
 * folder cannot be written, and st says why: tell it once and go on; the cache can be used, finds what can be read and
 * silently stores nothing. Owned in either case: cache_close. */
bool cache_open(cache *c, const char *folder, const char *device_class_folder, uint64_t limit, status *st);
void cache_close(cache *c);
bool cache_default_folder(char *path, size_t room); /* what NULL stands for there; false: there is none */

/* The caller's object, or NULL: a miss; `note` gets a line where an entry was there but could not be used ("" else). */
json_t *cache_get(const cache *c, const char *key, char *note, size_t room);
/* Stores a value (borrowed) under each key. A failure is told and harms nothing. */
bool cache_put(const cache *c, const char *const *keys, int count, const json_t *value, status *st);
/* Brings the folder (of all device classes) under its limit and takes away what writers that died have left; called
 * once at the end of a run. */
void cache_trim(const cache *c);

typedef struct cache_info {
    char device[128];
    uint64_t entries, bytes;
} cache_info;
/* One row per device class, by name; the caller frees *rows. A folder that is not there yet has none. */
bool cache_list(const char *folder, char *folder_used, size_t room, cache_info **rows, int *count, status *st);
