/* The tree of fields of a model, found with the reader's own table of messages, and one change to it at a time. */
#include "tests/fuzz/wire_mutate.h"

#include "extract/graph/operators.h"
#include "extract/read/wire_schema.h"

#include <stdbool.h>
#include <string.h>

enum { MAX_FIELDS = 4096, MAX_DEPTH = 40, MAX_TEXT = 256 };

typedef struct field {
    wire_kind home, kind; /* the message it stands in, and the one it is (WIRE_KIND_NONE: none) */
    uint32_t number;
    wire_type type;
    size_t start, payload, end; /* of the tag, what follows tag and length, one past it all */
    int next;                   /* the first field behind it that is not inside it */
} field;

typedef struct tree {
    const uint8_t *data;
    int count;
    field fields[MAX_FIELDS];
} tree;

typedef enum change {
    CHANGE_DELETE,
    CHANGE_DOUBLE,
    CHANGE_NUMBER,
    CHANGE_BYTES,
    CHANGE_REPLACE,
    CHANGE_INSERT,
    CHANGES
} change;

typedef struct edit {
    change what;
    int target;
    uint64_t number;      /* CHANGE_NUMBER */
    const uint8_t *bytes; /* CHANGE_BYTES: a payload; CHANGE_REPLACE and CHANGE_INSERT: whole fields */
    size_t size;
} edit;

typedef struct sink {
    uint8_t *bytes;
    size_t used, most;
    bool full;
} sink;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static tree ours, theirs;
static unsigned state;

static unsigned pick(unsigned below) { /* xorshift: the seed alone decides */
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % below;
}

/* ---- reading: never fails through a guard, only says no ---- */

static bool read_varint(const uint8_t *d, size_t *at, size_t end, uint64_t *x) {
    *x = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = d[(*at)++];
        *x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

static bool read_payload(const uint8_t *d, size_t *at, size_t end, field *f) {
    uint64_t length = f->type == WIRE_FIXED64 ? 8 : 4, ignored;
    if (f->type == WIRE_VARINT) return read_varint(d, at, end, &ignored);
    if (f->type == WIRE_BYTES && !read_varint(d, at, end, &length)) return false;
    if (length > end - *at) return false;
    f->payload = *at;
    *at += (size_t)length;
    return true;
}

static bool read_fields(tree *t, size_t at, size_t end, wire_kind home, int depth) { // NOLINT(misc-no-recursion)
    while (at < end) {
        uint64_t tag;
        if (t->count == MAX_FIELDS || depth > MAX_DEPTH) return false;
        int index = t->count++;
        field *f = &t->fields[index];
        f->start = at;
        if (!read_varint(t->data, &at, end, &tag)) return false;
        f->home = home;
        f->number = (uint32_t)(tag >> 3);
        f->type = (wire_type)(tag & 7);
        f->payload = at;
        if (f->type == 3 || f->type == 4 || f->type > WIRE_FIXED32 || !read_payload(t->data, &at, end, f)) return false;
        const wire_rule *rule = wire_schema_rule(home, f->number);
        f->kind = f->type == WIRE_BYTES && rule->form == WIRE_FORM_MESSAGE ? rule->message : WIRE_KIND_NONE;
        f->end = at;
        if (f->kind != WIRE_KIND_NONE && !read_fields(t, f->payload, at, f->kind, depth + 1)) return false;
        f->next = t->count;
    }
    return true;
}

static bool read_tree(tree *t, const uint8_t *data, size_t size) {
    t->data = data;
    t->count = 0;
    return read_fields(t, 0, size, WIRE_MODEL, 0) && t->count > 0;
}

/* ---- writing ---- */

static void put(sink *s, const uint8_t *bytes, size_t n) {
    if (n > s->most - s->used) {
        s->full = true;
        return;
    }
    if (n > 0) memmove(s->bytes + s->used, bytes, n);
    s->used += n;
}

static void put_varint(sink *s, uint64_t x) {
    for (; x > 0x7f; x >>= 7) put(s, &(uint8_t){(uint8_t)(x | 0x80)}, 1);
    put(s, &(uint8_t){(uint8_t)x}, 1);
}

/* What stands at `from` gets its length in front. */
static void put_length_before(sink *s, size_t from) {
    uint8_t text[10];
    sink length = {text, 0, sizeof text, false};
    put_varint(&length, s->used - from);
    if (length.used > s->most - s->used) {
        s->full = true;
        return;
    }
    memmove(s->bytes + from + length.used, s->bytes + from, s->used - from);
    memcpy(s->bytes + from, text, length.used);
    s->used += length.used;
}

static void write_fields(sink *s, const tree *t, int from, int to, const edit *e);

static void write_field(sink *s, const tree *t, int k, const edit *e) { // NOLINT(misc-no-recursion)
    const field *f = &t->fields[k];
    if (f->kind == WIRE_KIND_NONE) {
        put(s, t->data + f->start, f->end - f->start);
        return;
    }
    put_varint(s, (uint64_t)f->number << 3 | WIRE_BYTES);
    size_t from = s->used;
    write_fields(s, t, k + 1, f->next, e);
    put_length_before(s, from);
}

static void write_target(sink *s, const tree *t, const edit *e) { // NOLINT(misc-no-recursion)
    static const edit none = {.target = -1};
    const field *f = &t->fields[e->target];
    switch (e->what) {
    case CHANGE_DELETE: break;
    case CHANGE_DOUBLE: write_field(s, t, e->target, &none); /* fall through */
    case CHANGE_INSERT:
        write_field(s, t, e->target, &none);
        if (e->what == CHANGE_INSERT) put(s, e->bytes, e->size);
        break;
    case CHANGE_NUMBER:
        put_varint(s, (uint64_t)f->number << 3 | WIRE_VARINT);
        put_varint(s, e->number);
        break;
    case CHANGE_BYTES:
        put_varint(s, (uint64_t)f->number << 3 | WIRE_BYTES);
        put_varint(s, e->size);
        put(s, e->bytes, e->size);
        break;
    case CHANGE_REPLACE: put(s, e->bytes, e->size); break;
    default: break;
    }
}

static void write_fields(sink *s, const tree *t, int from, int to, const edit *e) { // NOLINT(misc-no-recursion)
    for (int k = from; k < to && !s->full; k = t->fields[k].next) {
        if (k == e->target) {
            write_target(s, t, e);
        } else {
            write_field(s, t, k, e);
        }
    }
}

/* ---- choosing ---- */

static uint64_t any_number(uint64_t now) {
    static const int64_t hurting[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      7,
                                      8,
                                      10,
                                      16,
                                      64,
                                      65,
                                      255,
                                      4095,
                                      4096,
                                      4097,
                                      1 << 20,
                                      INT32_MAX,
                                      -1,
                                      -2,
                                      -3,
                                      INT32_MIN,
                                      (int64_t)1 << 31,
                                      (int64_t)1 << 32,
                                      (int64_t)1 << 40,
                                      (int64_t)1 << 56,
                                      (int64_t)1 << 62,
                                      INT64_MAX,
                                      INT64_MIN};
    switch (pick(4)) {
    case 0: return now + 1;
    case 1: return now - 1;
    default: return (uint64_t)hurting[pick(sizeof hurting / sizeof hurting[0])];
    }
}

/* A random field of the same message and number in a tree, or any of the same kind; -1 where there is none. */
static int like(const tree *t, const field *f, bool same_number) {
    int start = (int)pick((unsigned)t->count);
    for (int k = 0; k < t->count; k++) {
        int at = (start + k) % t->count;
        const field *g = &t->fields[at];
        if (g->home == f->home && (!same_number || g->number == f->number)) return at;
    }
    return -1;
}

/* Another name: one of the operators, one of a field of the same meaning, or the old one with some bytes changed. */
static void choose_bytes(const tree *t, const field *f, edit *e) {
    static uint8_t text[MAX_TEXT];
    size_t count, old = f->end - f->payload;
    const operator_def *table = operators_table(&count);
    e->what = CHANGE_BYTES;
    if (f->home == WIRE_NODE && f->number == 4 && pick(4) > 0) {
        e->bytes = (const uint8_t *)table[pick((unsigned)count)].name;
        e->size = strlen((const char *)e->bytes);
    } else if (pick(2) == 0) {
        int from = like(t, f, pick(4) > 0);
        e->what = CHANGE_REPLACE;
        e->bytes = t->data + t->fields[from].start;
        e->size = t->fields[from].end - t->fields[from].start;
    } else {
        if (old > sizeof text) old = sizeof text;
        memcpy(text, t->data + f->payload, old);
        e->bytes = text;
        e->size = LLVMFuzzerMutate(text, old, sizeof text);
    }
}

static void choose(const tree *t, edit *e) {
    e->target = (int)pick((unsigned)t->count);
    const field *f = &t->fields[e->target];
    switch (pick(8)) {
    case 0: e->what = CHANGE_DELETE; return;
    case 1: e->what = CHANGE_DOUBLE; return;
    case 2:
    case 3: {
        int from = like(t, f, pick(2));
        e->what = pick(2) ? CHANGE_REPLACE : CHANGE_INSERT;
        e->bytes = t->data + t->fields[from].start;
        e->size = t->fields[from].end - t->fields[from].start;
        return;
    }
    default: break;
    }
    if (f->type == WIRE_VARINT) {
        uint64_t now = 0;
        size_t at = f->payload;
        read_varint(t->data, &at, f->end, &now);
        e->what = CHANGE_NUMBER;
        e->number = any_number(now);
    } else if (f->type == WIRE_BYTES && f->kind == WIRE_KIND_NONE) {
        choose_bytes(t, f, e);
    } else {
        e->what = pick(2) ? CHANGE_DOUBLE : CHANGE_DELETE;
    }
}

static uint8_t scratch[1 << 16];

static size_t apply(const tree *t, const edit *e, uint8_t *out, size_t most) {
    sink s = {scratch, 0, most < sizeof scratch ? most : sizeof scratch, false};
    write_fields(&s, t, 0, t->count, e);
    if (s.full) return 0;
    memcpy(out, scratch, s.used);
    return s.used;
}

size_t wire_mutate(uint8_t *data, size_t size, size_t most, unsigned seed) {
    state = seed * 2654435761u | 1;
    for (unsigned changes = 1 + pick(4); changes > 0; changes--) {
        edit e = {.target = -1};
        if (!read_tree(&ours, data, size)) return 0;
        choose(&ours, &e);
        size_t changed = apply(&ours, &e, data, most);
        if (changed == 0) return 0;
        size = changed;
    }
    return size;
}

size_t wire_mutate_cross(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size, uint8_t *out,
                         size_t most, unsigned seed) {
    state = seed * 2654435761u | 1;
    if (!read_tree(&ours, data, size) || !read_tree(&theirs, other, other_size)) return 0;
    edit e = {.target = (int)pick((unsigned)ours.count)};
    int from = like(&theirs, &ours.fields[e.target], pick(2));
    if (from < 0) return 0;
    e.what = pick(2) ? CHANGE_REPLACE : CHANGE_INSERT;
    e.bytes = theirs.data + theirs.fields[from].start;
    e.size = theirs.fields[from].end - theirs.fields[from].start;
    return apply(&ours, &e, out, most);
}
