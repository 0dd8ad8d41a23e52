/* Masks and soft caps put on scores that lie in memory, by all threads: what compositions of library calls lack. */
#ifndef SCOUT_CPU_CPU_ATTENTION_MASK_H
#define SCOUT_CPU_CPU_ATTENTION_MASK_H

#include "scout/attention.h"

#include <stdbool.h>

typedef struct cpu_attention_scores {
    const attention_problem *p;
    void *const *tensors;                       /* of the operation: mask, lengths */
    float *scores;                              /* [heads][queries][p->keys], scaled */
    int64_t batch, head, heads, query, queries; /* which of them these are */
} cpu_attention_scores;

bool cpu_attention_masked(const attention_problem *p); /* whether there is anything to do */
void cpu_attention_mask(const cpu_attention_scores *s);

#endif
