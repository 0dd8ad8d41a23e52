/* The memory of one table: taken piece by piece up to a limit, given back all at once. */
#ifndef DISPATCH_MEMORY_H
#define DISPATCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dispatch_memory {
    struct dispatch_piece *pieces; /* newest first */
    size_t used, limit;            /* bytes */
} dispatch_memory;

/* Cleared and aligned for anything; NULL: there is no more, or the limit is reached. */
void *dispatch_memory_take(dispatch_memory *m, size_t size);
/* Room for one more behind `count`: *items moves when it is full. false: no memory. */
bool dispatch_memory_grow(dispatch_memory *m, void **items, size_t *room, size_t count, size_t size);
void dispatch_memory_free(dispatch_memory *m);

#endif
