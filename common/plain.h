/* Text that may hold anything, made fit for a file or a terminal. */
#pragma once

#include "common/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Length of the well-formed character at `text` and its code; 0 where it is broken. A NUL ends every sequence early. */
int plain_character(const char *text, uint32_t *code);
bool plain_controls(uint32_t code); /* a control character, or one that turns the direction of text around */

/* Of a text that was cut, by bytes: takes away what is left of its last character, if that is not whole. */
void plain_end(char *text);

/* Valid UTF-8: broken bytes become U+FFFD. The text itself where nothing is broken; else a copy in the arena. */
const char *plain_utf8(arena *a, const char *text);

/* As plain_utf8, and control characters, and those that turn the direction of text around, become '?'. At most
 * `columns` characters, the middle replaced by "…" where there are more. */
const char *plain_cell(arena *a, const char *text, int columns);

/* A name as it is repeated: itself up to PLAIN_NAME bytes, else its head, the hash of the whole and its tail, in the
 * arena. What names a model gives then costs no more than a line wherever it is said. */
enum { PLAIN_NAME = 255 };
const char *plain_name(arena *a, const char *name);

int plain_columns(const char *text); /* characters of valid UTF-8 */

bool plain_same(const char *a, const char *b);  /* both are there and equal: NULL equals nothing, not even NULL */
bool plain_alike(const char *a, const char *b); /* equal, where NULL is an empty text */
