/* Text that may hold anything, made fit for a file or a terminal. */
#ifndef COMMON_PLAIN_H
#define COMMON_PLAIN_H

#include "common/arena.h"

/* Valid UTF-8: broken bytes become U+FFFD. The text itself where nothing is broken; else a copy in the arena. */
const char *plain_utf8(arena *a, const char *text);

/* As plain_utf8, and control characters, and those that turn the direction of text around, become '?'. At most
 * `columns` characters, the middle replaced by "…" where there are more. */
const char *plain_cell(arena *a, const char *text, int columns);

int plain_columns(const char *text); /* characters of valid UTF-8 */

#endif
