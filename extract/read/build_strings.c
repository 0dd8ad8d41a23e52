/* Open addressing; the table doubles before it is three quarters full. */
#include "extract/read/build.h"

#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

enum { FIRST_CAPACITY = 256 };

void build_strings_init(build_strings *s, arena *tables) {
    *s = (build_strings){.tables = tables};
    if (getrandom(&s->seed, sizeof s->seed, GRND_NONBLOCK) != (ssize_t)sizeof s->seed) s->seed = (uint64_t)(uintptr_t)s;
}

static uint64_t hash_of(const build_strings *s, const char *text, size_t length) {
    return XXH3_64bits_withSeed(text, length, s->seed);
}

static void grow(build_strings *s) {
    if (s->count < s->capacity / 4 * 3) return;
    const build_string *old = s->slots;
    const size_t old_capacity = s->capacity;
    s->capacity = old_capacity ? old_capacity * 2 : FIRST_CAPACITY;
    s->slots = arena_array(s->tables, build_string, s->capacity);
    for (size_t k = 0; k < old_capacity; k++) {
        if (!old[k].text) continue;
        size_t at = (size_t)hash_of(s, old[k].text, strlen(old[k].text)) & (s->capacity - 1);
        while (s->slots[at].text) at = (at + 1) & (s->capacity - 1);
        s->slots[at] = old[k];
    }
}

build_string *build_strings_put(build_strings *s, const char *text, size_t length, arena *copies, bool *added) {
    grow(s);
    const uint64_t hash = hash_of(s, text, length);
    const uint32_t upper = (uint32_t)(hash >> 32);
    build_string *slot = &s->slots[hash & (s->capacity - 1)];
    while (slot->text && (slot->hash != upper || strncmp(slot->text, text, length) != 0 || slot->text[length])) {
        if (++slot == s->slots + s->capacity) slot = s->slots;
    }
    *added = slot->text == NULL;
    if (!*added) return slot;
    *slot = (build_string){.text = copies ? arena_strndup(copies, text, length) : text, .hash = upper};
    s->count++;
    return slot;
}
