/* Block masks of an attention: its scores are cut into squares of `block` queries by `block` keys, and a pattern says
 * which of them are computed at all. What a pattern means is told here alone: costs, references and candidates ask.
 * Header-only, shared by candidates of all devices and by plugins.
 *
 * Written as "PATTERN,DENSITY[,BLOCK[,SEED]]". Density is the share of the blocks that are seen, of those that a causal
 * mask and a window leave. A pattern grows by steps, of which none takes a block away, so one pass that counts blocks
 * finds the step whose density is nearest. Blocks on the diagonal are always seen: every query has a key. */
#ifndef SCOUT_OP_BLOCK_MASK_H
#define SCOUT_OP_BLOCK_MASK_H

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_MASK_SIDE = 2048,   /* most blocks of queries, and of keys */
    BLOCK_MASK_TEXT = 64,     /* room for its text */
    BLOCK_MASK_DEFAULT = 64,  /* the side of a block where it is not said */
    BLOCK_MASK_SHARES = 1024, /* steps of a random one */
    BLOCK_MASK_STRIDES = 11   /* steps of a strided one: from every 1024th block to every one */
};

typedef struct block_mask {
    int64_t block; /* 0: there is none, and every block is seen */
    int pattern;
    uint32_t seed;
    double density; /* as it was asked for */
    /* Where it is laid over scores: */
    int64_t queries, keys, past, window; /* window 0: none; that and past count where it is causal */
    int causal;
    int64_t rows, cols;     /* blocks of queries, and of keys */
    int steps;              /* that the pattern has grown */
    int64_t possible, seen; /* blocks that causal mask and window leave, and those that are seen of them */
} block_mask;

/* --- patterns --- */

/* A block as patterns see it: `far` blocks away from the diagonal, which may pass through two blocks of a row. */
typedef struct block_mask_cell {
    int64_t row, col, far;
    int first; /* it has the first keys, or its queries are at them */
    uint32_t seed;
} block_mask_cell;

/* At which step of its pattern a block comes to be seen, below BLOCK_MASK_SIDE; 0: always. */
static inline int block_mask_local(const block_mask_cell *c) { return (int)c->far; }

static inline int block_mask_global(const block_mask_cell *c) { return c->first ? 0 : (int)c->far; }

static inline int block_mask_strided(const block_mask_cell *c) {
    int step = BLOCK_MASK_STRIDES;
    for (int64_t far = c->far; far % 2 == 0 && step > 1; far /= 2) step--;
    return step;
}

/* Two rounds of splitmix64: neighbours have nothing in common. */
static inline int block_mask_random(const block_mask_cell *c) {
    uint64_t x = ((uint64_t)c->row << 32 | (uint64_t)c->col) + (uint64_t)c->seed * 0x9e3779b97f4a7c15u;
    for (int k = 0; k < 2; k++) {
        x += 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return 1 + (int)(x % BLOCK_MASK_SHARES);
}

typedef struct block_mask_row {
    const char *name;
    int (*step)(const block_mask_cell *c);
    int seeded;
} block_mask_row;

/* The k-th pattern; NULL: there are no more. */
static inline const block_mask_row *block_mask_pattern(int k) {
    static const block_mask_row rows[] = {
        {"local", block_mask_local, 0},     /* a band along the diagonal */
        {"strided", block_mask_strided, 0}, /* every second, fourth, … block from the diagonal on */
        {"global", block_mask_global,
         0}, /* a band; the first keys, which all see; and the first queries, which see all */
        {"random", block_mask_random, 1},
    };
    return k >= 0 && k < (int)(sizeof rows / sizeof *rows) ? &rows[k] : NULL;
}

/* --- its text --- */

static inline int block_mask_refuse(char *why, size_t room, const char *text) {
    snprintf(why, room, "%s", text);
    return 0;
}

/* A whole number up to the next comma. */
static inline int block_mask_whole(const char **at, uint64_t most, uint64_t *out) {
    const size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 10) return 0;
    *out = strtoull(*at, NULL, 10);
    *at += digits;
    return *out <= most && (**at == 0 || **at == ',');
}

/* 0: it is none, and `why` (128 characters are enough) says what is wrong. */
static inline int block_mask_read(const char *text, block_mask *out, char *why, size_t room) {
    const size_t name = strcspn(text, ",");
    const char *at = text + name;
    const block_mask_row *row;
    uint64_t block = BLOCK_MASK_DEFAULT, seed = 0;
    char *end = NULL;
    int pattern = 0;
    memset(out, 0, sizeof *out);
    if (strlen(text) >= BLOCK_MASK_TEXT) return block_mask_refuse(why, room, "it is too long");
    while ((row = block_mask_pattern(pattern)) && (strlen(row->name) != name || strncmp(row->name, text, name) != 0))
        pattern++;
    if (!row) return block_mask_refuse(why, room, "its pattern is none of local, strided, global and random");
    const double density = *at == ',' ? strtod(at + 1, &end) : 0;
    if (!end || end == at + 1 || (*end && *end != ',') || !(density > 0 && density <= 1))
        return block_mask_refuse(why, room, "its density must be a number above 0, and 1 at most");
    at = end;
    if (*at == ',' && (++at, !block_mask_whole(&at, 128, &block) || (block != 64 && block != 128)))
        return block_mask_refuse(why, room, "its block must be 64 or 128");
    if (*at == ',' && !row->seeded) return block_mask_refuse(why, room, "only the pattern random has a seed");
    if (*at == ',' && (++at, !block_mask_whole(&at, UINT32_MAX, &seed)))
        return block_mask_refuse(why, room, "its seed must be a whole number below 2^32");
    if (*at) return block_mask_refuse(why, room, "more follows after its seed");
    out->block = (int64_t)block, out->seed = (uint32_t)seed, out->pattern = pattern, out->density = density;
    return 1;
}

/* The one text that says the same. */
static inline void block_mask_write(const block_mask *m, char text[BLOCK_MASK_TEXT]) {
    const block_mask_row *row = block_mask_pattern(m->pattern);
    const int n = snprintf(text, BLOCK_MASK_TEXT, "%s,%.6g,%" PRId64, row->name, m->density, m->block);
    if (row->seeded) snprintf(text + n, (size_t)(BLOCK_MASK_TEXT - n), ",%" PRIu32, m->seed);
}

/* Whether it has no more blocks than there may be. */
static inline int block_mask_fits(const block_mask *m, int64_t queries, int64_t keys) {
    const int64_t most = BLOCK_MASK_SIDE * m->block;
    return queries >= 1 && queries <= most && keys >= 1 && keys <= most;
}

/* --- laid over scores --- */

static inline int64_t block_mask_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t block_mask_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The queries of a row of blocks: [*from, *to). */
static inline void block_mask_queries(const block_mask *m, int64_t row, int64_t *from, int64_t *to) {
    *from = row * m->block, *to = block_mask_least(*from + m->block, m->queries);
}

/* The block of keys in which a query stands. */
static inline int64_t block_mask_home(const block_mask *m, int64_t query) {
    return block_mask_most(0, block_mask_least(m->past + query, m->keys - 1)) / m->block;
}

/* The keys [*first, *end) that causal mask and window leave to a query. */
static inline void block_mask_visible(const block_mask *m, int64_t query, int64_t *first, int64_t *end) {
    const int64_t behind = m->past + query + 1;
    *first = 0, *end = m->keys;
    if (!m->causal) return;
    *end = block_mask_most(0, block_mask_least(behind, m->keys));
    if (m->window > 0) *first = block_mask_most(0, block_mask_least(behind - m->window, m->keys));
}

/* What of a row of blocks does not depend on the column. */
typedef struct block_mask_band {
    int64_t row, low, high; /* the blocks in which its queries stand */
    int64_t first, end;     /* the keys that any of its queries can see */
} block_mask_band;

static inline block_mask_band block_mask_band_of(const block_mask *m, int64_t row) {
    int64_t from, to, ignored;
    block_mask_band b;
    block_mask_queries(m, row, &from, &to);
    b.row = row;
    b.low = block_mask_home(m, from), b.high = block_mask_home(m, to - 1);
    block_mask_visible(m, from, &b.first, &ignored);
    block_mask_visible(m, to - 1, &ignored, &b.end);
    return b;
}

/* The step at which a block is seen, 0: always; -1: causal mask or window hide all of it. */
static inline int block_mask_step(const block_mask *m, const block_mask_band *b, int64_t col) {
    block_mask_cell c;
    c.row = b->row, c.col = col, c.seed = m->seed;
    c.far = col < b->low ? b->low - col : col > b->high ? col - b->high : 0;
    c.first = col == 0 || b->low == 0;
    if (c.far == 0) return 0;
    if (col * m->block >= b->end || (col + 1) * m->block <= b->first) return -1;
    return block_mask_pattern(m->pattern)->step(&c);
}

static inline int block_mask_has(const block_mask *m, const block_mask_band *b, int64_t col) {
    const int step = block_mask_step(m, b, col);
    return step >= 0 && step <= m->steps;
}

/* The step whose number of blocks is nearest to what is asked for; of two the one with fewer. */
static inline void block_mask_choose(block_mask *m) {
    int64_t counts[BLOCK_MASK_SIDE], seen = 0;
    memset(counts, 0, sizeof counts);
    m->possible = 0;
    for (int64_t row = 0; row < m->rows; row++) {
        const block_mask_band b = block_mask_band_of(m, row);
        for (int64_t col = 0; col < m->cols; col++) {
            const int step = block_mask_step(m, &b, col);
            if (step >= 0) counts[step]++, m->possible++;
        }
    }
    const double asked = m->density * (double)m->possible;
    for (int step = 0; step < BLOCK_MASK_SIDE; step++) {
        seen += counts[step];
        if (step > 0 && !(fabs((double)seen - asked) < fabs((double)m->seen - asked))) continue;
        m->steps = step, m->seen = seen;
    }
}

/* Reads `text` and lays it over queries by keys; NULL, a text that cannot be read, or more blocks than there may be:
 * there is none. Query i stands at key past + i, and where it is causal sees none behind it; of these at most the last
 * `most` (0: all). Takes up to 20 ms where there are most blocks, so plans have it done once. */
static inline block_mask block_mask_over(const char *text, int64_t queries, int64_t keys, int64_t past, int64_t most,
                                         int causal) {
    static const int64_t far = (int64_t)1 << 41; /* beyond all that has so few blocks */
    block_mask m, none;
    char why[128];
    memset(&none, 0, sizeof none);
    if (!text || !block_mask_read(text, &m, why, sizeof why) || !block_mask_fits(&m, queries, keys)) return none;
    m.queries = queries, m.keys = keys, m.causal = causal;
    m.past = block_mask_most(-far, block_mask_least(past, far)), m.window = block_mask_least(most, far);
    m.rows = (queries + m.block - 1) / m.block, m.cols = (keys + m.block - 1) / m.block;
    block_mask_choose(&m);
    return m;
}

/* --- asked --- */

/* Whether any score of that block is computed; a causal mask still hides keys of a block that is seen. */
static inline int block_mask_sees(const block_mask *m, int64_t row, int64_t col) {
    if (m->block == 0) return 1;
    const block_mask_band b = block_mask_band_of(m, row);
    return block_mask_has(m, &b, col);
}

/* Of one block that is seen. */
static inline int64_t block_mask_pairs_of(const block_mask *m, int64_t row, int64_t col) {
    const int64_t key = col * m->block, stop = block_mask_least(key + m->block, m->keys);
    int64_t from, to, first, latest, end, pairs = 0;
    block_mask_queries(m, row, &from, &to);
    block_mask_visible(m, to - 1, &latest, &end);
    block_mask_visible(m, from, &first, &end);
    if (key >= latest && stop <= end) return (to - from) * (stop - key); /* every query sees all of it */
    for (int64_t query = from; query < to; query++) {
        block_mask_visible(m, query, &first, &end);
        pairs += block_mask_most(0, block_mask_least(end, stop) - block_mask_most(first, key));
    }
    return pairs;
}

/* Pairs of a query and a key that it sees. */
static inline int64_t block_mask_pairs(const block_mask *m) {
    int64_t pairs = 0;
    for (int64_t row = 0; row < m->rows; row++) {
        const block_mask_band b = block_mask_band_of(m, row);
        for (int64_t col = 0; col < m->cols; col++)
            if (block_mask_has(m, &b, col)) pairs += block_mask_pairs_of(m, row, col);
    }
    return pairs;
}

/* Keys of all blocks that any query sees. */
static inline int64_t block_mask_keys(const block_mask *m) {
    char any[BLOCK_MASK_SIDE];
    int64_t keys = 0;
    memset(any, 0, sizeof any);
    for (int64_t row = 0; row < m->rows; row++) {
        const block_mask_band b = block_mask_band_of(m, row);
        for (int64_t col = 0; col < m->cols; col++)
            if (!any[col]) any[col] = (char)block_mask_has(m, &b, col);
    }
    for (int64_t col = 0; col < m->cols; col++)
        if (any[col]) keys += block_mask_least(m->block, m->keys - col * m->block);
    return keys;
}

/* Seen blocks over possible ones. */
static inline double block_mask_density(const block_mask *m) {
    return m->possible > 0 ? (double)m->seen / (double)m->possible : 1;
}

#endif
