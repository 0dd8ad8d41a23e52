/* The bytes of a mask whose kind says what it holds. */
#ifndef EXTRACT_MATCH_MATCH_ATTENTION_MASK_H
#define EXTRACT_MATCH_MATCH_ATTENTION_MASK_H

#include "extract/match/match_flow.h"

typedef struct attention_mask {
    mask_verdict verdict; /* of all terms together */
    const mask_term *terms;
    int term_count;
    int64_t q_len, kv_len;
} attention_mask;

/* Takes out of w's bytes_read, which counts every tensor that comes from outside, what a kernel that knows the kind of
 * the mask does not read: all of a causal one, all but the lengths themselves of one made from lengths. */
void attention_mask_spare(match *m, work *w, const attention_mask *a);

#endif
