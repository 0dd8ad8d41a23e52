/* What the files of a run share: its state. run.c is its sequence, run_queue.c the flow of jobs, run_ceilings.c the
 * ceilings that they need, run_files.c what it reads and writes in its folder, run_json.c the story of the run. */
#pragma once

#include "common/files.h"
#include "scout/cache/cache.h"
#include "scout/device/others.h"
#include "scout/plan/layouts.h"
#include "scout/plan/plan.h"
#include "scout/report/report.h"
#include "scout/run/budget.h"
#include "scout/run/expect.h"
#include "scout/run/run.h"
#include "scout/show/show.h"

/* What ceilings can be asked for: a bit per precision, and one for bandwidth, launches and special functions. */
enum { RUN_PRECISIONS = 6, RUN_BANDWIDTH = 1 << RUN_PRECISIONS, RUN_MOST_DEVICES = 64, RUN_HEARD = 32 };
enum { RUN_MOST_OCCURRENCES = 50000 };     /* of a model that is replayed */
extern const char *const run_precisions[]; /* ends with NULL */
unsigned run_precision_bit(const char *name);

typedef enum run_source {
    RUN_PENDING, /* to be measured */
    RUN_SKIPPED, /* cannot be, or was not asked for */
    RUN_LEFT,    /* not asked for by --only: no report is written */
    RUN_KEPT,    /* --resume: its report was there */
    RUN_CACHED,
    RUN_MEASURED,
    RUN_FAILED /* no worker survived it */
} run_source;
extern const char *const run_source_names[];

/* What is measured when: the winners of operations are what a fusion is compared with. What regions would run as comes
 * before the fusions of the file's order, which are in no plan where a region is turned. */
typedef enum run_stage {
    RUN_OPERATIONS,
    RUN_TURNED,
    RUN_TURNED_FUSIONS,
    RUN_FUSIONS,
    RUN_OTHER_FUSIONS,
    RUN_PARTS
} run_stage;

typedef struct run_item {
    const operation *operation;
    fusion *fusion; /* that it is; NULL: an operation of the list */
    const char *key;
    run_stage stage;
    bool derived;    /* a fusion that is an operation of the list: it has that one's measurement */
    bool for_fusion; /* a part that is measured for a fusion alone, or an operation that a turned region may have */
    double stands;   /* of the latter: how often it would run */
    run_source source;
    row_status status; /* where there is no measurement */
    const char *code;
    char text[240];
    json_t *measurement;      /* owned; may be a whole report */
    int device;               /* that measured it */
    int worker;               /* the device's, that made its last pass */
    double weight;            /* how much of the run's time it deserves */
    double seconds;           /* that it took */
    double share;             /* of the model's time, before it is measured */
    double first_s, passes_s; /* its first pass in this run took, and later ones together */
    int passes;               /* how many these were */
    bool wanted;              /* it wants another one */
    double began_s;           /* the last time */
    double budget_s;
    bool started, busy; /* busy: a device is at it */
    bool announced;     /* beside another one, so that it is prepared before its turn */
    bool ready;         /* it is */
    bool again;         /* its first pass is to be made once more, with more time to search, and no other before */
    int judged;         /* 1 + the stage up to which that was asked; 0: not yet */
    bool unwritten;     /* its first report goes to disk once all jobs are handed out */
    bool changed;       /* it has passes that are in no cache yet */
    double open;        /* what figures_open said of it after `asked` passes: every pass asks all of them */
    bool wide;          /* figures_wide, likewise */
    bool guessed;       /* wide by a guess alone (figures_guessed), and its load is not held again */
    double ci;          /* figures_ci */
    int asked;
    int summed;    /* of a fusion that is held against the sum of its parts: the passes of all, */
    bool sum_open; /* and whether it was open after these */
    bool ended;    /* a later pass failed: it has no more */
    bool planned;  /* the plan takes it, or took it when it was looked at */
    int turn;      /* its place in the order of the pass that is under way */
} run_item;

/* One run at a time in a folder and on a device (run_lock.c). */
typedef struct run_lock {
    char *path; /* owned; NULL: it is not held */
    int fd;
} run_lock;

typedef struct run_wait { /* how a run waits for a lock, and how long it did */
    const options *options;
    const volatile int *stop;
    show_progress *progress;
    double waited_s;
} run_wait;

typedef struct run_device {
    const supervisor_device *about;
    run_lock lock;      /* while it is measured on */
    ceilings *ceilings; /* owned; NULL: not known */
    json_t *json;       /* owned: the same as JSON */
    json_t *audit;      /* owned; NULL: none was asked for */
    unsigned asked;     /* bits that were measured, or found to be impossible */
    unsigned again;     /* bits that were measured a second time */
    unsigned suspect;   /* bits that an operation was faster than */
    bool restarted;     /* its worker was lost once: what is announced may not be prepared beside others */
    unsigned disturbed; /* bits whose cached peaks were, and that are measured again for that */
    unsigned flying;    /* bits that are being measured */
    unsigned before;    /* what was asked when that began */
    double budget_s;    /* the least that one of them had */
    double used_s;      /* by their jobs in this run */
    double began;       /* of the job under way */
    int jobs;           /* of operations and fusions, that its worker was given */
    int worker;         /* how many it has had, as far as a pass asked for another one */
    int parts_done;     /* of such jobs that are done */
    int parts, part;    /* of it: how many it has (0: there is none), and at which it is */
    double part_s;      /* that each of them may take */
    double part_began;
    bool tried, sweep_tried, from_cache, kept; /* kept: something was measured in this run, and stored */
    char why[240];                             /* why they are not known */
} run_device;

/* A candidate that hung or crashed. After the second operation it is left out for the rest of the run: each time costs
 * as long as a watchdog waits. */
typedef struct run_fault {
    char name[64], variant[256]; /* variant empty: all of it */
    row_status status;
    char code[32];
    const operation *where[2];
} run_fault;

typedef struct run {
    const options *options;
    const volatile int *stop;
    guard guard;
    arena arena;
    operation_list list;
    operation_axes axes; /* that the list is along; count 0: none */
    layouts *layouts;    /* regions that may be turned; what they need stands behind the file's operations */
    bool left_known;     /* how a run leaves the tensors of each operation (operation.written) */
    bool no_layouts;     /* none is planned: one failed in the replay */
    uint8_t *may_turn;   /* by region, once it was asked */
    fusion_list fusions;
    run_item *items; /* of the list, in its order, then of the fusions */
    int item_count;
    int *order; /* of measuring: stage by stage, the heaviest first */
    int at;     /* in `order` */
    supervisor *supervisor;
    run_device devices[RUN_MOST_DEVICES];
    uint64_t heard[RUN_HEARD]; /* hashes of what was warned of once */
    int heard_count;
    int device_count;
    cache cache;
    run_wait wait;
    run_lock lock; /* of the output folder */
    report_search search;
    unsigned wanted; /* bits of ceilings */
    double model_ci; /* of the model's time, once that is known */
    show_progress progress;
    budget budget;
    double began;        /* the first pass; 0: not yet */
    bool led;            /* its first jobs were chosen */
    bool due;            /* there is something to measure */
    bool replays;        /* the model as a whole comes behind them */
    bool looked_at_plan; /* what it takes by first passes */
    bool late;           /* later passes are over, but for what --min-time asks */
    expect expect;       /* when it ends */
    double looked;       /* when that was asked; 0: not yet */
    double left_s;       /* until then, from that moment on */
    char phases[160], phase[48];
    int most_wanted; /* items that wanted a later pass at once */
    bool shares_known;
    double narrow_end;    /* of passes that nothing asks for; 0: none has begun */
    int unwritten;        /* items of which that is so */
    int of_other_cards;   /* figures that the cache has of another card of this class */
    double expected_us;   /* of the model, before it is measured; 0: not yet known */
    char taken[32];       /* when it began */
    others beside;        /* what ran beside it at its start, on a host; cores 0: that is not known */
    status failure;       /* of writing: the run ends */
    bool interrupted;     /* before every operation had its first pass */
    bool stopped;         /* in a later one, or while the model was measured as a whole */
    const char *no_whole; /* why it was not, where it should have been */
    files_out samples;    /* of --samples */
    bool sampling;
    run_fault *faults; /* owned; candidates that hung or crashed, one per candidate */
    int fault_count;
    const char *sweep_precision;
    int64_t sweep_m, sweep_n;
} run;

double run_now(void);                  /* seconds of a steady clock */
void run_utc(char *text, size_t room); /* "2026-11-21T15:07:52.123Z" */
void run_warn(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_warn_once(run *r, const char *text); /* the same text is not said again */

/* A run from its options to its end: `work` has it whole, with its guard entered and the time of its budget begun. */
typedef void run_work(run *r, status *st);
status_code run_whole(const options *o, const volatile int *stop, size_t most_memory, run_work *work, status *st);

/* A list that one worker makes: "devices" or "candidates"; the caller's, or NULL. */
json_t *run_list_ask(const options *o, const char *what, const json_t *body, status *st);

/* Starts workers and fills `devices`; false: st says why. */
bool run_start(run *r, status *st);
/* That, and the operations and the folder: what comes before any measuring. */
bool run_set_up(run *r, status *st);

/* run_ceilings.c */
bool run_on_host(const run *r); /* one of its devices is this machine's cores */
void run_ceilings_load(run *r, run_device *d);
/* Bits that have to be measured before operations can be: what is wanted and unknown, or (`again`) what is doubted. */
unsigned run_ceilings_due(const run *r, const run_device *d, bool *again);
json_t *run_ceilings_job(run *r, run_device *d, int job);          /* NULL: nothing is due */
void run_ceilings_part(run *r, run_device *d, const json_t *body); /* some of them are done */
void run_ceilings_done(run *r, run_device *d, const json_t *result, const status *st);
/* What was measured, held against the ceilings: those that it outran are measured again, once; what a host's yardstick
 * reached takes the place of less. */
void run_ceilings_hold(run *r, run_device *d, const run_item *i);
const char *run_ceilings_words(const run_device *d, bool doubted); /* what is measured now, and why */
/* A worker's word about its job tells which part it is at. */
void run_ceilings_hear(run_device *d, const char *text);
double run_ceilings_left_s(const run_device *d); /* at most, of the job under way; not-a-number: there is none */
int run_ceilings_parts_due(const run *r, const run_device *d); /* of a job that is to come */

/* run_queue.c */
void run_queue_fill(run *r); /* what is cached is taken, the rest put in order */
/* If anything is to be measured, its devices are this run's alone from here to run_queue_rest. */
bool run_queue_begin(run *r, status *st);
/* Waits until this run has the devices, and gives them back. */
bool run_queue_lock(run *r, status *st);
void run_queue_rest(run *r);
bool run_queue_work(run *r, status *st); /* what was measured goes to the cache, too */
int run_queue_pending(const run *r);

/* run_order.c */
run_item *run_order_next(run *r, int device); /* NULL: none, for now or for good */
void run_order_look(run *r);                /* what each item is expected to take, and whether it wants another pass */
bool run_order_is_open(run *r);             /* one does */
double run_order_spare(run *r, double now); /* seconds that figures narrow when none does */
double run_order_share(run *r, const run_item *i); /* of the model's time, before it is measured */
/* Seconds for preparing and racing in the first pass; 0: there are none left. `early`: its stage has not begun. */
double run_order_seconds(run *r, const run_item *i, bool early);

/* run_job.c */
json_t *run_job(run *r, const run_device *d, run_item *i); /* NULL: r->failure says why */
int run_job_pass(const run_item *i);                       /* that it would be */
bool run_job_is_ahead(const run *r, const run_device *d);  /* the device prepares jobs beside others */

/* run_cached.c */
const char *run_cached_card(run *r, int device);
void run_cached_find(run *r, run_item *i); /* this card's own figures before those of another one of its class */
void run_cached_store(run *r);

/* run_search.c */
/* An item's part of the model's time by what is known of it; 1: it is a part of others, or all there is. */
double run_search_share(const run *r, const run_item *i, double model_us);
double run_search_places(const run_item *i); /* that it has in a run; 0: none */
/* Those of this device up to that stage whose search ended before all was tried, where they turned out to be worth
 * more, are to be searched again, each in its `budget_s`. */
void run_search_look(run *r, int device, run_stage last, double model_us, double left_s);
/* The one with most seconds among those that are prepared; `wait`: among all. Those for which no time is left any more
 * keep what they have. NULL: there is none. */
run_item *run_search_next(run *r, int device, bool wait, double left_s);
void run_search_forget(run *r, const run_item *part); /* what it ran as, once it was searched again */

/* run_compare.c */
/* Refuses unknown names, and fills search.candidate of a comparison. The devices are known. */
bool run_compare_names(run *r, const supervisor_options *with, status *st);
void run_compare_end(const run *r, status *st); /* the exit code of a run that came to its end */
/* run_fusion.c */
/* Their items, after all others, and those of parts that are needed. How many fusions are asked for. */
int run_fusion_set_up(run *r);
bool run_fusion_ready(const run *r, const run_item *i); /* none of its parts is being measured */
bool run_fusion_known(const run *r, const run_item *i); /* what its parts run as can be chosen */
void run_fusion_choose(run *r, run_item *i);            /* what its parts run as */
void run_fusion_derive(run *r);                         /* at the end: those that are operations of the list */
report_fusion run_fusion_about(const run *r, const run_item *i);
bool run_fusion_left(const run *r); /* one of them is not measured yet */
void run_fusion_skip(run_item *i);  /* its time was used up, or nothing would come of it */
/* A part that is in no model's time: it is not decided whether what it is a part of takes less than all of them. */
bool run_fusion_decides(const run *r, const run_item *part);
bool run_fusion_is_turned(const run_item *i); /* it is in no run as the file has it, but in one with regions turned */

/* run_lock.c. False: st says why; with --no-wait, which run has it. Where no lock can be kept that is said, and the run
 * goes on. run_lock_end gives back what is held. */
bool run_lock_folder(run_wait *w, const char *folder, run_lock *l, status *st);
bool run_lock_device(run_wait *w, const supervisor_device *d, run_lock *l, status *st);
void run_lock_end(run_lock *l);

/* run_progress.c: what goes on is `what`; NULL: the same as before */
void run_progress_show(run *r, const char *what);

/* run_samples.c: --samples */
bool run_samples_begin(run *r, status *st); /* before anything is measured */
void run_samples_add(run *r, const run_item *i, const json_t *pass);
void run_samples_end(run *r, bool good);

/* run_faults.c */
void run_faults_note(run *r, const run_item *i); /* after it was measured */
json_t *run_faults_exclusions(const run *r, json_builder *b);

/* run_files.c */
report_input run_input(const run *r, const run_item *i, double model_us);
bool run_files_prepare(run *r, status *st); /* the output's folders are there, can be written, and are this run's */
bool run_files_refuse_link(const char *path, status *st); /* true: it is one, and st says so */
void run_files_resume(run *r);
bool run_files_report(run *r, const run_item *i, double model_us); /* false: `failure` says why */
bool run_files_reports(run *r, double model_us); /* all of them, those that differ from what is there */
void run_files_clean(const run *r);              /* reports of operations that are gone */

/* run_plan.c */
typedef struct run_planned {           /* what an operation or a fusion runs as */
    const char *name, *variant;        /* NULL: an operation by its default, a fusion nowhere */
    double ratio, ratio_ci;            /* over the default, over the parts; not above 0: not known */
    double each_us, ci;                /* a launch alone; not above 0: an operation takes no part */
    double default_us, default_ci;     /* the same by its default */
    double fetch_us, default_fetch_us; /* what their programs take more in a model; not-a-number: not known */
    const char *code, *text;           /* of a fusion that is worth it: why it stays out; NULL: it does not */
} run_planned;

typedef struct run_plan {
    bool *turned;                       /* by region */
    const layouts_run *as;              /* the run where some are; NULL: none is */
    plan_run whole;                     /* of the occurrences of that run; its fusions are those of the run's list */
    run_planned *operations, *fusions;  /* by item of the list, and by fusion */
    int fused;                          /* groups of several occurrences */
    double alone_us, cost_us, bound_us; /* every occurrence by itself; as planned; no plan takes less */
} run_plan;

/* By the reports: the cheapest. */
void run_plan_choose(run *r, run_plan *to);
/* What occurrences of a plan are of: the file's, or those of the model with regions turned. */
const operation_flow *run_plan_flow(const run *r, const run_plan *plan);
/* Whether an occurrence is of a fusion's part. */
bool run_plan_is_part(const run *r, const operation_flow *f, int occurrence, const operation *part);
/* Every operation of the regions that it turns has a figure just where it has one in the file's order. */
bool run_plan_known(const run *r, const run_plan *plan);
/* Its region, each operation by itself, takes hardly longer turned than as the file has it. */
bool run_plan_may_turn(run *r, const fusion *f);
bool *run_plan_items(run *r, const run_plan *plan); /* by item of the list: it runs, by itself or as a part */
double run_plan_us(const run *r, const run_plan *plan, int occurrence); /* by itself; not-a-number: it takes no part */
double run_plan_fused_us(const run *r, const run_plan *plan, const plan_group *g);
/* Estimates and counts of what the plan is now; bound_us stays, or becomes what it costs where that is less. */
void run_plan_count(const run *r, run_plan *plan);
/* After a replay; run_plan_count ends it. By group: those that become single occurrences again. */
void run_plan_split(run *r, run_plan *plan, const bool *apart);
void run_plan_by_default(run_planned *to);                   /* an operation */
double run_plan_launch_us(double alone_us, double fetch_us); /* in a model; what is not known adds nothing */
void run_plan_drop(run *r, run_plan *plan, int index, const char *code, const char *text); /* why a fusion is out */
void run_plan_leave_out(const run *r, run_plan *plan, int item); /* an operation that no run can have */
/* run_plan_json.c: plan.json. Read: what it names takes the place of what the reports prove, and a proof is only what
 * they prove of the same. False: st says why. */
void run_plan_to_json(run *r, const run_plan *plan, json_t *to, json_builder *b);
bool run_plan_read(run *r, const char *path, run_plan *to, status *st);

/* run_replay.c */
/* The model as a whole, until end_s; alone: it is all that was asked, so that it is done again. False: st says why.
 * What it finds goes to model.json, and to the terminal. `no_whole`: its budget has no time for that. */
bool run_replay(run *r, double end_s, bool alone, status *st);
/* Seconds that all passes of it take, or at least the first, of a model that takes so long by its defaults. */
double run_replay_expected_s(const run *r, double model_us, bool all);
void run_replay_forget(run *r); /* model.json is of what was measured before */

/* run_trace.c */
json_t *run_trace_json(const json_t *trace, const char *model, json_builder *b);

/* run_json.c */
typedef struct run_counts {
    int statuses[ROW_STATUS_COUNT];
    int sources[RUN_FAILED + 1];
    int bad, open; /* operations with a bad row; without a baseline */
    int empty;     /* of these, without any figure */
    int wide;      /* operations whose time is known less well than is wanted */
    int missing;   /* of the model's time: operations without a baseline; missing_us: what they take at least */
    double baseline_us, missing_us, model_us, best_us, ceiling_us; /* model_us: the first two together */
    double own_us, proven_us; /* gains that are proven: over kernels of this project; over libraries */
    double model_ci;          /* relative half width of model_us */
    double blocks, dropped;   /* timed in this run and counted; and disturbed by other work, which do not count */
} run_counts;
run_counts run_count(const run *r);
bool run_json_save(run *r, const char *state, status *st);
