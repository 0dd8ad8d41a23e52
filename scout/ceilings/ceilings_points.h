/* Which shapes are worth looking at: whole waves of tiles over the device's units, customary sizes, random ones, and
 * the neighbours of a good one. */
#pragma once

#include "scout/ceilings/ceilings_search.h"

uint64_t ceilings_points_next(uint64_t *state); /* random bits */
bool ceilings_points_fit(const ceilings_search_space *space, const ceilings_search_point *p);
/* Log-uniform multiples of 128 (of 32 in a space of small shapes) that fit. */
ceilings_search_point ceilings_points_random(const ceilings_search_space *space, uint64_t *state);
/* What earlier searches ended with on devices of as many units, at most `room`; returns how many. */
int ceilings_points_known(const ceilings_search_space *space, ceilings_search_point *out, int room);
/* The index-th thing to try: first the customary and the deep ones, then whole waves and random ones in turns. */
ceilings_search_point ceilings_points_try(const ceilings_search_space *space, int index, uint64_t *state);
/* Writes at most `room` neighbours that fit; returns how many. */
int ceilings_points_near(const ceilings_search_space *space, const ceilings_search_point *p, ceilings_search_point *out,
                         int room);
