/* How many channels lie together in tensors of com.microsoft.nchwc. */
#pragma once

#include "extract/graph/graph.h"

/* 8 or 16. No attribute says it, but weights are padded to whole blocks; where none of them tells, it is 16. */
int64_t channel_block(model *m);
