/* Attributes of nodes, of every kind; references inside functions are replaced by what the call gives. */
#include "extract/read/build.h"

#include <string.h>

enum { LISTED_ATTRS = 32 }; /* up to so many are compared one by one for double names */

/* Numbers of the format's attribute types. */
enum {
    KIND_FLOAT = 1,
    KIND_INT,
    KIND_STRING,
    KIND_TENSOR,
    KIND_GRAPH,
    KIND_FLOATS,
    KIND_INTS,
    KIND_STRINGS,
    KIND_TENSORS,
    KIND_GRAPHS,
    KIND_SPARSE,
    KIND_SPARSES,
    KIND_TYPE,
    KIND_TYPES
};

/* Field numbers of lists and messages in an attribute. */
enum {
    FIELD_FLOATS = 7,
    FIELD_INTS = 8,
    FIELD_TENSOR = 5,
    FIELD_GRAPH = 6,
    FIELD_TENSORS = 10,
    FIELD_GRAPHS = 11,
    FIELD_TYPES = 15,
    FIELD_SPARSE = 22,
    FIELD_SPARSES = 23
};

typedef struct attr_reader {
    build *b;
    node *n;
    const build_scope *scope;
    wire_span span;
    const OnnxMeta__Attribute *meta;
    model_index index;
} attr_reader;

/* Lists of numbers are read where they lie: they may be long (tree ensembles), and unpacking them would take many times
 * their size. */
static int64_t count_numbers(const attr_reader *r, uint32_t number, unsigned width) {
    const wire file = model_file_wire(r->b->file);
    wire_field f;
    int64_t n = 0;
    for (wire w = wire_inside(&file, r->span); wire_next(&w, &f);) {
        if (f.number != number) continue;
        if (f.type != WIRE_BYTES) {
            n++;
        } else if (width) {
            n += (int64_t)(f.payload.size / width);
        } else {
            r->b->file->steps += f.payload.size / 4;
            for (uint64_t k = 0; k < f.payload.size; k++) n += file.base[f.payload.offset + k] < 0x80;
        }
    }
    return n;
}

/* Old models do not say the type of an attribute: it is what is there. */
static int kind_of(const attr_reader *r) {
    const OnnxMeta__Attribute *m = r->meta;
    if (m->has_type && m->type != 0) return m->type;
    if (m->has_f) return KIND_FLOAT;
    if (m->has_i) return KIND_INT;
    if (m->has_s) return KIND_STRING;
    if (r->index.fields[FIELD_TENSOR].count) return KIND_TENSOR;
    if (r->index.fields[FIELD_GRAPH].count) return KIND_GRAPH;
    if (r->index.fields[FIELD_SPARSE].count) return KIND_SPARSE;
    if (m->tp) return KIND_TYPE;
    if (count_numbers(r, FIELD_FLOATS, 4)) return KIND_FLOATS;
    if (m->n_strings) return KIND_STRINGS;
    if (r->index.fields[FIELD_TENSORS].count) return KIND_TENSORS;
    if (r->index.fields[FIELD_GRAPHS].count) return KIND_GRAPHS;
    if (r->index.fields[FIELD_SPARSES].count) return KIND_SPARSES;
    if (r->index.fields[FIELD_TYPES].count) return KIND_TYPES;
    return KIND_INTS;
}

static void read_ints(const attr_reader *r, attr *a) {
    const wire file = model_file_wire(r->b->file);
    a->kind = ATTR_INTS;
    a->n = count_numbers(r, FIELD_INTS, 0);
    int64_t *x = arena_array(r->b->arena, int64_t, a->n), n = 0;
    wire_field f;
    for (wire w = wire_inside(&file, r->span); wire_next(&w, &f);) {
        wire inner = wire_inside(&w, f.payload);
        while (f.number == FIELD_INTS && inner.pos < inner.end && n < a->n) x[n++] = (int64_t)wire_varint(&inner);
    }
    a->ints = x;
}

static void read_floats(const attr_reader *r, attr *a) {
    const wire file = model_file_wire(r->b->file);
    a->kind = ATTR_FLOATS;
    a->n = count_numbers(r, FIELD_FLOATS, 4);
    double *x = arena_array(r->b->arena, double, a->n);
    int64_t n = 0;
    wire_field f;
    for (wire w = wire_inside(&file, r->span); wire_next(&w, &f);) {
        wire inner = wire_inside(&w, f.payload);
        while (f.number == FIELD_FLOATS && inner.pos < inner.end && n < a->n) {
            const uint32_t bits = wire_fixed32(&inner);
            float number;
            memcpy(&number, &bits, sizeof number);
            x[n++] = number;
        }
    }
    a->floats = x;
}

static void read_strings(const attr_reader *r, attr *a) {
    a->kind = ATTR_STRINGS;
    a->n = (int64_t)r->meta->n_strings;
    const char **x = arena_array(r->b->arena, const char *, a->n);
    for (int64_t k = 0; k < a->n; k++)
        x[k] = arena_strndup(r->b->arena, (const char *)r->meta->strings[k].data, r->meta->strings[k].len);
    a->strings = x;
}

static void read_other(const attr_reader *r, int field, attr *a) {
    a->kind = ATTR_OTHER;
    a->n = (int64_t)r->index.fields[field].count;
}

static wire_span only(const attr_reader *r, int field, const char *what, const char *name) {
    const model_list *list = &r->index.fields[field];
    if (list->count == 1) return list->items[0];
    build_fail(r->b, "node '%.200s' (%.100s): attribute '%.100s' should hold one %s, but holds %zu", r->n->name,
               r->n->op_type, name, what, list->count);
}

/* Messages come last, as unpacking them overwrites `meta`. */
static void read_value(attr_reader *r, attr *a) { // recursion: bodies, bounded by the wire check
    const OnnxMeta__Attribute *m = r->meta;
    const int kind = kind_of(r);
    switch (kind) {
    case KIND_FLOAT: a->kind = ATTR_FLOAT, a->f = m->f; break;
    case KIND_INT: a->kind = ATTR_INT, a->i = m->i; break;
    case KIND_STRING:
        a->kind = ATTR_STRING, a->s = arena_strndup(r->b->arena, (const char *)m->s.data, m->s.len),
        a->n = (int64_t)m->s.len;
        break;
    case KIND_INTS: read_ints(r, a); break;
    case KIND_FLOATS: read_floats(r, a); break;
    case KIND_STRINGS: read_strings(r, a); break;
    case KIND_TYPE: a->kind = ATTR_TYPE, a->type = build_type_stated(r->b, m->tp, a->name); break;
    case KIND_TENSORS: read_other(r, FIELD_TENSORS, a); break;
    case KIND_GRAPHS: read_other(r, FIELD_GRAPHS, a); break;
    case KIND_SPARSES: read_other(r, FIELD_SPARSES, a); break;
    case KIND_TYPES: read_other(r, FIELD_TYPES, a); break;
    case KIND_TENSOR:
        a->kind = ATTR_TENSOR, a->t = build_tensor(r->b, only(r, FIELD_TENSOR, "tensor", a->name), "attribute tensor");
        break;
    case KIND_SPARSE:
        a->kind = ATTR_TENSOR,
        a->t = build_tensor_sparse(r->b, only(r, FIELD_SPARSE, "sparse tensor", a->name), "sparse attribute tensor");
        break;
    case KIND_GRAPH:
        a->kind = ATTR_GRAPH,
        a->g = build_graph_body(r->b, r->scope, only(r, FIELD_GRAPH, "graph", a->name), r->n, a->name);
        break;
    default:
        build_fail(r->b, "node '%.200s' (%.100s): attribute '%.100s' has type %d, which is not known", r->n->name,
                   r->n->op_type, a->name, kind);
    }
}

/* Reads one attribute; false where it refers to one that the call does not give. Recursion follows calls, whose depth
 * is bounded. */
static bool read_attr(build *b, const build_scope *s, wire_span span, node *n, attr *a) {
    attr_reader r = {.b = b, .n = n, .scope = s, .span = span};
    model_meta_index(b->file, b->frames, WIRE_ATTRIBUTE, span, &r.index);
    r.meta = model_meta_unpack(b->file, WIRE_ATTRIBUTE, span);
    const char *name = build_text(b, r.meta->name, "attribute");
    const char *reference = build_text(b, r.meta->ref_attr_name, "attribute reference");
    if (!*name) build_fail(b, "node '%.200s' (%.100s): has an attribute without a name", n->name, n->op_type);
    a->name = name;
    if (*reference) {
        if (!s->call)
            build_fail(b, "node '%.200s' (%.100s): attribute '%.100s' refers to '%.100s', but is in no function",
                       n->name, n->op_type, name, reference);
        const build_scope *there;
        if (!build_function_attr(b, s->call, reference, &span, &there) || !read_attr(b, there, span, n, a))
            return false;
        a->name = name;
        return true;
    }
    read_value(&r, a);
    return true;
}

static void refuse_double(build *b, const node *n) {
    const attr *a = n->attrs;
    map seen;
    map_init(&seen, b->frames);
    for (int k = 0; k < n->attr_count; k++) {
        bool twice = false;
        if (n->attr_count > LISTED_ATTRS) {
            void **place = map_put(&seen, a[k].name);
            twice = *place != NULL;
            *place = (void *)(uintptr_t)a;
        } else {
            for (int j = 0; j < k; j++) twice = twice || a[j].name == a[k].name; /* names are kept once */
        }
        if (twice)
            build_fail(b, "node '%.200s' (%.100s): has attribute '%.100s' twice", n->name, n->op_type, a[k].name);
    }
}

void build_attrs(build *b, const build_scope *s, const build_raw *raw, node *n) {
    n->attrs = arena_array(b->arena, attr, raw->attrs.count);
    for (size_t k = 0; k < raw->attrs.count; k++) {
        const arena_mark mark = arena_save(b->frames);
        if (read_attr(b, s, raw->attrs.items[k], n, &n->attrs[n->attr_count])) {
            n->attr_count++;
        } else {
            n->attrs[n->attr_count] = (attr){0};
        }
        arena_rewind(b->frames, mark);
    }
    if (n->attr_count > 1) refuse_double(b, n);
}
