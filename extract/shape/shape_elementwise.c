/* Elementwise operators: shapes by numpy's broadcasting, values by the table of scalar functions. */
#include "extract/infer/shape_need.h"
#include "extract/infer/value_index.h"
#include "extract/shape/shape.h"

#include <string.h>

/* Values of input i if it is worth asking: a tensor few enough, in which a weight is not read for nothing. */
static const value *small_value(infer *c, int i) {
    const info *x = infer_in(c, i);
    return info_shaped(x) && value_index_small(x->rank, x->dims) && value_index_known(c, i, 1) ? infer_value(c, i)
                                                                                               : NULL;
}

static const value *one_of(infer *c, int i) {
    const value *v = infer_has(c, i) ? infer_value(c, i) : NULL;
    return v && v->n == 1 ? v : NULL;
}

/* Clip's bounds are inputs since opset 11, attributes before. */
static const value *clip(infer *c, const value *v, dtype type) {
    const value *bounds[2] = {one_of(c, 1), one_of(c, 2)};
    const char *const names[2] = {"min", "max"};
    for (int k = 0; k < 2; k++) {
        if (infer_has(c, k + 1) && !bounds[k]) return NULL;
        const attr *stated = infer_attr_of(c, names[k], ATTR_FLOAT);
        if (!stated || bounds[k]) continue;
        value *from_attr = arena_zalloc(c->arena, sizeof *from_attr);
        from_attr->n = 1;
        from_attr->f = &stated->f;
        bounds[k] = value_number_cast(c->arena, from_attr, DTYPE_FP64, type);
    }
    return value_elementwise_clip(c->arena, v, type, bounds[0], bounds[1]);
}

void shape_elementwise_unary(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    const value *v = small_value(c, 0);
    if (v)
        v = !strcmp(c->node->op_type, "Clip") ? clip(c, v, x->type)
                                              : value_elementwise_unary(c, c->node->op_type, v, x->type);
    value_index_set(c, 0, x->type, x->rank, x->dims, v);
}

/* IsNaN and IsInf */
void shape_elementwise_test(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    const value *v = small_value(c, 0);
    if (!v || !v->f) {
        infer_set(c, 0, DTYPE_BOOL, x->rank, x->dims);
        return;
    }
    bool nan = !strcmp(c->node->op_type, "IsNaN");
    bool up = infer_attr_int(c, "detect_positive", 1) != 0, down = infer_attr_int(c, "detect_negative", 1) != 0;
    int64_t *i;
    double *f;
    const value *r = value_index_new(c->arena, DTYPE_BOOL, v->n, &i, &f);
    for (int64_t k = 0; k < v->n; k++) {
        double y = v->f[k];
        bool infinite = y == y && y - y != 0;
        i[k] = nan ? y != y : infinite && (y > 0 ? up : down);
    }
    value_index_set(c, 0, DTYPE_BOOL, x->rank, x->dims, r);
}

/* Shape of two broadcast inputs; false where one is not known. */
static bool broadcast_pair(infer *c, int64_t *dims, int *rank) {
    if (!value_index_need(c, 0) || !value_index_need(c, 1)) return false;
    const info *x = infer_in(c, 0), *y = infer_in(c, 1);
    *rank = infer_broadcast(c, x->rank, x->dims, y->rank, y->dims, dims);
    return true;
}

static bool operands(infer *c, int rank, const int64_t *dims, value_operand *x, value_operand *y) {
    if (!value_index_small(rank, dims) || !value_index_known(c, 0, 2)) return false;
    const info *a = infer_in(c, 0), *b = infer_in(c, 1);
    *x = (value_operand){infer_value(c, 0), a->type, a->rank, a->dims};
    if (!x->v) return false;
    *y = (value_operand){infer_value(c, 1), b->type, b->rank, b->dims};
    return y->v != NULL;
}

/* The name of the scalar function: some operators are two, told apart by an attribute. */
static const char *binary_name(infer *c) {
    const char *name = c->node->op_type;
    if (!strcmp(name, "Mod") && infer_attr_int(c, "fmod", 0)) return "FMod";
    if (!strcmp(name, "BitShift"))
        return !strcmp(infer_attr_string(c, "direction", ""), "LEFT") ? "ShiftLeft" : "ShiftRight";
    return name;
}

/* Before opset 7 a slope per channel stood for [channels, 1, 1], which broadcasting would put elsewhere. */
static bool old_prelu(infer *c) {
    if (infer_opset(c) >= 7 || strcmp(c->node->op_type, "PRelu")) return false;
    if (value_index_need(c, 0)) infer_set(c, 0, infer_type(c, 0), infer_rank(c, 0), infer_in(c, 0)->dims);
    return true;
}

void shape_elementwise_binary(infer *c) {
    int rank;
    int64_t dims[INFO_MAX_RANK];
    value_operand x, y;
    if (strcmp(c->node->op_type, "Pow") != 0)
        shape_need_one_type(c, 0, 2); /* a power's exponent has a type of its own */
    if (old_prelu(c) || !broadcast_pair(c, dims, &rank)) return;
    dtype type = infer_type(c, 0) != DTYPE_NONE ? infer_type(c, 0) : infer_type(c, 1);
    const value *v = NULL;
    if (operands(c, rank, dims, &x, &y))
        v = value_elementwise_binary(c->arena, binary_name(c), &x, &y, type, rank, dims);
    value_index_set(c, 0, type, rank, dims, v);
}

void shape_elementwise_compare(infer *c) {
    int rank;
    int64_t dims[INFO_MAX_RANK];
    value_operand x, y;
    shape_need_one_type(c, 0, 2);
    if (!broadcast_pair(c, dims, &rank)) return;
    const value *v = NULL;
    if (operands(c, rank, dims, &x, &y)) v = value_elementwise_compare(c->arena, c->node->op_type, &x, &y, rank, dims);
    value_index_set(c, 0, DTYPE_BOOL, rank, dims, v);
}

/* Max, Min, Sum and Mean over any number of known inputs: one after the other, as runtimes do. */
static const value *fold(infer *c, int n, dtype type, int rank, const int64_t *dims) {
    bool mean = !strcmp(c->node->op_type, "Mean");
    const char *name = mean ? "Sum" : c->node->op_type;
    if (!value_index_small(rank, dims) || !value_index_known(c, 0, n) || !value_number_tracked(type)) return NULL;
    const value *v = NULL;
    for (int k = 0; k < n; k++) {
        const info *x = infer_in(c, k);
        value_operand right = {infer_value(c, k), x->type, x->rank, x->dims};
        if (!right.v) return NULL;
        if (k == 0) {
            v = value_index_pick(c->arena, right.v, value_index_broadcast(c->arena, rank, dims, x->rank, x->dims),
                                 value_index_count(rank, dims), NULL);
            continue;
        }
        value_operand left = {v, type, rank, dims};
        v = value_elementwise_binary(c->arena, name, &left, &right, type, rank, dims);
        if (!v) return NULL;
    }
    if (!mean || !v || !v->f) return mean ? NULL : v;
    double *f = arena_array(c->arena, double, v->n);
    for (int64_t k = 0; k < v->n; k++) f[k] = value_number_round(type, v->f[k] / n);
    value *r = arena_zalloc(c->arena, sizeof *r);
    r->n = v->n;
    r->f = f;
    return r;
}

void shape_elementwise_variadic(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = 0, n = infer_in_count(c);
    shape_need_one_type(c, 0, n);
    for (int k = 0; k < n; k++) {
        if (!value_index_need(c, k)) return;
        const info *x = infer_in(c, k);
        int64_t so_far[INFO_MAX_RANK];
        memcpy(so_far, dims, sizeof *dims * (size_t)rank);
        rank = infer_broadcast(c, rank, so_far, x->rank, x->dims, dims);
    }
    value_index_set(c, 0, infer_type(c, 0), rank, dims, fold(c, n, infer_type(c, 0), rank, dims));
}

/* Each side's values are needed only if the condition chooses it somewhere. */
static const value *where_values(infer *c, int rank, const int64_t *dims, dtype type) {
    if (!value_index_small(rank, dims) || !value_index_known(c, 0, 1)) return NULL;
    const value *chosen = infer_value(c, 0), *side[2] = {NULL, NULL};
    if (!chosen || !chosen->i) return NULL;
    bool used[2] = {false, false};
    for (int64_t k = 0; k < chosen->n; k++) used[chosen->i[k] ? 0 : 1] = true;
    const int64_t *from[2] = {NULL, NULL};
    for (int s = 0; s < 2; s++) {
        if (!used[s]) continue;
        const info *x = infer_in(c, 1 + s);
        side[s] = value_index_known(c, 1 + s, 1) ? infer_value(c, 1 + s) : NULL;
        if (!side[s]) return NULL;
        from[s] = value_index_broadcast(c->arena, rank, dims, x->rank, x->dims);
    }
    const info *cond = infer_in(c, 0);
    const int64_t *from_cond = value_index_broadcast(c->arena, rank, dims, cond->rank, cond->dims);
    int64_t *i, n = value_index_count(rank, dims);
    double *f;
    const value *r = value_index_new(c->arena, type, n, &i, &f);
    for (int64_t k = 0; k < n; k++) {
        int s = chosen->i[from_cond[k]] ? 0 : 1;
        const value *v = side[s];
        if (!v || (v->i != NULL) != (i != NULL)) return NULL;
        if (i)
            i[k] = v->i[from[s][k]];
        else
            f[k] = v->f[from[s][k]];
    }
    return r;
}

void shape_elementwise_where(infer *c) {
    int64_t branches[INFO_MAX_RANK], dims[INFO_MAX_RANK];
    shape_need_one_type(c, 1, 2);
    for (int k = 0; k < 3; k++)
        if (!value_index_need(c, k)) return;
    const info *cond = infer_in(c, 0), *x = infer_in(c, 1), *y = infer_in(c, 2);
    int rank = infer_broadcast(c, x->rank, x->dims, y->rank, y->dims, branches);
    rank = infer_broadcast(c, cond->rank, cond->dims, rank, branches, dims);
    dtype type = x->type != DTYPE_NONE ? x->type : y->type;
    value_index_set(c, 0, type, rank, dims, where_values(c, rank, dims, type));
}

/* Dropout does nothing unless it trains; its mask is boolean since opset 10 (and in com.microsoft's BiasDropout). */
void shape_elementwise_dropout(infer *c) {
    if (!value_index_need(c, 0)) return;
    const info *x = infer_in(c, 0);
    bool plain = !strcmp(c->node->op_type, "Dropout");
    bool trains = plain && infer_has(c, 2);
    value_index_set(c, 0, x->type, x->rank, x->dims, plain && !trains ? small_value(c, 0) : NULL);
    bool old = plain && infer_opset(c) < 10;
    infer_set(c, 1, old ? x->type : DTYPE_BOOL, x->rank, x->dims);
}
