/* The references (scout/cuda/cuda_whole.h) of attention, and of the kinds that are told by where their elements lie:
 * windows that slide over space, rows of tables, moves. */
#ifndef SCOUT_CUDA_WHOLE_PLACES_H
#define SCOUT_CUDA_WHOLE_PLACES_H

#include "scout/plugin.h"

extern const scout_reference cuda_whole_attention;
extern const scout_reference cuda_whole_conv;
extern const scout_reference cuda_whole_pool;
extern const scout_reference cuda_whole_embedding;
extern const scout_reference cuda_whole_move;
extern const scout_reference cuda_whole_quantize;

#endif
