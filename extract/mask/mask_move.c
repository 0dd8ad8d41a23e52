/* Operators that only move elements about: which element of an input stands at a given place of the output. */
#include "extract/mask/mask_eval.h"

#include "common/checked.h"

#include <stdlib.h>
#include <string.h>

static const tensor *input(const node *n, int i) { return i < n->in_count ? n->in[i] : NULL; }

static bool axis_of(const node *n, const char *name, int64_t otherwise, int rank, int *axis) {
    int64_t a = graph_attr_int(n, name, otherwise);
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) return false;
    *axis = (int)a;
    return true;
}

/* Same elements in the same order. */
static bool move_same(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    (void)t;
    return mask_eval_at(e, input(n, 0), index, depth, out);
}

static bool move_expand(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    if (mask_eval_rank(in) < 0) return false;
    return mask_eval_at(e, in, mask_eval_broadcast(in, t, index), depth, out);
}

static bool move_tile(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    int64_t pos[MASK_EVAL_MAX_RANK];
    if (mask_eval_rank(in) != t->info->rank || info_count(in->info) < 1) return false;
    mask_eval_split(t, index, pos);
    for (int k = 0; k < t->info->rank; k++) pos[k] %= in->info->dims[k];
    return mask_eval_at(e, in, mask_eval_index(in, pos), depth, out);
}

static bool move_transpose(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    int64_t pos[MASK_EVAL_MAX_RANK], from[MASK_EVAL_MAX_RANK] = {0};
    int rank = t->info->rank;
    if (mask_eval_rank(in) != rank) return false;
    const attr *perm = graph_attr(n, "perm", ATTR_INTS);
    if (perm && (perm->kind != ATTR_INTS || perm->n != rank)) return false;
    mask_eval_split(t, index, pos);
    for (int k = 0; k < rank; k++) {
        int64_t source = perm ? perm->ints[k] : rank - 1 - k;
        if (source < 0) source += rank;
        if (source < 0 || source >= rank) return false;
        from[source] = pos[k];
    }
    return mask_eval_at(e, in, mask_eval_index(in, from), depth, out);
}

/* Where a slice begins along an axis, after the format's clamping. */
static int64_t slice_start(int64_t start, int64_t step, int64_t dim) {
    if (start < 0) start = start < -dim ? -1 : start + dim;
    if (step > 0) return start < 0 ? 0 : start > dim ? dim : start;
    return start < 0 ? -1 : start > dim - 1 ? dim - 1 : start;
}

typedef struct slice_args {
    const int64_t *starts, *axes, *steps; /* axes and steps NULL: the default */
    int64_t n;
} slice_args;

static bool slice_args_of(mask_eval *e, const node *n, slice_args *s) {
    *s = (slice_args){0};
    int64_t count;
    const attr *starts = graph_attr(n, "starts", ATTR_INTS), *axes = graph_attr(n, "axes", ATTR_INTS);
    if (starts) { /* opset below 10 */
        s->starts = starts->ints;
        s->n = starts->n;
        s->axes = axes && axes->n == starts->n ? axes->ints : NULL;
        return starts->kind == ATTR_INTS;
    }
    s->starts = mask_eval_ints(e, input(n, 1), &s->n);
    if (!s->starts) return false;
    if (input(n, 3)) {
        s->axes = mask_eval_ints(e, input(n, 3), &count);
        if (!s->axes || count != s->n) return false;
    }
    if (input(n, 4)) {
        s->steps = mask_eval_ints(e, input(n, 4), &count);
        if (!s->steps || count != s->n) return false;
    }
    return true;
}

static bool move_slice(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    int64_t pos[MASK_EVAL_MAX_RANK];
    slice_args s;
    if (mask_eval_rank(in) != t->info->rank || !slice_args_of(e, n, &s)) return false;
    mask_eval_split(t, index, pos);
    for (int64_t k = 0; k < s.n; k++) {
        int64_t axis = s.axes ? s.axes[k] : k, step = s.steps ? s.steps[k] : 1;
        if (axis < 0) axis += t->info->rank;
        if (axis < 0 || axis >= t->info->rank || step == 0) return false;
        int64_t dim = in->info->dims[axis];
        int64_t offset, at;
        if (__builtin_mul_overflow(pos[axis], step, &offset)) return false;
        if (__builtin_add_overflow(offset, slice_start(s.starts[k], step, dim), &at)) return false;
        if (at < 0 || at >= dim) return false;
        pos[axis] = at;
    }
    return mask_eval_at(e, in, mask_eval_index(in, pos), depth, out);
}

/* The element of an index tensor, as a position along a dimension. */
static bool index_at(mask_eval *e, const tensor *indices, int64_t index, int depth, int64_t dim, int64_t *at,
                     bool *depends) {
    mask_number x;
    if (!mask_eval_at(e, indices, index, depth, &x) || !(x.x > -9e15 && x.x < 9e15)) return false;
    *at = (int64_t)x.x;
    if (*at < 0) *at += dim;
    *depends = *depends || x.depends;
    return *at >= 0 && *at < dim;
}

static bool move_gather(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *data = input(n, 0), *indices = input(n, 1);
    int64_t pos[MASK_EVAL_MAX_RANK], from[MASK_EVAL_MAX_RANK], at;
    int rank = mask_eval_rank(data), inner = mask_eval_rank(indices), axis;
    bool depends = false;
    if (rank < 1 || inner < 0 || rank - 1 + inner != t->info->rank || !axis_of(n, "axis", 0, rank, &axis)) return false;
    mask_eval_split(t, index, pos);
    if (!index_at(e, indices, mask_eval_index(indices, pos + axis), depth, data->info->dims[axis], &at, &depends))
        return false;
    for (int k = 0; k < axis; k++) from[k] = pos[k];
    from[axis] = at;
    for (int k = axis + 1; k < rank; k++) from[k] = pos[k - 1 + inner];
    if (!mask_eval_at(e, data, mask_eval_index(data, from), depth, out)) return false;
    out->depends = out->depends || depends;
    return true;
}

static bool move_gather_elements(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth,
                                 mask_number *out) {
    const tensor *data = input(n, 0), *indices = input(n, 1);
    int64_t pos[MASK_EVAL_MAX_RANK];
    int rank = mask_eval_rank(data), axis;
    bool depends = false;
    if (rank < 1 || rank != t->info->rank || !axis_of(n, "axis", 0, rank, &axis)) return false;
    mask_eval_split(t, index, pos);
    if (!index_at(e, indices, index, depth, data->info->dims[axis], &pos[axis], &depends)) return false;
    for (int k = 0; k < rank; k++) {
        if (pos[k] >= data->info->dims[k]) return false;
    }
    if (!mask_eval_at(e, data, mask_eval_index(data, pos), depth, out)) return false;
    out->depends = out->depends || depends;
    return true;
}

static bool move_gather_nd(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *data = input(n, 0), *indices = input(n, 1);
    int rank = mask_eval_rank(data), inner = mask_eval_rank(indices);
    int64_t batch = graph_attr_int(n, "batch_dims", 0), pos[MASK_EVAL_MAX_RANK], from[MASK_EVAL_MAX_RANK];
    bool depends = false;
    if (rank < 1 || inner < 1 || batch < 0 || batch >= inner) return false;
    int64_t depth_of = indices->info->dims[inner - 1];
    if (depth_of < 1 || depth_of + batch > rank || t->info->rank != inner - 1 + rank - (int)(depth_of + batch))
        return false;
    mask_eval_split(t, index, pos);
    int64_t base = 0;
    for (int k = 0; k < inner - 1; k++) base = base * indices->info->dims[k] + pos[k];
    for (int64_t k = 0; k < batch; k++) from[k] = pos[k];
    for (int64_t k = 0; k < depth_of; k++) {
        int64_t *at = &from[batch + k];
        if (!index_at(e, indices, base * depth_of + k, depth, data->info->dims[batch + k], at, &depends)) return false;
    }
    for (int64_t k = batch + depth_of; k < rank; k++) from[k] = pos[inner - 1 + (k - batch - depth_of)];
    if (!mask_eval_at(e, data, mask_eval_index(data, from), depth, out)) return false;
    out->depends = out->depends || depends;
    return true;
}

/* Exporters spell an assignment to a slice as a scatter whose indices count through all positions in order. An element
 * is looked for where it stands then; other orders are not followed. */
static bool move_scatter_nd(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *indices = input(n, 1), *updates = input(n, 2);
    int64_t pos[MASK_EVAL_MAX_RANK], positions = 1, inner = 1, tuple = 0, at;
    int rank = t->info->rank, own = mask_eval_rank(indices);
    bool depends = false;
    if (own < 1 || mask_eval_rank(updates) < 0 || strcmp(graph_attr_string(n, "reduction", "none"), "none") != 0)
        return false;
    int64_t width = indices->info->dims[own - 1];
    if (width < 1 || width > rank) return false;
    mask_eval_split(t, index, pos);
    for (int k = 0; k < rank; k++) {
        int64_t *product = k < width ? &positions : &inner;
        *product = checked_mul(*product, t->info->dims[k]);
        if (k < width) tuple = tuple * t->info->dims[k] + pos[k];
    }
    if (info_count(indices->info) != checked_mul(positions, width) ||
        info_count(updates->info) != checked_mul(positions, inner))
        return false;
    for (int64_t k = 0; k < width; k++) {
        if (!index_at(e, indices, tuple * width + k, depth, t->info->dims[k], &at, &depends) || at != pos[k])
            return false;
    }
    if (!mask_eval_at(e, updates, tuple * inner + index % inner, depth, out)) return false;
    out->depends = out->depends || depends;
    return true;
}

static bool move_concat(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    int64_t pos[MASK_EVAL_MAX_RANK];
    int axis;
    if (!axis_of(n, "axis", 0, t->info->rank, &axis)) return false;
    mask_eval_split(t, index, pos);
    for (int k = 0; k < n->in_count; k++) {
        const tensor *in = n->in[k];
        if (mask_eval_rank(in) != t->info->rank) return false;
        if (pos[axis] < in->info->dims[axis]) return mask_eval_at(e, in, mask_eval_index(in, pos), depth, out);
        pos[axis] -= in->info->dims[axis];
    }
    return false;
}

static bool move_split(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    const tensor *in = input(n, 0);
    int64_t pos[MASK_EVAL_MAX_RANK];
    int axis;
    if (mask_eval_rank(in) != t->info->rank || !axis_of(n, "axis", 0, t->info->rank, &axis)) return false;
    mask_eval_split(t, index, pos);
    for (int k = 0; k < t->producer_slot; k++) {
        const tensor *before = k < n->out_count ? n->out[k] : NULL;
        if (!before || mask_eval_rank(before) != t->info->rank) return false;
        pos[axis] += before->info->dims[axis];
    }
    return pos[axis] < in->info->dims[axis] && mask_eval_at(e, in, mask_eval_index(in, pos), depth, out);
}

static bool move_trilu(mask_eval *e, const node *n, const tensor *t, int64_t index, int depth, mask_number *out) {
    int64_t pos[MASK_EVAL_MAX_RANK];
    int rank = t->info->rank;
    mask_number k = {0};
    if (rank < 2 || (input(n, 1) && !mask_eval_at(e, n->in[1], 0, depth, &k))) return false;
    mask_eval_split(t, index, pos);
    double ahead = (double)(pos[rank - 1] - pos[rank - 2]) - k.x;
    bool kept = graph_attr_int(n, "upper", 1) ? ahead >= 0 : ahead <= 0;
    *out = (mask_number){.x = 0, .depends = k.depends};
    return !kept || mask_eval_at(e, input(n, 0), index, depth, out);
}

/* clang-format off */
static const mask_eval_row moves[] = { /* sorted by name */
    {"Concat", move_concat},
    {"Dropout", move_same},
    {"Expand", move_expand},
    {"Flatten", move_same},
    {"Gather", move_gather},
    {"GatherElements", move_gather_elements},
    {"GatherND", move_gather_nd},
    {"Identity", move_same},
    {"Reshape", move_same},
    {"ScatterND", move_scatter_nd},
    {"Slice", move_slice},
    {"Split", move_split},
    {"Squeeze", move_same},
    {"Tile", move_tile},
    {"Transpose", move_transpose},
    {"Trilu", move_trilu},
    {"Unsqueeze", move_same},
};
/* clang-format on */

mask_eval_fn *mask_move_find(const char *op_type) {
    const mask_eval_row *row = graph_row(moves, sizeof moves / sizeof *moves, sizeof *moves, op_type);
    return row ? row->fn : NULL;
}
