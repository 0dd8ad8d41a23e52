/* A weight's place in a model's file. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct weights_place {
    const char *model; /* path of the model */
    const char *file;  /* the file that holds it: the model's own name, or one in the model's folder */
    const char *name;  /* what the model calls it */
    int64_t offset, length;
} weights_place;

/* Fills `to` with all of it. False: why (unreachable: the file is not there, is too short, lies outside of the model's
 * folder; or the length is not `bytes`). */
bool weights_file_read(const weights_place *at, void *to, uint64_t bytes, scout_why *why);
/* The same for a part of it, from `from` on. */
bool weights_file_part(const weights_place *at, uint64_t from, void *to, uint64_t bytes, scout_why *why);
