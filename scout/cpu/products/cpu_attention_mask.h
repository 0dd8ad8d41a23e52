/* Masks and soft caps applied to scores in memory, by all threads, for compositions of library calls. */
#pragma once

#include "scout/op/attention.h"

#include <stdbool.h>

typedef struct cpu_attention_scores {
    const attention_problem *p;
    void *const *tensors;                       /* of the operation: mask, lengths */
    float *scores;                              /* [heads][queries][p->keys], scaled */
    int64_t batch, head, heads, query, queries; /* which of them these are */
} cpu_attention_scores;

/* Rows of fp32, fp16 or bf16 converted by all threads: [a][b][c] rows of `cols` numbers; steps in elements. */
typedef struct cpu_attention_rows {
    uint32_t from_type, to_type;
    int64_t dims[3], cols, from_strides[3], to_strides[3];
    const void *from;
    void *to;
} cpu_attention_rows;

void cpu_attention_convert(const cpu_attention_rows *r);

bool cpu_attention_masked(const attention_problem *p); /* whether there is anything to do */
void cpu_attention_mask(const cpu_attention_scores *s);
