/* Each row of the table is an operator and the function that says what it is made of. */
#include "extract/expand/expand.h"

#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"
#include "extract/infer/infer.h"

#include <string.h>

typedef struct operator_row {
    const char *op_type, *domain; /* NULL: any */
    take_fn *take;
    enum {
        WHEN_KNOWN, /* as it stands it is open where its shapes are known: something else of it does not fit */
        PROJECTS,   /* always: its inputs are those of no attention as long as it is not taken apart */
        STAYS,      /* never: then it is one work */
        LATE        /* never, and behind the first search for patterns: an attention may be made of it as it is */
    } open;
} operator_row;

static const operator_row operators[] = {
    /* sorted by names */
    {"Adagrad", "ai.onnx.preview.training", take_training_step, STAYS},
    {"Adam", "ai.onnx.preview.training", take_training_step, STAYS},
    {"AffineGrid", "", take_affine_grid, STAYS},
    {"ArrayFeatureExtractor", "ai.onnx.ml", take_feature_extractor, STAYS},
    {"Attention", "", take_scores, STAYS},
    {"Attention", "com.microsoft", take_projection, PROJECTS},
    {"AttnLSTM", "com.microsoft", take_memory_lstm, STAYS},
    {"BiasDropout", "com.microsoft", take_bias_dropout, STAYS},
    {"BiasSplitGelu", "com.microsoft", take_bias_split_gelu, STAYS},
    {"Binarizer", "ai.onnx.ml", take_binarizer, STAYS},
    {"BranchwiseRMSNorm", "com.microsoft", take_branchwise_norm, STAYS},
    {"CDist", "com.microsoft", take_distances, STAYS},
    {"CausalConvWithState", NULL, take_causal_conv, STAYS},
    {"CenterCropPad", "", take_center, STAYS},
    {"Col2Im", "", take_col2im, STAYS},
    {"ComplexMul", "com.microsoft", take_complex_product, STAYS},
    {"ComplexMulConj", "com.microsoft", take_complex_product, STAYS},
    {"Compress", "", take_compress, STAYS},
    {"ConcatFromSequence", "", take_sequence_concat, STAYS},
    {"ConstantOfShape", "", take_filled, STAYS},
    {"ConvTransposeWithDynamicPads", "com.microsoft", take_conv_transpose, STAYS},
    {"DFT", "", take_dft, STAYS},
    {"DecoderAttention", "com.microsoft", take_decoder_attention, STAYS},
    {"DecoderMaskedMultiHeadAttention", "com.microsoft", take_multi_head, WHEN_KNOWN},
    {"DecoderMaskedSelfAttention", "com.microsoft", take_projection, PROJECTS},
    {"DeformConv", "", take_deformed, STAYS},
    {"DequantizeWithOrder", "com.microsoft", take_ordered_floats, STAYS},
    {"DynamicQuantizeLSTM", "com.microsoft", take_byte_lstm, STAYS},
    {"DynamicQuantizeMatMul", "com.microsoft", take_dynamic_product, WHEN_KNOWN},
    {"Einsum", "", take_einsum, STAYS},
    {"EmbedLayerNormalization", "com.microsoft", take_embedding, WHEN_KNOWN},
    {"EngramGate", "com.microsoft", take_engram_gate, STAYS},
    {"EyeLike", "", take_eye, STAYS},
    {"FusedMatMul", "com.microsoft", take_product, LATE},
    {"FusedMatMulActivation", "com.microsoft", take_product, LATE},
    {"GatedAdd", "com.microsoft", take_gated_add, STAYS},
    {"GatedRMSNorm", "com.microsoft", take_gated_norm, STAYS},
    {"GatedRelativePositionBias", "com.microsoft", take_gated_position_bias, STAYS},
    {"GatherND", "", take_gather_nd, STAYS},
    {"GemmFloat8", "com.microsoft", take_turned_product, STAYS},
    {"GemmaRotaryEmbedding", "com.microsoft", take_gemma_rotary, STAYS},
    {"GroupQueryAttention", "com.microsoft", take_grouped, WHEN_KNOWN},
    {"Hardmax", "", take_hardmax, STAYS},
    {"Irfft", "com.microsoft", take_irfft, STAYS},
    {"IsAllFinite", "com.microsoft", take_all_finite, STAYS},
    {"LinearAttention", NULL, take_linear_attention, STAYS},
    {"LinearAttentionGate", "com.microsoft", take_linear_gate, STAYS},
    {"MRotaryEmbedding", "com.microsoft", take_streams_rotary, STAYS},
    {"MatMul", "", take_product, LATE},
    {"MatMulBlockQuantizedFp8Weight", "com.microsoft", take_block_product, STAYS},
    {"MatMulInteger", "", take_product, LATE},
    {"MatMulInteger16", "com.microsoft", take_short_product, STAYS},
    {"MatMulIntegerToFloat", "com.microsoft", take_product, LATE},
    {"MatMulNBitsMlp", "com.microsoft", take_packed_gate, STAYS},
    {"MatMulNBitsQkv", "com.microsoft", take_packed_projections, STAYS},
    {"MaxUnpool", "", take_max_unpool, STAYS},
    {"MaxpoolWithMask", "com.microsoft", take_masked_pool, STAYS},
    {"MoE", "com.microsoft", take_experts, STAYS},
    {"Momentum", "ai.onnx.preview.training", take_training_step, STAYS},
    {"MulInteger", "com.microsoft", take_integer_product, STAYS},
    {"MultiHeadAttention", "com.microsoft", take_multi_head, WHEN_KNOWN},
    {"MurmurHash3", "com.microsoft", take_hash, STAYS},
    {"NGramRepeatBlock", "com.microsoft", take_ngram_block, STAYS},
    {"NegativeLogLikelihoodLoss", "", take_log_loss, STAYS},
    {"PackedAttention", "com.microsoft", take_packed_attention, PROJECTS},
    {"PackedMultiHeadAttention", "com.microsoft", take_packed_multi_head, WHEN_KNOWN},
    {"PagedAttention", "com.microsoft", take_paged_attention, STAYS},
    {"QAttention", "com.microsoft", take_quantized_projection, PROJECTS},
    {"QEmbedLayerNormalization", "com.microsoft", take_embedding, WHEN_KNOWN},
    {"QLinearConcat", "com.microsoft", take_byte_concat, STAYS},
    {"QLinearLeakyRelu", "com.microsoft", take_byte_leaky_relu, STAYS},
    {"QLinearMatMul", "", take_product, LATE},
    {"QLinearReduceMean", "com.microsoft", take_byte_mean, STAYS},
    {"QLinearSigmoid", "com.microsoft", take_byte_sigmoid, STAYS},
    {"QLinearSoftmax", "com.microsoft", take_byte_softmax, STAYS},
    {"QLinearWhere", "com.microsoft", take_byte_where, STAYS},
    {"QMoE", "com.microsoft", take_experts, STAYS},
    {"QOrderedGelu", "com.microsoft", take_ordered_gelu, STAYS},
    {"QOrderedMatMul", "com.microsoft", take_ordered_product, STAYS},
    {"QuantizeWithOrder", "com.microsoft", take_ordered_bytes, STAYS},
    {"Range", NULL, take_range, STAYS},
    {"ReduceL1", "", take_empty_reduction, STAYS},
    {"ReduceL2", "", take_empty_reduction, STAYS},
    {"ReduceLogSum", "", take_empty_reduction, STAYS},
    {"ReduceLogSumExp", "", take_empty_reduction, STAYS},
    {"ReduceMax", "", take_empty_reduction, STAYS},
    {"ReduceMin", "", take_empty_reduction, STAYS},
    {"ReduceProd", "", take_empty_reduction, STAYS},
    {"ReduceSum", "", take_empty_reduction, STAYS},
    {"ReduceSumSquare", "", take_empty_reduction, STAYS},
    {"RelativePositionBias", "com.microsoft", take_position_bias, STAYS},
    {"RemovePadding", "com.microsoft", take_remove_padding, STAYS},
    {"ReorderInput", "com.microsoft.nchwc", take_reorder, STAYS},
    {"ReorderOutput", "com.microsoft.nchwc", take_reorder, STAYS},
    {"RestorePadding", "com.microsoft", take_restore_padding, STAYS},
    {"ReverseSequence", "", take_reverse_sequence, STAYS},
    {"Rfft", "com.microsoft", take_rfft, STAYS},
    {"STFT", "", take_stft, STAYS},
    {"SampleOp", "com.microsoft", take_sample, STAYS},
    {"ScaledSiLU", "com.microsoft", take_scaled_silu, STAYS},
    {"SoftmaxCrossEntropyLoss", "", take_softmax_loss, STAYS},
    {"SparseAttention", "com.microsoft", take_sparse_attention, WHEN_KNOWN},
    {"TensorScatter", "", take_tensor_scatter, STAYS},
    {"TorchEmbedding", "com.microsoft", take_torch_embedding, STAYS},
    {"TransposeMatMul", "com.microsoft", take_product, LATE},
    {"UnfoldTensor", "com.microsoft", take_unfold, STAYS},
    {"Unique", NULL, take_unique, STAYS},
    {"WordConvEmbedding", "com.microsoft", take_words, STAYS},
};

static void keep(expander *e, node *n) {
    void *items = e->nodes;
    arena_grow(e->m->arena, &items, &e->node_cap, (size_t)e->node_count, sizeof *e->nodes);
    e->nodes = items;
    n->id = e->node_count;
    e->nodes[e->node_count++] = n;
    for (int k = 0; k < n->out_count; k++) {
        if (!n->out[k]) continue;
        n->out[k]->producer = n;
        n->out[k]->producer_slot = k;
    }
}

static void keep_parts(expander *e, const expansion *x) {
    model *m = e->m;
    for (int k = 0; k < x->tensor_count; k++) {
        void *items = m->tensors;
        arena_grow(m->arena, &items, &e->tensor_cap, (size_t)m->tensor_count, sizeof *m->tensors);
        m->tensors = items;
        x->tensors[k]->place = (int)m->tensor_count;
        m->tensors[m->tensor_count++] = x->tensors[k];
    }
    for (int k = 0; k < x->made_count; k++) keep(e, x->made[k]);
    e->parts += x->made_count;
}

/* Of a node that is not known well its parts are not either, whatever constants they are given. */
static void open_parts(const expansion *x, const char *why) {
    for (int k = 0; k < x->made_count; k++) {
        node *const n = x->made[k];
        if (!n->unresolved) n->unresolved = why;
        for (int o = 0; o < n->out_count; o++) {
            tensor *const t = n->out[o];
            if (!t || !info_shaped(t->info) || t->info->inexact || !part_out(x, 0)->info->inexact) continue;
            info *const like = arena_alloc(x->e->m->arena, sizeof *like);
            *like = *t->info;
            like->inexact = true;
            t->info = like;
        }
    }
}

/* A file that asks for more than its size justifies is refused; that it can be read at all goes before its parts, and
 * before what is made of each of them later. */
static bool has_room(const expander *e, const operator_row *row) {
    enum { LATER = 4096 };
    const arena *const a = e->m->arena;
    return row->open < STAYS || a->used + (size_t)e->parts * LATER < a->limit / 2;
}

static void expand(expander *e, node *n, const operator_row *row) {
    if (!has_room(e, row)) return;
    expansion x = {.e = e, .n = n, .last = *n};
    if (x.last.in_count < QKV) x.last.in_count = QKV; /* a packed input is alone */
    x.last.in = arena_array(e->m->arena, tensor *, x.last.in_count);
    for (int k = 0; k < n->in_count; k++) x.last.in[k] = n->in[k];
    const bool blank = tensor_rank(part_out(&x, 0)) < 0;
    x.failed = blank || part_out(&x, 0)->info->val; /* what is known is no work */
    row->take(&x);
    if (x.failed && row->open < STAYS && (row->open == PROJECTS || !blank)) {
        n->whole = true;
        if (!n->unresolved) n->unresolved = "one of its parts does not fit, or is not known";
    }
    if (x.failed || (x.made_count == 0 && x.tensor_count == 0 && x.last.def == n->def)) return;
    if (n->unresolved) open_parts(&x, n->unresolved);
    keep_parts(e, &x);
    *n = x.last;
}

/* Operators of one name stand together. */
static const operator_row *row_named(const char *domain, const char *op_type) {
    const operator_row *const end = operators + sizeof operators / sizeof *operators;
    const operator_row *row = graph_row(operators, (size_t)(end - operators), sizeof *operators, op_type);
    while (row && row > operators && strcmp(row[-1].op_type, op_type) == 0) row--;
    for (; row && row < end && strcmp(row->op_type, op_type) == 0; row++)
        if (!row->domain || strcmp(row->domain, domain) == 0) return row;
    return NULL;
}

static const operator_row *row_of(const node *n, bool late) {
    const bool whole = n->def && !n->misfit && !n->attends && n->out_count > 0 && n->out[0];
    const operator_row *row = whole ? row_named(n->domain, n->op_type) : NULL;
    return row && (row->open == LATE) == late ? row : NULL;
}

bool expand_takes(const char *domain, const char *op_type) { return row_named(domain, op_type); }

/* Each graph's own list is the model's without the others. */
static void keep_order(expander *e) {
    model *m = e->m;
    int *counts = arena_array(m->arena, int, m->graph_count);
    for (int64_t k = 0; k < e->node_count; k++) counts[e->nodes[k]->home->place]++;
    for (int k = 0; k < m->graph_count; k++) {
        m->graphs[k]->nodes = arena_array(m->arena, node *, counts[k]);
        m->graphs[k]->node_count = 0;
    }
    for (int64_t k = 0; k < e->node_count; k++) {
        graph *g = e->nodes[k]->home;
        g->nodes[g->node_count++] = e->nodes[k];
    }
    m->nodes = e->nodes;
    m->node_count = e->node_count;
    graph_link_users(m);
}

static bool expand_rows(model *m, bool late) {
    expander e = {.m = m, .tensor_cap = (size_t)m->tensor_count};
    int64_t first = 0;
    const int64_t count = m->node_count;
    while (first < count && !row_of(m->nodes[first], late)) first++;
    if (first == count) return false;
    map_init(&e.names, m->arena);
    for (int64_t k = 0; k < count; k++) {
        const operator_row *row = row_of(m->nodes[k], late);
        if (row) expand(&e, m->nodes[k], row);
        keep(&e, m->nodes[k]);
    }
    keep_order(&e);
    return m->node_count > count;
}

void expand_model(model *m) { expand_rows(m, false); }
bool expand_products(model *m) { return expand_rows(m, true); }
