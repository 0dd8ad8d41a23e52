/* The inner loops of the own attention, on blocks of queries. Operands are in one thread's scratch memory, transposed,
 * so that vectors run over the queries and no sum goes across a vector. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scout/op/attention.h"

enum { CPU_ATTENTION_KEYS = 64 }; /* of one block */

/* c[i][lane] = or += sum over k < depth of a(i, k) * b[k][lane]; a(i, k) lies at a[i * step_i + k * step_k], b and c
 * have `lanes` columns, a multiple of 16. */
typedef struct cpu_attention_product {
    const float *a, *b;
    float *c;
    int64_t rows, depth, lanes, step_i, step_k;
    int add;
} cpu_attention_product;

/* Scores of one block of keys become exponentials: the largest so far, the sum and what is already there follow. */
typedef struct cpu_attention_soften {
    float *scores;     /* [keys][lanes] */
    float *most, *sum; /* [lanes] */
    float *out;        /* [v_dim][lanes] */
    float *change;     /* [lanes], for its own use */
    int64_t keys, lanes, v_dim;
} cpu_attention_soften;

typedef struct cpu_attention_kernel {
    const char *name;
    void (*multiply)(const cpu_attention_product *p);
    void (*soften)(const cpu_attention_soften *s);
    void (*load)(uint32_t type, const void *from, int64_t count, float *to);
    void (*store)(uint32_t type, const float *from, int64_t count, void *to);
} cpu_attention_kernel;

const cpu_attention_kernel *cpu_attention_kernel_get(void); /* the widest that this processor has */

typedef struct cpu_attention_scores {
    const attention_problem *p;
    const block_mask *blocks;
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

/* Masks and soft caps applied to scores in memory, by all threads, for compositions of library calls. */
bool cpu_attention_masked(const attention_problem *p); /* whether there is anything to do */
void cpu_attention_mask(const cpu_attention_scores *s);
