/* What the supervisor's parts share: starting (supervisor_open.c) and running (supervisor.c). */
#ifndef SCOUT_WORKER_SUPERVISOR_INTERNAL_H
#define SCOUT_WORKER_SUPERVISOR_INTERNAL_H

#include "scout/worker/process.h"
#include "scout/worker/supervisor_task.h"
#include "scout/worker/supervisor_words.h"

/* So often in a row a worker may be ended from outside at one step; after that it is taken for a failure of its own. */
enum { SUPERVISOR_MOST_ENDS = 5 };

typedef struct supervisor_slot { /* one device */
    supervisor_device device;
    process main, guest;   /* guest: of the one candidate that is measured or tried alone */
    char guest_of[64];     /* empty: it is not to be used again */
    supervisor_task *task; /* owned; NULL: idle */
    int open_failures;     /* in a row */
    bool ahead;            /* `main` was told of jobs to come, and prepares them beside its own */
    bool alone;            /* one that did was lost: nothing is announced until another one is to blame for it */
    bool out;
    char out_why[512];
} supervisor_slot;

struct supervisor {
    supervisor_options options;
    json_t *candidates;        /* of plugins, owned */
    supervisor_task *returned; /* jobs of devices that are out, owned */
    int count, ends;           /* ends: of workers, from outside */
    supervisor_slot slots[SUPERVISOR_MAX_DEVICES];
};

double supervisor_start_seconds(const supervisor_options *o);
json_t *supervisor_open_request(const char *name);
bool supervisor_read_opened(const json_t *body, supervisor_device *d);
int supervisor_processes(supervisor *s, process **list); /* those that are there; room for two a device */
void supervisor_drop_tasks(supervisor *s);

#endif
