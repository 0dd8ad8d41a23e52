/* What the file says, where type, size and strides are those of the operation: no file is believed in what would have
 * an operation read beyond a tensor. */
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
    if (want->role == SCOUT_WEIGHT && !owner->constant) return false; /* it is packed once */
    const int64_t lie = operation_lie((int)want->rank, want->dims, want->strides);
    if (t->bytes < 0 || owner->bytes < 0 || (uint32_t)t->type != want->type || t->lie != lie) return false;
    if (t->offset % (lie ? STRIDED_ALIGNMENT : FUSION_ALIGNMENT) != 0) return false;
    if (!lie && (uint64_t)t->bytes != want->bytes) return false;
    return want->bytes <= (uint64_t)owner->bytes && t->offset <= owner->bytes - (int64_t)want->bytes;
}

static bool is_among(const operation_flow *f, int from, int to, int tensor) {
    for (int e = from; e < to; e++)
        if (f->edges[e] == tensor) return true;
    return false;
}

int binding_tensors(const operation_flow *f, const operation_occurrence *at, const scout_op *op, int *to) {
    int found = 0;
    if ((uint32_t)at->operand_count != op->tensor_count) return 0;
    for (uint32_t k = 0; k < op->tensor_count; k++) {
        const int tensor = f->operands[at->operands + (int)k];
        const bool made = op->tensors[k].role == SCOUT_OUTPUT;
        const bool edge = is_among(f, made ? at->made : at->read, made ? at->after : at->made, tensor);
        if (edge && fits(f, tensor, &op->tensors[k])) to[k] = tensor;
        found += to[k] >= 0;
    }
    return found;
}

void binding_begin(int *to) {
    for (int k = 0; k < SCOUT_MAX_TENSORS; k++) to[k] = -1;
}
