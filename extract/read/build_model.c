/* From a mapped file to a model: checked, indexed, its graphs built, and at the end linked: each tensor to its users.
 */
#include "extract/read/build.h"

#include <string.h>

enum { OLDEST_OPSET = 7, NEWEST_OPSET = 28 }; /* of ai.onnx, between which operators are known */

/* Field numbers of a model. */
enum { FIELD_GRAPH = 7, FIELD_OPSETS = 8, FIELD_FUNCTIONS = 25 };

static const char *name_of(arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t n = strlen(name);
    return arena_strndup(a, name, n > 5 && strcmp(name + n - 5, ".onnx") == 0 ? n - 5 : n);
}

static void read_opsets(build *b, const model_list *list) {
    map_init(&b->opsets, b->arena);
    for (size_t k = 0; k < list->count; k++) {
        const OnnxMeta__Opset *o = model_meta_unpack(b->file, WIRE_OPSET, list->items[k]);
        const char *domain = build_domain(b, o->domain);
        if (o->version < 0)
            build_fail(b, "opset %lld of domain '%.100s' does not exist", (long long)o->version, domain);
        int64_t *version = arena_alloc(b->arena, sizeof *version);
        *version = o->version;
        void **place = map_put(&b->opsets, domain);
        if (*place && *(int64_t *)*place != o->version)
            build_fail(b, "opset of domain '%.100s' is imported in two versions", domain);
        *place = version;
        if (!*domain) b->model->opset = o->version;
    }
    const long long opset = b->model->opset;
    if (opset > NEWEST_OPSET)
        graph_warn(b->model, "opset %lld is newer than the newest known, %d; operators are read as in that one", opset,
                   NEWEST_OPSET);
    if (opset > 0 && opset < OLDEST_OPSET)
        graph_warn(b->model, "opset %lld is older than the oldest supported, %d; results may be incomplete", opset,
                   OLDEST_OPSET);
}

static model *new_model(arena *a, model_file *f, const wire_span whole) {
    const OnnxMeta__Model *meta = model_meta_unpack(f, WIRE_MODEL, whole);
    model *m = arena_zalloc(a, sizeof *m);
    m->arena = a;
    m->guard = a->guard;
    m->path = arena_strndup(a, f->path, strlen(f->path));
    m->name = f->name ? f->name : name_of(a, f->path);
    m->ir_version = meta->has_ir_version ? meta->ir_version : 0;
    m->file = f;
    return m;
}

static const char *producer(build *b, wire_span whole) {
    const OnnxMeta__Model *meta = model_meta_unpack(b->file, WIRE_MODEL, whole);
    const char *name = build_text(b, meta->producer_name, "producer");
    const char *version = build_text(b, meta->producer_version, "producer version");
    return *version ? arena_printf(b->arena, "%s %s", name, version) : name;
}

model *read_model(arena *a, model_file *f, const read_options *options) {
    const wire whole = model_file_wire(f);
    const wire_span span = {0, f->size};
    model_file_refuse_others(f);
    wire_schema_check(&whole, model_file_passed, f);
    arena_alloc(&f->frames, 1); /* keeps the first chunk when rewinding */
    const arena_mark mark = arena_save(&f->frames);
    build b = {.model = new_model(a, f, span), .file = f, .arena = a, .frames = &f->frames};
    build_strings_init(&b.strings, &f->tables);
    build_strings_init(&b.node_names, &f->tables);
    map_init(&b.functions, &f->frames);
    bind_init(&b.bind, b.model, options);
    external_init(&b.external, a, b.model->path);
    b.model->producer = producer(&b, span);
    model_index index;
    model_meta_index(f, &f->frames, WIRE_MODEL, span, &index);
    const model_list *graphs = &index.fields[FIELD_GRAPH];
    if (graphs->count != 1)
        build_fail(&b,
                   graphs->count ? "the model has %zu graphs, not one"
                                 : "there is no graph in it (%zu); is this an ONNX model?",
                   graphs->count);
    read_opsets(&b, &index.fields[FIELD_OPSETS]);
    build_functions(&b, &index.fields[FIELD_FUNCTIONS]);
    build_expand_check(&b, graphs->items[0]);
    b.model->main = build_graph_main(&b, graphs->items[0]);
    graph_link_users(b.model);
    b.model->external = b.external.names;
    b.model->external_count = b.external.count;
    arena_rewind(&f->frames, mark);
    arena_free(&f->tables);
    model_file_rest(f);
    return b.model;
}
