/* Products of two activations, whichever operator spells them (MatMul, FusedMatMul, Einsum), read as the two halves of
 * an attention: which side is the query, how many heads, how long, how wide. */
#ifndef EXTRACT_MATCH_MATCH_PRODUCT_H
#define EXTRACT_MATCH_MATCH_PRODUCT_H

#include "extract/match/match_flow.h"

typedef struct product_sides {
    tensor *left, *right;      /* scores: query and key; values: probabilities and value */
    int64_t batch, heads;      /* heads -1: batch and heads are one dimension, `batch` holds both */
    int64_t kv_heads;          /* of the right side */
    int64_t rows, cols, inner; /* scores: q_len, kv_len, head; values: q_len, v_head, kv_len */
    double alpha;
    bool right_turned; /* MatMul's usual right side [inner, cols] is meant; true: [cols, inner], by the operator itself
                        */
} product_sides;

bool product_is(const node *n); /* an operator that may be such a product */
/* n makes scores; turned: they are [kv_len, q_len] as n writes them. */
bool product_scores(const node *n, bool turned, product_sides *s);
/* n multiplies probabilities p, which are [q_len, kv_len], or [kv_len, q_len] where turned, with a value. */
bool product_values(const node *n, const tensor *p, bool turned, product_sides *s);

#endif
