/* Mutations that know the wire format: one field of one message is changed, taken out, doubled, or replaced by a field
 * of the same meaning from elsewhere, and all lengths around it are put right. Blind mutations break a length nearly
 * always and then never get past the reader. */
#ifndef TESTS_FUZZ_WIRE_MUTATE_H
#define TESTS_FUZZ_WIRE_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Changes data[0, size) in place; at most `most` bytes. Returns the new size, 0 where the data are no model to work on.
 */
size_t wire_mutate(uint8_t *data, size_t size, size_t most, unsigned seed);
/* A field of `other` goes into a message of its kind in `data`; the result is written to `out`. 0 as above. */
size_t wire_mutate_cross(const uint8_t *data, size_t size, const uint8_t *other, size_t other_size, uint8_t *out,
                         size_t most, unsigned seed);

#endif
