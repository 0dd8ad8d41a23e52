/* What an attention's output should be, in fp64: every element, into memory of the caller. Enqueues only. */
#ifndef KERNELS_REFERENCE_WHOLE_ATTENTION_H
#define KERNELS_REFERENCE_WHOLE_ATTENTION_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Steps of a tensor of rank 4, in elements: [sequences, heads, queries or keys, size of a head or keys]. */
typedef struct whole_attention_steps {
    int64_t sequence, head, row, last;
} whole_attention_steps;

typedef struct whole_attention_problem {
    const void *q, *k, *v;
    const void *mask;       /* NULL: none; added to the scaled scores */
    const int32_t *lengths; /* of each sequence the place of its last key; NULL: all keys */
    uint32_t type, mask_type;
    int64_t batch, heads, queries, keys, dim, v_dim;
    int64_t group;  /* heads that share keys and values */
    int64_t past;   /* query i of a causal one sees keys up to past + i, */
    int64_t window; /* the last so many of them; 0: all */
    int causal;
    double scale, softcap; /* softcap 0: none */
    whole_attention_steps q_at, k_at, v_at, mask_at, out_at;
} whole_attention_problem;

/* want and spread are indexed as the output lies (out_at). Types as in scout/plugin.h. */
cudaError_t whole_attention(const whole_attention_problem *p, double *want, float *spread, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
