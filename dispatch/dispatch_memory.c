/* Owns how a table's memory is taken: pieces that grow, and a limit that no file can push. */
#include "dispatch/dispatch_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct dispatch_piece {
    struct dispatch_piece *next;
    size_t size, used;
    max_align_t bytes[];
} dispatch_piece;

enum { FIRST_PIECE = 4096, LARGEST_PIECE = 1 << 20, ALIGNMENT = _Alignof(max_align_t) };

void *dispatch_memory_take(dispatch_memory *m, size_t size) {
    if (size > m->limit) return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    dispatch_piece *p = m->pieces;
    if (!p || p->size - p->used < size) {
        size_t room = p ? 2 * p->size : FIRST_PIECE;
        if (room > LARGEST_PIECE) room = LARGEST_PIECE;
        if (room < size) room = size;
        if (room > m->limit - m->used) return NULL;
        p = malloc(sizeof *p + room);
        if (!p) return NULL;
        *p = (dispatch_piece){.next = m->pieces, .size = room};
        m->pieces = p;
        m->used += room;
    }
    void *bytes = (char *)p->bytes + p->used;
    p->used += size;
    memset(bytes, 0, size);
    return bytes;
}

bool dispatch_memory_grow(dispatch_memory *m, void **items, size_t *room, size_t count, size_t size) {
    if (count < *room) return true;
    const size_t wanted = *room ? 2 * *room : 16;
    if (wanted > SIZE_MAX / size) return false;
    void *moved = dispatch_memory_take(m, wanted * size);
    if (!moved) return false;
    if (count > 0) memcpy(moved, *items, count * size);
    *items = moved;
    *room = wanted;
    return true;
}

void dispatch_memory_free(dispatch_memory *m) {
    while (m->pieces) {
        dispatch_piece *next = m->pieces->next;
        free(m->pieces);
        m->pieces = next;
    }
    m->used = 0;
}
