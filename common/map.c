/* Open addressing over XXH3 hashes. The seed is random per process, so that a hostile model cannot choose names that
 * collide; nothing may therefore depend on the order of slots. */
#include "common/map.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

enum { FIRST_CAPACITY = 8 }; /* most maps of a body or a function hold a few names */

static uint64_t seed(void) {
    static uint64_t chosen;
    if (chosen == 0) {
        if (getrandom(&chosen, sizeof chosen, GRND_NONBLOCK) != (ssize_t)sizeof chosen) chosen = (uint64_t)time(NULL);
        chosen |= 1;
    }
    return chosen;
}

void map_init(map *m, arena *a) {
    memset(m, 0, sizeof *m);
    m->arena = a;
}

/* The slot that holds the text, or the free one where it belongs. */
static map_slot *find(const map *m, const char *s, size_t n, uint64_t hash) {
    size_t mask = m->capacity - 1;
    for (size_t k = (size_t)hash & mask;; k = (k + 1) & mask) {
        map_slot *slot = &m->slots[k];
        if (!slot->key) return slot;
        if (slot->hash == hash && strncmp(slot->key, s, n) == 0 && slot->key[n] == 0) return slot;
    }
}

static void grow(map *m) {
    if (m->count < m->capacity / 4 * 3) return;
    map_slot *old = m->slots;
    size_t old_capacity = m->capacity;
    size_t capacity = old_capacity ? old_capacity * 2 : FIRST_CAPACITY;
    map_slot *slots = arena_array(m->arena, map_slot, capacity);
    for (size_t k = 0; k < old_capacity; k++) {
        if (!old[k].key) continue;
        size_t to = (size_t)old[k].hash & (capacity - 1);
        while (slots[to].key) to = (to + 1) & (capacity - 1);
        slots[to] = old[k];
    }
    m->slots = slots;
    m->capacity = capacity;
}

void *map_get(const map *m, const char *key) {
    if (m->count == 0) return NULL;
    size_t n = strlen(key);
    return find(m, key, n, XXH3_64bits_withSeed(key, n, seed()))->value; /* a free slot's value is NULL */
}

void **map_put(map *m, const char *key) {
    grow(m);
    size_t n = strlen(key);
    uint64_t hash = XXH3_64bits_withSeed(key, n, seed());
    map_slot *slot = find(m, key, n, hash);
    if (!slot->key) {
        *slot = (map_slot){key, hash, NULL};
        m->count++;
    }
    return &slot->value;
}

const char *map_intern(map *m, const char *s, size_t n) {
    n = n > 0 ? strnlen(s, n) : 0; /* a text ends at its first NUL */
    if (n == 0) s = "";
    grow(m);
    uint64_t hash = XXH3_64bits_withSeed(s, n, seed());
    map_slot *slot = find(m, s, n, hash);
    if (!slot->key) {
        *slot = (map_slot){arena_strndup(m->arena, s, n), hash, NULL};
        m->count++;
    }
    return slot->key;
}

const char *map_unique(map *m, const char *name) {
    const char *own = name;
    while (*map_put(m, own)) {
        void **asked = map_put(m, name); /* how often: numbers that were given are not tried again */
        *asked = (void *)((intptr_t)*asked + 1);
        own = arena_printf(m->arena, "%s_%" PRIdPTR, name, (intptr_t)*asked);
    }
    *map_put(m, own) = (void *)(intptr_t)1;
    return own;
}
