/* What --device says: words into names of devices. */
#ifndef SCOUT_WORKER_SUPERVISOR_WORDS_H
#define SCOUT_WORKER_SUPERVISOR_WORDS_H

#include "common/json.h"

enum { SUPERVISOR_MAX_DEVICES = 64 };

typedef struct supervisor_words {
    char names[SUPERVISOR_MAX_DEVICES][32]; /* "cpu", "cuda:0" */
    int count;
} supervisor_words;

/* `list` is what a worker answers to "devices". auto: the first CUDA device, else the CPU. all: every device of that
 * kind. Else a name, with numbers after a colon: "cuda", "cuda:0,1". false: STATUS_USAGE for what cannot be a device,
 * STATUS_ENVIRONMENT for one that is not there, with the reason that the list gives. */
bool supervisor_words_resolve(const char *text, const json_t *list, supervisor_words *out, status *st);

#endif
