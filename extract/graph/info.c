/* Infos: making them, comparing them, saying them in a message. */
#include "extract/graph/info.h"

#include "common/checked.h"

#include <inttypes.h>
#include <string.h>

const int64_t info_no_dims[1] = {0};
const info info_unknown = {.form = INFO_UNKNOWN, .rank = -1, .dims = info_no_dims};

static const int64_t *copy_ints(arena *a, const int64_t *x, int64_t n) {
    if (n <= 0) return info_no_dims;
    int64_t *copy = arena_array(a, int64_t, n);
    memcpy(copy, x, (size_t)n * sizeof *x);
    return copy;
}

info *info_tensor(arena *a, dtype type, int rank, const int64_t *dims) {
    info *i = arena_zalloc(a, sizeof *i);
    i->form = INFO_TENSOR;
    i->type = type;
    i->rank = rank;
    i->dims = copy_ints(a, dims, rank);
    return i;
}

info *info_tensor_like(arena *a, dtype type, const info *shape_of) {
    info *i = arena_zalloc(a, sizeof *i);
    i->form = INFO_TENSOR;
    i->type = type;
    i->rank = shape_of->rank;
    i->dims = shape_of->dims;
    i->inexact = shape_of->inexact;
    if (i->inexact && shape_of->least) {
        i->least = info_tensor_like(a, type, shape_of->least);
        i->most = info_tensor_like(a, type, shape_of->most);
    }
    return i;
}

static bool same_values(const value *a, const value *b) {
    if (!a || !b) return true; /* then nothing is known of them */
    for (int64_t k = 0; k < a->n; k++)
        if (value_at(a, k) != value_at(b, k)) return false;
    return true;
}

info *info_between(arena *a, const info *least, const info *most) {
    info *i = info_tensor_like(a, most->type, most);
    i->inexact = !info_same_shape(least, most);
    if (!i->inexact && same_values(least->val, most->val)) {
        i->val = least->val ? most->val : NULL;
        return i;
    }
    i->least = least;
    i->most = most;
    return i;
}

info *info_of_ints(arena *a, dtype type, int rank, const int64_t *dims, const int64_t *values, int64_t n) {
    info *i = info_tensor(a, type, rank, dims);
    value *v = arena_zalloc(a, sizeof *v);
    v->n = n;
    v->i = copy_ints(a, values, n);
    i->val = v;
    return i;
}

info *info_of_floats(arena *a, dtype type, int rank, const int64_t *dims, const double *values, int64_t n) {
    info *i = info_tensor(a, type, rank, dims);
    value *v = arena_zalloc(a, sizeof *v);
    double *copy = arena_alloc(a, (size_t)(n > 0 ? n : 1) * sizeof *copy);
    if (n > 0) memcpy(copy, values, (size_t)n * sizeof *copy);
    v->n = n;
    v->f = copy;
    i->val = v;
    return i;
}

info *info_sequence(arena *a, const info *const *elems, int64_t count, const info *like) {
    info *i = arena_zalloc(a, sizeof *i);
    i->form = INFO_SEQUENCE;
    i->rank = -1;
    i->dims = info_no_dims;
    i->elem_count = count;
    i->elem_like = like;
    if (count > 0) {
        const info **copy = arena_array(a, const info *, count);
        memcpy(copy, elems, (size_t)count * sizeof(const info *));
        i->elems = copy;
        if (!like) i->elem_like = copy[0];
        for (int64_t k = 0; k < count; k++) i->inexact |= elems[k]->inexact;
    }
    i->inexact |= i->elem_like && i->elem_like->inexact;
    i->type = i->elem_like ? i->elem_like->type : DTYPE_NONE;
    return i;
}

bool info_shaped(const info *i) { return (i->form == INFO_TENSOR || i->form == INFO_SPARSE) && i->rank >= 0; }

int64_t info_count(const info *i) {
    if (!info_shaped(i)) return 0;
    int64_t n = 1;
    for (int k = 0; k < i->rank; k++) {
        if (i->dims[k] == 0) return 0;
        n = checked_mul(n, i->dims[k]);
    }
    return n;
}

int64_t info_bytes(const info *i) {
    if (info_shaped(i)) return dtype_bytes(i->type, info_count(i));
    int64_t sum = 0;
    if (i->elems)
        for (int64_t k = 0; k < i->elem_count; k++) sum = checked_add(sum, info_bytes(i->elems[k]));
    return sum;
}

bool info_same_shape(const info *a, const info *b) {
    if (!info_shaped(a) || !info_shaped(b) || a->rank != b->rank) return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dims[k] != b->dims[k]) return false;
    if (a->inexact != b->inexact) return false;
    return !a->least || !a->inexact || info_same_shape(a->least, b->least);
}

const char *info_text(arena *a, const info *i) {
    static const char *const forms[] = {"?", "", "sparse ", "sequence", "optional", "map", "opaque"};
    if (i->form != INFO_TENSOR && i->form != INFO_SPARSE) return forms[i->form];
    if (i->rank < 0) return arena_printf(a, "%s%s[?]", forms[i->form], dtype_get(i->type)->name);
    char text[INFO_MAX_RANK * 21 + 1];
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < i->rank && k < INFO_MAX_RANK; k++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64, k ? "," : "", i->dims[k]);
    return arena_printf(a, "%s%s[%s]", forms[i->form], dtype_get(i->type)->name, text);
}

double value_at(const value *v, int64_t k) { return v->i ? (double)v->i[k] : v->f[k]; }
