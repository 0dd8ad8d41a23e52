/* The candidates and the references of this device: one file and one line each. */
#pragma once

#include "scout/plugin.h"

/* clang-format off */
#define CUDA_CANDIDATES(each)                                                                                         \
    each(lt_candidate)                                                                                                \
    each(own_gemm_tail) /* the epilogue in a second kernel; the product by cuBLASLt */                            \
    each(own_gemm_quantised)                                                                                          \
    each(own_gemm_padded)                                                                                             \
    each(own_gemm_bytes)                                                                                              \
    each(dnn_gemm)                                                                                                    \
    each(own_gemm_stream) /* few rows: reads the weight at memory speed */                                            \
    each(own_gemm_int4) /* fp16 x int4 */                                                                             \
    each(own_gemm_stream_tail)                                                                                        \
    each(own_gemm_int4_tail)                                                                                          \
    each(own_gemm_tiled) /* references for the build */                                                               \
    each(own_gemm_naive)                                                                                              \
    each(dnn_attention)                                                                                               \
    each(dnn_norm)                                                                                                    \
    each(dnn_batch_norm)                                                                                              \
    each(dnn_softmax)                                                                                                 \
    each(dnn_conv) \
    each(dnn_conv_scaled)                                                                                                    \
    each(own_conv_product)                                                                                            \
    each(own_conv_bytes)                                                                                              \
    each(dnn_pool)                                                                                                    \
    each(own_pool_direct)                                                                                             \
    each(own_windows)                                                                                                 \
    each(own_resize)                                                                                                  \
    each(own_sample)                                                                                                  \
    each(own_norm_long) /* long rows, with a compile-time number of threads */                                   \
    each(own_norm_rows) /* contiguous rows, each read once */                                                  \
    each(own_norm_any) /* any rows, batch and lrn */                                                                  \
    each(own_softmax_long)                                                                                            \
    each(own_softmax_rows)                                                                                            \
    each(own_softmax_any)                                                                                             \
    each(own_attention_decode) /* few queries: reads keys and values at memory speed */                               \
    each(own_attention_tiled) /* many queries: tensor cores */                                                        \
    each(own_attention_naive) /* everything: a reference for the build, and fp32's baseline */                        \
    each(own_elementwise)                                                                                             \
    each(own_random)                                                                                                  \
    each(own_chain)                                                                                                   \
    each(own_generated)                                                                                               \
    each(own_rotary)                                                                                                  \
    each(own_embedding)                                                                                               \
    each(own_embedding_blocks)                                                                                        \
    each(own_move_joined) /* in one launch */                                                                         \
    each(own_move)                                                                                                    \
    each(own_places) /* scatters, marks, pads with copies */                                                      \
    each(dnn_reduce_tensor)                                                                                           \
    each(own_reduce)                                                                                                  \
    each(own_matrix)                                                                                                  \
    each(own_suppress)                                                                                                \
    each(own_lines) /* running sums and searches */                                                               \
    each(own_quantize)                                                                                                \
    each(dnn_recurrent) /* cuDNN */                                                                                   \
    each(own_recurrent) /* step by step */                                                                            \
    each(own_gemm_block_sparse) /* a weight of blocks, most of which are zeros */                                     \
    each(sparse_lt_gemm)                                                                                              \
    each(sparse_gemm_ell)                                                                                             \
    each(sparse_gemm_bsr)                                                                                             \
    each(sparse_csr)

#define CUDA_REFERENCES(each)                                                                                         \
    each(cuda_device_gemm_reference)                                                                                  \
    each(cuda_whole_norm)                                                                                             \
    each(cuda_whole_softmax)                                                                                          \
    each(cuda_whole_elementwise)                                                                                      \
    each(cuda_whole_reduce)                                                                                           \
    each(cuda_whole_rotary)                                                                                           \
    each(cuda_whole_attention)                                                                                        \
    each(cuda_whole_conv)                                                                                             \
    each(cuda_whole_pool)                                                                                             \
    each(cuda_whole_embedding)                                                                                        \
    each(cuda_whole_move)                                                                                             \
    each(cuda_whole_quantize)                                                                                         \
    each(cuda_whole_recurrent)
/* clang-format on */

#define CUDA_CANDIDATE(name) extern const scout_candidate name;
#define CUDA_REFERENCE(name) extern const scout_reference name;
CUDA_CANDIDATES(CUDA_CANDIDATE)
CUDA_REFERENCES(CUDA_REFERENCE)
#undef CUDA_CANDIDATE
#undef CUDA_REFERENCE
