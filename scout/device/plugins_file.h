/* What is looked at of a plugin's file before any code of it runs: its owner, its permissions, whether all of it is
 * there; and its hash. */
#ifndef SCOUT_DEVICE_PLUGINS_FILE_H
#define SCOUT_DEVICE_PLUGINS_FILE_H

#include "common/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct plugins_file {
    char path[PATH_MAX]; /* the real one */
    uint64_t content;    /* XXH3 of its bytes, as `xxhsum -H3` prints it: a kernel that was built anew is another one */
} plugins_file;

/* Whether a name tells a place by itself: one without a slash might be meant as a library that a loader looks for. */
bool plugins_file_is_path(const char *file);
/* false: st says what is amiss, and how to mend it. */
bool plugins_file_look(const char *file, plugins_file *out, status *st);

uint64_t plugins_file_content(const char *path); /* 0: it cannot be read */

#endif
