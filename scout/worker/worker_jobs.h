/* What a worker does for each job. */
#ifndef SCOUT_WORKER_WORKER_JOBS_H
#define SCOUT_WORKER_WORKER_JOBS_H

#include "scout/device/plugins.h"
#include "scout/measure/measure.h"
#include "scout/worker/frames.h"

#include <sched.h>

typedef struct worker_session worker_session;
typedef struct worker_ahead worker_ahead;

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

void worker_jobs_forget(worker *w); /* all that is kept between jobs */

worker_job *worker_jobs_find(const char *what); /* NULL: there is no such job */
/* Parts of it, by file. */
json_t *worker_jobs_devices(worker *w, const json_t *body, worker_end *end);
json_t *worker_jobs_candidates(worker *w, const json_t *body, worker_end *end);

#endif
