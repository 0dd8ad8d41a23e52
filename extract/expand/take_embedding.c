/* Sums of embeddings, with their norm. */
#include "extract/expand/expand_parts.h"
#include "extract/expand/takes.h"

/* The tables of an embedding, and behind them scale and bias of its norm, from input 2 on. */
static tensor *table(expansion *x, int k) {
    enum { TABLES = 2, SCALES = 8, ZERO_POINTS = 13 };
    tensor *t = part_in(x, TABLES + k);
    if (!t || !graph_is_ms(x->n, "QEmbedLayerNormalization")) return t;
    return *part_make(
        x, &(step){.op_type = "DequantizeLinear", .in = {t, part_in(x, SCALES + k), part_in(x, ZERO_POINTS + k)}});
}

static tensor *rows(expansion *x, int k, tensor *ids) {
    return *part_make(x, &(step){.op_type = "Gather", .in = {table(x, k), ids}});
}

/* How long each sequence is; nothing is counted without a mask. */
static tensor *lengths(expansion *x, tensor *mask) {
    if (mask)
        return *part_make(x, &(step){.op_type = "ReduceSum",
                                     .in = {mask, part_number(x, "axes", 1)},
                                     .attrs = {int_attr("keepdims", 0)}});
    return part_zeros(x, DTYPE_INT32, 1, (int64_t[]){tensor_dim(part_in(x, 0), 0)});
}

void take_embedding(expansion *x) {
    enum { IDS, SEGMENT_IDS, MASK = 7, POSITION_IDS };
    enum { WORDS, POSITIONS, SEGMENTS, SCALE, BIAS };
    static const int outputs[] = {1, 2};
    tensor *own = graph_is_ms(x->n, "EmbedLayerNormalization") ? part_in(x, POSITION_IDS) : NULL, *const ids =
                                                                                                      part_in(x, IDS);
    /* without ids of their own, positions are those of one sequence */
    tensor *words = rows(x, WORDS, ids),
           *places = own ? rows(x, POSITIONS, own) : part_slice(x, table(x, POSITIONS), 0, 0, tensor_dim(ids, 1));
    tensor *sum = part_add(x, words, places);
    if (part_in(x, SEGMENT_IDS)) sum = part_add(x, sum, rows(x, SEGMENTS, part_in(x, SEGMENT_IDS)));
    const step norm = {.op_type = "LayerNormalization",
                       .in = {sum, table(x, SCALE), table(x, BIAS)},
                       .attrs = {real_attr("epsilon", graph_attr_float(x->n, "epsilon", 1e-12))}};
    tensor *counted = part_out(x, outputs[0]) ? lengths(x, part_in(x, MASK)) : NULL;
    part_end(x, &norm);
    part_give(x, outputs[0], counted);
    part_give(x, outputs[1], sum);
}

/* Words of characters, a zero behind each that is shorter: a convolution, and the largest of the windows that a word
 * has. It has the first one however short it is, and another where the window's last character is one. */
void take_words(expansion *x) {
    enum { IDS, WEIGHT, BIAS, TABLE };
    tensor *const ids = part_in(x, IDS);
    const tensor *const out = part_out(x, 0), *const weight = part_in(x, WEIGHT);
    const int64_t words = tensor_dim(ids, 0), length = tensor_dim(ids, 1), kernel = tensor_dim(weight, 2);
    const int64_t windows = length - kernel + 1, filters = tensor_dim(weight, 0);
    if (tensor_rank(ids) != 2 || kernel < 1 || length < kernel || words < 1 || filters < 1 || !out) x->failed = true;
    if (x->failed) return;
    tensor *const letters = *part_make(x, &(step){.op_type = "Gather", .in = {part_in(x, TABLE), ids}});
    const int64_t image[] = {words, 1, length, tensor_dim(letters, 2)}, flat[] = {words, filters, windows},
                  mask[] = {words, 1, windows};
    tensor *const made =
        *part_make(x, &(step){.op_type = "Conv",
                              .in = {part_reshaped(x, letters, 4, image), part_in(x, WEIGHT), part_in(x, BIAS)}});
    tensor *const values = part_reshaped(x, part_do(x, "Tanh", made, NULL), 3, flat);
    tensor *last = part_slice(x, ids, 1, 0, 1);
    if (windows > 1)
        last = *part_make(x, &(step){.op_type = "Concat",
                                     .in = {last, part_slice(x, ids, 1, kernel, length)},
                                     .attrs = {int_attr("axis", 1)}});
    tensor *const there = part_do(x, "Greater", last, part_scalar(x, "none", DTYPE_INT32, 0));
    tensor *const kept =
        *part_make(x, &(step){.op_type = "Where",
                              .in = {part_reshaped(x, there, 3, mask), values, part_real(x, values, "least", -1)}});
    part_end(
        x,
        &(step){.op_type = "ReduceMax", .in = {kept, part_number(x, "axes", 2)}, .attrs = {int_attr("keepdims", 0)}});
}
