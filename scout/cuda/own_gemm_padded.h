/* Products whose rows are padded. */
#ifndef SCOUT_CUDA_OWN_GEMM_PADDED_H
#define SCOUT_CUDA_OWN_GEMM_PADDED_H

#include "scout/plugin.h"

extern const scout_candidate own_gemm_padded;

#endif
