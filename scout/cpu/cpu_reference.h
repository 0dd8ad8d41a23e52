/* The references of this device: what a right output is, in fp64. */
#ifndef SCOUT_CPU_CPU_REFERENCE_H
#define SCOUT_CPU_CPU_REFERENCE_H

#include "scout/plugin.h"

extern const scout_reference cpu_reference_gemm;
extern const scout_reference cpu_reference_attention;
extern const scout_reference cpu_reference_embedding;
extern const scout_reference cpu_reference_rotary;
extern const scout_reference cpu_reference_move;
extern const scout_reference cpu_reference_quantize;

#endif
