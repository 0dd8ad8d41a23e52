/* The supervisor: one queue of jobs, one worker process per device, a watchdog over each. Loads neither CUDA nor
 * plugins: whatever they do to a process, they do to a worker. */
#pragma once

#include "common/json.h"
#include "scout/measure/measure.h"

typedef struct supervisor supervisor;

typedef void supervisor_warn(void *context, const char *text);

typedef struct supervisor_options {
    const char *program; /* of the worker: /proc/self/exe */
    const char *library_path;
    const char *const *plugins;
    int plugin_count;
    const char *devices;   /* auto, cpu, cuda:0, cuda:0,1, all (of the kind that auto picks), also of plugins */
    double start_seconds;  /* a worker must be there by then: 60 */
    supervisor_warn *warn; /* a warning that each worker reports; NULL: none is wanted */
    void *warn_context;
    bool verbose; /* what workers print is passed on to stderr, with the name of the device in front */
} supervisor_options;

typedef struct supervisor_device { /* one that is used; borrowed, as long as the supervisor */
    char name[32];                 /* "cuda:0" */
    scout_identity identity;
    char device_class[512];    /* canonical text */
    char device_instance[640]; /* class and UUID */
    char class_folder[128];    /* of the class, safe as a folder's name, unique by a hash */
    uint64_t candidates_hash;
    uint32_t kinds; /* a bit for each kind of operation with an implementation there */
    bool ahead;     /* a job there may announce others ("ahead"), which are prepared beside it */
} supervisor_device;

typedef enum supervisor_event_kind {
    SUPERVISOR_STEP, /* what goes on: candidate, variant, what */
    SUPERVISOR_SAY,
    SUPERVISOR_RESTART, /* a worker was lost: why */
    SUPERVISOR_IDLE     /* all jobs are handed out: the moment for work that delays none (device and job: -1) */
} supervisor_event_kind;
typedef void supervisor_watch(void *context, supervisor_event_kind kind, int device, int job, const char *candidate,
                              const char *variant, const char *text);

/* Starts a worker per device and reads what it is. NULL: st says which device is not there and why (STATUS_ENVIRONMENT;
 * STATUS_USAGE for a name that cannot be one). Owned: supervisor_free, which ends all workers. */
supervisor *supervisor_new(const supervisor_options *options, status *st);
void supervisor_free(supervisor *s);
void supervisor_quit(supervisor *s); /* no job is to come: workers begin to end, and supervisor_rest waits for them */
void supervisor_rest(supervisor *s); /* ends all workers; a further run starts others */
int supervisor_device_count(const supervisor *s);
const supervisor_device *supervisor_device_at(const supervisor *s, int device);

/* Asks one worker for something that needs no device: "devices" or "candidates". The caller's object, or NULL. A body
 * {open: true} has each device opened, too, and what only then is told stands in its "opened". */
json_t *supervisor_ask(const supervisor_options *options, const char *what, const json_t *body, status *st);
/* Of the answer to "devices" those that --device names, in its place; NULL: it names none, and st says why. */
json_t *supervisor_only_named(json_t *list, const char *devices, status *st);

/* Runs jobs until all are done or one of the callbacks stops it. `next` gives the next job for that device (an object
 * as in FRAMES_JOB, taken over; *job is its number; NULL: none is left now: it is asked again while others run), `done`
 * gets its result (borrowed; NULL: it failed for good and st says why), and before that, each time that a part of it is
 * done, an object with a list "parts", or with one of announced jobs that are "ready" (FRAMES_PART). A worker that is
 * lost in a job is replaced and the job is done again: what was at work is tried alone first, and if that is lost too
 * it is excluded with the status it earned (CRASHED, TIMEOUT, ERROR). A job that announced others is done again without
 * them before anything is blamed. What was ended from outside is done again and blamed for nothing, five times in a row
 * at most. Candidates of plugins are measured in a worker of their own, beside the baseline. Before a job that says
 * "anew" the workers of its device are ended, and it has new ones. `stop` is looked at
 * between frames: when it turns non-zero the workers are ended and false is returned with what was finished handed to
 * `done`. */
typedef json_t *supervisor_next(void *context, int device, int *job);
typedef void supervisor_done(void *context, int device, int job, const json_t *result, const status *st);
bool supervisor_run(supervisor *s, supervisor_next *next, supervisor_done *done, supervisor_watch *watch, void *context,
                    const volatile int *stop, status *st);
