/* Products with something behind them in two kernels. */
#ifndef SCOUT_CUDA_OWN_GEMM_TAIL_H
#define SCOUT_CUDA_OWN_GEMM_TAIL_H

#include "scout/plugin.h"

extern const scout_candidate own_gemm_tail; /* by cuBLASLt */
extern const scout_candidate own_gemm_stream_tail;
extern const scout_candidate own_gemm_int4_tail;

#endif
