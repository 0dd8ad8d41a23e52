/* Tensors that the model holds: their type and dimensions are decoded, their bytes only located and measured. What is
 * stated and what is there must agree. */
#include "extract/read/build.h"

#include "common/checked.h"

#include <string.h>

enum {
    COUNTED_BYTES = 1 << 16
}; /* packed numbers of up to this many bytes are counted; longer ones only bounded, as counting reads them */

typedef struct stored { /* what a tensor message holds of data */
    bool has_raw, has_typed;
    uint32_t field; /* of the typed data */
    wire_span raw;
    uint64_t least, most; /* typed values */
} stored;

typedef struct tensor_reader {
    build *b;
    const char *where; /* "initializer 'w'" */
    wire_span span;
    dtype type;
    int rank;
    const int64_t *dims;
    int64_t count; /* elements */
    stored data;
} tensor_reader;

static void count_packed(const wire *file, wire_span bytes, uint32_t field, stored *d) {
    uint64_t n = 0;
    if (field == 4 || field == 10) {
        n = bytes.size / (field == 4 ? 4 : 8);
    } else if (bytes.size > COUNTED_BYTES) {
        d->least += (bytes.size + 9) / 10;
        d->most += bytes.size;
        return;
    } else {
        *file->steps += bytes.size / 4;
        for (uint64_t k = 0; k < bytes.size; k++) n += file->base[bytes.offset + k] < 0x80;
    }
    d->least += n;
    d->most += n;
}

static void find_data(tensor_reader *r) {
    const wire file = model_file_wire(r->b->file);
    stored *d = &r->data;
    wire_field f;
    for (wire w = wire_inside(&file, r->span); wire_next(&w, &f);) {
        if (f.number == 9) {
            d->has_raw = true;
            d->raw = f.payload;
        } else if ((f.number >= 4 && f.number <= 7) || f.number == 10 || f.number == 11) {
            if (d->has_typed && d->field != f.number) build_fail(r->b, "%s: has data of two types", r->where);
            d->has_typed = true;
            d->field = f.number;
            if (f.type == WIRE_BYTES && f.number != 6) {
                count_packed(&file, f.payload, f.number, d);
            } else {
                d->least++;
                d->most++;
            }
        }
        model_file_passed(r->b->file, f.payload);
    }
    if (d->has_raw && d->has_typed) build_fail(r->b, "%s: has both raw and typed data", r->where);
}

/* The field in which values of a type are stored where they are not raw. */
static uint32_t field_of(dtype type) {
    switch (type) {
    case DTYPE_FP32:
    case DTYPE_COMPLEX64: return 4;
    case DTYPE_FP64:
    case DTYPE_COMPLEX128: return 10;
    case DTYPE_INT64: return 7;
    case DTYPE_UINT32:
    case DTYPE_UINT64: return 11;
    case DTYPE_STRING: return 6;
    default: return 5;
    }
}

static void check_typed(const tensor_reader *r) {
    const stored *d = &r->data;
    if (d->field != field_of(r->type))
        build_fail(r->b, "%s: its data is not stored as its type %s asks for", r->where, dtype_get(r->type)->name);
    const dtype_info *about = dtype_get(r->type);
    int64_t expected = r->count;
    if (about->cls == DTYPE_CLASS_COMPLEX) expected = checked_mul(expected, 2);
    if (about->bits > 0 && about->bits < 8) expected = checked_ceil_div(expected, 8 / about->bits);
    if ((uint64_t)expected < d->least || (uint64_t)expected > d->most) {
        build_fail(r->b, "%s: its dimensions ask for %lld values, but it holds %llu", r->where, (long long)expected,
                   (unsigned long long)(d->least == d->most ? d->least : d->most));
    }
}

static void check_raw(const tensor_reader *r) {
    if (r->type == DTYPE_STRING) build_fail(r->b, "%s: strings cannot be raw data", r->where);
    const int64_t expected = dtype_bytes(r->type, r->count);
    if ((uint64_t)expected != r->data.raw.size) {
        build_fail(r->b, "%s: its dimensions ask for %lld bytes, but it holds %llu", r->where, (long long)expected,
                   (unsigned long long)r->data.raw.size);
    }
}

/* A decimal number of an external data entry. */
static int64_t entry_number(const tensor_reader *r, const char *key, const char *text) {
    int64_t x = 0;
    bool bad = !*text;
    for (const char *c = text; *c && !bad; c++) {
        bad = *c < '0' || *c > '9' || __builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *c - '0', &x);
    }
    if (bad) build_fail(r->b, "%s: the %s of its external data is '%.100s', which is not a size", r->where, key, text);
    return x;
}

static void locate_external(const tensor_reader *r, const OnnxMeta__Tensor *t, constant *c) {
    const char *location = NULL;
    const int64_t needed = dtype_bytes(r->type, r->count);
    int64_t offset = 0, length = needed;
    for (size_t k = 0; k < t->n_external_data; k++) {
        const char *key = build_text(r->b, t->external_data[k]->key, "key of external data");
        const char *text = build_text(r->b, t->external_data[k]->value, "external data");
        if (strcmp(key, "location") == 0) location = text;
        if (strcmp(key, "offset") == 0) offset = entry_number(r, key, text);
        if (strcmp(key, "length") == 0) length = entry_number(r, key, text);
    }
    if (!location) build_fail(r->b, "%s: has external data without a location", r->where);
    if (r->type == DTYPE_STRING) build_fail(r->b, "%s: strings cannot be external data", r->where);
    if (length != needed)
        build_fail(r->b, "%s: its dimensions ask for %lld bytes, but its external data has %lld", r->where,
                   (long long)needed, (long long)length);
    const external_file *f = external_find(&r->b->external, location);
    const int64_t end = checked_add(offset, length);
    if (!f->why && (uint64_t)end > f->size) {
        build_fail(r->b,
                   "%s: needs the bytes up to %lld of external file '%.200s', which has %llu; is the file complete?",
                   r->where, (long long)end, location, (unsigned long long)f->size);
    }
    c->external = f;
    c->blob = (blob){.why_unreachable = f->why, .file = f->location, .offset = offset, .length = length, .raw = true};
}

static void locate(tensor_reader *r, const OnnxMeta__Tensor *t, constant *c) {
    if (t->has_data_location && t->data_location == 1) {
        locate_external(r, t, c);
        return;
    }
    find_data(r);
    if (r->data.has_raw) {
        check_raw(r);
        c->blob = (blob){.offset = (int64_t)r->data.raw.offset, .length = (int64_t)r->data.raw.size, .raw = true};
        return;
    }
    c->blob = (blob){.offset = (int64_t)r->span.offset, .length = (int64_t)r->span.size};
    if (r->data.has_typed) {
        check_typed(r);
    } else if (r->count != 0) {
        c->blob.why_unreachable = "the model holds no data for it";
    }
}

static void read_dims(tensor_reader *r, size_t n, const int64_t *dims) {
    if (n > INFO_MAX_RANK) build_fail(r->b, "%s: has %zu dimensions; at most %d are read", r->where, n, INFO_MAX_RANK);
    int64_t *copy = arena_array(r->b->arena, int64_t, n);
    r->count = 1;
    for (size_t k = 0; k < n; k++) {
        if (dims[k] < 0)
            build_fail(r->b, "%s: dimension %zu is %lld; dimensions are not negative", r->where, k, (long long)dims[k]);
        copy[k] = dims[k];
        r->count = checked_mul(r->count, dims[k]);
    }
    if (checked_mul(r->count, 16) == INT64_MAX)
        build_fail(r->b, "%s: its dimensions multiply to more than 64 bits hold", r->where);
    r->rank = (int)n;
    r->dims = copy;
}

static tensor *made(const tensor_reader *r, const char *name, constant *c) {
    info *x = info_tensor(r->b->arena, r->type, r->rank, r->dims);
    tensor *t = arena_zalloc(r->b->arena, sizeof *t);
    c->info = x;
    t->name = name;
    t->source = TENSOR_INITIALIZER;
    t->info = x;
    t->blob = &c->blob;
    return t;
}

tensor *build_tensor(build *b, wire_span span, const char *where) {
    const OnnxMeta__Tensor *t = model_meta_unpack(b->file, WIRE_TENSOR, span);
    const char *name = build_text(b, t->name, "tensor");
    tensor_reader r = {.b = b, .span = span};
    char text[400];
    snprintf(text, sizeof text, "%s '%.200s'", where, name);
    r.where = text;
    const int64_t type = t->has_data_type ? t->data_type : 0;
    if (!dtype_known(type)) build_fail(b, "%s: data type %lld is not known", text, (long long)type);
    if (t->segment) build_fail(b, "%s: is a segment of a tensor, which no runtime reads; store the tensor whole", text);
    r.type = (dtype)type;
    read_dims(&r, t->n_dims, t->dims);
    constant *c = arena_zalloc(b->arena, sizeof *c);
    c->message = span;
    locate(&r, t, c);
    return made(&r, name, c);
}

/* Indices are linear, or one row of coordinates per value. */
static void check_indices(const tensor_reader *r, const info *values, const info *indices) {
    if (indices->type != DTYPE_INT64)
        build_fail(r->b, "%s: its indices are %s, not int64", r->where, dtype_get(indices->type)->name);
    if (values->rank != 1) build_fail(r->b, "%s: its values have %d dimensions, not one", r->where, values->rank);
    const int64_t n = values->dims[0];
    const bool linear = indices->rank == 1 && indices->dims[0] == n;
    const bool rows = indices->rank == 2 && indices->dims[0] == n && indices->dims[1] == r->rank;
    if (!linear && !rows && n != 0)
        build_fail(r->b, "%s: has %lld values, but another number of indices", r->where, (long long)n);
    if (n > r->count)
        build_fail(r->b, "%s: has %lld values, but room for %lld", r->where, (long long)n, (long long)r->count);
}

tensor *build_tensor_sparse(build *b, wire_span span, const char *where) {
    const model_list values = model_meta_list(b->file, b->frames, span, 1),
                     indices = model_meta_list(b->file, b->frames, span, 2);
    if (values.count != 1 || indices.count > 1)
        build_fail(b, "%s at byte %llu: has no values, or more than one set of them", where,
                   (unsigned long long)span.offset);
    const tensor *v = build_tensor(b, values.items[0], where);
    char text[400];
    snprintf(text, sizeof text, "%s '%.200s'", where, v->name);
    const tensor *i = indices.count ? build_tensor(b, indices.items[0], "indices") : NULL;
    if (!i && v->info->rank == 1 && v->info->dims[0] != 0) build_fail(b, "%s: has no indices", text);
    const OnnxMeta__SparseTensor *t = model_meta_unpack(b->file, WIRE_SPARSE, span);
    tensor_reader r = {.b = b, .where = text, .span = span, .type = v->info->type};
    read_dims(&r, t->n_dims, t->dims);
    if (i) check_indices(&r, v->info, i->info);
    constant *c = arena_zalloc(b->arena, sizeof *c);
    c->message = span;
    c->values = v;
    c->indices = i;
    c->blob = (blob){
        .offset = (int64_t)span.offset, .length = (int64_t)span.size, .why_unreachable = v->blob->why_unreachable};
    if (i && !c->blob.why_unreachable) c->blob.why_unreachable = i->blob->why_unreachable;
    return made(&r, v->name, c);
}
