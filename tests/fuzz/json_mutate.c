/* One to four changes to a tree, each at a place that the seed picks. */
#include "tests/fuzz/json_mutate.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MAX_PLACES = 8192 };

typedef struct place {
    json_t *parent;  /* object or array */
    const char *key; /* NULL: in an array */
    size_t index;
    json_t *value; /* borrowed */
} place;

typedef struct places {
    int count;
    place at[MAX_PLACES];
} places;

static unsigned state;

static unsigned pick(unsigned below) { /* xorshift: the seed alone decides */
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

static void add(places *to, json_t *parent, const char *key, size_t index, json_t *value) {
    if (to->count < MAX_PLACES) to->at[to->count++] = (place){parent, key, index, value};
}

/* Children behind their parents: what was found is walked on until nothing is new. */
static void find(places *to, json_t *root) {
    to->count = 0;
    for (int k = -1; k < to->count; k++) {
        json_t *at = k < 0 ? root : to->at[k].value, *value;
        const char *key;
        size_t index;
        if (json_is_object(at)) json_object_foreach(at, key, value) add(to, at, key, 0, value);
        if (json_is_array(at)) json_array_foreach(at, index, value) add(to, at, NULL, index, value);
    }
}

static void set(const place *p, json_t *value) {
    if (p->key)
        json_object_set_new(p->parent, p->key, value);
    else
        json_array_set_new(p->parent, p->index, value);
}

static json_t *number(const json_t *old) {
    static const int64_t known[] = {0,   1,    -1,   2,         3,         7,         8,
                                    16,  64,   127,  4096,      1 << 20,   INT32_MAX, INT64_C(1) << 31,
                                    9,   1000, -128, INT64_MAX, INT64_MIN, 12,        INT64_C(1) << 40,
                                    128, 256};
    const int64_t is = json_is_integer(old) ? json_integer_value(old) : 0;
    switch (pick(6)) {
    case 0: return json_integer((int64_t)((uint64_t)is + 1));
    case 1: return json_integer((int64_t)((uint64_t)is - 1));
    case 2: return json_integer((int64_t)((uint64_t)is * 2));
    case 3: return json_real(pick(2) ? 1e308 : -0.5);
    default: return json_integer(known[pick(sizeof known / sizeof known[0])]);
    }
}

static void change(json_t *root) {
    static places all;
    find(&all, root);
    if (all.count == 0) return;
    const place *p = &all.at[pick((unsigned)all.count)], *q = &all.at[pick((unsigned)all.count)];
    for (int k = 0; k < 8 && json_typeof(q->value) != json_typeof(p->value) && pick(4); k++)
        q = &all.at[pick((unsigned)all.count)]; /* what stands for the same is most often of the same type */
    json_t *copy = json_deep_copy(q->value);
    switch (pick(json_is_number(p->value) ? 6 : 5)) {
    case 0: p->key ? json_object_del(p->parent, p->key) : json_array_remove(p->parent, p->index); break;
    case 1:
        if (json_is_array(p->parent)) {
            json_array_insert(p->parent, p->index, copy);
            break;
        }
        __attribute__((fallthrough));
    case 2:
    case 3: set(p, json_incref(copy)); break;
    case 4:
        if (json_is_array(p->value)) json_array_append(p->value, copy);
        if (json_is_object(p->value) && q->key) json_object_set(p->value, q->key, copy);
        break;
    default: set(p, number(p->value)); break;
    }
    json_decref(copy);
}

size_t json_mutate(char *text, size_t size, size_t most, unsigned seed) {
    json_t *root = json_loadb(text, size, 0, NULL);
    if (!root) return 0;
    state = seed * 2654435761u | 1;
    for (unsigned k = pick(4) + 1; k > 0; k--) change(root);
    const size_t n = json_dumpb(root, text, most, JSON_COMPACT);
    json_decref(root);
    return n <= most ? n : 0;
}
