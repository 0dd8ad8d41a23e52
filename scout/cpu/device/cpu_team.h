/* The threads of this device: one team, pinned to the cores that are used, for the libraries and for our own loops.
 *
 * Both libraries and our own loops run on the same libgomp. Loops are given to it through the entry points that gcc's
 * `#pragma omp parallel` calls, taken from the library at run time: so the program links no threading runtime, starts
 * without one, and no second pool of threads ever competes for the cores. That makes idle threads harmless: the next
 * user has the very threads that wait. They spin for some hundred microseconds after a turn (10,000 pauses of the
 * processor), and then sleep: small products in a row start in under 1 microsecond, where threads that sleep at once
 * need 8 (on two cores of a Xeon), and a device that idles really idles. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef void cpu_team_work(void *context, int thread, int threads);

/* Says to libgomp what it will read when it is loaded: before any object that may bring it along is opened. */
void cpu_team_prepare(void);
/* Starts the team once. */
void cpu_team_start(void);
int cpu_team_size(void);
bool cpu_team_pinned(void);         /* every thread sits on its own core */
const char *cpu_team_about(void);   /* "2 threads, pinned to cpus 0,1": for people and for describe; borrowed */
const char *cpu_team_library(void); /* path of the runtime; "" where there is none */

/* Calls work(context, thread, threads) on every thread of the team and waits for all. */
void cpu_team_run(cpu_team_work *work, void *context);

/* The share of a thread: items [*from, *to) of count. */
void cpu_team_share(int64_t count, int thread, int threads, int64_t *from, int64_t *to);
