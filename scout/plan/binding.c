/* The first tensor in order that has the type and the size, in rounds from what is likely to what is possible. */
#include "scout/plan/binding.h"

#include <stdlib.h>

int binding_owner(const operation_flow *f, int tensor) {
    const int source = f->tensors[tensor].source;
    return source >= 0 ? source : tensor;
}

enum { STRIDED_ALIGNMENT = 16 }; /* of rows that lie apart, bytes that their readers count on */

/* Bytes of a view lie in its source: where the operation expects a dense block, side by side, and else by the strides
 * that its own tensor has. */
static bool fits(const operation_flow *f, int tensor, const scout_tensor *want) {
    const operation_tensor *t = &f->tensors[tensor], *owner = &f->tensors[binding_owner(f, tensor)];
    const int64_t lie = operation_lie((int)want->rank, want->dims, want->strides);
    if (t->bytes < 0 || owner->bytes < 0 || (uint32_t)t->type != want->type || t->lie != lie) return false;
    if (t->offset % (lie ? STRIDED_ALIGNMENT : FUSION_ALIGNMENT) != 0) return false;
    if (!lie && (uint64_t)t->bytes != want->bytes) return false;
    return want->bytes <= (uint64_t)owner->bytes && t->offset <= owner->bytes - (int64_t)want->bytes;
}

static bool is_taken(const int *to, uint32_t count, int tensor) {
    for (uint32_t k = 0; k < count; k++)
        if (to[k] == tensor) return true;
    return false;
}

enum {
    ROUND_LIKELY, /* a constant for what is one, something else for what is not */
    ROUND_ANY,
    ROUND_AGAIN, /* what another tensor of the operation has taken will do, as of a product of a tensor with itself */
    ROUNDS
};

static int find(const operation_flow *f, const operation_occurrence *at, const scout_op *op, uint32_t k, const int *to,
                int round) {
    const scout_tensor *want = &op->tensors[k];
    const bool made = want->role == SCOUT_OUTPUT, likely = want->role == SCOUT_WEIGHT || want->role == SCOUT_SIDE;
    if (round == ROUND_AGAIN && want->role != SCOUT_INPUT) return -1;
    for (int e = made ? at->made : at->read; e < (made ? at->after : at->made); e++) {
        const int tensor = f->edges[e];
        const bool constant = f->tensors[binding_owner(f, tensor)].constant;
        if ((round == ROUND_LIKELY && constant != likely) || (want->role == SCOUT_WEIGHT && !constant)) continue;
        if (fits(f, tensor, want) && (round == ROUND_AGAIN || !is_taken(to, op->tensor_count, tensor))) return tensor;
    }
    return -1;
}

int binding_tensors(const operation_flow *f, const operation_occurrence *at, const scout_op *op, int *to) {
    int found = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t k = 0; k < op->tensor_count; k++)
            if (to[k] < 0) to[k] = find(f, at, op, k, to, round);
    for (uint32_t k = 0; k < op->tensor_count; k++) found += to[k] >= 0;
    return found;
}

void binding_begin(int *to) {
    for (int k = 0; k < SCOUT_MAX_TENSORS; k++) to[k] = -1;
}
