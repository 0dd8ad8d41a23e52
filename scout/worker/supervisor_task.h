/* One job on its way through the workers: its request, which grows by exclusions, what was measured by now, and which
 * candidate is measured or tried in a worker of its own. */
#ifndef SCOUT_WORKER_SUPERVISOR_TASK_H
#define SCOUT_WORKER_SUPERVISOR_TASK_H

#include "scout/worker/process.h"

typedef struct supervisor_task {
    int job;
    json_t *body;      /* owned */
    json_t *apart;     /* owned: names of the plugins' candidates that could run it */
    size_t next_apart; /* the first that was not yet measured */
    json_t *result;    /* owned: what there is by now; NULL: the device's own worker has not measured it yet */
    char trial[64];    /* failed beside others, and is tried alone before it is blamed; empty: nothing is */
    json_t *failures;  /* owned: how often each candidate failed since something of it was excluded */
    struct {           /* where a worker was ended from outside, and how often in a row */
        char candidate[64], variant[256];
        int ends;
    } ended;
    int losses, nameless; /* workers lost over it; of them, at no step that has a name */
    json_t *fresh;        /* borrowed: the exclusion that the last loss made, NULL where it made none */
    struct supervisor_task *next;
} supervisor_task;

/* Takes over the body. candidates: what a worker answers to "candidates" (NULL: none are of plugins); device: name of
 * the device that it is for. NULL: no memory, and the body is gone. */
supervisor_task *supervisor_task_new(int job, json_t *body, const json_t *candidates, const char *device);
/* Takes out of its request what other jobs are to come. */
void supervisor_task_announce_nothing(supervisor_task *t);
void supervisor_task_free(supervisor_task *t);

/* The candidate that is next in a worker of its own, or NULL: the device's worker is, or all is done. */
const char *supervisor_task_alone(const supervisor_task *t);
/* The request to send, the caller's: the job without what is measured apart, or what is next alone beside the baseline.
 * NULL: no memory. */
json_t *supervisor_task_request(const supervisor_task *t);
/* What a worker of its own has measured is put beside the rest, at the baseline's time there. */
void supervisor_task_join(supervisor_task *t, const char *name, const json_t *result);

/* A candidate's worker was lost, and not from outside: how often that is by now. */
int supervisor_task_count_failure(supervisor_task *t, const char *name);
/* One was ended from outside at that step: how often in a row that is by now. */
int supervisor_task_count_end(supervisor_task *t, const char *candidate, const char *variant);

/* One entry per candidate: its first loss excludes the variant that was at work, the second one all of it. */
void supervisor_task_exclude(supervisor_task *t, const char *name, const char *variant, row_status row,
                             const char *code, const char *text);
/* The last loss was the device's fault, as it turned out; what was measured on it is measured again. */
void supervisor_task_acquit(supervisor_task *t);

#endif
