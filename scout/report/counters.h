/* What Nsight Compute counted while a candidate's kernels ran, read from the table that `ncu --csv` prints, and what it
 * says of the bottleneck. Pure: text in, figures out. */
#pragma once

#include "common/json.h"
#include "common/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum counters_figure {                           /* each in percent of what the hardware can sustain */
                               COUNTERS_WARPS,           /* warps in flight */
                               COUNTERS_TENSOR,          /* cycles in which the tensor pipe was busy */
                               COUNTERS_DRAM,            /* throughput */
                               COUNTERS_L2,              /* throughput */
                               COUNTERS_SYNCHRONISATION, /* of the time that warps were held back, that at barriers and
                                                            fences */
                               COUNTERS_FIGURES
} counters_figure;

typedef struct counters {
    int kernels;                      /* launches that were looked at */
    double time_us;                   /* of all of them; 0: not told */
    char slowest[128];                /* the kernel that took most of it */
    double percent[COUNTERS_FIGURES]; /* over the kernels, by their times; not-a-number: not counted */
    const char *bottleneck;           /* memory, tensor, latency, synchronisation */
    char text[256];                   /* one line of why */
} counters;

/* `text` (`size` bytes and a NUL) is cut up in place. Both pages are understood, raw (a line a kernel) and details (a
 * line a metric), with whatever stands before the table. `name` is for messages. false: st says what is amiss. */
bool counters_read(char *text, size_t size, const char *name, counters *out, status *st);
json_t *counters_json(const counters *c, json_builder *b); /* the caller's */

/* Texts are borrowed for the call. A value that ncu does not tell ("n/a") is not-a-number. */
typedef struct counters_table_reader {
    void *context;
    void (*metric)(void *context, const char *name, const char *unit, double value);
    void (*end)(void *context, const char *kernel); /* all metrics of this kernel's launch were told */
} counters_table_reader;

bool counters_table_read(char *text, size_t size, const char *name, const counters_table_reader *reader, status *st);
