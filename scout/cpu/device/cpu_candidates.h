/* The candidates and the references of this device: one file and one line each. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

/* clang-format off */
#define CPU_CANDIDATES(each)                                                                                          \
    each(cpu_gemm_onednn)                                                                                             \
    each(cpu_gemm_openblas)                                                                                           \
    each(cpu_gemm_openblas_fp64)                                                                                      \
    each(cpu_gemm_tiled)                                                                                              \
    each(cpu_gemm_widened)                                                                                            \
    each(cpu_gemm_blocks)                                                                                               \
    each(cpu_gemm_bytes)                                                                                              \
    each(cpu_gemm_bsr)                                                                                                \
    each(cpu_gemm_csr)                                                                                                \
    each(cpu_conv_onednn)                                                                                             \
    each(cpu_conv_lowered)                                                                                            \
    each(cpu_conv_widened)                                                                                            \
    each(cpu_conv_floats) \
    each(cpu_conv_depthwise)                                                                                          \
    each(cpu_pool_onednn)                                                                                             \
    each(cpu_pool_direct)                                                                                             \
    each(cpu_windows_any)                                                                                             \
    each(cpu_sample_points)                                                                                           \
    each(cpu_resize_rows)                                                                                             \
    each(cpu_norm_onednn)                                                                                             \
    each(cpu_norm_rows)                                                                                               \
    each(cpu_softmax_onednn)                                                                                          \
    each(cpu_softmax_rows)                                                                                            \
    each(cpu_elementwise_onednn)                                                                                      \
    each(cpu_elementwise_loop)                                                                                        \
    each(cpu_random)                                                                                                  \
    each(cpu_reduce_onednn)                                                                                           \
    each(cpu_reduce_loop)                                                                                             \
    each(cpu_reduce_lines)                                                                                            \
    each(cpu_reduce_any)                                                                                              \
    each(cpu_suppress)                                                                                                \
    each(cpu_matrices)                                                                                                \
    each(cpu_attention_onednn)                                                                                        \
    each(cpu_attention_tiled)                                                                                         \
    each(cpu_embedding_rows)                                                                                          \
    each(cpu_embedding_blocks)                                                                                        \
    each(cpu_rotary_rows)                                                                                             \
    each(cpu_move_copy)                                                                                               \
    each(cpu_scatter_rows)                                                                                            \
    each(cpu_move_onednn)                                                                                             \
    each(cpu_quantize_any)                                                                                            \
    each(cpu_quantize_rows)                                                                                           \
    each(cpu_recurrent_onednn)                                                                                        \
    each(cpu_recurrent_steps)

#define CPU_REFERENCES(each)                                                                                          \
    each(cpu_reference_gemm)                                                                                          \
    each(cpu_reference_conv)                                                                                          \
    each(cpu_reference_pool)                                                                                          \
    each(cpu_reference_norm)                                                                                          \
    each(cpu_reference_softmax)                                                                                       \
    each(cpu_reference_elementwise)                                                                                   \
    each(cpu_reference_reduce)                                                                                        \
    each(cpu_reference_attention)                                                                                     \
    each(cpu_reference_embedding)                                                                                     \
    each(cpu_reference_rotary)                                                                                        \
    each(cpu_reference_move)                                                                                          \
    each(cpu_reference_quantize)                                                                                      \
    each(cpu_reference_recurrent)
/* clang-format on */

#define CPU_CANDIDATE(name) extern const scout_candidate name;
#define CPU_REFERENCE(name) extern const scout_reference name;
CPU_CANDIDATES(CPU_CANDIDATE)
CPU_REFERENCES(CPU_REFERENCE)
#undef CPU_CANDIDATE
#undef CPU_REFERENCE

/* Whether an operation runs on one thread unless its variant says otherwise. */
bool cpu_small_is(const scout_op *op);
/* All of them, as the device offers them: each on its threads. */
const scout_candidate *const *cpu_small_candidates(uint32_t *count);
