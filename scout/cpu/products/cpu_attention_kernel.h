/* The inner loops of the own attention, on blocks of queries. Operands are in one thread's scratch memory, transposed,
 * so that vectors run over the queries and no sum goes across a vector. */
#pragma once

#include <stdint.h>

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
