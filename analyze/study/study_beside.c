/* Owns what is read beside a folder's reports: run.json says how its run went and what it was to measure, model.json
 * how long the model takes as a whole, ops.json names the nodes of the model that each operation stands for. */
#include "analyze/study/study_internal.h"

#include "common/files.h"
#include "common/json.h"
#include "common/json_scan.h"
#include "common/plain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of ops.json, which is as large as the model's graph. */
enum { OPS_BYTES = 256 << 20 };

/* An entry of ops.json. */
typedef struct entry {
    const char *id;
    int64_t count;
    const char **nodes, **weights; /* weights: a name for each occurrence */
    size_t node_count, node_cap, weight_count, weight_cap;
} entry;

typedef struct reader {
    study *s;
    json_scan scan;
    bool is_ops; /* its schema is that of operations */
} reader;

/* ---- run.json ---- */

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Parts are in no time of the model, and what was skipped at once has nothing to measure. */
static bool is_asked(const json_t *one, const char *id) {
    return *id && !ends_with(id, "_part") && strcmp(json_get_text(one, "source"), "skipped") != 0;
}

static void take_list(study *s, const json_t *list, const char *key, study_asked **to, size_t *count) {
    *to = arena_array(&s->arena, study_asked, json_array_size(list) + 1);
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *one = json_array_get(list, k);
        const char *id = json_get_text(one, key);
        if (is_asked(one, id))
            (*to)[(*count)++] =
                (study_asked){map_intern(&s->texts, id, strlen(id)), strcmp(json_get_text(one, "source"), "left") == 0};
    }
}

static void take_memory(study *s, const json_t *memory, study_memory *to) {
    const char *const at = json_get_text(memory, "at");
    to->weight_bytes = json_get_int(memory, "weight_bytes", -1);
    to->activation_bytes = json_get_int(memory, "activation_bytes", -1);
    to->least = json_is_true(json_object_get(memory, "least"));
    if (*at && to->weight_bytes >= 0 && to->activation_bytes >= 0) to->at = map_intern(&s->texts, at, strlen(at));
}

static void take_run(study *s, const json_t *run, study_beside *to) {
    const char *state = json_get_text(run, "state");
    to->state = map_intern(&s->texts, state, strlen(state));
    const json_t *const device = json_array_get(json_object_get(run, "devices"), 0);
    const char *const class = json_get_text(device, "class"), *const regime = json_get_text(run, "regime");
    to->device_class = map_intern(&s->texts, class, strlen(class));
    to->regime = map_intern(&s->texts, regime, strlen(regime));
    to->method = json_get_int(run, "method", 0);
    take_memory(s, json_object_get(run, "memory"), &to->memory);
    take_list(s, json_object_get(run, "operations"), "operation", &to->operations, &to->operation_count);
    take_list(s, json_object_get(run, "fusions"), "fusion", &to->fusions, &to->fusion_count);
}

/* ---- ops.json ---- */

static const char *take_text(reader *r) { return map_intern(&r->s->texts, r->scan.text, r->scan.length); }

/* Texts of a list; of objects in it their names. What is neither leaves its place empty. */
static bool take_names(reader *r, json_scan_token token, const char ***to, size_t *count, size_t *cap) {
    if (token != JSON_SCAN_ARRAY) return json_scan_skip(&r->scan, token);
    while ((token = json_scan_next(&r->scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
        const char *name = NULL;
        if (token == JSON_SCAN_TEXT) name = take_text(r);
        while (token == JSON_SCAN_OBJECT) {
            if (json_scan_next(&r->scan) != JSON_SCAN_KEY) break;
            const bool is_name = r->scan.length == 4 && memcmp(r->scan.text, "name", 4) == 0;
            const json_scan_token value = json_scan_next(&r->scan);
            if (is_name && value == JSON_SCAN_TEXT) name = take_text(r);
            if (!json_scan_skip(&r->scan, value)) return false;
        }
        if (token != JSON_SCAN_OBJECT && !json_scan_skip(&r->scan, token)) return false;
        arena_grow(&r->s->arena, (void **)to, cap, *count, sizeof **to);
        (*to)[(*count)++] = name ? name : "";
    }
    return !r->scan.why;
}

static bool is_key(const reader *r, const char *key) {
    return r->scan.length == strlen(key) && memcmp(r->scan.text, key, r->scan.length) == 0;
}

static bool take_entry(reader *r, entry *e) {
    json_scan_token token;
    while ((token = json_scan_next(&r->scan)) == JSON_SCAN_KEY) {
        const bool id = is_key(r, "id"), count = is_key(r, "count"), nodes = is_key(r, "nodes");
        const bool weights = is_key(r, "weights");
        token = json_scan_next(&r->scan);
        if (id && token == JSON_SCAN_TEXT) e->id = take_text(r);
        if (count && token == JSON_SCAN_INT) e->count = json_scan_int(&r->scan);
        const bool good = nodes     ? take_names(r, token, &e->nodes, &e->node_count, &e->node_cap)
                          : weights ? take_names(r, token, &e->weights, &e->weight_count, &e->weight_cap)
                                    : json_scan_skip(&r->scan, token);
        if (!good) return false;
    }
    return token == JSON_SCAN_OBJECT_END;
}

static bool take_entries(reader *r, json_scan_token token, map *to) {
    if (token != JSON_SCAN_ARRAY) return json_scan_skip(&r->scan, token);
    while ((token = json_scan_next(&r->scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
        if (token != JSON_SCAN_OBJECT) {
            if (!json_scan_skip(&r->scan, token)) return false;
            continue;
        }
        entry *e = arena_zalloc(&r->s->arena, sizeof *e);
        if (!take_entry(r, e)) return false;
        if (e->id && e->node_count > 0) *map_put(to, e->id) = e;
    }
    return !r->scan.why;
}

static bool take_root(reader *r, map *entries) {
    json_scan_token token;
    if (json_scan_next(&r->scan) != JSON_SCAN_OBJECT) return false;
    while ((token = json_scan_next(&r->scan)) == JSON_SCAN_KEY) {
        const bool schema = is_key(r, "schema"), ops = is_key(r, "ops");
        token = json_scan_next(&r->scan);
        if (schema && token == JSON_SCAN_TEXT) r->is_ops = is_key(r, "ceiling-scout/ops/1");
        if (!(ops ? take_entries(r, token, entries) : json_scan_skip(&r->scan, token))) return false;
    }
    return token == JSON_SCAN_OBJECT_END;
}

/* Of another schema, or by hand without one: it names nothing of a model. */
static void take_ops(study *s, const char *path, size_t n, study_held *held, study_beside *to) {
    reader r = {.s = s};
    json_scan_begin(&r.scan, held->bytes, n, STUDY_DEPTH);
    map_init(&to->entries, &s->arena);
    if (!take_root(&r, &to->entries) && r.scan.why) {
        size_t line, column;
        json_scan_place(&r.scan, &line, &column);
        study_skip(s, path, arena_printf(&s->arena, "line %zu, column %zu: %s", line, column, r.scan.why));
        r.is_ops = false;
    }
    if (!r.is_ops) map_init(&to->entries, &s->arena);
}

static void read_ops(study *s, const char *reports, study_held *held, study_beside *to) {
    static const char *const places[] = {"/../ops.json", "/ops.json"};
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        const char *path = arena_printf(&s->arena, "%s%s", reports, places[k]);
        status st = {0};
        size_t n = 0;
        if (access(path, F_OK) != 0) continue;
        if (files_is_link(path)) {
            study_skip(s, path, "is a link; put the file itself there");
            continue;
        }
        held->bytes = files_read(path, OPS_BYTES, &n, &st);
        if (held->bytes)
            take_ops(s, path, n, held, to);
        else
            study_skip(s, path, arena_strndup(&s->arena, study_why(st.text, path), strlen(study_why(st.text, path))));
        study_let_go(held);
        return;
    }
}

/* ---- model.json ---- */

/* One that was measured on another device or in another way is of other reports than these. */
static bool is_of(const json_t *model, const study_beside *b) {
    return plain_same(json_get_text(json_object_get(model, "device"), "class"), b->device_class) &&
           plain_same(json_get_text(model, "regime"), b->regime) && json_get_int(model, "method", 0) == b->method;
}

static void read_model(study *s, const char *folder, const char *reports, study_held *held, study_beside *to) {
    status st = {0};
    if (!to->device_class) return;
    held->model = study_beside_report(arena_printf(&s->arena, "%s/", reports), "model", &st);
    if (held->model && is_of(held->model, to)) (void)study_whole_read(held->model, &to->whole, &st);
    if (st.code != STATUS_OK)
        study_skip(s, folder, arena_printf(&s->arena, "%s%s", held->model ? "model.json: " : "", st.text));
    study_let_go(held);
}

/* ---- a folder ---- */

void study_let_go(study_held *held) {
    free(held->bytes);
    json_decref(held->run);
    json_decref(held->model);
    held->bytes = NULL;
    held->run = held->model = NULL;
}

void study_look_beside(study *s, const char *folder, const char *reports, study_held *held, study_beside *to) {
    status st = {0};
    held->run = study_beside_report(arena_printf(&s->arena, "%s/", reports), "run", &st);
    if (held->run) take_run(s, held->run, to);
    if (!held->run && st.code != STATUS_OK) study_skip(s, folder, arena_strndup(&s->arena, st.text, strlen(st.text)));
    study_let_go(held);
    read_model(s, folder, reports, held, to);
    if (s->options.layers) read_ops(s, reports, held, to);
}

/* An entry whose weights differ in their zeros is measured as several operations: what is behind its id says which. */
static const entry *entry_of(study *s, const study_beside *b, const char *id) {
    const entry *e = map_get(&b->entries, id);
    size_t n = strlen(id);
    for (int words = 0; !e && n > 0 && words < 2; n--) words += id[n - 1] == '_';
    return e || n == 0 ? e : map_get(&b->entries, map_intern(&s->texts, id, n));
}

/* Of several occurrences the one whose weight it is, if there is one such; else it is among all of them. */
void study_name_layers(study *s, const study_beside *b, const char *weight, study_report *r) {
    const entry *e = r->fusion || !b->entries.count ? NULL : entry_of(s, b, r->operation);
    if (!e) return;
    r->layers = e->nodes;
    r->layer_count = e->node_count;
    r->layers_among = r->count < e->count;
    const size_t each = e->weight_count > 0 ? e->node_count / e->weight_count : 0;
    const bool alike = each * e->weight_count == e->node_count && e->weight_count > 0 &&
                       e->count % (int64_t)e->weight_count == 0 && e->count / (int64_t)e->weight_count == r->count;
    if (!r->layers_among || !alike) return;
    for (size_t k = 0; k < e->weight_count; k++) {
        if (!plain_same(e->weights[k], weight)) continue;
        r->layers = e->nodes + k * each;
        r->layer_count = each;
        r->layers_among = false;
        return;
    }
}
