/* The reference of moves: the source of every element of an output, as kernels/reference/whole.h describes it.
 */
#include "scout/cuda/reference/cuda_whole.h"

#include "kernels/reference/whole.h"
#include "scout/op/move.h"

_Static_assert((int)WHOLE_MOVE_RANK >= (int)SCOUT_MAX_RANK && (int)WHOLE_MOVE_INPUTS >= (int)SCOUT_MAX_TENSORS,
               "whatever an operation has goes into a whole_move_problem");

/* Steps of a tensor that lies densely. */
static int64_t stride_of(const scout_tensor *t, int dim) {
    int64_t stride = 1;
    for (int d = (int)t->rank - 1; d > dim; d--) stride *= t->dims[d];
    return stride;
}

static void set_gathered(const scout_op *op, void *const *tensors, whole_move_problem *w) {
    const move_gather g = move_gather_of(op);
    w->how = WHOLE_MOVE_GATHERED;
    w->length = g.length, w->gathered = g.count, w->inner = g.inner, w->parts = g.parts;
    for (int k = 0; k < g.parts; k++) w->part_lengths[k] = g.lengths[k];
    w->indices = tensors[1], w->index_type = g.index_type;
}

static void set_joined(const scout_op *op, void *const *tensors, whole_move_problem *w) {
    w->how = WHOLE_MOVE_JOINED;
    w->axis = (int)op_number(op, "axis", 0);
    for (uint32_t k = 0; k + 1 < op->tensor_count; k++)
        w->inputs[k] = tensors[k], w->lengths[k] = op->tensors[k].dims[w->axis];
}

static void set_elements(const scout_op *op, void *const *tensors, whole_move_problem *w) {
    w->how = WHOLE_MOVE_ELEMENTS;
    w->axis = (int)op_number(op, "axis", 0);
    for (int d = 0; d < w->rank; d++) w->dims[d].stride = stride_of(&op->tensors[0], d);
    w->indices = tensors[1], w->index_type = op->tensors[1].type;
}

static void set_triangle(const scout_op *op, whole_move_problem *w) {
    w->how = WHOLE_MOVE_TRIANGLE;
    w->upper = op_number(op, "upper", 1) != 0, w->diagonal = op_number(op, "diagonal", 0);
}

/* Places of the output as those of six dimensions: (image, channel, row, i, column, j), or back (image, i, j, channel,
 * row, column); its channels come first where the mode says so. */
static void set_squares(const scout_op *op, whole_move_problem *w) {
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[1];
    const int64_t *in = x->dims, *out = y->dims, plane = in[2] * in[3];
    const char *mode = op_text(op, "mode");
    const int first = mode && strcmp(mode, "CRD") == 0;
    w->how = WHOLE_MOVE_PLACES, w->rank = 6;
    if (op_is(op, "depthtospace")) {
        const int64_t b = out[2] / in[2], c = out[1], i = first ? b : b * c, j = first ? 1 : c,
                      each = first ? b * b : 1;
        const int64_t counts[] = {out[0], c, in[2], b, in[3], b},
                      strides[] = {in[1] * plane, each * plane, in[3], i * plane, 1, j * plane};
        for (int d = 0; d < 6; d++) w->dims[d] = (whole_move_dim){counts[d], 1, 0, counts[d], strides[d]};
        return;
    }
    const int64_t b = in[2] / out[2], c = in[1];
    const int64_t counts[2][6] = {{out[0], b, b, c, out[2], out[3]}, {out[0], c, b, b, out[2], out[3]}},
                  strides[2][6] = {{c * plane, in[3], 1, plane, b * in[3], b},
                                   {c * plane, plane, in[3], 1, b * in[3], b}};
    for (int d = 0; d < 6; d++)
        w->dims[d] = (whole_move_dim){counts[first][d], 1, 0, counts[first][d], strides[first][d]};
}

/* Each dimension of the output is one of the input: all the moves that have one input and no indices. */
static void set_places(const scout_op *op, uint32_t output, whole_move_problem *w) {
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[output];
    const int behind = (int)y->rank - (int)x->rank; /* of an expand or a tile the last dimensions meet */
    int64_t perm[SCOUT_MAX_RANK] = {0}, pads[2 * SCOUT_MAX_RANK] = {0};
    const int turned = op_is(op, "transpose"), padded = op_is(op, "pad"), sliced = op_is(op, "slice");
    if (turned) (void)op_ints(op, "perm", perm, SCOUT_MAX_RANK);
    if (padded) (void)op_ints(op, "pads", pads, 2 * SCOUT_MAX_RANK);
    w->how = padded ? WHOLE_MOVE_PADDED : WHOLE_MOVE_PLACES;
    if (padded) w->beyond = (int)move_beyond_of(op);
    for (int d = 0; d < w->rank; d++) {
        const int own = turned ? (int)perm[d] : d - behind;
        whole_move_dim *const to = &w->dims[d];
        to->step = 1, to->before = 0, to->length = 1, to->stride = 0;
        if (own < 0) continue;
        to->step = sliced ? move_step(op, d) : 1;
        to->before = pads[d];
        to->length = x->dims[own], to->stride = stride_of(x, own);
    }
    if (!op_is(op, "split")) return;
    const int axis = (int)op_number(op, "axis", 0);
    for (uint32_t k = 1; k < output; k++) w->dims[axis].before -= op->tensors[k].dims[axis];
}

/* A dimension that repeats is two: the input's own, and one along which nothing moves. */
static void set_repeat(const scout_op *op, whole_move_problem *w) {
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[1];
    w->how = WHOLE_MOVE_PLACES, w->rank = 0;
    for (int d = 0; d < (int)x->rank; d++) {
        const int64_t own = x->dims[d], times = y->dims[d] / own;
        w->dims[w->rank++] = (whole_move_dim){own, 1, 0, own, stride_of(x, d)};
        if (times > 1) w->dims[w->rank++] = (whole_move_dim){times, 1, 0, 1, 0};
    }
}

_Static_assert((int)WHOLE_MOVE_REFLECTED == (int)MOVE_REFLECT && (int)WHOLE_MOVE_WRAPPED == (int)MOVE_WRAP,
               "what lies beyond is numbered alike");

static cudaError_t scatter(const scout_op *op, void *const *tensors, double *want, float *spread, cudaStream_t stream) {
    const scout_tensor *x = &op->tensors[0], *indices = &op->tensors[1], *updates = &op->tensors[2];
    whole_scatter_problem w = {.x = tensors[0],
                               .indices = tensors[1],
                               .updates = tensors[2],
                               .type = x->type,
                               .index_type = indices->type,
                               .how = (int)move_combine_of(op),
                               .count = op_elements(x),
                               .updated = op_elements(updates),
                               .cols = 1,
                               .rank = (int)x->rank,
                               .axis = (int)op_number(op, "axis", 0)};
    if (op_is(op, "scatternd")) w.parts = (int)indices->dims[indices->rank - 1];
    for (int d = 0; d < w.rank; d++) {
        w.lengths[d] = x->dims[d], w.strides[d] = stride_of(x, d);
        if (w.parts == 0) w.dims[d] = updates->dims[d];
        if (d >= w.parts) w.cols *= x->dims[d];
    }
    return whole_scatter(&w, want, spread, stream);
}

static cudaError_t nonzero(const scout_op *op, void *const *tensors, double *want, float *spread, cudaStream_t stream) {
    const scout_tensor *x = &op->tensors[0];
    whole_nonzero_problem w = {.x = tensors[0], .type = x->type, .rank = (int)x->rank, .count = op_elements(x)};
    for (int d = 0; d < w.rank; d++) w.dims[d] = x->dims[d];
    return whole_nonzero(&w, want, spread, stream);
}

static void set_marked(const scout_op *op, void *const *tensors, whole_move_problem *w) {
    w->how = WHOLE_MOVE_MARKED;
    w->axis = (int)op_number(op, "axis", 0);
    w->indices = tensors[0], w->index_type = op->tensors[0].type;
}

static scout_answer compute(scout_device *device, const scout_op *op, void *const *tensors, uint32_t output,
                            double *want, float *spread, scout_why *why) {
    const scout_tensor *y = &op->tensors[output];
    if (move_scatters(op))
        return cuda_device_answer(scatter(op, tensors, want, spread, device->stream), "computing the reference", why);
    if (op_is(op, "nonzero"))
        return cuda_device_answer(nonzero(op, tensors, want, spread, device->stream), "computing the reference", why);
    whole_move_problem w = {.from = op->tensors[0].type, .to = y->type, .count = op_elements(y), .rank = (int)y->rank};
    w.inputs[0] = tensors[0];
    w.up = move_power_up(op);
    for (int d = 0; d < w.rank; d++) w.dims[d].count = y->dims[d];
    if (op_is(op, "gather") || op_is(op, "gathernd"))
        set_gathered(op, tensors, &w);
    else if (op_is(op, "concat"))
        set_joined(op, tensors, &w);
    else if (op_is(op, "gatherelements"))
        set_elements(op, tensors, &w);
    else if (op_is(op, "trilu"))
        set_triangle(op, &w);
    else if (op_is(op, "depthtospace") || op_is(op, "spacetodepth"))
        set_squares(op, &w);
    else if (op_is(op, "repeat"))
        set_repeat(op, &w);
    else if (op_is(op, "onehot"))
        set_marked(op, tensors, &w);
    else
        set_places(op, output, &w);
    return cuda_device_answer(whole_move(&w, want, spread, device->stream), "computing the reference", why);
}

CUDA_WHOLE_REFERENCE(cuda_whole_move, SCOUT_MOVE, compute);
