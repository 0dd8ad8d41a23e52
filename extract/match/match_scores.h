/* An attention's scores between the product of queries and keys and the one with the values: scales, masks, softmax,
 * guards. */
#pragma once

#include "extract/match/match_flow.h"

/* A product of two activations, read as one half of an attention. */
typedef struct product_sides {
    tensor *left, *right;      /* scores: query and key; values: probabilities and value */
    int64_t batch, heads;      /* heads -1: batch and heads are one dimension, `batch` holds both */
    int64_t kv_heads;          /* of the right side */
    int64_t rows, cols, inner; /* scores: q_len, kv_len, head; values: q_len, v_head, kv_len */
    double alpha;
    bool by_letters;   /* an Einsum: the order of its dimensions is its own */
    bool left_turned;  /* [inner, rows] */
    bool exchanged;    /* the product is written [cols, rows] */
    bool right_turned; /* MatMul's usual right side [inner, cols] is meant; true: [cols, inner], by the operator itself
                        */
} product_sides;

/* n makes scores; turned: they are [kv_len, q_len] as n writes them. */
bool product_scores(const node *n, bool turned, product_sides *s);
/* n multiplies probabilities p, which are [q_len, kv_len], or [kv_len, q_len] where turned, with a value. */
bool product_values(const node *n, const tensor *p, bool turned, product_sides *s);

typedef struct scores {
    flow_set set;        /* every node from one product to the other, both included */
    node *first, *last;  /* the products */
    bool first_turned;   /* the first one writes [kv_len, q_len] */
    const tensor *probs; /* what the last one reads, and whether that is [kv_len, q_len] */
    bool probs_turned;
    double scale;
    bool scale_known;
    double softcap; /* 0: none */
    mask_term terms[MASK_MAX_TERMS];
    int term_count;
    bool added_last; /* all terms are added to the scores, and nothing but the softmax follows */
    int search_left; /* nodes that may still be looked at to tell scores from masks */
} scores;

/* Walks up and down from the node that writes a softmax; false where what it finds is no attention. */
bool scores_find(match *m, node *softmax, scores *s);
