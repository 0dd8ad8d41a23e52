/* A hash map from text to pointer, in an arena. Keys are borrowed: they must live as long as the map. */
#pragma once

#include "common/arena.h"

typedef struct map_slot {
    const char *key; /* NULL: free */
    uint64_t hash;
    void *value;
} map_slot;

typedef struct map {
    arena *arena;
    map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
} map;

void map_init(map *m, arena *a);
void *map_get(const map *m, const char *key); /* NULL where absent */
void **map_put(map *m, const char *key);      /* the value's place, NULL in it when new; valid until the next put */
const char *map_intern(map *m, const char *s, size_t n); /* the one copy of a text; the map is used as a set then */
/* The name where the map has none such yet, else name_2, name_3, …: the first that is new. The map holds nothing else.
 */
const char *map_unique(map *m, const char *name);
