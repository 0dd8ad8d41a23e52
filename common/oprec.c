/* Operation records: names of kinds, named dimensions kept sorted, the canonical key, and the id made from it. */
#include "common/oprec.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char *const kind_names[OP_KIND_COUNT] = {
    [OP_UNKNOWN] = "unknown",
    [OP_GEMM] = "gemm",
    [OP_CONV] = "conv",
    [OP_ATTENTION] = "attention",
    [OP_NORM] = "norm",
    [OP_SOFTMAX] = "softmax",
    [OP_ELEMENTWISE] = "elementwise",
    [OP_REDUCE] = "reduce",
    [OP_POOL] = "pool",
    [OP_EMBEDDING] = "embedding",
    [OP_RECURRENT] = "recurrent",
    [OP_ROTARY] = "rotary",
    [OP_MOVE] = "move",
    [OP_QUANTIZE] = "quantize",
};

static const struct {
    const char *name;
    op_kind kind;
} aliases[] = {
    {"matmul", OP_GEMM},    {"linear", OP_GEMM},    {"conv1d", OP_CONV},       {"conv2d", OP_CONV},
    {"conv3d", OP_CONV},    {"sdpa", OP_ATTENTION}, {"layernorm", OP_NORM},    {"rmsnorm", OP_NORM},
    {"groupnorm", OP_NORM}, {"batchnorm", OP_NORM}, {"instancenorm", OP_NORM}, {"lstm", OP_RECURRENT},
    {"gru", OP_RECURRENT},  {"rnn", OP_RECURRENT},  {"rope", OP_ROTARY},       {"maxpool", OP_POOL},
    {"avgpool", OP_POOL},   {"transpose", OP_MOVE},
};

const char *oprec_kind_name(op_kind kind) {
    return (unsigned)kind < OP_KIND_COUNT ? kind_names[kind] : kind_names[OP_UNKNOWN];
}

bool oprec_kind_from_name(const char *name, op_kind *kind) {
    for (int k = 0; k < OP_KIND_COUNT; k++) {
        if (strcmp(kind_names[k], name) != 0) continue;
        *kind = (op_kind)k;
        return true;
    }
    for (size_t k = 0; k < sizeof aliases / sizeof aliases[0]; k++) {
        if (strcmp(aliases[k].name, name) != 0) continue;
        *kind = aliases[k].kind;
        return true;
    }
    return false;
}

/* The place of a field: the one of that name, or a new one between its neighbours. */
static opfield *place(oprec *r, const char *name) {
    int k = 0;
    while (k < r->field_count && strcmp(r->fields[k].name, name) < 0) k++;
    if (k == r->field_count || strcmp(r->fields[k].name, name) != 0) {
        /* names are literals of the code, never of a model, so that too many is a mistake of the code */
        assert(r->field_count < OPREC_MAX_FIELDS);
        if (r->field_count == OPREC_MAX_FIELDS) return NULL;
        memmove(&r->fields[k + 1], &r->fields[k], (size_t)(r->field_count - k) * sizeof r->fields[0]);
        r->field_count++;
    }
    r->fields[k] = (opfield){.name = name};
    return &r->fields[k];
}

void oprec_set_int(oprec *r, const char *name, int64_t value) {
    opfield *f = place(r, name);
    if (!f) return;
    f->kind = OPFIELD_INT;
    f->i = value;
}

void oprec_set_real(oprec *r, const char *name, double value) {
    if (!isfinite(value)) {
        oprec_set_text(r, name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    opfield *f = place(r, name);
    if (!f) return;
    f->kind = OPFIELD_REAL;
    f->real = value;
}

void oprec_set_text(oprec *r, const char *name, const char *text) {
    opfield *f = place(r, name);
    if (!f) return;
    f->kind = OPFIELD_TEXT;
    f->text = text;
}

static const int64_t *copy_ints(arena *a, int n, const int64_t *values) {
    int64_t *copy = arena_array(a, int64_t, n > 0 ? n : 1);
    if (n > 0) memcpy(copy, values, (size_t)n * sizeof *copy);
    return copy;
}

void oprec_set_ints(oprec *r, arena *a, const char *name, int n, const int64_t *values) {
    const int64_t *copy = copy_ints(a, n, values);
    opfield *f = place(r, name);
    if (!f) return;
    f->kind = OPFIELD_INTS;
    f->ints = copy;
    f->n = n > 0 ? n : 0;
}

void oprec_set_shape(oprec *r, arena *a, int rank, const int64_t *shape) {
    r->shape = copy_ints(a, rank, shape);
    r->rank = rank > 0 ? rank : 0;
}

const opfield *oprec_field(const oprec *r, const char *name) {
    for (int k = 0; k < r->field_count; k++)
        if (strcmp(r->fields[k].name, name) == 0) return &r->fields[k];
    return NULL;
}

int64_t oprec_int(const oprec *r, const char *name, int64_t otherwise) {
    const opfield *f = oprec_field(r, name);
    return f && f->kind == OPFIELD_INT ? f->i : otherwise;
}

/* A text that grows in the arena. */
typedef struct text {
    arena *arena;
    char *bytes;
    size_t used, cap;
} text;

static void add(text *t, const char *s, size_t n) {
    arena_grow(t->arena, (void **)&t->bytes, &t->cap, t->used + n, 1); /* the NUL fits too */
    memcpy(t->bytes + t->used, s, n);
    t->used += n;
    t->bytes[t->used] = 0;
}

static void add_text(text *t, const char *s) { add(t, s, strlen(s)); }

/* Names out of a model must not look like the key's own punctuation. */
static void add_escaped(text *t, const char *s) {
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char hex[4];
        if (c > ' ' && c != ';' && c != '=' && c != '%' && c != 0x7f) {
            add(t, s, 1);
        } else {
            snprintf(hex, sizeof hex, "%%%02x", (unsigned)c);
            add(t, hex, 3);
        }
    }
}

static void add_int(text *t, int64_t x) {
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, x);
    add(t, digits, (size_t)n);
}

static void add_ints(text *t, int n, const int64_t *x) {
    for (int k = 0; k < n; k++) {
        if (k > 0) add(t, ",", 1);
        add_int(t, x[k]);
    }
}

/* The shortest decimal that reads back as the same number. */
static void add_real(text *t, double x) {
    char digits[40];
    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        if (strtod(digits, NULL) == x) break;
    }
    add_text(t, digits);
}

static void add_named(text *t, const char *name, const char *value) {
    if (!value) return;
    add(t, ";", 1);
    add_text(t, name);
    add(t, "=", 1);
    add_escaped(t, value);
}

static void add_dtype(text *t, const char *name, dtype type) {
    if (type != DTYPE_NONE) add_named(t, name, dtype_get(type)->name);
}

static void add_field(text *t, const opfield *f) {
    add(t, ";", 1);
    add_escaped(t, f->name);
    add(t, "=", 1);
    switch (f->kind) {
    case OPFIELD_INT: add_int(t, f->i); break;
    case OPFIELD_INTS: add_ints(t, f->n, f->ints); break;
    case OPFIELD_TEXT: add_escaped(t, f->text ? f->text : ""); break;
    case OPFIELD_REAL: add_real(t, f->real); break;
    }
}

char *oprec_key(const oprec *r, arena *a) {
    text t = {.arena = a};
    add_text(&t, oprec_kind_name(r->kind));
    add_named(&t, "what", r->what);
    add_text(&t, ";shape=");
    add_ints(&t, r->rank, r->shape);
    add_named(&t, "layout", r->layout);
    add_named(&t, "mask", r->mask);
    add_dtype(&t, "type", r->type);
    add_dtype(&t, "weight", r->weight_type);
    add_dtype(&t, "out", r->out_type);
    for (int k = 0; k < r->field_count; k++) add_field(&t, &r->fields[k]);
    return t.bytes;
}

char *oprec_id(const oprec *r, arena *a) {
    enum { DIMS_ROOM = 72 }; /* with the longest kind and dtype an id stays below 120 bytes */
    char dims[DIMS_ROOM + 8] = "scalar";
    size_t used = 0;
    for (int k = 0; k < r->rank; k++) {
        char one[24];
        int n = snprintf(one, sizeof one, "%s%" PRId64, k > 0 ? "x" : "", r->shape[k]);
        if (used + (size_t)n > DIMS_ROOM) {
            memcpy(dims + used, "xetc", 5);
            break;
        }
        memcpy(dims + used, one, (size_t)n + 1);
        used += (size_t)n;
    }
    const char *key = oprec_key(r, a);
    uint64_t hash = XXH3_64bits(key, strlen(key));
    return arena_printf(a, "%s_%s_%s_%010" PRIx64, oprec_kind_name(r->kind), dims, dtype_get(r->type)->name,
                        hash >> 24);
}
