/* Pools by cuDNN. */
#ifndef SCOUT_CUDA_DNN_POOL_H
#define SCOUT_CUDA_DNN_POOL_H

#include "scout/plugin.h"

extern const scout_candidate dnn_pool;

#endif
