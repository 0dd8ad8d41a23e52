/* A softmax over the last dimension, as one node or written out. */
#ifndef EXTRACT_MATCH_MATCH_SOFTMAX_H
#define EXTRACT_MATCH_MATCH_SOFTMAX_H

#include "extract/match/match_flow.h"

/* What goes into the softmax whose result `last` writes; its nodes are added to the set. NULL where it writes none. */
tensor *softmax_input(node *last, flow_set *set);

#endif
