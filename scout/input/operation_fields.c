/* Members of an operation, as all its JSON forms have them: closed names, checked numbers, one line for what is wrong.
 */
#include "scout/input/operation_internal.h"

#include "scout/input/sparsity.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

const int64_t operation_max_dim = (int64_t)1 << 40;

/* Named dimensions of docs/formats.md (tests compare this with docs/schema/ops.schema.json), and math: tf32 products.
 */
/* clang-format off */
static const char *const field_names[] = {
    "a_zero", "accuracy_level", "activation", "activation_alpha", "activation_axis", "activation_beta", "activation_gamma",
    "activation_max", "activation_min", "activation_params", "activations", "aggregate", "align_corners", "alpha",
    "angle_batch", "angle_dim", "antialias", "axes", "axis", "b_zero", "batch", "batch_a", "batch_axis", "batch_b", "batch_dims", "batch_inside",
    "batch_stride_a", "batch_stride_b", "beta", "bias", "bidirectional", "block_mask", "block_size", "branches", "case_change",
    "case_sensitive", "ceil_mode", "center_point_box", "chain", "channels", "chunk_size", "clip", "coordinates",
    "count_include_pad", "cubic_coeff_a", "delimiter", "detect_negative", "detect_positive", "diagonal", "dilation",
    "direction", "directions", "equation", "exclude_outside", "exclusive", "experts", "exponent",
    "extrapolation_value", "fmod", "frame_length", "frame_step", "gamma", "gated", "global", "group", "group_index",
    "ignore_index", "index_dtype", "indices", "indices_out", "initial_state", "inner", "inner_broadcast", "input",
    "input_bias", "input_forget", "inputs", "interleaved", "inverse", "iou_threshold", "isinf_only", "isnan_only", "k_layout", "k_quant", "kernel",
    "kernel_type", "kv_bits", "kv_heads", "kv_len", "lambda", "largest", "lengths", "linear_before_reset",
    "mask_shape", "masked", "math", "max", "max_distance", "max_gram_length", "max_skip_count",
    "maxsplit", "metric", "min", "min_gram_length", "mode", "mrope_layout", "mrope_section", "new_axis", "ngram_size",
    "ngrams", "norm", "normalize_routing", "normalized", "offset", "offset_group", "offset_mask", "onesided",
    "operands", "order", "order_in", "order_out", "out_layout", "output_padding", "outputs", "p", "packed_batching",
    "packed_tokens", "padding_mode", "pads", "past", "pattern", "peephole", "periodic", "perm", "pixel_format",
    "positive", "post_transform", "precision", "q_layout", "qk_norm", "qk_output", "quant",
    "quant_type", "quantize_axis", "reduction", "residual", "residual_out", "returns", "reverse",
    "rotary_dim", "round_mode", "rounding", "rule", "sampling_ratio", "saturate", "scale", "scales", "scores_out",
    "seed", "select_last_index", "signal_ndim", "sink", "size", "sizes", "smooth_softmax", "softcap",
    "softmax_dtype", "sorted", "sparse_mixer", "spatial", "spatial_scale", "stash_type", "state_window", "step",
    "steps", "stopwords", "storage_order", "stride", "support_values", "swiglu_fusion", "swiglu_limit", "table",
    "threshold", "top_k", "training", "transposed", "tree_nodes", "updates", "upper", "v_head", "v_layout", "v_quant",
    "weight_rearranged", "weight_scales", "weight_side", "window", "window_left", "window_length", "window_right",
    "zero_points", "zeros",
};
/* clang-format on */

/* How many dimensions a kind's shape has; 0: any number. */
static const int kind_ranks[OP_KIND_COUNT] = {
    [OP_GEMM] = 3, [OP_ATTENTION] = 4, [OP_NORM] = 2, [OP_SOFTMAX] = 2, [OP_EMBEDDING] = 2, [OP_ROTARY] = 4,
};

static const char *const patterns[] = {"DENSE", "BLOCK_SPARSE", "STRUCTURED_24", "UNSTRUCTURED"};

_Noreturn void operation_fail(const operation_reader *r, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (*r->entry) guard_fail(r->arena->guard, r->code, "%s: %.200s: %s", r->where, r->entry, text);
    guard_fail(r->arena->guard, r->code, "%s: %s", r->where, text);
}

bool operation_is_field(const char *name) {
    for (size_t k = 0; k < sizeof field_names / sizeof *field_names; k++)
        if (strcmp(field_names[k], name) == 0) return true;
    return false;
}

const char *operation_text(const operation_reader *r, const json_t *o, const char *name) {
    const json_t *x = json_object_get(o, name);
    if (!x || json_is_null(x)) return NULL;
    if (!json_is_string(x) || strlen(json_string_value(x)) != json_string_length(x))
        operation_fail(r, "%s must be a text", name);
    return arena_strndup(r->arena, json_string_value(x), json_string_length(x));
}

const char *operation_field_name(size_t k) {
    return k < sizeof field_names / sizeof *field_names ? field_names[k] : NULL;
}

static int64_t whole(const operation_reader *r, const json_t *x, const char *name, int64_t least, int64_t most) {
    if (!json_is_integer(x)) operation_fail(r, "%s must be a whole number", name);
    const int64_t n = json_integer_value(x);
    if (n < least) operation_fail(r, "%s is %" PRId64 ", but must be at least %" PRId64, name, n, least);
    if (n > most) operation_fail(r, "%s is %" PRId64 ", but can be %" PRId64 " at most", name, n, most);
    return n;
}

int64_t operation_number(const operation_reader *r, const json_t *o, const char *name, int64_t least, int64_t most,
                         int64_t otherwise) {
    const json_t *x = json_object_get(o, name);
    return x ? whole(r, x, name, least, most) : otherwise;
}

dtype operation_dtype(const operation_reader *r, const json_t *o, const char *name) {
    const char *text = operation_text(r, o, name);
    if (!text) return DTYPE_NONE;
    const dtype type = dtype_from_name(text);
    if (type == DTYPE_NONE)
        operation_fail(r, "%s %.60s is not known (known are fp32, fp16, bf16, fp8e4m3fn, int8, … of docs/formats.md)",
                       name, text);
    return type;
}

static int64_t *read_ints(const operation_reader *r, const json_t *x, const char *name, int64_t least, int64_t most) {
    const size_t n = json_array_size(x);
    int64_t *numbers = arena_array(r->arena, int64_t, n ? n : 1);
    for (size_t k = 0; k < n; k++) numbers[k] = whole(r, json_array_get(x, k), name, least, most);
    return numbers;
}

static const char *known_kinds(arena *a) {
    const char *known = oprec_kind_name((op_kind)1);
    for (int k = 2; k < OP_KIND_COUNT; k++) known = arena_printf(a, "%s, %s", known, oprec_kind_name((op_kind)k));
    return known;
}

static op_kind read_kind(const operation_reader *r, const json_t *o) {
    const char *name = operation_text(r, o, "op");
    op_kind kind = OP_UNKNOWN;
    if (!name) operation_fail(r, "its kind is not given: \"op\" is missing; known are: %s", known_kinds(r->arena));
    if (!oprec_kind_from_name(name, &kind))
        operation_fail(r, "kind %.60s is not known; known are: %s", name, known_kinds(r->arena));
    return kind;
}

void operation_read_record(const operation_reader *r, const json_t *o, int64_t least, oprec *rec) {
    *rec = (oprec){.kind = read_kind(r, o)};
    rec->what = operation_text(r, o, "what");
    rec->layout = operation_text(r, o, "layout");
    rec->mask = operation_text(r, o, "mask");
    rec->weight_type = operation_dtype(r, o, "weight_dtype");
    rec->out_type = operation_dtype(r, o, "out_dtype");
    const json_t *shape = json_object_get(o, "shape");
    if (!shape) return;
    if (!json_is_array(shape)) operation_fail(r, "shape must be a list of dimensions");
    if (json_array_size(shape) > OPERATION_MAX_RANK)
        operation_fail(r, "shape has %zu dimensions, %d at most are possible", json_array_size(shape),
                       (int)OPERATION_MAX_RANK);
    rec->rank = (int)json_array_size(shape);
    /* what extract_ops wrote is read whatever it is; a typed shape may have errors */
    rec->shape = read_ints(r, shape, "a dimension of shape", least, least ? operation_max_dim : INT64_MAX);
}

static void read_field(const operation_reader *r, const char *name, const json_t *x, oprec *rec) {
    if (!oprec_field(rec, name) && rec->field_count == OPREC_MAX_FIELDS)
        operation_fail(r, "it has more than %d named dimensions", (int)OPREC_MAX_FIELDS);
    if (json_is_integer(x)) {
        oprec_set_int(rec, name, json_integer_value(x));
    } else if (json_is_real(x)) {
        oprec_set_real(rec, name, json_real_value(x));
    } else if (json_is_string(x)) {
        oprec_set_text(rec, name, arena_strndup(r->arena, json_string_value(x), json_string_length(x)));
    } else if (json_is_array(x)) {
        if (json_array_size(x) > 4096) operation_fail(r, "%s is a list of more than 4096 numbers", name);
        oprec_set_ints(rec, r->arena, name, (int)json_array_size(x), read_ints(r, x, name, INT64_MIN, INT64_MAX));
    } else if (json_is_boolean(x)) {
        if (json_is_true(x)) oprec_set_int(rec, name, 1); /* as hand-written files say it; false is what is customary */
    } else {
        operation_fail(r, "%s must be a number, a text or a list of numbers", name);
    }
}

void operation_read_fields(const operation_reader *r, const json_t *o, oprec *rec) {
    for (size_t k = 0; k < sizeof field_names / sizeof *field_names; k++) {
        const json_t *x = json_object_get(o, field_names[k]);
        if (x && !operation_names_inputs(field_names[k], x)) read_field(r, field_names[k], x, rec);
    }
}

void operation_read_costs(const operation_reader *r, const json_t *o, oprec *rec) {
    rec->macs = operation_number(r, o, "macs", 0, INT64_MAX, 0);
    rec->flops = operation_number(r, o, "flops", 0, INT64_MAX, 0);
    rec->bytes_read = operation_number(r, o, "bytes_read", 0, INT64_MAX, 0);
    rec->bytes_written = operation_number(r, o, "bytes_written", 0, INT64_MAX, 0);
}

void operation_check_record(const operation_reader *r, const oprec *rec) {
    const int rank = (unsigned)rec->kind < OP_KIND_COUNT ? kind_ranks[rec->kind] : 0;
    if (rank && rec->rank != rank)
        operation_fail(r, "shape has %d dimensions, but %s has %d%s", rec->rank, oprec_kind_name(rec->kind), rank,
                       rec->kind == OP_GEMM        ? ": M, N, K"
                       : rec->kind == OP_ATTENTION ? ": batch, heads, queries, head size"
                                                   : "");
    operation_check_block_mask(r, rec);
    if (rec->kind != OP_GEMM) return;
    const opfield *batch = oprec_field(rec, "batch");
    if (batch && (batch->kind != OPFIELD_INT || batch->i < 0 || batch->i > operation_max_dim))
        operation_fail(r, "batch must be a whole number from 1 to %" PRId64, operation_max_dim);
    if (rec->layout && strcmp(rec->layout, "nn") != 0 && strcmp(rec->layout, "nt") != 0 &&
        strcmp(rec->layout, "tn") != 0 && strcmp(rec->layout, "tt") != 0)
        operation_fail(r, "layout %.20s is not one of nn, nt, tn, tt", rec->layout);
}

void operation_read_sparsity(const operation_reader *r, const json_t *o, const char *pattern_name, operation *out) {
    const json_t *x = json_object_get(o, "sparsity");
    const char *pattern = NULL;
    double sparsity = 0;
    if (x && !json_is_number(x)) operation_fail(r, "sparsity must be a number from 0 to below 1");
    if (x) sparsity = json_number_value(x);
    if (!(sparsity >= 0 && sparsity < 1))
        operation_fail(r, "sparsity is %g, but must be at least 0 and below 1", sparsity);
    for (size_t k = 0; pattern_name && k < sizeof patterns / sizeof *patterns; k++)
        if (strcasecmp(patterns[k], pattern_name) == 0) pattern = patterns[k];
    if (pattern_name && !pattern)
        operation_fail(r, "pattern %.40s is not one of DENSE, BLOCK_SPARSE, STRUCTURED_24, UNSTRUCTURED", pattern_name);
    if (!pattern) pattern = sparsity > 0 ? "BLOCK_SPARSE" : "DENSE";
    const bool half = strcmp(pattern, "STRUCTURED_24") == 0, dense = strcmp(pattern, "DENSE") == 0;
    const bool real = json_object_get(o, "weight") != NULL; /* may have more zeros than the pattern asks for */
    if (half && x && !real && fabs(sparsity - 0.5) > 1e-9)
        operation_fail(r, "STRUCTURED_24 is a sparsity of 0.5, not of %g", sparsity);
    if (half && !real) sparsity = 0.5;
    if (dense && sparsity > 0) operation_fail(r, "a sparsity of %g is not a DENSE pattern", sparsity);
    if (!dense && !(sparsity > 0)) operation_fail(r, "pattern %s needs a sparsity above 0", pattern);
    out->sparsity = sparsity;
    out->pattern = pattern;
    out->sparse_block = (int)operation_number(r, o, "sparse_block", 1, 128, 0);
    if (out->sparse_block == sparsity_block) out->sparse_block = 0;
    if (out->sparse_block && strcmp(pattern, "BLOCK_SPARSE") != 0)
        operation_fail(r, "sparse_block is a block size; pattern %s has no blocks", pattern);
    for (int k = 0; out->sparse_block && out->sparse_block != sparsity_sizes[k];)
        if (++k == SPARSITY_SIZES) operation_fail(r, "sparse_block is 16, 32, 64 or 128, not %d", out->sparse_block);
}

/* It could not run, which would show only after the ceilings are measured. A right side that is no weight may hold
 * anything. */
void operation_check_sparsity(const operation_reader *r, const operation *o) {
    if (!(o->sparsity > 0)) return;
    if (o->rec.kind != OP_GEMM)
        operation_fail(r, "sparsity and pattern are for gemm (matmul, linear): %s has no weight that can be sparse",
                       oprec_kind_name(o->rec.kind));
    if (!oprec_field(&o->rec, "weight_side"))
        operation_fail(r, "sparsity belongs to a weight, and this gemm has none: its weight_side must be a or b");
}
