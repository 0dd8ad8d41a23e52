/* Owns how entries become an index: forms that they share, their numbers, the hash table, and the ranges between them,
 * each of which must be what its two entries say. */
#include "dispatch/dispatch_table.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PROBES = 256,     /* a table that needs more was made to collide */
    LARGEST_STEP = 16 /* alignment that kernels tell apart */
};

typedef struct builder {
    dispatch_table *table;
    size_t count;
    uint64_t *hashes;
    scout_dispatch_form *forms;
    uint32_t *entry_forms, *firsts;
    int64_t *numbers;
    char *why;
    size_t room;
} builder;

static bool fail(builder *b, const char *what, const char *key) {
    snprintf(b->why, b->room, "%s: %.200s", what, key);
    for (char *s = b->why; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f) *s = '?';
    return false;
}

static bool no_memory(builder *b) { return fail(b, "no memory is left", "for the index of a table"); }

static int form_order(const scout_dispatch_form *a, const scout_dispatch_form *b) {
    return scout_dispatch_text_order(a->text, a->length, b->text, b->length);
}
static int by_text(const void *a, const void *b) { return form_order(a, b); }

/* Every key taken apart. Forms are made one per entry, and shared afterwards. */
static bool parse_keys(builder *b, const scout_dispatch_entry *entries) {
    dispatch_memory *m = &b->table->memory;
    scout_dispatch_key key;
    uint32_t used = 0;
    size_t total = 0;
    for (size_t k = 0; k < b->count; k++) {
        if (!scout_dispatch_key_parse(&key, entries[k].key, strlen(entries[k].key)))
            return fail(b, "no canonical key, or one of more than 1023 bytes", entries[k].key);
        total += key.count;
    }
    b->numbers = dispatch_memory_take(m, (total + 1) * sizeof *b->numbers);
    if (!b->numbers) return no_memory(b);
    for (size_t k = 0; k < b->count; k++) {
        scout_dispatch_key_parse(&key, entries[k].key, strlen(entries[k].key));
        char *text = dispatch_memory_take(m, (size_t)key.form_length + 1);
        if (!text) return no_memory(b);
        memcpy(text, key.form, key.form_length);
        b->forms[k] = (scout_dispatch_form){text, key.form_length, key.count};
        b->hashes[k] = scout_dispatch_key_hash(&key);
        b->firsts[k] = used;
        memcpy(b->numbers + used, key.numbers, key.count * sizeof key.numbers[0]);
        used += key.count;
    }
    return true;
}

/* Sorted and each once; entries learn which is theirs. */
static bool share_forms(builder *b, uint32_t *form_count) {
    dispatch_memory *m = &b->table->memory;
    scout_dispatch_form *sorted = dispatch_memory_take(m, (b->count + 1) * sizeof *sorted);
    uint32_t unique = 0;
    if (!sorted) return no_memory(b);
    memcpy(sorted, b->forms, b->count * sizeof *sorted);
    qsort(sorted, b->count, sizeof *sorted, by_text);
    for (size_t k = 0; k < b->count; k++)
        if (unique == 0 || form_order(&sorted[k], &sorted[unique - 1]) != 0) sorted[unique++] = sorted[k];
    for (size_t k = 0; k < b->count; k++) {
        const scout_dispatch_form *found = bsearch(&b->forms[k], sorted, unique, sizeof *sorted, by_text);
        b->entry_forms[k] = (uint32_t)(found - sorted);
    }
    b->forms = sorted;
    *form_count = unique;
    return true;
}

static bool same_key(const builder *b, size_t a, size_t c) {
    return b->entry_forms[a] == b->entry_forms[c] &&
           memcmp(b->numbers + b->firsts[a], b->numbers + b->firsts[c],
                  b->forms[b->entry_forms[a]].count * sizeof *b->numbers) == 0;
}

static bool fill_slots(builder *b, const scout_dispatch_entry *entries) {
    size_t room = 8;
    while (3 * room < 4 * (b->count + 1)) room *= 2;
    scout_dispatch_slot *slots = dispatch_memory_take(&b->table->memory, room * sizeof *slots);
    if (!slots) return no_memory(b);
    const uint32_t mask = (uint32_t)(room - 1);
    for (size_t k = 0; k < b->count; k++) {
        uint32_t at = (uint32_t)b->hashes[k] & mask;
        for (int probes = 0; slots[at].entry; at = (at + 1) & mask) {
            if (same_key(b, slots[at].entry - 1, k)) return fail(b, "a key is given twice", entries[k].key);
            if (++probes == PROBES) return fail(b, "too many keys collide", entries[k].key);
        }
        slots[at] =
            (scout_dispatch_slot){scout_dispatch_tag(b->hashes[k]), (uint32_t)k + 1, b->entry_forms[k], b->firsts[k]};
    }
    b->table->index.slots = slots;
    b->table->index.slot_mask = mask;
    return true;
}

/* ---- ranges ---- */

static bool same_text(const char *a, const char *c) { return a == c || (a && c && strcmp(a, c) == 0); }

/* An algorithm is told by its bytes (its variant is its rank, which goes by the shape), all else by its variant and
 * configuration. What is the default anyway needs no range. */
static bool decided_alike(const scout_dispatch_entry *a, const scout_dispatch_entry *c) {
    if (a->choice == SCOUT_DISPATCH_DEFAULT || a->choice != c->choice || !same_text(a->packing, c->packing) ||
        !same_text(a->implementation, c->implementation) || a->algo_bytes != c->algo_bytes)
        return false;
    if (a->algo) return memcmp(a->algo, c->algo, a->algo_bytes) == 0;
    return same_text(a->variant, c->variant) && same_text(a->config, c->config);
}

/* The sizes that a range may hold: at most twice the smaller one, and aligned as both ends are. */
static bool is_proven_size(const dispatch_between *r) {
    int64_t step = 1;
    while (step < LARGEST_STEP && r->from % (2 * step) == 0 && r->to % (2 * step) == 0) step *= 2;
    return r->to - r->from <= r->from && r->step == step;
}

/* The two ends differ in one size alone, at all places where the mask says so, and were decided alike. */
static bool ends_agree(const scout_dispatch_index *x, const dispatch_between *r, uint32_t upper) {
    const scout_dispatch_entry *a = &x->entries[r->lower], *c = &x->entries[upper];
    scout_dispatch_key low, high;
    scout_dispatch_key_parse(&low, a->key, strlen(a->key));
    scout_dispatch_key_parse(&high, c->key, strlen(c->key));
    if (low.form_length != high.form_length || memcmp(low.form, high.form, low.form_length) != 0) return false;
    if (low.count < SCOUT_DISPATCH_NUMBERS && r->mask >> low.count) return false;
    return scout_dispatch_numbers_order(low.numbers, high.numbers, low.count, r->mask) == 0 &&
           scout_dispatch_key_size(&low, r->mask) == r->from && scout_dispatch_key_size(&high, r->mask) == r->to &&
           is_proven_size(r) && decided_alike(a, c);
}

/* A heap, because qsort cannot be told which index the order is of. */
static void sort_ranges(const scout_dispatch_index *x, scout_dispatch_range *ranges, size_t count) {
    for (size_t start = count / 2, end = count; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            const scout_dispatch_range last = ranges[--end];
            ranges[end] = ranges[0];
            ranges[0] = last;
        }
        for (size_t parent = start; 2 * parent + 1 < end;) {
            size_t child = 2 * parent + 1;
            if (child + 1 < end && scout_dispatch_range_order(x, &ranges[child], &ranges[child + 1]) < 0) child++;
            if (scout_dispatch_range_order(x, &ranges[parent], &ranges[child]) >= 0) break;
            const scout_dispatch_range moved = ranges[parent];
            ranges[parent] = ranges[child];
            ranges[child] = moved;
            parent = child;
        }
    }
}

/* Neighbours of one line touch at most: what is asked for lies in one of them. */
static bool overlap(const scout_dispatch_index *x, const scout_dispatch_range *a, const scout_dispatch_range *c) {
    return a->form == c->form && a->mask == c->mask && c->from < a->to &&
           scout_dispatch_numbers_order(x->numbers + x->firsts[a->lower], x->numbers + x->firsts[c->lower],
                                        x->forms[a->form].count, a->mask) == 0;
}

static bool fill_ranges(builder *b, const dispatch_between *between, size_t count) {
    scout_dispatch_index *x = &b->table->index;
    scout_dispatch_range *ranges = dispatch_memory_take(&b->table->memory, (count + 1) * sizeof *ranges);
    if (!ranges) return no_memory(b);
    for (size_t k = 0; k < count; k++) {
        const dispatch_between *r = &between[k];
        scout_dispatch_key key;
        const scout_dispatch_entry *upper = NULL;
        if (!x->entries || r->lower >= b->count) return fail(b, "a range belongs to no entry", r->upper);
        if (scout_dispatch_key_parse(&key, r->upper, strlen(r->upper))) upper = scout_dispatch_index_find(x, &key);
        if (!upper || !ends_agree(x, r, (uint32_t)(upper - x->entries)))
            return fail(b, "a range differs from its two entries", x->entries[r->lower].key);
        ranges[k] = (scout_dispatch_range){.form = b->entry_forms[r->lower],
                                           .mask = r->mask,
                                           .lower = r->lower,
                                           .upper = (uint32_t)(upper - x->entries),
                                           .from = r->from,
                                           .to = r->to,
                                           .step = r->step};
    }
    sort_ranges(x, ranges, count);
    for (size_t k = 1; k < count; k++)
        if (overlap(x, &ranges[k - 1], &ranges[k]))
            return fail(b, "two ranges overlap", x->entries[ranges[k].lower].key);
    x->ranges = ranges;
    x->range_count = (uint32_t)count;
    return true;
}

bool dispatch_build(dispatch_table *t, scout_dispatch_entry *entries, size_t count, const dispatch_between *ranges,
                    size_t range_count, char *why, size_t room) {
    dispatch_memory *m = &t->memory;
    builder b = {.table = t, .count = count, .why = why, .room = room};
    b.hashes = dispatch_memory_take(m, (count + 1) * sizeof *b.hashes);
    b.forms = dispatch_memory_take(m, (count + 1) * sizeof *b.forms);
    b.entry_forms = dispatch_memory_take(m, (count + 1) * sizeof *b.entry_forms);
    b.firsts = dispatch_memory_take(m, (count + 1) * sizeof *b.firsts);
    if (!b.hashes || !b.forms || !b.entry_forms || !b.firsts) return no_memory(&b);
    if (!parse_keys(&b, entries) || !share_forms(&b, &t->index.form_count) || !fill_slots(&b, entries)) return false;
    t->index.forms = b.forms;
    t->index.numbers = b.numbers;
    t->index.firsts = b.firsts;
    t->index.entries = entries;
    t->index.entry_count = (uint32_t)count;
    return fill_ranges(&b, ranges, range_count);
}
