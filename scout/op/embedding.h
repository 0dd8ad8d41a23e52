/* Rows of a table looked up by their numbers: out[k] = table[indices[k]]. Read from the tensors of a scout_op;
 * header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_EMBEDDING_H
#define SCOUT_OP_EMBEDDING_H

#include "scout/op/op.h"

/* Places in op->tensors. */
enum { EMBEDDING_TABLE = 0, EMBEDDING_INDICES = 1, EMBEDDING_OUT = 2 };

typedef struct embedding_problem {
    int64_t rows, cols, table; /* rows looked up, their length, rows of the table */
    uint32_t type, index_type; /* int32 or int64: whole numbers below `table` */
} embedding_problem;

static inline embedding_problem embedding_problem_of(const scout_op *op) {
    const scout_tensor *t = &op->tensors[EMBEDDING_TABLE];
    embedding_problem p = {op->shape[0], op->shape[1], t->dims[0], t->type, op->tensors[EMBEDDING_INDICES].type};
    return p;
}

static inline int64_t embedding_index(uint32_t type, const void *indices, int64_t at) {
    return type == SCOUT_INT64 ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

#endif
