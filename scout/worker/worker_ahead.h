/* Operations that are listed and prepared before their job comes, by other threads than the one that measures: most
 * libraries take longer to say how than the device takes to be timed. The supervisor announces what comes next; what is
 * ready by then, or under way, is taken instead of being done by the job itself. */
#ifndef SCOUT_WORKER_WORKER_AHEAD_H
#define SCOUT_WORKER_WORKER_AHEAD_H

#include "scout/worker/worker_jobs.h"
#include "scout/worker/worker_request.h"

/* Whether this worker could: the device says so, no plugin's code would run there, and the machine has cores for it. */
bool worker_ahead_can(const worker *w);
/* The jobs that are announced, a list of their bodies; threads begin with the first of them. The device is open. */
void worker_ahead_hear(worker *w, const json_t *list);
/* What was prepared for this job, the caller's; waits where a thread is at it, and tells the supervisor what that one
 * does meanwhile. NULL: nothing was, or for another job than this has become. */
struct measurement *worker_ahead_take(worker *w, const json_t *body, worker_request **request, double *waited_s);
/* Sessions of announced jobs for which nothing is waited any more, each once: prepared, or left to the job itself. The
 * caller's. */
json_t *worker_ahead_ready(worker *w);
/* Nothing new is begun, and what was not taken is given back. False: a thread is still at something, so all stays as it
 * is and goes with the process. */
bool worker_ahead_end(worker *w);

#endif
