/* Reads ops.json, or its hand-written short form where a file says no schema, and tells what of it cannot be measured
 * whatever the device. */
#include "scout/input/operation_internal.h"

#include "common/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID_LONGEST = 200, REASON_LONGEST = 400, MOST_ENTRIES = 100000 /* each takes a kilobyte and a half here */ };

/* ---- what has no time of its own ---- */

static void skip(operation *o, const char *code, const char *text) {
    if (o->skip_code) return;
    o->skip_code = code;
    o->skip_text = text;
}

bool operation_is_free(const oprec *rec) {
    static const char *const whats[] = {"view", "folded", "control"};
    if (rec->kind != OP_MOVE || !rec->what) return false;
    for (size_t k = 0; k < sizeof whats / sizeof *whats; k++)
        if (strcmp(rec->what, whats[k]) == 0) return true;
    return false;
}

static bool is_empty(const oprec *rec) {
    for (int k = 0; rec->shape && k < rec->rank; k++)
        if (rec->shape[k] == 0) return true;
    return rec->kind == OP_GEMM && oprec_int(rec, "batch", 1) == 0;
}

static bool is_huge(const oprec *rec) {
    for (int k = 0; rec->shape && k < rec->rank; k++)
        if (rec->shape[k] > operation_max_dim) return true;
    return rec->kind == OP_GEMM && oprec_int(rec, "batch", 1) > operation_max_dim;
}

/* ---- why a shape is not known ---- */

/* Nodes to the reasons that extract_ops had. Cut anywhere a text may end within a letter: one that is too long is left
 * out. */
static void read_reasons(operation_reader *r, const json_t *root, map *reasons) {
    const json_t *unresolved = json_object_get(json_object_get(root, "coverage"), "unresolved");
    map_init(reasons, r->arena);
    for (size_t k = 0; k < json_array_size(unresolved); k++) {
        const char *node = json_string_value(json_object_get(json_array_get(unresolved, k), "node"));
        const char *why = json_string_value(json_object_get(json_array_get(unresolved, k), "why"));
        if (node && why && strlen(why) <= REASON_LONGEST) *map_put(reasons, node) = (void *)why;
    }
}

/* The reason of the node that `why` says another follows from; NULL where it says something else. */
static const char *reason_before(arena *a, const map *reasons, const char *why) {
    static const char follows[] = "follows from node '";
    const size_t begin = sizeof follows - 1, n = strlen(why);
    if (strncmp(why, follows, begin) != 0 || n <= begin || why[n - 1] != '\'') return NULL;
    return map_get(reasons, arena_strndup(a, why + begin, n - begin - 1));
}

/* Most nodes follow from another, and only the first one's reason says something. */
static const char *reason_behind(arena *a, const map *reasons, const char *why) {
    enum { STEPS = 8 };
    const char *last = NULL, *before;
    for (int k = 0; k < STEPS && (before = reason_before(a, reasons, why)); k++) {
        last = why;
        why = before;
    }
    if (last) return arena_printf(a, "it %s: %s", last, why);
    return strncmp(why, "follows ", 8) == 0 ? arena_printf(a, "it %s", why) : why;
}

static const char *shape_reason(arena *a, const map *reasons, const json_t *entry) {
    const json_t *nodes = json_object_get(entry, "nodes");
    for (size_t k = 0; reasons && k < json_array_size(nodes); k++) {
        const char *node = json_string_value(json_array_get(nodes, k));
        const char *why = node ? map_get(reasons, node) : NULL;
        if (why) return arena_printf(a, "its shape is not known: %s", reason_behind(a, reasons, why));
    }
    return "its shape is not known: where no data decide it, bind the model's dimensions and extract again";
}

/* Lists from before these were told apart: what is left of such an entry is not all of its work. */
static bool is_old(const operation *o) {
    static const char *const fields[] = {"projection", "packed", "rotary"};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        if (o->rec.kind == OP_ATTENTION && json_object_get(o->source, fields[k])) return true;
    return false;
}

static void mark_skipped(arena *a, operation *o, const map *reasons) {
    const oprec *rec = &o->rec;
    if (is_old(o)) skip(o, "unresolved", "this list is older than the program: extract the model again");
    if (operation_is_free(rec))
        skip(o, "no_work", "it moves no data: a view, control, or computed when the model is loaded");
    if (rec->kind == OP_UNKNOWN)
        skip(o, "no_candidate",
             arena_printf(a, "the operator %.80s is not known", rec->what ? rec->what : "of this entry"));
    if (!rec->shape && !o->skip_code) skip(o, "unresolved", shape_reason(a, reasons, o->source));
    if (rec->type == DTYPE_NONE && rec->kind == OP_GEMM)
        skip(o, "unresolved", "its dtype is not known: add it, or give --precision");
    if (is_empty(rec)) skip(o, "no_work", "one of its dimensions is 0");
    if (is_huge(rec)) skip(o, "no_candidate", "one of its dimensions is larger than any device's memory");
}

/* ---- ops.json ---- */

static bool safe_id(const char *id) {
    return id[0] != '.' && strlen(id) <= ID_LONGEST &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == strlen(id);
}

static void claim(const operation_reader *r, map *ids, const char *id) {
    void **place = map_put(ids, id);
    if (*place) operation_fail(r, "two entries have this id");
    *place = ids;
}

static void read_entry(operation_reader *r, json_t *entry, map *ids, const map *reasons, operation *out) {
    r->entry = "";
    if (!json_is_object(entry)) operation_fail(r, "an entry of ops must be an object");
    *out = (operation){.id = operation_text(r, entry, "id"), .source = entry};
    if (!out->id || !*out->id) operation_fail(r, "an entry of ops has no id");
    r->entry = out->name = out->id;
    if (!safe_id(out->id)) operation_fail(r, "this id cannot be a file name");
    claim(r, ids, out->id);
    operation_read_record(r, entry, 0, &out->rec);
    out->rec.type = operation_dtype(r, entry, "dtype");
    operation_read_fields(r, entry, &out->rec);
    operation_read_costs(r, entry, &out->rec);
    operation_settle_block_mask(r, &out->rec);
    out->count = operation_number(r, entry, "count", 0, INT64_MAX, 1);
    operation_read_sparsity(r, entry, NULL, out);
    const operation_precision_row *row = r->precision ? operation_find_precision(r->precision) : NULL;
    if (row && out->rec.type == DTYPE_NONE && out->rec.shape) out->rec.type = row->type;
    if (out->rec.shape && !is_huge(&out->rec)) {
        operation_check_record(r, &out->rec);
        if (oprec_field(&out->rec, "block_mask"))
            operation_cost_attention(&out->rec); /* may have been written of a dense one */
    }
    operation_check_sparsity(r, out);
    mark_skipped(r->arena, out, reasons);
}

static operation *make_room(const operation_reader *r, size_t entries) {
    if (entries > MOST_ENTRIES) operation_fail(r, "it has %zu operations; %d is the most", entries, MOST_ENTRIES);
    return arena_array(r->arena, operation, entries + 1);
}

static void read_long(operation_reader *r, size_t graph_length, operation_list *list) {
    status st;
    map ids, reasons;
    if (!json_check_schema(list->root, "ops", 1, r->where, &st)) guard_fail(r->arena->guard, st.code, "%s", st.text);
    const json_t *ops = json_object_get(list->root, "ops");
    const char *name = operation_text(r, json_object_get(list->root, "model"), "name");
    if (!json_is_array(ops)) operation_fail(r, "it has no list of operations (\"ops\")");
    list->model = name ? name : "";
    list->items = make_room(r, json_array_size(ops));
    map_init(&ids, r->arena);
    read_reasons(r, list->root, &reasons);
    for (size_t k = 0; k < json_array_size(ops); k++) {
        read_entry(r, json_array_get(ops, k), &ids, &reasons, &list->items[k]);
        list->count++;
    }
    r->entry = "";
    const json_t *graph = json_object_get(list->root, "graph");
    if (list->graph) operation_read_graph(r, list->graph, graph_length, list);
    if (!list->graph && graph && !json_is_null(graph))
        operation_fail(r, "graph is not an object with tensors and occurrences; extract the operations again");
    free(list->graph);
    list->graph = NULL;
}

/* ---- the short form ---- */

/* The name where a file can be called so and no other is, else the record's id. */
static const char *short_id(arena *a, map *ids, const operation *o) {
    const bool named = *o->name && safe_id(o->name) && !map_get(ids, o->name);
    return map_unique(ids, named ? o->name : oprec_id(&o->rec, a));
}

static void read_short(operation_reader *r, operation_list *list) {
    const char *name;
    json_t *entry;
    map ids;
    list->model = "";
    list->items = make_room(r, json_object_size(list->root));
    map_init(&ids, r->arena);
    json_object_foreach(list->root, name, entry) {
        operation *o = &list->items[list->count];
        if (!*name) operation_fail(r, "an operation has an empty name");
        operation_read_short(r, arena_strndup(r->arena, name, strlen(name)), entry, o);
        o->id = short_id(r->arena, &ids, o);
        mark_skipped(r->arena, o, NULL);
        list->count++;
    }
    r->entry = "";
    if (list->count == 0) operation_fail(r, "it names no operation");
    operation_read_inputs(r, list);
}

/* A file that is called as one, and there. */
static bool is_model(const char *path) {
    const size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".onnx") == 0 && access(path, F_OK) == 0;
}

static void read_from(operation_reader *r, const char *path, operation_list *list) {
    arena *const a = r->arena;
    status st;
    *list = (operation_list){.items = NULL};
    size_t graph_length;
    list->root = json_read_apart(path, NULL, "graph", &list->graph, &graph_length, &st);
    if (!list->root && is_model(path))
        operation_fail(r, "a model is not read here; extract its operations first: extract_ops %s -o ops.json", path);
    if (!list->root) guard_fail(a->guard, st.code, "%s", st.text);
    if (!json_is_object(list->root)) operation_fail(r, "it must be an object: ops.json, or names of operations");
    if (json_object_get(list->root, "schema"))
        read_long(r, graph_length, list);
    else
        read_short(r, list);
}

void operation_read(const char *path, const char *precision, arena *a, operation_list *list) {
    operation_reader r = {.arena = a, .where = path, .entry = "", .code = STATUS_INPUT, .precision = precision};
    operation_check_precision(&r, precision);
    read_from(&r, path, list);
}

void operation_read_whole(const char *path, arena *a, operation_list *list) {
    operation_reader r = {.arena = a, .where = path, .entry = "", .code = STATUS_INPUT, .whole = true};
    read_from(&r, path, list);
}

/* ---- the command line ---- */

/* "8192,8192,147456", also with x between. */
static json_t *shape_of_words(const operation_reader *r, json_builder *b, const char *shape) {
    json_t *array = json_new_array(b);
    const char *at = shape;
    for (;;) {
        char *end = NULL;
        const bool digits = *at >= '0' && *at <= '9' && strspn(at, "0123456789") <= 18;
        const long long n = digits ? strtoll(at, &end, 10) : 0;
        if (digits) json_push_int(b, array, n);
        if (digits && !*end) return array;
        if (!digits || (*end != ',' && *end != 'x')) {
            json_decref(array);
            operation_fail(r, "dimensions are whole numbers with commas between, as in 4096,4096,4096");
        }
        at = end + 1;
    }
}

static bool is_whole(const char *text) {
    const size_t n = strspn(text, "0123456789");
    return n > 0 && n <= 18 && (text[n] == 0 || text[n] == ',');
}

static bool is_list(const char *text) {
    for (; is_whole(text); text++) {
        text += strspn(text, "0123456789");
        if (*text == 0) return true;
    }
    return false;
}

void operation_put_value(json_builder *b, json_t *entry, const char *name, const char *text) {
    char *end = NULL;
    const double x = strtod(text, &end);
    if (is_list(text) && !strchr(text, ',')) {
        json_put_int(b, entry, name, strtoll(text, NULL, 10));
    } else if (is_list(text)) {
        json_t *list = json_new_array(b);
        for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            json_push_int(b, list, strtoll(at, NULL, 10));
        json_put(b, entry, name, list);
    } else if (!*end && isfinite(x)) {
        json_put_real(b, entry, name, x);
    } else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        json_put_bool(b, entry, name, strcmp(text, "true") == 0);
    } else {
        json_put_text(b, entry, name, text);
    }
}

void operation_put_sets(const operation_reader *r, json_builder *b, json_t *entry) {
    for (int k = 0; k < r->set_count; k++) {
        const char *const equals = strchr(r->sets[k], '=');
        const char *const name = arena_strndup(r->arena, r->sets[k], (size_t)(equals - r->sets[k]));
        if (json_object_get(entry, name)) operation_fail(r, "%.60s is given twice", name);
        operation_put_value(b, entry, name, equals + 1);
    }
}

void operation_read_words(operation_reader *r, const char *kind, const char *shape, double sparsity,
                          const char *pattern, operation_list *list) {
    arena *const a = r->arena;
    json_builder b = {NULL};
    status st;
    *list = (operation_list){.model = ""};
    operation_check_precision(r, r->precision);
    json_t *dims = shape_of_words(r, &b, shape), *entry = json_new_object(&b);
    list->root = json_new_object(&b);
    json_put_text(&b, entry, "op", kind);
    json_put(&b, entry, "shape", dims);
    if (sparsity != 0) json_put_real(&b, entry, "sparsity", sparsity);
    if (pattern) json_put_text(&b, entry, "pattern", pattern);
    operation_put_sets(r, &b, entry);
    json_put(&b, list->root, "operation", entry);
    list->root = json_finish(&b, list->root, &st);
    if (!list->root) guard_fail(a->guard, st.code, "%s", st.text);
    list->items = arena_array(a, operation, 1);
    operation_read_short(r, "", entry, &list->items[0]);
    list->items[0].id = oprec_id(&list->items[0].rec, a);
    list->items[0].name = arena_strndup(a, kind, strlen(kind));
    list->count = 1;
}

void operation_from_words(const char *kind, const char *shape, const char *precision, double sparsity,
                          const char *pattern, arena *a, operation_list *list) {
    operation_reader r = {.arena = a, .entry = "", .code = STATUS_USAGE, .precision = precision};
    r.where = arena_printf(a, "--op %.60s --shape %.120s", kind, shape);
    operation_read_words(&r, kind, shape, sparsity, pattern, list);
}
