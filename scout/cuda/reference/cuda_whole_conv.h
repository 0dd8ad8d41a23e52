/* Parameters of whole_conv shared by convolutions and quantised products, which are 1x1 convolutions.
 */
#ifndef SCOUT_CUDA_REFERENCE_CUDA_WHOLE_CONV_H
#define SCOUT_CUDA_REFERENCE_CUDA_WHOLE_CONV_H

#include "kernels/reference/whole.h"
#include "scout/cuda/own/own_activate.h"
#include "scout/op/activation.h"
#include "scout/op/requantize.h"

/* Some tens of seconds where fp64 is quick. */
static const double cuda_whole_conv_most_macs = 1e13;

/* The epilogue. */
static inline void cuda_whole_conv_behind(whole_conv_problem *w, const op_activation *a, const requantize *q) {
    w->activation = own_activate(a->function);
    w->alpha = a->alpha, w->beta = a->beta, w->steepest = activation_steepest(a);
    w->quantised = q->is, w->rounds = q->rounds, w->factor = q->factor;
    w->zero_in = q->zero_in, w->zero_weight = q->zero_weight, w->zero_out = q->zero_out;
    w->least = q->least, w->most = q->most;
}

#endif
