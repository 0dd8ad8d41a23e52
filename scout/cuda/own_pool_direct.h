/* The project's own pools (kernels/pool_kernels.h) as a candidate of the CUDA device. */
#ifndef SCOUT_CUDA_OWN_POOL_DIRECT_H
#define SCOUT_CUDA_OWN_POOL_DIRECT_H

#include "scout/plugin.h"

extern const scout_candidate own_pool_direct;

#endif
