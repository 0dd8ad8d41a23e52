/* An attention: out = softmax(scale * Q K^T + mask) V, once per sequence and head. Read from the tensors and fields of
 * a scout_op; header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_ATTENTION_H
#define SCOUT_OP_ATTENTION_H

#include "scout/op/block_mask.h"
#include "scout/op/op.h"

#include <math.h>

/* Places in op->tensors; mask or lengths follow where the operation has them. All four have rank 4: [sequences, heads,
 * queries or keys, size of a head], and strides that say how they lie. */
enum { ATTENTION_Q = 0, ATTENTION_K = 1, ATTENTION_V = 2, ATTENTION_OUT = 3 };

typedef struct attention_problem {
    int64_t batch, heads, kv_heads, queries, keys, dim, v_dim;
    int64_t group; /* heads that share keys and values: head h reads those of h / group */
    uint32_t type; /* of all four */
    int causal;    /* query i sees keys up to past + i */
    int64_t past;
    int64_t window; /* of a causal one: at most so many keys, the last ones; 0: all */
    double scale;
    double softcap;         /* 0: none; else scores become softcap * tanh(score / softcap), before the mask */
    int mask, lengths;      /* their tensors; -1: none */
    uint32_t mask_type;     /* [sequences, heads, queries, keys], added; stride 0 where it is the same for all */
    const char *block_mask; /* NULL: none; else its text, and no tensor */
    const scout_tensor *tensors;
} attention_problem;

static inline attention_problem attention_problem_of(const scout_op *op) {
    const scout_tensor *q = &op->tensors[ATTENTION_Q], *k = &op->tensors[ATTENTION_K], *v = &op->tensors[ATTENTION_V];
    attention_problem p;
    memset(&p, 0, sizeof p);
    p.batch = q->dims[0], p.heads = q->dims[1], p.queries = q->dims[2], p.dim = q->dims[3];
    p.kv_heads = k->dims[1], p.keys = k->dims[2], p.v_dim = v->dims[3];
    p.group = p.heads / p.kv_heads;
    p.type = q->type;
    p.causal = op->mask && strncmp(op->mask, "causal", 6) == 0;
    p.past = op_number(op, "past", p.keys - p.queries);
    p.window = p.causal ? op_number(op, "window", 0) : 0;
    p.scale = op_real(op, "scale", 1 / sqrt((double)p.dim));
    p.softcap = op_real(op, "softcap", 0);
    p.mask = op_tensor(op, "mask"), p.lengths = op_tensor(op, "lengths");
    p.block_mask = op_text(op, "block_mask");
    p.mask_type = p.mask >= 0 ? op->tensors[p.mask].type : SCOUT_NONE;
    p.tensors = op->tensors;
    return p;
}

/* The keys that a query sees by its place and its sequence's length: [*first, *end). `last`: of a sequence, the number
 * in the tensor `lengths`: its last key's place; where there is no such tensor, keys - 1. What is in that tensor is
 * only known as it runs: a place before the first key is no key, one behind the last is the last. */
static inline void attention_visible(const attention_problem *p, int64_t query, int64_t last, int64_t *first,
                                     int64_t *end) {
    *first = 0;
    *end = last < 0 ? 0 : last < p->keys ? last + 1 : p->keys;
    if (!p->causal) return;
    if (p->past + query + 1 < *end) *end = p->past + query + 1;
    if (p->window > 0 && p->past + query + 1 - p->window > 0) *first = p->past + query + 1 - p->window;
}

/* Which blocks of scores are computed; .block 0: all. What attention_visible says holds beside it. */
static inline block_mask attention_blocks(const attention_problem *p) {
    return block_mask_over(p->block_mask, p->queries, p->keys, p->past, p->window, p->causal);
}

/* Elements from the beginning of a tensor of rank 4. */
static inline int64_t attention_at(const scout_tensor *t, int64_t sequence, int64_t head, int64_t row) {
    return sequence * t->strides[0] + head * t->strides[1] + row * t->strides[2];
}

#endif
