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
           *places = own ? rows(x, POSITIONS, own) : part_first(x, table(x, POSITIONS), tensor_dim(ids, 1));
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
