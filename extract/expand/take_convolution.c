/* Convolutions whose taps have offsets: the input is sampled at each tap of each output, and a convolution of 1x1 sums
 * up. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/checked.h"

enum { IMAGE, FILTER, OFFSETS, BIAS, MASK, SIDES = 2, RANK = 4 };

typedef struct deformed {
    int64_t planes, channels;    /* images times groups of offsets; channels of a group */
    int64_t taps, height, width; /* of the output */
    int64_t in_height, in_width;
} deformed;

static tensor *one(expansion *x, const step *s) { return *part_make(x, s); }

static deformed deformed_of(expansion *x) {
    const tensor *const in = part_in(x, IMAGE), *const filter = part_in(x, FILTER), *const out = part_out(x, 0);
    const int64_t groups = graph_attr_int(x->n, "offset_group", 1), channels = tensor_dim(in, 1);
    if (tensor_rank(in) != RANK || tensor_rank(filter) != RANK || tensor_rank(out) != RANK || groups < 1 ||
        channels % groups != 0 || tensor_count(in) < 1 || tensor_count(filter) < 1 || tensor_count(out) < 1) {
        x->failed = true;
        return (deformed){.planes = 1};
    }
    return (deformed){.planes = checked_mul(tensor_dim(in, 0), groups),
                      .channels = channels / groups,
                      .taps = checked_mul(tensor_dim(filter, 2), tensor_dim(filter, 3)),
                      .height = tensor_dim(out, 2),
                      .width = tensor_dim(out, 3),
                      .in_height = tensor_dim(in, 2),
                      .in_width = tensor_dim(in, 3)};
}

/* Places (x, y) from -1 to 1 over the input's sides: offsets are (y, x) in places, from where the tap is. */
static tensor *places_of(expansion *x, const deformed *d) {
    static const int64_t perm[] = {0, 1, 3, 4, 2}, turned[SIDES] = {1, 0};
    const int64_t each[] = {d->planes, d->taps, SIDES, d->height, d->width};
    const int64_t taps[] = {d->taps, d->height, d->width, SIDES}, sides = SIDES;
    const double steps[SIDES] = {2 / (double)d->in_width, 2 / (double)d->in_height};
    tensor *const offsets = part_reshaped(x, part_in(x, OFFSETS), 5, each);
    tensor *const pairs = one(x, &(step){.op_type = "Gather",
                                         .in = {offsets, part_numbers(x, "turned", SIDES, turned)},
                                         .attrs = {int_attr("axis", 2)}});
    tensor *const last = one(x, &(step){.op_type = "Transpose", .in = {pairs}, .attrs = {ints_attr("perm", 5, perm)}});
    if (x->failed) return NULL;
    const dtype type = last->info->type;
    tensor *const scaled =
        part_do(x, "Mul", last, part_constant(x, "steps", info_of_floats(x->e->m->arena, type, 1, &sides, steps, 2)));
    return part_add(x, scaled, part_table(x, "taps", type, RANK, taps));
}

void take_deformed(expansion *x) {
    const deformed d = deformed_of(x);
    if (x->failed) return;
    const tensor *const out = part_out(x, 0), *const filter = part_in(x, FILTER);
    const int64_t rows = checked_mul(d.taps, d.height), depth = checked_mul(tensor_dim(filter, 1), d.taps);
    const int64_t image[] = {d.planes, d.channels, d.in_height, d.in_width}, grid[] = {d.planes, rows, d.width, SIDES};
    const int64_t weights[] = {d.planes, 1, rows, d.width}, filters[] = {tensor_dim(filter, 0), depth, 1, 1};
    const int64_t columns[] = {tensor_dim(out, 0), checked_mul(tensor_dim(part_in(x, IMAGE), 1), d.taps), d.height,
                               d.width};
    tensor *const places = part_reshaped(x, places_of(x, &d), RANK, grid);
    tensor *samples =
        one(x, &(step){.op_type = "GridSample", .in = {part_reshaped(x, part_in(x, IMAGE), RANK, image), places}});
    if (part_in(x, MASK)) samples = part_do(x, "Mul", samples, part_reshaped(x, part_in(x, MASK), RANK, weights));
    tensor *const lines = part_reshaped(x, samples, RANK, columns);
    tensor *const flat = part_reshaped(x, part_in(x, FILTER), RANK, filters);
    part_end(x, &(step){.op_type = "Conv",
                        .in = {lines, flat, part_in(x, BIAS)},
                        .attrs = {int_attr("group", graph_attr_int(x->n, "group", 1))}});
}
