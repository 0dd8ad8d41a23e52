/* Owns which constants beside its main weight an operation has: recurrences, biases, experts, scales. They are listed
 * with the weight, so that a measurement can load or rebuild all of them. */
#include "extract/ops/work.h"

#include "extract/ops/cost.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *op_type;
    int slot;
    const char *role;
} rows[] = {
    {"BatchNormalization", 2, "bias"}, {"BatchNormalization", 3, "mean"}, {"BatchNormalization", 4, "variance"},
    {"CausalConvWithState", 2, "bias"},
    {"Conv", 2, "bias"},
    {"ConvInteger", 3, "zero_points"},
    {"ConvTranspose", 2, "bias"},
    {"DeformConv", 3, "bias"},
    {"DynamicQuantizeLSTM", 2, "recurrence"}, {"DynamicQuantizeLSTM", 3, "bias"},
    {"DynamicQuantizeLSTM", 7, "peephole"}, {"DynamicQuantizeLSTM", 8, "scales"},
    {"DynamicQuantizeLSTM", 9, "zero_points"}, {"DynamicQuantizeLSTM", 10, "recurrence_scales"},
    {"DynamicQuantizeLSTM", 11, "recurrence_zero_points"},
    {"FusedConv", 2, "bias"},
    {"FusedGemm", 2, "bias"},
    {"GRU", 2, "recurrence"}, {"GRU", 3, "bias"},
    {"GatherBlockQuantized", 2, "scales"}, {"GatherBlockQuantized", 3, "zero_points"},
    {"Gemm", 2, "bias"},
    {"GemmFastGelu", 2, "bias"},
    {"GemmFloat8", 2, "bias"}, {"GemmFloat8", 4, "scales"},
    {"GroupNorm", 2, "bias"},
    {"GroupNormalization", 2, "bias"},
    {"InstanceNormalization", 2, "bias"},
    {"LSTM", 2, "recurrence"}, {"LSTM", 3, "bias"}, {"LSTM", 7, "peephole"},
    {"LayerNormalization", 2, "bias"},
    {"MatMulBnb4", 2, "scales"},
    {"MatMulInteger", 3, "zero_points"},
    {"MatMulIntegerToFloat", 3, "scales"}, {"MatMulIntegerToFloat", 5, "zero_points"},
    {"MatMulIntegerToFloat", 6, "bias"},
    {"MatMulNBits", 2, "scales"}, {"MatMulNBits", 3, "zero_points"}, {"MatMulNBits", 4, "group_index"},
    {"MatMulNBits", 5, "bias"},
    {"MoE", 3, "fc1_bias"}, {"MoE", 4, "fc2"}, {"MoE", 5, "fc2_bias"}, {"MoE", 6, "fc3"}, {"MoE", 7, "fc3_bias"},
    {"NhwcConv", 2, "bias"},
    {"NhwcFusedConv", 2, "bias"},
    {"QGemm", 4, "scales"}, {"QGemm", 5, "zero_points"}, {"QGemm", 6, "bias"},
    {"QLinearConv", 4, "scales"}, {"QLinearConv", 5, "zero_points"}, {"QLinearConv", 8, "bias"},
    {"QLinearMatMul", 4, "scales"}, {"QLinearMatMul", 5, "zero_points"},
    {"QMoE", 3, "scales"}, {"QMoE", 4, "fc1_bias"}, {"QMoE", 5, "fc2"}, {"QMoE", 6, "fc2_scales"},
    {"QMoE", 7, "fc2_bias"}, {"QMoE", 8, "fc3"}, {"QMoE", 9, "fc3_scales"}, {"QMoE", 10, "fc3_bias"},
    {"QMoE", 11, "zero_points"}, {"QMoE", 12, "fc2_zero_points"}, {"QMoE", 13, "fc3_zero_points"},
    {"RNN", 2, "recurrence"}, {"RNN", 3, "bias"},
    {"SkipGroupNorm", 2, "bias"}, {"SkipGroupNorm", 4, "input_bias"},
    {"SkipLayerNormalization", 3, "bias"}, {"SkipLayerNormalization", 4, "input_bias"},
    {"SkipSimplifiedLayerNormalization", 3, "input_bias"},
};
/* clang-format on */

static void add_weight(work *w, const char *role, tensor *t) {
    enum { STEP = 4 };
    if (w->more_count % STEP == 0) {
        work_weight *grown = arena_array(w->arena, work_weight, w->more_count + STEP);
        if (w->more_count > 0) memcpy(grown, w->more, (size_t)w->more_count * sizeof *grown);
        w->more = grown;
    }
    w->more[w->more_count++] = (work_weight){role, t};
}

static void add_constant(work *w, const char *role, tensor *t) {
    cost_weight found;
    if (t && cost_trace(w, t, &found) && found.root != w->weight) add_weight(w, role, found.root);
}

/* One scale for all of it says nothing that the work depends on; a scale per channel or per block does. */
static void set_scales(work *w, const cost_weight *found) {
    const bool many = cost_is_each(found->scales);
    if (w->rec.kind == OP_GEMM || w->rec.kind == OP_CONV || w->rec.kind == OP_EMBEDDING) {
        if (found->block_size > 0)
            oprec_set_int(&w->rec, "block_size", found->block_size);
        else if (many)
            oprec_set_text(&w->rec, "weight_scales", "channel");
        if (many && cost_has_zero(w, found->zero_points)) oprec_set_int(&w->rec, "zero_points", 1);
    }
    add_constant(w, "scales", found->scales);
    add_constant(w, "zero_points", found->zero_points);
}

void work_add_constants(work *w) {
    const node *n = w->node;
    if (!w->weight || w->free) return;
    for (int k = 0; k < n->in_count; k++) {
        cost_weight found;
        if (!n->in[k] || !cost_trace(w, n->in[k], &found) || found.root != w->weight) continue;
        if (found.scales) set_scales(w, &found);
        break;
    }
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (rows[k].op_type[0] != n->op_type[0] || strcmp(rows[k].op_type, n->op_type) != 0) continue;
        if (rows[k].slot < n->in_count) add_constant(w, rows[k].role, n->in[rows[k].slot]);
    }
}
