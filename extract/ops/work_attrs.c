/* Owns which attributes of an operator become fields of its record as they stand: those that change the result or the
 * work and that no lower function reads by itself. What has its default is not written, so that two spellings of one
 * operation stay one. */
#include "extract/ops/work.h"

#include "extract/ops/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum attr_use {
    USE_VALUE,
    USE_COUNT, /* how many numbers or texts the attribute holds */
    USE_ALWAYS /* it has no default */
} attr_use;

typedef struct attr_row {
    const char *op_type, *attr, *field;
    attr_use use;
    double number; /* the default, of a list: of each of its numbers */
    const char *text;
} attr_row;

/* clang-format off */
static const attr_row rows[] = {
    /* operator, attribute, field, use, default number, default text */
    {"AffineGrid", "align_corners", "align_corners", USE_VALUE, 0, NULL},
    {"ArgMax", "select_last_index", "select_last_index", USE_VALUE, 0, NULL},
    {"ArgMin", "select_last_index", "select_last_index", USE_VALUE, 0, NULL},
    {"Attention", "qk_matmul_output_mode", "qk_output", USE_VALUE, 0, NULL},
    {"AveragePool", "ceil_mode", "ceil_mode", USE_VALUE, 0, NULL},
    {"AveragePool", "count_include_pad", "count_include_pad", USE_VALUE, 0, NULL},
    {"BatchNormalization", "spatial", "spatial", USE_VALUE, 1, NULL},
    {"BiasSoftmax", "is_inner_broadcast", "inner_broadcast", USE_VALUE, 0, NULL},
    {"Binarizer", "threshold", "threshold", USE_VALUE, 0, NULL},
    {"BitShift", "direction", "direction", USE_ALWAYS, 0, NULL},
    {"BlackmanWindow", "periodic", "periodic", USE_VALUE, 1, NULL},
    {"BranchwiseRMSNorm", "num_branches", "branches", USE_VALUE, 0, NULL},
    {"CDist", "metric", "metric", USE_VALUE, 0, "sqeuclidean"},
    {"Cast", "round_mode", "round_mode", USE_VALUE, 0, "up"},
    {"Cast", "saturate", "saturate", USE_VALUE, 1, NULL},
    {"CastLike", "round_mode", "round_mode", USE_VALUE, 0, "up"},
    {"CastLike", "saturate", "saturate", USE_VALUE, 1, NULL},
    {"CausalConvWithState", "state_window", "state_window", USE_VALUE, 0, NULL},
    {"Celu", "alpha", "alpha", USE_VALUE, 1, NULL},
    {"Col2Im", "dilations", "dilation", USE_VALUE, 1, NULL},
    {"Col2Im", "pads", "pads", USE_VALUE, 0, NULL},
    {"Col2Im", "strides", "stride", USE_VALUE, 1, NULL},
    {"ConcatFromSequence", "new_axis", "new_axis", USE_VALUE, 0, NULL},
    {"CropAndResize", "extrapolation_value", "extrapolation_value", USE_VALUE, 0, NULL},
    {"CumProd", "exclusive", "exclusive", USE_VALUE, 0, NULL},
    {"CumProd", "reverse", "reverse", USE_VALUE, 0, NULL},
    {"CumSum", "exclusive", "exclusive", USE_VALUE, 0, NULL},
    {"CumSum", "reverse", "reverse", USE_VALUE, 0, NULL},
    {"Conv", "activation_params", "activation_params", USE_VALUE, 0, NULL},
    {"DFT", "inverse", "inverse", USE_VALUE, 0, NULL},
    {"DFT", "onesided", "onesided", USE_VALUE, 0, NULL},
    {"DecoderMaskedMultiHeadAttention", "output_qk", "qk_output", USE_VALUE, 0, NULL},
    {"DeformConv", "offset_group", "offset_group", USE_VALUE, 1, NULL},
    {"DepthToSpace", "mode", "mode", USE_VALUE, 0, "DCR"},
    {"Elu", "alpha", "alpha", USE_VALUE, 1, NULL},
    {"EyeLike", "k", "diagonal", USE_VALUE, 0, NULL},
    {"FusedConv", "activation_params", "activation_params", USE_VALUE, 0, NULL},
    {"FusedGemm", "activation_alpha", "activation_alpha", USE_ALWAYS, 0, NULL},
    {"FusedGemm", "activation_beta", "activation_beta", USE_ALWAYS, 0, NULL},
    {"FusedGemm", "activation_gamma", "activation_gamma", USE_ALWAYS, 0, NULL},
    {"FusedMatMulActivation", "activation_alpha", "activation_alpha", USE_ALWAYS, 0, NULL},
    {"FusedMatMulActivation", "activation_axis", "activation_axis", USE_ALWAYS, 0, NULL},
    {"FusedMatMulActivation", "activation_beta", "activation_beta", USE_ALWAYS, 0, NULL},
    {"FusedMatMulActivation", "activation_gamma", "activation_gamma", USE_ALWAYS, 0, NULL},
    {"GRU", "linear_before_reset", "linear_before_reset", USE_VALUE, 0, NULL},
    {"GatedRMSNorm", "activation", "activation", USE_VALUE, 0, "silu"},
    {"GatherND", "batch_dims", "batch_dims", USE_VALUE, 0, NULL},
    {"GlobalLpPool", "p", "p", USE_VALUE, 2, NULL},
    {"GridSample", "align_corners", "align_corners", USE_VALUE, 0, NULL},
    {"GridSample", "padding_mode", "padding_mode", USE_VALUE, 0, "zeros"},
    {"GroupNormalization", "stash_type", "stash_type", USE_VALUE, 1, NULL},
    {"GroupQueryAttention", "k_quant_type", "k_quant", USE_VALUE, 0, "NONE"},
    {"GroupQueryAttention", "kv_cache_bit_width", "kv_bits", USE_VALUE, 0, NULL},
    {"GroupQueryAttention", "qk_output", "qk_output", USE_VALUE, 0, NULL},
    {"GroupQueryAttention", "smooth_softmax", "smooth_softmax", USE_VALUE, -1, NULL},
    {"GroupQueryAttention", "v_quant_type", "v_quant", USE_VALUE, 0, "NONE"},
    {"HammingWindow", "periodic", "periodic", USE_VALUE, 1, NULL},
    {"HannWindow", "periodic", "periodic", USE_VALUE, 1, NULL},
    {"HardSigmoid", "alpha", "alpha", USE_VALUE, 0.2, NULL},
    {"HardSigmoid", "beta", "beta", USE_VALUE, 0.5, NULL},
    {"ImageDecoder", "pixel_format", "pixel_format", USE_VALUE, 0, "RGB"},
    {"Irfft", "normalized", "normalized", USE_VALUE, 0, NULL},
    {"Irfft", "onesided", "onesided", USE_VALUE, 1, NULL},
    {"Irfft", "signal_ndim", "signal_ndim", USE_VALUE, 1, NULL},
    {"IsAllFinite", "isinf_only", "isinf_only", USE_VALUE, 0, NULL},
    {"IsAllFinite", "isnan_only", "isnan_only", USE_VALUE, 0, NULL},
    {"IsInf", "detect_negative", "detect_negative", USE_VALUE, 1, NULL},
    {"IsInf", "detect_positive", "detect_positive", USE_VALUE, 1, NULL},
    {"LRN", "alpha", "alpha", USE_VALUE, 1e-4, NULL},
    {"LRN", "beta", "beta", USE_VALUE, 0.75, NULL},
    {"LRN", "bias", "offset", USE_VALUE, 1, NULL},
    {"LSTM", "input_forget", "input_forget", USE_VALUE, 0, NULL},
    {"LayerNormalization", "stash_type", "stash_type", USE_VALUE, 1, NULL},
    {"LeakyRelu", "alpha", "alpha", USE_VALUE, 0.01, NULL},
    {"LinearAttention", "chunk_size", "chunk_size", USE_VALUE, 64, NULL},
    {"LinearAttention", "state_window", "state_window", USE_VALUE, 0, NULL},
    {"LinearClassifier", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"LinearRegressor", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"LongformerAttention", "window", "window", USE_ALWAYS, 0, NULL},
    {"LpNormalization", "p", "p", USE_VALUE, 2, NULL},
    {"LpPool", "ceil_mode", "ceil_mode", USE_VALUE, 0, NULL},
    {"LpPool", "p", "p", USE_VALUE, 2, NULL},
    {"MRotaryEmbedding", "is_packed_batching", "packed_batching", USE_VALUE, 0, NULL},
    {"MRotaryEmbedding", "mrope_layout", "mrope_layout", USE_VALUE, 0, NULL},
    {"MRotaryEmbedding", "mrope_section", "mrope_section", USE_ALWAYS, 0, NULL},
    {"MRotaryEmbedding", "scale", "scale", USE_VALUE, 1, NULL},
    {"MatMulBnb4", "quant_type", "quant_type", USE_ALWAYS, 0, NULL},
    {"MatMulFpQ4", "blk_quant_type", "quant_type", USE_VALUE, 1, NULL},
    {"MatMulNBits", "accuracy_level", "accuracy_level", USE_VALUE, 0, NULL},
    {"MaxPool", "ceil_mode", "ceil_mode", USE_VALUE, 0, NULL},
    {"MaxPool", "storage_order", "storage_order", USE_VALUE, 0, NULL},
    {"MaxRoiPool", "spatial_scale", "spatial_scale", USE_VALUE, 1, NULL},
    {"MaxUnpool", "kernel_shape", "kernel", USE_ALWAYS, 0, NULL},
    {"MaxUnpool", "pads", "pads", USE_VALUE, 0, NULL},
    {"MaxUnpool", "strides", "stride", USE_VALUE, 1, NULL},
    {"MaxpoolWithMask", "storage_order", "storage_order", USE_VALUE, 0, NULL},
    {"MoE", "activation_alpha", "activation_alpha", USE_VALUE, 1, NULL},
    {"MoE", "activation_beta", "activation_beta", USE_VALUE, 0, NULL},
    {"MoE", "normalize_routing_weights", "normalize_routing", USE_VALUE, 0, NULL},
    {"MoE", "swiglu_fusion", "swiglu_fusion", USE_VALUE, 0, NULL},
    {"MoE", "swiglu_limit", "swiglu_limit", USE_ALWAYS, 0, NULL},
    {"MoE", "use_sparse_mixer", "sparse_mixer", USE_VALUE, 0, NULL},
    {"Mod", "fmod", "fmod", USE_VALUE, 0, NULL},
    {"MurmurHash3", "positive", "positive", USE_VALUE, 1, NULL},
    {"MurmurHash3", "seed", "seed", USE_VALUE, 0, NULL},
    {"NGramRepeatBlock", "ngram_size", "ngram_size", USE_ALWAYS, 0, NULL},
    {"NhwcFusedConv", "activation_params", "activation_params", USE_VALUE, 0, NULL},
    {"NhwcMaxPool", "ceil_mode", "ceil_mode", USE_VALUE, 0, NULL},
    {"NonMaxSuppression", "center_point_box", "center_point_box", USE_VALUE, 0, NULL},
    {"Normalizer", "norm", "norm", USE_VALUE, 0, "MAX"},
    {"OneHotEncoder", "zeros", "zeros", USE_VALUE, 1, NULL},
    {"Pad", "mode", "mode", USE_VALUE, 0, "constant"},
    {"QLinearAveragePool", "ceil_mode", "ceil_mode", USE_VALUE, 0, NULL},
    {"QLinearAveragePool", "count_include_pad", "count_include_pad", USE_VALUE, 0, NULL},
    {"QMoE", "activation_alpha", "activation_alpha", USE_VALUE, 1, NULL},
    {"QMoE", "activation_beta", "activation_beta", USE_VALUE, 0, NULL},
    {"QMoE", "block_size", "block_size", USE_VALUE, 0, NULL},
    {"QMoE", "normalize_routing_weights", "normalize_routing", USE_VALUE, 0, NULL},
    {"QMoE", "quant_type", "quant_type", USE_VALUE, 0, "int"},
    {"QMoE", "swiglu_fusion", "swiglu_fusion", USE_VALUE, 0, NULL},
    {"QMoE", "swiglu_limit", "swiglu_limit", USE_ALWAYS, 0, NULL},
    {"QMoE", "use_sparse_mixer", "sparse_mixer", USE_VALUE, 0, NULL},
    {"QuantizeLinear", "precision", "precision", USE_VALUE, 0, NULL},
    {"QuantizeLinear", "saturate", "saturate", USE_VALUE, 1, NULL},
    {"QuantizeWithOrder", "order_input", "order_in", USE_ALWAYS, 0, NULL},
    {"QuantizeWithOrder", "order_output", "order_out", USE_ALWAYS, 0, NULL},
    {"DequantizeWithOrder", "order_input", "order_in", USE_ALWAYS, 0, NULL},
    {"DequantizeWithOrder", "order_output", "order_out", USE_ALWAYS, 0, NULL},
    {"RMSNormalization", "stash_type", "stash_type", USE_VALUE, 1, NULL},
    {"RandomNormal", "mean", "alpha", USE_VALUE, 0, NULL},
    {"RandomNormal", "scale", "beta", USE_VALUE, 1, NULL},
    {"RandomNormalLike", "mean", "alpha", USE_VALUE, 0, NULL},
    {"RandomNormalLike", "scale", "beta", USE_VALUE, 1, NULL},
    {"RandomUniform", "high", "beta", USE_VALUE, 1, NULL},
    {"RandomUniform", "low", "alpha", USE_VALUE, 0, NULL},
    {"RandomUniformLike", "high", "beta", USE_VALUE, 1, NULL},
    {"RandomUniformLike", "low", "alpha", USE_VALUE, 0, NULL},
    {"RegexFullMatch", "pattern", "pattern", USE_ALWAYS, 0, NULL},
    {"RelativePositionBias", "is_bidirectional", "bidirectional", USE_VALUE, 0, NULL},
    {"RelativePositionBias", "max_distance", "max_distance", USE_ALWAYS, 0, NULL},
    {"Resize", "antialias", "antialias", USE_VALUE, 0, NULL},
    {"Resize", "cubic_coeff_a", "cubic_coeff_a", USE_VALUE, -0.75, NULL},
    {"Resize", "exclude_outside", "exclude_outside", USE_VALUE, 0, NULL},
    {"Resize", "extrapolation_value", "extrapolation_value", USE_VALUE, 0, NULL},
    {"ReverseSequence", "batch_axis", "batch_axis", USE_VALUE, 1, NULL},
    {"Rfft", "normalized", "normalized", USE_VALUE, 0, NULL},
    {"Rfft", "onesided", "onesided", USE_VALUE, 1, NULL},
    {"Rfft", "signal_ndim", "signal_ndim", USE_VALUE, 1, NULL},
    {"RoiAlign", "mode", "mode", USE_VALUE, 0, "avg"},
    {"RoiAlign", "sampling_ratio", "sampling_ratio", USE_VALUE, 0, NULL},
    {"RoiAlign", "spatial_scale", "spatial_scale", USE_VALUE, 1, NULL},
    {"RotaryEmbedding", "is_packed_batching", "packed_batching", USE_VALUE, 0, NULL},
    {"RotaryEmbedding", "scale", "scale", USE_VALUE, 1, NULL},
    {"STFT", "onesided", "onesided", USE_VALUE, 1, NULL},
    {"SVMClassifier", "kernel_type", "kernel_type", USE_VALUE, 0, "LINEAR"},
    {"SVMClassifier", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"SVMClassifier", "support_vectors", "support_values", USE_COUNT, 0, NULL},
    {"SVMRegressor", "kernel_type", "kernel_type", USE_VALUE, 0, "LINEAR"},
    {"SVMRegressor", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"SVMRegressor", "support_vectors", "support_values", USE_COUNT, 0, NULL},
    {"ScaledSiLU", "alpha", "alpha", USE_VALUE, 1, NULL},
    {"ScatterElements", "reduction", "reduction", USE_VALUE, 0, "none"},
    {"ScatterND", "reduction", "reduction", USE_VALUE, 0, "none"},
    {"Selu", "alpha", "alpha", USE_VALUE, 1.67326319217681884765625, NULL},
    {"Selu", "gamma", "gamma", USE_VALUE, 1.05070102214813232421875, NULL},
    {"Shrink", "bias", "offset", USE_VALUE, 0, NULL},
    {"Shrink", "lambd", "lambda", USE_VALUE, 0.5, NULL},
    {"SpaceToDepth", "mode", "mode", USE_VALUE, 0, "DCR"},
    {"StringNormalizer", "case_change_action", "case_change", USE_VALUE, 0, "NONE"},
    {"StringNormalizer", "is_case_sensitive", "case_sensitive", USE_VALUE, 0, NULL},
    {"StringNormalizer", "stopwords", "stopwords", USE_COUNT, 0, NULL},
    {"StringSplit", "delimiter", "delimiter", USE_VALUE, 0, ""},
    {"StringSplit", "maxsplit", "maxsplit", USE_ALWAYS, 0, NULL},
    {"SwiGLU", "alpha", "alpha", USE_VALUE, 1, NULL},
    {"TensorScatter", "mode", "mode", USE_VALUE, 0, "linear"},
    {"TfIdfVectorizer", "max_gram_length", "max_gram_length", USE_ALWAYS, 0, NULL},
    {"TfIdfVectorizer", "max_skip_count", "max_skip_count", USE_ALWAYS, 0, NULL},
    {"TfIdfVectorizer", "min_gram_length", "min_gram_length", USE_ALWAYS, 0, NULL},
    {"TfIdfVectorizer", "mode", "mode", USE_ALWAYS, 0, NULL},
    {"TfIdfVectorizer", "ngram_indexes", "ngrams", USE_COUNT, 0, NULL},
    {"ThresholdedRelu", "alpha", "alpha", USE_VALUE, 1, NULL},
    {"TopK", "largest", "largest", USE_VALUE, 1, NULL},
    {"TopK", "sorted", "sorted", USE_VALUE, 1, NULL},
    {"TreeEnsemble", "aggregate_function", "aggregate", USE_VALUE, 1, NULL},
    {"TreeEnsemble", "nodes_featureids", "tree_nodes", USE_COUNT, 0, NULL},
    {"TreeEnsemble", "post_transform", "post_transform", USE_VALUE, 0, NULL},
    {"TreeEnsembleClassifier", "nodes_nodeids", "tree_nodes", USE_COUNT, 0, NULL},
    {"TreeEnsembleClassifier", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"TreeEnsembleRegressor", "aggregate_function", "aggregate", USE_VALUE, 0, "SUM"},
    {"TreeEnsembleRegressor", "nodes_nodeids", "tree_nodes", USE_COUNT, 0, NULL},
    {"TreeEnsembleRegressor", "post_transform", "post_transform", USE_VALUE, 0, "NONE"},
    {"UnfoldTensor", "dim", "axis", USE_VALUE, -1, NULL},
    {"UnfoldTensor", "size", "size", USE_ALWAYS, 0, NULL},
    {"UnfoldTensor", "step", "step", USE_VALUE, 1, NULL},
    {"Unique", "axis", "axis", USE_ALWAYS, 0, NULL},
    {"Unique", "sorted", "sorted", USE_VALUE, 1, NULL},
};
/* clang-format on */

/* Attributes are stored in single precision: the shortest decimal that means the same one reads better. */
double cost_real(double x) {
    char digits[32];
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, x);
        const double shorter = strtod(digits, NULL);
        if ((float)shorter == (float)x) return shorter;
    }
    return x;
}

const char *cost_reals(const work *w, int64_t n, const double *x) {
    enum { MOST = 64 };
    const char *text = "";
    for (int64_t k = 0; k < n && k < MOST; k++)
        text = arena_printf(w->arena, "%s%s%.9g", text, k ? "," : "", cost_real(x[k]));
    return n > MOST ? arena_printf(w->arena, "%s,%d more", text, (int)(n - MOST)) : text;
}

static bool all_default(const attr_row *row, const attr *a) {
    if (row->use != USE_VALUE) return false;
    switch (a->kind) {
    case ATTR_INT: return (double)a->i == row->number;
    case ATTR_FLOAT: return (float)a->f == (float)row->number;
    case ATTR_STRING: return strcmp(a->s, row->text ? row->text : "") == 0;
    case ATTR_INTS:
        for (int64_t k = 0; k < a->n; k++) {
            if ((double)a->ints[k] != row->number) return false;
        }
        return true;
    case ATTR_FLOATS: return a->n == 0;
    default: return true;
    }
}

static void set_field(work *w, const attr_row *row, const attr *a) {
    if (row->use == USE_COUNT) {
        oprec_set_int(&w->rec, row->field, a->n);
        return;
    }
    switch (a->kind) {
    case ATTR_INT: oprec_set_int(&w->rec, row->field, a->i); break;
    case ATTR_FLOAT: oprec_set_real(&w->rec, row->field, cost_real(a->f)); break;
    case ATTR_STRING: oprec_set_text(&w->rec, row->field, cost_text(w, a->s, false)); break;
    case ATTR_INTS:
        if (a->n <= 2 * INFO_MAX_RANK) oprec_set_ints(&w->rec, w->arena, row->field, (int)a->n, a->ints);
        break;
    case ATTR_FLOATS: oprec_set_text(&w->rec, row->field, cost_reals(w, a->n, a->floats)); break;
    default: break;
    }
}

/* Operators that are what others are between DequantizeLinear and QuantizeLinear (match_qdq.c); products say it
 * themselves. */
static void set_quantised(work *w) {
    static const char *const names[] = {"QLinearAdd", "QLinearAveragePool", "QLinearConv", "QLinearGlobalAveragePool",
                                        "QLinearMul"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(names[k], w->node->op_type) == 0) oprec_set_text(&w->rec, "quant", "qdq");
}

void work_add_attrs(work *w) {
    const node *n = w->node;
    if (n->op_type[0] == 'Q' && !w->free) set_quantised(w);
    if (n->attr_count == 0 || w->free) return;
    const char first = n->op_type[0];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (rows[k].op_type[0] != first || strcmp(rows[k].op_type, n->op_type) != 0) continue;
        const attr *a = graph_attr_any(n, rows[k].attr);
        if (a && !all_default(&rows[k], a)) set_field(w, &rows[k], a);
    }
}
