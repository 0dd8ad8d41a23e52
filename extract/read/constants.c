/* Reads the few constants that shapes depend on, however they are stored: all of them become raw bytes first. */
#include "extract/read/constants.h"

#include "common/checked.h"
#include "extract/read/model_file.h"

#include <string.h>

typedef struct raw_writer { /* typed fields as the raw bytes they stand for */
    uint8_t *bytes;
    size_t size, used;
} raw_writer;

static void put(raw_writer *r, uint64_t bits, size_t n) {
    for (size_t k = 0; k < n && r->used < r->size; k++) r->bytes[r->used++] = (uint8_t)(bits >> (8 * k));
}

/* Bytes that one typed value stands for: of packed types one byte, whatever the field's own width. */
static size_t width_of(dtype type) {
    const int bits = dtype_get(type)->bits;
    return bits < 8 ? 1 : (size_t)bits / 8;
}

static void from_typed(model *m, const constant *c, raw_writer *r) {
    model_file *f = m->file;
    const wire file = model_file_wire(f);
    const size_t width = width_of(c->info->type);
    wire_field field;
    for (wire w = wire_inside(&file, c->message); wire_next(&w, &field);) {
        const bool fixed32 = field.number == 4, fixed64 = field.number == 10;
        if (!fixed32 && !fixed64 && field.number != 5 && field.number != 7 && field.number != 11) continue;
        wire inner = wire_inside(&w, field.payload);
        while (inner.pos < inner.end && r->used < r->size)
            put(r, fixed32 ? wire_fixed32(&inner) : fixed64 ? wire_fixed64(&inner) : wire_varint(&inner), width);
    }
}

/* The raw bytes of a dense constant. */
static const uint8_t *raw_bytes(model *m, const constant *c, int64_t count) {
    const size_t size = (size_t)dtype_bytes(c->info->type, count);
    const model_file *f = m->file;
    if (c->blob.raw && !c->external) return f->base + c->blob.offset;
    raw_writer r = {.bytes = arena_zalloc(m->arena, size + 1), .size = size};
    if (c->external) {
        external_read(m->guard, c->external, (uint64_t)c->blob.offset, r.bytes, size);
    } else {
        from_typed(m, c, &r);
        if (r.used != size)
            guard_fail(m->guard, STATUS_INPUT,
                       "the tensor at byte %llu: holds fewer values than its dimensions ask for",
                       (unsigned long long)c->message.offset);
    }
    return r.bytes;
}

static const value *read_dense(model *m, const constant *c, int64_t count) {
    const bool whole = dtype_get(c->info->type)->cls == DTYPE_CLASS_INT;
    const uint8_t *bytes = raw_bytes(m, c, count);
    int64_t *i = whole ? arena_array(m->arena, int64_t, count) : NULL;
    double *f = whole ? NULL : arena_array(m->arena, double, count);
    for (int64_t k = 0; k < count; k++) {
        const bool known =
            whole ? constants_int(c->info->type, bytes, k, &i[k]) : constants_float(c->info->type, bytes, k, &f[k]);
        if (!known) return NULL;
    }
    value *v = arena_zalloc(m->arena, sizeof *v);
    *v = (value){.n = count, .i = i, .f = f};
    return v;
}

/* Where the k-th value of a sparse constant lies in the dense one. */
static int64_t position(model *m, const constant *c, const value *indices, int64_t k, int64_t count) {
    const info *x = c->info;
    const bool rows = c->indices->info->rank == 2;
    int64_t at = rows ? 0 : indices->i[k];
    bool outside = at < 0 || at >= count;
    for (int axis = 0; rows && axis < x->rank; axis++) {
        const int64_t here = indices->i[k * x->rank + axis];
        outside = outside || here < 0 || here >= x->dims[axis];
        at = outside ? 0 : at * x->dims[axis] + here;
    }
    if (outside)
        guard_fail(m->guard, STATUS_INPUT, "sparse tensor '%.200s': an index lies outside its dimensions",
                   c->values->name);
    return at;
}

static const value *read_sparse(model *m, const constant *c, int64_t count) {
    const value *values = read_values(m, c->values, count);
    const value *indices =
        c->indices ? read_values(m, c->indices, checked_mul(count, c->info->rank > 1 ? c->info->rank : 1)) : NULL;
    if (!values || (values->n > 0 && !indices)) return NULL;
    int64_t *i = values->i ? arena_array(m->arena, int64_t, count) : NULL;
    double *f = values->f ? arena_array(m->arena, double, count) : NULL;
    for (int64_t k = 0; k < values->n; k++) {
        const int64_t at = position(m, c, indices, k, count);
        if (i) i[at] = values->i[k];
        if (f && values->f) f[at] = values->f[k];
    }
    value *v = arena_zalloc(m->arena, sizeof *v);
    *v = (value){.n = count, .i = i, .f = f};
    return v;
}

const value *read_values(model *m, const tensor *t, int64_t max) { // recursion: a sparse tensor's parts are dense
    const constant *c = (const constant *)(const void *)t->blob;
    if (!c || c->blob.why_unreachable) return NULL;
    const dtype_class cls = dtype_get(c->info->type)->cls;
    if (cls != DTYPE_CLASS_INT && cls != DTYPE_CLASS_FLOAT) return NULL;
    const int64_t count = info_count(c->info);
    if (count > max || (t->info->form == INFO_TENSOR && info_count(t->info) != count)) return NULL;
    return c->values ? read_sparse(m, c, count) : read_dense(m, c, count);
}
