/* Owns mixtures of experts that expand/ does not take apart: each token goes through its k best experts, so the
 * work is that of k tokens each, and no more experts are read than there are. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "common/opcost.h"
#include "extract/ops/cost.h"

#include <string.h>

static int64_t elements(const tensor *t, int64_t per_byte) {
    return cost_shaped(t) ? checked_mul(info_count(t->info), per_byte) : 0;
}

void lower_moe(work *w) {
    const node *n = w->node;
    const bool packed = strcmp(n->op_type, "QMoE") == 0;
    const int64_t bits = graph_attr_int(n, "expert_weight_bits", 4),
                  per_byte = packed && bits > 0 && bits < 8 ? 8 / bits : 1;
    const int slots[3] = {2, packed ? 5 : 4, packed ? 8 : 6};
    const tensor *in = cost_in(w, 0), *first = cost_in(w, slots[0]), *second = cost_in(w, slots[1]);
    w->rec.kind = OP_GEMM;
    w->rec.what = "moe";
    cost_set_types(w, in, cost_out(w, 0));
    cost_boundary(w);
    cost_weight found;
    if (n->in_count > 2 && n->in[2] && cost_trace(w, n->in[2], &found)) {
        w->weight = found.root;
        w->rec.weight_type = packed && bits == 4 ? DTYPE_INT4 : found.type;
        oprec_set_text(&w->rec, "weight_side", "b");
    }
    if (cost_rank(in) < 2 || cost_rank(first) < 3 || cost_rank(second) < 3) return;
    const int64_t hidden = cost_dim(in, -1), tokens = hidden > 0 ? info_count(in->info) / hidden : 0;
    const int64_t experts = cost_dim(first, 0), asked = graph_attr_int(n, "k", 1);
    const int64_t top_k = asked < 1 ? 1 : asked > experts ? experts : asked, rows = checked_mul(tokens, top_k);
    const int64_t used = rows < experts ? rows : experts;
    int64_t weights = 0;
    for (int k = 0; k < 3; k++) {
        weights = checked_add(weights, elements(cost_in(w, slots[k]), per_byte));
        cost_share(w, cost_in(w, slots[k]), used, experts);
    }
    cost_boundary(w);
    const int64_t inner = experts > 0 && hidden > 0 ? elements(second, per_byte) / experts / hidden : 0;
    const int64_t shape[3] = {rows, inner, hidden};
    oprec_set_shape(&w->rec, w->arena, 3, shape);
    oprec_set_int(&w->rec, "experts", experts);
    oprec_set_int(&w->rec, "top_k", top_k);
    oprec_set_text(&w->rec, "activation", cost_text(w, graph_attr_string(n, "activation_type", "relu"), true));
    if (cost_in(w, packed ? 4 : 3)) oprec_set_int(&w->rec, "bias", 1);
    if (cost_in(w, slots[2])) oprec_set_int(&w->rec, "gated", 1); /* a third matrix beside the first */
    opcost_macs(&w->rec, experts > 0 ? checked_mul(weights / experts, rows) : 0);
}
