/* Recurrent layers as their kernels (kernels/pass/recurrent_kernels.h) take them, and their candidates. */
#ifndef SCOUT_CUDA_OWN_OWN_RECURRENT_H
#define SCOUT_CUDA_OWN_OWN_RECURRENT_H

#include "kernels/pass/recurrent_kernels.h"
#include "scout/op/recurrent.h"

recurrent_layer own_recurrent_layer(const recurrent_problem *p);
recurrent_layer_tensors own_recurrent_tensors(const recurrent_problem *p, void *const *tensors);

#endif
