/* A set of texts, each with a small count: the names of a model. Slots hold no more than a pointer and a count, because
 * a model has as many names as tensors and nodes together, and the table is thrown away once the graphs are built. */
#ifndef EXTRACT_READ_BUILD_STRINGS_H
#define EXTRACT_READ_BUILD_STRINGS_H

#include "common/arena.h"

#include <stdbool.h>

typedef struct build_string {
    const char *text; /* NULL: free */
    uint32_t hash;    /* its upper half */
    uint32_t count;   /* the user's */
} build_string;

typedef struct build_strings {
    arena *tables; /* of the slots */
    build_string *slots;
    size_t capacity, count; /* capacity is 0 or a power of two */
    uint64_t seed;          /* random, so that a hostile model cannot choose names that collide */
} build_strings;

void build_strings_init(build_strings *s, arena *tables);
/* The slot of a text, valid until the next call; `added` says whether it is new: its text is `text` itself then, where
 * `copies` is NULL, or a copy in that arena. */
build_string *build_strings_put(build_strings *s, const char *text, size_t length, arena *copies, bool *added);

#endif
