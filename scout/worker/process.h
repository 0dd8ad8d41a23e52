/* One worker process as its supervisor sees it: started, listened to, timed, ended. */
#pragma once

#include "common/clock.h"
#include "scout/terms/reason.h"
#include "scout/worker/frames.h"
#include "scout/worker/supervisor.h"

#include <sys/types.h>

typedef enum process_state {
    PROCESS_NONE,     /* there is no process */
    PROCESS_STARTING, /* until its hello */
    PROCESS_READY,    /* has said hello and has no device yet */
    PROCESS_OPENING,
    PROCESS_IDLE, /* has its device */
    PROCESS_BUSY
} process_state;

typedef struct process {
    process_state state;
    pid_t pid;
    int fd, error_fd; /* connection; its stdout and stderr */
    frames_reader reader;
    char label[32];        /* of what it says, where that is passed on: "cuda:0" */
    bool verbose;          /* pass it on */
    supervisor_warn *warn; /* as the options have it */
    void *warn_context;
    bool dead;                /* seen to be; its last words may still be on the way */
    bool ended_by_others;     /* how the last one was lost, also when it is no more */
    double deadline, seconds; /* when the next frame must be there; between two frames */
    json_t *ceilings;         /* of the last job that had any: the worker has them; owned */
    struct {                  /* what it is at */
        char candidate[64], variant[256], what[64];
    } step;
    char line[512]; /* of its stderr, as it grows */
    size_t line_used;
    char last_line[256]; /* last one that is not empty */
} process;

typedef struct process_loss { /* why a process is no more */
    row_status status;        /* CRASHED or TIMEOUT */
    bool by_others; /* a signal that nothing of its own raises, or it was stopped: it says nothing of its work */
    char code[24];
    char text[512];
} process_loss;

/* Starting: this child is a worker. */
void process_enlist(pid_t pid);
/* Fills in the process; it is PROCESS_STARTING and has start_seconds for its hello. */
bool process_start(process *p, const supervisor_options *options, const char *label, status *st);
/* Sends a frame; body is taken over. The process then has `seconds` until the next frame. A failure shows as its loss.
 */
void process_send(process *p, frames_type type, json_t *body, double seconds);
void process_rest(process *p, process_state state); /* nothing is waited for */

/* Waits until one of them has something to say or `seconds` have passed, and reads it. */
void process_wait(process *const *list, int count, double seconds);

typedef enum process_event { PROCESS_QUIET, PROCESS_FRAME, PROCESS_LOST } process_event;
/* The next thing that happened to it: the frame is the caller's; a loss has ended the process. */
process_event process_next(process *p, frames_frame *frame, process_loss *loss);
/* Ends it because of what it said itself. */
void process_condemn(process *p, row_status row, const char *code, const char *text, process_loss *loss);

/* Ends them all: politely where they are idle, at once where they are busy. With them goes whatever they have started,
 * also what left their group or session: nothing but workers that are alive stays a child of this process. */
void process_end(process *const *list, int count);
/* One that has nothing to do is told to end, and not waited for. */
void process_quit(process *p);

/* Sends a frame and waits for the answer: the body of FRAMES_OPENED or FRAMES_DONE, the caller's. NULL: st says why; it
 * was lost, or answered FAILED. First waits for the hello of one that is just starting. */
json_t *process_call(process *p, frames_type type, json_t *body, double seconds, status *st);
