/* Moves of data by own kernels: pieces by move_copy, one launch for each; gathers by gather_rows and move_elements;
 * triangles by move_triangle; casts by move_cast, of a few bits by move_narrow. */
#include "scout/cuda/own/own.h"
#include "scout/op/move.h"

typedef enum way { WAY_COPY, WAY_GATHER, WAY_ELEMENTS, WAY_TRIANGLE, WAY_CAST, WAY_NARROW } way;

struct scout_plan {
    way way;
    int count; /* pieces */
    move_copy pieces[SCOUT_MAX_TENSORS];
    int from[SCOUT_MAX_TENSORS], to[SCOUT_MAX_TENSORS]; /* their tensors */
    gather_rows gather;
    move_elements_pass elements;
    move_triangle_pass triangle;
    move_cast cast;
    move_narrow narrow;
    uint64_t zero_bytes; /* of a pad: everything is zero first */
    int output;          /* the last tensor */
};

_Static_assert((int)MOVE_RANK == (int)PASS_PLACES, "the pass takes what a piece may have");

static move_copy copy_of(const move_piece *piece, int size) {
    move_copy c = {.size = size, .rank = piece->rank, .from_at = piece->from_at, .to_at = piece->to_at};
    for (int d = 0; d < c.rank; d++) {
        const int from = c.rank - 1 - d;
        c.dims[d] = piece->dims[from];
        c.from_strides[d] = piece->from_strides[from], c.to_strides[d] = piece->to_strides[from];
    }
    if (c.rank == 0) c.rank = 1, c.dims[0] = c.from_strides[0] = c.to_strides[0] = 1; /* a single element */
    return c;
}

static int plan_of_pieces(const scout_op *op, scout_plan *p) {
    move_piece pieces[SCOUT_MAX_TENSORS];
    int good = 1;
    p->count = move_pieces(op, pieces);
    for (int k = 0; k < p->count; k++) {
        p->pieces[k] = copy_of(&pieces[k], own_pass_size(&op->tensors[0]));
        p->from[k] = pieces[k].from, p->to[k] = pieces[k].to;
        good = good && move_copy_fits(&p->pieces[k]);
    }
    if (op_is(op, "pad")) p->zero_bytes = op->tensors[p->output].bytes;
    return good && p->count > 0;
}

static int plan_of_elements(const scout_op *op, pass_config config, scout_plan *p) {
    const move_elements e = move_elements_of(op);
    p->way = WAY_ELEMENTS;
    p->elements = (move_elements_pass){.size = own_pass_size(&op->tensors[0]),
                                       .rank = e.rank,
                                       .axis = e.rank - 1 - e.axis,
                                       .index_type = (int)e.index_type,
                                       .count = op_elements(&op->tensors[1]),
                                       .config = config};
    for (int d = 0; d < e.rank; d++) {
        p->elements.dims[d] = e.dims[e.rank - 1 - d];
        p->elements.strides[d] = e.strides[e.rank - 1 - d];
    }
    return move_elements_fits(&p->elements);
}

static int plan_of_triangle(const scout_op *op, pass_config config, scout_plan *p) {
    const move_triangle t = move_triangle_of(op);
    p->way = WAY_TRIANGLE;
    p->triangle = (move_triangle_pass){.size = own_pass_size(&op->tensors[0]),
                                       .upper = t.upper,
                                       .rows = t.rows,
                                       .cols = t.cols,
                                       .diagonal = t.diagonal,
                                       .count = op_elements(&op->tensors[0]),
                                       .config = config};
    return move_triangle_fits(&p->triangle);
}

static int plan_of_cast(const scout_op *op, pass_config config, scout_plan *p) {
    const int from = (int)op->tensors[0].type, to = (int)op->tensors[1].type;
    const int64_t count = op_elements(&op->tensors[0]);
    const int narrow = move_is_narrow((uint32_t)from) || move_is_narrow((uint32_t)to);
    p->way = narrow ? WAY_NARROW : WAY_CAST;
    p->cast = (move_cast){from, to, count, config};
    p->narrow = (move_narrow){from, to, (uint32_t)move_power_up(op), count, config};
    return narrow ? move_narrow_fits(&p->narrow) : move_cast_fits(&p->cast);
}

static int plan_of(const scout_op *op, const int64_t *values, scout_plan *p) {
    const pass_config config = own_pass_config(values);
    memset(p, 0, sizeof *p);
    p->output = (int)op->tensor_count - 1;
    if (op_is(op, "cast")) return plan_of_cast(op, config, p);
    if (op_is(op, "gatherelements")) return plan_of_elements(op, config, p);
    if (op_is(op, "trilu")) return plan_of_triangle(op, config, p);
    if (op_is(op, "gather") || op_is(op, "gathernd")) {
        const move_gather g = move_gather_of(op);
        p->way = WAY_GATHER;
        p->gather = (gather_rows){.outer = g.outer,
                                  .length = g.length,
                                  .count = g.count,
                                  .row_bytes = g.inner * own_pass_size(&op->tensors[0]),
                                  .parts = g.parts,
                                  .index_type = (int)g.index_type,
                                  .config = config};
        memcpy(p->gather.lengths, g.lengths, sizeof p->gather.lengths);
        return gather_rows_fits(&p->gather);
    }
    p->way = WAY_COPY;
    const int good = plan_of_pieces(op, p);
    for (int k = 0; k < p->count; k++) p->pieces[k].config = config;
    return good;
}

static scout_answer supports(const scout_op *op, scout_device *device, scout_why *why) {
    scout_plan p;
    (void)device;
    if (move_scatters(op) || move_marks(op))
        return scout_say(why, SCOUT_NO, "feature", "scatters and marks are not its work");
    if (move_pads_copies(op)) return scout_say(why, SCOUT_NO, "feature", "it pads with zeros alone");
    if (plan_of(op, NULL, &p)) return SCOUT_OK;
    return scout_say(why, SCOUT_NO, "type", "move_copy moves elements of 1, 2, 4 and 8 bytes");
}

static scout_answer prepare(const scout_op *op, scout_device *device, const int64_t *values, scout_plan **out,
                            scout_plan_needs *needs, scout_why *why) {
    (void)device, (void)needs;
    scout_plan *const p = *out;
    if (!plan_of(op, values, p)) return scout_say(why, SCOUT_NO, "type", "move_copy does not support this operation");
    return SCOUT_OK;
}

static int launch_pieces(const scout_plan *p, const scout_args *args) {
    int error = 0;
    if (p->zero_bytes) error = move_zero_launch(args->tensors[p->output], p->zero_bytes, args->stream);
    for (int k = 0; k < p->count && !error; k++)
        error = move_copy_launch(&p->pieces[k], args->tensors[p->from[k]], args->tensors[p->to[k]], args->stream);
    return error;
}

static scout_answer launch(scout_plan *p, const scout_args *args, scout_why *why) {
    void *const *t = args->tensors;
    const int error = p->way == WAY_CAST       ? move_cast_launch(&p->cast, t[0], t[1], args->stream)
                      : p->way == WAY_NARROW   ? move_narrow_launch(&p->narrow, t[0], t[1], args->stream)
                      : p->way == WAY_GATHER   ? gather_rows_launch(&p->gather, t[0], t[1], t[2], args->stream)
                      : p->way == WAY_ELEMENTS ? move_elements_launch(&p->elements, t[0], t[1], t[2], args->stream)
                      : p->way == WAY_TRIANGLE ? move_triangle_launch(&p->triangle, t[0], t[1], args->stream)
                                               : launch_pieces(p, args);
    return error ? cuda_device_answer((cudaError_t)error, "launching a move", why) : SCOUT_OK;
}

static int describe(const scout_plan *p, char *json, size_t room) {
    static const char *const kernels[] = {"move_copy",     "gather_rows", "move_elements",
                                          "move_triangle", "move_cast",   "move_narrow"};
    const pass_config *const configs[] = {&p->pieces[0].config, &p->gather.config, &p->elements.config,
                                          &p->triangle.config,  &p->cast.config,   &p->narrow.config};
    const pass_config *c = configs[p->way];
    return snprintf(json, room, "{\"kernel\":\"%s\",\"mode\":\"%s\",\"pieces\":%d,\"threads\":%d,\"resident\":%d}",
                    kernels[p->way], p->way == WAY_COPY ? move_copy_mode(&p->pieces[0]) : "rows", p->count, c->threads,
                    c->resident);
}

const scout_candidate own_move = {
    .size = sizeof(scout_candidate),
    .kind = SCOUT_MOVE,
    .flags = SCOUT_OWN | SCOUT_BASELINE,
    .priority = 50,
    .name = "move_copy",
    .about = "own kernels: copies, transposes, gathers, triangles and casts; the baseline, as no library here has one",
    .approach = "CUSTOM_KERNEL",
    .precisions = (const char *const[]){"fp32", "bf16", "fp16", "int8", NULL},
    .supports = supports,
    .domain = own_pass_domain,
    .prepare = prepare,
    .launch = launch,
    .describe = describe,
    .plan_bytes = sizeof(scout_plan),
};
