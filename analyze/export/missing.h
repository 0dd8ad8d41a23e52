/* Which tuning files of another program a deployment lacks: where one is missing, the program runs a configuration that
 * was tuned for something else, and says so in a log alone. The model is known by its config.json. */
#pragma once

#include "common/arena.h"

#include <jansson.h>
#include <stdio.h>

enum { MISSING_FOLDERS = 16, MISSING_FILES = 32 };

typedef struct missing_request {
    const char *program; /* of missing_programs */
    const char *device;  /* as the driver names it; NULL: not told */
    const char *folders[MISSING_FOLDERS];
    int folder_count;
    int64_t tensor_parallel; /* over how many GPUs a layer is spread */
    bool expert_parallel;    /* they share the experts instead of cutting each */
} missing_request;

extern const char *const missing_programs[]; /* ends with NULL */

/* A file that the program looks for, in these places below the folders; "" is the folder itself. */
typedef struct missing_file {
    const char *name, *what;   /* what: of which part of the model */
    const char *const *places; /* ends with NULL */
} missing_file;

typedef struct missing_list {
    arena *a;
    missing_file files[MISSING_FILES];
    int count;
} missing_list;

/* Adds a file that is not there yet: several layers may share one. */
void missing_add(missing_list *list, const char *name, const char *what, const char *const *places);

/* Prints the files that a deployment of the model (a config.json, or its folder) looks for, and whether they are
 * there. STATUS_INCOMPLETE: one is missing. */
status_code missing_say(const missing_request *m, const char *model, FILE *out, status *st);

/* The files of vLLM; the arena's guard takes what cannot be. */
void missing_vllm(const missing_request *m, const json_t *config, missing_list *list);
