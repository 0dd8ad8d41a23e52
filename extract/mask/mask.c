/* Decides the kind of a mask from its values at sampled pairs of query and key: a grid over both, the neighbours of the
 * diagonal (where a causal mask changes), and the first, middle and last of the dimensions before them. */

#include "extract/mask/mask_eval.h"

#include <math.h>
#include <string.h>

enum {
    MASK_STEPS_RUN = 1 << 23,  /* for all masks of a model together */
    MASK_STEPS_MASK = 1 << 19, /* for one */
    MASK_GRID = 12,            /* positions per axis */
    MASK_KEYS = MASK_GRID + 3  /* with the neighbours of the diagonal */
};

/* What is added to hide a pair: the exporters' smallest is -10000; -100 and the like are biases. */
static const double mask_hidden = -1000;

typedef enum pair_state { PAIR_VISIBLE, PAIR_HIDDEN, PAIR_OTHER, PAIR_UNKNOWN } pair_state;

typedef struct mask_query {
    mask_eval eval;
    const mask_term *terms;
    int count;
    int64_t q_len, kv_len;
    bool depends;
} mask_query;

/* What the samples have in common. */
typedef struct mask_found {
    bool visible;        /* no pair is hidden */
    bool causal;         /* every pair after the query is hidden, and its own position visible */
    int64_t hidden_from; /* nearest hidden pair before the query, as a distance; INT64_MAX: none */
    int64_t visible_to;  /* farthest visible pair before the query */
} mask_found;

void mask_cache_init(mask_cache *cache) {
    memset(cache, 0, sizeof *cache);
    cache->steps_left = MASK_STEPS_RUN;
}

/* Position k of a dimension that a term may broadcast; -1 where it does not fit. */
static int64_t place(int64_t dim, int64_t position, int64_t length) {
    return dim == 1 ? 0 : dim == length ? position : -1;
}

/* lead 0, 1, 2: the first, middle and last of each dimension before the pair's. */
static pair_state term_at(mask_query *s, const mask_term *term, int lead, int64_t q, int64_t k) {
    int64_t pos[MASK_EVAL_MAX_RANK];
    int rank = mask_eval_rank(term->t);
    if (rank < 0) return PAIR_UNKNOWN;
    const int64_t *dims = term->t->info->dims;
    for (int i = 0; i + 2 < rank; i++) pos[i] = lead == 0 || dims[i] < 1 ? 0 : lead == 1 ? dims[i] / 2 : dims[i] - 1;
    int key_axis = term->turned ? rank - 2 : rank - 1, query_axis = term->turned ? rank - 1 : rank - 2;
    if (key_axis >= 0 && (pos[key_axis] = place(dims[key_axis], k, s->kv_len)) < 0) return PAIR_UNKNOWN;
    if (query_axis >= 0 && (pos[query_axis] = place(dims[query_axis], q, s->q_len)) < 0) return PAIR_UNKNOWN;
    mask_number x;
    if (!mask_eval_at(&s->eval, term->t, mask_eval_index(term->t, pos), 0, &x)) return PAIR_UNKNOWN;
    s->depends = s->depends || x.depends;
    if (term->form == MASK_KEEP) return x.x != 0 ? PAIR_VISIBLE : PAIR_HIDDEN;
    if (term->form == MASK_HIDE) return x.x != 0 ? PAIR_HIDDEN : PAIR_VISIBLE;
    if (term->form == MASK_MUL) return x.x == 1 ? PAIR_VISIBLE : PAIR_OTHER;
    double added = term->form == MASK_SUB ? -x.x : x.x;
    return added == 0 ? PAIR_VISIBLE : added <= mask_hidden ? PAIR_HIDDEN : PAIR_OTHER;
}

/* One term that hides a pair is enough, whatever the others add to it. */
static pair_state pair_at(mask_query *s, int lead, int64_t q, int64_t k) {
    pair_state all = PAIR_VISIBLE;
    for (int i = 0; i < s->count; i++) {
        pair_state one = term_at(s, &s->terms[i], lead, q, k);
        if (one == PAIR_UNKNOWN) return PAIR_UNKNOWN;
        if (one == PAIR_HIDDEN || (one == PAIR_OTHER && all == PAIR_VISIBLE)) all = one;
    }
    return all;
}

static int add_position(int64_t *grid, int count, int64_t x, int64_t length) {
    if (x < 0 || x >= length) return count;
    for (int i = 0; i < count; i++) {
        if (grid[i] == x) return count;
    }
    grid[count] = x;
    return count + 1;
}

static int make_grid(int64_t length, int64_t *grid) {
    static const int parts[] = {3, 5, 8, 11, 13};
    int count = 0;
    for (int64_t k = 0; k < 3; k++) count = add_position(grid, count, k, length);
    for (int k = 0; k < 5; k++)
        count = add_position(grid, count, length / 16 * parts[k] + length % 16 * parts[k] / 16, length);
    for (int64_t k = 3; k > 0; k--) count = add_position(grid, count, length - k, length);
    return count;
}

/* Takes one pair into what was found; false where it rules out every kind that has a name. */
static bool take_pair(mask_query *s, mask_found *f, int lead, int64_t q, int64_t k) {
    pair_state state = pair_at(s, lead, q, k);
    if (state == PAIR_UNKNOWN || state == PAIR_OTHER) return false;
    int64_t distance = q + s->kv_len - s->q_len - k;
    bool hidden = state == PAIR_HIDDEN;
    if (hidden) f->visible = false;
    if (hidden != (distance < 0) && distance <= 0) f->causal = false;
    if (distance > 0 && hidden && distance < f->hidden_from) f->hidden_from = distance;
    if (distance > 0 && !hidden && distance > f->visible_to) f->visible_to = distance;
    return f->visible || f->causal;
}

/* How many leads there are to try: one where nothing stands before the pair's dimensions. */
static int count_leads(const mask_query *s) {
    for (int i = 0; i < s->count; i++) {
        const info *x = s->terms[i].t->info;
        for (int k = 0; k + 2 < x->rank; k++) {
            if (x->dims[k] > 1) return 3;
        }
    }
    return 1;
}

static bool sample(mask_query *s, mask_found *f) {
    int64_t queries[MASK_GRID], keys[MASK_KEYS];
    int query_count = make_grid(s->q_len, queries);
    int leads = count_leads(s);
    *f = (mask_found){.visible = true, .causal = true, .hidden_from = INT64_MAX, .visible_to = 0};
    for (int lead = 0; lead < leads; lead++) {
        for (int i = 0; i < query_count; i++) {
            int key_count = make_grid(s->kv_len, keys);
            for (int64_t step = -1; step <= 1; step++) {
                key_count = add_position(keys, key_count, queries[i] + s->kv_len - s->q_len + step, s->kv_len);
            }
            for (int k = 0; k < key_count; k++) {
                if (!take_pair(s, f, lead, queries[i], keys[k])) return false;
            }
        }
    }
    return true;
}

/* How many keys the last query sees, itself included, when it sees fewer than all before it; 0 where that is not one
 * run. */
static int64_t find_window(mask_query *s, const mask_found *f) {
    int64_t near = f->visible_to, far = f->hidden_from, q = s->q_len - 1;
    if (near >= far) return 0;
    while (far - near > 1) {
        int64_t middle = near + (far - near) / 2;
        pair_state state = pair_at(s, 0, q, s->kv_len - 1 - middle);
        if (state == PAIR_VISIBLE)
            near = middle;
        else if (state == PAIR_HIDDEN)
            far = middle;
        else
            return 0;
    }
    return far;
}

/* With the model's inputs taken to hold the given numbers. */
static bool try_inputs(mask_query *s, double ints, double floats, mask_verdict *v) {
    mask_found f;
    s->eval.int_input = ints;
    s->eval.float_input = floats;
    s->depends = false;
    if (!sample(s, &f)) return false;
    v->window = 0;
    if (f.visible) {
        v->kind = s->depends ? "additive" : "none";
        return true;
    }
    if (!f.causal) return false;
    if (f.hidden_from != INT64_MAX && (v->window = find_window(s, &f)) == 0) return false;
    v->kind = s->depends ? "causal+padding" : "causal";
    return true;
}

static const mask_entry *cached(const mask_cache *cache, const mask_query *s) {
    for (int i = 0; i < cache->used; i++) {
        const mask_entry *e = &cache->entries[i];
        bool same = e->count == s->count && e->q_len == s->q_len && e->kv_len == s->kv_len;
        for (int k = 0; same && k < s->count; k++) {
            same = e->terms[k].t == s->terms[k].t && e->terms[k].form == s->terms[k].form &&
                   e->terms[k].turned == s->terms[k].turned;
        }
        if (same) return e;
    }
    return NULL;
}

/* With integer inputs taken to be `length`, the keys from length + offset on are hidden from every query that is itself
 * inside the sequence, and no other. */
static bool hides_from(mask_query *s, int64_t length, int64_t offset, int leads) {
    int64_t queries[MASK_GRID], keys[MASK_KEYS];
    int64_t end = length + offset;
    int query_count = make_grid(s->q_len, queries), key_count = make_grid(s->kv_len, keys);
    for (int64_t k = end - 1; k <= end + 1; k++) key_count = add_position(keys, key_count, k, s->kv_len);
    s->eval.int_input = (double)length;
    for (int i = 0; i < leads * query_count; i++) {
        int64_t q = queries[i % query_count];
        if (q >= end && s->q_len == s->kv_len) continue; /* padding does not matter */
        for (int k = 0; k < key_count; k++) {
            if (pair_at(s, i / query_count, q, keys[k]) != (keys[k] < end ? PAIR_VISIBLE : PAIR_HIDDEN)) return false;
        }
    }
    return true;
}

/* One number per sequence, an integer input, says how many of its keys count (or which is the last that does). */
static bool is_lengths(mask_query *s) {
    const tensor *given = s->eval.asked;
    int64_t sequences = 1;
    if (!given || s->kv_len < 3 || given->info->type == DTYPE_BOOL || !info_shaped(given->info) ||
        dtype_get(given->info->type)->cls != DTYPE_CLASS_INT)
        return false;
    for (int i = 0; i < s->count; i++) {
        const info *x = s->terms[i].t->info;
        if (x->rank > 2 && x->dims[0] > sequences) sequences = x->dims[0];
    }
    if (info_count(given->info) < 1 || info_count(given->info) > sequences) return false;
    const int64_t probes[] = {1, s->kv_len / 2, s->kv_len - 2, s->kv_len - 1};
    for (int64_t offset = 0; offset < 2; offset++) {
        bool all = true;
        for (int k = 0; all && k < 4; k++) all = hides_from(s, probes[k], offset, count_leads(s));
        if (all) return !s->eval.asked_several;
    }
    return false;
}

/* What an input that hides nothing holds is not known: a mask of ones, or an addend of zeros, or flags of what to hide,
 * or the lengths of sequences that are all in use. */
static mask_verdict evaluate(mask_cache *cache, mask_query *s) {
    const double guesses[][2] = {{1, 1}, {1, 0}, {0, 0}, {(double)s->kv_len, 0}};
    mask_verdict v = {.kind = "additive"};
    s->eval.steps = cache->steps_left < MASK_STEPS_MASK ? cache->steps_left : MASK_STEPS_MASK;
    int64_t before = s->eval.steps;
    for (int k = 0; k < 4; k++) {
        if (try_inputs(s, guesses[k][0], guesses[k][1], &v)) break;
        v = (mask_verdict){.kind = "additive"};
        if (!s->depends) break; /* other inputs would change nothing */
    }
    if (strcmp(v.kind, "additive") == 0 && !s->eval.asked_several && is_lengths(s))
        v = (mask_verdict){.kind = "lengths", .lengths = s->eval.asked};
    cache->steps_left -= before - (s->eval.steps > 0 ? s->eval.steps : 0);
    return v;
}

mask_verdict mask_classify(mask_cache *cache, model *m, const mask_term *terms, int count, int64_t q_len,
                           int64_t kv_len) {
    if (count < 1) return (mask_verdict){.kind = "none"};
    mask_query s = {.terms = terms, .count = count, .q_len = q_len, .kv_len = kv_len};
    if (count > MASK_MAX_TERMS || q_len < 1 || kv_len < 1) return (mask_verdict){.kind = "additive"};
    const mask_entry *known = cached(cache, &s);
    if (known) return known->verdict;
    s.eval.m = m;
    arena_mark scratch = arena_save(m->arena); /* constants are read for the time of one verdict only */
    mask_verdict v = evaluate(cache, &s);
    arena_rewind(m->arena, scratch);
    mask_entry *e = &cache->entries[cache->next];
    cache->next = (cache->next + 1) % MASK_CACHE_SIZE;
    if (cache->used < MASK_CACHE_SIZE) cache->used++;
    *e = (mask_entry){.count = count, .q_len = q_len, .kv_len = kv_len, .verdict = v};
    memcpy(e->terms, terms, (size_t)count * sizeof *terms);
    return v;
}
