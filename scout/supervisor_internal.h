/* What the supervisor's parts share: starting (supervisor_open.c) and running (supervisor.c). */
#ifndef SCOUT_SUPERVISOR_INTERNAL_H
#define SCOUT_SUPERVISOR_INTERNAL_H

#include "scout/process.h"
#include "scout/supervisor_task.h"
#include "scout/supervisor_words.h"

typedef struct supervisor_slot { /* one device */
    supervisor_device device;
    process main, qualifier; /* qualifier: where plugins' candidates run for the first time */
    supervisor_task *task;   /* owned; NULL: idle */
    int open_failures;       /* in a row */
    bool ahead;              /* `main` was told of jobs to come, and prepares them beside its own */
    bool alone;              /* one that did was lost: nothing is announced until somebody else is to blame for it */
    bool out;
    char out_why[512];
} supervisor_slot;

struct supervisor {
    supervisor_options options;
    json_t *candidates;        /* of plugins, owned */
    supervisor_task *returned; /* jobs of devices that are out, owned */
    int count;
    supervisor_slot slots[SUPERVISOR_MAX_DEVICES];
};

double supervisor_start_seconds(const supervisor_options *o);
json_t *supervisor_open_request(const char *name);
bool supervisor_read_opened(const json_t *body, supervisor_device *d);
int supervisor_processes(supervisor *s, process **list); /* those that are there; room for two a device */
void supervisor_drop_tasks(supervisor *s);

#endif
