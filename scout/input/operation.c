/* Operations as the run, the wire and the kinds see them: precisions by name, keys, and their form between processes.
 * Reading them from files is in operation_read.c, the hand-written form in operation_short.c. */
#include "scout/input/operation_internal.h"

#include "common/checked.h"
#include "scout/input/weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a precision means for a product. 8-bit products want the weight as [N,K] in the libraries, and int4 is stored
 * so.
 */
static const operation_precision_row precisions[] = {
    {"fp32", DTYPE_FP32, DTYPE_FP32, DTYPE_NONE, NULL, "nn", 0},
    {"tf32", DTYPE_FP32, DTYPE_FP32, DTYPE_NONE, "tf32", "nn", 0},
    {"fp16", DTYPE_FP16, DTYPE_FP16, DTYPE_NONE, NULL, "nn", 0},
    {"bf16", DTYPE_BF16, DTYPE_BF16, DTYPE_NONE, NULL, "nn", 0},
    {"fp8", DTYPE_FP8E4M3FN, DTYPE_FP8E4M3FN, DTYPE_BF16, NULL, "nt", 0},
    {"int8", DTYPE_INT8, DTYPE_INT8, DTYPE_INT32, NULL, "nt", 0},
    {"int4", DTYPE_FP16, DTYPE_INT4, DTYPE_NONE, NULL, "nt", 128},
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

const operation_precision_row *operation_find_precision(const char *name) {
    for (int k = 0; k < PRECISIONS; k++)
        if (strcmp(precisions[k].name, name) == 0) return &precisions[k];
    return NULL;
}

void operation_check_precision(const operation_reader *r, const char *name) {
    if (!name || operation_find_precision(name)) return;
    const char *known = precisions[0].name;
    for (int k = 1; k < PRECISIONS; k++) known = arena_printf(r->arena, "%s, %s", known, precisions[k].name);
    guard_fail(r->arena->guard, STATUS_USAGE, "precision %s is not known; known are: %s", name, known);
}

const char *operation_precision(const operation *o) {
    const oprec *rec = &o->rec;
    const opfield *math = oprec_field(rec, "math");
    if (rec->weight_type == DTYPE_INT4 || rec->weight_type == DTYPE_UINT4) return "int4";
    if (rec->type == DTYPE_FP32 && math && math->kind == OPFIELD_TEXT && strcmp(math->text, "tf32") == 0) return "tf32";
    if (rec->type == DTYPE_UINT8) return "int8";
    if (rec->type == DTYPE_FP8E5M2) return "fp8";
    for (int k = 0; k < PRECISIONS; k++)
        if (precisions[k].type == rec->type && !precisions[k].math) return precisions[k].name;
    return dtype_get(rec->type)->name;
}

char *operation_key(const operation *o, arena *a) {
    char *key = oprec_key(&o->rec, a);
    if (o->sparsity > 0) key = arena_printf(a, "%s;sparsity=%.9g;sparse_pattern=%s", key, o->sparsity, o->pattern);
    if (o->sparse_block) key = arena_printf(a, "%s;sparse_block=%d", key, o->sparse_block);
    if (o->threshold > 0) key = arena_printf(a, "%s;weight_threshold=%.9g", key, o->threshold);
    return o->weight ? arena_printf(a, "%s;zeros=%016" PRIx64, key, o->zeros_hash) : key;
}

void operation_list_free(operation_list *list) {
    if (!list) return;
    json_decref(list->root);
    free(list->graph);
    *list = (operation_list){.items = NULL};
}

/* ---- between processes ---- */

static void put_text(json_builder *b, json_t *object, const char *name, const char *text) {
    if (text) json_put_text(b, object, name, text);
}

static void put_dtype(json_builder *b, json_t *object, const char *name, dtype type) {
    if (type != DTYPE_NONE) json_put_text(b, object, name, dtype_get(type)->name);
}

static void put_field(json_builder *b, json_t *object, const opfield *f) {
    switch (f->kind) {
    case OPFIELD_INT: json_put_int(b, object, f->name, f->i); break;
    case OPFIELD_INTS: json_put(b, object, f->name, json_new_ints(b, f->n, f->ints)); break;
    case OPFIELD_TEXT: json_put_text(b, object, f->name, f->text ? f->text : ""); break;
    case OPFIELD_REAL: json_put_real(b, object, f->name, f->real); break;
    }
}

static json_t *weight_to_json(const operation *o, json_builder *b) {
    json_t *to = json_new_object(b);
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, o->zeros_hash);
    json_put_text(b, to, "model", o->weight->model);
    json_put_text(b, to, "file", o->weight->file);
    json_put_text(b, to, "name", o->weight->name);
    json_put_int(b, to, "offset", o->weight->offset);
    json_put_int(b, to, "length", o->weight->length);
    json_put_text(b, to, "zeros_hash", hash);
    return to;
}

static void weight_from_json(const operation_reader *r, const json_t *from, operation *out) {
    if (!json_is_object(from)) return;
    weights_place *at = arena_array(r->arena, weights_place, 1);
    at->model = operation_text(r, from, "model");
    at->file = operation_text(r, from, "file");
    at->name = operation_text(r, from, "name");
    at->offset = operation_number(r, from, "offset", 0, INT64_MAX, 0);
    at->length = operation_number(r, from, "length", 0, INT64_MAX, 0);
    const char *hash = operation_text(r, from, "zeros_hash");
    if (!at->model || !at->file || !at->name || !hash) operation_fail(r, "its weight's place is incomplete");
    out->zeros_hash = strtoull(hash, NULL, 16);
    out->weight = at;
}

static void put_bits(json_builder *b, json_t *to, const char *name, uint64_t bits) {
    json_t *list = json_new_array(b);
    for (int k = 0; k < 64; k++)
        if (bits >> k & 1) json_push_int(b, list, k);
    json_put(b, to, name, list);
}

static uint64_t bits_of(const json_t *list) {
    uint64_t bits = 0;
    for (size_t k = 0; k < json_array_size(list); k++)
        bits |= UINT64_C(1) << (json_integer_value(json_array_get(list, k)) & 63);
    return bits;
}

json_t *operation_to_json(const operation *o, json_builder *b) {
    const oprec *rec = &o->rec;
    json_t *object = json_new_object(b), *fields = json_new_object(b);
    json_put_text(b, object, "id", o->id);
    json_put_text(b, object, "name", o->name);
    json_put_text(b, object, "op", oprec_kind_name(rec->kind));
    put_text(b, object, "what", rec->what);
    if (rec->shape) json_put(b, object, "shape", json_new_ints(b, rec->rank, rec->shape));
    put_text(b, object, "layout", rec->layout);
    put_text(b, object, "mask", rec->mask);
    put_dtype(b, object, "dtype", rec->type);
    put_dtype(b, object, "weight_dtype", rec->weight_type);
    put_dtype(b, object, "out_dtype", rec->out_type);
    for (int k = 0; k < rec->field_count; k++) put_field(b, fields, &rec->fields[k]);
    json_put(b, object, "fields", fields);
    json_put_int(b, object, "count", o->count);
    json_put_int(b, object, "macs", rec->macs);
    json_put_int(b, object, "flops", rec->flops);
    json_put_int(b, object, "bytes_read", rec->bytes_read);
    json_put_int(b, object, "bytes_written", rec->bytes_written);
    if (o->sparsity > 0) json_put_real(b, object, "sparsity", o->sparsity);
    if (o->sparse_block) json_put_int(b, object, "sparse_block", o->sparse_block);
    if (o->threshold > 0) json_put_real(b, object, "weight_threshold", o->threshold);
    put_text(b, object, "pattern", o->pattern);
    if (o->handed > 0) {
        put_bits(b, object, "written", o->written);
        put_bits(b, object, "distant", o->distant);
        json_put_real(b, object, "handed", o->handed);
        json_put_real(b, object, "crowd_written", o->crowd_written);
    }
    if (o->weight) json_put(b, object, "weight", weight_to_json(o, b));
    put_text(b, object, "skip_code", o->skip_code);
    put_text(b, object, "skip_text", o->skip_text);
    return object;
}

void operation_from_json(const json_t *o, arena *a, operation *out) {
    operation_reader r = {.arena = a, .where = "job", .entry = "", .code = STATUS_INPUT};
    *out = (operation){.id = NULL};
    if (!json_is_object(o)) operation_fail(&r, "an operation must be an object");
    out->id = operation_text(&r, o, "id");
    if (!out->id) operation_fail(&r, "an operation has no id");
    r.entry = out->id;
    out->name = operation_text(&r, o, "name");
    if (!out->name) out->name = out->id;
    operation_read_record(&r, o, 0, &out->rec);
    out->rec.type = operation_dtype(&r, o, "dtype");
    operation_read_fields(&r, json_object_get(o, "fields"), &out->rec);
    operation_read_costs(&r, o, &out->rec);
    if (out->rec.shape) operation_check_record(&r, &out->rec);
    out->count = operation_number(&r, o, "count", 0, INT64_MAX, 1);
    operation_read_sparsity(&r, o, operation_text(&r, o, "pattern"), out);
    out->threshold = json_number_value(json_object_get(o, "weight_threshold"));
    out->written = bits_of(json_object_get(o, "written"));
    out->distant = bits_of(json_object_get(o, "distant"));
    out->handed = json_number_value(json_object_get(o, "handed"));
    out->crowd_written = json_number_value(json_object_get(o, "crowd_written"));
    weight_from_json(&r, json_object_get(o, "weight"), out);
    out->skip_code = operation_text(&r, o, "skip_code");
    out->skip_text = operation_text(&r, o, "skip_text");
}

uint32_t operation_left(const operation *o, uint32_t tensor) {
    const uint64_t bit = tensor < 64 ? UINT64_C(1) << tensor : 0;
    return o->distant & bit ? SCOUT_LEFT_DISTANT : o->written & bit ? SCOUT_LEFT_WRITTEN : SCOUT_LEFT_ALIKE;
}

int64_t operation_heads(const operation *o) {
    if (o->rec.kind != OP_ATTENTION || o->rec.rank != 4) return 0;
    return checked_mul(o->rec.shape[0], o->rec.shape[1]);
}
