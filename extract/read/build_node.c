/* Nodes: decoded, put in order, and either built or, where they call a local function, replaced by it. */
#include "extract/read/build.h"

#include "common/plain.h"
#include "extract/graph/operators.h"

#include <string.h>

static const char **texts(build *b, size_t n, const ProtobufCBinaryData *items, const char *what) {
    const char **list = arena_array(b->frames, const char *, n);
    for (size_t k = 0; k < n; k++) list[k] = build_text(b, items[k], what);
    return list;
}

static void read_raw(build *b, wire_span span, build_raw *raw) {
    const OnnxMeta__Node *m = model_meta_unpack(b->file, WIRE_NODE, span);
    raw->span = span;
    raw->name = build_text(b, m->name, "node");
    raw->op_type = build_text(b, m->op_type, "operator");
    raw->domain = build_domain(b, m->domain);
    raw->in = texts(b, m->n_input, m->input, "input");
    raw->out = texts(b, m->n_output, m->output, "output");
    raw->in_count = m->n_input;
    raw->out_count = m->n_output;
    if (!*raw->op_type) build_fail(b, "%s: has no operator", build_raw_text(b, raw));
    if (raw->in_count > BUILD_MAX_ENDS || raw->out_count > BUILD_MAX_ENDS)
        build_fail(b, "%s: has %zu inputs and %zu outputs; at most %d are read", build_raw_text(b, raw), raw->in_count,
                   raw->out_count, BUILD_MAX_ENDS);
    if (b->functions.count)
        raw->function = build_function_find(b, raw->domain, raw->op_type, build_text(b, m->overload, "overload"));
    raw->attrs = model_meta_list(b->file, b->frames, span, 5);
    if (raw->attrs.count > BUILD_MAX_ATTRS)
        build_fail(b, "%s: has %zu attributes; at most %d are read", build_raw_text(b, raw), raw->attrs.count,
                   BUILD_MAX_ATTRS);
    if (raw->attrs.count) build_capture(b, raw);
}

static int64_t opset_of(build *b, const build_scope *s, const char *domain) {
    const int64_t *version = map_get(s->opsets, domain);
    if (!version) version = map_get(&b->opsets, domain);
    if (version) return *version;
    if (!*domain)
        build_fail(b, "the model uses operators of ai.onnx, but does not say of which opset; export it again");
    return 1;
}

static node *new_node(build *b, const build_scope *s, const char *name, const char *op_type, size_t inputs,
                      size_t outputs) {
    model *m = b->model;
    if (m->node_count >= BUILD_MAX_NODES)
        build_fail(b, "the model has more than %d nodes when its functions are inlined", BUILD_MAX_NODES);
    node *n = arena_zalloc(b->arena, sizeof *n);
    n->op_type = plain_name(b->arena, op_type);
    n->name = build_name_of_node(b, s, name, n->op_type);
    n->id = m->node_count;
    n->domain = "";
    n->home = s->target->g;
    n->in_count = (int)inputs;
    n->out_count = (int)outputs;
    n->in =
        arena_array(b->arena, tensor *, inputs + outputs + 1); /* out[0] may be looked at even where there is none */
    n->out = n->in + inputs;
    void *items = m->nodes;
    arena_grow(b->arena, &items, &b->node_cap, (size_t)m->node_count, sizeof(node *));
    m->nodes = items;
    m->nodes[m->node_count++] = n;
    graph *g = s->target->g;
    items = g->nodes;
    arena_grow(b->arena, &items, &s->target->node_cap, (size_t)g->node_count, sizeof(node *));
    g->nodes = items;
    g->nodes[g->node_count++] = n;
    return n;
}

static void build_node_output(build *b, const build_scope *s, node *n, int slot, tensor *t) {
    (void)b;
    (void)s;
    n->out[slot] = t;
    t->producer = n;
    t->producer_slot = slot;
}

void build_node_identity(build *b, build_scope *s, const char *name, tensor *in, tensor *out) {
    node *n = new_node(b, s, name, "Identity", 1, 1);
    n->opset = map_get(s->opsets, "") || map_get(&b->opsets, "") ? opset_of(b, s, "") : 1;
    n->def = operators_find("", "Identity");
    n->in[0] = in;
    build_node_output(b, s, n, 0, out);
}

static tensor *input(build *b, const build_scope *s, const build_raw *raw, size_t k) {
    if (!*raw->in[k]) return NULL;
    const build_name *found = build_name_find(s, raw->in[k]);
    if (!found || (!found->t && !found->left_out))
        build_fail(b, "%s: its input '%.200s' is produced by nothing", build_raw_text(b, raw), raw->in[k]);
    return found->t;
}

/* The tensor of an output: the caller's where a function gives it out, otherwise a new one. */
static tensor *output(build *b, build_scope *s, const char *name) {
    build_name *declared = map_get(&s->names, name);
    tensor *t = s->given.count ? map_get(&s->given, name) : NULL;
    if (!t) {
        t = build_graph_tensor(b, s->target, build_name_of_tensor(b, s, name), TENSOR_NODE);
        if (s->stated.count) t->stated = map_get(&s->stated, name);
    }
    declared->t = t;
    return t;
}

/* What a Constant gives out is a constant of the model like any other. */
static void give_blob(build *b, const node *n) {
    static const char prefix[] = "value";
    if (!graph_is(n, "Constant")) return;
    const attr *given = NULL;
    for (int k = 0; k < n->attr_count; k++) {
        const attr *a = &n->attrs[k];
        if (strncmp(a->name, prefix, sizeof prefix - 1) != 0 && strcmp(a->name, "sparse_value") != 0) continue;
        if (given)
            build_fail(b, "node '%.200s' (Constant): has both '%.100s' and '%.100s'; it can have one value only",
                       n->name, given->name, a->name);
        given = a;
    }
    if (!given || given->kind != ATTR_TENSOR || n->out_count != 1 || !n->out[0]) return;
    if (strcmp(given->name, "value") == 0 || strcmp(given->name, "sparse_value") == 0) n->out[0]->blob = given->t->blob;
}

static void build_one(build *b, build_scope *s, const build_raw *raw) { // recursion: bodies and calls, both bounded
    if (raw->function) {
        build_function_inline(b, s, raw);
        return;
    }
    node *n = new_node(b, s, raw->name, raw->op_type, raw->in_count, raw->out_count);
    n->domain = plain_name(b->arena, raw->domain);
    n->opset = opset_of(b, s, raw->domain);
    n->def = operators_find(raw->domain, raw->op_type);
    n->unknown = n->def == NULL;
    for (size_t k = 0; k < raw->in_count; k++) n->in[k] = input(b, s, raw, k);
    for (size_t k = 0; k < raw->out_count; k++)
        if (*raw->out[k]) build_node_output(b, s, n, (int)k, output(b, s, raw->out[k]));
    if (raw->attrs.count) build_attrs(b, s, raw, n);
    give_blob(b, n);
}

void build_nodes(build *b, build_scope *s, const model_list *spans) {
    if (spans->count > BUILD_MAX_NODES)
        build_fail(b, "a graph has %zu nodes; at most %d are read", spans->count, BUILD_MAX_NODES);
    build_raw *raws = arena_array(b->frames, build_raw, spans->count);
    for (size_t k = 0; k < spans->count; k++) {
        if (s->call) build_expand_bound(b);
        read_raw(b, spans->items[k], &raws[k]);
        for (size_t j = 0; j < raws[k].out_count; j++) {
            if (!*raws[k].out[j]) continue;
            if (map_get(&s->names, raws[k].out[j]))
                build_fail(b, "%s: its output '%.200s' has the name of another value of the graph",
                           build_raw_text(b, &raws[k]), raws[k].out[j]);
            build_name_declare(b, s, raws[k].out[j], raws[k].op_type)->producer = (int64_t)k;
        }
    }
    const int64_t *sorted = build_order(b, s, raws, spans->count);
    for (size_t k = 0; k < spans->count; k++) build_one(b, s, &raws[sorted[k]]);
}
