/* Owns the making of graphs by hand for the tests of lowering and collecting. */
#include "tests/unit/extract/lowering_fixture.h"

#include "extract/graph/operators.h"

bench b;

void bench_begin(void) {
    memset(&b, 0, sizeof b);
    guard_init(&b.guard);
    arena_init(&b.arena, &b.guard, (size_t)16 << 20);
    b.model = (model){
        .arena = &b.arena, .guard = &b.guard, .path = "m.onnx", .name = "m", .nodes = b.nodes, .tensors = b.tensors};
    b.graph = (graph){.region = "", .times = 1, .times_known = true};
    b.body = (graph){.place = 1, .region = "loop/body", .parent = &b.graph, .times = 3, .times_known = true};
    b.graphs[0] = &b.graph;
    b.graphs[1] = &b.body;
    b.model.graphs = b.graphs;
    b.model.graph_count = 1;
    b.model.main = &b.graph;
}

void bench_end(void) { arena_free(&b.arena); }

#define DIMS(...)                                                                                                      \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

tensor *bench_tensor(dtype type, int rank, const int64_t *dims) {
    tensor *t = arena_zalloc(&b.arena, sizeof *t);
    t->name = "t";
    t->info = info_tensor(&b.arena, type, rank, dims);
    t->home = &b.graph;
    t->place = (int)b.model.tensor_count;
    b.tensors[b.model.tensor_count++] = t;
    return t;
}

tensor *bench_weight(dtype type, int rank, const int64_t *dims) {
    tensor *t = bench_tensor(type, rank, dims);
    t->source = TENSOR_INITIALIZER;
    t->is_constant = true;
    return t;
}

void bench_attr(node *n, attr a) {
    attr *grown = arena_array(&b.arena, attr, n->attr_count + 1);
    for (int k = 0; k < n->attr_count; k++) grown[k] = n->attrs[k];
    grown[n->attr_count++] = a;
    n->attrs = grown;
}

void bench_int(node *n, const char *name, int64_t x) { bench_attr(n, (attr){.name = name, .kind = ATTR_INT, .i = x}); }

void bench_ints(node *n, const char *name, int count, const int64_t *x) {
    int64_t *copy = arena_array(&b.arena, int64_t, count);
    memcpy(copy, x, (size_t)count * sizeof *x);
    bench_attr(n, (attr){.name = name, .kind = ATTR_INTS, .n = count, .ints = copy});
}

node *bench_node(const char *domain, const char *op_type, tensor *out, int in_count, tensor *const *in) {
    node *n = arena_zalloc(&b.arena, sizeof *n);
    n->id = b.model.node_count;
    n->name = arena_printf(&b.arena, "%s_%d", op_type, (int)n->id);
    n->op_type = op_type;
    n->domain = domain;
    n->opset = 20;
    n->def = operators_find(domain, op_type);
    n->home = &b.graph;
    n->in = arena_array(&b.arena, tensor *, in_count);
    n->in_count = in_count;
    for (int k = 0; k < in_count; k++) {
        n->in[k] = in[k];
        if (!in[k]) continue;
        node **users = arena_array(&b.arena, node *, in[k]->user_count + 1);
        for (int u = 0; u < in[k]->user_count; u++) users[u] = in[k]->users[u];
        users[in[k]->user_count++] = n;
        in[k]->users = users;
    }
    n->out = arena_array(&b.arena, tensor *, 1);
    n->out[0] = out;
    n->out_count = 1;
    out->source = TENSOR_NODE;
    out->producer = n;
    b.nodes[b.model.node_count++] = n;
    return n;
}

const work *bench_lower(const node *n, dtype precision) {
    work_list(&b.list, &b.model, precision);
    return work_of(&b.list, n);
}

void bench_costs(const work *w, int64_t macs, int64_t flops, int64_t bytes_read, int64_t bytes_written) {
    UNIT_INT(w->rec.macs, macs);
    UNIT_INT(w->rec.flops, flops);
    UNIT_INT(w->rec.bytes_read, bytes_read);
    UNIT_INT(w->rec.bytes_written, bytes_written);
}

void bench_shape(const work *w, int rank, const int64_t *dims) {
    if (!UNIT_CHECK(w->rec.rank == rank)) return;
    for (int k = 0; k < rank; k++) UNIT_INT(w->rec.shape[k], dims[k]);
}

const char *bench_text(const work *w, const char *name) {
    const opfield *f = oprec_field(&w->rec, name);
    return f && f->kind == OPFIELD_TEXT ? f->text : NULL;
}
