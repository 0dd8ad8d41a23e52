/* One graph: its inputs, initializers, stated types, nodes and outputs, in a scope of its own. */
#include "extract/read/build.h"

#include "common/plain.h"

#include <string.h>

/* Field numbers of a graph. */
enum {
    FIELD_NODES = 1,
    FIELD_INITIALIZERS = 5,
    FIELD_INPUTS = 11,
    FIELD_OUTPUTS = 12,
    FIELD_VALUES = 13,
    FIELD_SPARSE = 15
};

static void add_tensor(build *b, graph *home, tensor *t) {
    model *m = b->model;
    t->home = home;
    void *items = m->tensors;
    arena_grow(b->arena, &items, &b->tensor_cap, (size_t)m->tensor_count, sizeof(tensor *));
    m->tensors = items;
    t->place = (int)m->tensor_count;
    m->tensors[m->tensor_count++] = t;
}

tensor *build_graph_tensor(build *b, build_target *target, const char *name, tensor_source source) {
    tensor *t = arena_zalloc(b->arena, sizeof *t);
    t->name = plain_name(b->arena, name);
    t->source = source;
    t->info = &info_unknown;
    add_tensor(b, target->g, t);
    return t;
}

static graph *new_graph(build *b, graph *parent, node *owner, const char *region) {
    model *m = b->model;
    graph *g = arena_zalloc(b->arena, sizeof *g);
    g->place = m->graph_count;
    g->region = plain_name(b->arena, region);
    g->parent = parent;
    g->owner = owner;
    g->times = 1;
    g->times_known = owner == NULL;
    void *items = m->graphs;
    arena_grow(b->arena, &items, &b->graph_cap, (size_t)m->graph_count, sizeof(graph *));
    m->graphs = items;
    m->graphs[m->graph_count++] = g;
    return g;
}

/* A body's input may have an initializer of its name as a default; a run of the body always gives a value, so it is
 * dropped. */
static void read_initializers(build *b, build_scope *s, const model_index *index) {
    const model_list *dense = &index->fields[FIELD_INITIALIZERS], *sparse = &index->fields[FIELD_SPARSE];
    graph *g = s->target->g;
    g->initializers = arena_array(b->arena, tensor *, dense->count + sparse->count);
    for (size_t k = 0; k < dense->count + sparse->count; k++) {
        tensor *t = k < dense->count ? build_tensor(b, dense->items[k], "initializer")
                                     : build_tensor_sparse(b, sparse->items[k - dense->count], "sparse initializer");
        if (!*t->name) build_fail(b, "an initializer has no name");
        const build_name *there = g->owner ? map_get(&s->names, t->name) : NULL;
        if (there && there->t && there->t->source == TENSOR_FORMAL) continue;
        build_name_declare(b, s, t->name, "initializers")->t = t;
        t->name = plain_name(b->arena, build_name_of_tensor(b, s, t->name));
        add_tensor(b, g, t);
        g->initializers[g->initializer_count++] = t;
    }
}

static const char *value_name(build *b, const OnnxMeta__ValueInfo *v, const char *what) {
    const char *name = build_text(b, v->name, what);
    if (!*name) build_fail(b, "a graph's %s has no name", what);
    return name;
}

static bool is_initializer(const build_scope *s, const char *name) {
    const build_name *n = map_get(&s->names, name);
    return n && n->t && n->t->source == TENSOR_INITIALIZER;
}

/* One that --dim gives: a condition, or a size that is handed in. */
static const info *with_value(build *b, const char *name, const info *x) {
    int64_t n;
    bool alone;
    const dtype_class is = info_shaped(x) ? dtype_get(x->type)->cls : DTYPE_CLASS_NONE;
    if (!bind_is_input(&b->bind, name, &alone) || !bind_lookup(&b->bind, name, &n)) return x;
    const bool fits = (is == DTYPE_CLASS_INT || x->type == DTYPE_BOOL) && !x->inexact && info_count(x) == 1;
    if (!fits && !alone) return x; /* the dimension is meant */
    if (!fits)
        guard_fail(
            b->arena->guard, STATUS_USAGE,
            "--dim %.200s=%lld: of an input's values only a single whole number or condition can be given, and it "
            "is %s",
            name, (long long)n, info_text(b->arena, x));
    if (x->type == DTYPE_BOOL) n = n != 0;
    return info_of_ints(b->arena, x->type, x->rank, x->dims, &n, 1);
}

/* The main graph's inputs: first all symbols are seen, then all are numbers. */
static void read_inputs(build *b, build_scope *s, const model_list *list) {
    graph *g = s->target->g;
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__ValueInfo *v = model_meta_unpack(b->file, WIRE_VALUE_INFO, list->items[k]);
        const char *name = value_name(b, v, "input");
        if (is_initializer(s, name)) continue;
        build_type_see(b, v->type, name);
        bind_see_input(&b->bind, name);
    }
    bind_finish(&b->bind);
    g->inputs = arena_array(b->arena, tensor *, list->count);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__ValueInfo *v = model_meta_unpack(b->file, WIRE_VALUE_INFO, list->items[k]);
        const char *name = value_name(b, v, "input");
        if (is_initializer(s, name)) continue;
        tensor *t = build_graph_tensor(b, s->target, name, TENSOR_INPUT);
        t->info = with_value(b, name, build_type_input(b, v->type, name));
        build_name_declare(b, s, name, "inputs")->t = t;
        g->inputs[g->input_count++] = t;
    }
}

static void read_formals(build *b, build_scope *s, const model_list *list) {
    graph *g = s->target->g;
    g->inputs = arena_array(b->arena, tensor *, list->count);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__ValueInfo *v = model_meta_unpack(b->file, WIRE_VALUE_INFO, list->items[k]);
        const char *name = value_name(b, v, "input");
        tensor *t = build_graph_tensor(b, s->target, name, TENSOR_FORMAL);
        t->stated = build_type_stated(b, v->type, name);
        if (*s->tensor_prefix) t->name = build_name_of_tensor(b, s, name);
        build_name_declare(b, s, name, "inputs")->t = t;
        g->inputs[g->input_count++] = t;
    }
}

/* What is stated of values inside functions is not kept: it may hold for one call and not for another. */
static void read_stated(build *b, build_scope *s, const model_list *list) {
    if (s->call) return;
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__ValueInfo *v = model_meta_unpack(b->file, WIRE_VALUE_INFO, list->items[k]);
        const char *name = build_text(b, v->name, "value");
        const info *x = *name ? build_type_stated(b, v->type, name) : NULL;
        if (x) *map_put(&s->stated, name) = (void *)(uintptr_t)x;
    }
}

static void read_outputs(build *b, build_scope *s, const model_list *list) {
    graph *g = s->target->g;
    g->outputs = arena_array(b->arena, tensor *, list->count);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__ValueInfo *v = model_meta_unpack(b->file, WIRE_VALUE_INFO, list->items[k]);
        const char *name = value_name(b, v, "output");
        const build_name *found = build_name_find(s, name);
        if (!found || (!found->t && !found->left_out))
            build_fail(b, "graph output '%.200s' is produced by nothing", name);
        if (!found->t)
            build_fail(b, "graph output '%.200s' is an input that the call of its function leaves out", name);
        tensor *t = found->t;
        if (t->home != g) { /* a body that gives out a value from around it */
            tensor *copy = build_graph_tensor(b, s->target, build_name_of_tensor(b, s, name), TENSOR_NODE);
            build_node_identity(b, s, "", t, copy);
            t = copy;
        }
        t->is_graph_output = true;
        g->outputs[g->output_count++] = t;
    }
}

static void fill(build *b, build_scope *s, wire_span span) { // recursion: bodies, bounded by the wire check
    const arena_mark mark = arena_save(b->frames);
    map_init(&s->names, b->frames);
    map_init(&s->stated, b->frames);
    map_init(&s->given, b->frames);
    build_strings_init(&s->target->taken, b->arena);
    model_index index;
    model_meta_index(b->file, b->frames, WIRE_GRAPH, span, &index);
    if (s->target->g->owner) {
        read_formals(b, s, &index.fields[FIELD_INPUTS]);
        read_initializers(b, s, &index);
    } else {
        read_initializers(b, s, &index);
        read_inputs(b, s, &index.fields[FIELD_INPUTS]);
    }
    read_stated(b, s, &index.fields[FIELD_VALUES]);
    read_stated(b, s, &index.fields[FIELD_OUTPUTS]);
    build_nodes(b, s, &index.fields[FIELD_NODES]);
    read_outputs(b, s, &index.fields[FIELD_OUTPUTS]);
    arena_rewind(b->frames, mark);
}

graph *build_graph_main(build *b, wire_span span) {
    build_target target = {.g = new_graph(b, NULL, NULL, "")};
    build_scope s = {.target = &target, .opsets = &b->opsets, .node_prefix = "", .tensor_prefix = ""};
    fill(b, &s, span);
    return target.g;
}

graph *build_graph_body(build *b, const build_scope *outer, wire_span span, node *owner, const char *attr_name) {
    build_target target = {
        .g = new_graph(b, owner->home, owner, arena_printf(b->arena, "%s/%s", owner->name, attr_name))};
    build_scope s = {.outer = outer,
                     .target = &target,
                     .call = outer->call,
                     .opsets = outer->opsets,
                     .tensor_prefix = outer->tensor_prefix,
                     .depth = outer->depth + 1};
    if (s.depth > BUILD_MAX_DEPTH)
        build_fail(b, "node '%.200s' (%.100s): its body is nested more than %d deep", owner->name, owner->op_type,
                   BUILD_MAX_DEPTH);
    s.node_prefix = arena_printf(b->arena, "%s/", target.g->region);
    fill(b, &s, span);
    return target.g;
}
