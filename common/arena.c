/* The arena: chunks from malloc that only grow until the whole is given back. Under AddressSanitizer every byte that
 * was not handed out is poisoned, so that an overrun inside a chunk is found like one past a malloc. */
#include "common/arena.h"

#include "common/checked.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A build that injects failures sets ARENA_FIRST_CHUNK to a few bytes: chunks then stay that small, so that nearly
 * every allocation is a malloc that can be made to fail. */
#ifdef ARENA_FIRST_CHUNK
#ifndef ARENA_LAST_CHUNK
#define ARENA_LAST_CHUNK ARENA_FIRST_CHUNK
#endif
#else
#define ARENA_FIRST_CHUNK ((size_t)16 << 10)
#define ARENA_LAST_CHUNK  ((size_t)1 << 20)
#endif

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 16 };
static void hide(const void *p, size_t n) { ASAN_POISON_MEMORY_REGION(p, n); }
static void show(const void *p, size_t n) { ASAN_UNPOISON_MEMORY_REGION(p, n); }
#else
enum { RED_ZONE = 0 };
static void hide(const void *p, size_t n) { (void)p, (void)n; }
static void show(const void *p, size_t n) { (void)p, (void)n; }
#endif

enum { ALIGNMENT = 16 };

struct arena_chunk {
    arena_chunk *older;
    size_t size;     /* of the payload */
    uint64_t serial; /* order of making; a chunk of one big piece is linked behind the ordinary one in use */
    char *payload;
};

enum { HEADER = (sizeof(arena_chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };

void arena_init(arena *a, guard *g, size_t limit) {
    memset(a, 0, sizeof *a);
    a->guard = g;
    a->limit = limit;
    a->next_size = ARENA_FIRST_CHUNK;
}

static void drop_chunk(arena *a, arena_chunk *c) {
    a->used -= HEADER + c->size;
    show(c->payload, c->size);
    free(c);
}

void arena_free(arena *a) {
    arena_mark start = {0};
    arena_rewind(a, start);
}

bool arena_within(arena *a, void (*work)(void *context), void *context, status *st) {
    guard g;
    guard_init(&g);
    arena_init(a, &g, (size_t)1 << 30);
    if (guard_enter(&g))
        work(context);
    else
        *st = g.st;
    arena_free(a);
    return g.st.code == STATUS_OK;
}

static arena_chunk *make_chunk(arena *a, size_t size) {
    if (size > a->limit || a->limit - size < HEADER || a->used > a->limit - size - HEADER)
        guard_fail(a->guard, STATUS_INPUT, "more than %zu MiB of memory would be needed; the file asks for too much",
                   a->limit >> 20);
    char *memory = malloc(HEADER + size);
    if (!memory) guard_fail(a->guard, STATUS_ENVIRONMENT, "out of memory; free some and run again");
    arena_chunk *c = (arena_chunk *)(void *)memory;
    c->size = size;
    c->serial = ++a->serial;
    c->payload = memory + HEADER;
    a->used += HEADER + size;
    hide(c->payload, size);
    return c;
}

static void *alloc_from_new_chunk(arena *a, size_t room) {
    /* A piece that would fill most of a chunk gets one of its own, and the ordinary one stays in use. */
    if (room > a->next_size / 4) {
        arena_chunk *c = make_chunk(a, room);
        arena_chunk **link = a->chunks ? &a->chunks->older : &a->chunks;
        c->older = *link;
        *link = c;
        if (a->chunks == c) a->cursor = a->end = c->payload + c->size;
        return c->payload;
    }
    size_t size = a->next_size;
    if (size + HEADER > a->limit - a->used) size = room; /* near the limit: what is needed and no more */
    arena_chunk *c = make_chunk(a, size);
    c->older = a->chunks;
    a->chunks = c;
    a->cursor = c->payload + room;
    a->end = c->payload + c->size;
    if (a->next_size < ARENA_LAST_CHUNK) a->next_size *= 2;
    return c->payload;
}

void *arena_alloc(arena *a, size_t size) {
    if (size > SIZE_MAX / 2)
        guard_fail(a->guard, STATUS_INPUT,
                   "an impossible amount of memory would be needed; the file asks for too much");
    size_t room = (size + RED_ZONE + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (room == 0) room = ALIGNMENT;
    void *p;
    if (room <= (size_t)(a->end - a->cursor)) {
        p = a->cursor;
        a->cursor += room;
    } else {
        p = alloc_from_new_chunk(a, room);
    }
    show(p, size);
    return p;
}

void *arena_zalloc(arena *a, size_t size) {
    void *p = arena_alloc(a, size);
    memset(p, 0, size);
    return p;
}

void *arena_calloc(arena *a, size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) total = SIZE_MAX; /* refused by arena_alloc */
    return arena_zalloc(a, total);
}

char *arena_strndup(arena *a, const char *text, size_t len) {
    if (len == SIZE_MAX) len--; /* refused below without wrapping */
    char *copy = arena_alloc(a, len + 1);
    if (len > 0) memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

char *arena_printf(arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) guard_fail(a->guard, STATUS_ENVIRONMENT, "a message could not be formatted; it is longer than 2 GiB");
    char *text = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

void arena_grow(arena *a, void **items, size_t *cap, size_t count, size_t size) {
    if (count < *cap) return;
    size_t wanted = *cap < 8 ? 8 : *cap;
    while (wanted <= count) {
        if (wanted > SIZE_MAX / 4)
            guard_fail(a->guard, STATUS_INPUT, "out of memory for a list; the file asks for too much");
        wanted *= 2;
    }
    size_t total;
    if (__builtin_mul_overflow(wanted, size, &total)) total = SIZE_MAX;
    void *bigger = arena_alloc(a, total);
    if (*items && *cap > 0) memcpy(bigger, *items, (count < *cap ? count : *cap) * size);
    *items = bigger;
    *cap = wanted;
}

arena_mark arena_save(const arena *a) { return (arena_mark){a->chunks, a->cursor, a->serial}; }

void arena_rewind(arena *a, arena_mark mark) {
    while (a->chunks !=
           mark.chunk) { /* ordinary chunks newer than the mark, and big ones made while they were in use */
        arena_chunk *c = a->chunks;
        a->chunks = c->older;
        drop_chunk(a, c);
    }
    arena_chunk *head = a->chunks;
    if (!head) {
        a->cursor = a->end = NULL;
        a->next_size = ARENA_FIRST_CHUNK;
        return;
    }
    while (head->older && head->older->serial > mark.serial) { /* big ones made while the marked chunk was in use */
        arena_chunk *c = head->older;
        head->older = c->older;
        drop_chunk(a, c);
    }
    a->cursor = mark.cursor;
    a->end = head->payload + head->size;
    hide(a->cursor, (size_t)(a->end - a->cursor));
}
