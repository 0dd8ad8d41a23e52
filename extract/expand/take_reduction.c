/* Reductions of an empty input: every result is the number that changes nothing. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

#include "common/dtype.h"

#include <math.h>
#include <string.h>

typedef enum neutral { NOTHING, ONE, LEAST, MOST } neutral;

static neutral neutral_of(const char *op_type) {
    static const struct {
        const char *op_type;
        neutral is;
    } rows[] = {
        {"ReduceLogSum", LEAST}, {"ReduceLogSumExp", LEAST}, {"ReduceMax", LEAST},
        {"ReduceMin", MOST},     {"ReduceProd", ONE},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].op_type, op_type) == 0) return rows[k].is;
    return NOTHING;
}

/* Of a type without a sign the most has all bits, as -1. */
static int64_t whole_of(neutral is, const dtype_info *type) {
    const int64_t most = type->bits >= 64 ? INT64_MAX : ((int64_t)1 << (type->bits - 1)) - 1;
    if (is == NOTHING || is == ONE) return is == ONE;
    if (type->is_signed) return is == MOST ? most : -most - 1;
    if (is == LEAST) return 0;
    return type->bits >= 64 ? -1 : 2 * most + 1;
}

void take_empty_reduction(expansion *x) {
    static const double reals[] = {[NOTHING] = 0, [ONE] = 1, [LEAST] = -INFINITY, [MOST] = INFINITY};
    const tensor *const in = part_in(x, 0), *const out = part_out(x, 0);
    if (tensor_rank(in) < 0 || tensor_count(in) != 0 || tensor_count(out) == 0) return;
    const neutral is = neutral_of(x->n->op_type);
    const dtype_info *const type = dtype_get(out->info->type);
    const bool whole = type->cls == DTYPE_CLASS_INT, truth = out->info->type == DTYPE_BOOL;
    if (whole && strncmp(x->n->op_type, "ReduceLog", 9) == 0) return; /* it has no logarithm of 0 */
    arena *const a = x->e->m->arena;
    const int64_t number = truth ? is == ONE || is == MOST : whole ? whole_of(is, type) : 0;
    const info *const told = whole ? info_of_ints(a, out->info->type, 0, info_no_dims, &number, 1)
                                   : info_of_floats(a, out->info->type, 0, info_no_dims, &reals[is], 1);
    tensor *const one = part_constant(x, "neutral", told);
    part_end(x, &(step){.op_type = "Expand", .in = {one, part_numbers(x, "shape", out->info->rank, out->info->dims)}});
}
