/* Shared libraries opened at run time, in one documented order, and what was opened. The order: each folder of
 * --library-path, each of $CEILING_SCOUT_LIBRARY_PATH, the program's own folder, ../lib/ceiling-scout beside it,
 * ceiling-scout beside the library that this code is in, then
 * the system's loader ($LD_LIBRARY_PATH, ld.so.cache, default folders), then $CUDA_HOME/lib64 and the customary folders
 * of the CUDA toolkit.
 */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>

/* Colon-separated, copied; before any libraries_open. NULL: none. */
void libraries_set_path(const char *folders);
/* The same by that variable, for the CUDA device's object too, which has a list of its own. false: no memory. */
bool libraries_pass_path(const char *folders);

/* The handle of the first of `names` (ends with NULL) that opens, or NULL: why says where it was looked for. The same
 * name again gives the same handle. `path` gets the file that was really opened. `global`: its symbols serve what is
 * opened later (a library that another object names as needed must be opened so first). Handles are never closed. */
void *libraries_open(const char *const *names, bool global, char *path, size_t room, scout_why *why);
/* A warning of the search: files that were where a library belongs and could not be loaded, so that it
 * was looked for elsewhere. Each is reported once; NULL: there are no more. Borrowed. */
const char *libraries_note(uint32_t index);
void *libraries_symbol(void *handle, const char *name, scout_why *why); /* NULL where it has none */

/* Where in a table of functions the one of that name belongs. */
typedef struct libraries_place {
    const char *name;
    size_t at;
} libraries_place;
/* Fills a whole table; false: the library has not all of them, why names the first that is missing. */
bool libraries_bind(void *handle, const libraries_place *places, size_t count, void *table, scout_why *why);
