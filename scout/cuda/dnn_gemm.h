/* Products with something behind them as graphs of cuDNN's: its fused kernels, compiled for the graph. */
#ifndef SCOUT_CUDA_DNN_GEMM_H
#define SCOUT_CUDA_DNN_GEMM_H

#include "scout/plugin.h"

extern const scout_candidate dnn_gemm;

#endif
