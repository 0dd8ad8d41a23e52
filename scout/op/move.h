/* Moves of data as candidates need them: pieces that are copied from one tensor to another, element by element along
 * steps; gathers, triangles and casts beside. Read from the tensors and fields of a scout_op; header-only, shared by
 * candidates of all devices and by plugins. Inputs are the first tensors ("x", or "x0", "x1", …), then "indices" where
 * there are any, then the outputs ("y", or "y0", …); all lie densely. */
#ifndef SCOUT_OP_MOVE_H
#define SCOUT_OP_MOVE_H

#include "scout/op/op.h"

#include <math.h>

enum { MOVE_RANK = 2 * SCOUT_MAX_RANK };

/* Half steps of short floats grow no smaller below these numbers. */
static inline double move_least(uint32_t type) {
    return type == SCOUT_FP16 || type == SCOUT_FP8E5M2 ? 0x1p-14 : type == SCOUT_FP8E4M3 ? 0x1p-6 : 0;
}

/* A step between a number and its neighbours, of short floats without a library; 0: of all others. */
static inline double move_step_at(uint32_t type, double x) {
    static const struct {
        uint32_t type;
        int fraction, least; /* bits; exponent of the smallest normal number */
    } rows[] = {{SCOUT_FP4E2M1, 1, 0}, {SCOUT_FP8E4M3FNUZ, 3, -7}, {SCOUT_FP8E5M2FNUZ, 2, -15}};
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        if (rows[k].type != type) continue;
        const int exponent = x == 0 ? rows[k].least : ilogb(x);
        return ldexp(1, (exponent < rows[k].least ? rows[k].least : exponent) - rows[k].fraction);
    }
    return 0;
}

/* Types of casts and quantising alone: of 2 and 4 bits, and the 8-bit floats that no library knows. */
static inline int move_is_narrow(uint32_t type) {
    return type == SCOUT_INT4 || type == SCOUT_UINT4 || type == SCOUT_INT2 || type == SCOUT_UINT2 ||
           type == SCOUT_FP4E2M1 || type == SCOUT_FP8E4M3FNUZ || type == SCOUT_FP8E5M2FNUZ || type == SCOUT_FP8E8M0;
}

/* A cast to fp8e8m0 keeps the exponent of |x|: what is added to x's bits before the fraction is cut off, so that it is
 * the power of two above, the nearest or the one below; -1: not known. */
static inline int64_t move_power_up(const scout_op *op) {
    static const struct {
        const char *name;
        int64_t up;
    } rows[] = {{"up", 0x7fffff}, {"nearest", 0x400000}, {"down", 0}};
    const char *told = op_text(op, "round_mode");
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
        if (!told || strcmp(told, rows[k].name) == 0) return rows[k].up;
    return -1;
}

typedef struct move_piece {
    int from, to;           /* tensors */
    int64_t from_at, to_at; /* elements from their beginning */
    int rank;
    int64_t dims[MOVE_RANK], from_strides[MOVE_RANK], to_strides[MOVE_RANK];
} move_piece;

static inline void move_piece_add(move_piece *p, int64_t count, int64_t from, int64_t to) {
    if (count == 1 || p->rank == MOVE_RANK) return;
    const int last = p->rank - 1; /* joined with the one before where both go on from it */
    if (last >= 0 && p->from_strides[last] == from * count && p->to_strides[last] == to * count) {
        p->dims[last] *= count, p->from_strides[last] = from, p->to_strides[last] = to;
        return;
    }
    p->dims[p->rank] = count, p->from_strides[p->rank] = from, p->to_strides[p->rank] = to;
    p->rank++;
}

/* Concat and split: the pieces lie one behind the other along an axis of the whole. */
static inline int move_pieces_along(const scout_op *op, move_piece *out) {
    const int joins = op_is(op, "concat"), axis = (int)op_number(op, "axis", 0), count = (int)op->tensor_count - 1;
    const scout_tensor *whole = &op->tensors[joins ? count : 0];
    int64_t at = 0;
    for (int k = 0; k < count; k++) {
        const scout_tensor *part = &op->tensors[joins ? k : k + 1];
        out[k] = (move_piece){.from = joins ? k : 0, .to = joins ? count : k + 1};
        *(joins ? &out[k].to_at : &out[k].from_at) = at * whole->strides[axis];
        for (uint32_t d = 0; d < part->rank; d++)
            move_piece_add(&out[k], part->dims[d], joins ? part->strides[d] : whole->strides[d],
                           joins ? whole->strides[d] : part->strides[d]);
        at += part->dims[axis];
    }
    return count;
}

/* The step of a slice along a dimension: 1 where nothing is said. */
static inline int64_t move_step(const scout_op *op, int dim) {
    int64_t steps[SCOUT_MAX_RANK] = {0}, axes[SCOUT_MAX_RANK] = {0};
    const int count = op_ints(op, "steps", steps, SCOUT_MAX_RANK), told = op_ints(op, "axes", axes, SCOUT_MAX_RANK);
    for (int k = 0; k < count && k < SCOUT_MAX_RANK; k++) {
        const int64_t axis = told == count ? axes[k] : k;
        if (axis == dim || axis + op->rank == dim) return steps[k];
    }
    return 1;
}

/* What stands before a dimension of the output of a pad. */
static inline int64_t move_before(const scout_op *op, int dim) {
    int64_t pads[2 * SCOUT_MAX_RANK] = {0};
    const int count = op_ints(op, "pads", pads, 2 * SCOUT_MAX_RANK);
    return count == 2 * (int)op->rank ? pads[dim] : 0;
}

typedef enum move_beyond { MOVE_ZEROS, MOVE_REFLECT, MOVE_EDGE, MOVE_WRAP, MOVE_BEYONDS } move_beyond;

/* What lies beyond the input of a pad; MOVE_BEYONDS: it is not known. */
static inline move_beyond move_beyond_of(const scout_op *op) {
    static const char *const names[MOVE_BEYONDS] = {"constant", "reflect", "edge", "wrap"};
    const char *told = op_text(op, "mode");
    int k = 0;
    while (told && k < MOVE_BEYONDS && strcmp(told, names[k]) != 0) k++;
    return (move_beyond)k;
}

static inline int move_pads_copies(const scout_op *op) { return op_is(op, "pad") && move_beyond_of(op) != MOVE_ZEROS; }

/* Where an element of such a pad comes from, along a dimension of that length. */
static inline int64_t move_copied(move_beyond how, int64_t place, int64_t length) {
    if (how == MOVE_EDGE) return place < 0 ? 0 : place >= length ? length - 1 : place;
    const int64_t period = how == MOVE_WRAP ? length : length > 1 ? 2 * (length - 1) : 1;
    const int64_t at = (place % period + period) % period;
    return at < length ? at : period - at;
}

/* Images whose channels become squares of places, and back: [images, channels, rows, columns] with the smaller planes
 * has side * side times the channels. A place of the larger planes is (row, i, column, j). */
typedef struct move_squares {
    int64_t images, channels, rows, cols, side; /* channels of the larger planes, rows and columns of the smaller */
    int64_t step_i, step_j, step_channel;       /* between channels of the smaller planes */
} move_squares;

static inline move_squares move_squares_of(const scout_op *op) {
    const int back = op_is(op, "spacetodepth");
    const scout_tensor *large = &op->tensors[back ? 0 : 1], *small = &op->tensors[back ? 1 : 0];
    const char *mode = op_text(op, "mode");
    move_squares s = {.images = large->dims[0],
                      .channels = large->dims[1],
                      .rows = small->dims[2],
                      .cols = small->dims[3],
                      .side = large->dims[2] / small->dims[2]};
    const int channel_first = mode && strcmp(mode, "CRD") == 0;
    s.step_j = channel_first ? 1 : s.channels;
    s.step_i = s.step_j * s.side;
    s.step_channel = channel_first ? s.side * s.side : 1;
    return s;
}

static inline void move_piece_squares(const scout_op *op, move_piece *out) {
    const move_squares s = move_squares_of(op);
    const int64_t plane = s.rows * s.cols, wide = s.cols * s.side, high = s.rows * s.side;
    const int64_t dims[] = {s.images, s.channels, s.rows, s.side, s.cols, s.side};
    const int64_t small[] = {
        s.channels * s.side * s.side * plane, s.step_channel * plane, s.cols, s.step_i * plane, 1, s.step_j * plane};
    const int64_t large[] = {s.channels * high * wide, high * wide, s.side * wide, wide, s.side, 1};
    /* in the order of the output, which is written along its last dimension */
    static const int orders[2][6] = {{0, 1, 2, 3, 4, 5}, {0, 3, 5, 1, 2, 4}};
    const int back = op_is(op, "spacetodepth");
    for (int k = 0; k < 6; k++) {
        const int d = orders[back][k];
        move_piece_add(out, dims[d], back ? large[d] : small[d], back ? small[d] : large[d]);
    }
}

/* Pieces into `out`, which has room for SCOUT_MAX_TENSORS; 0: what is none: a gather, a triangle, a cast, a pad with
 * copies. */
static inline int move_pieces(const scout_op *op, move_piece *out) {
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[op->tensor_count - 1];
    int64_t perm[SCOUT_MAX_RANK] = {0};
    if (op_is(op, "concat") || op_is(op, "split")) return move_pieces_along(op, out);
    if (op_is(op, "depthtospace") || op_is(op, "spacetodepth")) {
        out[0] = (move_piece){.from = 0, .to = 1};
        move_piece_squares(op, &out[0]);
        return 1;
    }
    if (!op_is(op, "transpose") && !op_is(op, "slice") && !op_is(op, "expand") && !op_is(op, "tile") &&
        !op_is(op, "pad") && !op_is(op, "repeat"))
        return 0;
    if (move_pads_copies(op)) return 0;
    out[0] = (move_piece){.from = 0, .to = (int)op->tensor_count - 1};
    if (op_is(op, "transpose")) (void)op_ints(op, "perm", perm, SCOUT_MAX_RANK);
    for (int d = 0; d < (int)y->rank; d++) {
        const int from = d - (int)y->rank + (int)x->rank; /* of an expand the last dimensions meet */
        const int64_t step = from >= 0 ? x->strides[from] : 0, own = from >= 0 ? x->dims[from] : 1;
        if (op_is(op, "transpose")) {
            move_piece_add(&out[0], y->dims[d], x->strides[perm[d]], y->strides[d]);
        } else if (op_is(op, "slice")) {
            move_piece_add(&out[0], y->dims[d], step * move_step(op, d), y->strides[d]);
        } else if (op_is(op, "pad")) {
            move_piece_add(&out[0], own, step, y->strides[d]);
            out[0].to_at += move_before(op, d) * y->strides[d];
        } else if (op_is(op, "repeat")) {
            move_piece_add(&out[0], own, step, y->strides[d] * (y->dims[d] / own));
            move_piece_add(&out[0], y->dims[d] / own, 0, y->strides[d]);
        } else {
            move_piece_add(&out[0], y->dims[d] / own, 0, y->strides[d] * own);
            move_piece_add(&out[0], own, step, y->strides[d]);
        }
    }
    return 1;
}

/* A gather: out[o][k][i] = x[o][indices[k]][i]. Of gathernd, indices hold `parts` places for each k, and there is no o.
 */
typedef struct move_gather {
    int64_t outer, length, count, inner; /* length: of the dimension that is gathered from */
    int parts;
    int64_t lengths[SCOUT_MAX_RANK]; /* of the dimensions that the parts are places in */
    uint32_t index_type;
} move_gather;

static inline move_gather move_gather_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[0], *indices = &op->tensors[1];
    const int axis = (int)op_number(op, "axis", 0);
    move_gather g = {.outer = 1, .length = 1, .count = 1, .inner = 1, .parts = 1, .index_type = indices->type};
    if (op_is(op, "gathernd")) g.parts = (int)indices->dims[indices->rank - 1];
    const int first = op_is(op, "gathernd") ? 0 : axis;
    g.count = op_elements(indices) / g.parts;
    for (int d = 0; d < first; d++) g.outer *= x->dims[d];
    for (int k = 0; k < g.parts; k++) g.lengths[k] = x->dims[first + k], g.length *= x->dims[first + k];
    for (int d = first + g.parts; d < (int)x->rank; d++) g.inner *= x->dims[d];
    return g;
}

static inline int64_t move_index(const move_gather *g, const void *indices, int64_t at) {
    int64_t place = 0;
    for (int k = 0; k < g->parts; k++) {
        const int64_t i = at * g->parts + k;
        place = place * g->lengths[k] +
                (g->index_type == SCOUT_INT64 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i]);
    }
    return place;
}

/* Moves of places: from marks to their places, and back (nonzero, onehot). */
static inline int move_marks(const scout_op *op) { return op_is(op, "nonzero") || op_is(op, "onehot"); }

/* An element from the place that an index of its own names along one dimension (gatherelements). */
typedef struct move_elements {
    int rank, axis;
    int64_t dims[SCOUT_MAX_RANK]; /* of the indices and the output */
    int64_t strides[SCOUT_MAX_RANK];
    uint32_t index_type;
} move_elements;

static inline move_elements move_elements_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[0], *indices = &op->tensors[1];
    move_elements e = {.rank = (int)x->rank, .axis = (int)op_number(op, "axis", 0), .index_type = indices->type};
    for (int d = 0; d < e.rank; d++) e.dims[d] = indices->dims[d], e.strides[d] = x->strides[d];
    return e;
}

/* A scatter: the input with updates at places that indices name, written there or combined with what is there, one
 * after the other (so that of several for one place the last one stays). Tensors are "x", "indices", "updates", "y".
 * Updates are rows of columns: y[base of the row + index * step + column * along]. Of scatternd a row has one index,
 * made of `parts` places. Of scatterelements each element has one, along `axis`. */
typedef struct move_scatter {
    int64_t rows, cols, length; /* length: of what an index points into */
    int64_t step, along;
    int each;  /* each element has an index of its own */
    int apart; /* no two rows write to one place: the indices run along the columns */
    int parts;
    int64_t lengths[SCOUT_MAX_RANK];
    int rank, axis; /* of the rows, whose base goes along all dimensions but the axis and the last */
    int64_t dims[SCOUT_MAX_RANK], strides[SCOUT_MAX_RANK];
    uint32_t index_type;
} move_scatter;

typedef enum move_combine { MOVE_WRITE, MOVE_ADD, MOVE_MUL, MOVE_MAX, MOVE_MIN, MOVE_COMBINES } move_combine;

static inline int move_scatters(const scout_op *op) { return op_is(op, "scatternd") || op_is(op, "scatterelements"); }

/* MOVE_COMBINES: one that is not known. */
static inline move_combine move_combine_of(const scout_op *op) {
    static const char *const names[MOVE_COMBINES] = {"none", "add", "mul", "max", "min"};
    const char *told = op_text(op, "reduction");
    int k = 0;
    while (told && k < MOVE_COMBINES && strcmp(told, names[k]) != 0) k++;
    return (move_combine)k;
}

static inline move_scatter move_scatter_of(const scout_op *op) {
    const scout_tensor *x = &op->tensors[0], *indices = &op->tensors[1], *updates = &op->tensors[2];
    move_scatter s = {.rows = 1, .cols = 1, .length = 1, .step = 1, .along = 1, .index_type = indices->type};
    if (op_is(op, "scatternd")) {
        s.parts = (int)indices->dims[indices->rank - 1];
        s.rows = op_elements(indices) / s.parts;
        for (int k = 0; k < s.parts; k++) s.lengths[k] = x->dims[k], s.length *= x->dims[k];
        for (int d = s.parts; d < (int)x->rank; d++) s.cols *= x->dims[d];
        s.step = s.cols;
        return s;
    }
    s.each = 1, s.rank = (int)x->rank, s.axis = (int)op_number(op, "axis", 0);
    s.apart = s.axis == s.rank - 1, s.along = !s.apart;
    s.length = x->dims[s.axis], s.step = x->strides[s.axis], s.cols = updates->dims[s.rank - 1];
    for (int d = 0; d < s.rank; d++) s.dims[d] = updates->dims[d], s.strides[d] = x->strides[d];
    s.rows = op_elements(updates) / s.cols;
    return s;
}

static inline int64_t move_scatter_base(const move_scatter *s, int64_t row) {
    int64_t base = 0;
    for (int d = s->rank - 2; d >= 0; d--) {
        if (d != s->axis) base += row % s->dims[d] * s->strides[d];
        row /= s->dims[d];
    }
    return base;
}

/* The index of an element or, of scatternd, of a row. */
static inline int64_t move_scatter_index(const move_scatter *s, const void *indices, int64_t at) {
    const int parts = s->each ? 1 : s->parts;
    int64_t place = 0;
    for (int k = 0; k < parts; k++) {
        const int64_t i = at * parts + k;
        const int64_t index =
            s->index_type == SCOUT_INT64 ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
        place = s->each ? index : place * s->lengths[k] + index;
    }
    return place;
}

/* What is kept of the last two dimensions (trilu): columns from `diagonal` behind the row on, or up to there. */
typedef struct move_triangle {
    int64_t rows, cols, diagonal;
    int upper;
} move_triangle;

static inline move_triangle move_triangle_of(const scout_op *op) {
    return (move_triangle){op->shape[op->rank - 2], op->shape[op->rank - 1], op_number(op, "diagonal", 0),
                           op_number(op, "upper", 1) != 0};
}

/* Columns [*from, *to) of a row are kept. */
static inline void move_triangle_row(const move_triangle *t, int64_t row, int64_t *from, int64_t *to) {
    const int64_t edge = row + t->diagonal + !t->upper; /* the first that is kept, or the first that is not */
    const int64_t inside = edge < 0 ? 0 : edge > t->cols ? t->cols : edge;
    *from = t->upper ? inside : 0;
    *to = t->upper ? t->cols : inside;
}

#endif
