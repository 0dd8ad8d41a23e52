/* The parts of the scripted device's plugin. */
#ifndef TESTS_FAKES_SCRIPTED_DEVICE_H
#define TESTS_FAKES_SCRIPTED_DEVICE_H

#include "tests/fakes/scripted/scripted.h"

#include <stdbool.h>

extern scout_device_api scripted_device;
extern const scout_reference scripted_reference;
extern const scout_candidate scripted_blas;     /* the baseline: algo 0; algo 1 is faster, the others slower */
extern const scout_candidate scripted_stream_k; /* fastest, for M of at most 16 */
extern const scout_candidate scripted_sparse;   /* for sparse weights; the fastest above three quarters of zeros */
extern const scout_candidate scripted_absent;   /* supports nothing */

uint64_t scripted_random(uint64_t *state);
void scripted_prepares(const scout_op *op);                                /* told before each plan is made */
void scripted_fill(void *to, uint64_t bytes, uint32_t how, uint64_t seed); /* as scout_device_api.fill, with floats */

#endif
