/* Where the activations of a run lie in one piece of memory: what is not needed at the same time may lie at the same
 * place. Pure numbers; the least that any placement needs is the peak of common/liveness.h. */
#pragma once

#include "common/arena.h"

#include <stdint.h>

enum { PLACE_ALIGNMENT = 512 };

typedef struct place_item {
    uint64_t bytes;
    int from, to;    /* occurrences between which it is needed, both included; from <= to */
    uint64_t offset; /* out: a multiple of PLACE_ALIGNMENT */
} place_item;

/* The bytes of all of it; UINT64_MAX: more than any memory has. The time grows with the square of their number:
 * seconds for 50,000. Scratch memory is the arena's. */
uint64_t place_items(place_item *items, int count, arena *a);
uint64_t place_aligned(uint64_t bytes); /* rounded up; bytes stay below 2^63 */
