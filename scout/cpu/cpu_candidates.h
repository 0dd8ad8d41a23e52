/* The candidates of this device: one file and one line each. */
#ifndef SCOUT_CPU_CPU_CANDIDATES_H
#define SCOUT_CPU_CPU_CANDIDATES_H

#include "scout/plugin.h"

extern const scout_candidate cpu_gemm_onednn;
extern const scout_candidate cpu_gemm_openblas;
extern const scout_candidate cpu_gemm_tiled;
extern const scout_candidate cpu_gemm_widened;
extern const scout_candidate cpu_gemm_int4;
extern const scout_candidate cpu_gemm_bytes;
extern const scout_candidate cpu_gemm_bsr;
extern const scout_candidate cpu_gemm_csr;
extern const scout_candidate cpu_conv_onednn;
extern const scout_candidate cpu_conv_lowered;
extern const scout_candidate cpu_conv_widened;
extern const scout_candidate cpu_conv_depthwise;
extern const scout_candidate cpu_pool_onednn;
extern const scout_candidate cpu_pool_direct;
extern const scout_candidate cpu_norm_onednn;
extern const scout_candidate cpu_norm_rows;
extern const scout_candidate cpu_softmax_onednn;
extern const scout_candidate cpu_softmax_rows;
extern const scout_candidate cpu_elementwise_onednn;
extern const scout_candidate cpu_elementwise_loop;
extern const scout_candidate cpu_reduce_onednn;
extern const scout_candidate cpu_reduce_loop;
extern const scout_candidate cpu_attention_onednn;
extern const scout_candidate cpu_attention_tiled;
extern const scout_candidate cpu_embedding_rows;
extern const scout_candidate cpu_rotary_rows;
extern const scout_candidate cpu_move_copy;
extern const scout_candidate cpu_move_onednn;
extern const scout_candidate cpu_quantize_rows;
extern const scout_candidate cpu_recurrent_onednn;
extern const scout_candidate cpu_recurrent_steps;

#endif
