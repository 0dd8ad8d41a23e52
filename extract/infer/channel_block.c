#include "extract/infer/channel_block.h"

#include <string.h>

enum { SMALL = 8, LARGE = 16 }; /* of AVX and SSE; of AVX-512 and ARM */

static bool is_odd(int64_t channels) { return channels % LARGE == SMALL; }

static bool is_blocked(const tensor *t) {
    return t && graph_is_blocked(t->producer) && strcmp(t->producer->op_type, "ReorderOutput") != 0;
}

/* An input with fewer channels than a block stays as it was, and its weight is not padded. */
static bool tells_small(const node *n) {
    if (!graph_is_blocked(n) || strcmp(n->op_type, "Conv") != 0 || n->in_count < 2 || !n->in[0] || !n->in[1])
        return false;
    const info *weight = n->in[1]->info;
    if (!info_shaped(weight) || weight->rank < 3) return false;
    return is_odd(weight->dims[0]) || (is_odd(weight->dims[1]) && is_blocked(n->in[0]));
}

int64_t channel_block(model *m) {
    if (m->channel_block) return m->channel_block;
    m->channel_block = LARGE;
    for (int64_t k = 0; k < m->node_count && m->channel_block == LARGE; k++)
        if (tells_small(m->nodes[k])) m->channel_block = SMALL;
    return m->channel_block;
}
