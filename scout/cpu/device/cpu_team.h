/* The threads of this device: one team, pinned to the cores that are used, for the libraries and for our own loops.
 *
 * Both libraries and our own loops run on the same libgomp. Loops are given to it through the entry points that gcc's
 * `#pragma omp parallel` calls, taken from the library at run time: so the program links no threading runtime, starts
 * without one, and no second pool of threads ever competes for the cores. That makes idle threads harmless: the next
 * user has the very threads that wait. They spin for some hundred microseconds after a turn (10,000 pauses of the
 * processor), and then sleep: small products in a row start in under 1 microsecond, where threads that sleep at once
 * need 8 (on two cores of a Xeon), and a device that idles really idles. */
#pragma once

#include "scout/plugin.h"

#include <stdbool.h>
#include <stdint.h>

typedef void cpu_team_work(void *context, int thread, int threads);

/* Says to libgomp what it will read when it is loaded: before any object that may bring it along is opened. */
void cpu_team_prepare(void);
/* Starts the team once. */
void cpu_team_start(void);
int cpu_team_size(void);            /* 1 between cpu_team_begin(true, …) and its end */
int cpu_team_cores(void);           /* of all threads, wherever it is asked */
bool cpu_team_pinned(void);         /* every thread sits on its own core */
const char *cpu_team_about(void);   /* "2 threads, pinned to cpus 0,1": for people and for describe; borrowed */
const char *cpu_team_library(void); /* path of the runtime; "" where there is none */

/* Calls work(context, thread, threads) on every thread of the team and waits for all. */
void cpu_team_run(cpu_team_work *work, void *context);

/* Until the end the calling thread is its own team, where `alone`: in cpu_team_run, in cpu_team_size, and, where
 * `library` is not NULL, in libraries as well. */
typedef struct cpu_team_state {
    bool alone;
    int threads; /* of libraries; 0: as they are */
} cpu_team_state;
cpu_team_state cpu_team_begin(bool alone, const char *library); /* returns what was before, for its end */
void cpu_team_end(cpu_team_state before);

/* What most launches are: a plan's work on every thread, which gets a cpu_job. */
typedef struct cpu_job {
    scout_plan *plan;
    const scout_args *args;
} cpu_job;
scout_answer cpu_team_launch(cpu_team_work *work, scout_plan *plan, const scout_args *args);
/* Whether the workspace has room for what all threads need. */
scout_answer cpu_team_room(uint64_t bytes, uint64_t limit, scout_why *why);

/* The share of a thread: items [*from, *to) of count. */
void cpu_team_share(int64_t count, int thread, int threads, int64_t *from, int64_t *to);
