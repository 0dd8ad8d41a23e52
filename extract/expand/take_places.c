/* Moves whose places follow from numbers: they are gathers and scatters of rows. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

#include <string.h>

enum { ROWS = 2 };

static tensor *counts(expansion *x, const char *what, int rank, const int64_t *dims) {
    return part_table(x, what, DTYPE_INT64, rank, dims);
}

static int64_t product(const tensor *t, int first, int end) {
    int64_t n = 1;
    for (int k = first; k < end; k++) n = checked_mul(n, tensor_dim(t, k));
    return n;
}

/* All axes from one on make rows. */
static tensor *as_rows(expansion *x, tensor *t, int from) {
    const int64_t dims[ROWS] = {product(t, 0, from), product(t, from, tensor_rank(t))};
    return part_reshaped(x, t, ROWS, dims);
}

static tensor *gathered(expansion *x, tensor *t, tensor *places, int axis) {
    return *part_make(x, &(step){.op_type = "Gather", .in = {t, places}, .attrs = {int_attr("axis", axis)}});
}

void take_feature_extractor(expansion *x) {
    tensor *in = part_in(x, 0), *places = part_in(x, 1);
    if (tensor_rank(places) != 1) places = part_reshaped(x, places, 1, (int64_t[]){tensor_count(places)});
    part_end_reshaped(x, gathered(x, in, places, tensor_rank(in) - 1));
}

void take_torch_embedding(expansion *x) {
    part_end(x, &(step){.op_type = "Gather", .in = {part_in(x, 0), part_in(x, 1)}, .attrs = {int_attr("axis", 0)}});
}

/* Behind its length a sequence stays as it is. */
void take_reverse_sequence(expansion *x) {
    tensor *in = part_in(x, 0), *lengths = part_in(x, 1);
    const int64_t batch_axis = graph_attr_int(x->n, "batch_axis", 1);
    const bool batch_first = batch_axis == 0;
    if (batch_axis + graph_attr_int(x->n, "time_axis", 0) != 1 || (batch_axis != 0 && batch_axis != 1))
        x->failed = true;
    if (x->failed) return;
    const int64_t batch = tensor_dim(in, (int)batch_axis), time = tensor_dim(in, 1 - (int)batch_axis);
    const int64_t of_time[ROWS] = {batch_first ? 1 : time, batch_first ? time : 1};
    const int64_t of_batch[ROWS] = {batch_first ? batch : 1, batch_first ? 1 : batch};
    tensor *steps = counts(x, "steps", ROWS, of_time), *each = counts(x, "batch", ROWS, of_batch);
    lengths = part_reshaped(x, lengths, ROWS, of_batch);
    tensor *turned = part_do(x, "Sub", part_do(x, "Sub", lengths, part_scalar(x, "one", DTYPE_INT64, 1)), steps);
    tensor *at = *part_make(x, &(step){.op_type = "Where", .in = {part_do(x, "Less", steps, lengths), turned, steps}});
    if (!batch_first) at = part_do(x, "Mul", at, part_scalar(x, "sequences", DTYPE_INT64, batch));
    part_end_reshaped(x, gathered(x, as_rows(x, in, ROWS), part_do(x, "Add", at, each), 0));
}

/* Without batches it is a move; with them each index counts from where its batch begins. Mod counts negative ones from
 * the end. */
void take_gather_nd(expansion *x) {
    tensor *in = part_in(x, 0), *at = part_in(x, 1);
    const int batch = (int)graph_attr_int(x->n, "batch_dims", 0), depth = (int)tensor_dim(at, -1);
    const int rank = tensor_rank(at) - 1;
    if (batch <= 0 || rank < 0) x->failed = true;
    if (x->failed) return;
    int64_t sizes[INFO_MAX_RANK], strides[INFO_MAX_RANK], begins[INFO_MAX_RANK];
    for (int k = 0; k < depth; k++) {
        sizes[k] = tensor_dim(in, batch + k);
        strides[k] = product(in, batch + k + 1, batch + depth);
    }
    for (int k = 0; k < rank; k++) begins[k] = k < batch ? tensor_dim(at, k) : 1;
    at = part_do(x, "Mod", at, part_numbers(x, "sizes", depth, sizes));
    if (depth == 1)
        at = part_reshaped(x, at, rank, part_in(x, 1)->info->dims);
    else
        at = *part_make(x, &(step){.op_type = "ReduceSum",
                                   .in = {part_do(x, "Mul", at, part_numbers(x, "strides", depth, strides)),
                                          part_number(x, "axes", -1)},
                                   .attrs = {int_attr("keepdims", 0)}});
    at = part_do(x, "Add", at, counts(x, "begins", rank, begins));
    part_end_reshaped(x, gathered(x, as_rows(x, in, batch + depth), at, 0));
}

/* A cache whose rows are written from a place of each batch on; circular: the first one follows the last. */
void take_tensor_scatter(expansion *x) {
    enum { CACHE, UPDATE, BEGINS, AXES };
    tensor *cache = part_in(x, CACHE), *const update = part_in(x, UPDATE), *const begins = part_in(x, BEGINS);
    const int rank = tensor_rank(cache);
    int64_t axis = graph_attr_int(x->n, "axis", -2);
    if (axis < 0) axis += rank;
    if (axis <= 0 || axis >= rank || tensor_rank(update) != rank) x->failed = true;
    if (x->failed) return;
    const int64_t batch = tensor_dim(cache, 0), lines = product(cache, 1, (int)axis),
                  length = tensor_dim(cache, (int)axis), written = tensor_dim(update, (int)axis);
    tensor *at = counts(x, "steps", AXES, (int64_t[AXES]){1, 1, written});
    if (begins) at = part_do(x, "Add", part_reshaped(x, begins, AXES, (int64_t[AXES]){batch, 1, 1}), at);
    if (strcmp(graph_attr_string(x->n, "mode", "linear"), "circular") == 0)
        at = part_do(x, "Mod", at, part_scalar(x, "length", DTYPE_INT64, length));
    at = part_do(x, "Add", at, counts(x, "lines", AXES, (int64_t[AXES]){batch, lines, 1}));
    at = part_reshaped(x, at, ROWS, (int64_t[ROWS]){checked_mul(checked_mul(batch, lines), written), 1});
    part_end_reshaped(
        x, *part_make(x, &(step){.op_type = "ScatterND",
                                 .in = {as_rows(x, cache, (int)axis + 1), at, as_rows(x, update, (int)axis + 1)}}));
}

/* Windows of one axis, which lie on a new axis at the end. */
void take_unfold(expansion *x) {
    tensor *in = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    const int rank = tensor_rank(in);
    int64_t axis = graph_attr_int(x->n, "dim", -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) x->failed = true;
    if (x->failed) return;
    tensor *places = counts(x, "places", ROWS, (int64_t[ROWS]){tensor_dim(out, (int)axis), tensor_dim(out, -1)});
    if (axis == rank - 1) {
        part_end(x, &(step){.op_type = "Gather", .in = {in, places}, .attrs = {int_attr("axis", axis)}});
        return;
    }
    int64_t *perm = arena_array(x->e->m->arena, int64_t, rank + 1);
    for (int k = 0; k < rank; k++) perm[k] = k <= axis ? k : k + 1;
    perm[rank] = axis + 1;
    part_end(x, &(step){.op_type = "Transpose",
                        .in = {gathered(x, in, places, (int)axis)},
                        .attrs = {ints_attr("perm", rank + 1, perm)}});
}

/* The tokens that are some go back to where they were; all others are zero. */
void take_restore_padding(expansion *x) {
    tensor *in = part_in(x, 0), *const places = part_in(x, 1);
    const int64_t tokens = tensor_dim(in, 0), all = tensor_count(places), dims[ROWS] = {all, tensor_dim(in, 1)};
    if (x->failed) return;
    tensor *at = part_cast(x, part_slice(x, part_reshaped(x, places, 1, &all), 0, 0, tokens), DTYPE_INT64);
    tensor *blank = part_zeros(x, in->info->type, ROWS, dims);
    at = part_reshaped(x, at, ROWS, (int64_t[ROWS]){tokens, 1});
    part_end_reshaped(x, *part_make(x, &(step){.op_type = "ScatterND", .in = {blank, at, in}}));
}

/* One where row and column, which is moved by k, are equal. */
void take_eye(expansion *x) {
    const tensor *out = part_out(x, 0);
    if (x->failed) return;
    const int64_t down[ROWS] = {tensor_dim(out, 0), 1}, along[ROWS] = {1, tensor_dim(out, 1)};
    const step same = {.op_type = "Equal", .in = {counts(x, "rows", ROWS, down), counts(x, "columns", ROWS, along)}};
    if (out->info->type == DTYPE_BOOL)
        part_end(x, &same);
    else
        part_end(x,
                 &(step){.op_type = "Cast", .in = {*part_make(x, &same)}, .attrs = {int_attr("to", out->info->type)}});
}

/* Each point of an image, in coordinates from -1 to 1, times a matrix of each image. */
void take_affine_grid(expansion *x) {
    enum { AXES = 3 };
    static const int64_t perm[AXES] = {0, 2, 1};
    tensor *theta = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    if (x->failed || tensor_rank(theta) != AXES) {
        x->failed = true;
        return;
    }
    const int64_t points = product(out, 1, tensor_rank(out) - 1);
    tensor *grid = part_table(x, "points", theta->info->type, ROWS, (int64_t[ROWS]){points, tensor_dim(theta, 2)});
    tensor *turned =
        *part_make(x, &(step){.op_type = "Transpose", .in = {theta}, .attrs = {ints_attr("perm", AXES, perm)}});
    part_end_reshaped(x, part_do(x, "MatMul", grid, turned));
}

/* What is too long loses both its ends, what is too short gets zeros at both. */
void take_center(expansion *x) {
    tensor *in = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    const int rank = tensor_rank(in);
    if (rank < 1 || rank != tensor_rank(out)) x->failed = true;
    if (x->failed) return;
    int64_t begins[INFO_MAX_RANK], ends[INFO_MAX_RANK], axes[INFO_MAX_RANK], pads[2 * INFO_MAX_RANK];
    bool cuts = false, grows = false;
    for (int k = 0; k < rank; k++) {
        const int64_t more = checked_sub(tensor_dim(out, k), tensor_dim(in, k)), before = more / 2;
        axes[k] = k;
        begins[k] = more < 0 ? -before : 0;
        ends[k] = more < 0 ? begins[k] + tensor_dim(out, k) : tensor_dim(in, k);
        pads[k] = more > 0 ? before : 0;
        pads[rank + k] = more > 0 ? more - before : 0;
        cuts |= more < 0;
        grows |= more > 0;
    }
    const step cut = {.op_type = "Slice",
                      .in = {in, part_numbers(x, "starts", rank, begins), part_numbers(x, "ends", rank, ends),
                             part_numbers(x, "axes", rank, axes)}};
    if (cuts && grows) in = *part_make(x, &cut);
    if (grows)
        part_end(x, &(step){.op_type = "Pad", .in = {in, part_numbers(x, "pads", 2 * rank, pads)}});
    else if (cuts)
        part_end(x, &cut);
    else
        part_end(x, &(step){.op_type = "Identity", .in = {in}});
}

/* Channels get what fills their last block up, or lose it again. What is left fits its blocks, and is a transpose. */
void take_reorder(expansion *x) {
    tensor *in = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    const bool back = strcmp(x->n->op_type, "ReorderOutput") == 0, last = graph_attr_int(x->n, "channels_last", 0) != 0;
    const int rank = tensor_rank(in), axis = last ? rank - 1 : 1;
    const int64_t plain = tensor_dim(back ? out : in, axis), blocked = tensor_dim(back ? in : out, 1);
    if (rank < 2 || rank != tensor_rank(out) || plain >= blocked) x->failed = true;
    if (x->failed) return;
    step reorder = {.domain = x->n->domain,
                    .op_type = x->n->op_type,
                    .in = {in},
                    .attrs = {int_attr("channels_last", last), int_attr("channels", blocked)}};
    if (back) {
        part_end(x, &(step){.op_type = "Slice",
                            .in = {*part_make(x, &reorder), part_number(x, "starts", 0), part_number(x, "ends", plain),
                                   part_number(x, "axes", axis)}});
        return;
    }
    int64_t pads[2 * INFO_MAX_RANK] = {0};
    pads[rank + axis] = checked_sub(blocked, plain);
    reorder.in[0] = *part_make(x, &(step){.op_type = "Pad", .in = {in, part_numbers(x, "pads", 2 * rank, pads)}});
    reorder.attrs[1] = (attr){.name = NULL};
    part_end(x, &reorder);
}

/* Rows whose condition holds. */
void take_compress(expansion *x) {
    tensor *in = part_in(x, 0);
    const bool flat = !graph_attr_any(x->n, "axis");
    if (x->failed) return;
    if (flat) in = part_reshaped(x, in, 1, (int64_t[]){tensor_count(in)});
    tensor *found = part_do(x, "NonZero", part_in(x, 1), NULL);
    tensor *places = part_do(x, "Squeeze", found, part_number(x, "axes", 0));
    part_end(x, &(step){.op_type = "Gather",
                        .in = {in, places},
                        .attrs = {int_attr("axis", flat ? 0 : graph_attr_int(x->n, "axis", 0))}});
}

/* Each value goes back to the place that it was the largest of. */
void take_max_unpool(expansion *x) {
    enum { VALUES, PLACES, SHAPE };
    tensor *in = part_in(x, VALUES), *at = part_in(x, PLACES);
    if (part_in(x, SHAPE)) x->failed = true; /* runtimes differ in what places mean then */
    if (x->failed) return;
    const int64_t given = tensor_count(in), all = tensor_count(part_out(x, 0));
    at = part_reshaped(x, at, 1, &given);
    in = part_reshaped(x, in, 1, &given);
    tensor *blank = part_zeros(x, in ? in->info->type : DTYPE_FP32, 1, &all);
    part_end_reshaped(
        x, *part_make(x, &(step){.op_type = "ScatterElements", .in = {blank, at, in}, .attrs = {int_attr("axis", 0)}}));
}

/* Blocks are summed where they overlap, on an image that has its padding still. */
void take_col2im(expansion *x) {
    enum { CHANNELS = 2 };
    tensor *in = part_in(x, 0);
    const tensor *out = part_out(x, 0);
    const attr *pads = graph_attr(x->n, "pads", ATTR_INTS);
    const int rank = tensor_rank(out), axes = rank - CHANNELS;
    if (tensor_rank(in) != 3 || axes < 1 || (pads && pads->n != 2 * axes)) x->failed = true;
    if (x->failed) return;
    int64_t dims[INFO_MAX_RANK], begins[INFO_MAX_RANK], ends[INFO_MAX_RANK], which[INFO_MAX_RANK], all = 1;
    for (int k = 0; k < rank; k++) {
        const int64_t before = pads && k >= CHANNELS ? pads->ints[k - CHANNELS] : 0;
        const int64_t after = pads && k >= CHANNELS ? pads->ints[k - CHANNELS + axes] : 0;
        begins[k] = before;
        ends[k] = checked_add(before, tensor_dim(out, k));
        dims[k] = checked_add(ends[k], after);
        which[k] = k;
        if (k >= CHANNELS) all = checked_mul(all, dims[k]);
    }
    const int64_t images = product(out, 0, CHANNELS), lines[ROWS] = {images, all},
                  blocks[ROWS] = {images, images > 0 ? tensor_count(in) / images : 0};
    tensor *blank = part_zeros(x, in->info->type, ROWS, lines);
    in = part_reshaped(x, in, ROWS, blocks);
    tensor *sums = *part_make(x, &(step){.op_type = "ScatterElements",
                                         .in = {blank, counts(x, "places", ROWS, blocks), in},
                                         .attrs = {int_attr("axis", 1), text_attr("reduction", "add")}});
    if (!pads) {
        part_end_reshaped(x, sums);
        return;
    }
    sums = part_reshaped(x, sums, rank, dims);
    part_end(x, &(step){.op_type = "Slice",
                        .in = {sums, part_numbers(x, "starts", rank, begins), part_numbers(x, "ends", rank, ends),
                               part_numbers(x, "axes", rank, which)}});
}

/* What it samples is all of its input. */
void take_sample(expansion *x) { part_end(x, &(step){.op_type = "Identity", .in = {part_in(x, 0)}}); }

/* ---- tensors of a sequence ---- */

/* Pieces of a tensor, cut along an axis that each of them may lack. */
static int cut(expansion *x, const node *n, const info *is, tensor **list, int most) {
    tensor *const in = n->in[0];
    const int64_t given = graph_attr_int(n, "axis", 0);
    const int rank = tensor_rank(in), axis = (int)(given < 0 ? given + rank : given);
    int64_t at = 0;
    if (!in || in->home != x->n->home || is->elem_count > most) return -1;
    for (int k = 0; k < is->elem_count; k++) {
        const info *const piece = is->elems[k];
        const int64_t next = checked_add(at, piece->rank == rank ? piece->dims[axis] : 1);
        list[k] = part_slice(x, in, axis, at, next);
        if (piece->rank != rank) list[k] = part_do(x, "Squeeze", list[k], part_number(x, "axes", axis));
        at = next;
    }
    return (int)is->elem_count;
}

/* What a sequence holds, as far as nodes of this graph say so; -1: they do not, or it is more than that. */
static int elements_of(expansion *x, const tensor *sequence, tensor **list, int most) {
    const node *const n = sequence ? sequence->producer : NULL;
    if (!n || n->home != x->n->home || sequence->info->form != INFO_SEQUENCE || most < 1) return -1;
    if (graph_is(n, "SequenceEmpty")) return 0;
    if (graph_is(n, "SplitToSequence") && sequence->info->elem_count > 0) return cut(x, n, sequence->info, list, most);
    if (graph_is(n, "SequenceConstruct") && n->in_count <= most) {
        memcpy(list, n->in, (size_t)n->in_count * sizeof *list);
        return n->in_count;
    }
    if (!graph_is(n, "SequenceInsert")) return -1;
    const int count = elements_of(x, n->in[0], list, most - 1);
    const value *const told = n->in_count > 2 && n->in[2] ? n->in[2]->info->val : NULL;
    int64_t at = n->in_count > 2 && n->in[2] ? told && told->n == 1 ? (int64_t)value_at(told, 0) : INT64_MIN : count;
    if (at < 0 && told) at += count;
    if (count < 0 || at < 0 || at > count) return -1;
    memmove(list + at + 1, list + at, (size_t)(count - at) * sizeof *list);
    list[at] = n->in[1];
    return count + 1;
}

void take_sequence_concat(expansion *x) {
    step s = {.op_type = "Concat", .attrs = {int_attr("axis", graph_attr_int(x->n, "axis", 0))}};
    const bool new_axis = graph_attr_int(x->n, "new_axis", 0) != 0;
    if (x->failed) return;
    const int count = elements_of(x, part_in(x, 0), s.in, STEP_INPUTS);
    if (count < 1) x->failed = true;
    for (int k = 0; k < count; k++) {
        if (!s.in[k] || s.in[k]->home != x->n->home) x->failed = true;
        if (new_axis && !x->failed) s.in[k] = part_do(x, "Unsqueeze", s.in[k], part_number(x, "axes", s.attrs[0].i));
    }
    if (!x->failed) part_end(x, &s);
}
