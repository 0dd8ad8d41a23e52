/* The rest of com.microsoft: norms with a residual, quantised elementwise operators, embeddings, and odds and ends. */
#include "common/checked.h"
#include "extract/infer/shape_need.h"
#include "extract/shape/shape.h"

#include <inttypes.h>
#include <string.h>

/* Broadcasts inputs a and b (and d, where it is not negative) into output 0. */
static void broadcast(infer *c, int a, int b, int d, dtype type) {
    int64_t dims[INFO_MAX_RANK], more[INFO_MAX_RANK];
    int rank_a = shape_need_rank(c, a, 0, -1), rank_b = shape_need_rank(c, b, 0, -1);
    int rank = infer_broadcast(c, rank_a, infer_in(c, a)->dims, rank_b, infer_in(c, b)->dims, dims);
    if (d >= 0) {
        int rank_d = shape_need_rank(c, d, 0, -1);
        rank = infer_broadcast(c, rank, dims, rank_d, infer_in(c, d)->dims, more);
        memcpy(dims, more, sizeof dims);
    }
    infer_set(c, 0, type, rank, dims);
}

void shape_ms_qlinear_binary(infer *c) { broadcast(c, 0, 3, -1, infer_type(c, 0)); }

void shape_ms_qlinear_where(infer *c) { broadcast(c, 0, 1, 4, infer_type(c, 1)); }

/* Complex numbers as pairs in the last dimension. */
void shape_ms_complex_mul(infer *c) { broadcast(c, 0, 1, -1, infer_type(c, 0)); }

/* The second operand follows the first one's zero point, where there is one in between. */
void shape_ms_mul_integer(infer *c) { broadcast(c, 0, 2, -1, DTYPE_INT32); }

/* Scale and zero point of the output, then a tensor with scale and zero point each. */
void shape_ms_qlinear_concat(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int n = infer_in_count(c);
    if ((n - 2) % 3 != 0) infer_fail(c, "it has %d inputs; the inputs after the first two come in threes", n);
    if (!infer_attr(c, "axis")) infer_fail(c, "attribute 'axis' is missing");
    int rank = shape_need_rank(c, 2, 1, -1), axis = infer_axis(c, infer_attr_int(c, "axis", 0), rank);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 2, k);
    for (int i = 5; i < n; i += 3) {
        shape_need_rank(c, i, rank, rank);
        for (int k = 0; k < rank; k++)
            if (k != axis) shape_need_dim(c, i, k, dims[k], "as in the first tensor");
        dims[axis] = checked_add(dims[axis], infer_dim(c, i, axis));
    }
    infer_set(c, 0, infer_type(c, 1), rank, dims);
}

/* X, scale, zero point, scale, zero point: what is pooled is input 0, as without quantisation. */
void shape_ms_qlinear_global_pool(infer *c) { shape_pool_global(c); }

/* Half of the channels gate the other half. */
void shape_ms_bias_split_gelu(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 1, -1);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    shape_need_rank(c, 1, 1, 1);
    shape_need_dim(c, 1, 0, dims[rank - 1], "channels");
    dims[rank - 1] = shape_need_multiple(c, dims[rank - 1], 2, "the number of channels", "2");
    infer_set(c, 0, infer_type(c, 0), rank, dims);
}

/* Output, mean, inverse deviation, sum of the inputs. The residual may be missing its leading dimensions. */
void shape_ms_skip_norm(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 2, 3), skip = shape_need_rank(c, 1, 2, 3);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    for (int k = 1; k <= skip; k++) {
        int64_t size = infer_dim(c, 1, -k);
        if (k > rank || (size != dims[rank - k] && !(k == 3 && size == 1)))
            infer_fail(c, "the residual %s does not fit %s", shape_need_text(c, 1), shape_need_text(c, 0));
    }
    for (int i = 2; i < infer_in_count(c); i++)
        if (infer_has(c, i)) shape_need_dim(c, i, 0, dims[rank - 1], "width");
    dims[rank - 1] = 1;
    shape_need_like(c, 0, 0);
    infer_set(c, 1, DTYPE_FP32, rank, dims);
    infer_set(c, 2, DTYPE_FP32, rank, dims);
    shape_need_like(c, 3, 0);
}

void shape_ms_skip_group_norm(infer *c) {
    shape_need_rank(c, 0, 3, -1);
    shape_need_like(c, 0, 0);
    shape_need_like(c, 1, 0);
}

/* Words, positions and segments, added and normalised. The quantised form has as many inputs again for scales. */
void shape_ms_embed_norm(infer *c) {
    bool quantized = graph_is_ms(c->node, "QEmbedLayerNormalization");
    shape_need_rank(c, 0, 2, 2);
    shape_need_rank(c, 2, 2, 2);
    shape_need_rank(c, 3, 2, 2);
    int64_t dims[3] = {infer_dim(c, 0, 0), infer_dim(c, 0, 1), infer_dim(c, 2, 1)};
    shape_need_dim(c, 3, 1, dims[2], "width");
    if (infer_has(c, 4)) shape_need_dim(c, 4, -1, dims[2], "width");
    if (!infer_has(c, 8) && infer_dim(c, 3, 0) < dims[1])
        infer_fail(c, "there are %" PRId64 " positions for a sequence of %" PRId64 "; input 0 is %s",
                   infer_dim(c, 3, 0), dims[1], shape_need_text(c, 0));
    dtype type = quantized ? infer_type(c, 8) : infer_type(c, 2);
    infer_set(c, 0, type, 3, dims);
    infer_set(c, 1, DTYPE_INT32, 1, dims);
    infer_set(c, 2, type, 3, dims);
}

/* Bytes hold several values along the quantised axis; types of four bits say their own size. */
void shape_ms_gather_block_quantized(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 1, -1), index_rank = shape_need_rank(c, 1, 0, -1), at = 0;
    int axis = infer_axis(c, infer_attr_int(c, "gather_axis", 0), rank);
    int quantized = infer_axis(c, infer_attr_int(c, "quantize_axis", 1), rank);
    int64_t bits = infer_attr_int(c, "bits", 4);
    if (bits != 2 && bits != 4 && bits != 8)
        infer_fail(c, "attribute 'bits' is %" PRId64 ", it must be 2, 4 or 8", bits);
    if (rank - 1 + index_rank > INFO_MAX_RANK)
        infer_fail(c, "the output would have %d dimensions", rank - 1 + index_rank);
    for (int k = 0; k < rank; k++) {
        if (k == axis) {
            for (int j = 0; j < index_rank; j++) dims[at++] = infer_dim(c, 1, j);
            continue;
        }
        dims[at] = infer_dim(c, 0, k);
        if (k == quantized && infer_type(c, 0) == DTYPE_UINT8) dims[at] = checked_mul(dims[at], 8 / bits);
        at++;
    }
    infer_set(c, 0, infer_type(c, 2), at, dims);
}

/* Every output is like input 0. */
void shape_ms_like_all(infer *c) {
    if (!infer_shaped(c, 0)) shape_need_rank(c, 0, 0, -1);
    for (int k = 0; k < infer_out_count(c); k++) shape_need_like(c, k, 0);
}

/* As input 0, with the type that an attribute or the operator says. */
void shape_ms_retype(infer *c) {
    dtype type = infer_type(c, 0);
    int64_t to = infer_attr_int(c, "to", 0);
    if (graph_is_ms(c->node, "QuantizeWithOrder")) type = DTYPE_INT8;
    if (graph_is_ms(c->node, "DequantizeWithOrder") && dtype_known(to)) type = (dtype)to;
    if (graph_is_ms(c->node, "MurmurHash3")) type = infer_attr_int(c, "positive", 1) ? DTYPE_UINT32 : DTYPE_INT32;
    shape_need_rank(c, 0, 0, -1);
    infer_set_like(c, 0, type, infer_in(c, 0));
}

void shape_ms_like_second(infer *c) {
    shape_need_rank(c, 1, 0, -1);
    shape_need_like(c, 0, 1);
}

/* One bit per element in words of 32. */
void shape_ms_bitmask_dropout(infer *c) {
    shape_need_rank(c, 0, 0, -1);
    int64_t words = checked_ceil_div(info_count(infer_in(c, 0)), 32);
    shape_need_like(c, 0, 0);
    infer_set(c, 1, DTYPE_UINT32, 1, &words);
}

void shape_ms_is_all_finite(infer *c) { infer_set(c, 0, DTYPE_BOOL, 0, NULL); }

/* Tokens without their padding: at most all of them. */
void shape_ms_remove_padding(infer *c) {
    shape_need_rank(c, 0, 3, 3);
    int64_t batch = infer_dim(c, 0, 0), length = infer_dim(c, 0, 1), one = 1, ends = checked_add(batch, 1);
    infer_set_bound(c, 0, infer_type(c, 0), 2, (int64_t[]){0, infer_dim(c, 0, 2)},
                    (int64_t[]){checked_mul(batch, length), infer_dim(c, 0, 2)},
                    "the number of padding tokens depends on data");
    infer_set(c, 1, DTYPE_INT32, 2, (int64_t[]){batch, length});
    infer_set(c, 2, DTYPE_INT32, 1, &ends);
    infer_set(c, 3, DTYPE_INT32, 1, &one);
}

void shape_ms_restore_padding(infer *c) {
    shape_need_rank(c, 0, 2, 2);
    shape_need_rank(c, 1, 2, 2);
    infer_set(c, 0, infer_type(c, 0), 3, (int64_t[]){infer_dim(c, 1, 0), infer_dim(c, 1, 1), infer_dim(c, 0, 1)});
}

/* Windows along one dimension become a last dimension of their own. */
void shape_ms_unfold(infer *c) {
    int64_t dims[INFO_MAX_RANK], size = shape_need_positive(c, "size"), step = infer_attr_int(c, "step", 1);
    int rank = shape_need_rank(c, 0, 1, INFO_MAX_RANK - 1), axis = infer_axis(c, infer_attr_int(c, "dim", -1), rank);
    if (step <= 0) infer_fail(c, "attribute 'step' is %" PRId64 ", it must be at least 1", step);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 0, k);
    if (dims[axis] < size)
        infer_fail(c, "a window of %" PRId64 " does not fit dimension %d of %s", size, axis, shape_need_text(c, 0));
    dims[axis] = (dims[axis] - size) / step + 1;
    dims[rank] = size;
    infer_set(c, 0, infer_type(c, 0), rank + 1, dims);
}

/* Weight first, indices second. */
void shape_ms_torch_embedding(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    shape_need_rank(c, 0, 2, 2);
    int rank = shape_need_rank(c, 1, 0, INFO_MAX_RANK - 1);
    for (int k = 0; k < rank; k++) dims[k] = infer_dim(c, 1, k);
    dims[rank] = infer_dim(c, 0, 1);
    infer_set(c, 0, infer_type(c, 0), rank + 1, dims);
}

/* Characters of words, embedded and convolved: one vector per word. */
void shape_ms_word_conv_embedding(infer *c) {
    int64_t dims[INFO_MAX_RANK];
    int rank = shape_need_rank(c, 0, 2, -1);
    shape_need_rank(c, 1, 4, 4);
    for (int k = 0; k < rank - 1; k++) dims[k] = infer_dim(c, 0, k);
    dims[rank - 1] = infer_dim(c, 1, 0);
    infer_set(c, 0, infer_type(c, 1), rank, dims);
}

/* A path through the cost matrix takes between its longer side and both sides' sum steps. */
void shape_ms_time_warping(infer *c) {
    int rank = shape_need_rank(c, 0, 2, 3);
    int64_t most = checked_sub(checked_add(infer_dim(c, 0, rank - 2), infer_dim(c, 0, rank - 1)), 1);
    infer_set_bound(c, 0, DTYPE_INT32, 2, (int64_t[]){2, 0}, (int64_t[]){2, most < 0 ? 0 : most},
                    "the length of the path depends on data");
}
