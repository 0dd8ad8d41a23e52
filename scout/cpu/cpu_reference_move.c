/* Where every element of a move comes from, told by its place in the output: not by the pieces that candidates copy. */
#include "scout/cpu/cpu_number.h"
#include "scout/cpu/cpu_reference.h"
#include "scout/cpu/cpu_whole.h"
#include "scout/move.h"

#include <math.h>

static scout_answer open_whole(const scout_op *op, void **state, scout_why *why) {
    (void)op, (void)why;
    *state = NULL;
    return SCOUT_OK;
}

static int64_t grain(const void *state, const scout_op *op, uint32_t output) {
    (void)state, (void)op, (void)output;
    return 1;
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
        else
            from[d] = place[behind + d] * (op_is(op, "slice") ? move_step(op, d) : 1) % x->dims[d];
        if (padded && (from[d] < 0 || from[d] >= x->dims[d])) return (origin){0, -1};
    }
    return (origin){0, flat(x, from)};
}

static scout_answer compute(const void *state, const scout_op *op, void *const *tensors, uint32_t output, int64_t from,
                            int64_t count, double *want, double *spread, double *scratch) {
    const bool gathers = op_is(op, "gather") || op_is(op, "gathernd"),
               along = op_is(op, "concat") || op_is(op, "split");
    const uint32_t to = op->tensors[output].type, type = op->tensors[0].type;
    const bool whole_number = to == SCOUT_INT32 || to == SCOUT_INT64 || to == SCOUT_INT8 || to == SCOUT_UINT8;
    (void)state, (void)scratch;
    for (int64_t k = 0; k < count; k++) {
        int64_t place[SCOUT_MAX_RANK] = {0};
        origin o = {0, from + k};
        if (!gathers) place_of(&op->tensors[output], from + k, place);
        if (gathers)
            o = from_gather(op, tensors, from + k);
        else if (along)
            o = from_pieces(op, output, place);
        else if (!op_is(op, "cast"))
            o = from_one(op, place);
        want[k] = 0;
        if (o.at >= 0) cpu_number_load(type, tensors[o.tensor], o.at, 1, 1, &want[k]);
        if (to == SCOUT_BOOL) want[k] = want[k] != 0;
        if (whole_number) want[k] = trunc(want[k]);
        spread[k] = to == SCOUT_FP16 ? 0x1p-14 : 0; /* below it the steps of fp16 grow no smaller */
    }
    return SCOUT_OK;
}

static const cpu_whole whole = {SCOUT_MOVE, open_whole, grain, compute, NULL};

static scout_answer begin(scout_device *device, const scout_op *op, void *const *tensors, uint64_t seed,
                          scout_check **check, scout_why *why) {
    (void)device, (void)seed;
    return cpu_whole_begin(&whole, op, tensors, check, why);
}

const scout_reference cpu_reference_move = {
    .size = sizeof(scout_reference),
    .kind = SCOUT_MOVE,
    .begin = begin,
    .compare = cpu_whole_compare,
    .end = cpu_whole_end,
    .compare_at = cpu_whole_compare_at,
};
