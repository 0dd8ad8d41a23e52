/* From a configuration of transformers (config.json) to the model that its export would be: ONNX without weights, in
 * memory, which is read like a file. Nothing behind it knows that there was no file. */
#pragma once

#include "common/arena.h"

#include <stdint.h>

enum { CONFIG_MAX_TOKENS = 16 };

/* What is asked for. Each number of tokens is a run of its own, through the same weights. */
typedef struct config_run {
    const char *path; /* of the config.json */
    int64_t tokens[CONFIG_MAX_TOKENS];
    int token_count;     /* 0: not given */
    int64_t past, batch; /* keys that are there before the first token; 0: not given */
} config_run;

typedef struct config_model {
    const char *name;
    const uint8_t *bytes; /* all in the arena */
    size_t size;
    const char *warning; /* NULL: none */
} config_model;

/* Fails through the arena's guard: STATUS_USAGE where the family does not take what is asked for, else STATUS_INPUT. */
config_model config_make(arena *a, const config_run *run);
