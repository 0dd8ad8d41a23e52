/* What a worker does for each job. */
#pragma once

#include "common/json.h"
#include "scout/device/plugins.h"
#include "scout/measure/measure.h"
#include "scout/worker/frames.h"

#include <sched.h>

/* What a job asks to be measured: read when the job comes, or when it is announced. */
typedef struct worker_request { /* of one job, or of all passes of one operation, with what its parts borrow from */
    guard guard;
    arena arena;
    operation operation;
    ceilings ceilings;
    fusion_part *parts;
    measure_request measure;
} worker_request;

/* Owned: worker_request_free. NULL: st says what is wrong with it. Borrows from the body. */
worker_request *worker_request_new(const json_t *body, status *st);
void worker_request_free(worker_request *r);
/* The ceilings that the body has, for a request that was read without. False: st says why. */
bool worker_request_tell_ceilings(worker_request *r, const json_t *body, status *st);
/* Rows that must not be run, in the arena; fails through its guard. */
const measure_exclusion *worker_request_exclusions(const json_t *list, arena *a, int *count);
/* A finite number of the body, or another one. */
double worker_request_number(const json_t *body, const char *key, double otherwise);

typedef struct worker_session worker_session;
typedef struct worker_ahead worker_ahead;
typedef struct worker_replay worker_replay;

typedef struct worker {
    int out;
    bool gone;                   /* the supervisor does not listen any more */
    const scout_device_api *api; /* NULL: none was asked for yet */
    int32_t ordinal;
    cpu_set_t cores; /* that the process may use: a device's library may bind the thread that loads it to one of them */
    scout_identity identity;
    scout_device *device;               /* NULL: not opened yet */
    worker_ahead *ahead;                /* threads that prepare what comes next; NULL: none yet; owned */
    json_t *declined;                   /* sessions that were announced and that none of them prepares; owned */
    worker_session *sessions;           /* operations that are measured in passes; owned */
    struct measurement *resting;        /* of one of them, whose memory is given back once its result is sent */
    json_t *ceilings;                   /* of the last job that had any; owned */
    bool rests_later;                   /* no plugin's code runs here, and the machine has cores for it */
    worker_replay *replay;              /* the model that is measured as a whole in passes; NULL: none is; owned */
    measure_watcher watcher;            /* of all of them */
    uint64_t jobs;                      /* how many passes it has measured */
    uint32_t told[PLUGINS_MAX_DEVICES]; /* of what each device has to say */
    struct {                            /* the last heartbeat: one that says the same at once is not sent */
        char candidate[64], variant[256], what[64];
        double at, seconds;
    } step;
} worker;

/* How a job ended. */
typedef struct worker_end {
    scout_answer answer;
    scout_why why;
    status st; /* where the job itself was wrong: code not STATUS_OK */
} worker_end;

void worker_send(worker *w, frames_type type, json_t *body); /* takes over the body; NULL: it could not be made */
void worker_step(void *context, const char *candidate, const char *variant, const char *what, double seconds);

/* A job: the caller's result, or NULL and `end` says why. */
typedef json_t *worker_job(worker *w, const json_t *body, worker_end *end);

void worker_jobs_rest(worker *w);   /* gives back what the next job does not need */
void worker_jobs_forget(worker *w); /* all that is kept between jobs */

worker_job *worker_jobs_find(const char *what); /* NULL: there is no such job */
/* Parts of it, by file. */
json_t *worker_jobs_devices(worker *w, const json_t *body, worker_end *end);
json_t *worker_jobs_candidates(worker *w, const json_t *body, worker_end *end);
json_t *worker_jobs_replay(worker *w, const json_t *body, worker_end *end);
void worker_replay_forget(worker *w);
bool worker_jobs_open(worker *w, worker_end *end); /* the device; false: end says why */

/* Operations are listed and prepared before their job comes, by other threads than the one that measures: most
 * libraries take longer to say how than the device takes to be timed. The supervisor announces what comes next; what is
 * ready by then, or under way, is taken instead of being done by the job itself. */

/* So many threads could: the device says so, no plugin's code would run there, and the machine has cores for them. 0:
 * none. */
int worker_ahead_threads(const worker *w);
/* The jobs that are announced, a list of their bodies; threads begin with the first of them. The device is open. */
void worker_ahead_hear(worker *w, const json_t *list);
/* What was prepared for this job, the caller's; waits where a thread is at it, and tells the supervisor what that one
 * does meanwhile. NULL: nothing was, or for another job than this has become. */
struct measurement *worker_ahead_take(worker *w, const json_t *body, worker_request **request, double *waited_s);
/* Sessions of announced jobs for which nothing is waited any more, each once: prepared, or left to the job itself. The
 * caller's. */
json_t *worker_ahead_ready(worker *w);
/* Nothing new is begun, and what was not taken is given back. False: a thread is still at something, so all stays as it
 * is; it goes with the process, or is asked again. */
bool worker_ahead_end(worker *w);
