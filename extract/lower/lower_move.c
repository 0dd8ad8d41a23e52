/* Owns what moves data without computing: transposes, copies, casts, gathers, and what moves nothing at all (views,
 * control flow). Bytes are what has to move: a slice reads what it keeps, a view nothing. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "extract/infer/channel_block.h"
#include "extract/ops/cost.h"

#include <string.h>

static void move_set_free(work *w, const char *what) {
    w->rec = (oprec){.kind = OP_MOVE, .what = what};
    w->free = true;
}

void lower_view(work *w) { move_set_free(w, "view"); }

void lower_control(work *w) { move_set_free(w, "control"); }

/* Outside of training a Dropout hands its input on. */
void lower_dropout(work *w) {
    const tensor *mode = cost_in(w, 2);
    const value *known = cost_values(w, mode);
    const bool training = mode && !(known && known->n == 1 && value_at(known, 0) == 0);
    if (training && w->node->opset >= 12)
        lower_elementwise(w);
    else
        lower_view(w);
}

/* ---- what a move reads ---- */

typedef enum move_reads {
    READS_ALL,    /* all inputs: concat, reverse */
    READS_FIRST,  /* the first input: transpose, pad, expand, tile */
    READS_OUTPUT, /* as much as it writes: slice, compress */
    READS_NOTHING /* made from shapes: range, one-hot */
} move_reads;

static const struct {
    const char *op_type;
    move_reads reads;
    bool from_input;  /* its shape does not follow from the output's: the input's dimensions are part of the record */
    const char *axis; /* attribute that is part of the record */
} moves[] = {
    {"BlackmanWindow", READS_NOTHING, false, NULL},
    {"Cast", READS_FIRST, false, NULL},
    {"CastLike", READS_FIRST, false, NULL},
    {"CenterCropPad", READS_OUTPUT, true, NULL},
    {"Col2Im", READS_FIRST, true, NULL},
    {"Compress", READS_OUTPUT, true, "axis"},
    {"Concat", READS_ALL, false, "axis"},
    {"ConcatFromSequence", READS_FIRST, false, "axis"},
    {"ConstantOfShape", READS_NOTHING, false, NULL},
    {"DepthToSpace", READS_FIRST, true, NULL},
    {"Expand", READS_FIRST, true, NULL},
    {"EyeLike", READS_NOTHING, false, NULL},
    {"HammingWindow", READS_NOTHING, false, NULL},
    {"HannWindow", READS_NOTHING, false, NULL},
    {"MaxUnpool", READS_ALL, true, NULL},
    {"MelWeightMatrix", READS_NOTHING, false, NULL},
    {"NonZero", READS_FIRST, true, NULL},
    {"OneHot", READS_FIRST, true, "axis"},
    {"Pad", READS_FIRST, true, NULL},
    {"Range", READS_NOTHING, false, NULL},
    {"ReverseSequence", READS_FIRST, false, "time_axis"},
    {"Slice", READS_OUTPUT, true, NULL},
    {"SpaceToDepth", READS_FIRST, true, NULL},
    {"Split", READS_FIRST, false, "axis"},
    {"Tile", READS_FIRST, true, NULL},
    {"Transpose", READS_FIRST, true, NULL},
    {"Trilu", READS_FIRST, false, NULL},
};

static bool is_sequence_op(const node *n) {
    return strncmp(n->op_type, "Sequence", 8) == 0 || strcmp(n->op_type, "SplitToSequence") == 0;
}

static int64_t bytes_out(const work *w) {
    int64_t bytes = 0;
    for (int k = 0; k < w->node->out_count; k++) bytes = checked_add(bytes, cost_bytes(w, w->node->out[k]));
    return bytes;
}

/* How the axis is cut, where the pieces are not all alike. */
static void move_set_sizes(work *w, int count, tensor *const *pieces) {
    enum { MOST = 64 };
    int64_t sizes[MOST];
    const int64_t axis = oprec_int(&w->rec, "axis", 0);
    bool alike = true;
    if (count < 2 || count > MOST) return;
    for (int k = 0; k < count; k++) {
        if (!cost_shaped(pieces[k])) return;
        sizes[k] = cost_dim(pieces[k], (int)axis);
        alike = alike && sizes[k] == sizes[0];
    }
    if (!alike) oprec_set_ints(&w->rec, w->arena, "sizes", count, sizes);
}

/* Whole numbers that came as an attribute, or as an input since; written unless all are `customary`. */
static void move_set_ints(work *w, const char *field, const char *name, int slot, int64_t customary) {
    int64_t x[2 * INFO_MAX_RANK];
    const attr *given = graph_attr(w->node, name, ATTR_INTS);
    const value *known = given ? NULL : cost_values(w, cost_in(w, slot));
    const int64_t n = given ? given->n : known ? known->n : 0;
    bool told = false;
    if (n < 1 || n > 2 * INFO_MAX_RANK || (given && !given->ints)) return;
    for (int64_t k = 0; k < n; k++) {
        x[k] = given ? given->ints[k] : checked_from_double(value_at(known, k));
        told = told || x[k] != customary;
    }
    if (told) oprec_set_ints(&w->rec, w->arena, field, (int)n, x);
}

/* What is filled in, where that is not what is usual. */
static void move_tell_numbers(work *w, const char *op_type) {
    const bool pad = strcmp(op_type, "Pad") == 0, onehot = strcmp(op_type, "OneHot") == 0;
    const tensor *given = cost_in(w, 2);
    const value *known = cost_values(w, given);
    const double usual = graph_attr_float(w->node, "value", 0);
    bool same = known != NULL;
    for (int64_t k = 0; known && k < known->n; k++) same = same && value_at(known, k) == (onehot ? (double)k : 0);
    if ((pad && (given ? !same : usual != 0)) || (onehot && !same)) work_tell_unknown(w, "value");
}

static void move_set_inputs(work *w, const char *op_type) {
    const node *n = w->node;
    if (strcmp(op_type, "Concat") == 0) oprec_set_int(&w->rec, "inputs", n->in_count);
    if (strcmp(op_type, "Concat") == 0) move_set_sizes(w, n->in_count, n->in);
    if (strcmp(op_type, "Split") == 0) {
        oprec_set_int(&w->rec, "outputs", n->out_count);
        move_set_sizes(w, n->out_count, n->out);
        cost_set_shape(w, cost_in(w, 0));
    }
    if (strcmp(op_type, "Slice") == 0 && cost_in(w, 4)) {
        move_set_ints(w, "steps", "steps", 4, 1);
        if (oprec_field(&w->rec, "steps")) move_set_ints(w, "axes", "axes", 3, -INT64_MAX);
    }
    if (strcmp(op_type, "Pad") == 0) {
        move_set_ints(w, "pads", "pads", 1, 0);
        move_set_ints(w, "axes", "axes", 3, -INT64_MAX);
    }
    if (strcmp(op_type, "Col2Im") == 0) move_set_ints(w, "kernel", "block_shape", 2, -INT64_MAX);
    if (strcmp(op_type, "Trilu") == 0) {
        const value *diagonal = cost_values(w, cost_in(w, 1));
        oprec_set_int(&w->rec, "upper", graph_attr_int(n, "upper", 1));
        if (diagonal && diagonal->n == 1 && value_at(diagonal, 0) != 0)
            oprec_set_int(&w->rec, "diagonal", checked_from_double(value_at(diagonal, 0)));
    }
}

/* The axis counted from the front, as the record has it. */
static void move_set_axis(work *w, const char *name) {
    const attr *given = graph_attr(w->node, name, ATTR_INT);
    if (!given && strcmp(w->node->op_type, "Compress") == 0) return; /* of the flattened tensor */
    const tensor *shaped = cost_shaped(cost_out(w, 0)) ? cost_out(w, 0) : cost_in(w, 0);
    int64_t axis = given ? given->i : strcmp(w->node->op_type, "OneHot") == 0 ? -1 : 0;
    if (axis < 0) axis += cost_rank(shaped) > 0 ? cost_rank(shaped) : 0;
    oprec_set_int(&w->rec, "axis", axis);
}

static void move_set_perm(work *w) {
    const attr *perm = graph_attr(w->node, "perm", ATTR_INTS);
    const int rank = cost_rank(cost_in(w, 0));
    if (rank < 0 || rank > INFO_MAX_RANK) return;
    int64_t order[INFO_MAX_RANK];
    for (int k = 0; k < rank; k++) order[k] = perm && perm->n == rank ? perm->ints[k] : rank - 1 - k;
    oprec_set_ints(&w->rec, w->arena, "perm", rank, order);
}

static bool pads_nothing(const work *w) {
    const attr *given = graph_attr(w->node, "pads", ATTR_INTS);
    const value *known = given ? NULL : cost_values(w, cost_in(w, 1));
    bool nothing = (given && given->ints) || known;
    for (int64_t k = 0; nothing && k < (given ? given->n : known->n); k++)
        nothing = given ? given->ints[k] == 0 : value_at(known, k) == 0;
    return nothing;
}

/* A move that leaves everything where it is: nothing cut off, nothing added, nothing converted. */
static bool moves_nothing(const work *w) {
    static const char *const same_when_equal[] = {"Cast", "CastLike", "CenterCropPad", "Expand", "Slice", "Tile"};
    const node *n = w->node;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    if (!cost_shaped(in) || !cost_shaped(out) || in->info->inexact || out->info->inexact) return false;
    if (strcmp(n->op_type, "Slice") == 0 && cost_in(w, 4)) return false; /* steps may turn it around */
    if (strcmp(n->op_type, "Transpose") == 0) return cost_keeps_order(n);
    if (strcmp(n->op_type, "Pad") == 0) return pads_nothing(w);
    if (strcmp(n->op_type, "Concat") == 0 && n->in_count == 1) return true;
    if (strcmp(n->op_type, "Split") == 0 && n->out_count == 1) return true;
    for (size_t k = 0; k < sizeof same_when_equal / sizeof *same_when_equal; k++) {
        if (strcmp(same_when_equal[k], n->op_type) == 0)
            return info_same_shape(in->info, out->info) && cost_type(w, in) == cost_type(w, out);
    }
    return false;
}

void lower_move(work *w) {
    const char *op_type = w->node->op_type;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    if (is_sequence_op(w->node) || moves_nothing(w)) {
        lower_view(w);
        return;
    }
    w->rec.kind = OP_MOVE;
    w->rec.what = cost_what(w);
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    w->rec.bytes_written = bytes_out(w);
    for (size_t k = 0; k < sizeof moves / sizeof *moves; k++) {
        if (strcmp(moves[k].op_type, op_type) != 0) continue;
        if (moves[k].reads == READS_FIRST) w->rec.bytes_read = cost_bytes(w, in);
        if (moves[k].reads == READS_OUTPUT) {
            const int64_t whole = cost_bytes(w, in);
            w->rec.bytes_read = w->rec.bytes_written < whole ? w->rec.bytes_written : whole;
        }
        if (moves[k].reads == READS_NOTHING) w->rec.bytes_read = 0;
        if (moves[k].from_input && cost_shaped(in))
            oprec_set_ints(&w->rec, w->arena, "input", in->info->rank, in->info->dims);
        if (moves[k].axis) move_set_axis(w, moves[k].axis);
    }
    move_set_inputs(w, op_type);
    move_tell_numbers(w, op_type);
    if (strcmp(op_type, "Transpose") == 0) move_set_perm(w);
}

/* Channels into blocks and back: a transpose of channels within their block and space, or of blocks and space where
 * channels come last. What pads channels was taken apart before (expand/). */
void lower_reorder(work *w) {
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0);
    const bool back = strcmp(w->node->op_type, "ReorderOutput") == 0;
    const bool last = graph_attr_int(w->node, "channels_last", 0) != 0;
    w->rec.kind = OP_MOVE;
    w->rec.what = cost_what(w);
    w->rec.layout = last ? "nhwc" : "nchw";
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    if (!cost_shaped(in) || !cost_shaped(out)) return;
    const tensor *blocked = back ? in : out;
    const int64_t block = channel_block(w->model), channels = cost_dim(blocked, 1), blocks = channels / block;
    const int64_t space = cost_product(blocked->info->dims, 2, blocked->info->rank), batch = cost_dim(blocked, 0);
    if (back && w->rec.bytes_read > w->rec.bytes_written) w->rec.bytes_read = w->rec.bytes_written;
    if (info_count(in->info) != info_count(out->info) || channels % block != 0) {
        oprec_set_ints(&w->rec, w->arena, "input", in->info->rank, in->info->dims);
        return;
    }
    if (space == 1 || (last && blocks == 1)) {
        lower_view(w);
        return;
    }
    const int64_t in_blocks[] = {batch, blocks, space, block};
    const int64_t plain[] = {batch, last ? space : blocks, last ? blocks : block, last ? block : space};
    const int64_t perm[] = {0, last ? 2 : 1, last ? 1 : 3, last ? 3 : 2};
    w->rec.what = "transpose";
    w->rec.layout = NULL;
    oprec_set_shape(&w->rec, w->arena, 4, back ? plain : in_blocks);
    oprec_set_ints(&w->rec, w->arena, "input", 4, back ? in_blocks : plain);
    oprec_set_ints(&w->rec, w->arena, "perm", 4, perm);
}
