/* The largest first, each into the smallest gap that it fits between those that are needed at the same time. */
#include "scout/plan/place.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t most_bytes = (uint64_t)1 << 62;

uint64_t place_aligned(uint64_t bytes) { return (bytes + PLACE_ALIGNMENT - 1) / PLACE_ALIGNMENT * PLACE_ALIGNMENT; }

static int by_bytes(const void *a, const void *b) {
    const place_item *x = *(place_item *const *)a, *y = *(place_item *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return (x > y) - (x < y);
}

/* placed: by their offsets. */
static uint64_t find_gap(place_item *const *placed, int count, const place_item *item, uint64_t bytes) {
    uint64_t end = 0, best = UINT64_MAX, smallest = UINT64_MAX;
    for (int k = 0; k < count; k++) {
        const place_item *other = placed[k];
        if (other->to < item->from || item->to < other->from) continue;
        if (other->offset >= end && other->offset - end >= bytes && other->offset - end < smallest) {
            best = end;
            smallest = other->offset - end;
        }
        const uint64_t its_end = other->offset + place_aligned(other->bytes);
        if (its_end > end) end = its_end;
    }
    return best < UINT64_MAX ? best : end;
}

uint64_t place_items(place_item *items, int count, arena *a) {
    const arena_mark mark = arena_save(a);
    place_item **order = arena_array(a, place_item *, count), **placed = arena_array(a, place_item *, count);
    uint64_t all = 0;
    for (int k = 0; k < count; k++) order[k] = &items[k];
    if (count > 0) qsort(order, (size_t)count, sizeof *order, by_bytes);
    for (int k = 0; k < count && all < UINT64_MAX; k++) {
        place_item *item = order[k];
        if (item->bytes > most_bytes) {
            all = UINT64_MAX;
            break;
        }
        const uint64_t bytes = place_aligned(item->bytes);
        item->offset = find_gap(placed, k, item, bytes);
        int at = k;
        while (at > 0 && placed[at - 1]->offset > item->offset) at--;
        memmove(&placed[at + 1], &placed[at], (size_t)(k - at) * sizeof *placed);
        placed[at] = item;
        if (item->offset + bytes > all) all = item->offset + bytes;
        if (all > most_bytes) all = UINT64_MAX;
    }
    arena_rewind(a, mark);
    return all;
}
