/* What a dispatch table holds, and how it is searched: the same for tables that libscout_dispatch reads and for those
 * that stand in a dispatch.h. Nothing here allocates or writes; all is found in tens of nanoseconds. */
#ifndef SCOUT_DISPATCH_INDEX_H
#define SCOUT_DISPATCH_INDEX_H

#include "dispatch/scout_dispatch_key.h"

typedef enum scout_dispatch_choice {
    SCOUT_DISPATCH_DEFAULT = 0, /* the library's own default: nothing else was proven to be faster */
    SCOUT_DISPATCH_TUNED,       /* a library's algorithm other than its default */
    SCOUT_DISPATCH_CUSTOM       /* a kernel that is no library's */
} scout_dispatch_choice;

/* What was measured of one operation. Texts are never NULL unless it is said. */
typedef struct scout_dispatch_entry {
    const char *key;       /* canonical text */
    const char *operation; /* the report's id */
    scout_dispatch_choice choice;
    const char *implementation, *variant; /* "cublaslt", "algo=1,weight=transposed" */
    const char *library, *version;        /* whose algorithm it is, exactly; NULL: no library's */
    const unsigned char *algo;            /* cuBLASLt's algorithm, to be given to cublasLtMatmulAlgoCheck; NULL: none */
    uint32_t algo_bytes;
    const char *config;  /* everything that it needs to be run again: a JSON object on one line */
    const char *packing; /* how the weight is rearranged once, before the first launch; NULL: it is not */
    double pack_us;
    int64_t pack_bytes, workspace_bytes;
    double expected_us, expected_ci; /* median, and the relative half width of its interval */
    double default_us, default_ci;
    double ratio, ratio_ci;    /* of expected over default, from neighbouring blocks; 1 and 0 where it is the default */
    int64_t batches, launches; /* that the expected time comes from */
} scout_dispatch_entry;

/* Between two measured entries that differ in one size alone and were decided alike, each by its own proof. `mask`: the
 * places in the key's numbers where that size stands. Numbers between are multiples of `step`. */
typedef struct scout_dispatch_range {
    uint32_t form, mask, lower, upper; /* `lower`, `upper`: entries */
    int64_t from, to, step;
} scout_dispatch_range;

typedef struct scout_dispatch_form {
    const char *text;
    uint32_t length, count; /* of the text; of its numbers */
} scout_dispatch_form;

typedef struct scout_dispatch_slot {
    uint32_t tag, entry, form, first; /* entry: from 1, 0: free; first: of its numbers */
} scout_dispatch_slot;

/* Forms are sorted by text, ranges by scout_dispatch_range_order. */
typedef struct scout_dispatch_index {
    const scout_dispatch_slot *slots;
    uint32_t slot_mask; /* slots are a power of two; at least one is free */
    const scout_dispatch_form *forms;
    uint32_t form_count;
    const int64_t *numbers;
    const uint32_t *firsts; /* per entry: of its numbers */
    const scout_dispatch_entry *entries;
    uint32_t entry_count;
    const scout_dispatch_range *ranges;
    uint32_t range_count;
} scout_dispatch_index;

static inline uint32_t scout_dispatch_tag(uint64_t hash) { return SCOUT_DISPATCH_AS(uint32_t, hash >> 32); }

static inline const scout_dispatch_entry *scout_dispatch_index_find(const scout_dispatch_index *index,
                                                                    const scout_dispatch_key *key) {
    const uint64_t hash = scout_dispatch_key_hash(key);
    const uint32_t tag = scout_dispatch_tag(hash);
    for (uint32_t at = SCOUT_DISPATCH_AS(uint32_t, hash) & index->slot_mask;; at = (at + 1) & index->slot_mask) {
        const scout_dispatch_slot *slot = &index->slots[at];
        if (slot->entry == 0) return SCOUT_DISPATCH_NULL;
        if (slot->tag != tag) continue;
        const scout_dispatch_form *form = &index->forms[slot->form];
        if (form->length == key->form_length && form->count == key->count &&
            memcmp(index->numbers + slot->first, key->numbers, key->count * sizeof key->numbers[0]) == 0 &&
            memcmp(form->text, key->form, form->length) == 0)
            return &index->entries[slot->entry - 1];
    }
}

/* ---- between two that were measured ---- */

static inline int scout_dispatch_text_order(const char *a, size_t a_length, const char *b, size_t b_length) {
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    if (order != 0) return order;
    return a_length < b_length ? -1 : a_length > b_length;
}

/* Where the numbers of a key stand in the order of ranges: all but those under the mask, then the size itself. */
static inline int scout_dispatch_numbers_order(const int64_t *a, const int64_t *b, uint32_t count, uint32_t mask) {
    for (uint32_t k = 0; k < count; k++)
        if (!(mask >> k & 1) && a[k] != b[k]) return a[k] < b[k] ? -1 : 1;
    return 0;
}

/* By form, mask, the numbers that stay, and the size: ranges of one form that may hold one key lie side by side. */
static inline int scout_dispatch_range_order(const scout_dispatch_index *index, const scout_dispatch_range *a,
                                             const scout_dispatch_range *b) {
    if (a->form != b->form) return a->form < b->form ? -1 : 1;
    if (a->mask != b->mask) return a->mask < b->mask ? -1 : 1;
    const int order =
        scout_dispatch_numbers_order(index->numbers + index->firsts[a->lower], index->numbers + index->firsts[b->lower],
                                     index->forms[a->form].count, a->mask);
    if (order != 0) return order;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* The form of a key; form_count: no entry has it. */
static inline uint32_t scout_dispatch_index_form(const scout_dispatch_index *index, const scout_dispatch_key *key) {
    uint32_t low = 0, high = index->form_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const scout_dispatch_form *form = &index->forms[middle];
        const int order = scout_dispatch_text_order(form->text, form->length, key->form, key->form_length);
        if (order == 0) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return index->form_count;
}

/* The one number under the mask; 0 (which no range holds) where there are several. */
static inline int64_t scout_dispatch_key_size(const scout_dispatch_key *key, uint32_t mask) {
    int64_t size = 0;
    for (uint32_t k = 0; k < key->count; k++) {
        if (!(mask >> k & 1)) continue;
        if (size != 0 && key->numbers[k] != size) return 0;
        size = key->numbers[k];
    }
    return size;
}

/* How a range lies to the place of a key with this form, mask and size: 1 behind it, else at or before it. */
static inline int scout_dispatch_range_after(const scout_dispatch_index *index, const scout_dispatch_range *range,
                                             const scout_dispatch_key *key, uint32_t form, uint32_t mask,
                                             int64_t size) {
    if (range->form != form) return range->form > form;
    if (range->mask != mask) return range->mask > mask;
    const int order =
        scout_dispatch_numbers_order(index->numbers + index->firsts[range->lower], key->numbers, key->count, mask);
    return order != 0 ? order > 0 : range->from > size;
}

/* How many ranges lie at or before that place: the last one of these is the only one that may hold it. */
static inline uint32_t scout_dispatch_index_before(const scout_dispatch_index *index, const scout_dispatch_key *key,
                                                   uint32_t form, uint32_t mask, int64_t size) {
    uint32_t low = 0, high = index->range_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (scout_dispatch_range_after(index, &index->ranges[middle], key, form, mask, size))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The proven range that a key lies in, though it was not measured itself; NULL: none. What the two ends have in common
 * is what it is to be run with; their times say between what it is expected. */
static inline const scout_dispatch_range *scout_dispatch_index_near(const scout_dispatch_index *index,
                                                                    const scout_dispatch_key *key) {
    const uint32_t form = scout_dispatch_index_form(index, key);
    uint32_t seen = 0;
    if (form == index->form_count || index->forms[form].count != key->count) return SCOUT_DISPATCH_NULL;
    /* Masks of this form in turn, in the order in which its ranges lie. */
    for (;;) {
        uint32_t low = 0, high = index->range_count;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            const scout_dispatch_range *range = &index->ranges[middle];
            if (range->form < form || (range->form == form && range->mask <= seen))
                low = middle + 1;
            else
                high = middle;
        }
        if (low == index->range_count || index->ranges[low].form != form) return SCOUT_DISPATCH_NULL;
        seen = index->ranges[low].mask;
        const int64_t size = scout_dispatch_key_size(key, seen);
        const uint32_t before = scout_dispatch_index_before(index, key, form, seen, size);
        if (before == 0) continue;
        const scout_dispatch_range *range = &index->ranges[before - 1];
        if (range->form == form && range->mask == seen && size > range->from && size < range->to &&
            size % range->step == 0 &&
            scout_dispatch_numbers_order(index->numbers + index->firsts[range->lower], key->numbers, key->count,
                                         seen) == 0)
            return range;
    }
}

#endif
