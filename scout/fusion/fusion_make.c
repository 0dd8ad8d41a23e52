/* The table of patterns: how the operation that does several at once is made from them. What was recognised when the
 * model was read is an operation already; everything else is made of the parts' entries. */
#include "scout/fusion/fusion_internal.h"

#include "common/checked.h"
#include "scout/kinds/kinds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *pattern;
    bool (*make)(fusion_maker *m);
} patterns[] = {
    {"gemm+bias", fusion_fold},
    {"gemm+relu", fusion_fold},
    {"gemm+gelu", fusion_fold},
    {"gemm+silu", fusion_fold},
    {"gemm+residual", fusion_fold},
    {"conv+activation", fusion_fold},
    {"conv+bn+activation", fusion_fold},
    {"conv+residual+activation", fusion_fold},
    {"gemm+gemm shared input", fusion_wide},
    {"gemm+gemm shared input+bias", fusion_wide},
    {"norm+residual", fusion_norm},
    {"softmax+mask", fusion_softmax},
    {"elementwise chain", fusion_chain},
};

/* ---- shared ---- */

bool fusion_refuse(fusion_maker *m, const char *code, const char *format, ...) {
    va_list args;
    snprintf(m->why.code, sizeof m->why.code, "%s", code);
    va_start(args, format);
    vsnprintf(m->why.text, sizeof m->why.text, format, args);
    va_end(args);
    return false;
}

void fusion_put(fusion_maker *m, int part, int tensor, const char *of, int64_t offset, int64_t stride) {
    fusion_part *p = &m->f->parts[part];
    p->places[tensor] = (fusion_place){m->ops[part].tensors[tensor].name, of, offset, stride};
}

void fusion_put_rest(fusion_maker *m, int part) {
    for (uint32_t t = 0; t < m->ops[part].tensor_count; t++)
        if (!m->f->parts[part].places[t].of) fusion_put(m, part, (int)t, m->ops[part].tensors[t].name, 0, 0);
}

const char *fusion_between(const fusion_maker *m, int part) { return arena_printf(m->a, "@%d", part); }

/* Additions and activations behind a product are counted in no product's operations (docs/formats.md), nor here. */
void fusion_costs(fusion_maker *m, unsigned written) {
    oprec *to = &m->f->fused.rec;
    int64_t all = 0, heavy = 0, light = 0;
    to->macs = to->bytes_written = 0;
    for (int k = 0; k < m->f->op_count; k++) {
        const oprec *from = &m->f->ops[k]->rec;
        int64_t *flops = from->macs > 0 ? &heavy : &light;
        *flops = checked_add(*flops, from->flops);
        to->macs = checked_add(to->macs, from->macs);
        all = checked_add(all, checked_add(from->bytes_read, from->bytes_written));
        if (written >> k & 1) to->bytes_written = checked_add(to->bytes_written, from->bytes_written);
    }
    to->flops = heavy > 0 ? heavy : light;
    to->bytes_read = all - m->f->saved_bytes - to->bytes_written;
    if (to->bytes_read < 0) to->bytes_read = 0;
}

/* ---- what was recognised ---- */

enum { DEEPEST = 8 };

typedef struct part_ids {
    char text[FUSION_PARTS * 256]; /* behind each other */
    size_t used;
    int count;
} part_ids;

static bool add_id(part_ids *to, const char *id) {
    const size_t room = sizeof to->text - to->used;
    const int n = snprintf(to->text + to->used, room, "%s;", id);
    to->used += (size_t)n;
    return ++to->count <= FUSION_PARTS && (size_t)n < room;
}

/* The parts of `o`, down to the last. False: more than a fusion can join, or not all there. */
static bool add_parts(const operation *o, const map *ids, int depth, part_ids *to) {
    const json_t *parts = json_object_get(o->source, "parts");
    const size_t n = depth < DEEPEST ? json_array_size(parts) : 0;
    if (n == 0) return add_id(to, o->id);
    for (size_t k = 0; k < n; k++) {
        const char *id = json_string_value(json_array_get(parts, k));
        const operation *part = id ? map_get(ids, id) : NULL;
        if (!part || !add_parts(part, ids, depth + 1, to)) return false;
    }
    return true;
}

void fusion_recognised(const operation_list *list, const map *ids, map *by_parts) {
    for (int k = 0; k < list->count; k++) {
        operation *o = &list->items[k];
        part_ids key = {.count = 0};
        if (json_array_size(json_object_get(o->source, "parts")) < 2 || !add_parts(o, ids, 0, &key)) continue;
        void **place = map_put(by_parts, arena_strndup(by_parts->arena, key.text, key.used));
        if (!*place) *place = o; /* the first one stands for all */
    }
}

static const operation *find_recognised(const fusion *f, const map *by_parts) {
    part_ids key = {.count = 0};
    for (int k = 0; k < f->op_count; k++)
        if (!add_id(&key, f->ops[k]->id)) return NULL;
    return map_get(by_parts, key.text);
}

/* ---- the whole ---- */

static void skip(fusion *f, const char *code, const char *text) {
    f->how = FUSION_SKIPPED;
    f->skip_code = code;
    f->skip_text = text;
}

bool fusion_build(fusion_maker *m, const operation *o, scout_op *out) {
    static const uint64_t any_workspace = 1 << 20; /* it is never run with it */
    return kinds_build(o, any_workspace, m->a, out, &m->why);
}

/* The parts as dense operations: what is known of a weight's zeros belongs to its own operation. */
static bool build_parts(fusion_maker *m) {
    for (int k = 0; k < m->f->op_count; k++) {
        operation *o = arena_array(m->a, operation, 1);
        *o = *m->f->ops[k];
        o->sparsity = 0, o->pattern = "DENSE", o->weight = NULL;
        if (!fusion_build(m, o, &m->ops[k])) return false;
        m->f->parts[k] = (fusion_part){.operation = o,
                                       .place_count = (int)m->ops[k].tensor_count,
                                       .places = arena_array(m->a, fusion_place, m->ops[k].tensor_count)};
    }
    return true;
}

static const char *unknown_part(const fusion *f, const char **text) {
    for (int k = 0; k < f->op_count; k++)
        if (f->ops[k]->skip_code) {
            *text = f->ops[k]->skip_text;
            return f->ops[k]->skip_code;
        }
    return NULL;
}

static void make(fusion *f, bool (*maker)(fusion_maker *m), arena *a) {
    fusion_maker *m = arena_array(a, fusion_maker, 1);
    m->f = f;
    m->a = a;
    f->how = FUSION_SEQUENCE;
    f->fused.pattern = "DENSE";
    if (!build_parts(m) || !maker(m)) skip(f, arena_printf(a, "%s", m->why.code), arena_printf(a, "%s", m->why.text));
}

void fusion_make(fusion *f, const map *by_parts, arena *a) {
    const char *text = f->skip_text, *code = f->skip_code ? f->skip_code : unknown_part(f, &text);
    size_t k = 0;
    while (k < sizeof patterns / sizeof patterns[0] && strcmp(patterns[k].pattern, f->pattern) != 0) k++;
    if (code) {
        skip(f, code, text);
    } else if (k < sizeof patterns / sizeof patterns[0]) {
        make(f, patterns[k].make, a);
    } else {
        f->recognised = find_recognised(f, by_parts);
        f->how = FUSION_SUM;
        if (f->recognised) f->fused = *f->recognised;
        if (!f->recognised) skip(f, "feature", "no operation of this file is these fused");
    }
}
