/* A softmax over the last dimension, as one node or written out. */
#ifndef EXTRACT_OPS_MATCH_SOFTMAX_H
#define EXTRACT_OPS_MATCH_SOFTMAX_H

#include "extract/ops/match_flow.h"

/* What goes into the softmax whose result `last` writes; its nodes are added to the set. NULL where it writes none. */
tensor *softmax_input(node *last, flow_set *set);

#endif
