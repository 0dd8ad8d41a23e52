/* Owns changes between floating and quantised numbers. */
#include "extract/lower/lower.h"

#include "common/checked.h"
#include "extract/ops/cost.h"

#include <string.h>

void lower_quantize(work *w) {
    const node *n = w->node;
    const tensor *in = cost_in(w, 0), *out = cost_out(w, 0), *scale = cost_in(w, 1);
    const bool dynamic = strcmp(n->op_type, "DynamicQuantizeLinear") == 0;
    w->rec.kind = OP_QUANTIZE;
    w->rec.what = dynamic ? "dynamic" : strncmp(n->op_type, "Quantize", 8) == 0 ? "quantize" : "dequantize";
    cost_set_types(w, in, out);
    cost_set_shape(w, in);
    cost_boundary(w);
    if (!cost_shaped(in)) return;
    const int64_t block = graph_attr_int(n, "block_size", 0);
    if (block > 0) oprec_set_int(&w->rec, "block_size", block);
    if (!dynamic && cost_in(w, 2)) oprec_set_int(&w->rec, "zero_points", 1);
    if (!dynamic && cost_shaped(scale) && info_count(scale->info) > 1) {
        int64_t axis = graph_attr_int(n, "axis", 1);
        if (axis < 0) axis += in->info->rank;
        oprec_set_int(&w->rec, "axis", axis);
    }
    w->rec.flops = checked_mul(info_count(in->info), dynamic ? 6 : strcmp(w->rec.what, "quantize") == 0 ? 4 : 2);
}
