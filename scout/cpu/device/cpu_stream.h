/* How fast this processor reads, writes and computes at best: the launches behind its ceilings. */
#pragma once

#include "scout/plugin.h"

/* On all threads, also with stores past the caches, or on one, which waits for no other. */
enum { CPU_STREAM_TEAM, CPU_STREAM_PAST, CPU_STREAM_ALONE, CPU_STREAM_WAYS };

/* Which way is the fastest depends on what the caches hold when a launch comes, which no size tells: so the first
 * launches of a kind (bytes, read or not, same target as before or another) try all that may be. */
typedef struct cpu_stream_choice {
    uint32_t tries[CPU_STREAM_WAYS];
    double seconds[CPU_STREAM_WAYS]; /* least of a byte; 0: not tried */
} cpu_stream_choice;

typedef struct cpu_stream_state { /* zeroed to begin with */
    cpu_stream_choice choices[64][3][2];
    const void *last;
} cpu_stream_state;

/* Reads and writes both buffers once; either may be empty. */
void cpu_stream_run(cpu_stream_state *state, const void *read, uint64_t read_bytes, void *written,
                    uint64_t written_bytes);
/* What the operation before it in a model does to its activations: it reads what lies where this one is to write, and
 * writes what this one is to read, on other cores in part. */
void cpu_stream_hand_over(const scout_op *op, void *const *tensors);
uint64_t cpu_stream_special(uint64_t operations); /* exponentials in registers; returns how many */

/* cpu_arithmetic.c: at least `flops` in multiply-adds (two each) in registers, on all threads; *done: how many.
 * SCOUT_NO: no such instructions here. */
scout_answer cpu_arithmetic_run(uint32_t type, uint64_t flops, uint64_t *done, scout_why *why);
