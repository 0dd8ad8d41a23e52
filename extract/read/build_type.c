/* Types as the model states them: of graph inputs, whose symbols become numbers, and of values, where they are only a
 * check. */
#include "extract/read/build.h"

#include "common/checked.h"

#include <string.h>

typedef enum type_use { TYPE_SEE, TYPE_INPUT, TYPE_STATED } type_use;

typedef struct type_reader {
    build *b;
    const char *name; /* of the value */
    type_use use;
} type_reader;

/* What exporters write for "not known": no symbol, for two dimensions with it need not be equal. */
static bool is_nameless(const char *text) {
    static const char *const nameless[] = {"", "?", "*", "-1", "None", "none", "null", "unk", "unknown", NULL};
    for (int k = 0; nameless[k]; k++)
        if (strcmp(text, nameless[k]) == 0) return true;
    return false;
}

/* The text of a dimension: its symbol, or a made name where it has neither symbol nor size; NULL where it has a size.
 */
static const char *symbol_of(const type_reader *r, const OnnxMeta__Dimension *d, size_t axis, bool *made) {
    const char *text = d->has_dim_param ? build_text(r->b, d->dim_param, "dimension") : "";
    *made = is_nameless(text);
    if (!*made) return text;
    if (d->has_dim_value && d->dim_value != -1) return NULL;
    if (r->use == TYPE_STATED) return "";
    return arena_printf(r->b->arena, "%s.%zu", r->name, axis);
}

static int64_t dimension(const type_reader *r, const OnnxMeta__Dimension *d, size_t axis) {
    bool made;
    const char *symbol = symbol_of(r, d, axis, &made);
    int64_t size = -1;
    if (!symbol) {
        if (d->dim_value < 0 && r->use != TYPE_STATED)
            build_fail(r->b, "input '%.200s': dimension %zu is %lld; dimensions are not negative", r->name, axis,
                       (long long)d->dim_value);
        return d->dim_value < 0 ? -1 : d->dim_value;
    }
    if (r->use == TYPE_SEE) {
        bind_see(&r->b->bind, symbol, axis, made);
    } else if (*symbol && !bind_lookup(&r->b->bind, symbol, &size) && r->use == TYPE_INPUT) {
        build_fail(r->b, "input '%.200s': dimension %zu, '%.200s', cannot be computed; give --dim NAME=N", r->name,
                   axis, symbol);
    }
    return size;
}

static info *blank(build *b, info_form form) {
    info *x = arena_zalloc(b->arena, sizeof *x);
    x->form = form;
    x->rank = -1;
    x->dims = info_no_dims;
    return x;
}

static dtype element(const type_reader *r, int32_t number) {
    if (number != 0 && !dtype_known(number))
        build_fail(r->b, "value '%.200s': data type %d is not known", r->name, (int)number);
    return (dtype)number;
}

static void check_size(const type_reader *r, const info *x) {
    int64_t n = 1;
    for (int k = 0; k < x->rank; k++) n = checked_mul(n, x->dims[k]);
    if (checked_mul(n, 16) == INT64_MAX)
        build_fail(r->b, "input '%.200s': its dimensions multiply to more than 64 bits hold", r->name);
}

static const info *tensor_type(const type_reader *r, const OnnxMeta__TensorType *t, info_form form) {
    info *x = blank(r->b, form);
    x->type = element(r, t->has_elem_type ? t->elem_type : 0);
    if (!t->shape) return x;
    const size_t rank = t->shape->n_dim;
    if (rank > INFO_MAX_RANK)
        build_fail(r->b, "value '%.200s': has %zu dimensions; at most %d are read", r->name, rank, INFO_MAX_RANK);
    int64_t *dims = arena_array(r->b->arena, int64_t, rank);
    for (size_t k = 0; k < rank; k++) dims[k] = dimension(r, t->shape->dim[k], k);
    x->rank = (int)rank;
    x->dims = dims;
    if (r->use == TYPE_INPUT) check_size(r, x);
    return x;
}

/* Bounded: the wire check has refused deeper nesting. */
static const info *any_type(const type_reader *r, const OnnxMeta__Type *t) {
    if (!t) return blank(r->b, INFO_UNKNOWN);
    if (t->tensor_type) return tensor_type(r, t->tensor_type, INFO_TENSOR);
    if (t->sparse_tensor_type) return tensor_type(r, t->sparse_tensor_type, INFO_SPARSE);
    if (t->map_type) return blank(r->b, INFO_MAP);
    if (t->opaque_type) return blank(r->b, INFO_OPAQUE);
    const OnnxMeta__ElementType *inner = t->sequence_type ? t->sequence_type : t->optional_type;
    if (!inner) return blank(r->b, INFO_UNKNOWN);
    info *x = blank(r->b, t->sequence_type ? INFO_SEQUENCE : INFO_OPTIONAL);
    x->elem_count = -1;
    if (inner->elem_type) x->elem_like = any_type(r, inner->elem_type);
    if (x->elem_like) x->type = x->elem_like->type;
    return x;
}

const info *build_type_stated(build *b, const OnnxMeta__Type *type, const char *name) {
    if (!type) return NULL;
    const info *x = any_type(&(type_reader){b, name, TYPE_STATED}, type);
    return x->form == INFO_UNKNOWN ? NULL : x;
}

const info *build_type_input(build *b, const OnnxMeta__Type *type, const char *name) {
    return any_type(&(type_reader){b, name, TYPE_INPUT}, type);
}

void build_type_see(build *b, const OnnxMeta__Type *type, const char *name) {
    any_type(&(type_reader){b, name, TYPE_SEE}, type);
}
