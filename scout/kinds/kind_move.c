/* Moves of data: their tensors (scout/op/move.h), and what is not covered. What is moved must arrive as it was; casts
 * round once. */
#include "scout/kinds/kinds.h"

#include "common/checked.h"
#include "common/dtype.h"
#include "scout/kinds/kind_tensors.h"
#include "scout/op/move.h"

#include <stdio.h>
#include <string.h>

typedef struct builder {
    scout_op *op;
    kind_tensors to;
    scout_why *why;
    int64_t input[SCOUT_MAX_RANK];
    int rank; /* of input; 0: not told */
} builder;

static bool bad(builder *b, const char *text) { return kind_tensors_refuse(b->why, "shape", "%s", text); }

static bool plain(builder *b, const char *name, scout_role role, int rank, const int64_t *dims) {
    return kind_tensors_add(&b->to, name, role, role == SCOUT_OUTPUT ? b->op->output : b->op->input, rank, dims) !=
           NULL;
}

static bool one_to_one(builder *b) {
    return plain(b, "x", SCOUT_INPUT, b->rank, b->input) && plain(b, "y", SCOUT_OUTPUT, (int)b->op->rank, b->op->shape);
}

static bool build_transpose(builder *b) {
    int64_t perm[SCOUT_MAX_RANK];
    unsigned seen = 0;
    const int n = op_ints(b->op, "perm", perm, SCOUT_MAX_RANK);
    if (n != (int)b->op->rank || b->rank != n) return bad(b, "perm and input must have a number for each dimension");
    for (int d = 0; d < n; d++) {
        if (perm[d] < 0 || perm[d] >= n || (seen >> perm[d] & 1)) return bad(b, "perm is no permutation");
        seen |= 1u << perm[d];
        if (b->input[perm[d]] != b->op->shape[d]) return bad(b, "input, perm and output do not belong together");
    }
    return one_to_one(b);
}

static bool build_slice(builder *b) {
    if (b->rank != (int)b->op->rank) return bad(b, "a slice keeps the number of dimensions");
    for (int d = 0; d < b->rank; d++) {
        const int64_t step = move_step(b->op, d);
        if (step < 1) return kind_tensors_refuse(b->why, "feature", "a slice that goes backward is not covered");
        if (checked_mul(b->op->shape[d] - 1, step) >= b->input[d]) return bad(b, "a slice is larger than its input");
    }
    return one_to_one(b);
}

static bool build_expand(builder *b) {
    if (b->rank > (int)b->op->rank) return bad(b, "the output has fewer dimensions than the input");
    for (int d = 0; d < b->rank; d++) {
        const int64_t own = b->input[d], out = b->op->shape[(int)b->op->rank - b->rank + d];
        if (own < 1 || out % own != 0 || (op_is(b->op, "expand") && own != 1 && own != out))
            return bad(b, "the input does not go into the output");
    }
    return b->rank > 0 ? one_to_one(b) : bad(b, "the shape of its input is not known");
}

/* Each element several times in a row: the rows are dimensions of their own in what copies and checks it. */
static bool build_repeat(builder *b) {
    int rank = b->rank;
    if (b->rank < 1 || b->rank != (int)b->op->rank) return bad(b, "what is repeated keeps the number of dimensions");
    for (int d = 0; d < b->rank; d++) {
        if (b->input[d] < 1 || b->op->shape[d] % b->input[d] != 0)
            return bad(b, "the input does not go into the output");
        rank += b->input[d] != b->op->shape[d];
    }
    if (rank > SCOUT_MAX_RANK)
        return kind_tensors_refuse(b->why, "shape", "%d dimensions, and those that repeat, are more than %d", b->rank,
                                   SCOUT_MAX_RANK);
    return one_to_one(b);
}

static bool build_pad(builder *b) {
    int64_t pads[2 * SCOUT_MAX_RANK];
    const int n = op_ints(b->op, "pads", pads, 2 * SCOUT_MAX_RANK);
    if (move_beyond_of(b->op) == MOVE_BEYONDS || op_field(b->op, "axes"))
        return kind_tensors_refuse(b->why, "feature", "pads of some axes, or of another mode, are not covered");
    if (n != 2 * b->rank || b->rank != (int)b->op->rank) return bad(b, "how much is padded is not known");
    for (int d = 0; d < b->rank; d++)
        if (pads[d] < 0 || pads[b->rank + d] < 0 ||
            checked_add(checked_add(pads[d], pads[b->rank + d]), b->input[d]) != b->op->shape[d])
            return bad(b, "input, pads and output do not belong together");
    return one_to_one(b);
}

/* Concat and split: `count` pieces of a whole, as large as sizes say or all alike. */
static bool build_along(builder *b) {
    const bool joins = op_is(b->op, "concat");
    const int64_t axis = op_number(b->op, "axis", 0), count = op_number(b->op, joins ? "inputs" : "outputs", 0);
    int64_t sizes[SCOUT_MAX_TENSORS], dims[SCOUT_MAX_RANK], all = 0;
    if (count < 1 || count >= SCOUT_MAX_TENSORS)
        return kind_tensors_refuse(b->why, "feature", "%lld pieces are not covered", (long long)count);
    if (axis < 0 || axis >= (int64_t)b->op->rank) return bad(b, "there is no such axis");
    const int told = op_ints(b->op, "sizes", sizes, SCOUT_MAX_TENSORS);
    if (told != 0 && told != count) return bad(b, "sizes do not belong to the pieces");
    if (told == 0 && b->op->shape[axis] % count != 0) return bad(b, "pieces of this size do not add up");
    memcpy(dims, b->op->shape, sizeof dims);
    if (!joins && !plain(b, "x", SCOUT_INPUT, (int)b->op->rank, b->op->shape)) return false;
    for (int64_t k = 0; k < count; k++) {
        char name[8];
        snprintf(name, sizeof name, "%s%d", joins ? "x" : "y", (int)k);
        dims[axis] = told ? sizes[k] : b->op->shape[axis] / count;
        all = checked_add(all, dims[axis]);
        if (!plain(b, name, joins ? SCOUT_INPUT : SCOUT_OUTPUT, (int)b->op->rank, dims)) return false;
    }
    if (all != b->op->shape[axis]) return bad(b, "pieces of this size do not add up");
    return !joins || plain(b, "y", SCOUT_OUTPUT, (int)b->op->rank, b->op->shape);
}

static bool add_indices(builder *b, int rank, const int64_t *dims, int64_t below) {
    const char *text = op_text(b->op, "index_dtype");
    const uint32_t type = text ? (uint32_t)dtype_from_name(text) : (uint32_t)SCOUT_INT64;
    if (type != SCOUT_INT64 && type != SCOUT_INT32)
        return kind_tensors_refuse(b->why, "type", "indices are int32 or int64");
    if (below < 1 || below > INT32_MAX) return bad(b, "too many places to point at");
    scout_tensor *t = kind_tensors_add(&b->to, "indices", SCOUT_INPUT, type, rank, dims);
    if (t) t->below = below;
    return t != NULL;
}

/* The indices' dimensions stand in the output in place of the axis. */
static bool build_gather(builder *b) {
    const int64_t axis = op_number(b->op, "axis", 0), places = (int64_t)b->op->rank - b->rank + 1;
    int64_t one = 1;
    if (b->rank < 1 || axis < 0 || axis >= b->rank || places < 0) return bad(b, "there is no such axis");
    for (int64_t d = 0; d < b->rank; d++) {
        if (d != axis && b->input[d] != b->op->shape[d < axis ? d : d + places - 1])
            return bad(b, "input, axis and output do not belong together");
    }
    return plain(b, "x", SCOUT_INPUT, b->rank, b->input) &&
           add_indices(b, places ? (int)places : 1, places ? b->op->shape + axis : &one, b->input[axis]) &&
           plain(b, "y", SCOUT_OUTPUT, (int)b->op->rank, b->op->shape);
}

static bool build_gathernd(builder *b) {
    int64_t dims[SCOUT_MAX_RANK], below = INT64_MAX;
    const int n = op_ints(b->op, "indices", dims, SCOUT_MAX_RANK);
    if (n < 1 || n > SCOUT_MAX_RANK || dims[n - 1] < 1 || dims[n - 1] > b->rank ||
        n - 1 + b->rank - dims[n - 1] != (int64_t)b->op->rank)
        return bad(b, "input, indices and output do not belong together");
    for (int d = 0; d < (int)b->op->rank; d++)
        if (b->op->shape[d] != (d < n - 1 ? dims[d] : b->input[d - (n - 1) + dims[n - 1]]))
            return bad(b, "input, indices and output do not belong together");
    for (int64_t k = 0; k < dims[n - 1]; k++) below = b->input[k] < below ? b->input[k] : below;
    return plain(b, "x", SCOUT_INPUT, b->rank, b->input) && add_indices(b, n, dims, below) &&
           plain(b, "y", SCOUT_OUTPUT, (int)b->op->rank, b->op->shape);
}

static bool build_gatherelements(builder *b) {
    const int64_t axis = op_number(b->op, "axis", 0);
    if (b->rank < 1 || b->rank != (int)b->op->rank || axis < 0 || axis >= b->rank)
        return bad(b, "there is no such axis");
    for (int d = 0; d < b->rank; d++)
        if (d != axis && b->op->shape[d] > b->input[d]) return bad(b, "the output is larger than the input");
    return plain(b, "x", SCOUT_INPUT, b->rank, b->input) && add_indices(b, b->rank, b->op->shape, b->input[axis]) &&
           plain(b, "y", SCOUT_OUTPUT, b->rank, b->op->shape);
}

static bool is_float(uint32_t type) {
    return type == SCOUT_FP32 || type == SCOUT_FP64 || type == SCOUT_FP16 || type == SCOUT_BF16;
}

/* x, indices, updates, y: the updates' shape, and of scatternd that of the indices, are told. */
static bool build_scatter(builder *b) {
    int64_t updates[SCOUT_MAX_RANK], dims[SCOUT_MAX_RANK], below = INT64_MAX;
    const bool nd = op_is(b->op, "scatternd");
    const int rank = (int)b->op->rank, given = op_ints(b->op, "updates", updates, SCOUT_MAX_RANK);
    const int n = nd ? op_ints(b->op, "indices", dims, SCOUT_MAX_RANK) : given;
    const int64_t axis = op_number(b->op, "axis", 0), parts = nd && n > 0 && n <= SCOUT_MAX_RANK ? dims[n - 1] : 0;
    if (move_combine_of(b->op) == MOVE_COMBINES)
        return kind_tensors_refuse(b->why, "feature", "the reduction %.40s is not covered",
                                   op_text(b->op, "reduction"));
    if (move_combine_of(b->op) != MOVE_WRITE && !is_float(b->op->input))
        return kind_tensors_refuse(b->why, "type", "combining %s with updates is not covered",
                                   dtype_get((dtype)b->op->input)->name);
    if (given < 1 || given > SCOUT_MAX_RANK || n < 1 || n > SCOUT_MAX_RANK)
        return bad(b, "the shapes of its updates and indices are not known");
    for (int d = 0; d < given; d++)
        if (updates[d] < 1) return bad(b, "there are no updates");
    if (nd) {
        if (parts < 1 || parts > rank || given != n - 1 + rank - parts)
            return bad(b, "input, indices and updates do not belong together");
        for (int d = 0; d < given; d++)
            if (updates[d] != (d < n - 1 ? dims[d] : b->op->shape[d - (n - 1) + parts]))
                return bad(b, "input, indices and updates do not belong together");
        for (int64_t k = 0; k < parts; k++) below = b->op->shape[k] < below ? b->op->shape[k] : below;
    } else {
        if (given != rank || axis < 0 || axis >= rank) return bad(b, "there is no such axis");
        for (int d = 0; d < rank; d++)
            if (d != axis && updates[d] > b->op->shape[d]) return bad(b, "the updates are larger than the input");
        memcpy(dims, updates, sizeof dims);
        below = b->op->shape[axis];
    }
    return plain(b, "x", SCOUT_INPUT, rank, b->op->shape) && add_indices(b, n, dims, below) &&
           plain(b, "updates", SCOUT_INPUT, given, updates) && plain(b, "y", SCOUT_OUTPUT, rank, b->op->shape);
}

/* Places of what is not zero, a row for each dimension: as many columns as there can be, zeros behind the last place.
 */
static bool build_nonzero(builder *b) {
    int64_t count = 1;
    for (int d = 0; d < b->rank; d++) count = checked_mul(count, b->input[d]);
    if (b->op->output != SCOUT_INT64) return kind_tensors_refuse(b->why, "type", "places are int64");
    if (b->rank < 1 || b->op->rank != 2 || b->op->shape[0] != b->rank || b->op->shape[1] != count)
        return bad(b, "the output has no column for each element");
    return one_to_one(b);
}

/* 1 where an index says so along the axis, and 0 elsewhere. */
static bool build_onehot(builder *b) {
    const int64_t axis = op_number(b->op, "axis", 0);
    if (b->rank + 1 != (int)b->op->rank || axis < 0 || axis > b->rank) return bad(b, "there is no such axis");
    for (int d = 0; d < b->rank; d++)
        if (b->input[d] != b->op->shape[d < axis ? d : d + 1])
            return bad(b, "indices and output do not belong together");
    if (b->op->input != SCOUT_INT64 && b->op->input != SCOUT_INT32)
        return kind_tensors_refuse(b->why, "type", "indices are int32 or int64");
    scout_tensor *t = kind_tensors_add(&b->to, "indices", SCOUT_INPUT, b->op->input, b->rank, b->input);
    if (!t) return false;
    if (b->op->shape[axis] > INT32_MAX) return bad(b, "too many places to point at");
    t->below = b->op->shape[axis];
    return plain(b, "y", SCOUT_OUTPUT, (int)b->op->rank, b->op->shape);
}

static bool same_shape(builder *b) {
    b->rank = (int)b->op->rank;
    memcpy(b->input, b->op->shape, sizeof b->input);
    return one_to_one(b);
}

static bool build_trilu(builder *b) {
    return b->op->rank < 2 ? bad(b, "a triangle has rows and columns") : same_shape(b);
}

static bool build_squares(builder *b) {
    const bool back = op_is(b->op, "spacetodepth");
    const int64_t *large = back ? b->input : b->op->shape, *small = back ? b->op->shape : b->input;
    const char *mode = op_text(b->op, "mode");
    if (b->rank != 4 || b->op->rank != 4 || small[2] < 1) return bad(b, "squares are made of images");
    const int64_t side = large[2] / small[2];
    if (large[0] != small[0] || checked_mul(small[2], side) != large[2] || checked_mul(small[3], side) != large[3] ||
        checked_mul(checked_mul(large[1], side), side) != small[1])
        return bad(b, "input and output do not belong together");
    if (mode && strcmp(mode, "CRD") != 0 && strcmp(mode, "DCR") != 0)
        return kind_tensors_refuse(b->why, "feature", "the mode %.40s is not covered", mode);
    return one_to_one(b);
}

static bool is_short_float(uint32_t type) { return type == SCOUT_FP8E4M3 || type == SCOUT_FP8E5M2; }

static bool casts_narrow(uint32_t from, uint32_t to) {
    static const uint32_t types[] = {SCOUT_FP32, SCOUT_FP16, SCOUT_BF16, SCOUT_INT8, SCOUT_UINT8};
    const uint32_t other = move_is_narrow(from) ? to : from;
    bool known = move_is_narrow(other) && from != to;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) known = known || types[k] == other;
    return known;
}

/* Whole numbers lose their upper bits where they do not fit. A float beyond a whole number's range becomes its end,
 * where ONNX leaves open what it becomes. No input here is beyond a short float's range, so `saturate` decides nothing,
 * but for fp8e8m0, which has no 0. */
static bool build_cast(builder *b) {
    const uint32_t from = b->op->input, to = b->op->output;
    const bool wide = from == SCOUT_INT64 || from == SCOUT_INT32, narrow = move_is_narrow(from) || move_is_narrow(to);
    if (to == SCOUT_FP8E8M0 && (!op_number(b->op, "saturate", 1) || move_power_up(b->op) < 0))
        return kind_tensors_refuse(b->why, "feature",
                                   "a cast to fp8e8m0 saturates, and rounds up, down or to the nearest");
    if (narrow ? !casts_narrow(from, to) : (is_short_float(to) && wide) || (is_short_float(from) && to == SCOUT_BOOL))
        return kind_tensors_refuse(b->why, "type", "a cast from %s to %s is not covered", dtype_get((dtype)from)->name,
                                   dtype_get((dtype)to)->name);
    if (!same_shape(b)) return false;
    if (wide && to == SCOUT_FP16) b->to.tensors[0].below = 65000; /* beyond it all is infinite */
    return true;
}

static const struct {
    const char *what;
    bool (*build)(builder *b);
    const char *fields[8];
} rows[] = {
    {"transpose", build_transpose, {"perm", "input"}},
    {"slice", build_slice, {"input", "steps", "axes"}},
    {"expand", build_expand, {"input"}},
    {"tile", build_expand, {"input"}},
    {"repeat", build_repeat, {"input"}},
    {"pad", build_pad, {"input", "pads", "mode", "axes"}},
    {"concat", build_along, {"axis", "inputs", "sizes"}},
    {"split", build_along, {"axis", "outputs", "sizes"}},
    {"gather", build_gather, {"axis", "input", "index_dtype"}},
    {"gathernd", build_gathernd, {"input", "indices", "index_dtype", "axis"}},
    {"gatherelements", build_gatherelements, {"axis", "input", "index_dtype"}},
    {"scatternd", build_scatter, {"updates", "indices", "index_dtype", "reduction", "axis"}},
    {"scatterelements", build_scatter, {"axis", "updates", "index_dtype", "reduction"}},
    {"nonzero", build_nonzero, {"input"}},
    {"onehot", build_onehot, {"axis", "input"}},
    {"trilu", build_trilu, {"upper", "diagonal"}},
    {"depthtospace", build_squares, {"input", "mode"}},
    {"spacetodepth", build_squares, {"input", "mode"}},
    {"cast", build_cast, {"saturate", "round_mode"}},
};

/* Of all these candidates know how to load and store them. */
static bool known_type(uint32_t type) {
    static const uint32_t types[] = {SCOUT_FP32,  SCOUT_FP64,  SCOUT_FP16, SCOUT_BF16,    SCOUT_INT8,   SCOUT_UINT8,
                                     SCOUT_INT32, SCOUT_INT64, SCOUT_BOOL, SCOUT_FP8E4M3, SCOUT_FP8E5M2};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (types[k] == type) return true;
    return false;
}

static bool build(const operation *o, arena *a, scout_op *out, scout_why *why) {
    builder b = {.op = out, .why = why};
    size_t row = 0;
    out->input = (uint32_t)o->rec.type;
    out->output = o->rec.out_type != DTYPE_NONE ? (uint32_t)o->rec.out_type : (uint32_t)o->rec.type;
    while (row < sizeof rows / sizeof *rows && !op_is(out, rows[row].what)) row++;
    if (row == sizeof rows / sizeof *rows)
        return kind_tensors_refuse(why, "feature", "a move of kind %.40s is not covered",
                                   out->what ? out->what : "none");
    if (!kind_fields_only(out, rows[row].fields, why)) return false;
    const bool cast = op_is(out, "cast");
    if (!(known_type(out->input) || (cast && move_is_narrow(out->input))) ||
        !(known_type(out->output) || (cast && move_is_narrow(out->output))) ||
        (out->input != out->output && !cast && !move_marks(out)))
        return kind_tensors_refuse(why, "type", "a move of %s into %s is not covered",
                                   dtype_get((dtype)out->input)->name, dtype_get((dtype)out->output)->name);
    b.rank = op_ints(out, "input", b.input, SCOUT_MAX_RANK);
    if (b.rank > SCOUT_MAX_RANK) return kind_tensors_refuse(why, "shape", "an input of %d dimensions", b.rank);
    for (uint32_t d = 0; d < out->rank; d++)
        if (out->shape[d] < 1)
            return kind_tensors_refuse(why, "shape", "a dimension is %lld", (long long)out->shape[d]);
    b.to = kind_tensors_of(out, a, why);
    return rows[row].build(&b);
}

/* Copies are equal; what is combined is rounded with each update; a cast to a float is off by one rounding; of one from
 * a float to whole numbers the fraction is cut off, which is exact. */
static double tolerance(const scout_op *op) {
    const double rounding = kind_rounding(op->output);
    if (move_scatters(op) && (move_combine_of(op) == MOVE_ADD || move_combine_of(op) == MOVE_MUL))
        return rounding * (16 + 4 * (double)op_elements(&op->tensors[2]) / (double)op_elements(&op->tensors[0]));
    return op->input == op->output ? 0 : rounding;
}

const kind kind_move = {.op = OP_MOVE, .build = build, .tolerance = tolerance, .light = true};
