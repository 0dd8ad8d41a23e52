/* Reading a value back that was dumped without blanks: several times as fast as a parser of all JSON, so that a hit
 * stays short where an entry holds the rows of many variants. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* text[size] is NUL. The caller's value; NULL: not written as this reads it, which a parser of all JSON may still be
 * able to read, or no memory. */
json_t *cache_parse(const char *text, size_t size);
