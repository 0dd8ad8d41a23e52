/* Sequence lengths as a library wants them, from the last key's place that operations carry. Plain C on the outside. */
#ifndef KERNELS_ATTENTION_ATTENTION_LENGTHS_H
#define KERNELS_ATTENTION_ATTENTION_LENGTHS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* of_queries[s] = queries and of_keys[s] = last[s] + 1 for every sequence s. Enqueues on the stream (a cudaStream_t);
 * returns a cudaError_t. */
int attention_lengths(int32_t *of_queries, int32_t *of_keys, const int32_t *last, int64_t batch, int32_t queries,
                      void *stream);

#ifdef __cplusplus
}
#endif

#endif
