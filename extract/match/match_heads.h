/* One side of an attention followed upward from its product: scales, the transpose of the keys, heads that are
 * repeated. */
#ifndef EXTRACT_MATCH_MATCH_HEADS_H
#define EXTRACT_MATCH_MATCH_HEADS_H

#include "extract/match/match_flow.h"

typedef struct heads_side {
    double scale; /* product of the scalars met */
    bool scale_known;
    int64_t repeat; /* how often each head of the source is used */
} heads_side;

/* Follows t upward and adds to `set` what belongs to the attention: scaling by a scalar, a transpose that turns the
 * matrix (where `turn`: the product needs it turned), repeats of heads with the views around them. Head splits and
 * merges stay outside, and so does everything that is used elsewhere too. */
void heads_trace(match *m, tensor *t, bool turn, bool scaled, flow_set *set, heads_side *side);

/* Batch of a three-dimensional attention [batch * heads, length, head], found where the reshape before t (or after)
 * says it; 0 where nothing says it. `merged` is batch * heads. */
int64_t heads_batch_before(tensor *t, int64_t merged, int64_t head);
int64_t heads_batch_after(const tensor *t, int64_t merged);

#endif
