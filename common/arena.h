/* Memory that lives as long as a run. Allocation never returns NULL: what cannot be had fails
 * through the guard: STATUS_ENVIRONMENT where memory runs out, STATUS_INPUT where the stated limit is reached (a file
 * that asks for more than its size justifies). Nothing is freed one by one; arena_free gives everything back. */
#pragma once

#include "common/guard.h"

#include <stddef.h>
#include <stdint.h>

typedef struct arena_chunk arena_chunk;

typedef struct arena {
    guard *guard;
    arena_chunk *chunks; /* newest first */
    char *cursor;        /* free part of the newest chunk */
    char *end;
    size_t used;      /* bytes in all chunks */
    size_t limit;     /* bytes it may hold in all */
    uint64_t serial;  /* chunks made so far */
    size_t next_size; /* of the next ordinary chunk */
} arena;

void arena_init(arena *a, guard *g, size_t limit);
void arena_free(arena *a);
/* The work with an arena of its own, of 1 GB at most, in `a` while it lasts. False: it failed, and st says why. */
bool arena_within(arena *a, void (*work)(void *context), void *context, status *st);

void *arena_alloc(arena *a, size_t size);                    /* 16-byte aligned, not cleared; size 0 is fine */
void *arena_zalloc(arena *a, size_t size);                   /* cleared */
void *arena_calloc(arena *a, size_t count, size_t size);     /* cleared, product checked */
char *arena_strndup(arena *a, const char *text, size_t len); /* NUL-terminated copy */
__attribute__((format(printf, 2, 3))) char *arena_printf(arena *a, const char *format, ...);

#define arena_array(a, type, count) ((type *)arena_calloc((a), (size_t)(count), sizeof(type)))

/* Grows *items (capacity in *cap) so that one more fits after `count`. Old storage stays in the arena until the end, so
 * doubling wastes at most what is kept. */
void arena_grow(arena *a, void **items, size_t *cap, size_t count, size_t size);

/* Scratch use: everything allocated after the mark is given back by arena_rewind. */
typedef struct arena_mark {
    arena_chunk *chunk;
    char *cursor;
    uint64_t serial;
} arena_mark;
arena_mark arena_save(const arena *a);
void arena_rewind(arena *a, arena_mark mark);
