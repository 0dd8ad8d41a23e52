/* The table of patterns and the one pass per pattern that offers it every node whose operator it is anchored at. */
#include "extract/match/match_patterns.h"

#include "extract/graph/operators.h"

#include <string.h>

enum { MATCH_MAX_ANCHORS = 20 };

/* In this order: what is recognised first may be a part of what comes later, never the other way round. */
/* clang-format off */
static const struct match_pattern {
    const char *name;
    match_fn *fn;
    const char *anchors[MATCH_MAX_ANCHORS]; /* operators, of whatever domain */
} match_patterns[] = {
    {"rotary", match_rotary_add, {"Add", "Sum"}},
    {"rotary by halves", match_rotary_concat, {"Concat"}},
    {"layer, RMS and L2 norm", match_norm_root, {"Sqrt", "Pow", "ReduceL2"}},
    {"group norm", match_norm_group, {"InstanceNormalization"}},
    {"activation", match_gate_activation, {"Erf", "Tanh", "Sigmoid", "HardSigmoid", "Clip", "Min", "Relu", "Exp"}},
    {"gated activation", match_gate_product, {"Mul"}},
    {"softmax", match_softmax, {"Div", "Mul"}},
    {"attention", match_attention, {"Softmax", "Div", "Mul"}},
    {"attention mask", match_attention_mask, {"Attention"}},
    {"operands of an attention", match_attention_operands,
     {"Attention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "GroupQueryAttention", "MultiHeadAttention",
      "QAttention"}},
    {"work on dequantised numbers", match_qdq_compute,
     {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "Add", "Mul", "AveragePool", "GlobalAveragePool", "MaxPool", "Flatten",
      "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Concat", "Relu"}},
    {"product of dynamically quantised numbers", match_qdq_integer, {"MatMulInteger", "ConvInteger"}},
    {"product of a transpose", match_gemm_transposes, {"MatMul", "Gemm"}},
};
/* clang-format on */

enum { MATCH_PATTERNS = sizeof match_patterns / sizeof *match_patterns };

/* Which patterns each row of the operator table anchors, one bit each. */
static uint32_t *match_anchors(arena *a, const operator_def *table, size_t count) {
    uint32_t *bits = arena_array(a, uint32_t, count);
    for (size_t k = 0; k < count; k++) {
        for (int p = 0; p < MATCH_PATTERNS; p++) {
            for (int i = 0; i < MATCH_MAX_ANCHORS && match_patterns[p].anchors[i]; i++) {
                if (strcmp(match_patterns[p].anchors[i], table[k].name) == 0) bits[k] |= 1u << p;
            }
        }
    }
    return bits;
}

void match_all(worklist *list) {
    size_t count;
    const operator_def *table = operators_table(&count);
    const uint32_t *anchors = match_anchors(list->arena, table, count);
    match *m = arena_zalloc(list->arena, sizeof *m);
    m->list = list;
    m->model = list->model;
    m->arena = list->arena;
    m->scalars = arena_array(list->arena, flow_scalar_slot, FLOW_SCALARS);
    mask_cache_init(&m->masks);
    for (int p = 0; p < MATCH_PATTERNS; p++) {
        for (int64_t k = 0; k < m->model->node_count; k++) {
            node *n = m->model->nodes[k];
            if (n->def && !n->unknown && anchors[n->def - table] >> p & 1u) match_patterns[p].fn(m, n);
        }
    }
}
