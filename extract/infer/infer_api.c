/* What an operator's shape function may ask and say: inputs, attributes, outputs. The driver is in infer.c. */
#include "extract/infer/infer.h"

#include "common/checked.h"
#include "common/plain.h"
#include "extract/read/read.h"

#include <inttypes.h>
#include <string.h>

/* ---- inputs ---- */

int infer_in_count(const infer *c) { return c->node->in_count; }

bool infer_has(const infer *c, int i) { return i >= 0 && i < c->node->in_count && c->node->in[i]; }

const info *infer_in(const infer *c, int i) { return infer_has(c, i) ? c->node->in[i]->info : &info_unknown; }

bool infer_shaped(const infer *c, int i) { return info_shaped(infer_in(c, i)); }

int infer_rank(const infer *c, int i) { return infer_in(c, i)->rank; }

int64_t infer_dim(const infer *c, int i, int k) {
    const info *x = infer_in(c, i);
    int at = k < 0 ? x->rank + k : k;
    if (!info_shaped(x) || at < 0 || at >= x->rank)
        infer_fail((infer *)c, "input %d is %s and has no dimension %d", i, info_text(c->arena, x), k);
    return x->dims[at];
}

dtype infer_type(const infer *c, int i) { return infer_in(c, i)->type; }

const value *infer_value(const infer *c, int i) {
    if (!infer_has(c, i)) return NULL;
    tensor *t = c->node->in[i];
    if (t->info->val) return t->info->val;
    if (!t->blob || t->info->form != INFO_TENSOR || info_count(t->info) > INFO_MAX_VALUES) return NULL;
    const value *v = read_values(c->model, t, INFO_MAX_VALUES);
    if (!v || v->n != info_count(t->info)) return NULL;
    info *known = arena_alloc(c->arena, sizeof *known);
    *known = *t->info;
    known->val = v;
    t->info = known;
    return v;
}

bool infer_int(const infer *c, int i, int64_t *x) {
    const value *v = infer_value(c, i);
    if (!v || v->n != 1) return false;
    *x = v->i ? v->i[0] : checked_from_double(v->f[0]);
    return true;
}

bool infer_ints(const infer *c, int i, const int64_t **x, int64_t *n) {
    const value *v = infer_value(c, i);
    if (!v) return false;
    *n = v->n;
    *x = v->i;
    if (v->i) return true;
    int64_t *whole = arena_array(c->arena, int64_t, v->n > 0 ? v->n : 1);
    for (int64_t k = 0; k < v->n; k++) whole[k] = checked_from_double(v->f[k]);
    *x = whole;
    return true;
}

/* ---- attributes ---- */

const attr *infer_attr(const infer *c, const char *name) { return graph_attr_any(c->node, name); }

const attr *infer_attr_of(const infer *c, const char *name, attr_kind kind) {
    const attr *a = graph_attr_any(c->node, name);
    if (a && a->kind != kind) infer_fail((infer *)c, "attribute '%s' is of the wrong type", name);
    return a;
}

int64_t infer_attr_int(const infer *c, const char *name, int64_t otherwise) {
    const attr *a = infer_attr_of(c, name, ATTR_INT);
    return a ? a->i : otherwise;
}

double infer_attr_float(const infer *c, const char *name, double otherwise) {
    const attr *a = infer_attr_of(c, name, ATTR_FLOAT);
    return a ? a->f : otherwise;
}

const char *infer_attr_string(const infer *c, const char *name, const char *otherwise) {
    const attr *a = infer_attr_of(c, name, ATTR_STRING);
    return a ? a->s : otherwise;
}

bool infer_attr_ints(const infer *c, const char *name, const int64_t **x, int64_t *n) {
    const attr *a = infer_attr_of(c, name, ATTR_INTS);
    if (!a) return false;
    *x = a->ints;
    *n = a->n;
    return true;
}

int64_t infer_opset(const infer *c) { return c->node->opset; }

int infer_axis(const infer *c, int64_t axis, int rank) {
    if (axis < -(int64_t)rank || axis >= rank)
        infer_fail((infer *)c, "axis %" PRId64 " is outside a rank of %d", axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- outputs ---- */

int infer_out_count(const infer *c) { return c->node->out_count; }

bool infer_wants(const infer *c, int i) { return i >= 0 && i < c->node->out_count && c->node->out[i]; }

static void check_rank(infer *c, int rank) {
    if (rank > INFO_MAX_RANK) infer_fail(c, "an output of rank %d is above the limit of %d", rank, INFO_MAX_RANK);
}

void infer_set(infer *c, int i, dtype type, int rank, const int64_t *dims) {
    if (!infer_wants(c, i)) return;
    check_rank(c, rank);
    c->out[i] = info_tensor(c->arena, type, rank, dims);
}

void infer_set_info(infer *c, int i, const info *x) {
    if (!infer_wants(c, i)) return;
    info *copy = arena_alloc(c->arena, sizeof *copy);
    *copy = *x;
    c->out[i] = copy;
}

void infer_set_like(infer *c, int i, dtype type, const info *shape_of) {
    if (infer_wants(c, i)) c->out[i] = info_tensor_like(c->arena, type, shape_of);
}

void infer_set_ints(infer *c, int i, dtype type, int rank, const int64_t *dims, const int64_t *x, int64_t n) {
    if (!infer_wants(c, i)) return;
    check_rank(c, rank);
    c->out[i] = info_of_ints(c->arena, type, rank, dims, x, n);
}

void infer_set_floats(infer *c, int i, dtype type, int rank, const int64_t *dims, const double *x, int64_t n) {
    if (!infer_wants(c, i)) return;
    check_rank(c, rank);
    c->out[i] = info_of_floats(c->arena, type, rank, dims, x, n);
}

/* A text that was cut, or quotes an attribute, which may hold any bytes: as a file can have it. */
const char *infer_reason(infer *c, char *text) {
    plain_end(text);
    return plain_utf8(c->arena, arena_strndup(c->arena, text, strlen(text)));
}

__attribute__((format(printf, 2, 0))) static const char *say(infer *c, const char *format, va_list args) {
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    return infer_reason(c, text);
}

void infer_set_between(infer *c, int i, dtype type, int rank, const int64_t *least, const int64_t *most) {
    static const int64_t nothing[INFO_MAX_RANK] = {0};
    if (!infer_wants(c, i)) return;
    check_rank(c, rank);
    c->out[i] = info_between(c->arena, info_tensor(c->arena, type, rank, least ? least : nothing),
                             info_tensor(c->arena, type, rank, most));
}

void infer_set_bound(infer *c, int i, dtype type, int rank, const int64_t *least, const int64_t *most, const char *why,
                     ...) {
    va_list args;
    va_start(args, why);
    c->node->unresolved = say(c, why, args);
    va_end(args);
    infer_set_between(c, i, type, rank, least, most);
}

void infer_unresolved(infer *c, const char *why, ...) {
    va_list args;
    va_start(args, why);
    c->node->unresolved = say(c, why, args);
    va_end(args);
}

int infer_broadcast(infer *c, int rank_a, const int64_t *a, int rank_b, const int64_t *b, int64_t *dims) {
    int rank = rank_a > rank_b ? rank_a : rank_b;
    check_rank(c, rank);
    for (int k = 1; k <= rank; k++) {
        int64_t x = k <= rank_a ? a[rank_a - k] : 1;
        int64_t y = k <= rank_b ? b[rank_b - k] : 1;
        if (x != y && x != 1 && y != 1) {
            const info *ia = info_tensor(c->arena, DTYPE_NONE, rank_a, a),
                       *ib = info_tensor(c->arena, DTYPE_NONE, rank_b, b);
            infer_fail(c, "shapes %s and %s do not broadcast", strchr(info_text(c->arena, ia), '['),
                       strchr(info_text(c->arena, ib), '['));
        }
        dims[rank - k] = x == 1 ? y : x;
    }
    return rank;
}
