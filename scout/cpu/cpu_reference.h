/* The references of this device: what a right output is, in fp64. */
#ifndef SCOUT_CPU_CPU_REFERENCE_H
#define SCOUT_CPU_CPU_REFERENCE_H

#include "scout/plugin.h"

extern const scout_reference cpu_reference_gemm;
extern const scout_reference cpu_reference_conv;
extern const scout_reference cpu_reference_pool;
extern const scout_reference cpu_reference_norm;
extern const scout_reference cpu_reference_softmax;
extern const scout_reference cpu_reference_elementwise;
extern const scout_reference cpu_reference_reduce;
extern const scout_reference cpu_reference_attention;
extern const scout_reference cpu_reference_embedding;
extern const scout_reference cpu_reference_rotary;
extern const scout_reference cpu_reference_move;
extern const scout_reference cpu_reference_quantize;
extern const scout_reference cpu_reference_recurrent;

#endif
