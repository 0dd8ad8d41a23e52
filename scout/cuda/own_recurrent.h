/* Recurrent layers as their kernels (kernels/recurrent_kernels.h) take them, and their candidates. */
#ifndef SCOUT_CUDA_OWN_RECURRENT_H
#define SCOUT_CUDA_OWN_RECURRENT_H

#include "kernels/recurrent_kernels.h"
#include "scout/recurrent.h"

extern const scout_candidate dnn_recurrent; /* cuDNN */
extern const scout_candidate own_recurrent; /* step by step */
extern const scout_reference cuda_whole_recurrent;

recurrent_layer own_recurrent_layer(const recurrent_problem *p);
recurrent_layer_tensors own_recurrent_tensors(const recurrent_problem *p, void *const *tensors);

#endif
