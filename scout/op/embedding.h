/* Rows of a table looked up by their numbers: out[k] = table[indices[k]]. A table of few bits has a scale, and may have
 * a zero point, for each block of a row's columns: out = (code - zero point) * scale. Read from the tensors of a
 * scout_op; header-only, shared by candidates of all devices and by plugins. */
#ifndef SCOUT_OP_EMBEDDING_H
#define SCOUT_OP_EMBEDDING_H

#include "scout/op/op.h"

/* Places in op->tensors; scales: [rows of the table, blocks], where there are blocks. */
enum { EMBEDDING_TABLE = 0, EMBEDDING_INDICES = 1, EMBEDDING_OUT = 2, EMBEDDING_SCALES = 3 };

typedef struct embedding_problem {
    int64_t rows, cols, table; /* rows looked up, their length, rows of the table */
    int64_t block, blocks;     /* columns that share a scale, and how many such there are; 0: rows are copied */
    int zeros;                 /* tensor of zero points, as the scales lie; -1: none */
    uint32_t type, index_type, out_type; /* index_type: int32 or int64, whole numbers below `table` */
} embedding_problem;

static inline embedding_problem embedding_problem_of(const scout_op *op) {
    const scout_tensor *t = &op->tensors[EMBEDDING_TABLE];
    embedding_problem p = {.rows = op->shape[0],
                           .cols = op->shape[1],
                           .table = t->dims[0],
                           .block = op_number(op, "block_size", 0), /* of more than a row the row is one */
                           .zeros = op_tensor(op, "zero_points"),
                           .type = t->type,
                           .index_type = op->tensors[EMBEDDING_INDICES].type,
                           .out_type = op->tensors[EMBEDDING_OUT].type};
    if (p.block > p.cols) p.block = p.cols;
    if (p.block > 0) p.blocks = op->tensors[EMBEDDING_SCALES].dims[1];
    return p;
}

static inline int64_t embedding_index(uint32_t type, const void *indices, int64_t at) {
    return type == SCOUT_INT64 ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

#endif
