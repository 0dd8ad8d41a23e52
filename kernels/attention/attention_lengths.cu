/* Sequence lengths as a library takes them: the number of keys, not the place of the last one. */
#include "kernels/attention/attention_kernels.h"

#include <cuda_runtime.h>

namespace {

__global__ void attention_lengths_count(int32_t *of_queries, int32_t *of_keys, const int32_t *last, int64_t batch,
                                        int32_t queries, int32_t keys) {
    const int64_t s = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= batch) return;
    of_queries[s] = queries;
    of_keys[s] = last[s] < 0 ? 0 : last[s] < keys ? last[s] + 1 : keys;
}

} // namespace

int attention_lengths(int32_t *of_queries, int32_t *of_keys, const int32_t *last, int64_t batch, int32_t queries,
                      int32_t keys, void *stream) {
    const int64_t threads = 128, blocks = (batch + threads - 1) / threads;
    if (batch < 1 || blocks > 0x7fffffff) return (int)cudaErrorInvalidValue;
    attention_lengths_count<<<(unsigned)blocks, (unsigned)threads, 0, (cudaStream_t)stream>>>(of_queries, of_keys, last,
                                                                                              batch, queries, keys);
    return (int)cudaGetLastError();
}
