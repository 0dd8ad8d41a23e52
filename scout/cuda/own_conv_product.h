/* Convolutions as products. */
#ifndef SCOUT_CUDA_OWN_CONV_PRODUCT_H
#define SCOUT_CUDA_OWN_CONV_PRODUCT_H

#include "scout/plugin.h"

extern const scout_candidate own_conv_product;

#endif
