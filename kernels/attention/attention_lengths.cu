/* What masks become for a library: sequence lengths are the number of keys, not the place of the last one, and a block
 * mask is a number to add to each score. */
#include "kernels/attention/attention_device.cuh"

#include <cuda_runtime.h>

namespace {

__global__ void attention_lengths_count(int32_t *of_queries, int32_t *of_keys, const int32_t *last, int64_t batch,
                                        int32_t queries, int32_t keys) {
    const int64_t s = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= batch) return;
    of_queries[s] = queries;
    of_keys[s] = last[s] < 0 ? 0 : last[s] < keys ? last[s] + 1 : keys;
}

template <typename T>
__global__ void attention_blocks_expand(T *mask, const uint32_t *blocks, int block, int words, int64_t keys,
                                        int64_t count) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const bool seen = attention::block_seen(blocks + i / keys / block * words, (int)(i % keys / block));
        mask[i] = gemm::from_float<T>(seen ? 0.0f : -65504.0f);
    }
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

int attention_block_mask(void *mask, int type, const uint32_t *blocks, int block, int block_words, int64_t queries,
                         int64_t keys, void *stream) {
    const int64_t threads = 256, most = 4096, count = queries * keys, all = (count + threads - 1) / threads;
    const unsigned grid = (unsigned)(all < most ? all : most);
    if (queries < 1 || keys < 1 || block < 1) return (int)cudaErrorInvalidValue;
    if (type == ATTENTION_FP16)
        attention_blocks_expand<<<grid, (unsigned)threads, 0, (cudaStream_t)stream>>>((__half *)mask, blocks, block,
                                                                                      block_words, keys, count);
    else if (type == ATTENTION_BF16)
        attention_blocks_expand<<<grid, (unsigned)threads, 0, (cudaStream_t)stream>>>(
            (__nv_bfloat16 *)mask, blocks, block, block_words, keys, count);
    else
        return (int)cudaErrorInvalidValue;
    return (int)cudaGetLastError();
}
