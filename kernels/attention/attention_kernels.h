/* The project's own attention kernels for CUDA, as plain C functions: what a dispatch table names can be linked from
 * here. No header of CUDA is needed to include this; link the objects of kernels/attention/attention_*.cu and the CUDA
 * runtime.
 *
 *     attention_decode_config config = {.splits = 0, .warps = 4, .depth = 3};
 *     attention_decode_plan plan;
 *     if (attention_decode_prepare(&shape, &config, units, shared_limit, &plan) != 0) …   once; sets the kernel up
 *     attention_decode_launch(&plan, &tensors, stream);
 *     attention_decode_close(&plan);                                                      when no launch is under way
 *
 * A launch only enqueues, allocates nothing and can be captured in a graph. `stream` is a cudaStream_t. Everything
 * works on the current device and returns 0 or a cudaError_t; what the shape rules out is cudaErrorInvalidValue, before
 * anything runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, numbered as in ONNX. */
enum { ATTENTION_FP32 = 1, ATTENTION_FP16 = 10, ATTENTION_BF16 = 16 };

/* out = softmax(scale * Q K^T + mask) V, once per sequence and head; head h reads keys and values of
 * h / (heads / kv_heads). Strides are in elements: from sequence to sequence, head to head, row to row; the elements of
 * a row lie side by side. */
typedef struct attention_shape {
    int64_t batch, heads, kv_heads, queries, keys, dim, v_dim;
    int64_t q[3], k[3], v[3], out[3];
    int64_t mask[4]; /* of the additive mask, from key to key as well; 0: the same for all */
    int masked;      /* there is one */
    int block;       /* of a block mask the side of its blocks, 64 or 128; 0: there is none */
    int block_words; /* of a row of its bits */
    int ragged;      /* there are lengths */
    int causal;      /* query i sees keys up to past + i */
    int64_t past;
    int64_t window; /* of a causal one: at most so many keys, the last ones; 0: all */
    float scale;
    float softcap; /* 0: none; else scores become softcap * tanh(score / softcap), before the mask */
    int type;      /* of everything but lengths */
} attention_shape;

/* `mask`, `lengths` and `blocks` are there exactly where the shape says so; lengths: of each sequence the place of its
 * last key; blocks: a bit for each block of queries (a row of words) and block of keys, from the lowest bit on. A block
 * that is not set is not seen; where causal mask and window leave a query a key, they have to leave one that is. */
typedef struct attention_tensors {
    const void *q, *k, *v, *mask;
    const int32_t *lengths;
    const uint32_t *blocks;
    void *out;
} attention_tensors;

/* --- attention_naive: one warp for each query; every type, stride and option --- */
enum { ATTENTION_NAIVE_DIM = 1024 };
int attention_naive_launch(const attention_shape *shape, const attention_tensors *tensors, void *stream);

/* --- attention_decode: few queries, no block mask; fp16, bf16; reads keys and values once, at memory speed --- */
enum { ATTENTION_DECODE_QUERIES = 8, ATTENTION_DECODE_DIM = 256 };
enum {
    ATTENTION_DECODE_TENSOR, /* on tensor cores */
    ATTENTION_DECODE_VECTOR, /* without, for at most 4 queries that share keys */
    ATTENTION_DECODE_DENSE   /* the same for heads of 64, 128 or 256 and one query that sees all keys, whose rows lie
                              * side by side: whole steps of `depth` loads of all warps of all blocks */
};
typedef struct attention_decode_config {
    int splits; /* blocks that share the keys of a head, at most 256; 0: as many as fill the device once */
    int warps;  /* 1 to 8 of a block; 16 without tensor cores */
    int depth;  /* 2, 3, 4: steps of 16 keys in flight for each warp; without tensor cores 4 or 8: loads of each lane */
    int walk;   /* one of these */
} attention_decode_config;

/* Where blocks share keys it has memory of its own, through which they hand over what they found; its launches have to
 * follow one another. */
typedef struct attention_decode_plan {
    attention_shape shape;
    attention_decode_config config;
    const void *kernel; /* of the runtime's own; for launch alone */
    void *parts;        /* on the device; NULL: blocks share nothing */
    int rows, tiles;    /* queries that share keys: of one block, and blocks for all of them */
    int splits;
    size_t shared_bytes, parts_bytes;
} attention_decode_plan;

/* Whether that exists for a shape where blocks may have `shared_limit` bytes. */
int attention_decode_fits(const attention_shape *shape, const attention_decode_config *config, size_t shared_limit);
int attention_decode_prepare(const attention_shape *shape, const attention_decode_config *config, int units,
                             size_t shared_limit, attention_decode_plan *plan);
int attention_decode_launch(const attention_decode_plan *plan, const attention_tensors *tensors, void *stream);
/* Frees that memory. Where preparing failed there is none. */
void attention_decode_close(attention_decode_plan *plan);

/* --- attention_tiled: many queries; fp16, bf16; tiles in shared memory, mma.sync; steps over blocks that are not seen
 * --- */
enum { ATTENTION_TILED_DIM = 128 };
typedef struct attention_tiled_config {
    int rows, keys, warps; /* of a tile: 64x64 of 4 warps, 128x64 of 4 or 8, 128x128 of 8 */
} attention_tiled_config;

typedef struct attention_tiled_plan {
    attention_shape shape;
    attention_tiled_config config;
    const void *kernel; /* of the runtime's own; for launch alone */
    size_t shared_bytes;
} attention_tiled_plan;

int attention_tiled_fits(const attention_shape *shape, const attention_tiled_config *config, size_t shared_limit);
int attention_tiled_prepare(const attention_shape *shape, const attention_tiled_config *config, size_t shared_limit,
                            attention_tiled_plan *plan);
int attention_tiled_launch(const attention_tiled_plan *plan, const attention_tensors *tensors, void *stream);

/* --- attention_lengths: masks as a library takes them --- */

/* Sequence lengths as a library takes them: of_queries[s] = queries and of_keys[s] = last[s] + 1 for every sequence,
 * but no less than 0 and no more than `keys`. */
int attention_lengths(int32_t *of_queries, int32_t *of_keys, const int32_t *last, int64_t batch, int32_t queries,
                      int32_t keys, void *stream);
/* A block mask as numbers to add to scores: mask[queries][keys], of fp16 or bf16: 0 where a block is seen, else the
 * lowest number of fp16, beside which scores below half of it are nothing. No infinity: a library may take the
 * difference of two. */
int attention_block_mask(void *mask, int type, const uint32_t *blocks, int block, int block_words, int64_t queries,
                         int64_t keys, void *stream);

#ifdef __cplusplus
}
#endif
