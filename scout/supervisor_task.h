/* One job on its way through the workers: its request, which grows by exclusions, and who is to be qualified first. */
#ifndef SCOUT_SUPERVISOR_TASK_H
#define SCOUT_SUPERVISOR_TASK_H

#include "scout/process.h"

typedef struct supervisor_task {
    int job;
    json_t *body;         /* owned */
    json_t *to_qualify;   /* owned: names of the plugins' candidates that could run it */
    size_t next_qualify;  /* the first that was not yet */
    int losses, nameless; /* workers lost over it; of them, at nobody's step */
    json_t *fresh;        /* borrowed: the exclusion that the last loss made, NULL where it made none */
    struct supervisor_task *next;
} supervisor_task;

/* Takes over the body. candidates: what a worker answers to "candidates" (NULL: none are of plugins); device: name of
 * the device that it is for. NULL: no memory, and the body is gone. */
supervisor_task *supervisor_task_new(int job, json_t *body, const json_t *candidates, const char *device);
/* Takes out of its request what other jobs are to come. */
void supervisor_task_announce_nothing(supervisor_task *t);
void supervisor_task_free(supervisor_task *t);

/* The candidate to qualify next, or NULL. */
const char *supervisor_task_qualify(const supervisor_task *t);
/* The request to send, the caller's: a qualification of that candidate, or (NULL) the job itself. NULL: no memory. */
json_t *supervisor_task_request(const supervisor_task *t, const char *candidate);

/* One entry per candidate: its first loss excludes the variant that was at work, the second one all of it. */
void supervisor_task_exclude(supervisor_task *t, const char *name, const char *variant, row_status row,
                             const char *code, const char *text);
/* The rows of a qualification, as exclusions. */
void supervisor_task_exclude_rows(supervisor_task *t, const char *name, const json_t *rows);
/* The last loss was the device's fault, as it turned out. */
void supervisor_task_acquit(supervisor_task *t);

#endif
