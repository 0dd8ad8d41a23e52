/* Local functions: indexed once, inlined wherever they are called. Inside, names mean what the function says; what
 * stays of a call is its path in the names of nodes and tensors. */
#include "extract/read/build.h"

#include <string.h>

/* Field numbers of a function. */
enum { FIELD_NODES = 7, FIELD_OPSETS = 9, FIELD_DEFAULTS = 11 };

enum { STEPS_A_FORMAL = 64 }; /* declaring a name takes as long as reading so many fields */

/* Lengths keep parts apart that could hold any separator. */
static const char *key_of(arena *a, const char *domain, const char *name, const char *overload) {
    return arena_printf(a, "%zu:%s%zu:%s%s", strlen(domain), domain, strlen(name), name, overload);
}

static const char **texts(build *b, size_t n, const ProtobufCBinaryData *items, const char *what) {
    const char **list = arena_array(b->frames, const char *, n);
    for (size_t k = 0; k < n; k++) list[k] = build_text(b, items[k], what);
    return list;
}

static void read_opsets(build *b, build_function *fn, const model_list *list) {
    map_init(&fn->opsets, b->frames);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__Opset *o = model_meta_unpack(b->file, WIRE_OPSET, list->items[k]);
        const char *domain = build_domain(b, o->domain);
        int64_t *version = arena_alloc(b->frames, sizeof *version);
        *version = o->version;
        *map_put(&fn->opsets, domain) = version;
    }
}

/* Attributes by name, once for all references to them. */
static void index_attrs(build *b, map *names, const model_list *list, const char *function) {
    map_init(names, b->frames);
    if (list->count > BUILD_MAX_ATTRS)
        build_fail(b, "local function '%.200s': has %zu attributes; at most %d are read", function, list->count,
                   BUILD_MAX_ATTRS);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__Attribute *a = model_meta_unpack(b->file, WIRE_ATTRIBUTE, list->items[k]);
        const char *name = build_text(b, a->name, "attribute");
        void **place = map_put(names, name);
        if (*place) build_fail(b, "local function '%.200s': attribute '%.100s' is given twice", function, name);
        *place = &list->items[k];
    }
}

/* Only its key: what no call reaches is never decoded. */
static void register_function(build *b, wire_span span) {
    const OnnxMeta__Function *m = model_meta_unpack(b->file, WIRE_FUNCTION, span);
    build_function *fn = arena_zalloc(b->frames, sizeof *fn);
    fn->span = span;
    fn->name = build_text(b, m->name, "function");
    if (!*fn->name) build_fail(b, "a local function at byte %llu has no name", (unsigned long long)span.offset);
    const char *domain = build_domain(b, m->domain);
    void **place = map_put(&b->functions, key_of(b->frames, domain, fn->name, build_text(b, m->overload, "overload")));
    if (*place) build_fail(b, "local function '%.200s' is defined twice", fn->name);
    *place = fn;
}

void build_functions(build *b, const model_list *spans) {
    for (size_t k = 0; k < spans->count; k++) register_function(b, spans->items[k]);
}

void build_function_open(build *b, build_function *fn) {
    const OnnxMeta__Function *m = model_meta_unpack(b->file, WIRE_FUNCTION, fn->span);
    fn->in = texts(b, m->n_input, m->input, "input");
    fn->out = texts(b, m->n_output, m->output, "output");
    fn->in_count = m->n_input;
    fn->out_count = m->n_output;
    model_index index;
    model_meta_index(b->file, b->frames, WIRE_FUNCTION, fn->span, &index);
    fn->nodes = index.fields[FIELD_NODES];
    fn->defaults = index.fields[FIELD_DEFAULTS];
    read_opsets(b, fn, &index.fields[FIELD_OPSETS]);
    index_attrs(b, &fn->default_spans, &fn->defaults, fn->name);
}

const build_function *build_function_find(build *b, const char *domain, const char *name, const char *overload) {
    char key[512];
    const size_t n =
        (size_t)snprintf(key, sizeof key, "%zu:%s%zu:%s%s", strlen(domain), domain, strlen(name), name, overload);
    if (n < sizeof key) return map_get(&b->functions, key);
    return map_get(&b->functions, key_of(b->frames, domain, name, overload));
}

bool build_function_attr(build *b, const build_call *call, const char *name, wire_span *span,
                         const build_scope **scope) {
    build_expand_bound(b);
    const wire_span *found = map_get(&call->attrs, name);
    if (found) {
        *span = *found;
        *scope = call->scope;
        return true;
    }
    found = map_get(&call->function->default_spans, name);
    if (!found) return false;
    build_scope *outside = arena_zalloc(b->frames, sizeof *outside); /* a default refers to nothing */
    *outside = *call->scope;
    outside->call = NULL;
    outside->outer = NULL;
    outside->opsets = &call->function->opsets;
    map_init(&outside->names, b->frames);
    *span = *found;
    *scope = outside;
    return true;
}

static void bind_formals(build *b, build_scope *inner, const build_scope *s, const build_raw *raw) {
    const build_function *fn = raw->function;
    if (raw->in_count > fn->in_count)
        build_fail(b, "%s: calls a function of %zu inputs with %zu", build_raw_text(b, raw), fn->in_count,
                   raw->in_count);
    b->file->steps += fn->in_count * STEPS_A_FORMAL;
    for (size_t k = 0; k < fn->in_count; k++) {
        if (!*fn->in[k]) build_fail(b, "local function '%.200s': an input has no name", fn->name);
        build_name *formal = build_name_declare(b, inner, fn->in[k], fn->name);
        formal->left_out = true;
        if (k >= raw->in_count || !*raw->in[k]) continue;
        const build_name *actual = build_name_find(s, raw->in[k]);
        if (!actual || (!actual->t && !actual->left_out))
            build_fail(b, "%s: its input '%.200s' is produced by nothing", build_raw_text(b, raw), raw->in[k]);
        formal->t = actual->t;
        formal->left_out = actual->t == NULL;
    }
}

/* The caller's tensors stand for the function's outputs from the start, so that inlining leaves no copies behind. */
static void give_outputs(build *b, build_scope *inner, build_scope *s, const build_raw *raw) {
    const build_function *fn = raw->function;
    if (raw->out_count > fn->out_count)
        build_fail(b, "%s: takes %zu outputs of a function that has %zu", build_raw_text(b, raw), raw->out_count,
                   fn->out_count);
    for (size_t k = 0; k < raw->out_count; k++) {
        if (!*raw->out[k]) continue;
        build_name *name = map_get(&s->names, raw->out[k]);
        tensor *t = s->given.count ? map_get(&s->given, raw->out[k]) : NULL;
        if (!t) t = build_graph_tensor(b, s->target, build_name_of_tensor(b, s, raw->out[k]), TENSOR_NODE);
        if (s->stated.count && !t->stated) t->stated = map_get(&s->stated, raw->out[k]);
        name->t = t;
        void **place = map_put(&inner->given, fn->out[k]);
        if (!*place) *place = t;
    }
}

/* Outputs that no node of the function produced: inputs that it passes on, or values it gives out twice. */
static void pass_outputs(build *b, build_scope *inner, const build_scope *s, const build_raw *raw) {
    const build_function *fn = raw->function;
    for (size_t k = 0; k < raw->out_count; k++) {
        if (!*raw->out[k]) continue;
        tensor *t = ((const build_name *)map_get(&s->names, raw->out[k]))->t;
        if (t->producer) continue;
        const build_name *from = map_get(&inner->names, fn->out[k]);
        if (!from || !from->t || from->t == t)
            build_fail(b, "local function '%.200s': its output '%.200s' is produced by nothing", fn->name, fn->out[k]);
        build_node_identity(b, inner, "", from->t, t);
    }
}

void build_function_inline(build *b, build_scope *s, const build_raw *raw) { // recursion: calls, bounded here
    const build_function *fn = raw->function;
    build_call call = {.function = fn, .scope = s, .raw = raw};
    if (s->depth >= BUILD_MAX_DEPTH)
        build_fail(b, "local function '%.200s': calls are nested more than %d deep", fn->name, BUILD_MAX_DEPTH);
    if (++b->calls > BUILD_MAX_NODES)
        build_fail(b, "the model has more than %d calls of functions when they are inlined", BUILD_MAX_NODES);
    const arena_mark mark = arena_save(b->frames);
    index_attrs(b, &call.attrs, &raw->attrs, fn->name);
    build_scope inner = {.target = s->target, .call = &call, .opsets = &fn->opsets, .depth = s->depth + 1};
    const char *name =
        *raw->name ? raw->name : arena_printf(b->arena, "%s_%lld", fn->name, (long long)b->model->node_count);
    inner.node_prefix = arena_printf(b->arena, "%s/", build_name_joined(b, s->node_prefix, name));
    inner.tensor_prefix = arena_printf(b->arena, "%s/", build_name_joined(b, s->tensor_prefix, name));
    map_init(&inner.names, b->frames);
    map_init(&inner.stated, b->frames);
    map_init(&inner.given, b->frames);
    bind_formals(b, &inner, s, raw);
    give_outputs(b, &inner, s, raw);
    build_nodes(b, &inner, &fn->nodes);
    pass_outputs(b, &inner, s, raw);
    arena_rewind(b->frames, mark);
}
