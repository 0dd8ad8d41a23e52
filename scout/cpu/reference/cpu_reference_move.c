/* The reference of moves: the source of every element, computed from its place in the output, not from the pieces that
 * candidates copy. */
#include "scout/cpu/reference/cpu_whole.h"
#include "scout/op/move.h"

#include <math.h>
#include <string.h>

/* A scatter is computed at once, as its updates go anywhere, and places are, as they follow one another. */
static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state;
    return move_scatters(op) || op_is(op, "nonzero") ? op_elements(&op->tensors[output]) : 1;
}

typedef struct origin {
    int tensor;
    int64_t at; /* -1: none, a zero */
} origin;

static void place_of(const scout_tensor *t, int64_t at, int64_t *place) {
    for (int d = (int)t->rank - 1; d >= 0; d--) place[d] = at % t->dims[d], at /= t->dims[d];
}

static int64_t flat(const scout_tensor *t, const int64_t *place) {
    int64_t at = 0;
    for (uint32_t d = 0; d < t->rank; d++) at = at * t->dims[d] + place[d];
    return at;
}

static origin from_gather(const scout_op *op, void *const *tensors, int64_t at) {
    const move_gather g = move_gather_of(op);
    const int64_t inner = at % g.inner, k = at / g.inner % g.count, outer = at / g.inner / g.count;
    return (origin){0, (outer * g.length + move_index(&g, tensors[1], k)) * g.inner + inner};
}

static origin from_elements(const scout_op *op, void *const *tensors, int64_t at, const int64_t *place) {
    int64_t from[SCOUT_MAX_RANK];
    double index;
    memcpy(from, place, sizeof from);
    cpu_number_load(op->tensors[1].type, tensors[1], at, 1, 1, &index);
    from[op_number(op, "axis", 0)] = (int64_t)index;
    return (origin){0, flat(&op->tensors[0], from)};
}

static origin from_triangle(const scout_op *op, const int64_t *place) {
    const int64_t behind = place[op->rank - 1] - place[op->rank - 2], diagonal = op_number(op, "diagonal", 0);
    const bool keeps = op_number(op, "upper", 1) ? behind >= diagonal : behind <= diagonal;
    return (origin){0, keeps ? flat(&op->tensors[0], place) : -1};
}

/* As ONNX writes it: the channel of the smaller planes is (i, j, channel) or, where told, (channel, i, j). */
static origin from_squares(const scout_op *op, const int64_t *place) {
    const bool back = op_is(op, "spacetodepth");
    const scout_tensor *x = &op->tensors[0], *y = &op->tensors[1];
    const char *mode = op_text(op, "mode");
    const bool first = mode && strcmp(mode, "CRD") == 0;
    const int64_t side = back ? x->dims[2] / y->dims[2] : y->dims[2] / x->dims[2];
    const int64_t channels = back ? x->dims[1] : y->dims[1];
    int64_t from[4] = {place[0], 0, 0, 0};
    if (back) {
        const int64_t c = place[1], i = first ? c / side % side : c / channels / side,
                      j = first ? c % side : c / channels % side;
        from[1] = first ? c / side / side : c % channels;
        from[2] = place[2] * side + i, from[3] = place[3] * side + j;
    } else {
        const int64_t i = place[2] % side, j = place[3] % side;
        from[1] = first ? (place[1] * side + i) * side + j : (i * side + j) * channels + place[1];
        from[2] = place[2] / side, from[3] = place[3] / side;
    }
    return (origin){0, flat(x, from)};
}

static origin from_pieces(const scout_op *op, uint32_t output, int64_t *place) {
    const int axis = (int)op_number(op, "axis", 0);
    if (op_is(op, "split")) {
        for (uint32_t k = 1; k < output; k++) place[axis] += op->tensors[k].dims[axis];
        return (origin){0, flat(&op->tensors[0], place)};
    }
    int tensor = 0;
    while (place[axis] >= op->tensors[tensor].dims[axis]) place[axis] -= op->tensors[tensor++].dims[axis];
    return (origin){tensor, flat(&op->tensors[tensor], place)};
}

static origin from_one(const scout_op *op, const int64_t *place) {
    const scout_tensor *x = &op->tensors[0];
    int64_t from[SCOUT_MAX_RANK] = {0}, numbers[2 * SCOUT_MAX_RANK] = {0};
    const int behind = (int)op->rank - (int)x->rank;
    const bool turned = op_is(op, "transpose"), padded = op_is(op, "pad");
    if (turned) (void)op_ints(op, "perm", numbers, SCOUT_MAX_RANK);
    if (padded) (void)op_ints(op, "pads", numbers, 2 * SCOUT_MAX_RANK);
    for (int d = 0; d < (int)x->rank; d++) {
        if (turned)
            from[numbers[d]] = place[d];
        else if (padded)
            from[d] = place[d] - numbers[d];
        else if (op_is(op, "repeat"))
            from[d] = place[behind + d] / (op->shape[behind + d] / x->dims[d]);
        else
            from[d] = place[behind + d] * (op_is(op, "slice") ? move_step(op, d) : 1) % x->dims[d];
        if (move_pads_copies(op)) from[d] = move_copied(move_beyond_of(op), from[d], x->dims[d]);
        if (padded && (from[d] < 0 || from[d] >= x->dims[d])) return (origin){0, -1};
    }
    return (origin){0, flat(x, from)};
}

/* Where update `at` goes, by its place among the updates. */
static int64_t scattered(const scout_op *op, void *const *tensors, int64_t at) {
    const scout_tensor *x = &op->tensors[0], *indices = &op->tensors[1], *updates = &op->tensors[2];
    const bool nd = op_is(op, "scatternd");
    const int before = nd ? (int)indices->rank - 1 : 0, parts = nd ? (int)indices->dims[before] : 1;
    int64_t place[SCOUT_MAX_RANK] = {0}, to[SCOUT_MAX_RANK] = {0}, row = 0;
    double index[SCOUT_MAX_RANK];
    place_of(updates, at, place);
    for (int d = 0; d < before; d++) row = row * updates->dims[d] + place[d];
    cpu_number_load(indices->type, tensors[1], nd ? row * parts : at, 1, parts, index);
    for (int d = 0; d < (int)x->rank; d++) {
        if (nd)
            to[d] = d < parts ? (int64_t)index[d] : place[before + d - parts];
        else
            to[d] = d == op_number(op, "axis", 0) ? (int64_t)index[0] : place[d];
    }
    return flat(x, to);
}

/* `spread` holds squares until all updates are in. */
static void compute_scatter(const scout_op *op, void *const *tensors, int64_t count, double *want, double *spread) {
    const uint32_t type = op->tensors[0].type;
    const move_combine how = move_combine_of(op);
    cpu_number_load(type, tensors[0], 0, 1, count, want);
    for (int64_t k = 0; k < count; k++) spread[k] = want[k] * want[k];
    for (int64_t k = 0; k < op_elements(&op->tensors[2]); k++) {
        const int64_t at = scattered(op, tensors, k);
        double u;
        cpu_number_load(type, tensors[2], k, 1, 1, &u);
        const double all[MOVE_COMBINES] = {u, want[at] + u, want[at] * u, fmax(want[at], u), fmin(want[at], u)};
        want[at] = all[how];
        spread[at] = how == MOVE_ADD ? spread[at] + u * u : want[at] * want[at];
    }
    for (int64_t k = 0; k < count; k++) spread[k] = sqrt(spread[k]) + move_least(type);
}

static void compute_places(const scout_op *op, void *const *tensors, int64_t count, double *want) {
    const scout_tensor *x = &op->tensors[0];
    const int64_t all = op_elements(x);
    int64_t at = 0, place[SCOUT_MAX_RANK] = {0};
    for (int64_t k = 0; k < count; k++) want[k] = 0;
    for (int64_t k = 0; k < all; k++) {
        double value;
        cpu_number_load(x->type, tensors[0], k, 1, 1, &value);
        if (value == 0) continue;
        place_of(x, k, place);
        for (uint32_t d = 0; d < x->rank; d++) want[d * all + at] = (double)place[d];
        at++;
    }
}

/* 1 where the index of the place, but for the axis, is the place along it. */
static double marked(const scout_op *op, void *const *tensors, int64_t *place) {
    const int axis = (int)op_number(op, "axis", 0);
    const int64_t along = place[axis];
    double index;
    for (int d = axis; d + 1 < (int)op->rank; d++) place[d] = place[d + 1];
    cpu_number_load(op->tensors[0].type, tensors[0], flat(&op->tensors[0], place), 1, 1, &index);
    return (int64_t)index == along;
}

/* The power of two that is kept of a number, within those that there are. */
static double power_of(double x, int64_t up) {
    int exponent;
    const double part = frexp(fabs(x), &exponent); /* in [0.5, 1), or 0 */
    const bool above = part * 0x1p24 + (double)up >= 0x1p24;
    return part == 0 ? 0x1p-127 : ldexp(1, (int)fmin(127, fmax(-127, exponent - 1 + above)));
}

/* Whole numbers lose their upper bits, floats their fraction and what is beyond the range; of fp4 the end is no longer
 * beyond what inputs reach. */
static void cast(const scout_op *op, double *want) {
    static const struct {
        uint32_t type;
        int bits;
        double least;
    } whole[] = {{SCOUT_INT8, 8, -128}, {SCOUT_UINT8, 8, 0}, {SCOUT_INT32, 32, -0x1p31}, {SCOUT_INT64, 64, -0x1p63},
                 {SCOUT_INT4, 4, -8},   {SCOUT_UINT4, 4, 0}, {SCOUT_INT2, 2, -2},        {SCOUT_UINT2, 2, 0}};
    const uint32_t from = op->tensors[0].type, to = op->tensors[1].type;
    if (to == SCOUT_BOOL) *want = *want != 0;
    if (to == SCOUT_FP4E2M1) *want = fmin(6, fmax(-6, *want));
    const double step = move_step_at(to, *want);
    if (step > 0) *want = rint(*want / step) * step;
    if (to == SCOUT_FP8E8M0) *want = power_of(*want, move_power_up(op));
    for (size_t k = 0; k < sizeof whole / sizeof whole[0]; k++) {
        if (whole[k].type != to) continue;
        const double range = ldexp(1, whole[k].bits), least = whole[k].least;
        *want = trunc(*want);
        if (*want >= least && *want < least + range) continue;
        if (cpu_number_whole(from))
            *want -= floor((*want - least) / range) * range;
        else
            *want = *want < least ? least : least + range - 1;
    }
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const bool gathers = op_is(op, "gather") || op_is(op, "gathernd"),
               along = op_is(op, "concat") || op_is(op, "split"),
               squares = op_is(op, "depthtospace") || op_is(op, "spacetodepth");
    const uint32_t to = op->tensors[output].type, type = op->tensors[0].type;
    (void)state, (void)scratch;
    if (move_scatters(op)) {
        compute_scatter(op, tensors, count, want, spread);
        return SCOUT_OK;
    }
    for (int64_t k = 0; move_marks(op) && k < count; k++) {
        int64_t place[SCOUT_MAX_RANK] = {0};
        place_of(&op->tensors[1], from + k, place);
        if (op_is(op, "onehot")) want[k] = marked(op, tensors, place);
        spread[k] = 0;
    }
    if (op_is(op, "nonzero")) compute_places(op, tensors, count, want);
    if (move_marks(op)) return SCOUT_OK;
    for (int64_t k = 0; k < count; k++) {
        int64_t place[SCOUT_MAX_RANK] = {0};
        origin o = {0, from + k};
        if (!gathers) place_of(&op->tensors[output], from + k, place);
        if (gathers)
            o = from_gather(op, tensors, from + k);
        else if (along)
            o = from_pieces(op, output, place);
        else if (squares)
            o = from_squares(op, place);
        else if (op_is(op, "gatherelements"))
            o = from_elements(op, tensors, from + k, place);
        else if (op_is(op, "trilu"))
            o = from_triangle(op, place);
        else if (!op_is(op, "cast"))
            o = from_one(op, place);
        want[k] = 0;
        if (o.at >= 0) cpu_number_load(type, tensors[o.tensor], o.at, 1, 1, &want[k]);
        spread[k] = move_least(to);
        if (to != type) cast(op, &want[k]);
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {NULL, grain, compute, NULL};
CPU_WHOLE_REFERENCE(cpu_reference_move, SCOUT_MOVE, whole);
