/* Mutations that know JSON: a member is taken out, doubled, or replaced by another one or by a number that hurts. Blind
 * mutations break the syntax nearly always and then never get past the parser. */
#ifndef TESTS_FUZZ_JSON_MUTATE_H
#define TESTS_FUZZ_JSON_MUTATE_H

#include <stddef.h>

/* Changes text[0, size) in place; at most `most` bytes. Returns the new size, 0 where it is no JSON to work on. */
size_t json_mutate(char *text, size_t size, size_t most, unsigned seed);

#endif
