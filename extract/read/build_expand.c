/* What inlining would come to, computed before anything is inlined: ten functions that call each other ten times are a
 * small file and a model of ten thousand million nodes. Cycles of calls are found on the way. And what it does come to:
 * nodes are not all, because a node may be megabytes of fields that are stepped over at every call. */
#include "extract/read/build.h"

#include "common/checked.h"

/* Fields that may be read when all calls are inlined: some hundred thousand nodes of ordinary size, and more. */
static const uint64_t FREE_STEPS = 16 << 20, STEPS_PER_BYTE = 6;

static const uint32_t bodies[] = {5, 6, 1, 0}; /* attribute, graph, node */

static int64_t expand_node(build *b, wire_span span, int depth);

static ProtobufCBinaryData bytes_of(const build *b, wire_span span) {
    return (ProtobufCBinaryData){span.size, (uint8_t *)(uintptr_t)(b->file->base + span.offset)};
}

/* Nodes of the graphs in a message: `path` are the fields that lead to the nodes. Bounded by the wire check. */
static int64_t expand_inside(build *b, wire_span span, const uint32_t *path, int depth) {
    const wire file = model_file_wire(b->file);
    wire_field f;
    int64_t n = 0;
    for (wire w = wire_inside(&file, span); wire_next(&w, &f);) {
        model_file_passed(b->file, f.payload);
        if (f.number != *path || f.type != WIRE_BYTES) continue;
        n = checked_add(n, path[1] ? expand_inside(b, f.payload, path + 1, depth) : expand_node(b, f.payload, depth));
    }
    return n;
}

static int64_t expand_function(build *b, build_function *fn, int depth) {
    if (fn->visit == BUILD_DONE) return fn->expanded;
    if (fn->visit == BUILD_OPEN)
        build_fail(b, "local function '%.200s' calls itself, directly or through others", fn->name);
    if (depth > BUILD_MAX_DEPTH)
        build_fail(b, "local function '%.200s': calls are nested more than %d deep", fn->name, BUILD_MAX_DEPTH);
    fn->visit = BUILD_OPEN;
    build_function_open(b, fn);
    int64_t n = 1; /* a call costs something even where the function is empty */
    for (size_t k = 0; k < fn->nodes.count; k++) n = checked_add(n, expand_node(b, fn->nodes.items[k], depth));
    for (size_t k = 0; k < fn->defaults.count; k++)
        n = checked_add(n, expand_inside(b, fn->defaults.items[k], bodies + 1, depth + 1));
    fn->visit = BUILD_DONE;
    fn->expanded = n;
    return n;
}

static int64_t expand_node(build *b, wire_span span, int depth) {
    const wire file = model_file_wire(b->file);
    const char *name = "", *domain = "", *overload = "";
    wire_field f;
    for (wire w = wire_inside(&file, span); wire_next(&w, &f);) {
        if (f.type != WIRE_BYTES) continue;
        if (f.number == 4) name = build_text(b, bytes_of(b, f.payload), "operator");
        if (f.number == 7) domain = build_domain(b, bytes_of(b, f.payload));
        if (f.number == 8) overload = build_text(b, bytes_of(b, f.payload), "overload");
    }
    build_function *fn = (build_function *)(uintptr_t)build_function_find(b, domain, name, overload);
    return checked_add(fn ? expand_function(b, fn, depth + 1) : 1, expand_inside(b, span, bodies, depth + 1));
}

void build_expand_check(build *b, wire_span main_graph) {
    static const uint32_t nodes[] = {1, 0};
    if (b->functions.count == 0) return;
    const int64_t n = expand_inside(b, main_graph, nodes, 0);
    if (n > BUILD_MAX_NODES)
        build_fail(b, "the model has more than %d nodes when its functions are inlined", BUILD_MAX_NODES);
}

void build_expand_bound(build *b) {
    if (b->file->steps / STEPS_PER_BYTE <= FREE_STEPS / STEPS_PER_BYTE + b->file->size) return;
    build_fail(b, "calls of functions would have too much of the file read repeatedly; inline the functions when "
                  "exporting the model");
}
