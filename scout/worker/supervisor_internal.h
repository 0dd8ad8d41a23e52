/* What the supervisor's parts share: starting (supervisor_open.c) and running (supervisor.c). */
#pragma once

#include "common/json.h"
#include "scout/worker/process.h"

/* One job on its way through the workers: its request, which grows by exclusions, and what was measured by now. */
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

/* ---- what --device says: words into names of devices ---- */
enum { SUPERVISOR_MAX_DEVICES = 64 };

typedef struct supervisor_words {
    char names[SUPERVISOR_MAX_DEVICES][32]; /* "cpu", "cuda:0" */
    int count;
} supervisor_words;

/* `list` is what a worker answers to "devices". auto: the first CUDA device, else the CPU. all: every device of that
 * kind. Else a name, with numbers after a colon: "cuda", "cuda:0,1". false: STATUS_USAGE for what cannot be a device,
 * STATUS_ENVIRONMENT for one that is not there, with the reason that the list gives. */
bool supervisor_words_resolve(const char *text, const json_t *list, supervisor_words *out, status *st);

/* So often in a row a worker may be ended from outside at one step; after that it is taken for a failure of its own. */
enum { SUPERVISOR_MOST_ENDS = 5 };

typedef struct supervisor_slot { /* one device */
    supervisor_device device;
    process main, guest;   /* guest: of the one candidate that is measured or tried alone */
    char guest_of[64];     /* empty: it is not to be used again */
    supervisor_task *task; /* owned; NULL: idle */
    int open_failures;     /* in a row */
    bool ahead;            /* `main` was told of jobs to come, and prepares them beside its own */
    bool opens;            /* its job is one whose plans are prepared beside each other */
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
