/* A whole device that is made up, for measuring its ceilings: a cache, memory, a launch floor, special functions, one
 * library whose products have a known best. Time is virtual; memory is only counted. There is one, for a process has
 * one library in it. */
#ifndef TESTS_FAKES_MADE_UP_H
#define TESTS_FAKES_MADE_UP_H

#include "scout/plugin.h"
#include "scout/timing/timing.h"

#define MADE_UP_FLOOR_S  2e-6
#define MADE_UP_READ     4.4e12
#define MADE_UP_COPY     4.1e12
#define MADE_UP_WRITE    4.0e12
#define MADE_UP_WARM     3.0 /* the cache is so much faster */
#define MADE_UP_SPECIALS 5e12
#define MADE_UP_PEAK     800e12
#define MADE_UP_CACHE    (64u << 20)

struct scout_device {
    double now, loss_at; /* loss_at: SCOUT_LOST from then on */
    uint64_t next, used, room;
    int memories, sequences, plans, runs;
    bool no_special, no_stream, refuse_gemm, lazy;
    struct scout_sequence *into; /* being recorded */
    bool graph;                  /* as a graph */
    uint64_t random;
};

extern scout_device made_up;
extern const scout_device_api made_up_api;
extern const timing_clock made_up_clock;

void made_up_begin(void); /* as new */
bool made_up_nothing_left(void);
double made_up_part_of(int64_t m, int64_t n, int64_t k, int64_t algo); /* of the peak, that a product reaches */

#endif
