/* An attention's scores between the product of queries and keys and the one with the values: scales, masks, softmax,
 * guards. */
#ifndef EXTRACT_MATCH_MATCH_SCORES_H
#define EXTRACT_MATCH_MATCH_SCORES_H

#include "extract/match/match_product.h"

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
    int search_left; /* nodes that may still be looked at to tell scores from masks */
} scores;

/* Walks up and down from the node that writes a softmax; false where what it finds is no attention. */
bool scores_find(match *m, node *softmax, scores *s);

#endif
