/* Owns what is computed element by element. How each input is broadcast is part of the record, since adding a vector to
 * every row is other work than adding two tensors. */
#include "extract/ops/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <inttypes.h>
#include <string.h>

/* tensor: as the output; scalar: one element; vector: a suffix of the output's dimensions; else the dimensions themselves. */
static const char *input_kind(const work *w, const tensor *t, const tensor *out) {
    if (!cost_shaped(t)) return "unknown";
    if (info_same_shape(t->info, out->info)) return "tensor";
    const int64_t count = info_count(t->info);
    if (count == 1) return "scalar";
    const int rank = cost_rank(t);
    int same = 0;
    while (same < rank && same < cost_rank(out) && cost_dim(t, -1 - same) == cost_dim(out, -1 - same)) same++;
    if (cost_product(t->info->dims, 0, rank - same) == 1) return same == cost_rank(out) ? "tensor" : "vector";
    const char *text = "";
    for (int k = 0; k < rank; k++) text = arena_printf(w->arena, "%s%s%" PRId64, text, k ? "x" : "", t->info->dims[k]);
    return text;
}

/* Inputs that are parameters rather than data: scales, zero points, bounds. */
static bool is_side_input(const work *w, int slot) {
    const char *op_type = w->node->op_type;
    if (strncmp(op_type, "QLinear", 7) != 0) return strcmp(op_type, "Clip") == 0 && slot > 0;
    return slot % 3 != 0 || (slot == 6 && strcmp(op_type, "QLinearWhere") != 0);
}

static void set_inputs(work *w, const tensor *out) {
    enum { MOST_NAMED = 8 }; /* a sum of hundreds says how many instead */
    const char *kinds = "";
    int count = 0;
    for (int k = 0; k < w->node->in_count; k++) {
        const tensor *t = cost_in(w, k);
        if (!t || is_side_input(w, k)) continue;
        if (++count > MOST_NAMED) continue;
        kinds = arena_printf(w->arena, "%s%s%s", kinds, count > 1 ? "," : "", input_kind(w, t, out));
    }
    if (count > MOST_NAMED) kinds = arena_printf(w->arena, "%s,%d more", kinds, count - MOST_NAMED);
    if (count > 0 && strcmp(kinds, "tensor") != 0) oprec_set_text(&w->rec, "inputs", kinds);
}

void lower_elementwise(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, strcmp(n->op_type, "Where") == 0 ? 1 : 0), *out = cost_out(w, 0);
    w->rec.kind = OP_ELEMENTWISE;
    w->rec.what = cost_what(w);
    cost_set_types(w, in, out);
    cost_set_shape(w, out);
    cost_boundary(w);
    if (!cost_shaped(out)) return;
    set_inputs(w, out);
    w->rec.flops = checked_from_double((double)info_count(out->info) * n->def->cost);
}
