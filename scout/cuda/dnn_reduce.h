/* Reductions by cuDNN. */
#ifndef SCOUT_CUDA_DNN_REDUCE_H
#define SCOUT_CUDA_DNN_REDUCE_H

#include "scout/plugin.h"

extern const scout_candidate dnn_reduce_tensor;

#endif
