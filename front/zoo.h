/* The zoo: a list of models, each with the sizes that it is profiled at. All of it works inside of one arena, whose
 * guard takes what fails. */
#pragma once

#include "common/arena.h"
#include "front/start.h"

#include <jansson.h>

typedef struct zoo_model {
    const char *name;         /* its folders begin with it */
    const char *file;         /* what is profiled: as the list has it, or where a download will lie */
    const char *url, *sha256; /* NULL: a file of this machine; not to be checked */
    bool fetched;             /* tried, with this code */
    int fetch_code;
    const char *fetch_why;
} zoo_model;

/* A model at one size: a folder, as scripts/profile.sh makes it. */
typedef struct zoo_item {
    zoo_model *model;
    int at; /* in the list: "models"[at] */
    settings with;
    const char *folder;        /* where its results lie; set by zoo_run.c */
    const char *label;         /* the last name of it, fit for a line */
    bool wanted;               /* by --only */
    bool done, read, measured; /* now: it had its turn; was read again; something was measured */
    int code;
    const char *why;                   /* what went wrong; NULL: nothing did */
    int64_t operations, fresh, cached; /* with a result; of these measured now, and had from the cache now */
    const char *gpu;                   /* of --gpus: where it ran; NULL: anywhere */
} zoo_item;

typedef struct zoo {
    const char *path, *output; /* of the list, NULL: the usual one; the folder of all folders */
    const char *only;          /* NULL: all */
    const char *notify;        /* a command that gets the digest; NULL: none */
    double budget;             /* instead of those of the list; 0: theirs */
    bool list, digest;
    const char *gpus; /* "all", or as CUDA_VISIBLE_DEVICES names them: items run beside each other; NULL: do not */
    const char **gpu_names; /* these */
    int gpu_count;
    const char *part;          /* "N/M": the Nth of M items alone, beside others of its night; NULL: it is no part */
    bool tell;                 /* what parts have done: nothing is measured here but suspects */
    const char *named;         /* what the night of parts is called; NULL: they are of none */
    bool again;                /* all of it is measured in this night, whether it has changed or not */
    const char *night, *cache; /* what that is called, and where its results are shared; NULL: it is none */
    bool resumed;              /* it was interrupted, and has told nothing yet */
    const char **unlike;       /* a line for each device that is not as fast as others of its kind */
    int unlike_count;
    arena *a;
    json_t *root; /* owned; texts are borrowed from it */
    zoo_model *models;
    int model_count;
    zoo_item *items;
    int item_count;
} zoo;

/* zoo_read.c: the list. Paths in it are relative to it. */
void zoo_read(zoo *z);

/* zoo_step.c: one thing that is started, alone in its own group of processes, with its words in a log. Its exit code;
 * `tick` is called every second until then, and where `stop` turns non-zero it is asked to end. */
typedef struct zoo_step {
    const settings *profile;  /* for scripts/profile.sh; NULL: words */
    const char *const *words; /* a program's path and what follows, NULL behind them */
    const char *input;        /* a file that it reads; NULL: nothing */
    const char *gpu;          /* the only one that it sees; NULL: all */
    double most_s;            /* it is ended then; 0: it has all the time it wants */
    const char *log;
    const volatile int *stop;
    void (*tick)(void *context);
    void *context;
} zoo_step;
enum { ZOO_STEP_LATE = 1000 }; /* the code of one that was ended so */
int zoo_step_run(zoo *z, const zoo_step *s);
const char *zoo_step_why(zoo *z, const char *log);            /* what a program said of its end, or the last line */
const char *zoo_step_folder(zoo *z, const settings *profile); /* what profile.sh calls the folder */

/* zoo_gpus.c: items beside each other, each on a GPU of its own. The work is done in another process; what it leaves in
 * the item is there again when `done` is called. */
typedef struct zoo_gpus {
    void (*work)(void *context, zoo_item *item);
    void (*work_alone)(void *context, zoo_item *item); /* in this process, behind the others: what is on the CPU */
    void (*done)(void *context, zoo_item *item);
    void (*tick)(void *context);
    void (*tell)(void *context, const char *text); /* of what failed on one GPU alone */
    void *context;
    const char **now; /* what runs */
    const volatile int *stop;
} zoo_gpus;
void zoo_gpus_name(zoo *z);                                           /* z->gpu_names, as far as words tell */
void zoo_gpus_find(zoo *z, const char *folder, const zoo_step *like); /* else of the driver; like: how a step is run */
const char *zoo_gpus_of(zoo *z, const zoo_item *item);                /* where it is measured; NULL: anywhere */
const char *zoo_gpus_device(const zoo_item *item);                    /* what it is measured on there */
void zoo_gpus_run(zoo *z, const zoo_gpus *with);

/* zoo_cards.c: fills z->unlike. */
void zoo_cards_compare(zoo *z);

/* zoo_run.c: all of it. The code; st says why where a line is due. */
status_code zoo_run(zoo *z, status *st);
json_t *zoo_read_quietly(const char *path); /* NULL: it is not there, is a link, or is none */
void zoo_run_end(void);                     /* at the end, however it came about */

/* zoo_history.c: what makes a run a night. Between both lies the measuring, which --again makes a night's. */
void zoo_history_begin(zoo *z, const char *folder);
typedef struct zoo_kept {
    bool slower;      /* in this night, something is */
    const char *text; /* what the last night came to; "": there is no result yet */
    const char *why;  /* it was not kept; NULL: it was */
} zoo_kept;
/* step: what to call and when to stop; `now` is told what runs next, for as long as the call takes. */
zoo_kept zoo_history_end(zoo *z, const char *folder, const zoo_step *step, void (*now)(void *context, const char *text),
                         bool measured);

/* zoo_notify.c: z->notify gets the digest; state: "quiet", "incomplete", "slower" or "wrong". NULL: it did; else what
 * became of it. */
const char *zoo_notify(zoo *z, const char *folder, const zoo_step *step, const char *state);

/* zoo_digest.c */
void zoo_digest_write(zoo *z, const char *folder, const char *summary); /* beside index.json, which it tells of */
const char *zoo_digest_plain(zoo *z, const char *text); /* fit for a line of a terminal and for code in Markdown */

/* zoo_command.c: what ceiling-scout zoo is. */
status_code zoo_command(int argc, char **argv, status *st);
