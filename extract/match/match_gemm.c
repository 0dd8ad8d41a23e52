/* Products whose operand is a transpose of the last two dimensions: a library reads such an operand as it lies, so the
 * transpose is the product's layout, not a copy. Transposes of constants are folded when the product is lowered. */
#include "extract/match/match_patterns.h"

#include "extract/ops/cost.h"

#include <string.h>

/* The batch was made part of M where the right side has none; a left side read by columns keeps it apart. */
static void unfold_batch(work *w, const tensor *left) {
    const int64_t batch = cost_product(left->info->dims, 0, left->info->rank - 2);
    const int64_t shape[3] = {flow_dim(left, -2), w->rec.shape[1], w->rec.shape[2]};
    if (batch == 1) return;
    oprec_set_shape(&w->rec, w->arena, 3, shape);
    oprec_set_int(&w->rec, "batch", batch);
    oprec_set_int(&w->rec, "batch_stride_b", 0);
}

bool match_gemm_transposes(match *m, node *n) {
    const work *plain = work_of(m->list, n);
    if (!flow_free(m, n) || plain->rec.kind != OP_GEMM || !plain->rec.layout || strlen(plain->rec.layout) != 2 ||
        plain->rec.rank != 3 || n->domain[0])
        return false;
    bool turned[2] = {plain->rec.layout[0] == 't', plain->rec.layout[1] == 't'};
    bool unfold = false;
    flow_set set = {.count = 0};
    flow_add(&set, n);
    for (int side = 0; side < 2 && side < n->in_count; side++) {
        node *t = n->in[side] ? n->in[side]->producer : NULL;
        if (!t || flow_constant(n->in[side]) || !flow_swaps_last(t) || !flow_closed(&set, n->in[side])) continue;
        if (!flow_free(m, t) || n->in[0] == n->in[1]) continue;
        flow_add(&set, t);
        turned[side] = !turned[side];
        if (side == 0) unfold = flow_rank(n->in[0]) > 2 && !oprec_field(&plain->rec, "batch");
    }
    work *w = flow_join(m, &set, n);
    if (!w) return false;
    static const char *const layouts[2][2] = {{"nn", "nt"}, {"tn", "tt"}};
    w->rec = plain->rec;
    w->weight = plain->weight;
    work_take_operands(w, plain);
    w->rec.layout = layouts[turned[0]][turned[1]];
    if (unfold) unfold_batch(w, n->in[0]);
    cost_boundary(w);
    return true;
}
