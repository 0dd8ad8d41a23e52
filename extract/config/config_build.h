/* Writes the graph of a configuration: one run for each number of tokens, all through the same weights. */
#pragma once

#include "extract/config/config.h"
#include "extract/config/config_onnx.h"
#include "extract/config/config_read.h"

/* One run, and what is asked of it; the prefix is that of its names. */
void config_build(onnx_writer *o, const config_read *c, const char *prefix, int64_t batch, int64_t tokens,
                  int64_t past);
