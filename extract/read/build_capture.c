/* Which names the bodies of a node use from the graphs around them: a node must come after their producers. A
 * name that a body (or a body around it) gives itself is not captured. */
#include "extract/read/build.h"

typedef struct capture_scope {
    const struct capture_scope *outer;
    map names;
} capture_scope;

typedef struct capture {
    build *b;
    map found;
    const char **names;
    size_t count, cap;
} capture;

static const char *text(const capture *c, wire_span span) {
    return build_text(c->b, (ProtobufCBinaryData){span.size, (uint8_t *)(uintptr_t)(c->b->file->base + span.offset)},
                      "name");
}

static void declare(capture_scope *s, const char *name) {
    if (*name) *map_put(&s->names, name) = s;
}

static void use(capture *c, const capture_scope *s, const char *name) {
    if (!*name) return;
    for (; s; s = s->outer)
        if (map_get(&s->names, name)) return;
    void **place = map_put(&c->found, name);
    if (*place) return;
    *place = c;
    void *items = (void *)c->names;
    arena_grow(c->b->frames, &items, &c->cap, c->count, sizeof *c->names);
    c->names = items;
    c->names[c->count++] = name;
}

/* Declares the names of one field of every message in a list. */
static void declare_all(const capture *c, capture_scope *s, const model_list *list, uint32_t field) {
    const wire file = model_file_wire(c->b->file);
    wire_field f;
    for (size_t k = 0; k < list->count; k++)
        for (wire w = wire_inside(&file, list->items[k]); wire_next(&w, &f);)
            if (f.number == field && f.type == WIRE_BYTES) declare(s, text(c, f.payload));
}

static void from_graph(capture *c, const capture_scope *outer, wire_span span);

static void from_attr(capture *c, const capture_scope *s, wire_span span) {
    const wire file = model_file_wire(c->b->file);
    wire_field f;
    for (wire w = wire_inside(&file, span); wire_next(&w, &f);)
        if (f.number == 6 && f.type == WIRE_BYTES) from_graph(c, s, f.payload);
}

static void from_node(capture *c, const capture_scope *s, wire_span span) {
    const wire file = model_file_wire(c->b->file);
    wire_field f;
    for (wire w = wire_inside(&file, span); wire_next(&w, &f);) {
        if (f.number == 1 && f.type == WIRE_BYTES) use(c, s, text(c, f.payload));
        if (f.number == 5 && f.type == WIRE_BYTES) from_attr(c, s, f.payload);
    }
}

/* Bounded: the wire check has refused deeper nesting. */
static void from_graph(capture *c, const capture_scope *outer, wire_span span) {
    capture_scope s = {.outer = outer};
    model_index index;
    map_init(&s.names, c->b->frames);
    model_meta_index(c->b->file, c->b->frames, WIRE_GRAPH, span, &index);
    declare_all(c, &s, &index.fields[5], 8);
    declare_all(c, &s, &index.fields[11], 1);
    declare_all(c, &s, &index.fields[1], 2);
    const wire file = model_file_wire(c->b->file);
    for (size_t k = 0; k < index.fields[15].count; k++) { /* a sparse initializer has the name of its values */
        const model_list values = model_meta_list(c->b->file, c->b->frames, index.fields[15].items[k], 1);
        declare_all(c, &s, &values, 8);
    }
    wire_field f;
    for (size_t k = 0; k < index.fields[12].count; k++)
        for (wire w = wire_inside(&file, index.fields[12].items[k]); wire_next(&w, &f);)
            if (f.number == 1 && f.type == WIRE_BYTES) use(c, &s, text(c, f.payload));
    for (size_t k = 0; k < index.fields[1].count; k++) from_node(c, &s, index.fields[1].items[k]);
}

void build_capture(build *b, build_raw *raw) {
    capture c = {.b = b};
    map_init(&c.found, b->frames);
    for (size_t k = 0; k < raw->attrs.count; k++) from_attr(&c, NULL, raw->attrs.items[k]);
    raw->captured = c.names;
    raw->captured_count = c.count;
}
